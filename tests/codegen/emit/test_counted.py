"""Counters whose results are used: the values of threads that run one after the other, for every gang width."""

import numpy as np
import pytest

from tests.codegen.harness import Entry, KernelBuilder, agrees_with_oracle, same_on_all_widths
from tests.codegen.programs import Counters
from treadle.codegen import oracle
from treadle.codegen.emit.unit import Options
from treadle.ir.effects import effects
from treadle.types.core import f32, i8, i32, i64, u32, view

N = 203
FLOATS, INTS = view(f32, 1), view(i32, 1)
COUNTED = Options(order="counted")


def floats():
    return np.random.default_rng(0).normal(size=N).astype(np.float32)


def draw(k, v, i, x, op="add"):
    return k.b.op("atomic", (v, i, x), (x.type,), op=op)[0]


@pytest.mark.parametrize("op", ["add", "sub"])
@pytest.mark.parametrize("t", [i8, i32, u32, i64], ids=str)
@pytest.mark.parametrize("amount", [1, 3, None], ids=["ones", "threes", "varying"])
def test_one_site_is_a_prefix_sum(op, t, amount):
    k = KernelBuilder((view(t, 1), FLOATS, view(t, 1)))
    counter, x, y = k.params
    i = k.tid()
    x = k.load(x, i)
    add = k.cast(k.op("mul", i, i), t) if amount is None else k.const(amount, t)
    k.if_(k.op("gt", x, k.const(0.0, f32)),
          lambda: [k.store(y, (i,), draw(k, counter, k.const(1, i32), add, op))][:0])  # fmt: skip
    dtype = np.dtype(f"{t.kind}{t.size}")
    make = lambda: (np.full(2, 7, dtype), floats(), np.zeros(N, dtype))
    found = same_on_all_widths(k.func(), N, make, COUNTED)
    agrees_with_oracle(k.func(), N, make, *found)
    assert Entry(k.func(), 8, COUNTED).binary.meta["width"] == 8


def test_a_result_that_nobody_reads_costs_no_prefix_sum():
    k = KernelBuilder((INTS, INTS))
    counter, y = k.params
    k.store(y, (k.tid(),), draw(k, counter, k.const(0, i32), k.const(2, i32)))
    draw(k, counter, k.const(1, i32), k.tid(), "sub")
    make = lambda: (np.full(2, 100, np.int32), np.zeros(N, np.int32))
    counter, y = same_on_all_widths(k.func(), N, make, COUNTED)
    assert (y == 100 + 2 * np.arange(N)).all() and list(counter) == [100 + 2 * N, 100 - N * (N - 1) // 2]


def test_places_that_vary_are_drawn_from_lane_by_lane():
    k = KernelBuilder((INTS, INTS, INTS))
    seats, where, y = k.params
    i = k.tid()
    k.store(y, (i,), draw(k, seats, k.load(where, i), k.const(1, i32)))
    places = np.random.default_rng(1).integers(0, 5, N).astype(np.int32)
    make = lambda: (np.zeros(5, np.int32), places.copy(), np.zeros(N, np.int32))
    seats, places, y = same_on_all_widths(k.func(), N, make, COUNTED)
    assert all((y[places == p] == np.arange((places == p).sum())).all() for p in range(5))
    assert (seats == np.bincount(places, minlength=5)).all()


def several(k, dependent=False):
    """A site that all threads come to, one under a condition, one in a loop; all of one counter."""
    counter, x, y = k.params[:3]
    i, zero, one = k.tid(), k.const(0, i32), k.const(1, i32)
    first = draw(k, counter, zero, one)
    k.store(y, (i,), first)
    again = lambda: [k.store(y, (i,), k.op("mul", draw(k, counter, zero, k.const(2, i32)), k.const(3, i32)))][:0]
    k.if_(k.op("gt", k.load(x, i), k.const(0.0, f32)), again)

    def body(n):
        old = draw(k, counter, zero, n, "sub")
        k.store(y, (i,), k.op("bitxor", k.op("mul", k.load(y, i), k.const(5, i32)), old))
        return []

    k.for_(zero, k.op("bitand", i, k.const(3, i32)), one, [], body)
    if dependent:
        draw(k, k.params[3], zero, k.op("bitand", first, k.const(3, i32)))
        k.store(y, (i,), k.op("add", k.load(y, i), draw(k, k.params[3], zero, first)))
    return k.func()


@pytest.mark.parametrize("dependent", [False, True], ids=["one counter", "a second that depends"])
def test_several_sites_take_turns_by_thread(dependent):
    func = several(KernelBuilder((INTS, FLOATS, INTS, INTS)), dependent)
    found = effects(func)
    assert found.order == "counted" and not found.single and len(found.rounds) == 1 + dependent
    make = lambda: (np.full(1, 9, np.int32), floats(), np.zeros(N, np.int32), np.full(1, 5, np.int32))
    arrays = same_on_all_widths(func, N, make, COUNTED)
    agrees_with_oracle(func, N, make, *arrays)
    meta = Entry(func, 8, COUNTED).binary.meta
    assert meta["width"] == 8 and meta["draws"] and len(meta["counting"]) == 1 + dependent


def test_several_sites_at_places_that_vary_have_one_thread_a_gang():
    k = KernelBuilder((INTS, INTS, INTS))
    seats, where, y = k.params
    i = k.tid()
    j = k.load(where, i)
    old = draw(k, seats, j, k.const(1, i32))
    k.store(y, (i,), k.op("add", old, draw(k, seats, k.op("bitxor", j, k.const(1, i32)), k.const(2, i32))))
    places = np.random.default_rng(1).integers(0, 8, N).astype(np.int32)
    make = lambda: (np.zeros(8, np.int32), places.copy(), np.zeros(N, np.int32))
    agrees_with_oracle(k.func(), N, make, *same_on_all_widths(k.func(), N, make, COUNTED))
    meta = Entry(k.func(), 8, COUNTED).binary.meta
    assert meta["width"] == 1 and meta["counting"] and not meta["draws"]


def test_what_a_thread_wrote_itself_decides_in_gangs_but_not_beforehand():
    k = KernelBuilder((INTS, FLOATS, INTS))
    counter, x, y = k.params
    i = k.tid()
    k.store(x, (i,), k.op("sub", k.load(x, i), k.const(0.5, f32)))
    k.if_(k.op("gt", k.load(x, i), k.const(0.0, f32)),
          lambda: [k.store(y, (draw(k, counter, k.const(0, i32), k.const(1, i32)),), i)][:0])  # fmt: skip
    assert effects(k.func()).order == "counted"
    meta = Entry(k.func(), 8, COUNTED).binary.meta
    assert meta["width"] == 8 and not meta["counting"] and meta["atomics"] == []
    make = lambda: (np.zeros(1, np.int32), floats(), np.zeros(N, np.int32))
    counter, x, y = same_on_all_widths(k.func(), N, make, COUNTED)
    assert np.array_equal(y[: counter[0]], np.flatnonzero(floats() > 0.5)) and counter[0] == (floats() > 0.5).sum()


def test_a_lane_that_fails_is_reported_once_and_by_the_run_that_counts():
    k = KernelBuilder((INTS, FLOATS, INTS))
    counter, x, y = k.params
    zero, one = k.const(0, i32), k.const(1, i32)
    ok = k.op("lt", k.load(x, k.tid()), k.const(1.0, f32))
    k.store(y, (k.tid(),), draw(k, counter, zero, one))
    k.b.op("check", (ok,), (), kind="assert", message="too large")
    draw(k, counter, zero, one)
    values = np.zeros(N, np.float32)
    values[[77, 78, 100]] = 2.0
    for width in (1, 8, 16):
        entry = Entry(k.func(), width, COUNTED)
        y = np.zeros(N, np.int32)
        assert entry(N, np.zeros(1, np.int32), values, y) == 1
        assert list(entry.fault[:3]) == [2, 77, 0] and (y[:77] == 2 * np.arange(77)).all()


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed):
    func, n = Counters(seed).func(), 50
    order = effects(func).order

    def make():
        r = np.random.default_rng(seed)
        arrays = r.integers(-50, 50, 64).astype(np.int32), r.normal(size=64).astype(np.float32)
        outs = np.zeros(n, np.float32), np.zeros(n, np.int32)
        counters = r.integers(0, 9, 4).astype(np.int32), np.zeros(8, np.int32), np.zeros(4 * n, np.int32)
        return *arrays, r.normal(size=(64, 3)).astype(np.float32), *outs, 7, 1.5, *counters

    plain = lambda args: [np.nan_to_num(a, nan=7.0) for a in args if isinstance(a, np.ndarray)]
    want = make()
    oracle.run(func, want, n)
    for width in (1, 4, 8, 16):
        args = make()
        assert Entry(func, width, Options(order=order))(n, *args) == 0
        assert all(a.tobytes() == b.tobytes() for a, b in zip(plain(want), plain(args), strict=True)), f"width {width}"


def test_random_programs_are_of_every_kind():
    kinds = set()
    for seed in range(24):
        found = effects(Counters(seed).func())
        kinds.add((found.order, len(found.rounds), found.single))
    assert {("free", 0, False), ("counted", 1, True), ("counted", 1, False), ("counted", 2, False)} <= kinds
