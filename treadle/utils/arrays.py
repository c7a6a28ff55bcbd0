"""What the functions of this room ask of their arrays, and other views of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import treadle as wp

from ..base.errors import ArrayError


def same_device(a: wp.array, b: wp.array, complaint: str) -> None:
    """Raise ArrayError with ``complaint`` and the two devices unless they are one."""
    if a.device != b.device:
        raise ArrayError(f"{complaint} ({a.device} vs {b.device})")


def in_blocks(flat: wp.array, n: int) -> wp.array:
    """A one-dimensional array without gaps, ``n`` elements at a time, as vectors."""
    return flat.reshape((flat.size // n, n)).view(_vector(n, flat.dtype))


_vector = cache(wp.types.vector)


def words(a: wp.array, dtype: Any) -> wp.array:
    """The elements of an array without gaps, of 4 or 8 bytes each, as unsigned integers in one dimension."""
    word = {4: wp.uint32, 8: wp.uint64}[wp.types.type_size_in_bytes(dtype)]
    return wp.array(ptr=a.ptr, dtype=word, shape=(a.size,), device=a.device, copy=False)
