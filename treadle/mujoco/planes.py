"""Arrays in planes: the world axis is innermost, and each component of a vector or matrix has a plane of its own.

A gang of W threads is W neighbouring worlds, so each number of theirs is one vector in memory. A plane is padded to
an odd number of cache lines: with 2,048 worlds unpadded planes would all start in the same set of the cache. A single
world has no lanes: its arrays lie as any others do, so that kernels know all strides.
"""

from __future__ import annotations

from math import prod
from typing import Any

import treadle as wp
from treadle.runtime.array import allocate_with
from treadle.runtime.elements import element

LINE = 64  # bytes of a cache line


def plane_bytes(nworld: int, itemsize: int) -> int:
    """Distance from one plane to the next: enough for ``nworld`` numbers, an odd number of cache lines."""
    return (-(-nworld * itemsize // LINE) | 1) * LINE


def planar(nworld: int, cells: tuple[int, ...], dtype: Any, components: int, itemsize: int) -> wp.array:
    """A zeroed array of shape ``(nworld, *cells)`` of type ``dtype``, which has ``components`` of ``itemsize`` bytes.

    To NumPy the array has shape ``(nworld, *cells, *component shape)``, as any other has; only the strides differ.
    """
    if nworld == 1:
        return wp.zeros((1, *cells), dtype=dtype)
    plane = plane_bytes(nworld, itemsize)
    steps = [plane * components * prod(cells[k + 1 :]) for k in range(len(cells))]
    shape, strides = (nworld, *cells), (itemsize, *steps)
    made = element(dtype)
    return allocate_with(made, shape, wp.get_device(), strides, plane if components > 1 else None, zeroed=True)
