"""Where the memory of arrays comes from: the system, or an allocator that the program sets for a device."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Protocol, runtime_checkable

from . import capture, memory
from .device import Device, get_cuda_devices, get_device, known_devices


class MemoryKind(IntEnum):
    """What memory an array lies in. On a machine without GPU it is always ``HOST``."""

    UNKNOWN = 0
    HOST = 1
    PINNED = 2
    CUDA_DEVICE = 3
    CUDA_MEMPOOL = 4
    CUDA_MANAGED = 5


@runtime_checkable
class Allocator(Protocol):
    """What an allocator must have; any object with these two methods is one."""

    def allocate(self, size_in_bytes: int) -> int:
        """The address of ``size_in_bytes`` bytes, aligned for every type of the language."""

    def deallocate(self, ptr: int, size_in_bytes: int) -> None:
        """Take back what :meth:`allocate` gave."""


class HostAllocator:
    """Memory of the system, aligned to 64 bytes."""

    def __init__(self) -> None:
        self._blocks: dict[int, Any] = {}

    def allocate(self, size_in_bytes: int) -> int:
        """The address of a new block."""
        buffer, _, address = memory.allocate(max(size_in_bytes, 1), False)
        self._blocks[address] = buffer
        return address

    def deallocate(self, ptr: int, size_in_bytes: int) -> None:
        """Give a block back.

        Raises:
            RuntimeError: no block of this allocator begins there.
        """
        if self._blocks.pop(ptr, None) is None:
            raise RuntimeError(f"no block of this allocator begins at {ptr:#x}")


_SYSTEM = HostAllocator()
_chosen: dict[Device, Allocator] = {}
_observers: list[Callable[[Device, Any, int], None]] = []  # told of each new block: device, buffer, bytes


class _Block:
    """Lives as long as any array in a block of the program's allocator."""

    __slots__ = ("__weakref__",)


def get_device_allocator(device: Any = None) -> Allocator:
    """The allocator that new arrays of ``device`` take their memory from."""
    where = get_device(device)
    return _chosen.get(where) or where.default_allocator


def set_device_allocator(device: Any, allocator: Allocator | None) -> None:
    """Let new arrays of ``device`` take their memory from ``allocator``; None restores the built-in one.

    The CPU takes allocators too, which is beyond Warp.

    Raises:
        TypeError: ``allocator`` lacks ``allocate`` or ``deallocate``.

    >>> import treadle as wp
    >>> cpu = wp.get_device("cpu")
    >>> with wp.ScopedAllocator(cpu, cpu.default_allocator):
    ...     a = wp.zeros(3, dtype=float)
    >>> a.list()
    [0.0, 0.0, 0.0]
    """
    where = get_device(device)
    if allocator is None:
        _chosen.pop(where, None)
    elif isinstance(allocator, type) or not isinstance(allocator, Allocator):
        raise TypeError(f"an allocator has the methods allocate and deallocate; {type(allocator).__name__} has not")
    else:
        _chosen[where] = allocator
    rewire(where)


def observe(observer: Callable[[Device, Any, int], None] | None) -> None:
    """Tell ``observer`` of each block of memory that a new array takes; None ends it."""
    _observers[:] = [] if observer is None else [observer]
    for device in known_devices():
        rewire(device)


def rewire(device: Device) -> None:
    """Let ``device.allocate`` be what was chosen; where nothing was, the quick function of its class."""
    device.__dict__.pop("allocate", None)
    allocator, own = _chosen.get(device), device.allocate
    if allocator is None and not _observers and not capture.active:
        return

    def allocate(nbytes: int, zeroed: bool) -> tuple[Any, int, int]:
        now = capture.here() if capture.active else None
        zero = zeroed and now is None
        made = own(nbytes, zero) if allocator is None else _allocated(device, allocator, nbytes, zero)
        for observer in _observers:
            observer(device, made[0], nbytes)
        return made if now is None else now.own(made, nbytes, zeroed)

    device.__dict__["allocate"] = allocate


def _allocated(device: Device, allocator: Allocator, nbytes: int, zeroed: bool) -> tuple[Any, int, int]:
    """A block of ``allocator`` as arrays want it, see :meth:`Device.allocate`."""
    if nbytes == 0:
        return device.reserve(0, zeroed)
    address = allocator.allocate(nbytes)
    if not address:
        raise MemoryError(f"{type(allocator).__name__} gave no memory for {nbytes} bytes")
    block = _Block()
    weakref.finalize(block, allocator.deallocate, address, nbytes).atexit = False
    buffer = memory.borrow(address, nbytes, block)
    if zeroed:
        device.clear(address, nbytes)
    return buffer, 0, address


def set_cuda_allocator(allocator: Allocator | None) -> None:
    """Let new arrays of all CUDA devices take their memory from ``allocator``; None restores the built-in one.

    Raises:
        RuntimeError: there is no CUDA device.
    """
    if not get_cuda_devices():
        raise RuntimeError("there is no CUDA device here; wp.set_device_allocator sets the CPU's allocator")
    for device in get_cuda_devices():
        set_device_allocator(device, allocator)


class ScopedAllocator:
    """``with wp.ScopedAllocator(device, allocator):`` sets the allocator of a device for a block."""

    def __init__(self, device: Any, allocator: Allocator | None):
        self.device, self.allocator = get_device(device), allocator

    def __enter__(self) -> ScopedAllocator:
        self._saved = _chosen.get(self.device)
        set_device_allocator(self.device, self.allocator)
        return self

    def __exit__(self, *exc: object) -> None:
        set_device_allocator(self.device, self._saved)


def default_allocator() -> Allocator:
    """The built-in allocator of the CPU."""
    return _SYSTEM
