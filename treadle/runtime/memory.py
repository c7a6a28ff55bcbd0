"""Host memory for arrays: 64-byte aligned, zeroed only when touched, owned by a NumPy buffer that views keep alive."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

ALIGNMENT = 64
_BYTE = np.dtype(np.uint8)
_from_buffer = ctypes.c_char.from_buffer
_address_of = ctypes.addressof
_zeros, _empty = np.zeros, np.empty


_SMALL = 8192  # up to here a ctypes buffer is quicker than a NumPy one
_types: dict[int, Any] = {}


def allocate(nbytes: int, zeroed: bool) -> tuple[Any, int, int]:
    """A buffer of bytes, the offset in it of an aligned block of ``nbytes``, and that block's address.

    Large zeroed blocks come from the system as untouched pages, and untouched blocks cost no memory.
    """
    if nbytes <= _SMALL:
        room = nbytes + 127 & -64
        make = _types.get(room)
        if make is None:
            make = _types[room] = ctypes.c_char * room
        buffer = make()
        base = _address_of(buffer)
    else:
        try:
            buffer = (_zeros if zeroed else _empty)(nbytes + ALIGNMENT, _BYTE)
        except ValueError:  # more than addresses reach
            raise MemoryError(f"no memory for an array of {nbytes} bytes") from None
        base = _address_of(_from_buffer(buffer))
    offset = -base & 63
    return buffer, offset, base + offset


class _Foreign:
    """Memory at an address, shown to NumPy by its array interface; ``owner`` keeps it alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, address: int, nbytes: int, owner: Any, frozen: bool):
        self.owner = owner
        self.__array_interface__ = {
            "version": 3, "shape": (nbytes,), "typestr": "|u1", "data": (address, frozen), "strides": None,
        }  # fmt: skip


class Borrowed(np.ndarray):
    """A byte buffer over memory that was not allocated here: two of them may show the same bytes."""


def addressed(address: int, nbytes: int, owner: Any, frozen: bool = False) -> np.ndarray:
    """The ``nbytes`` at ``address`` as a byte buffer that keeps ``owner`` alive; not to be changed if ``frozen``."""
    return np.asarray(_Foreign(address, nbytes, owner, frozen))


def borrow(address: int, nbytes: int, owner: Any, frozen: bool = False) -> np.ndarray:
    """The same where others may show those bytes as well."""
    return addressed(address, nbytes, owner, frozen).view(Borrowed)


def span(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """The first byte (at most 0) and the end of what an array touches, relative to its first element."""
    low, high = 0, itemsize
    for extent, stride in zip(shape, strides, strict=True):
        if extent == 0:
            return 0, 0
        reach = (extent - 1) * stride
        low, high = (low + reach, high) if reach < 0 else (low, high + reach)
    return low, high
