"""Atomic updates: the bits of threads that run one after the other, for every gang width."""

import re

import numpy as np
import pytest

from tests.codegen.harness import WIDTHS, Entry, KernelBuilder, agrees_with_oracle, same_on_all_widths
from tests.codegen.programs import Scatter
from tests.targets import MACHINES
from treadle.codegen import cpu
from treadle.codegen.emit.unit import Options
from treadle.ir.effects import effects
from treadle.types.core import f32, i32, u32, view

N = 203
FLOATS, INTS = view(f32, 1), view(i32, 1)


def floats():
    return np.random.default_rng(0).normal(size=N).astype(np.float32)


def places(n=8):
    return np.random.default_rng(1).integers(0, n, N).astype(np.int32)


def atomic(k, op, v, i, x, *more):
    return k.b.op("atomic", (v, i, x, *more), (x.type,), op=op)[0]


def test_scattered_float_sums_with_several_sites_follow_thread_order():
    k = KernelBuilder((FLOATS, INTS, FLOATS))
    out, where, x = k.params
    i = k.tid()
    j, v = k.load(where, i), k.load(x, i)
    wrap = lambda n: k.op("bitand", n, k.const(7, i32))
    atomic(k, "add", out, j, v)
    atomic(k, "sub", out, wrap(k.op("add", j, k.const(1, i32))), k.op("mul", v, v))
    again = lambda n: [atomic(k, "add", out, wrap(k.op("add", j, n)), k.op("mul", v, k.cast(n, f32)))][:0]
    k.for_(k.const(0, i32), k.op("bitand", j, k.const(3, i32)), k.const(1, i32), [], again)
    make = lambda: (np.zeros(8, np.float32), places(), floats())
    out = same_on_all_widths(k.func(), N, make)
    agrees_with_oracle(k.func(), N, make, *out)


@pytest.mark.parametrize("op", ["add", "sub", "min", "max", "and", "or", "xor"])
def test_scattered_integers(op):
    k = KernelBuilder((view(u32, 1), INTS, view(u32, 1)))
    out, where, x = k.params
    i = k.tid()
    v = k.load(x, i)
    k.if_(k.op("gt", v, k.const(1000, u32)), lambda: [atomic(k, op, out, k.load(where, i), v)][:0])
    numbers = np.random.default_rng(2).integers(0, 2**32, N, dtype=np.uint32)
    make = lambda: (np.full(8, 12345, np.uint32), places(), numbers.copy())
    out = same_on_all_widths(k.func(), N, make)
    agrees_with_oracle(k.func(), N, make, *out)


@pytest.mark.parametrize("dims", [(N,), (7, 29)])
def test_one_shared_address_gets_64_partial_sums(dims):
    k = KernelBuilder((FLOATS, view(f32, len(dims)), INTS), ndim=len(dims))
    out, x, count = k.params
    axes = tuple(k.tid(a) for a in range(len(dims)))
    v = k.load(x, *axes)
    atomic(k, "add", out, k.const(0, i32), v)
    k.if_(k.op("gt", v, k.const(0.0, f32)), lambda: [atomic(k, "add", count, k.const(1, i32), k.const(1, i32))][:0])
    make = lambda: (np.zeros(1, np.float32), floats().reshape(dims).copy(), np.zeros(2, np.int32))
    total, x, count = same_on_all_widths(k.func(), dims, make, Options(rows=len(dims) > 1))
    assert abs(total[0] - x.astype(np.float64).sum()) < 1e-4 and list(count) == [0, int((x > 0).sum())]


def test_results_of_a_counter_come_in_thread_order():
    k = KernelBuilder((INTS, FLOATS, FLOATS))
    counter, x, y = k.params
    v = k.load(x, k.tid())
    k.if_(k.op("gt", v, k.const(0.0, f32)),
          lambda: [k.store(y, (atomic(k, "add", counter, k.const(0, i32), k.const(1, i32)),), v)][:0])  # fmt: skip
    func = k.func()
    order = effects(func).order
    assert order == "counted" and Entry(func, 8, Options(order=order)).binary.meta["width"] == 8
    make = lambda: (np.zeros(1, np.int32), floats(), np.zeros(N, np.float32))
    count, x, y = same_on_all_widths(func, N, make, Options(order=order))
    assert count[0] == (x > 0).sum() and np.array_equal(y[: count[0]], x[x > 0])


def test_compare_and_swap_runs_one_thread_at_a_time():
    k = KernelBuilder((INTS, INTS))
    lock, out = k.params
    i = k.tid()
    old = atomic(k, "cas", lock, k.const(0, i32), i, k.op("add", i, k.const(1, i32)))
    k.store(out, (i,), old)
    func = k.func()
    order = effects(func).order
    assert order == "ordered"
    lock, out = same_on_all_widths(
        func, N, lambda: (np.zeros(1, np.int32), np.zeros(N, np.int32)), Options(order=order)
    )
    assert lock[0] == N and np.array_equal(out, np.arange(N))


def test_updates_at_the_threads_own_index_are_plain():
    k = KernelBuilder((FLOATS, FLOATS))
    x, y = k.params
    i = k.tid()
    k.store(x, (i,), atomic(k, "add", y, i, k.load(x, i)))
    entry = Entry(k.func(), 8)
    assert entry.binary.meta["atomics"] == []
    x, y = same_on_all_widths(k.func(), N, lambda: (floats(), np.ones(N, np.float32)))
    assert (x == 1).all() and np.array_equal(y, floats() + np.float32(1))


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    func, n = Scatter(seed).func(), 50
    assert effects(func).order == "free"

    def make():
        r = np.random.default_rng(seed)
        arrays = r.integers(-50, 50, 64).astype(np.int32), r.normal(size=64).astype(np.float32)
        outs = np.zeros(n, np.float32), np.zeros(n, np.int32)
        sums = np.zeros(8, np.float32), np.zeros(8, np.int32), np.zeros(1, np.float32)
        return *arrays, r.normal(size=(64, 3)).astype(np.float32), *outs, 7, 1.5, *sums

    first = None
    for width in WIDTHS:
        args = make()
        assert Entry(func, width)(n, *args) == 0
        found = [np.nan_to_num(a, nan=7.0) if a.dtype.kind == "f" else a for a in args if isinstance(a, np.ndarray)]
        first = first or found
        assert all(a.tobytes() == b.tobytes() for a, b in zip(first, found, strict=True)), f"width {width}"


def straight_from_vectors(code: str) -> set[str]:
    """The instructions of x86 code that change memory at an address of which a register was set out of a vector, with
    nothing done to it since."""
    fresh, found = set(), set()
    for line in code.splitlines():
        name, _, rest = line.strip().partition("\t")
        if re.match(r"v(movq|pextrq)$", name) and re.search(r"%r\w+$", rest):
            fresh.add(re.search(r"%(r\w+)$", rest)[1])
            continue
        if name in ("incl", "addl", "decl", "subl") and "(" in rest:
            used = set(re.findall(r"%(r\w+)", rest[rest.index("(") :]))
            found |= {line.strip()} if used & fresh else set()
        elif rest and name.startswith(("sar", "mov", "lea", "add", "shl")):
            fresh.discard(re.sub(r".*%", "", rest))
    return found


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("width", [8, 16])
def test_integers_are_not_changed_at_addresses_straight_out_of_vectors(masked, width):
    k = KernelBuilder((view(i32, 2), INTS))
    out, where = k.params
    j = k.load(where, k.tid())
    add = lambda *ij: k.b.op("atomic", (out, *ij, k.const(1, i32)), (i32,), op="add")[0]
    update = lambda: [add(j, k.op("mul", j, j))][:0]
    k.if_(k.op("gt", j, k.const(3, i32)), update) if masked else update()
    target = MACHINES["avx512"]._replace(width=width)
    assert not straight_from_vectors(cpu.assembly(cpu.draft(k.func(), target).text, target))
