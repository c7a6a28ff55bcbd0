"""What the functions of this room ask of their arrays, and other views of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import treadle as wp

from ..base.errors import ArrayError
from ..runtime.elements import element


def same_device(a: wp.array, b: wp.array, complaint: str) -> None:
    """Raise ArrayError with ``complaint`` and the two devices unless they are one."""
    if a.device != b.device:
        raise ArrayError(f"{complaint} ({a.device} vs {b.device})")


def in_blocks(flat: wp.array, start: int, count: int, size: int) -> wp.array:
    """Of a one-dimensional array without gaps: from ``start`` on ``count`` vectors of ``size`` elements each."""
    block = element(_vector(size, flat.dtype))
    offset = start * flat.strides[0]
    return flat._with_grad(lambda a: a._view((count,), (block.size,), offset, block, block.component))


_vector = cache(wp.types.vector)


def words(a: wp.array, dtype: Any) -> wp.array:
    """The elements of an array without gaps, of 4 or 8 bytes each, as unsigned integers in one dimension."""
    word = element({4: wp.uint32, 8: wp.uint64}[wp.types.type_size_in_bytes(dtype)])
    return a._view((a.size,), (word.size,), 0, word, word.component)
