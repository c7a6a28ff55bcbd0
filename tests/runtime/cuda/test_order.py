"""The order of the runtime's calls of the driver, and that nothing goes before the work that uses it."""

import ctypes
import gc
import struct

import numpy as np
import pytest

import treadle as wp
from tests.runtime.cuda.standin_parts import Refused
from treadle.runtime import capture as captures
from treadle.runtime import watch
from treadle.types.records import LAUNCH


@wp.kernel
def scale(x: wp.array(dtype=float), s: float):
    i = wp.tid()
    x[i] = s * x[i]


def first(driver, name: str) -> tuple:
    """The arguments of the first call of a function."""
    return next(args for called, args in driver.calls if called == name)


def test_an_array_from_the_host(gpu, driver):
    a = wp.array(np.arange(4, dtype=np.float32))
    assert driver.names() == [
        "cuDevicePrimaryCtxRetain", "cuCtxGetStreamPriorityRange", "cuStreamCreateWithPriority", "cuMemPoolCreate",
        "cuMemPoolSetAttribute", "cuMemAllocFromPoolAsync", "cuMemcpyAsync",
    ]  # fmt: skip
    assert first(driver, "cuMemcpyAsync")[0] == a.ptr and first(driver, "cuMemcpyAsync")[2] == 16
    driver.calls.clear()
    assert a.list() == [0.0, 1.0, 2.0, 3.0]
    assert driver.names() == ["cuMemcpyAsync", "cuStreamSynchronize"]
    driver.calls.clear()
    del a
    gc.collect()
    assert driver.names() == ["cuMemFreeAsync"]


def test_each_call_is_made_in_the_devices_context(gpu, driver):
    a = wp.zeros(3, dtype=float)
    wp.launch(scale, dim=3, inputs=[a, 2.0])
    wp.synchronize()
    depth, needs = 0, 0
    for name, args in driver.calls:
        depth += (name == "cuCtxPushCurrent") - (name == "cuCtxPopCurrent")
        if name == "cuCtxPushCurrent":
            assert args == (1,)
        if name in ("cuMemAllocFromPoolAsync", "cuMemsetD8Async", "cuLaunchKernel", "cuModuleLoadData"):
            assert depth > 0, name
            needs += 1
    assert depth == 0 and needs >= 4


def test_what_a_launch_gives_to_the_driver(gpu, driver, monkeypatch):
    seen = []
    a = wp.zeros(700, dtype=float)
    monkeypatch.setattr(type(driver), "cuLaunchKernel", watching(type(driver).cuLaunchKernel, seen))
    monkeypatch.setattr(gpu, "threads", 2048)
    wp.launch(scale, dim=(7, 100), inputs=[a, 2.5], max_blocks=2)
    wp.launch(scale, dim=700, inputs=[a, 2.5], record_cmd=True, max_blocks=1).launch()
    with wp.ScopedCapture() as capture:
        wp.launch(scale, dim=700, inputs=[a, 2.5], max_blocks=1)
    wp.capture_launch(capture.graph)
    assert [grid for _, grid, *_ in seen[1:]] == [(1, 1, 1)] * 2
    function, grid, block, shared, stream, args, record = seen[0]
    assert grid == (2, 1, 1) and block == (256, 1, 1) and shared == 0 and stream == wp.get_stream().cuda_stream
    data, grad, extent, stride = struct.unpack_from("<QQqq", args)
    assert (data, grad, extent, stride) == (a.ptr, 0, 700, 4) and struct.unpack_from("<f", args, 40) == (2.5,)
    fields = dict(zip(LAUNCH.at, struct.unpack(f"<{len(LAUNCH.at)}q", record), strict=True))
    assert (fields.pop("size"), fields.pop("dim0"), fields.pop("dim1")) == (700, 7, 100)
    assert (fields.pop("dim2"), fields.pop("dim3")) == (1, 1) and not any(fields.values())


def watching(real, seen):
    """Notes what the parameters of launches hold when the driver is given them."""

    def call(self, function, gx, gy, gz, bx, by, bz, shared, stream, params, extra):
        args, record = (ctypes.c_uint64 * 2).from_address(params)
        seen.append((function, (gx, gy, gz), (bx, by, bz), shared, stream, ctypes.string_at(args, 48),
                     ctypes.string_at(record, LAUNCH.size)))  # fmt: skip
        return real(self, function, gx, gy, gz, bx, by, bz, shared, stream, params, extra)

    return call


def test_code_is_linked_once_kept_and_unloaded(gpu, driver):
    @wp.kernel(module="unique")
    def add(x: wp.array(dtype=float)):
        x[wp.tid()] += 1.0

    a = wp.zeros(3, dtype=float)
    driver.calls.clear()
    for _ in range(2):
        wp.launch(add, dim=3, inputs=[a])
    code = [n for n in driver.names() if n.startswith(("cuLink", "cuModule", "cuLaunch"))]
    link = ["cuLinkCreate", "cuLinkAddData", "cuLinkComplete", "cuModuleLoadData", "cuLinkDestroy"]
    assert sorted(code[:5]) == sorted(link) and code[5:] == ["cuModuleGetFunction", "cuLaunchKernel", "cuLaunchKernel"]
    b = wp.zeros(3, dtype=float, device="cuda:1")  # the other GPU finds the code in the cache
    driver.calls.clear()
    wp.launch(add, dim=3, inputs=[b], device="cuda:1")
    code = [n for n in driver.names() if n.startswith(("cuLink", "cuModule"))]
    assert code == ["cuModuleLoadData", "cuModuleGetFunction"]
    driver.calls.clear()
    add.forget()
    gc.collect()
    assert driver.names().count("cuModuleUnload") == 2
    assert a.list() == [2.0] * 3 and b.list() == [1.0] * 3


def copying(gpu):
    """A stream in which a copy waits, where to and where from."""
    stream, out = wp.Stream(gpu), wp.zeros(1000, dtype=float)
    source = wp.full(1000, 3.0, dtype=float)
    stream.wait_stream(wp.get_stream())
    wp.copy(out, source, stream=stream)
    return stream, out, source


def test_memory_outlives_work_on_other_streams(gpu, driver):
    """An array goes while its launch still waits in a stream: nobody may get its memory before."""
    stream, out, source = copying(gpu)
    del source
    gc.collect()
    again = wp.full(1000, 7.0, dtype=float)
    assert not stream.is_complete and again.numpy()[0] == 7.0
    wp.synchronize_stream(stream)
    assert out.list() == [3.0] * 1000


def test_memory_outlives_work_on_streams_that_have_gone(gpu, driver):
    """A stream goes with work in it, and then the memory that this uses."""
    stream, out, source = copying(gpu)
    del stream
    gc.collect()
    del source
    gc.collect()
    assert wp.full(1000, 7.0, dtype=float).numpy()[0] == 7.0 and out.numpy()[0] == 0.0  # nobody waited for it yet
    wp.synchronize()
    assert out.list() == [3.0] * 1000


def test_a_gpu_that_has_stopped(gpu, driver, monkeypatch):
    """After an error that stays, everything says so, and what goes leaves no errors behind."""
    a, stream = wp.zeros(3, dtype=float), wp.Stream(gpu)
    wp.launch(scale, dim=3, inputs=[a, 1.0])

    wp.synchronize()
    driver.lost = "ILLEGAL_ADDRESS"
    ignored = []
    monkeypatch.setattr("sys.unraisablehook", ignored.append)
    for ask in (wp.synchronize, lambda: wp.launch(scale, 3, [a, 1.0], checked=False), lambda: wp.empty(3)):
        with pytest.raises(wp.DeviceLostError, match="the GPU has stopped: CUDA_ERROR_ILLEGAL_ADDRESS"):
            ask()
    del a, stream
    gc.collect()
    assert ignored == []
    driver.lost = ""
    driver.arenas[0].live.clear()


@wp.kernel
def say(x: wp.array(dtype=float)):
    print(x[wp.tid()])


def test_a_kernel_that_prints_has_one_buffer(gpu, driver, capsys):
    x = wp.ones(2, dtype=float)
    wp.launch(say, dim=2, inputs=[x])
    before = len(driver.pinned)
    for _ in range(5):
        wp.launch(say, dim=2, inputs=[x])
    assert len(driver.pinned) == before and not gpu.queue.reports._armed
    assert capsys.readouterr().out == 12 * "1\n"


def test_streams_and_events(gpu, driver):
    stream, begin, end = wp.Stream(gpu, priority=-99), *(wp.Event(gpu, enable_timing=True) for _ in range(2))
    assert stream.priority == -5 and first(driver, "cuStreamCreateWithPriority") == (0, -5)
    a = wp.full(3, 1.0, dtype=float)
    driver.calls.clear()
    with wp.ScopedStream(stream):
        assert driver.names() == ["cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"]  # it waits for the one before
        wp.record_event(begin)
        wp.launch(scale, dim=3, inputs=[a, 3.0])
        wp.record_event(end)
    assert wp.get_stream() is not stream and not stream.is_complete and not end.is_complete
    wp.wait_event(end)
    assert a.list() == [3.0] * 3 and end.is_complete
    assert wp.get_event_elapsed_time(begin, end) == 0.5
    wp.synchronize_event(end)
    with pytest.raises(wp.DeviceError, match="an event of cuda:1 cannot be recorded on a stream of cuda:0"):
        stream.record_event(wp.Event("cuda:1"))
    driver.calls.clear()
    del stream
    gc.collect()
    assert driver.names()[-3:] == ["cuEventRecord", "cuStreamWaitEvent", "cuStreamDestroy"]


def test_a_graph_is_captured_from_nothing_but_work(gpu, driver):
    a = wp.zeros(3, dtype=float)
    with wp.ScopedCapture() as capture:
        wp.launch(scale, dim=3, inputs=[a, 2.0])
        a.fill_(1.0)
        b = wp.clone(a)
    driver.calls.clear()
    wp.capture_launch(capture.graph)
    names = driver.names()
    between = names[names.index("cuStreamBeginCapture") + 1 : names.index("cuStreamEndCapture")]
    assert between == ["cuLaunchKernel", "cuMemsetD32Async", "cuMemcpyAsync"]
    after = ["cuGraphInstantiate", "cuGraphDestroy", "cuStreamDestroy", "cuGraphLaunch"]
    assert sorted(names[names.index("cuStreamEndCapture") + 1 :]) == sorted(after) and names[-1] == "cuGraphLaunch"
    assert b.list() == [1.0] * 3
    driver.calls.clear()
    del capture, b
    gc.collect()
    assert set(driver.names()) >= {"cuGraphExecDestroy", "cuMemFreeAsync"}


def test_between_gpus(driver):
    a = wp.array(np.arange(6, dtype=np.float32), device="cuda:0")
    b = wp.zeros(6, dtype=float, device="cuda:1")
    driver.calls.clear()
    wp.copy(b, a)
    assert "cuMemcpyPeerAsync" in driver.names() and driver.names().count("cuStreamWaitEvent") == 2
    assert b.list() == a.list()
    wp.copy(b[::2], a[:3])  # neither reaches the other's memory: by way of the host
    assert b.list() == [0.0, 1.0, 1.0, 3.0, 2.0, 5.0]
    assert a.to("cuda:1").list() == a.list() and wp.clone(b, device="cpu").list() == b.list()


def test_work_in_a_capture_of_another_library(gpu, driver):
    """As PyTorch captures: the stream and the graph are its own, arrays that are made meanwhile belong to nobody's."""
    a = wp.zeros(3, dtype=float)
    wp.launch(scale, dim=3, inputs=[a, 1.0])  # code is loaded before
    wp.synchronize()

    with gpu.entered:
        _, handle = driver.cuStreamCreateWithPriority(1, 0)
        driver.cuStreamBeginCapture(handle, 1)
    with wp.ScopedStream(wp.Stream(gpu, cuda_stream=handle)) as stream:
        assert stream.is_captured and not stream.device.is_capturing
        with wp.ScopedCapture(stream=stream, external=True) as capture:
            a.fill_(2.0)
            wp.launch(scale, dim=3, inputs=[a, 3.0])
            b = wp.empty(3, dtype=float)
            wp.copy(b, a)
    with gpu.entered:
        _, graph = driver.cuStreamEndCapture(handle)
        assert capture.graph is None and a.list() == [0.0] * 3
        assert [n[0] for n in driver.things[graph].names] == ["set", "kernel", "copy"]
        _, made = driver.cuGraphInstantiate(graph, 0)
        driver.cuGraphLaunch(made, handle)
    wp.synchronize()
    assert a.list() == b.list() == [6.0] * 3


@wp.kernel
def spread(x: wp.array(dtype=float), where: wp.array(dtype=int), sums: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(sums, where[i], x[i])


def test_the_switch_for_sums_in_any_order(gpu, driver):
    """Exact accumulators and a pass that rounds them, or one pass with the hardware's atomics; at once."""
    modes = wp.DeterministicMode
    x, where, sums = wp.ones(64, dtype=float), wp.zeros(64, dtype=int), wp.zeros(2, dtype=float)
    counts = []
    try:
        for mode in (modes.GPU_TO_GPU, modes.NOT_GUARANTEED, modes.RUN_TO_RUN):
            wp.config.deterministic = mode
            driver.calls.clear()
            wp.launch(spread, dim=64, inputs=[x, where, sums])
            counts.append(driver.names().count("cuLaunchKernel"))
    finally:
        wp.config.deterministic = modes.GPU_TO_GPU
    assert counts == [2, 1, 2] and sums.list() == [192.0, 0.0]
    texts = [text for text in driver.texts.values() if "@spread" in text or "atomicrmw fadd" in text]
    assert sum("atomicrmw fadd" in text for text in texts) == 1


def test_usual_launches_go_by_native_code(gpu, driver, monkeypatch):
    """The second launch: arguments, grid and stream are those of the first way, and nothing else is called."""
    seen, x = [], wp.zeros((700, 2), dtype=float)
    column = x[:, 1]
    monkeypatch.setattr(gpu, "threads", 2048)
    monkeypatch.setattr(gpu, "sm_count", 20)
    monkeypatch.setattr(type(driver), "cuLaunchKernel", watching(type(driver).cuLaunchKernel, seen))
    scale.forget()
    for dim in (700, (7, 100), 3):
        del seen[:]
        wp.launch(scale, dim=dim, inputs=[column, 2.5], checked=False)  # never by native code
        for _ in range(2):
            driver.calls.clear()
            wp.launch(scale, dim, [column], [2.5])
        assert driver.names() == ["cuLaunchKernel"] and len(seen) == 3
        told = [(*each[1:5], each[5][:44], each[6]) for each in seen]  # the arguments have 44 bytes
        assert told[0] == told[1] == told[2]
    stream = wp.Stream(gpu)
    with wp.ScopedStream(stream):
        wp.launch(scale, 700, [column, 2.5])
    assert seen[-1][4] == stream.cuda_stream and gpu in scale.far
    wp.launch(scale, 0, [column, 2.5])
    with pytest.raises(wp.LaunchError, match="lies on cpu"):
        wp.launch(scale, 3, [wp.zeros(3, dtype=float, device="cpu"), 2.5])
    with pytest.raises(wp.IndexOutOfRange):
        wp.launch(scale, 701, [column, 2.5])
    with wp.ScopedCapture() as capture:
        wp.launch(scale, 700, [column, 2.5])
    count = len(seen)
    wp.capture_launch(capture.graph)
    assert len(seen) == count + 1

    def refuses(self, *args):
        raise Refused("INVALID_VALUE")

    def never(*args):
        raise AssertionError(f"not by native code; captures: {captures.active}, tapes: {watch.watchers}")

    monkeypatch.setattr(type(driver), "cuLaunchKernel", refuses)
    monkeypatch.setattr(gpu.driver, "cuLaunchKernel", never)  # which Python would call
    with pytest.raises(wp.DeviceError, match="cuLaunchKernel: CUDA_ERROR_INVALID_VALUE"):
        wp.launch(scale, 700, [column, 2.5])
