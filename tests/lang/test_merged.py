"""Chains as one kernel: the bits of separate launches, memory that is not touched, buffers that change, adjoints."""

import ctypes

import numpy as np
import pytest

import treadle as wp
from treadle.runtime import chains

pytestmark = pytest.mark.host  # chains are merged in the CPU's graphs alone

CALL = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)
FACTOR = 3.0


@wp.struct
class Pair:
    a: wp.array(dtype=float)
    k: float


@wp.kernel
def times(x: wp.array(dtype=float), y: wp.array(dtype=float), k: float):
    i = wp.tid()
    y[i] = k * x[i]


@wp.kernel
def minus(p: Pair, y: wp.array(dtype=float)):
    i = wp.tid()
    if i % 3 > 0:
        y[i] = y[i] * y[i] - p.a[i] * p.k


@wp.kernel
def length(v: wp.array2d(dtype=wp.vec3), s: wp.array2d(dtype=float)):
    i, j = wp.tid()
    s[i, j] = wp.length(v[i, j])


@wp.kernel
def shorten(v: wp.array2d(dtype=wp.vec3), s: wp.array2d(dtype=float)):
    i, j = wp.tid()
    v[i, j] = v[i, j] / (1.0 + s[i, j])


@wp.kernel
def scaled(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    y[wp.tid()] = FACTOR * x[wp.tid()]


@pytest.fixture(autouse=True)
def all_are_merged(monkeypatch):
    monkeypatch.setattr(chains, "WORTH", 1)
    monkeypatch.setattr(chains, "MERGED", 0)


def arr(values, **more):
    return wp.array(values, dtype=float, **more)


def test_bits_are_those_of_separate_launches():
    n = 1003
    values = np.random.default_rng(0).random(n).astype(np.float32)
    x, y, z = arr(values), wp.zeros(n, dtype=float), wp.zeros(n, dtype=float)
    pair = Pair()
    pair.a, pair.k = x, 0.7
    v, s = wp.array(np.random.default_rng(1).random((7, 9, 3)), dtype=wp.vec3), wp.zeros((7, 9), dtype=float)

    def run():
        wp.launch(times, dim=n, inputs=[x, z, 1.1])
        wp.launch(times, dim=n, inputs=[z, y, 1.3])
        wp.launch(minus, dim=n, inputs=[pair, y])
        wp.launch(times, dim=n, inputs=[y, y, -0.3])
        wp.launch(length, dim=(7, 9), inputs=[v, s])
        wp.launch(shorten, dim=(7, 9), inputs=[v, s])
        wp.launch(length, dim=(7, 9), inputs=[v, s])

    def contents():
        return [a.numpy().tobytes() for a in (y, z, v, s)]

    start = v.numpy().copy()
    run()
    expected = contents()
    with wp.ScopedCapture() as capture:
        run()
    for a in (y, z, s):
        a.fill_(5.0)
    v.assign(start)
    wp.capture_launch(capture.graph)
    assert contents() == expected and capture.graph._table.merged == 2


def test_arrays_that_nobody_sees_are_not_touched():
    n = 5000
    x, y = arr(np.arange(n)), wp.zeros(n, dtype=float)
    with wp.ScopedCapture() as capture:
        a, b = wp.empty(n, dtype=float), wp.zeros(n, dtype=float)
        wp.launch(times, dim=n, inputs=[x, a, 2.0])
        wp.launch(times, dim=n, inputs=[a, b, 2.0])
        wp.launch(times, dim=n, inputs=[b, y, 2.0])
    del a, b
    for block in capture.graph.blocks:
        ctypes.memset(block.address, 0xFF, block.nbytes)
    wp.capture_launch(capture.graph)
    assert (y.numpy() == 8.0 * np.arange(n)).all() and capture.graph._table.merged == 1
    assert all(ctypes.string_at(b.address, b.nbytes) == b"\xff" * b.nbytes for b in capture.graph.blocks)


def test_buffers_that_lie_over_each_other_take_the_launches_one_by_one():
    n = 100
    x, y, z = (wp.zeros(n, dtype=float) for _ in range(3))
    with wp.ScopedCapture() as capture:
        wp.launch(times, dim=n, inputs=[x, y, 2.0])
        wp.launch(times, dim=n, inputs=[y, z, 3.0])
    native = capture.graph.native([x, y, z])
    assert native.keepalive.merged == 1
    memory = arr(np.arange(3 * n))
    given = memory.numpy().copy()
    for first, second, third in ((0, n, 2 * n), (0, n, 1), (0, 1, n), (5, 5, 5)):
        memory.assign(given)
        table = (ctypes.c_void_p * 3)(*[memory.ptr + 4 * k for k in (first, second, third)])
        assert CALL(native.address)(native.context, table, None) == 0
        expected = given.copy()
        if second - first in (0, n):  # else each element is read after its neighbour was written: a race
            expected[second : second + n] = 2.0 * expected[first : first + n]
            expected[third : third + n] = 3.0 * expected[second : second + n]
            assert (memory.numpy() == expected).all()


def test_adjoints_are_merged():
    n = 64
    x, y, z = (arr(np.linspace(0.1, 1.0, n), requires_grad=True) for _ in range(3))

    def run():
        tape = wp.Tape()
        with tape:
            wp.launch(times, dim=n, inputs=[x, y, 2.0])
            wp.launch(times, dim=n, inputs=[y, z, 3.0])
        z.grad.fill_(1.0)
        tape.backward()

    run()
    expected = x.grad.list()
    for a in (x, y, z):
        a.grad.zero_()
    with wp.ScopedCapture() as capture:
        run()
    wp.capture_launch(capture.graph)
    assert x.grad.list() == expected == [6.0] * n and capture.graph._table.merged == 2


def test_a_source_that_means_something_else_by_now_is_not_merged():
    global FACTOR
    n = 10
    x, y, z = arr(np.ones(n)), wp.zeros(n, dtype=float), wp.zeros(n, dtype=float)
    with wp.ScopedCapture() as capture:
        wp.launch(scaled, dim=n, inputs=[x, y])
        wp.launch(scaled, dim=n, inputs=[y, z])
    FACTOR = 5.0
    try:
        wp.capture_launch(capture.graph)
    finally:
        FACTOR = 3.0
    assert z.list() == [9.0] * n and (capture.graph._table.merged, capture.graph._table.chains) == (0, 1)


def test_code_that_was_first_asked_for_by_one_thread_is_for_any_grid():
    few, n = arr([3.0]), 1000
    for _ in range(2):
        wp.launch(times, dim=1, inputs=[few, few, 2.0])
        wp.launch(scaled, dim=1, inputs=[few, few])
    x, y = arr(np.arange(n)), wp.zeros(n, dtype=float)
    with wp.ScopedCapture() as captured:
        wp.launch(times, dim=n, inputs=[x, y, 2.0])
        wp.launch(scaled, dim=n, inputs=[y, y])
    wp.capture_launch(captured.graph)
    np.testing.assert_array_equal(y.numpy(), 6.0 * np.arange(n, dtype=np.float32))
