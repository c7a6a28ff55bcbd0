"""Prefix sums of arrays.

Eight neighbours make a block. Each thread adds up a block; the sums of all blocks are scanned in the same way, level
by level; then each thread scans its block, starting from what lies before it. Threads are lanes of gangs and gangs run
on all cores, and since the blocks do not depend on either, neither do the sums: floats get the same bits everywhere.
(G. Blelloch, Prefix sums and their applications, 1990; with eight children a node in place of two.)
"""

from __future__ import annotations

from typing import Any

import treadle as wp

from ..base.errors import ArrayError
from ..types.core import Scalar
from ..types.inquiry import type_scalar_type
from .arrays import in_blocks, same_device

BLOCK = 8  # neighbours that one thread adds up: as many as loads of whole vectors bring into its lane
ALONE = 4096  # so many elements one thread scans as fast as many
PIECE = 1 << 20  # elements whose blocks are still in the cache when they are read for the second time
SCALARS = (wp.int32, wp.int64, wp.uint32, wp.uint64, wp.float32, wp.float64)


@wp.kernel
def add_blocks(blocks: wp.array(dtype=Any), sums: wp.array(dtype=Any)):
    """Sums of blocks; a block is a vector of scalars that lie side by side."""
    i = wp.tid()
    block = blocks[i]
    total = block[0]
    for k in range(1, BLOCK):
        total = total + block[k]
    sums[i] = total


@wp.kernel
def scan_blocks(blocks: wp.array(dtype=Any), before: wp.array(dtype=Any), inclusive: bool, out: wp.array(dtype=Any)):
    """Each block's prefix sums, on top of what lies before it."""
    i = wp.tid()
    block = blocks[i]
    total = before[i]
    result = block
    if inclusive:
        for k in range(BLOCK):
            total = total + block[k]
            result[k] = total
    else:
        for k in range(BLOCK):
            result[k] = total
            total = total + block[k]
    out[i] = result


@wp.kernel
def add_runs(values: wp.array(dtype=Any), start: int, sums: wp.array(dtype=Any)):
    """As :func:`add_blocks`, for vectors and for arrays with gaps."""
    i = wp.tid()
    first = start + BLOCK * i
    total = values[first]
    for k in range(1, BLOCK):
        total = total + values[first + k]
    sums[i] = total


@wp.kernel
def scan_runs(
    values: wp.array(dtype=Any), start: int, before: wp.array(dtype=Any), inclusive: bool, out: wp.array(dtype=Any)
):
    """As :func:`scan_blocks`, for vectors and for arrays with gaps."""
    i = wp.tid()
    total = before[i]
    for k in range(BLOCK):
        j = start + BLOCK * i + k
        after = total + values[j]
        if inclusive:
            out[j] = after
        else:
            out[j] = total
        total = after


# Gangs bring 64-bit scalars into lanes one by one; one thread after the other is faster.
add_wide_blocks = wp.kernel(add_blocks.func, name="add_wide_blocks", gang_width=1)
scan_wide_blocks = wp.kernel(scan_blocks.func, name="scan_wide_blocks", gang_width=1)


@wp.kernel(gang_width=1)
def scan_alone(
    values: wp.array(dtype=Any), start: int, stop: int, carry: wp.array(dtype=Any), inclusive: bool,
    out: wp.array(dtype=Any),
):  # fmt: skip
    """One thread: prefix sums on top of ``carry``, which is then what lies before the next elements."""
    total = carry[0]
    for i in range(start, stop):
        after = total + values[i]
        if inclusive:
            out[i] = after
        else:
            out[i] = total
        total = after
    carry[0] = total


def array_scan(in_array: wp.array, out_array: wp.array, inclusive: bool = True) -> None:
    """Prefix sums of ``in_array``: ``out_array[i]`` is the sum of all elements up to i.

    Args:
        in_array: scalars, or vectors, of 32 or 64 bits: int32, int64, float32, float64 (beyond Warp: uint32, uint64).
        out_array: of the same size and dtype; it may be ``in_array`` itself.
        inclusive: whether ``in_array[i]`` is part of the sum.

    Raises:
        ArrayError: sizes, dtypes or devices that differ, or a dtype that is not among these.

    Floats are added in a fixed tree of blocks of eight: the same bits every run, on any number of cores.

    >>> import treadle as wp
    >>> counts, offsets = wp.array([3, 0, 2, 5], dtype=int), wp.zeros(4, dtype=int)
    >>> wp.utils.array_scan(counts, offsets, inclusive=False)
    >>> offsets.list()
    [0, 3, 3, 5]
    """
    same_device(in_array, out_array, "in_array and out_array lie on different devices")
    if in_array.size != out_array.size:
        raise ArrayError(f"In and out array storage sizes do not match ({in_array.size} vs {out_array.size})")
    if in_array.dtype is not out_array.dtype:
        both = f"{in_array.dtype.__name__} vs {out_array.dtype.__name__}"
        raise ArrayError(f"In and out array data types do not match ({both})")
    if type_scalar_type(in_array.dtype) not in SCALARS:
        raise ArrayError(f"Unsupported data type: {in_array.dtype.__name__}")
    values, out = in_array.flatten(), out_array.flatten()
    carry = wp.zeros(1, dtype=in_array.dtype, device=in_array.device)
    for start in range(0, values.size, PIECE):
        _scan(values, start, min(start + PIECE, values.size), carry, inclusive, out)


def _scan(values: wp.array, start: int, stop: int, carry: wp.array, inclusive: bool, out: wp.array) -> None:
    """Scan ``values[start:stop]`` on top of ``carry``, and leave there what lies before the next piece."""
    device, n = values.device, (stop - start) // BLOCK if stop - start > ALONE else 0
    if n:
        # What lies behind the sums, so that they can be read in blocks, does not change those before it.
        sums = wp.zeros(-(-n // BLOCK) * BLOCK, dtype=values.dtype, device=device)
        elem = values.type.elem
        if values.is_contiguous and out.is_contiguous and isinstance(elem, Scalar):
            wide = elem.bits > 32
            add, scan = (add_wide_blocks, scan_wide_blocks) if wide else (add_blocks, scan_blocks)
            source = [in_blocks(values, start, n, BLOCK)]
            target = source[0] if out is values else in_blocks(out, start, n, BLOCK)
        else:
            add, scan, source, target = add_runs, scan_runs, [values, start], out
        wp.launch(add, n, inputs=[*source, sums], device=device)
        _scan(sums, 0, n, carry, False, sums)
        wp.launch(scan, n, inputs=[*source, sums, inclusive, target], device=device)
    if start + n * BLOCK < stop:
        wp.launch(scan_alone, 1, inputs=[values, start + n * BLOCK, stop, carry, inclusive, out], device=device)
