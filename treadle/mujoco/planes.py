"""Arrays with one plane a number: the world axis is innermost, each component of a vector or matrix lies in its own plane.

A gang of W threads is W neighbouring worlds, so each number of theirs is one vector in memory. A plane is padded to an odd number
of cache lines: with 2,048 worlds unpadded planes would all start in the same set of the cache.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import treadle as wp

LINE = 64  # bytes of a cache line


def plane_bytes(nworld: int, itemsize: int) -> int:
    """Distance from one plane to the next: enough for ``nworld`` numbers, an odd number of cache lines."""
    return (-(-nworld * itemsize // LINE) | 1) * LINE


def planar(nworld: int, cells: tuple[int, ...], dtype: Any, scalar: Any) -> wp.array:
    """A zeroed array of shape ``(nworld, *cells)`` and type ``dtype``, whose components are of type ``scalar``.

    The memory belongs to a NumPy buffer that the array keeps alive. To NumPy the array has shape
    ``(nworld, *cells, *component shape)``, as any other has; only the strides differ.
    """
    item = np.dtype(wp.dtype_to_numpy(scalar)).itemsize
    components = 1 if dtype is scalar else dtype._length_
    plane = plane_bytes(nworld, item)
    planes = prod(cells) * components
    memory = np.zeros(max(planes, 1) * plane + LINE, dtype=np.uint8)
    start = -memory.ctypes.data % LINE
    steps = [plane * components * prod(cells[k + 1 :]) for k in range(len(cells))]
    made = wp.array(
        ptr=memory.ctypes.data + start,
        dtype=dtype,
        shape=(nworld, *cells),
        strides=(item, *steps),
        component_stride=plane if components > 1 else None,
        capacity=memory.nbytes - start,
        device="cpu",
    )
    made._owner = memory
    return made
