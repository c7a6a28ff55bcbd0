"""Whole programs on a GPU: launches, tapes, graphs, utilities, on the stand-in for the driver."""

import numpy as np
import pytest

import treadle as wp


@wp.kernel
def squares(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    s = float(0.0)
    for _ in range(3):
        s += x[i] * x[i]
    y[i] = s


@wp.kernel
def total(y: wp.array(dtype=float), t: wp.array(dtype=float)):
    wp.atomic_add(t, 0, y[wp.tid()])


@wp.kernel
def step(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] * x[i] + 0.5


@wp.kernel
def count_down(left: wp.array(dtype=int), x: wp.array(dtype=float)):
    left[0] -= 1
    x[0] = 2.0 * x[0]


@wp.kernel
def take(counter: wp.array(dtype=int), out: wp.array(dtype=int)):
    i = wp.tid()
    if i % 2 == 0:
        out[wp.atomic_add(counter, 0, 1)] = i


@wp.kernel
def beyond(x: wp.array(dtype=float), j: int):
    i = wp.tid()
    x[i + j] = 1.0


@wp.kernel
def say(x: wp.array(dtype=float)):
    i = wp.tid()
    wp.printf("%d: %.1f\n", i, x[i])


def iterated(x, n):
    for _ in range(n):
        x = x * x + np.float32(0.5)
    return x


def test_a_tape(gpu):
    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    y, t = (wp.zeros(n, dtype=float, requires_grad=True) for n in (3, 1))
    with wp.Tape() as tape:
        wp.launch(squares, dim=3, inputs=[x], outputs=[y])
        wp.launch(total, dim=3, inputs=[y], outputs=[t])
    assert t.device is gpu and t.list() == [42.0]
    tape.backward(t)
    assert x.grad.list() == [6.0, 12.0, 18.0]


def stepped(device, captured):
    """What three steps and their adjoint leave."""
    x = wp.array([0.1, 0.2, 0.3], dtype=float, requires_grad=True, device=device)

    def work():
        x.grad.zero_()
        with wp.Tape() as tape:
            for _ in range(3):
                wp.launch(step, dim=3, inputs=[x], device=device)
        x.grad.fill_(1.0)
        tape.backward()

    if captured:
        with wp.ScopedCapture(device) as capture:
            work()
        wp.capture_launch(capture.graph)
    else:
        work()
    return x.numpy(), x.grad.numpy()


@pytest.mark.parametrize("captured", [False, True])
def test_what_a_tape_must_put_back(gpu, captured):
    there, here = stepped("cuda:0", captured), stepped("cpu", captured)
    assert np.array_equal(there[0], here[0]) and np.array_equal(there[1], here[1])


def test_a_graph(gpu, driver):
    x = wp.zeros(3, dtype=float)
    with wp.ScopedCapture() as capture:
        for _ in range(2):
            wp.launch(step, dim=3, inputs=[x])
        y = wp.clone(x)
        z = wp.zeros(4, dtype=wp.vec3)
        z[::2].fill_(wp.vec3(1.0, 2.0, 3.0))
        with pytest.raises(wp.CaptureError):
            x.numpy()
    assert "cuLaunchKernel" not in driver.names()
    for _ in range(2):
        wp.capture_launch(capture.graph)
    assert driver.names().count("cuGraphInstantiate") == 1 and driver.names().count("cuGraphLaunch") == 2
    expected = iterated(np.zeros(3, np.float32), 4)
    assert np.array_equal(x.numpy(), expected) and np.array_equal(y.numpy(), expected)
    assert z.numpy().tolist() == [[1.0, 2.0, 3.0], [0.0] * 3] * 2


def test_graphs_read_and_write_pinned_memory(gpu):
    given = wp.array([1.0, 2.0, 3.0], dtype=float, device="cpu", pinned=True)
    found = wp.zeros(4, dtype=float, device="cpu", pinned=True)
    x, loose = wp.zeros(3, dtype=float), wp.zeros(3, dtype=float, device="cpu")
    with wp.ScopedCapture() as capture:
        wp.copy(x, given)
        wp.launch(step, dim=3, inputs=[x])
        wp.copy(found, x, dest_offset=1, count=3)
        with pytest.raises(wp.CaptureError):
            loose.assign(x)
    for values in ([1.0, 2.0, 3.0], [0.0, 0.0, 4.0]):
        given.assign(values)
        wp.capture_launch(capture.graph)
        wp.synchronize()
        assert found.list() == [0.0, *[v * v + 0.5 for v in values]]


def test_conditions_in_a_graph(gpu):
    left, x, yes = wp.zeros(1, dtype=int), wp.ones(1, dtype=float), wp.ones(1, dtype=int)
    a = wp.zeros(2, dtype=float)
    with wp.ScopedCapture() as capture:
        left.fill_(5)
        wp.capture_while(left, lambda: wp.launch(count_down, dim=1, inputs=[left, x]))
        wp.capture_if(yes, lambda: a.fill_(1.0), lambda: a.fill_(-1.0))
    wp.capture_launch(capture.graph)
    assert x.list() == [32.0] and a.list() == [1.0, 1.0]
    yes.zero_()
    wp.capture_launch(capture.graph)
    assert x.list() == [1024.0] and a.list() == [-1.0, -1.0]


def test_counters_draw_in_thread_order(gpu):
    counter, out = wp.zeros(1, dtype=int), wp.zeros(20, dtype=int)
    wp.launch(take, dim=40, inputs=[counter, out])
    assert out.list() == [*range(0, 40, 2)] and counter.list() == [20]


def test_what_threads_report_comes_when_the_host_waits(gpu):
    x = wp.zeros(3, dtype=float)
    wp.launch(beyond, dim=3, inputs=[x, 2], checked=True)
    with pytest.raises(wp.IndexOutOfRange, match=r"index 3 is out of bounds of array 'x'.*thread 1"):
        wp.synchronize()
    wp.synchronize()
    assert x.list() == [0.0, 0.0, 1.0]


def test_prints_come_in_thread_order(gpu, capsys):
    x = wp.array([1.0, 2.0, 3.0], dtype=float)
    wp.launch(say, dim=3, inputs=[x])
    assert capsys.readouterr().out == "0: 1.0\n1: 2.0\n2: 3.0\n"
    with wp.ScopedCapture() as capture:
        wp.launch(say, dim=2, inputs=[x])
    assert capsys.readouterr().out == ""
    for _ in range(2):
        wp.capture_launch(capture.graph)
    assert capsys.readouterr().out == "0: 1.0\n1: 2.0\n" * 2


def test_utilities_and_operators(gpu):
    rows = np.random.default_rng(0).integers(0, 100, 50).astype(np.int32)
    a, b = wp.array(rows, dtype=int), wp.zeros(50, dtype=int)
    wp.utils.array_scan(a, b)
    assert np.array_equal(b.numpy(), np.cumsum(rows)) and wp.utils.array_sum(a) == rows.sum()
    keys, values = (wp.zeros(100, dtype=int) for _ in range(2))
    wp.copy(keys, a, count=50)
    wp.utils.radix_sort_pairs(keys, values, 50)
    assert np.array_equal(keys.numpy()[:50], np.sort(rows))
    doubled = a + a
    assert doubled.device is gpu and np.array_equal(doubled.numpy(), 2 * rows)


def test_recorded_launches_and_grids(gpu):
    x = wp.zeros(700, dtype=float)
    command = wp.launch(step, dim=700, inputs=[x], record_cmd=True)
    command.launch()
    stream = wp.Stream(gpu)
    stream.wait_stream(wp.get_stream())
    command.launch(stream=stream)
    wp.synchronize()
    assert np.array_equal(x.numpy(), iterated(np.zeros(700, np.float32), 2))
    wp.launch(step, dim=0, inputs=[x])


def test_a_kernel_has_code_for_each_device(gpu):
    here, there = wp.zeros(2, dtype=float, device="cpu"), wp.zeros(2, dtype=float)
    for x in (here, there, here, there):
        wp.launch(step, dim=2, inputs=[x], device=x.device)
    assert here.list() == there.list() == [0.75, 0.75]
    with pytest.raises(wp.LaunchError, match="lies on cuda:0, the launch is on cpu"):
        wp.launch(step, dim=2, inputs=[there], device="cpu")
    with pytest.raises(wp.LaunchError, match="lies on cpu, the launch is on cuda:0"):
        wp.launch(step, dim=2, inputs=[here])


@wp.struct
class Part:
    values: wp.array(dtype=float)
    factor: float


@wp.kernel
def scale_parts(parts: wp.array(dtype=Part)):
    part = parts[wp.tid()]
    for i in range(part.values.shape[0]):
        part.values[i] *= part.factor


def test_arrays_in_memory_and_derivatives_by_differences(gpu):
    parts = []
    for factor in (2.0, 3.0):
        part = Part()
        part.values, part.factor = wp.full(2, 1.0, dtype=float), factor
        parts.append(part)
    held = wp.array(parts, dtype=Part)
    wp.launch(scale_parts, dim=2, inputs=[held])
    found = held.list()
    assert [p.values.device for p in found] == [gpu, gpu] and [p.values.list() for p in found] == [[2.0] * 2, [3.0] * 2]
    x, y = wp.array([0.5, -1.0], dtype=float, requires_grad=True), wp.zeros(2, dtype=float, requires_grad=True)
    assert wp.autograd.gradcheck(squares, dim=2, inputs=[x], outputs=[y]) and x.list() == [0.5, -1.0]


@wp.kernel
def weighed(x: wp.array(dtype=float), k: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = k[0] * x[i]


def test_a_tape_sees_what_the_fills_of_a_graph_overwrite(gpu):
    """The driver sets memory by itself; what it sets so is written like anything else."""
    x, y = (wp.full(2, v, dtype=float, requires_grad=True) for v in (0.5, 0.0))
    k = wp.full(1, 2.0, dtype=float)
    with wp.ScopedCapture() as capture:
        k.fill_(7.0)
    with wp.Tape() as tape:
        wp.launch(weighed, dim=2, inputs=[x, k, y])
    wp.capture_launch(capture.graph)
    tape.backward(grads={y: wp.ones(2, dtype=float)})
    assert x.grad.list() == [2.0, 2.0] and k.list() == [7.0]
