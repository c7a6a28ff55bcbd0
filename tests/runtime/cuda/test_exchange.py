"""Arrays of a GPU for other libraries and from them; pools, access between GPUs, memory of several processes."""

import ctypes
import gc

import numpy as np
import pytest

import treadle as wp
from treadle.runtime import dlpack


def tensor_in(capsule) -> tuple[int, int, int]:
    """Address, kind of device and its number, as a capsule says them."""
    name, pointer, _ = dlpack._capsules()
    at = pointer(capsule, name(capsule))
    return (ctypes.c_uint64.from_address(at).value, *[ctypes.c_int32.from_address(at + k).value for k in (8, 12)])


def test_dlpack_names_the_gpu_and_waits_for_streams(driver):
    a = wp.array(np.arange(6, dtype=np.float32).reshape(2, 3), dtype=wp.vec3, device="cuda:1")
    assert a.__dlpack_device__() == (2, 1)
    consumer = wp.Stream("cuda:1")
    driver.calls.clear()
    capsule = a.__dlpack__(stream=consumer.cuda_stream)
    assert tensor_in(capsule) == (a.ptr, 2, 1)
    assert driver.names()[-2:] == ["cuEventRecord", "cuStreamWaitEvent"]
    assert driver.calls[-2][1][0] == consumer.cuda_stream  # the consumer's stream is the one that waits
    driver.calls.clear()
    a.__dlpack__(stream=-1)
    assert "cuStreamWaitEvent" not in driver.names()
    b = wp.from_dlpack(capsule, dtype=wp.vec3)
    assert b.device is a.device and b.ptr == a.ptr and b.shape == (2,)
    del a, capsule
    gc.collect()
    b.fill_(wp.vec3(1.0, 2.0, 3.0))
    assert b.numpy().tolist() == [[1.0, 2.0, 3.0]] * 2  # the memory lives as long as anybody has it
    host = np.from_dlpack(Away(b))
    assert host.tolist() == [[1.0, 2.0, 3.0]] * 2
    with pytest.raises(BufferError, match="lies on cuda:1"):
        b.__dlpack__(dl_device=(1, 0), copy=False)


class Away:
    """Asks an array for a copy on the host."""

    def __init__(self, a):
        self.a = a

    def __dlpack__(self, **options):
        return self.a.__dlpack__(dl_device=(1, 0))

    def __dlpack_device__(self):
        return 1, 0


class Producer:
    """An array of another library."""

    def __init__(self, a):
        self.a, self.asked = a, []

    def __dlpack__(self, stream=None):
        self.asked.append(stream)
        return self.a.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()


def test_who_gives_a_tensor_is_told_our_stream(gpu):
    source = Producer(wp.zeros(4, dtype=float))
    with wp.ScopedStream(wp.Stream(gpu)) as stream:
        made = wp.from_dlpack(source)
    assert source.asked == [stream.cuda_stream] and made.device is gpu and made.ptr == source.a.ptr


def test_cudas_array_interface(gpu):
    a = wp.zeros((3, 4), dtype=wp.vec3)
    found = a.__cuda_array_interface__
    assert found["shape"] == (3, 4, 3) and found["typestr"] == "<f4" and found["data"] == (a.ptr, False)
    assert found["strides"] is None and found["version"] == 3 and found["stream"] == wp.get_stream().cuda_stream
    assert a[::2, 1].__cuda_array_interface__["strides"] == (96, 4)
    assert not hasattr(a, "__array_interface__") and np.array(a).shape == (3, 4, 3)
    assert not hasattr(wp.zeros(1, device="cpu"), "__cuda_array_interface__")


class Shown:
    """What Numba has: an array that only tells where it is."""

    def __init__(self, a, **facts):
        self.a, self.facts = a, facts

    @property
    def __cuda_array_interface__(self):
        return {**self.a.__cuda_array_interface__, **self.facts}


def test_arrays_that_have_cudas_interface(driver):
    own = wp.array(np.arange(12, dtype=np.float32).reshape(4, 3), dtype=float, device="cuda:1")
    stream = wp.Stream("cuda:1")
    driver.calls.clear()
    wp.launch(double, dim=4, inputs=[Shown(own[:, ::2], stream=stream.cuda_stream)], device="cuda:1")
    waits = [args for name, args in driver.calls if name == "cuStreamWaitEvent"]
    assert waits and waits[0][0] == wp.get_stream("cuda:1").cuda_stream
    assert own.numpy()[:, 0].tolist() == [0.0, 6.0, 12.0, 18.0] and own.numpy()[1, 1:].tolist() == [4.0, 10.0]
    copied = wp.array(Shown(own), dtype=wp.vec3, device="cuda:0")
    assert copied.shape == (4,) and copied.numpy().tolist() == own.numpy().tolist()
    with pytest.raises(wp.LaunchTypeError, match="mask"):
        wp.launch(double, dim=4, inputs=[Shown(own, mask=own)], device="cuda:1")


@wp.kernel
def double(a: wp.array2d(dtype=float)):
    i = wp.tid()
    for j in range(a.shape[1]):
        a[i, j] *= 2.0


def test_pinned_memory(gpu, driver):
    host = wp.zeros(4, dtype=float, device="cpu", pinned=True)
    assert host.pinned and host.device == "cpu" and not wp.zeros(4, device="cpu").pinned and not wp.zeros(4).pinned
    assert host.memory_kind == wp.MemoryKind.PINNED and wp.zeros(4).memory_kind == wp.MemoryKind.CUDA_MEMPOOL
    a = wp.full(4, 2.5, dtype=float)
    wp.copy(host, a)
    assert host.list() == [2.5] * 4 and wp.empty_like(host).pinned and not wp.clone(host, device=gpu).pinned
    driver.calls.clear()
    del host
    gc.collect()
    assert driver.names()[-1] == "cuMemFreeHost" and "cuCtxSynchronize" in driver.names()


def test_pools(gpu, driver):
    assert wp.is_mempool_supported(gpu) and wp.is_mempool_enabled(gpu)
    before = wp.get_mempool_used_mem_current(gpu)
    a = wp.zeros(1000, dtype=float)
    assert wp.get_mempool_used_mem_current(gpu) == before + 4000 and wp.get_mempool_used_mem_high(gpu) >= 4000
    wp.set_mempool_release_threshold(gpu, 1 << 20)
    assert wp.get_mempool_release_threshold(gpu) == 1 << 20
    wp.set_mempool_release_threshold(gpu, 0.5)
    assert wp.get_mempool_release_threshold(gpu) == gpu.total_memory // 2
    driver.calls.clear()
    with wp.ScopedMempool(gpu, False):
        b = wp.zeros(3, dtype=float)
        assert b.memory_kind == wp.MemoryKind.CUDA_DEVICE and driver.names()[0] == "cuMemAlloc"
    assert wp.is_mempool_enabled(gpu) and a.memory_kind == wp.MemoryKind.CUDA_MEMPOOL
    del b
    gc.collect()
    assert driver.names()[-1] == "cuMemFree"


def test_access_between_gpus(driver):
    one, other = wp.get_cuda_devices()
    assert wp.is_peer_access_supported(one, other) and not wp.is_peer_access_enabled(one, other)
    with wp.ScopedPeerAccess(one, other, True), wp.ScopedMempoolAccess(one, other, True):
        assert driver.peers == {(1, 0)} and wp.is_peer_access_enabled(one, other)
        assert wp.is_mempool_access_enabled(one, other) and not wp.is_mempool_access_enabled(other, one)
        assert wp.can_access(other, wp.zeros(1, device=one)) and not wp.can_access(one, wp.zeros(1, device=other))
    assert driver.peers == set() and not wp.is_mempool_access_enabled(one, other)
    assert not wp.is_peer_access_supported(one, "cpu")


def test_memory_and_events_of_other_processes(gpu, driver):
    with pytest.raises(wp.DeviceError, match="pool is not shared"):
        wp.zeros(3, dtype=float).ipc_handle()
    with wp.ScopedMempool(gpu, False):
        a = wp.array([1.0, 2.0, 3.0], dtype=float)
    seen = wp.from_ipc_handle(a.ipc_handle(), dtype=float, shape=3, device=gpu)
    assert seen.list() == [1.0, 2.0, 3.0]
    del seen
    gc.collect()
    assert driver.names()[-1] == "cuIpcCloseMemHandle"
    event = wp.Event(gpu, interprocess=True)
    other = wp.event_from_ipc_handle(event.ipc_handle(), gpu)
    wp.get_stream().wait_event(other)
    with pytest.raises(wp.DeviceError, match="interprocess=True"):
        wp.Event(gpu).ipc_handle()
    with pytest.raises(wp.DeviceError, match="cpu cannot be shared|memory of cpu"):
        wp.zeros(3, device="cpu").ipc_handle()


def test_allocators(gpu, driver):
    class Counting:
        def __init__(self, inner):
            self.inner, self.taken, self.given = inner, 0, 0

        def allocate(self, size_in_bytes):
            self.taken += 1
            return self.inner.allocate(size_in_bytes)

        def deallocate(self, ptr, size_in_bytes):
            self.given += 1
            self.inner.deallocate(ptr, size_in_bytes)

    counting = Counting(gpu.default_allocator)
    with wp.ScopedAllocator(gpu, counting):
        a = wp.zeros(5, dtype=float)
    assert counting.taken == 1 and a.list() == [0.0] * 5 and wp.get_device_allocator(gpu) is not counting
    del a
    gc.collect()
    assert counting.given == 1
    with wp.ScopedAllocator(gpu, wp.CudaManagedAllocator(gpu)):
        b = wp.full(3, 2.0, dtype=float)
    assert "cuMemAllocManaged" in driver.names() and b.list() == [2.0] * 3


def test_memory_that_must_not_be_changed(gpu):
    own = wp.array(np.arange(6, dtype=np.float32).reshape(2, 3))
    fixed = Shown(own, data=(own.ptr, True))
    with pytest.raises(wp.LaunchTypeError, match="must not be changed"):
        wp.launch(double, dim=2, inputs=[fixed])
    seen = wp.array(fixed, copy=False)
    assert seen.ptr == own.ptr and seen.__cuda_array_interface__["data"] == (own.ptr, True)
    assert seen[1].__cuda_array_interface__["data"][1] and not own.__cuda_array_interface__["data"][1]
    with pytest.raises(wp.ArrayError, match="DLPack cannot describe"):
        seen.__dlpack__()  # the first version of DLPack has no word for it
    capsule = seen.__dlpack__(max_version=(1, 0))
    name, pointer, _ = dlpack._capsules()
    assert ctypes.c_uint64.from_address(pointer(capsule, name(capsule)) + 24).value & 1
    assert wp.from_dlpack(capsule).__cuda_array_interface__["data"] == (own.ptr, True)


def test_dimensions_without_a_stride(gpu):
    """One element stands for many: it is read as often as asked, copied, downloaded, and added to in any order."""
    one = wp.array(np.float32([[1.0], [2.0]]))
    wide = wp.array(ptr=one.ptr, dtype=float, shape=(2, 4), strides=(4, 0))
    assert wide.numpy().tolist() == [[1.0] * 4, [2.0] * 4] and wide.__cuda_array_interface__["strides"] == (4, 0)
    shown = wp.array(Shown(wide), copy=False)
    assert shown.strides == (4, 0) and wp.clone(shown).numpy().tolist() == wide.numpy().tolist()
    out = wp.zeros((2, 4), dtype=float)
    wp.copy(out, wide)
    assert out.numpy().tolist() == wide.numpy().tolist() and wide.contiguous().strides == (16, 4)
    wp.launch(gathered, dim=(2, 4), inputs=[out, wide])
    assert one.numpy().tolist() == [[5.0], [10.0]]
    wide.fill_(3.0)
    assert one.numpy().tolist() == [[3.0], [3.0]]
    wide.assign(out)
    assert one.numpy().tolist() == [[1.0], [2.0]]
    gaps, source = wp.zeros((3, 4), dtype=float), wp.array(np.arange(12, dtype="f4").reshape(4, 3)).transpose()
    wp.copy(gaps[:, 1:3], source, dest_offset=1, src_offset=2, count=4)
    assert gaps.numpy()[:, 1:3].reshape(-1).tolist() == [0.0, *source.numpy().reshape(-1)[2:6], 0.0]


@wp.kernel
def gathered(x: wp.array2d(dtype=float), sums: wp.array2d(dtype=float)):
    i, j = wp.tid()
    wp.atomic_add(sums, i, j, x[i, j])
