"""Devices by name, and which of them is current. A device allocates memory and loads and runs binaries."""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..base.binary import Binary
from ..base.errors import DeviceError
from ..base.forks import fresh_lock


class Device:
    """Where arrays lie and kernels run. Compares equal to its alias, so ``device == "cpu"`` works."""

    alias = ""
    name = ""
    ordinal = -1
    is_cpu = False
    is_cuda = False
    is_primary = False
    is_uva = False
    is_mempool_supported = False
    is_mempool_enabled = False
    is_ipc_supported = False
    is_cubin_supported = False
    arch = 0
    sm_count = 0
    max_shared_memory_per_block = 0
    pci_bus_id = None
    uuid = None
    context = None
    key = ""  # stands for a device where code for it is kept; devices of host memory share their code
    queue: Any = None  # what takes operations on memory that the host cannot reach; None: that is done by the host
    pool: Any = None  # the pool that arrays may come from, where the device has one
    captures = True  # whether graphs of its operations can be captured
    mark = 0  # what is added to types in `array._desc`, so that native launchers know their own device's arrays
    exchange_code = 1  # of its memory in DLPack's words: kDLCPU
    is_managed_memory_supported = False
    is_concurrent_managed_access_supported = False
    is_cpu_memory_access_from_gpu_supported = False
    is_gpu_memory_access_from_cpu_supported = False
    is_cpu_gpu_atomic_supported = False
    has_context = False

    def __str__(self) -> str:
        return self.alias

    def __repr__(self) -> str:
        return f"'{self.alias}'"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return self.alias == other
        return self is other

    def __hash__(self) -> int:
        return hash(self.alias)

    def can_access(self, other: Device) -> bool:
        """Whether kernels of this device can use memory of ``other``."""
        return self is other

    def make_current(self) -> None:
        """Make this the device that is used where none is named."""
        set_device(self)

    def prepare(self) -> None:
        """Do now what the first launch would otherwise wait for."""

    def allocate(self, nbytes: int, zeroed: bool) -> tuple[Any, int, int]:
        """Memory of ``nbytes``: a buffer that owns it, the offset of the block in it, and the block's address."""
        raise NotImplementedError

    def reserve(self, nbytes: int, zeroed: bool) -> tuple[Any, int, int]:
        """:meth:`allocate`, whatever allocator is set."""
        return type(self).allocate(nbytes, zeroed)  # type: ignore[call-arg, arg-type]

    def clear(self, address: int, nbytes: int) -> None:
        """Set bytes of the device's memory to zero."""
        ctypes.memset(address, 0, nbytes)

    def load(self, binary: Binary) -> Any:
        """Make the code of ``binary`` callable."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Wait for all work given to this device."""

    def reaches(self, a: Any) -> bool:
        """Whether what this device does can use the memory of ``a`` at the time it is done."""
        return a.device.queue is None

    def hand_over(self, stream: Any) -> None:
        """Let work of another library's ``stream``, as DLPack numbers them, begin after what was given to this device.

        Raises:
            TypeError: it is a stream that the device does not have.
        """
        if stream is not None and stream != -1:
            raise TypeError(f"DLPack stream must be None or -1 for CPU device, not {stream!r}")

    def external_stream(self, handle: int) -> Any:
        """The stream for one of another library, by its handle; on a CPU there is one queue of work."""
        return self.stream

    def forget_lenders(self) -> None:
        """No launch of this thread is to come whose arguments other libraries lent."""

    def stream_number(self) -> int | None:
        """What DLPack calls the current stream; None where there is nothing to wait for."""
        return None

    def can_peer(self, other: Device) -> bool:
        """Whether its kernels could use memory of ``other``, if they were allowed to: GPUs only."""
        return False

    def quicken(self, known: dict[Any, Any], program: Any, exact: Any) -> None:
        """Let the native launcher for this device in ``known``, made if it is missing, use ``program``; only for
        devices that have none otherwise. ``exact``: see :func:`treadle.runtime.fast.add`."""

    def pinned_memory(self, nbytes: int, zeroed: bool) -> tuple[Any, int, int]:
        """Host memory that GPUs read and write by themselves, as :meth:`allocate` gives memory; any host memory where
        no GPU is in use."""
        return far[0].host_memory(nbytes, zeroed) if far else self.allocate(nbytes, zeroed)  # type: ignore[attr-defined]

    def share(self, a: Any) -> bytes:
        """What other processes make an array of.

        Raises:
            DeviceError: memory of the device is not shared so.
        """
        raise DeviceError(f"memory of {self} is not shared with other processes by handles")

    def memory_kind(self, memory: Any) -> int:
        """Which of :class:`MemoryKind` the memory of an array is: that of the host."""
        return 2 if getattr(memory, "pinned", False) else 1

    def interface(self, a: Any) -> dict[str, Any]:
        """The ``__cuda_array_interface__`` of an array.

        Raises:
            AttributeError: it lies elsewhere.
        """
        raise AttributeError(f"the array lies on {self}, not on a GPU")

    def graph(self, made: Any) -> Any:
        """The graph of a capture on this device."""
        from .graph import Graph

        return Graph(made)

    def stream_classes(self) -> tuple[type, type]:
        """The classes of its streams and of its events."""
        from .streams import Event, Stream

        return Stream, Event

    @property
    def is_capturing(self) -> bool:
        """Whether this thread's operations on the device are captured for a graph."""
        from . import capture

        now = capture.here() if capture.active else None
        return now is not None and now.device is self

    @property
    def stream(self) -> Any:
        """The device's current stream."""
        from .streams import get_stream

        return get_stream(self)

    @property
    def has_stream(self) -> bool:
        """Whether the device has a stream that was made or asked for."""
        from .streams import known

        return known(self)

    def set_stream(self, stream: Any, sync: bool = True) -> None:
        """Make ``stream`` the device's current one."""
        from .streams import set_stream

        set_stream(stream, self, sync)

    @property
    def default_allocator(self) -> Any:
        """The built-in allocator."""
        from .allocators import default_allocator

        return default_allocator()

    pinned_allocator = default_allocator  # all memory here can be copied from directly

    def get_allocator(self, pinned: bool = False) -> Any:
        """The allocator that new arrays take their memory from."""
        from .allocators import get_device_allocator

        return get_device_allocator(self)

    @property
    def total_memory(self) -> int:
        """Bytes of memory the device has; 0 where the system does not say."""
        return _pages("SC_PHYS_PAGES")

    @property
    def free_memory(self) -> int:
        """Bytes of memory free now; 0 where the system does not say."""
        return _pages("SC_AVPHYS_PAGES")


def _pages(name: str) -> int:
    try:
        return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0


DeviceLike = Device | str | None  # for annotations: what names a device

class Own:
    """What is current for one thread alone: a device, and streams by device."""

    __slots__ = ("device", "streams")

    def __init__(self, device: Device, streams: dict[Device, Any]):
        self.device, self.streams = device, streams


_current: Device | None = None
here = True  # whether the current device works on the host's memory, in each thread
own: dict[int, Own] = {}  # by thread, of those that have something of their own
_lock = fresh_lock(globals(), threading.RLock)
_known: dict[str, Device] = {}
far: list[Device] = []  # those known whose memory the host cannot reach


def shown(facts: dict[str, Any], dtype: Any, owner: Any) -> Any:
    """An array over memory of a GPU that another library tells of by its array interface."""
    from .cuda.exchange import from_interface

    return from_interface(facts, dtype, owner)


def device_at(address: int) -> Device | None:
    """Which of the devices in :data:`far` has the memory at ``address``; None where it is the host's."""
    return far[0].device_at(address) if far else None  # type: ignore[attr-defined]


def give_name(alias: str, device: Device) -> None:
    """Let ``alias`` mean ``device`` as well."""
    _known[alias] = device


def take_name(alias: str) -> Device | None:
    """Let ``alias`` mean nothing; what it meant."""
    return _known.pop(alias, None)


def _find(alias: str) -> Device:
    found = _known.get(alias)
    if found is not None:
        return found
    if alias == "cpu":
        from .cpu import Cpu

        return _known.setdefault(alias, Cpu())
    if alias == "null":
        from .null import Null

        return _known.setdefault(alias, Null())
    if alias == "cuda" or alias.startswith("cuda:"):
        from .cuda import find

        return find(alias)
    raise ValueError(f"no device {alias!r}; devices: {', '.join(str(d) for d in get_devices())}")


def get_device(ident: Device | str | None = None) -> Device:
    """The device named ``ident``; the current one where it is None.

    Raises:
        ValueError: there is no such device.

    >>> import treadle as wp
    >>> wp.get_device("cpu").is_cpu
    True
    """
    if ident is None:
        if own and (mine := own.get(threading.get_ident())) is not None:
            return mine.device
        return _current or get_preferred_device()
    if isinstance(ident, Device):
        return ident
    if isinstance(ident, str):
        return _find(ident)
    device = getattr(ident, "device", None)
    if isinstance(device, Device):  # a stream
        return device
    raise TypeError(f"a device is named by a string, not {type(ident).__name__}")


def exchanged(kind: int, number: int) -> Device | None:
    """The device that DLPack's words mean, if there can be one: a GPU of NVIDIA.

    Raises:
        ValueError: it is not here.
    """
    return _find(f"cuda:{number}") if kind == 2 else None


def set_device(ident: Device | str) -> None:
    """Make ``ident`` the device that is used where none is named."""
    global _current
    found = get_device(ident)
    with _lock:
        mine = own.get(threading.get_ident())
        if mine is not None:
            mine.device = found
        else:
            _current = found
            if found.queue is not None:
                far.remove(found)
                far.insert(0, found)  # the one that "cuda" means
        _look_around()


def _look_around() -> None:
    """Find out anew whether all current devices work on the host's memory."""
    global here
    here = all([each.queue is None for each in (_current, *[mine.device for mine in own.values()]) if each is not None])


@contextmanager
def apart(device: Device, stream: Any = None) -> Iterator[None]:
    """In the block this thread has a current device of its own, which begins as ``device``, and current streams, which
    begin as ``stream``: what it makes current is so for nobody else, and nobody changes them meanwhile. For work on
    one stream, and for code that others call on threads of theirs."""
    thread = threading.get_ident()
    with _lock:
        before = own.get(thread)
        streams = {} if before is None else dict(before.streams)
        if stream is not None:
            streams[device] = stream
        own[thread] = Own(device, streams)
        _look_around()
    try:
        yield
    finally:
        with _lock:
            if before is None:
                del own[thread]
            else:
                own[thread] = before
            _look_around()


def get_preferred_device() -> Device:
    """The device used when nobody chose one."""
    global _current
    device = _find("cpu")
    if _current is None:
        _current = device
    return device


def get_devices() -> list[Device]:
    """All devices of this machine: the CPU, then the GPUs that can be used."""
    return [_find("cpu"), *get_cuda_devices()]


def known_devices() -> list[Device]:
    """The devices that somebody has used; asking for them wakes no driver."""
    return [_find("cpu"), *far]


def is_device_available(ident: Device | str) -> bool:
    """Whether ``ident`` names a device of this machine."""
    try:
        return get_device(ident) in get_devices()
    except ValueError:
        return False


def is_cpu_available() -> bool:
    """Whether kernels can run on the CPU: always."""
    return True


def is_cuda_available() -> bool:
    """Whether there is a CUDA device that can be used."""
    return bool(get_cuda_devices())


def get_cuda_device_count() -> int:
    """How many CUDA devices there are that can be used."""
    return len(get_cuda_devices())


def get_cuda_devices() -> list[Device]:
    """All CUDA devices that can be used: none where the driver, or the extra ``treadle[cuda]``, is missing."""
    from .cuda import devices

    return devices()


class ScopedDevice:
    """``with wp.ScopedDevice("cpu"):`` makes a device current for a block.

    >>> import treadle as wp
    >>> with wp.ScopedDevice("cpu") as device:
    ...     device.alias
    'cpu'
    """

    def __init__(self, device: Device | str | None):
        self.device = get_device(device)
        self._saved: Device | None = None

    def __enter__(self) -> Device:
        self._saved = get_device()
        set_device(self.device)
        return self.device

    def __exit__(self, *exc: object) -> None:
        if self._saved is not None:
            set_device(self._saved)


def processor_name() -> str:
    """What the system calls its processor."""
    return platform.processor() or platform.machine() or "CPU"
