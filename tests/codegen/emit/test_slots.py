"""Slots: updates in loops at an address that a gang shares, beside updates elsewhere in the same array."""

import numpy as np
import pytest

from tests.codegen.harness import WIDTHS, Entry, KernelBuilder, agrees_with_oracle, same_on_all_widths
from treadle.codegen import cpu
from treadle.codegen.emit.unit import Options
from treadle.ir.effects import effects
from treadle.types.core import f32, f64, i32, vector, view

N = 203
FLOATS, INTS = view(f32, 1), view(i32, 1)


def atomic(k, op, v, i, x):
    return k.b.op("atomic", (v, i, x), (x.type,), op=op)[0]


def mixed(t=f32, elem=None, constant: int | None = None):
    """``out[j] += x·j`` for each j in a loop, under a condition; ``out[where] -= x``; ``out[i & 7] += x``. Of a vector,
    two components."""
    k = KernelBuilder((view(elem or t, 1), INTS, view(t, 1), i32))
    out, where, x, n = k.params
    columns = [k.b.op("field", (out,), (view(t, 1, out.type.strides),), index=c)[0] for c in (0, 1)] if elem else [out]
    i = k.tid()
    j, v = k.load(where, i), k.load(x, i)
    add = lambda op, at, value: [atomic(k, op, column, at, value) for column in columns]

    def again(m):
        add("add", m, k.op("mul", v, k.cast(m, t)))
        k.if_(k.op("lt", m, j), lambda: add("sub", m, v)[:0])
        return []

    k.for_(k.const(0, i32), n if constant is None else k.const(constant, i32), k.const(1, i32), [], again)
    add("sub", j, v)
    add("add", k.op("bitand", i, k.const(7, i32)), v)
    return k.func()


def numbers(dtype=np.float32, width: int = 0):
    rng = np.random.default_rng(3)
    shape = (12, width) if width else 12
    return np.full(shape, 0.25, dtype), rng.integers(0, 12, N).astype(np.int32), rng.normal(size=N).astype(dtype), 12


def kinds(func, width: int = 8, **options) -> list[str]:
    return [item["kind"] for item in cpu.draft(func, cpu.host_target(width), Options(**options)).meta["atomics"]]


@pytest.mark.parametrize("slots", [False, True])
@pytest.mark.parametrize(("t", "size"), [(f32, 0), (f64, 0), (f32, 2), (f32, 3)])
def test_gangs_of_any_width_give_the_same_bits(t, size, slots):
    func = mixed(t, vector(size, t) if size else None)
    make = lambda: numbers(np.dtype(f"f{t.size}"), size)
    found = same_on_all_widths(func, N, make, slots=slots)
    if not slots:  # threads one after the other
        agrees_with_oracle(func, N, make, *found)
    out, where, x, n = make()
    want = out.reshape(12, -1)[:, : 2 if size else 1].astype(float)
    for i in range(N):
        for m in range(n):
            want[m] += x[i] * float(m) - x[i] * (m < where[i])
        want[where[i]] -= x[i]
        want[i & 7] += x[i]
    assert np.allclose(found[0].reshape(12, -1)[:, : want.shape[1]], want, atol=1e-3)
    assert (found[0].reshape(12, -1)[:, want.shape[1] :] == 0.25).all() or not size


@pytest.mark.parametrize("dims", [(7, 29), (29, 7), (4, 48)])
def test_gangs_along_rows_give_the_same_bits(dims):
    k = KernelBuilder((FLOATS, view(f32, 2), i32), ndim=2)
    out, x, n = k.params
    i, j = k.tid(0), k.tid(1)
    v = k.load(x, i, j)

    def again(m):
        k.if_(k.op("gt", v, k.const(0.0, f32)), lambda: [atomic(k, "add", out, m, v)][:0])
        atomic(k, "add", out, k.op("bitand", i, k.const(3, i32)), v)
        return []

    k.for_(k.const(0, i32), n, k.const(1, i32), [], again)
    func = k.func()
    assert kinds(func) == kinds(func, rows=True) == ["copy", "slots"]
    make = lambda: (np.zeros(5, np.float32), np.random.default_rng(4).normal(size=dims).astype(np.float32), 5)
    along = same_on_all_widths(func, dims, make, Options(rows=True), [w for w in WIDTHS if w <= dims[1]], slots=True)
    over = same_on_all_widths(func, dims, make, slots=True)
    assert along[0].tobytes() == over[0].tobytes()
    x = make()[1].astype(float)
    want = [x[x > 0].sum() + 5 * x[m::4].sum() * (m < 4) for m in range(5)]
    assert np.allclose(along[0], want, atol=1e-3)


def test_whether_there_are_slots_does_not_depend_on_the_width():
    assert {tuple(kinds(mixed(), width)) for width in (1, 2, 8, 16, 64)} == {("copy", "slots")}
    assert cpu.draft(mixed(), cpu.host_target(64)).meta["width"] <= 16


def test_rounds_are_what_constants_say_or_assumed():
    rounds = lambda func: [item["rounds"] for item in cpu.draft(func, cpu.host_target(8)).meta["atomics"]]
    assert rounds(mixed()) == [2 * 32 + 2] * 2
    assert rounds(mixed(constant=100)) == [2 * 100 + 2] * 2


def test_only_floats_in_loops_at_shared_addresses_have_slots():
    k = KernelBuilder((FLOATS, INTS, INTS, FLOATS, i32))
    varying, whole, where, once, n = k.params
    i = k.tid()
    j = k.load(where, i)

    def again(m):
        atomic(k, "add", varying, k.op("bitand", k.op("add", j, m), k.const(7, i32)), k.const(0.5, f32))
        atomic(k, "add", whole, m, k.const(1, i32))
        return []

    k.for_(k.const(0, i32), n, k.const(1, i32), [], again)
    atomic(k, "add", once, k.load(where, k.const(0, i32)), k.const(0.5, f32))
    func = k.func()
    assert effects(func).order == "free" and kinds(func) == ["copy", "copy", "copy"]
    assert Entry(func, 8).binary.meta["width"] == 8
