"""``wp.sparse``: block-sparse matrices. So far the two look-ups into their index arrays; matrices come later."""

from __future__ import annotations

from typing import Any

import treadle as wp

from ..absent import absent


@wp.func
def bsr_row_index(offsets: wp.array(dtype=int), row_count: int, block_index: int) -> int:
    """The row of block number ``block_index``; -1 where there is no such block.

    Args:
        offsets: for each row the number of its first block, then the number of blocks; ``row_count + 1`` entries.
        row_count: how many rows of blocks there are.
        block_index: the block asked for.
    """
    if block_index < 0 or block_index >= offsets[row_count]:
        return -1
    low = int(0)
    high = int(row_count)
    while high - low > 1:  # offsets[low] <= block_index < offsets[high]
        middle = (low + high) // 2
        if offsets[middle] <= block_index:
            low = middle
        else:
            high = middle
    return low


@wp.func
def bsr_block_index(row: int, col: int, bsr_offsets: wp.array(dtype=int), bsr_columns: wp.array(dtype=int)) -> int:
    """The number of the block at ``row`` and ``col``; -1 where there is none.

    Args:
        row, col: where the block is, counted in blocks.
        bsr_offsets: for each row the number of its first block, then the number of blocks.
        bsr_columns: the column of each block, ascending in each row.
    """
    if row < 0:
        return -1
    end = bsr_offsets[row + 1]
    low = int(bsr_offsets[row])
    high = int(end)
    while low < high:
        middle = (low + high) // 2
        if bsr_columns[middle] < col:
            low = middle + 1
        else:
            high = middle
    if low < end and bsr_columns[low] == col:
        return low
    return -1


def __getattr__(name: str) -> Any:
    raise absent(__name__, name)
