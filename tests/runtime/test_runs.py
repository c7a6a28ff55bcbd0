"""Runs of bytes: where strided elements lie, and that they come back as they were."""

import numpy as np
import pytest

from tests.runtime import kernels  # noqa: F401 - says who writes native helpers
from treadle.runtime.runs import Runs, exchange, runs

SHAPES = [  # of views into a block of 4-byte numbers, and how many rows of runs they take
    (lambda b: b[:], 1),
    (lambda b: b[1:3], 1),
    (lambda b: b[::-1, 2:, ::-1], 1),
    (lambda b: b.T, 1),
    (lambda b: b[:, 1:3], 1),
    (lambda b: b[:, :, 2], 1),
    (lambda b: b[2:1], 0),
    (lambda b: b[:, 1:3, ::2], 4),
    (lambda b: b.transpose(1, 0, 2)[::2, ::-1, 1:4], 4),
]


def of(a):
    return runs(a.__array_interface__["data"][0], [*zip(a.shape, a.strides)], a.itemsize)


@pytest.mark.parametrize(("view", "rows"), SHAPES)
def test_elements_are_kept_and_come_back(view, rows):
    block = np.arange(4 * 5 * 6, dtype=np.int32).reshape(4, 5, 6)
    a, first = view(block), block.copy()
    found = of(a)
    assert len(found.rows) == rows and found.nbytes == a.nbytes
    assert found.alone == (a.size > 0 and a.size == np.ptp(a) + 1)
    aside = np.zeros(a.size, np.int32)
    found.keep(aside.ctypes.data)
    assert sorted(aside) == sorted(a.ravel())
    a += 1000
    second = block.copy()
    found.swap(aside.ctypes.data)
    assert (block == first).all() and (sorted(aside) == np.sort(view(second).ravel())).all()
    found.swap(aside.ctypes.data)
    assert (block == second).all()
    found.keep(aside.ctypes.data)
    block[...] = 0
    found.put(aside.ctypes.data)
    assert (a == view(second)).all() and block.sum() == a.sum()


def test_elements_that_lie_over_each_other_have_none():
    row = np.arange(8, dtype=np.float32)
    assert of(np.lib.stride_tricks.sliding_window_view(row, 3)) is None
    assert of(np.broadcast_to(row, (3, 8))) is None


def test_tables_of_several_places():
    a, b = np.arange(10, dtype=np.uint8), np.arange(100, 200, dtype=np.uint8)
    both = Runs([(a.ctypes.data, 10, 1, 0), (b.ctypes.data + 5, 1, 3, 10)])
    aside = np.zeros(both.nbytes, np.uint8)
    both.keep(aside.ctypes.data)
    assert aside.tolist() == [*range(10), 105, 115, 125]


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 65, 1000])
def test_exchange(nbytes):
    a, b = np.full(nbytes + 1, 1, np.uint8), np.full(nbytes + 1, 2, np.uint8)
    exchange(a.ctypes.data, b.ctypes.data, nbytes)
    assert (a[:-1] == 2).all() and (b[:-1] == 1).all() and a[-1] == 1 and b[-1] == 2
