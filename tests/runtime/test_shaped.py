"""What arrays and indexed arrays say alike."""

import numpy as np
import pytest

import treadle as wp

BASE = np.arange(12.0, dtype=np.float32).reshape(3, 4)


def arrays():
    whole = wp.array(BASE, dtype=float)
    rows = wp.array([2, 0], dtype=int)
    return [(whole, BASE), (wp.indexedarray(whole, [rows, None]), BASE[[2, 0]])]


@pytest.mark.parametrize(("a", "want"), arrays())
def test_facts_and_elements_are_those_of_numpy(a, want):
    assert (a.shape, a.ndim, a.size, len(a)) == (want.shape, want.ndim, want.size, len(want))
    assert a.dtype is wp.float32 and not a.pinned
    assert a.list() == want.ravel().tolist() and str(a) == str(want)
    for row, other in zip(a, want, strict=True):
        assert (row.numpy() == other).all()
