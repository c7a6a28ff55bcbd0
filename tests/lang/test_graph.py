"""Launch graphs: what is captured, what is refused, what belongs to a graph and lives as long as it."""

import gc
import os
import re
import signal
import threading
import weakref

import numpy as np
import pytest

import treadle as wp
from treadle.runtime import capture as captures


@wp.kernel
def step(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] * 2.0 + 1.0


@wp.kernel
def add(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float)):
    i = wp.tid()
    c[i] = a[i] + b[i]


@wp.kernel
def down(left: wp.array(dtype=int), x: wp.array(dtype=float)):
    left[0] -= 1
    x[0] += 1.0


@wp.kernel
def count_up(x: wp.array(dtype=float)):
    wp.atomic_add(x, wp.tid(), 1.0)


@wp.kernel
def total(x: wp.array(dtype=float), s: wp.array(dtype=float)):
    wp.atomic_add(s, 0, x[wp.tid()])


@wp.kernel
def tell(x: wp.array(dtype=float)):
    if wp.tid() == 1:
        print(x[1])


@wp.kernel
def inside(x: wp.array(dtype=float), k: int):
    i = wp.tid()
    assert x[i] < 100.0, "too large"
    x[i + k] = 1.0


def arr(values, **more):
    return wp.array(values, dtype=float, **more)


@pytest.mark.host
def test_operations_are_deferred_until_the_graph_runs():
    x = wp.zeros(3, dtype=float)
    with wp.ScopedCapture(device="cpu") as capture:
        assert x.device.is_capturing and x.device.stream.is_capturing
        for _ in range(2):
            wp.launch(step, dim=3, inputs=[x])
    assert x.list() == [0.0] * 3 and not x.device.is_capturing
    for expected in (3.0, 15.0):
        wp.capture_launch(capture.graph)
        assert x.list() == [expected] * 3
    wp.launch(step, dim=3, inputs=[x])  # as before
    assert x.list() == [31.0] * 3
    assert repr(capture.graph) == "<graph of 2 operations on cpu>"


def test_copies_fills_and_what_an_array_is_made_of():
    x, strided, grid = arr([1.0, 2.0, 3.0, 4.0]), wp.zeros(8, dtype=float), wp.zeros((3, 4), dtype=wp.vec3)
    number, flags, structs = wp.zeros(5, dtype=int), wp.zeros(9, dtype=wp.uint8), wp.zeros((2, 3), dtype=wp.mat22)
    wide, over = wp.zeros((4, 5), dtype=wp.float64), arr([0.0, 1.0, 2.0, 3.0, 4.0])
    with wp.ScopedCapture() as capture:
        wp.copy(strided[::2], x)
        strided[1::2].fill_(7.0)
        grid[1].fill_(wp.vec3(1.0, 2.0, 3.0))
        grid[:, 2].zero_()
        number[1:4] = [5, 6, 7]
        number[0] = 9
        flags[::3].fill_(3)
        structs.transpose().fill_(wp.mat22(1.0, 2.0, 3.0, 4.0))
        wide.transpose().assign(np.arange(20.0).reshape(5, 4))
        wp.copy(over, over, dest_offset=1, src_offset=0, count=4)  # onto itself
        made, clone, double = wp.array([8.0, 9.0], dtype=float), wp.clone(strided), wp.full(2, 2.5)
    expected_grid = np.zeros((3, 4, 3))
    expected_grid[1] = 1.0, 2.0, 3.0
    expected_grid[:, 2] = 0.0
    for _ in range(2):
        for a in (strided, grid, number, flags, structs, wide):
            a.fill_(1)
        grid.zero_()
        over.assign([0.0, 1.0, 2.0, 3.0, 4.0])
        wp.capture_launch(capture.graph)
        assert strided.list() == [1.0, 7.0, 2.0, 7.0, 3.0, 7.0, 4.0, 7.0] == clone.list()
        assert (grid.numpy() == expected_grid).all() and number.list() == [9, 5, 6, 7, 1]
        assert flags.list() == [3, 1, 1, 3, 1, 1, 3, 1, 1] and made.list() == [8.0, 9.0] and double.list() == [2.5] * 2
        assert (structs.numpy() == [[1.0, 2.0], [3.0, 4.0]]).all()
        assert (wide.numpy() == np.arange(20.0).reshape(5, 4).T).all() and over.list() == [0.0, 0.0, 1.0, 2.0, 3.0]


def test_values_are_those_of_the_capture_arrays_those_of_the_launch():
    values, x, source = [1.0, 2.0], wp.zeros(2, dtype=float), arr([5.0, 6.0])
    y = wp.zeros(2, dtype=float)
    with wp.ScopedCapture() as capture:
        x.assign(values)
        y.assign(source)
    values[0] = 100.0
    source.fill_(-1.0)
    wp.capture_launch(capture.graph)
    assert x.list() == [1.0, 2.0] and y.list() == [-1.0, -1.0]


def test_what_is_read_in_a_capture_is_refused_and_everything_stays_usable():
    x, y = arr([1.0, 2.0]), wp.zeros(2, dtype=int)
    indexed = wp.indexedarray(x, [wp.array([1], dtype=int)])
    reads = [
        (lambda: x.numpy(), "array.numpy()"), (lambda: x.list(), "reading an array"),
        (lambda: x[0], "reading an array"), (lambda: str(x), "array.numpy()"), (lambda: np.asarray(x), "array.numpy()"),
        (lambda: indexed.numpy(), "cannot be captured"), (lambda: x.assign(y), "dtypes differ"),
        (lambda: wp.utils.array_sum(x), "array_sum() gives a number"),
        (lambda: wp.utils.runlength_encode(y, y, y), "array.numpy()"),
    ]  # fmt: skip
    for read, what in reads:
        with pytest.raises(NotImplementedError, match=re.escape(what)) as caught:
            with wp.ScopedCapture() as capture:
                wp.launch(step, dim=2, inputs=[x])
                read()
        assert isinstance(caught.value, wp.TreadleError) and capture.graph is None and not x.device.is_capturing
    assert x.list() == [1.0, 2.0]
    with pytest.raises(wp.LaunchTypeError, match="step"), wp.ScopedCapture():
        wp.launch(step, dim=2, inputs=[y])
    with pytest.raises(wp.IndexOutOfRange, match="step"), wp.ScopedCapture():
        wp.launch(step, dim=3, inputs=[x])
    with wp.ScopedCapture() as capture:
        with pytest.raises(NotImplementedError):
            x.numpy()
        wp.launch(step, dim=2, inputs=[x])  # who catches it may go on
    wp.capture_launch(capture.graph)
    assert x.list() == [3.0, 5.0]


def test_captures_do_not_nest_and_match_their_ends():
    with pytest.raises(wp.CaptureError, match="no graph is being captured"):
        wp.capture_end()
    wp.capture_begin()
    with pytest.raises(wp.CaptureError, match="captured already"):
        wp.capture_begin()
    wp.capture_launch(wp.capture_end())
    with pytest.raises(TypeError, match="takes a graph"):
        wp.capture_launch(None)
    with pytest.raises(wp.CaptureError, match="null"):
        wp.capture_begin(device="null")


def test_memory_lives_as_long_as_the_graph():
    freed = []

    def shared(values):
        memory = np.array(values, np.float32)
        return wp.array(ptr=memory.ctypes.data, shape=3, dtype=float, deleter=lambda *_: freed.append(memory))

    class Named(wp.array):
        pass

    x, y = shared([1.0, 2.0, 3.0]), Named(np.zeros(3), dtype=float)
    x.grad = shared([0.0, 0.0, 0.0])
    with wp.ScopedCapture() as capture:
        inner = wp.ones(3, dtype=float)
        wp.launch(add, dim=3, inputs=[x, inner, inner])
        wp.copy(y, inner)
    whole, kept = weakref.ref(inner), weakref.ref(y)
    del x, y, inner
    gc.collect()
    junk = [wp.full(3, -1.0) for _ in range(1000)]  # would take over what was freed
    assert not freed and whole() is None
    for _ in range(2):
        wp.capture_launch(capture.graph)
        assert kept().list() == [2.0, 3.0, 4.0]
    del capture, junk
    gc.collect()
    assert len(freed) == 2 and kept() is None


def test_an_array_made_in_a_capture_shows_what_the_last_run_left():
    n = wp.array([3], dtype=int)
    with wp.ScopedCapture() as capture:
        made = wp.zeros(2, dtype=float, requires_grad=True)
        wp.launch(down, dim=1, inputs=[n, made])
        made.grad.fill_(2.0)
    for _ in range(2):
        wp.capture_launch(capture.graph)
        assert made.list() == [1.0, 0.0] and made.grad.list() == [2.0, 2.0]
    assert n.list() == [1]


def test_branches_look_when_they_are_reached():
    flag, x, y = wp.zeros(1, dtype=int), wp.zeros(1, dtype=float), wp.zeros(1, dtype=float)
    with wp.ScopedCapture() as inner:
        y.fill_(9.0)
    with wp.ScopedCapture() as capture:
        wp.capture_if(flag, lambda value: x.fill_(value), lambda value: x.fill_(-value), value=4.0)
        wp.capture_if(flag, on_false=inner.graph)
        wp.capture_if(flag, lambda: wp.capture_if(flag, lambda: flag.zero_()))
        wp.capture_if(flag, lambda: x.zero_())
    for now, expected in ((0, (-4.0, 9.0)), (1, (4.0, 9.0)), (-3, (4.0, 9.0))):
        flag.fill_(now)
        wp.capture_launch(capture.graph)
        assert (x.list()[0], y.list()[0]) == expected and flag.list() == [0]
    flag.fill_(1)  # the same where nothing is captured
    wp.capture_if(flag, lambda: x.fill_(5.0))
    wp.capture_if(flag, None, lambda: x.fill_(6.0))
    assert x.list() == [5.0]
    with pytest.raises(TypeError, match="int32"):
        wp.capture_if(x, lambda: None)


def test_loops_run_until_their_condition_is_zero():
    outer, inner, x = wp.zeros(1, dtype=int), wp.zeros(1, dtype=int), wp.zeros(1, dtype=float)

    def rows():
        inner.fill_(4)
        wp.capture_while(inner, lambda: wp.launch(down, dim=1, inputs=[inner, x]))
        wp.launch(down, dim=1, inputs=[outer, x])

    with wp.ScopedCapture() as capture:
        outer.fill_(3)
        wp.capture_while(outer, rows)
    with wp.ScopedCapture() as again:
        x.zero_()
        wp.capture_launch(capture.graph)
        wp.launch(step, dim=1, inputs=[x])
    for _ in range(2):
        wp.capture_launch(again.graph)
        assert x.list() == [31.0] and outer.list() == [0] == inner.list()
    outer.fill_(2)
    wp.capture_while(outer, rows)
    assert x.list() == [41.0]
    with pytest.raises(RuntimeError, match="stop here"), wp.ScopedCapture():
        wp.capture_while(outer, lambda: (_ for _ in ()).throw(RuntimeError("stop here")))
    assert not x.device.is_capturing
    with pytest.raises(TypeError, match="function or a graph"):
        wp.capture_while(outer, 3)


def test_recorded_commands_and_paused_captures():
    from treadle.lang.graph import capture_pause, capture_resume

    x, other = arr([1.0, 2.0]), arr([5.0, 5.0])
    command = wp.launch(step, dim=2, inputs=[x], record_cmd=True)
    with wp.ScopedCapture() as capture:
        command.launch()
        paused = capture_pause()
        assert not x.device.is_capturing
        wp.launch(step, dim=2, inputs=[other])
        capture_resume(paused)
        command.launch()
    command.set_param_at_index(0, other)
    with pytest.raises(wp.CaptureError, match="not paused"):
        capture_resume(paused)
    assert other.list() == [11.0, 11.0] and x.list() == [1.0, 2.0]
    wp.capture_launch(capture.graph)
    assert x.list() == [7.0, 11.0] and other.list() == [11.0, 11.0]


def test_kernels_print_when_the_graph_runs(capfd):
    x = arr([1.0, 2.0])
    with wp.ScopedCapture() as capture:
        wp.launch(tell, dim=2, inputs=[x])
        wp.launch(step, dim=2, inputs=[x])
        wp.launch(tell, dim=2, inputs=[x])
    assert capfd.readouterr().out == ""
    wp.capture_launch(capture.graph)
    wp.capture_launch(capture.graph)
    assert capfd.readouterr().out.split() == ["2", "5", "5", "11"]


@pytest.mark.host
def test_faults_are_told_and_end_the_run():
    x, y = arr([1.0, 2.0, 300.0, 4.0]), wp.zeros(4, dtype=float)
    with wp.ScopedCapture() as capture:
        wp.launch(step, dim=4, inputs=[y])
        wp.launch(inside, dim=4, inputs=[x, 0], checked=True)
        wp.launch(step, dim=4, inputs=[y])
    with pytest.raises(wp.KernelAssertionError, match=r"too large(.|\n)*thread 2"):
        wp.capture_launch(capture.graph)
    assert y.list() == [1.0] * 4
    x.fill_(0.0)
    wp.capture_launch(capture.graph)
    assert x.list() == [1.0] * 4 and y.list() == [7.0] * 4
    with wp.ScopedCapture() as capture:
        wp.launch(inside, dim=4, inputs=[x, 1], checked=True)
    with pytest.raises(wp.IndexOutOfRange, match="index 4"):
        wp.capture_launch(capture.graph)


@pytest.mark.host
def test_utilities_are_captured():
    rng = np.random.default_rng(3)
    values = wp.array(rng.integers(0, 50, 10_000), dtype=int)
    out, result = wp.zeros(10_000, dtype=int), wp.zeros(1, dtype=int)
    keys, items = wp.zeros(20_000, dtype=int), wp.zeros(20_000, dtype=int)
    starts, run_values, lengths, count = (wp.zeros(10_000, dtype=int) for _ in range(4))
    seg_keys, seg_items = wp.zeros(20, dtype=int), wp.zeros(20, dtype=int)
    bounds = wp.array([0, 4, 10], dtype=int)
    with wp.ScopedCapture() as capture:
        wp.utils.array_scan(values, out, inclusive=False)
        wp.utils.array_sum(values, out=result)
        wp.copy(keys, values, count=10_000)
        wp.copy(items, values, count=10_000)
        wp.utils.radix_sort_pairs(keys, items, 10_000)
        wp.copy(starts, keys, count=10_000)
        wp.utils.runlength_encode(starts, run_values, lengths, count[:1])
        wp.copy(seg_keys, values, count=10)
        wp.utils.segmented_sort_pairs(seg_keys, seg_items, 10, bounds)
    for low, high in ((0, 50), (10, 30)):
        now = rng.integers(low, high, 10_000)
        values.assign(now)
        wp.capture_launch(capture.graph)
        assert (out.numpy() == np.cumsum(now) - now).all() and result.list() == [now.sum()]
        assert (keys.numpy()[:10_000] == np.sort(now)).all() and (items.numpy()[:10_000] == np.sort(now)).all()
        found, sizes = np.unique(now, return_counts=True)
        assert count.numpy()[0] == len(found) and (lengths.numpy()[: len(found)] == sizes).all()
        assert (seg_keys.numpy()[:10] == [*np.sort(now[:4]), *np.sort(now[4:10])]).all()
    bounds.assign([0, 4, 11])
    with pytest.raises(wp.KernelAssertionError, match="Invalid segment range"):
        wp.capture_launch(capture.graph)


def test_sums_have_the_bits_of_separate_launches():
    x, s, t = wp.array(np.random.default_rng(1).random(200_000), dtype=float), wp.zeros(1, dtype=float), arr([0.0])
    wp.launch(total, dim=x.size, inputs=[x, t])
    with wp.ScopedCapture() as capture:
        s.zero_()
        wp.launch(total, dim=x.size, inputs=[x, s])
    for _ in range(2):
        wp.capture_launch(capture.graph)
        assert s.numpy().tobytes() == t.numpy().tobytes()


def test_threads_capture_and_launch_for_themselves():
    arrays, wrong = [wp.zeros(100, dtype=float) for _ in range(4)], []

    def work(x, captures):
        try:
            for _ in range(20):
                x.zero_()
                if captures:
                    with wp.ScopedCapture() as capture:
                        wp.launch(step, dim=100, inputs=[x])
                        wp.launch(step, dim=100, inputs=[x])
                    wp.capture_launch(capture.graph)
                else:
                    wp.launch(step, dim=100, inputs=[x])
                    wp.launch(step, dim=100, inputs=[x])
                if x.list() != [3.0] * 100:
                    wrong.append(x.list())
        except BaseException as error:
            wrong.append(error)

    wp.launch(step, dim=100, inputs=[arrays[0]])
    threads = [threading.Thread(target=work, args=(x, k % 2 == 0)) for k, x in enumerate(arrays)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_graphs_are_drawn(tmp_path):
    flag, x = wp.ones(1, dtype=int), wp.zeros(2, dtype=float)
    with wp.ScopedCapture() as capture:
        wp.launch(step, dim=2, inputs=[x])
        wp.capture_if(flag, lambda: x.zero_(), lambda: x.fill_(3.0))
        wp.capture_while(flag, lambda: flag.zero_())
    path = tmp_path / "graph.dot"
    wp.capture_debug_dot_print(capture.graph, str(path))
    text = path.read_text()
    assert "step\\ndim 2\\n(" in text and '"if"' in text and '"while"' in text and text.count("subgraph") == 3
    wp.capture_debug_dot_print(capture.graph, str(path), verbose=False)
    assert '"step"' in path.read_text()
    with pytest.raises(TypeError, match="takes a graph"):
        wp.capture_debug_dot_print("graph", str(path))


@pytest.mark.host
def test_ctrl_c_ends_a_loop_that_does_not_end():
    goes_on, x = wp.ones(1, dtype=int), wp.zeros(3, dtype=float)
    with wp.ScopedCapture() as capture:
        wp.capture_while(goes_on, lambda: wp.launch(step, dim=3, inputs=[x]))
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            wp.capture_launch(capture.graph)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    goes_on.zero_()
    x.zero_()
    wp.capture_launch(capture.graph)
    assert x.list() == [0.0] * 3


def test_many_runs_with_arrays_that_come_and_go():
    x = arr([1.0, 2.0])
    with wp.ScopedCapture() as capture:
        made = wp.full(2, 0.5)
        wp.launch(add, dim=2, inputs=[x, made, made])
    del x
    for _ in range(10_000):
        wp.full(64, -1.0)
        wp.capture_launch(capture.graph)
    assert made.list() == [1.5, 2.5]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system starts processes in another way")
def test_graphs_run_in_forked_processes():
    x = wp.zeros(20_000, dtype=float)
    with wp.ScopedCapture() as capture:
        x.fill_(1.0)
        wp.launch(step, dim=x.size, inputs=[x])
    wp.capture_launch(capture.graph)
    child = os.fork()
    if child == 0:
        wp.capture_launch(capture.graph)
        with wp.ScopedCapture() as inner:
            wp.launch(step, dim=x.size, inputs=[x])
        wp.capture_launch(inner.graph)
        os._exit(0 if x.list() == [7.0] * x.size else 1)
    assert os.waitpid(child, 0)[1] == 0 and x.list() == [3.0] * x.size


def test_a_capture_goes_with_the_thread_that_began_it():
    x, before = wp.zeros(3, dtype=float), captures.active

    def run(work):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    for _ in range(8):
        run(wp.capture_begin)  # which nobody ends; the system gives the next thread the same ident
        run(lambda: wp.launch(step, dim=3, inputs=[x]))
    gc.collect()
    assert x.list() == [255.0] * 3
    assert captures.active == before  # launches are native again


def test_many_threads_may_be_the_first_to_run_a_graph():
    for _ in range(20):
        x, gate = wp.zeros(100, dtype=float), threading.Barrier(4)
        with wp.ScopedCapture() as capture:
            wp.launch(count_up, dim=100, inputs=[x])

        def work():
            gate.wait()  # noqa: B023, used at once
            for _ in range(50):
                wp.capture_launch(capture.graph)  # noqa: B023

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert x.list() == [200.0] * 100


@pytest.mark.parametrize("content", [0, 1])
def test_a_body_that_is_none_is_refused_whatever_the_condition_says(content):
    condition = wp.full(1, content, dtype=int)
    for bodies in ((3,), (None, 3)):
        with pytest.raises(TypeError, match="the body of a branch is a function or a graph, not int"):
            wp.capture_if(condition, *bodies)
    with pytest.raises(ValueError, match="at least one element"):
        wp.capture_while(wp.zeros(0, dtype=int), lambda: None)
