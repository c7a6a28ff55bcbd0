"""What goes, and what other threads do, between two steps of the runtime: finalizers run whenever Python collects."""

import sys
import threading

import pytest

import treadle as wp
from tests.runtime.cuda.standin_parts import Refused
from tests.runtime.cuda.test_order import copying, scale
from treadle.runtime.cuda.memory import taken


def test_a_stream_that_goes_between_a_mark_and_the_wait_for_it(gpu, driver, monkeypatch):
    """Its end marks its own work; whoever was about to wait waits for what was marked before."""
    stream, out, _ = copying(gpu)
    going = [wp.Stream(gpu)]
    real, met = gpu.driver.cuEventRecord, []

    def record(event, handle):
        real(event, handle)
        if handle == stream.cuda_stream and going:
            met.append(going.clear())

    monkeypatch.setattr(gpu.driver, "cuEventRecord", record)
    gpu.follow(stream.cuda_stream, wp.get_stream().cuda_stream)
    assert met and out.list() == [3.0] * 1000
    stream, out, _ = copying(gpu)
    going.append(wp.Stream(gpu))
    wp.get_stream().wait_stream(stream)
    assert len(met) == 2 and out.list() == [3.0] * 1000


def interrupted(function, act):
    """Let ``act`` happen once while functions of the runtime of GPUs do ``function``: before their first step, then
    before their second, and so on. One time for each step, whose number is given to both; the number after the last."""
    step, more = 0, True
    while more:
        more, left = False, [step]

        def trace(frame, event, _, left=left, step=step):
            nonlocal more
            if "cuda" not in frame.f_code.co_filename or "tests" in frame.f_code.co_filename:
                return None
            frame.f_trace_opcodes = True
            if event == "opcode":
                if left[0] == 0:
                    more = True
                    sys.settrace(None)
                    act(step)
                left[0] -= 1
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            function(step)
        finally:
            sys.settrace(before)
        step += 1
    act(step - 1)  # there was no such step
    return step


def test_memory_that_goes_while_memory_is_freed(gpu, driver):
    """A collection may begin at any step: what it gives back is freed, and nothing twice."""
    gpu.heap.give(gpu.heap.take(8))
    blocks = [(gpu.heap.take(8), gpu.heap.take(8)) for _ in range(600)]
    driver.calls.clear()
    steps = interrupted(lambda k: gpu.heap.give(blocks[k][0]), lambda k: gpu.heap.give(blocks[k][1]))
    for pair in blocks[steps:]:
        for each in pair:
            gpu.heap.give(each)
    wp.synchronize()
    freed = [args[0] for name, args in driver.calls if name == "cuMemFreeAsync"]
    assert 50 < steps < len(blocks) and sorted(freed) == sorted([each for pair in blocks for each in pair])


def test_things_that_go_while_others_are_destroyed(gpu, driver):
    """The same of events, of which each is destroyed once."""
    with gpu.entered:
        events = [(driver.cuEventCreate(2)[1], driver.cuEventCreate(2)[1]) for _ in range(600)]
    driver.calls.clear()
    steps = interrupted(lambda k: gpu.drop("cuEventDestroy", events[k][0]),
                        lambda k: gpu.drop("cuEventDestroy", events[k][1]))  # fmt: skip
    gone = [args[0] for name, args in driver.calls if name == "cuEventDestroy"]
    assert 20 < steps < len(events) and sorted(gone) == sorted([each for pair in events[:steps] for each in pair])


def test_what_is_taken_out_while_others_put_in():
    from collections import deque

    things, seen = deque([1, 2]), []
    for one in taken(things):
        seen.append(one)
        if one == 1:
            things.append(3)
            seen += taken(things)
    assert seen == [1, 2, 3] and not things


@wp.kernel
def picky(x: wp.array(dtype=float)):
    i = wp.tid()
    assert x[i] < 5.0, "too large"


def test_fault_records_serve_again(gpu, driver, monkeypatch):
    """When all that may report into one has been waited for, others have it, and find it empty."""
    x = wp.zeros(400, dtype=float)
    wp.launch(picky, dim=1, inputs=[x], checked=True)
    wp.synchronize()
    before = len(driver.pinned)
    for n in range(2, 300):
        wp.launch(picky, dim=n, inputs=[x], checked=True)
        wp.synchronize()
    assert len(driver.pinned) == before
    command = wp.launch(picky, dim=7, inputs=[x], checked=True, record_cmd=True)
    x.fill_(9.0)
    command.launch()
    with pytest.raises(wp.KernelAssertionError, match="thread 0"):
        wp.synchronize()
    x.zero_()
    for n in range(1, 70):  # the one of the command is still its own
        wp.launch(picky, dim=n, inputs=[x], checked=True)
    wp.synchronize()
    x.fill_(9.0)
    command.launch()
    wp.launch(picky, dim=5, inputs=[x], checked=True)
    with pytest.raises(wp.KernelAssertionError):
        wp.synchronize()
    wp.synchronize()


def test_reports_of_launches_that_come_while_others_are_waited_for(gpu, driver, monkeypatch):
    """A launch that another thread gives after the wait and before the look is looked at when that is waited for."""
    x, real, later = wp.zeros(4, dtype=float), gpu.driver.cuStreamSynchronize, []
    wp.launch(picky, dim=4, inputs=[x], checked=True)

    def wait(handle):
        real(handle)
        while later:
            later.pop()()

    monkeypatch.setattr(gpu.driver, "cuStreamSynchronize", wait)
    later.append(lambda: (x.fill_(9.0), wp.launch(picky, dim=4, inputs=[x], checked=True)))
    wp.synchronize_stream()
    with pytest.raises(wp.KernelAssertionError):
        wp.synchronize_stream()


@wp.kernel
def say(x: wp.array(dtype=float)):
    print(x[wp.tid()])


@pytest.mark.parametrize("captured", [False, True])
def test_kernels_that_print_take_turns(gpu, driver, monkeypatch, capsys, captured):
    """Nobody writes to a print buffer while its text is shown."""
    here, there, streams = wp.ones(3, dtype=float), wp.full(3, 2.0, dtype=float), [wp.Stream(gpu), wp.Stream(gpu)]
    wp.launch(say, dim=3, inputs=[here])
    wp.synchronize()
    capsys.readouterr()
    with wp.ScopedCapture() as capture:
        wp.launch(say, dim=3, inputs=[here])
    real, threads = gpu.driver.cuStreamSynchronize, []

    def wait(handle):
        if not threads:
            threads.append(threading.Thread(target=lambda: wp.launch(say, 3, [there], stream=streams[1])))
            threads[0].start()
            threads[0].join(0.3)
        real(handle)

    if captured:
        wp.capture_launch(capture.graph, stream=streams[0])
        capsys.readouterr()
    driver.calls.clear()
    with monkeypatch.context() as patch:
        patch.setattr(gpu.driver, "cuStreamSynchronize", wait)
        if captured:
            wp.capture_launch(capture.graph, stream=streams[0])
        else:
            wp.launch(say, 3, [here], stream=streams[0])
        threads[0].join()
    order = [(name, args[8 if name == "cuLaunchKernel" else -1]) for name, args in driver.calls
             if name in ("cuLaunchKernel", "cuGraphLaunch", "cuStreamSynchronize")]  # fmt: skip
    first, second = (each.cuda_stream for each in streams)
    begin = "cuGraphLaunch" if captured else "cuLaunchKernel"
    assert order == [(begin, first), ("cuStreamSynchronize", first), ("cuLaunchKernel", second),
                     ("cuStreamSynchronize", second)]  # fmt: skip
    assert capsys.readouterr().out == "1\n" * 3 + "2\n" * 3


def test_a_context_that_cannot_be_entered_is_not_left(gpu, driver, monkeypatch):
    x = wp.zeros(3, dtype=float)
    for _ in range(2):
        wp.launch(scale, 3, [x, 2.0])  # the second one by native code
    wp.synchronize()

    def refuses(self, ctx):
        raise Refused("INVALID_CONTEXT")

    with gpu.entered:
        before = [*driver.context]
        with monkeypatch.context() as patch:
            patch.setattr(type(driver), "cuCtxPushCurrent", refuses)
            with pytest.raises(wp.DeviceError, match="CUDA_ERROR_INVALID_CONTEXT"):
                wp.launch(scale, 3, [x, 2.0])
        assert driver.context == before and len(before) == 1


@pytest.mark.parametrize("how", ["launch", "command", "copy"])
def test_work_for_a_stream_changes_no_other_threads_stream(gpu, driver, monkeypatch, how):
    """``stream=`` is for that work alone, whatever other threads give to the current stream meanwhile."""
    x, y, stream, current = wp.ones(3, dtype=float), wp.zeros(3, dtype=float), wp.Stream(gpu), wp.get_stream()
    command = wp.launch(scale, 3, [x, 2.0], record_cmd=True)
    work = {"launch": lambda: wp.launch(scale, 3, [x, 2.0], stream=stream, checked=False),
            "command": lambda: command.launch(stream), "copy": lambda: wp.copy(y, x, stream=stream)}[how]  # fmt: skip
    work()
    name, at = ("cuMemcpyAsync", 3) if how == "copy" else ("cuLaunchKernel", 8)
    real, seen, given = getattr(gpu.driver, name), [], []

    def call(*args):
        given.append(args[at])
        if len(given) == 1:
            thread = threading.Thread(target=lambda: seen.append((wp.get_stream(), wp.get_device())))
            thread.start()
            thread.join()
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(gpu.driver, name, call)
        work()
    assert given == [stream.cuda_stream] and seen == [(current, gpu)]
