"""Graphs for other native code: buffers that change from call to call, scratch of each call's own, chains."""

import ctypes
import threading

import numpy as np
import pytest

import treadle as wp
from treadle.runtime import chains
from treadle.runtime.capture import here
from treadle.runtime.graph import Graph
from treadle.runtime.transients import transient

pytestmark = pytest.mark.host  # these tables of entries are the CPU's; a graph of a GPU is the driver's

CALL = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@wp.kernel
def plus(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = y[i] + x[i]


@wp.kernel
def ahead(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[wp.min(i + 1, x.shape[0] - 1)]


@wp.kernel
def refuse(x: wp.array(dtype=float)):
    assert x[wp.tid()] >= 0.0, "negative"


def call(native, *arrays, report=None):
    table = (ctypes.c_void_p * len(arrays))(*[a.ptr for a in arrays])
    return CALL(native.address)(native.context, table, report)


def chain_count(graph: Graph) -> int:
    return graph._table.chains


def test_buffers_take_the_place_of_inputs():
    x, y, constant = (wp.full(4, value) for value in (1.0, 0.0, 10.0))
    with wp.ScopedCapture() as capture:
        inner = wp.clone(x)
        wp.launch(double, dim=4, inputs=[inner, inner])
        wp.launch(plus, dim=4, inputs=[constant, inner])
        wp.copy(y[::2], inner[:2])
        wp.copy(y[1::2], inner[2:])
    del inner
    native = capture.graph.native([x, y])
    for base in (0.0, 100.0):
        a, b = wp.array(np.arange(4.0) + base, dtype=float), wp.zeros(4, dtype=float)
        assert call(native, a, b) == 0
        assert b.list() == [base * 2 + v for v in (10.0, 14.0, 12.0, 16.0)]
    assert x.list() == [1.0] * 4 and y.list() == [0.0] * 4
    wp.capture_launch(capture.graph)
    assert y.list() == [12.0] * 4


def test_calls_at_once_do_not_meet():
    n = 20_000
    x, y = wp.zeros(n, dtype=float), wp.zeros(n, dtype=float)
    with wp.ScopedCapture() as capture:
        a = wp.empty(n, dtype=float)
        wp.launch(double, dim=n, inputs=[x, a])
        b = wp.clone(a)
        wp.launch(plus, dim=n, inputs=[a, b])
        wp.copy(y, b)
    del a, b
    native, wrong = capture.graph.native([x, y]), []

    def work(k):
        mine, out = wp.full(n, float(k)), wp.zeros(n, dtype=float)
        for _ in range(50):
            out.zero_()
            if call(native, mine, out) or not (out.numpy() == 4.0 * k).all():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_faults_are_reported():
    x = wp.zeros(3, dtype=float)
    with wp.ScopedCapture() as capture:
        wp.launch(double, dim=3, inputs=[x, x])
        wp.launch(refuse, dim=3, inputs=[x], checked=True)
    native = capture.graph.native([x])
    report = ctypes.create_string_buffer(96)
    bad = wp.array([0.0, -1.0, -2.0], dtype=float)
    status = call(native, bad, report=report)
    error = capture.graph.error(status, report.raw, native.keepalive)
    assert isinstance(error, wp.KernelAssertionError) and "thread 1" in str(error)
    assert call(native, bad) == status and call(native, x) == 0
    with pytest.raises(wp.CaptureError, match="lie over each other"):
        capture.graph.native([x, x[1:]])


def test_launches_at_own_indices_run_as_chains(monkeypatch):
    monkeypatch.setattr(chains, "WORTH", 1)
    monkeypatch.setattr(chains, "merge", None)
    n = 10_001
    values = np.random.default_rng(0).random(n).astype(np.float32)
    x, y, z = wp.array(values, dtype=float), wp.zeros(n, dtype=float), wp.zeros(n, dtype=float)
    programs = {
        "elementwise": (1, [(double, x, y), (plus, x, y), (double, y, z)]),
        "in place": (1, [(double, y, y), (plus, x, y), (double, y, y)]),
        "neighbours": (0, [(double, x, y), (ahead, y, z)]),
        "neighbours before": (0, [(ahead, y, z), (double, x, y)]),
        "neighbours that nobody writes": (1, [(ahead, x, y), (double, y, z)]),
        "views that are moved": (0, [(double, x[1:], y[1:]), (plus, y[:-1], z[:-1])]),
        "strides that differ": (0, [(double, x[: n // 2], y[: n // 2]), (plus, y[::2][: n // 2], z[: n // 2])]),
        "nothing shared": (0, [(double, x, y), (double, z, z)]),
    }  # fmt: skip
    for name, (count, launches) in programs.items():

        def run():
            for kernel, a, b in launches:  # noqa: B023
                wp.launch(kernel, dim=a.size, inputs=[a, b])

        def start():
            y.assign(values[::-1].copy())
            z.fill_(0.5)

        start()
        run()
        expected = y.numpy().copy(), z.numpy().copy()
        with wp.ScopedCapture() as capture:
            run()
        for workers in (1, 3):
            monkeypatch.setattr(wp.config, "workers", workers)
            start()
            wp.capture_launch(capture.graph)
            assert chain_count(capture.graph) == count, name
            assert (y.numpy() == expected[0]).all() and (z.numpy() == expected[1]).all(), name


def test_temporaries_of_a_chain_vanish(monkeypatch):
    monkeypatch.setattr(chains, "WORTH", 1)
    monkeypatch.setattr(chains, "merge", None)
    n = 5_000
    x, y = wp.array(np.arange(n), dtype=float), wp.zeros(n, dtype=float)

    def run(keep):
        a, b = wp.empty(n, dtype=float), wp.zeros(n, dtype=float)
        wp.launch(double, dim=n, inputs=[x, a])
        wp.launch(double, dim=n, inputs=[a, b])
        wp.launch(plus, dim=n, inputs=[b, y])
        return (a, b) if keep else None

    for keep in (False, True):
        with wp.ScopedCapture() as capture:
            kept = run(keep)
        held = capture.graph.blocks
        for block in held:
            ctypes.memset(block.address, 0xFF, block.nbytes)
        for _ in range(2):
            y.fill_(1.0)
            wp.capture_launch(capture.graph)
            assert (y.numpy() == 4.0 * np.arange(n) + 1.0).all() and chain_count(capture.graph) == 1
        left = [ctypes.string_at(block.address, block.nbytes) == b"\xff" * block.nbytes for block in held]
        assert left == [not keep] * 2
        if kept is not None:
            assert (kept[1].numpy() == 4.0 * np.arange(n)).all()


def test_chains_look_where_buffers_lie(monkeypatch):
    monkeypatch.setattr(chains, "WORTH", 1)
    monkeypatch.setattr(chains, "merge", None)
    n = 4_096
    x, y, z = (wp.zeros(n, dtype=float) for _ in range(3))
    with wp.ScopedCapture() as capture:
        wp.launch(ahead, dim=n, inputs=[x, y])
        wp.launch(double, dim=n, inputs=[y, z])
    native = capture.graph.native([x, y, z])
    assert native.keepalive.chains == 1
    memory = wp.array(np.arange(3 * n), dtype=float)
    given = memory.numpy().copy()
    assert call(native, memory[:n], memory[n : 2 * n], memory[2 * n :]) == 0
    moved = given[np.minimum(np.arange(n) + 1, n - 1)]
    assert (memory.numpy()[n:] == np.concatenate([moved, 2.0 * moved])).all()
    memory.assign(given)
    # What the second launch writes is what the first one reads of neighbours: one after the other then.
    assert call(native, memory[:n], memory[n : 2 * n], memory[:n]) == 0
    assert (memory.numpy()[:n] == 2.0 * moved).all()


# ---- transient memory


@wp.kernel
def spread(x: wp.array(dtype=float), rows: wp.array2d(dtype=wp.vec2)):
    i = wp.tid()
    for k in range(rows.shape[1]):
        rows[i, k] = wp.vec2(x[i] + float(k), x[i] * float(k))


@wp.kernel
def gather(rows: wp.array2d(dtype=wp.vec2), zeros: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    total = y[i] + zeros[i]
    for k in range(rows.shape[1]):
        total += rows[i, k][0] - 2.0 * rows[i, k][1]
    y[i] = total


@wp.kernel
def neighbour(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[(i + 1) % x.shape[0]]


def expected(x, count=3):
    return sum([x + k - 2.0 * (x * k) for k in range(count)])


@pytest.mark.parametrize("n", [1, 7, 5_000])
def test_transient_memory_is_a_chunks_scratch(n, monkeypatch):
    x, y = wp.array(np.arange(n) / 8, dtype=float), wp.zeros(n, dtype=float)
    with wp.ScopedCapture() as capture:
        rows = transient(here(), (n, 4), wp.vec2, 2)
        zeros, dead = transient(here(), (n,), float, 1), transient(here(), (n,), float, 1)
        wp.launch(spread, dim=n, inputs=[x, rows])
        wp.launch(double, dim=n, inputs=[x, dead])  # nobody reads that
        wp.launch(gather, dim=n, inputs=[rows[:, :3], zeros, y])
    for workers in (1, 3):
        monkeypatch.setattr(wp.config, "workers", workers)
        y.zero_()
        for times in (1, 3):
            capture.graph.launch(times=times)
    table = capture.graph._table
    assert chain_count(capture.graph) == 1 and len(table.entries) == 3, "a chain of two launches"
    np.testing.assert_allclose(y.numpy(), 4 * expected(x.numpy()), rtol=1e-5)
    other = wp.zeros(n, dtype=float)
    capture.graph.use(other, y)
    capture.graph.launch()
    np.testing.assert_allclose(other.numpy(), expected(x.numpy()), rtol=1e-5)


def test_transient_memory_that_threads_share_gets_room():
    n = 100
    x, y = wp.array(np.arange(n), dtype=float), wp.zeros(n, dtype=float)
    with wp.ScopedCapture() as inner:
        between = transient(here(), (n,), float, 1)
        wp.launch(double, dim=n, inputs=[x, between])
        wp.launch(neighbour, dim=n, inputs=[between, y])
    with wp.ScopedCapture() as outer:  # a graph in a graph brings its memory along
        wp.capture_launch(inner.graph)
    for graph in (inner.graph, outer.graph):
        y.zero_()
        wp.capture_launch(graph)
        assert (y.numpy() == 2.0 * np.roll(np.arange(n), -1)).all()
    native = inner.graph.native([x, y])
    a, b = wp.array(np.arange(n) + 5.0, dtype=float), wp.zeros(n, dtype=float)
    assert call(native, a, b) == 0 and (b.numpy() == 2.0 * np.roll(np.arange(n) + 5.0, -1)).all()


def test_chains_with_transient_memory_take_other_buffers_that_lie_apart():
    n = 300
    x, y = wp.array(np.arange(n) / 8, dtype=float), wp.zeros(n, dtype=float)
    with wp.ScopedCapture() as capture:
        rows, zeros = transient(here(), (n, 3), wp.vec2, 2), transient(here(), (n,), float, 1)
        wp.launch(spread, dim=n, inputs=[x, rows])
        wp.launch(gather, dim=n, inputs=[rows, zeros, y])
    native = capture.graph.native([x, y])
    a, b = wp.array(np.arange(n) / 4, dtype=float), wp.zeros(n, dtype=float)
    for _ in range(2):
        b.zero_()
        assert call(native, a, b) == 0
        np.testing.assert_allclose(b.numpy(), expected(a.numpy()), rtol=1e-5)
    report = ctypes.create_string_buffer(96)
    status = call(native, a, a, report=report)
    assert "lie over each other" in str(capture.graph.error(status, report.raw, native.keepalive))
