"""A GPU of NVIDIA as a device: its context, its streams, its memory, its code."""

from __future__ import annotations

import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...base.binary import Binary
from ...base.errors import DeviceError, DeviceLostError
from ...base.logs import log_debug
from .. import streams as all_streams
from ..device import Device, far
from . import memory
from .driver import Driver
from .memory import taken
from .queue import Queue
from .streams import CudaEvent, CudaStream

_MARK = 48  # bits below which addresses of types lie


class _Entered:
    """``with device.entered:`` makes the device's context the current one of this thread for a block."""

    __slots__ = ("_device",)

    def __init__(self, device: Gpu):
        self._device = device

    def __enter__(self) -> Driver:
        device = self._device
        device.driver.cuCtxPushCurrent(device.context)
        return device.driver

    def __exit__(self, *exc: object) -> None:
        self._device.driver.cuCtxPopCurrent()


class _Lent(threading.local):
    """Streams of other libraries whose memory is an argument of this thread's next launch."""

    def __init__(self) -> None:
        self.streams: set[int] = set()


class Gpu(Device):
    """A GPU. Its context is the primary one, which the CUDA runtime, PyTorch and JAX use as well."""

    is_cuda = True
    is_primary = True
    exchange_code = 2  # kDLCUDA

    def __init__(self, driver: Driver, number: int):
        self.driver, self.ordinal, self.alias = driver, number, f"cuda:{number}"
        self.key, self.mark = self.alias, number + 1 << _MARK
        self.handle = driver.cuDeviceGet(number)
        name = driver.cuDeviceGetName(256, self.handle)
        self.name = name.split(b"\0")[0].decode()
        self.arch = 10 * self._is("COMPUTE_CAPABILITY_MAJOR") + self._is("COMPUTE_CAPABILITY_MINOR")
        self.sm_count = self._is("MULTIPROCESSOR_COUNT")
        self.threads = self.sm_count * self._is("MAX_THREADS_PER_MULTIPROCESSOR")
        self.max_shared_memory_per_block = self._is("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        self.is_uva = bool(self._is("UNIFIED_ADDRESSING"))
        self.is_mempool_supported = bool(self._is("MEMORY_POOLS_SUPPORTED"))
        self.is_ipc_supported = self.is_uva and sys.platform.startswith("linux")
        self.is_managed_memory_supported = bool(self._is("MANAGED_MEMORY"))
        self.is_concurrent_managed_access_supported = bool(self._is("CONCURRENT_MANAGED_ACCESS"))
        self.is_cpu_memory_access_from_gpu_supported = bool(self._is("PAGEABLE_MEMORY_ACCESS"))
        self.is_cpu_gpu_atomic_supported = bool(self._is("HOST_NATIVE_ATOMIC_SUPPORTED"))
        self.pci_bus_id = driver.cuDeviceGetPCIBusId(16, self.handle).split(b"\0")[0].decode()
        self.entered = _Entered(self)
        self.streams: weakref.WeakSet[CudaStream] = weakref.WeakSet()
        self.heap = memory.Heap(self)
        self.queue = Queue(self)
        self._context: Any = None
        self._quick: Any = None  # native launchers, once they are needed
        self._reaper: CudaStream | None = None
        self._marks: list[CudaEvent] = []  # that nobody records now
        self.lent = _Lent()
        self._later: deque[tuple[str, int]] = deque()  # what could not be destroyed yet
        self._building = self._threads_heap = 0
        self._allocator: _Allocator | None = None
        self._peers: set[int] = set()
        self._external: weakref.WeakValueDictionary[int, CudaStream] = weakref.WeakValueDictionary()

    def _is(self, what: str) -> int:
        return self.driver.cuDeviceGetAttribute(
            self.driver.enum("CUdevice_attribute", f"CU_DEVICE_ATTRIBUTE_{what}"), self.handle
        )

    # ---- context and streams

    @property
    def context(self) -> Any:  # type: ignore[override]
        """The driver's handle of the primary context, which is made when it is needed."""
        if self._context is None:
            self._context = self.driver.cuDevicePrimaryCtxRetain(self.handle)
        return self._context

    @property
    def has_context(self) -> bool:  # type: ignore[override]
        """Whether the context was needed yet."""
        return self._context is not None

    @property
    def uuid(self) -> str:  # type: ignore[override]
        """The driver's name for this very GPU."""
        raw = bytes(self.driver.cuDeviceGetUuid(self.handle).bytes).hex()
        return "GPU-" + "-".join([raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:]])

    @property
    def priorities(self) -> tuple[int, int]:
        """The least and the greatest priority of streams; lower numbers go first."""
        return self.driver.cuCtxGetStreamPriorityRange()

    def stream_classes(self) -> tuple[type, type]:
        return CudaStream, CudaEvent

    @property
    def null_stream(self) -> CudaStream:
        """The stream that all of CUDA's older programs share."""
        return self.external_stream(0)

    def external_stream(self, handle: int) -> CudaStream:
        """The stream for one of another library, by its handle."""
        found = self._external.get(handle)
        if found is None:
            found = self._external[handle] = CudaStream(self, cuda_stream=handle)
        return found

    @contextmanager
    def marker(self) -> Iterator[CudaEvent]:
        """An event that nobody else records in the block: not another thread, nor what goes meanwhile, a stream say,
        whose end may run between any two steps. The driver keeps what waits were given, so later it serves again."""
        try:
            event = self._marks.pop()
        except IndexError:
            event = CudaEvent(self)
        try:
            yield event
        finally:
            self._marks.append(event)

    @property
    def is_captured(self) -> bool:
        """Whether somebody captures a stream of this device."""
        return self._building > 0 or any([s.borrowed for s in list(self.streams)])

    @contextmanager
    def building(self) -> Iterator[None]:
        """In the block a graph is built: nothing is freed meanwhile."""
        self._building += 1
        try:
            yield
        finally:
            self._building -= 1

    def last(self) -> int:
        """The handle of a stream on which all work given to the device so far is done."""
        known = list(self.streams)
        if len(known) == 1:
            return known[0].handle
        for each in known:
            if each is not self.reaper:
                self.reaper.wait_stream(each)
        return self.reaper.handle

    @property
    def reaper(self) -> CudaStream:
        """The stream of what nobody else's work is: memory that goes back, or comes while somebody captures."""
        if self._reaper is None:
            self._reaper = CudaStream(self, apart=True)
        return self._reaper

    def follow(self, first: int, then: int) -> None:
        """Let later work of the stream with handle ``then`` begin after all work of ``first``, as
        :meth:`CudaStream.wait_stream`."""
        if first == then:
            return
        with self.entered as driver:
            if driver.cuStreamIsCapturing(first) == driver.cuStreamIsCapturing(then):
                self._order(driver, first, then)

    def _order(self, driver: Driver, first: int, then: int) -> None:
        """The same where neither is captured, or both are; the context is current."""
        with self.marker() as mark:
            driver.cuEventRecord(mark.handle, first)
            driver.cuStreamWaitEvent(then, mark.handle, 0)

    def lend(self, stream: int) -> None:
        """Memory that another library works on, on its stream of that handle, is an argument of the launch to come:
        its later work begins after that."""
        self.lent.streams.add(stream)

    def give_back(self) -> None:
        """A launch was given to the current stream: streams that lent memory for it wait."""
        own, lenders = self.stream.handle, self.lent.streams
        while lenders:
            self.follow(own, lenders.pop())

    def forget_lenders(self) -> None:
        self.lent.streams.clear()

    def leave(self, handle: int, owned: bool) -> None:
        """A stream goes. What is freed from now on waits for the work that was given to it."""
        if self._context is None:
            return
        try:
            with self.entered as driver:
                none = driver.enum("CUstreamCaptureStatus", "CU_STREAM_CAPTURE_STATUS_NONE")
                if driver.cuStreamIsCapturing(handle) == none:
                    self._order(driver, handle, self.reaper.handle)
                if owned:
                    driver.cuStreamDestroy(handle)
        except DeviceError:
            return  # it has gone with the device, or who made it has destroyed it

    def drop(self, function: str, handle: int) -> None:
        """Call a function of the driver that destroys something, in the device's context; later, while somebody
        captures."""
        if self._context is None:
            return
        self._later.append((function, handle))
        if self.is_captured:
            return
        try:
            with self.entered:
                for name, one in taken(self._later):
                    if name == "cuModuleUnload":  # no kernel may be under way there
                        self.driver.cuCtxSynchronize()
                    getattr(self.driver, name)(one)
        except DeviceLostError:
            return  # it has gone with the device

    def wait(self) -> None:
        """Wait for all work given to the device, whatever that reports; not while somebody captures."""
        if self._context is None or self.is_captured:
            return
        try:
            with self.entered:
                self.driver.cuCtxSynchronize()
        except DeviceLostError:
            return  # nothing works any more

    def synchronize(self) -> None:
        """Wait for all work given to the device.

        Raises:
            IndexOutOfRange, KernelAssertionError, …: what a kernel reported meanwhile.
            DeviceLostError: a kernel used memory that is none, or the like.
        """
        if self._context is None:
            return
        reports = self.queue.reports
        given = reports.number()
        with self.entered:
            self.driver.cuCtxSynchronize()
            self.heap.settle()
        reports.look(None, given)

    # ---- memory

    @property
    def pool(self) -> Any:  # type: ignore[override]
        """What arrays take memory from, where the GPU has pools."""
        return self.heap if self.is_mempool_supported else None

    def share(self, a: Any) -> bytes:
        from .shared import handle_of

        return handle_of(a)

    def allocate(self, nbytes: int, zeroed: bool) -> tuple[Any, int, int]:
        return self.heap.allocate(nbytes, zeroed)

    reserve = allocate

    def clear(self, address: int, nbytes: int) -> None:
        self.queue.call("zero", (address, 0, nbytes), (0,), nbytes)

    pinned_memory = allocate  # the memory of a GPU's arrays is its own

    def host_memory(self, nbytes: int, zeroed: bool) -> tuple[Any, int, int]:
        """Host memory that this device reads and writes by itself, as :meth:`allocate` gives memory."""
        return memory.pinned(self, nbytes, zeroed)

    def memory_kind(self, memory: Any) -> int:
        return getattr(memory, "kind", 3)

    def reaches(self, a: Any) -> bool:
        return a.device is self or (a.device.queue is not None and self.can_access(a.device))

    def device_at(self, address: int) -> Device | None:
        """Which GPU has the memory at an address; None where it is the host's."""
        driver = self.driver
        kind = driver.enum("CUpointer_attribute", "CU_POINTER_ATTRIBUTE_MEMORY_TYPE")
        status, *found = driver.module.cuPointerGetAttribute(kind, address)
        here = driver.enum("CUmemorytype", "CU_MEMORYTYPE_DEVICE")
        if status != driver.module.CUresult.CUDA_SUCCESS or int(found[0]) != int(here):
            return None  # memory that the driver does not know is the host's
        number = driver.cuPointerGetAttribute(
            driver.enum("CUpointer_attribute", "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL"), address
        )
        return next((each for each in far if each.ordinal == int(number)), None)

    def interface(self, a: Any) -> dict[str, Any]:
        from .exchange import interface

        return interface(a)

    def hand_over(self, stream: Any) -> None:
        from .exchange import hand_over

        hand_over(self, stream)

    def stream_number(self) -> int:
        from .exchange import number_of

        return number_of(self)

    @property
    def is_mempool_enabled(self) -> bool:  # type: ignore[override]
        """Whether arrays come from the pool."""
        return self.heap.pooled

    @property
    def default_allocator(self) -> Any:
        """The built-in allocator."""
        if self._allocator is None:
            self._allocator = _Allocator(self)
        return self._allocator

    @property
    def pinned_allocator(self) -> Any:
        """What allocates pinned host memory."""
        return _Pinned(self)

    @property
    def total_memory(self) -> int:
        """Bytes of memory the GPU has."""
        return int(self.driver.cuDeviceTotalMem(self.handle))

    @property
    def free_memory(self) -> int:
        """Bytes of memory free now."""
        with self.entered:
            return int(self.driver.cuMemGetInfo()[0])

    def can_access(self, other: Device) -> bool:
        """Whether kernels of this device can use memory of ``other`` now."""
        if isinstance(other, Gpu):
            return other is self or other.ordinal in self._peers
        return self.is_cpu_memory_access_from_gpu_supported

    def can_peer(self, other: Device) -> bool:
        """Whether it could."""
        return isinstance(other, Gpu) and (
            other is self or bool(self.driver.cuDeviceCanAccessPeer(self.handle, other.handle))
        )

    def peer(self, other: Gpu, enable: bool) -> None:
        """Let kernels of this device use memory of ``other``, or no longer.

        Raises:
            DeviceError: they cannot.
        """
        if other is self or enable == (other.ordinal in self._peers):
            return
        if enable and not self.can_peer(other):
            raise DeviceError(f"{self} cannot use memory of {other}")
        with self.entered:
            if enable:
                self.driver.cuCtxEnablePeerAccess(other.context, 0)
                self._peers.add(other.ordinal)
            else:
                self.driver.cuCtxDisablePeerAccess(other.context)
                self._peers.discard(other.ordinal)

    # ---- code

    def heap_of_threads(self, nbytes: int) -> None:
        """Let threads have so many bytes by ``malloc``; only before the first kernel that does so is loaded."""
        if not self._threads_heap:
            self._threads_heap = nbytes
            with self.entered:
                try:
                    self.driver.cuCtxSetLimit(self.driver.enum("CUlimit", "CU_LIMIT_MALLOC_HEAP_SIZE"), nbytes)
                except DeviceLostError:
                    raise
                except DeviceError as error:  # another library's kernels have used it before: it stays as it is
                    log_debug(f"{self}: threads keep the memory that they have by malloc: {error.message}")

    @property
    def quick(self) -> Any:
        """What native code is told of the device."""
        if self._quick is None:
            from .quick import Quick

            self._quick = Quick(self)
        return self._quick

    def quicken(self, known: dict[Any, Any], program: Any, exact: Any) -> None:
        if self not in known:
            known[self] = self.quick.launcher()
        self.quick.add(known[self], program, exact)

    def graph(self, made: Any) -> Any:
        from .graph import GpuGraph

        return GpuGraph(made)

    def load(self, binary: Binary) -> Any:
        from .modules import load

        return load(self, binary)

    def prepare(self) -> None:
        with self.entered:
            all_streams.get_stream(self)


class _Allocator:
    """A GPU's own allocator, as programs see it."""

    def __init__(self, device: Gpu):
        self.device = device

    def allocate(self, size_in_bytes: int) -> int:
        """The address of a new block."""
        return self.device.heap.take(max(size_in_bytes, 1))

    def deallocate(self, ptr: int, size_in_bytes: int) -> None:
        """Give a block back, once all work given to the device so far is done."""
        self.device.heap.give(ptr)


class _Pinned:
    """What allocates pinned host memory, as programs see it."""

    def __init__(self, device: Gpu):
        self.device, self._blocks = device, {}

    def allocate(self, size_in_bytes: int) -> int:
        """The address of a new block."""
        buffer, _, address = memory.pinned(self.device, size_in_bytes, False)
        self._blocks[address] = buffer
        return address

    def deallocate(self, ptr: int, size_in_bytes: int) -> None:
        """Give a block back."""
        if self._blocks.pop(ptr, None) is None:
            raise RuntimeError(f"no block of this allocator begins at {ptr:#x}")
