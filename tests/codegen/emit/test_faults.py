"""Checks, prints, and the stop flag."""

import ctypes
import struct

import numpy as np
import pytest

from tests.codegen.harness import WIDTHS, Entry, KernelBuilder
from treadle.codegen.emit.unit import Options
from treadle.types.core import b1, f32, i32, view

N = 45


def asserting():
    """Every thread demands that its number is positive, then writes."""
    k = KernelBuilder((view(f32, 1), view(f32, 1)))
    x, y = k.params
    i = k.tid()
    v = k.load(x, i)
    k.b.op("check", (k.op("gt", v, k.const(0.0, f32)), i, v), kind="assert", message="positive")
    k.store(y, (i,), v)
    return k.func()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_first_thread_that_fails_is_reported_and_goes_no_further(width):
    x = np.arange(1, N + 1, dtype=np.float32)
    x[[21, 23, 40]] = -2.5
    y = np.zeros(N, np.float32)
    entry = Entry(asserting(), width)
    assert entry(N, x, y) == 1
    state, thread, site, index, value = list(entry.fault)[:5]
    assert (state, thread, site, index) == (2, 21, 0, 21)
    assert struct.unpack("<f", struct.pack("<I", value))[0] == -2.5
    assert entry.binary.meta["sites"][0]["kind"] == "assert" and entry.binary.meta["sites"][0]["text"] == "positive"
    assert (y[:21] == x[:21]).all() and not y[x < 0].any()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_fault_with_a_smaller_thread_replaces_one_with_a_larger(width):
    x, y = np.full(N, -1.0, np.float32), np.zeros(N, np.float32)
    entry = Entry(asserting(), width)
    assert entry(N, x, y, begin=32) == 1 and entry.fault[1] == 32
    assert entry(N, x, y, end=16) == 1 and entry.fault[1] == 0
    assert entry(N, x, y, begin=32) == 1 and entry.fault[1] == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_checked_code_prevents_a_wrong_access(width):
    k = KernelBuilder((view(i32, 1), view(f32, 2), view(f32, 1)), names=("where", "table", "out"))
    where, table, out = k.params
    i = k.tid()
    k.store(out, (i,), k.load(table, k.load(where, i), k.const(1, i32)))
    where, table, out = np.arange(N, dtype=np.int32) % 4, np.ones((4, 2), np.float32), np.zeros(N, np.float32)
    where[17], where[30] = 1 << 30, -1
    entry = Entry(k.func(), width, Options(checked=True))
    assert entry(N, where, table, out) == 1
    state, thread, site, *values = list(entry.fault)
    assert (thread, values[:4]) == (17, [1 << 30, 1, 4, 2])
    found = entry.binary.meta["sites"][site]
    assert (found["kind"], found["array"], found["ndim"]) == ("index", "table", 2)
    assert out[:17].all() and out[17] == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_checks_in_branches_and_loops(width):
    k = KernelBuilder((view(i32, 1), view(i32, 1)))
    x, y = k.params
    i = k.tid()
    v = k.load(x, i)

    def round_(n, s):
        def inner():
            k.b.op("check", (k.op("lt", n, k.const(5, i32)),), kind="assert", message="few")
            return [k.op("add", s, n)]

        return [k.if_(k.op("gt", v, k.const(2, i32)), inner, lambda: [s])]

    (s,) = k.for_(k.const(0, i32), v, k.const(1, i32), [k.const(0, i32)], round_)
    k.store(y, (i,), s)
    x, y = np.arange(N, dtype=np.int32) % 6, np.full(N, -1, np.int32)
    entry = Entry(k.func(), width)
    assert entry(N, x, y) == 0  # no count reaches 6
    assert np.array_equal(y, np.where(x > 2, x * (x - 1) // 2, 0))
    x[29], y[:] = 9, -1
    assert entry(N, x, y) == 1
    assert entry.fault[1] == 29 and y[29] == -1 and (y[:29] >= 0).all()


@pytest.mark.parametrize("width", WIDTHS)
def test_an_endless_loop_ends_when_the_host_asks(width):
    k = KernelBuilder((view(i32, 1),))
    (y,) = k.params
    i = k.tid()
    k.while_([k.const(0, i32)], lambda n: [k.const(True, b1), k.op("add", n, i)])
    k.store(y, (i,), k.const(1, i32))
    entry, y = Entry(k.func(), width), np.zeros(N, np.int32)
    entry.stop.value = 1
    assert entry(N, y) == 1 and not y.any()


@pytest.mark.parametrize("width", WIDTHS)
def test_nested_loops_that_would_end_in_years_end_when_the_host_asks(width):
    k = KernelBuilder((view(i32, 1),))
    (y,) = k.params
    i = k.tid()
    zero, one, many = k.const(0, i32), k.const(1, i32), k.load(y, i)
    inner = lambda j, s: k.for_(zero, many, one, [s], lambda i, s: [k.op("add", k.op("mul", s, s), i)])
    (s,) = k.for_(zero, many, one, [zero], inner)
    k.store(y, (i,), s)
    entry, y = Entry(k.func(), width), np.full(N, 2**30, np.int32)
    assert entry.binary.meta["bounded"] is False
    entry.stop.value = 1
    assert entry(N, y) == 1 and (y == 2**30).all()


def test_printing_kernels_run_in_thread_order_and_log_their_values():
    k = KernelBuilder((view(f32, 1),))
    (x,) = k.params
    i = k.tid()
    v = k.load(x, i)
    k.if_(k.op("gt", v, k.const(0.0, f32)), lambda: [k.b.op("print", (i, v), format="%d %g\n")][:0])
    entry = Entry(k.func(), 8)
    x = np.random.default_rng(0).normal(size=200).astype(np.float32)
    assert entry.binary.meta["width"] == 1 and entry.binary.meta["prints"] == [
        {"format": "%d %g\n", "values": ["i32", "f32"]}
    ]
    assert entry(200, x) == 0
    data, used, _ = entry.log
    records = list(struct.iter_unpack("<qqd", ctypes.string_at(data, used)))
    ctypes.pythonapi.PyMem_RawFree(ctypes.c_void_p(data))
    assert records == [(0, i, float(v)) for i, v in enumerate(x) if v > 0]
