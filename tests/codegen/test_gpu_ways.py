"""How a launch on a GPU keeps its bits, tried on the CPU (see ``gpu.py``)."""

from fractions import Fraction

import numpy as np
import pytest

from tests.codegen import gpu
from tests.codegen.harness import KernelBuilder, agrees_with_oracle
from treadle.codegen import nvptx
from treadle.codegen.nvptx import merging
from treadle.types.core import f32, f64, i32, i64, view

SMALL = nvptx.Options(block=4)


@pytest.fixture(autouse=True)
def few_threads(monkeypatch):
    monkeypatch.setattr(merging, "MERGERS", 8)
    monkeypatch.setattr(merging, "SCANNERS", 8)
    monkeypatch.setattr(nvptx, "FOLDERS", 2)
    monkeypatch.setattr(nvptx, "BLOCK", 8)


def numbers(t, count: int, seed: int = 1) -> np.ndarray:
    """Floats of all sizes, both signs, some zero, some subnormal."""
    draw = np.random.default_rng(seed)
    span = 100 if t is f32 else 900
    x = draw.normal(size=count) * 2.0 ** draw.integers(-span, span, count)
    x[::7] = 0.0
    x[1::11] = draw.integers(-9, 9, len(x[1::11])) * (2.0**-149 if t is f32 else 2.0**-1074)
    return x.astype("f4" if t is f32 else "f8")


def rounded(total: Fraction, t) -> float:
    """The nearest float, ties to even."""
    kind = np.float32 if t is f32 else np.float64
    if t is f64:
        return kind(float(total))
    low = kind(float(total))  # within a unit of the nearest: rounded twice
    candidates = [np.nextafter(low, kind(-np.inf)), low, np.nextafter(low, kind(np.inf))]
    best = min(abs(Fraction(float(c)) - total) for c in candidates)
    nearest = [c for c in candidates if abs(Fraction(float(c)) - total) == best]
    return min(nearest, key=lambda c: int(c.view(np.uint32)) & 1)


@pytest.mark.parametrize("t", [f32, f64])
@pytest.mark.parametrize("op", ["add", "sub"])
def test_sums_at_addresses_that_vary_are_exact_and_rounded_once(t, op):
    k = KernelBuilder((view(t, 1), view(i32, 1), view(t, 1)))
    out, where, x = k.params
    i = k.tid()
    k.b.op("atomic", (out, k.load(where, i), k.load(x, i)), (t,), op=op)
    kernel = gpu.Kernel(k.func(), SMALL)
    assert [one["entry"].rpartition("_")[2] for one in kernel.meta["passes"][1:]] == ["fold"]
    x, where = numbers(t, 400), np.random.default_rng(2).integers(0, 30, 400).astype("i4")
    start = numbers(t, 32, 3)
    found = start.copy()
    kernel(400, found, where, x)
    for place in range(32):
        parts = [Fraction(float(v)) for v in x[where == place]]
        total = Fraction(float(start[place])) + (sum(parts) if op == "add" else -sum(parts))
        assert found[place] == rounded(total, t) and np.isfinite(found[place]), place


def test_accumulators_know_what_is_not_finite_and_negative_strides():
    k = KernelBuilder((view(f32, 1, (None,)), view(i32, 1), view(f32, 1)))
    out, where, x = k.params
    i = k.tid()
    k.b.op("atomic", (out, k.load(where, i), k.load(x, i)), (f32,), op="add")
    kernel, inf, big = gpu.Kernel(k.func(), SMALL), np.inf, np.float32(3e38)
    x = np.array([inf, 1, -inf, 1, inf, -inf, np.nan, 1, big, big, big, big, -big, -big], "f4")
    where = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5, 5], "i4")
    memory = np.array([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1.5], "f4")
    out = memory[::-2]  # of 6, backwards
    kernel(len(x), out, where, x)
    assert out[0] == inf and out[1] == -inf and np.isnan(out[2]) and np.isnan(out[3]) and out[4] == inf and out[5] == 0


@pytest.mark.parametrize("op", ["add", "max"])
def test_a_sum_is_the_same_whatever_the_device(op):
    k = KernelBuilder((view(f32, 1), view(f32, 1)))
    out, x = k.params
    value = k.load(x, k.tid())
    k.b.op("atomic", (out, k.const(1, i32), value), (f32,), op=op)
    found = []
    for resident in (1, 5):
        total, x = np.array([0, 2, 0], "f4"), np.random.default_rng(1).normal(size=1000).astype("f4")
        kernel = gpu.Kernel(k.func(), SMALL, resident)
        kernel(1000, total, x)
        found.append(total.tobytes())
        expected = 2 + x.sum(dtype="f8") if op == "add" else max(2, x.max())
        assert abs(total[1] - expected) < 1e-3 and total[0] == total[2] == 0
        untouched = np.array([0, -0.0, 0], "f4")
        kernel(0, untouched, x)
        assert np.signbit(untouched[1])
    assert found[0] == found[1]


def test_few_hardware_threads_share_a_long_sum(monkeypatch):
    from treadle.codegen.nvptx import way

    monkeypatch.setattr(way, "SUM_THREADS", 16)
    k = KernelBuilder((view(f64, 1), view(f64, 1)))
    out, x = k.params
    k.b.op("atomic", (out, k.const(0, i32), k.load(x, k.tid())), (f64,), op="add")
    total, x = np.zeros(1), np.arange(333.0)
    kernel = gpu.Kernel(k.func(), SMALL)
    kernel(333, total, x)
    assert kernel.meta["passes"][0]["most"] == 4 and total[0] == x.sum()


@pytest.mark.parametrize("t", [i32, i64])
def test_counters_are_drawn_in_thread_order(t, monkeypatch):
    """Every other thread takes a place, some take two; where they are follows from the threads before."""
    from treadle.codegen.nvptx import way

    monkeypatch.setattr(way, "RANGE_THREADS", 32)
    k = KernelBuilder((view(t, 1), view(i32, 1), view(t, 1)))
    counter, x, out = k.params
    i = k.tid()
    amount = k.load(x, i)
    zero = k.const(0, i32)
    take = lambda: (k.b.op("atomic", (counter, zero, k.cast(amount, t)), (t,), op="add")[0],)
    old = k.if_(k.op("gt", amount, zero), take, lambda: (k.const(-1, t),))
    again = k.if_(k.op("gt", amount, k.const(2, i32)), take, lambda: (k.const(0, t),))
    k.store(out, (i,), k.op("add", old, again))
    kind = f"i{t.size}"
    make = lambda: (np.array([5], kind), np.random.default_rng(4).integers(-2, 5, 301).astype("i4"),
                    np.zeros(301, kind))  # fmt: skip
    kernel, args = gpu.Kernel(k.func(), SMALL), make()
    assert kernel.meta["order"] == "counted"
    kernel(301, *args)
    expected = make()
    from treadle.codegen import oracle

    oracle.run(k.func(), expected, 301)
    assert args[0][0] == expected[0][0] and args[2].tolist() == expected[2].tolist()


def test_what_has_no_other_order_runs_in_one_thread():
    k = KernelBuilder((view(i32, 1), view(i32, 1)))
    a, out = k.params
    i = k.tid()
    old = k.b.op("atomic", (a, k.const(0, i32), i), (i32,), op="exch")[0]
    k.store(out, (i,), old)
    kernel, make = gpu.Kernel(k.func(), SMALL), lambda: (np.array([7], "i4"), np.zeros(20, "i4"))
    args = make()
    kernel(20, *args)
    assert kernel.meta["passes"][0]["grid"] == "thread"
    agrees_with_oracle(k.func(), 20, make, *args)
    relaxed = gpu.Kernel(k.func(), nvptx.Options(block=4, relaxed=True))
    assert [one["grid"] for one in relaxed.meta["passes"]] == ["threads"] and "xchg" in relaxed.draft.text


@pytest.mark.parametrize("op", ["min", "max"])
def test_extrema_of_floats_are_the_hardwares_with_integers(op):
    k = KernelBuilder((view(f32, 1), view(i32, 1), view(f32, 1)))
    out, where, x = k.params
    i = k.tid()
    k.b.op("atomic", (out, k.load(where, i), k.load(x, i)), (f32,), op=op)
    kernel = gpu.Kernel(k.func(), SMALL)
    draw = np.random.default_rng(5)
    x, where = draw.normal(size=200).astype("f4"), draw.integers(0, 9, 200).astype("i4")
    x[::9] = np.nan
    start = np.array([0, 1, -1, np.nan, np.inf, -np.inf, 9, -9, 0], "f4")
    found = start.copy()
    kernel(200, found, where, x)
    fold = np.fmin if op == "min" else np.fmax
    expected = [fold.reduce([start[p], *x[where == p]]) for p in range(9)]
    assert np.array_equal(found, np.array(expected, "f4"), equal_nan=True)
    assert len(kernel.meta["passes"]) == 1 and "cmpxchg" in kernel.draft.text


def test_faults_and_prints_tell_their_thread():
    k = KernelBuilder((view(i32, 1),))
    (x,) = k.params
    i = k.tid()
    value = k.load(x, i)
    k.b.op("print", (value,), format="%d")
    k.b.op("check", (k.op("lt", value, k.const(50, i32)), value), kind="assert", message="small")
    k.store(x, (i,), k.const(-1, i32))
    x = np.arange(60, dtype="i4")[::-1].copy()
    kernel = gpu.Kernel(k.func(), SMALL)
    assert kernel.meta["order"] == "free"
    assert kernel(60, x) == 2 and list(kernel.fault[1:4]) == [0, 0, 59]
    assert x[:10].tolist() == list(range(59, 49, -1)) and (x[10:] == -1).all()
    assert [(r[0], r[2]) for r in kernel.records()] == [(i, [59 - i]) for i in range(60)]
