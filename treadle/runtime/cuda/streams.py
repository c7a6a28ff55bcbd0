"""Streams and events of a GPU: the driver's, or those of another library over the same context."""

from __future__ import annotations

import time
import weakref
from typing import TYPE_CHECKING, Any

from ...base.errors import DeviceError
from .. import streams
from ..device import get_device

if TYPE_CHECKING:
    from .gpu import Gpu

# Streams of programs and the legacy stream, which PyTorch and CuPy use if nobody says otherwise, wait for each other.
_WITH_LEGACY = 0  # CU_STREAM_DEFAULT
_APART = 1  # CU_STREAM_NON_BLOCKING
_NO_TIMING, _BLOCKING_SYNC, _INTERPROCESS = 2, 1, 4  # CU_EVENT_DISABLE_TIMING, CU_EVENT_BLOCKING_SYNC, …
_WAIT_EXTERNAL = 1  # CU_EVENT_WAIT_EXTERNAL: a node of a graph, where that is captured


class CudaEvent(streams.Event):
    """A point in the work of a stream of a GPU.

    Args:
        device: the GPU.
        cuda_event: the handle of an event of the driver's to use; the caller keeps it.
        enable_timing: whether the time between it and others can be asked for.
        interprocess: whether other processes can wait for it; it keeps no time then.
    """

    device: Gpu

    def __init__(self, device: Any = None, cuda_event: int | None = None, enable_timing: bool = False,
                 interprocess: bool = False):  # fmt: skip
        super().__init__(device, enable_timing, interprocess)
        if interprocess and enable_timing:
            raise DeviceError("an event for other processes keeps no time; leave enable_timing out")
        self.interprocess = interprocess
        if cuda_event is not None:
            self.handle, self.time = int(cuda_event), 0.0
            return
        driver = self.device.driver
        flags = (0 if enable_timing else _NO_TIMING) | (_INTERPROCESS if interprocess else 0)
        with self.device.entered:
            self.handle = int(driver.cuEventCreate(flags))
        weakref.finalize(self, self.device.drop, "cuEventDestroy", self.handle).atexit = False

    @property
    def cuda_event(self) -> int:
        """The driver's handle."""
        return self.handle

    @property
    def is_complete(self) -> bool:
        """Whether all work before the event is finished."""
        with self.device.entered:
            return self.device.driver.ready("cuEventQuery", self.handle)

    def synchronize(self) -> None:
        """Wait for the work before the event."""
        with self.device.entered:
            self.device.driver.cuEventSynchronize(self.handle)
        self.device.queue.reports.look()

    def until(self, other: streams.Event) -> float:
        """Milliseconds from this event to a later one."""
        with self.device.entered:
            return float(self.device.driver.cuEventElapsedTime(self.handle, other.handle))  # type: ignore[attr-defined]

    def ipc_handle(self) -> bytes:
        """What another process makes this event of, with ``wp.event_from_ipc_handle``."""
        if not self.interprocess:
            raise DeviceError("an event for other processes is made with interprocess=True")
        with self.device.entered:
            return bytes(self.device.driver.cuIpcGetEventHandle(self.handle).reserved)


class CudaStream(streams.Stream):
    """A queue of work of a GPU.

    Args:
        device: the GPU.
        priority: lower numbers go first; what the GPU does not have is taken as the nearest that it has.
        cuda_stream: the handle of a stream to use, as of PyTorch or JAX; the caller keeps it.
        apart: whether it does not wait for the legacy stream, nor that for it.
    """

    device: Gpu

    def __init__(self, device: Any = None, priority: int = 0, cuda_stream: int | None = None, apart: bool = False):
        super().__init__(device, priority)
        where = self.device
        self.owner = cuda_stream is None
        with where.entered:
            if cuda_stream is None:
                least, greatest = where.priorities
                self.priority = max(min(priority, least), greatest)
                flags = _APART if apart else _WITH_LEGACY
                self.handle = int(where.driver.cuStreamCreateWithPriority(flags, self.priority))
            else:
                self.handle = int(cuda_stream)
        where.streams.add(self)
        weakref.finalize(self, where.leave, self.handle, self.owner).atexit = False

    @property
    def cuda_stream(self) -> int:
        """The driver's handle."""
        return self.handle

    @property
    def is_captured(self) -> bool:
        """Whether somebody captures what is given to the stream, for a graph of the driver's."""
        none = self.device.driver.enum("CUstreamCaptureStatus", "CU_STREAM_CAPTURE_STATUS_NONE")
        with self.device.entered:
            return self.device.driver.cuStreamIsCapturing(self.handle) != none

    @property
    def borrowed(self) -> bool:
        """Whether it is another library's, which captures it now."""
        return not self.owner and self.is_captured

    @property
    def is_complete(self) -> bool:
        """Whether all work given to the stream is finished."""
        with self.device.entered:
            return self.device.driver.ready("cuStreamQuery", self.handle)

    def synchronize(self) -> None:
        """Wait for all work given to the stream.

        Raises:
            IndexOutOfRange, KernelAssertionError, …: what a kernel reported meanwhile.
        """
        reports = self.device.queue.reports
        given = reports.number()
        with self.device.entered:
            self.device.driver.cuStreamSynchronize(self.handle)
        reports.look(self.handle, given)

    def record_event(self, event: streams.Event | None = None) -> streams.Event:
        """Mark this point of the stream with ``event``, a new one if left out."""
        event = event or CudaEvent(self.device)
        if event.device is not self.device:
            raise DeviceError(f"an event of {event.device} cannot be recorded on a stream of {self.device}")
        with self.device.entered:
            self.device.driver.cuEventRecord(event.handle, self.handle)
        event.time = time.perf_counter()
        return event

    def wait_event(self, event: streams.Event, external: bool = False) -> None:
        """Let later work of this stream begin after ``event``, which may be one of another GPU, or the CPU's."""
        if isinstance(event, CudaEvent):
            with self.device.entered:
                flags = _WAIT_EXTERNAL if external else 0
                self.device.driver.cuStreamWaitEvent(self.handle, event.handle, flags)

    def wait_stream(self, other_stream: streams.Stream, event: streams.Event | None = None) -> None:
        """Let later work of this stream begin after all work of ``other_stream``. A stream that another library
        captures waits for none that it does not, nor the other way round: whoever runs the graph sees to that."""
        if isinstance(other_stream, CudaStream):
            if self.borrowed != other_stream.borrowed:
                return
            if event is not None:
                self.wait_event(other_stream.record_event(event))
                return
            with other_stream.device.marker() as mark:
                self.wait_event(other_stream.record_event(mark))


def event_from_ipc_handle(handle: bytes, device: Any = None) -> CudaEvent:
    """The event that another process made, from what its ``ipc_handle()`` gave.

    Raises:
        DeviceError: it was made in this process, or the device cannot do that.
    """
    where = get_device(device)
    made = where.driver.module.CUipcEventHandle()  # type: ignore[attr-defined]
    made.reserved = handle
    with where.entered:  # type: ignore[attr-defined]
        return CudaEvent(where, cuda_event=int(where.driver.cuIpcOpenEventHandle(made)))  # type: ignore[attr-defined]
