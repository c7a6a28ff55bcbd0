"""Where a block is: by its number, and by its row and column."""

import numpy as np
import pytest

import treadle as wp


@wp.kernel
def look(offsets: wp.array(dtype=int), columns: wp.array(dtype=int), rows: wp.array(dtype=int),
         blocks: wp.array2d(dtype=int)):  # fmt: skip
    i, j = wp.tid()
    blocks[i, j] = wp.sparse.bsr_block_index(i, j, offsets, columns)
    if j == 0:
        rows[i] = wp.sparse.bsr_row_index(offsets, blocks.shape[0], i - 1)


@pytest.mark.host
def test_a_random_pattern():
    rng = np.random.default_rng(5)
    present = rng.random((9, 11)) < 0.3
    present[[0, 4, 8]] = False  # empty rows
    where = np.argwhere(present)
    offsets = np.concatenate([[0], np.cumsum(present.sum(1))]).astype(np.int32)
    rows, blocks = np.zeros(9, np.int32), np.zeros((9, 11), np.int32)
    wp.launch(look, dim=(9, 11), inputs=[offsets, where[:, 1].astype(np.int32), rows, blocks])
    expected = np.full((9, 11), -1)
    expected[present] = np.arange(len(where))
    np.testing.assert_array_equal(blocks, expected)
    np.testing.assert_array_equal(rows, [-1, *where[:8, 0]])
