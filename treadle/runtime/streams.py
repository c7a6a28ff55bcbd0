"""Streams and events. On a CPU every launch is finished when it returns, so waiting is nothing there; other devices
have classes of their own, which derive from these."""

from __future__ import annotations

import threading
import time
from typing import Any

from .device import Device, get_device, known_devices, own


class Event:
    """A point in the work of a stream. ``enable_timing``: whether it keeps its time; ``interprocess``: whether other
    processes may wait for it, which GPUs can do."""

    def __new__(cls, device: Any = None, *args: Any, **kwargs: Any) -> Any:
        return object.__new__(get_device(device).stream_classes()[1])

    def __init__(self, device: Any = None, enable_timing: bool = False, interprocess: bool = False):
        self.device: Device = get_device(device)
        self.enable_timing = enable_timing
        self.time: float | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all work before the event is finished; on a CPU always."""
        return True

    def synchronize(self) -> None:
        """Wait for the work before the event."""

    def until(self, other: Event) -> float:
        """Milliseconds from this event to a later one, both recorded."""
        return ((other.time or 0.0) - (self.time or 0.0)) * 1e3


class Stream:
    """A queue of work. On the CPU each piece is finished before the next call, so streams only keep names apart."""

    def __new__(cls, device: Any = None, *args: Any, **kwargs: Any) -> Any:
        return object.__new__(get_device(device).stream_classes()[0])

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any):
        self.device: Device = get_device(device)
        self.priority = priority

    @property
    def is_capturing(self) -> bool:
        """Whether this thread's operations on the stream's device are captured for a graph."""
        return self.device.is_capturing

    @property
    def is_complete(self) -> bool:
        """Whether all work given to the stream is finished; on a CPU always."""
        return True

    def synchronize(self) -> None:
        """Wait for all work given to the stream."""

    def record_event(self, event: Event | None = None) -> Event:
        """Mark this point of the stream with ``event``, a new one if left out."""
        event = event or Event(self.device)
        event.time = time.perf_counter()
        return event

    def wait_event(self, event: Event, external: bool = False) -> None:
        """Let later work of this stream begin after ``event``."""

    def wait_stream(self, other_stream: Stream, event: Event | None = None) -> None:
        """Let later work of this stream begin after all work of ``other_stream``."""


_streams: dict[Device, Stream] = {}


def get_stream(device: Any = None) -> Stream:
    """The current stream of a device."""
    where = get_device(device)
    found = _of_thread().get(where) if own else None
    if found is None:
        found = _streams.get(where)
    return _streams.setdefault(where, Stream(where)) if found is None else found


def _of_thread() -> dict[Device, Stream]:
    """The current streams that this thread has for itself (``device.apart``)."""
    mine = own.get(threading.get_ident())
    return {} if mine is None else mine.streams


def forget(device: Device) -> None:
    """The device is no longer used."""
    _streams.pop(device, None)


def known(device: Device) -> bool:
    """Whether ``device`` has a current stream already."""
    return device in _streams


def set_stream(stream: Stream, device: Any = None, sync: bool = False) -> None:
    """Make ``stream`` the current one of its device. ``sync``: it waits for the one that was current."""
    if not isinstance(stream, Stream):
        raise TypeError(f"a device's current stream is a Stream, not {type(stream).__name__}")
    where = get_device(device) if device is not None else stream.device
    mine = own.get(threading.get_ident())
    streams = _streams if mine is None else mine.streams
    before = streams.get(where) or _streams.get(where)
    if sync and before is not None and before is not stream:
        stream.wait_stream(before)
    streams[where] = stream


class ScopedStream:
    """``with wp.ScopedStream(stream):`` makes a stream and its device current for a block; None changes nothing.

    ``sync_enter``: the stream waits for the one that was current before; ``sync_exit``: that waits for this one.
    """

    def __init__(self, stream: Stream | None, sync_enter: bool = True, sync_exit: bool = False):
        self.stream, self.sync_enter, self.sync_exit = stream, sync_enter, sync_exit
        self._saved: tuple[Stream, Device] | None = None

    def __enter__(self) -> Stream | None:
        if self.stream is not None:
            self._saved = get_stream(self.stream.device), get_device()
            set_stream(self.stream, sync=self.sync_enter)
            self.stream.device.make_current()
        return self.stream

    def __exit__(self, *exc: object) -> None:
        if self._saved is not None:
            set_stream(self._saved[0], sync=self.sync_exit)
            self._saved[1].make_current()


def record_event(event: Event | None = None) -> Event:
    """Mark this point of the current stream."""
    return get_stream().record_event(event)


def wait_event(event: Event) -> None:
    """Let later work of the current stream begin after ``event``."""
    get_stream().wait_event(event)


def wait_stream(stream: Stream, event: Event | None = None) -> None:
    """Let later work of the current stream begin after all work of ``stream``."""
    get_stream().wait_stream(stream, event)


def get_event_elapsed_time(start_event: Event, end_event: Event, synchronize: bool = True) -> float:
    """Milliseconds between two recorded events. ``synchronize``: wait until the later one is reached.

    Raises:
        RuntimeError: one of them was not recorded or keeps no time.
    """
    if start_event.time is None or end_event.time is None:
        raise RuntimeError("both events must be recorded before the time between them can be asked for")
    if not (start_event.enable_timing and end_event.enable_timing):
        raise RuntimeError("make events with enable_timing=True to ask for the time between them")
    if synchronize:
        end_event.synchronize()
    return start_event.until(end_event)


def synchronize() -> None:
    """Wait for all work of all devices."""
    for device in known_devices():
        device.synchronize()


def synchronize_device(device: Any = None) -> None:
    """Wait for all work of one device."""
    get_device(device).synchronize()


def synchronize_stream(stream_or_device: Any = None) -> None:
    """Wait for all work of one stream, or of the current stream of a device."""
    stream = stream_or_device if isinstance(stream_or_device, Stream) else get_stream(stream_or_device)
    stream.synchronize()


def synchronize_event(event: Event) -> None:
    """Wait for the work before ``event``."""
    event.synchronize()
