"""Prefix sums: against NumPy, in place, with gaps, of vectors; the same bits with any number of workers."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as wp
from treadle import utils
from treadle.utils import scan


@pytest.mark.parametrize("dtype", [wp.int32, wp.int64, wp.float32])
def test_scans_agree_with_numpy(dtype, monkeypatch):
    monkeypatch.setattr(scan, "ALONE", 100)  # levels of blocks,
    monkeypatch.setattr(scan, "PIECE", 5000)  # and pieces, of which the last is short
    rng = np.random.default_rng(1)
    for n in (0, 1, 99, 101, 808, 5000, 5001, 12345):
        h = rng.integers(-1000, 1000, n).astype(wp.dtype_to_numpy(dtype))
        a, out = wp.array(h, dtype=dtype), wp.zeros(n, dtype=dtype)
        utils.array_scan(a, out)
        np.testing.assert_array_equal(out.numpy(), np.cumsum(h))
        utils.array_scan(a, out, inclusive=False)
        np.testing.assert_array_equal(out.numpy(), np.cumsum(h) - h)
        utils.array_scan(a, a, inclusive=False)
        np.testing.assert_array_equal(a.numpy(), out.numpy())


def test_vectors_and_arrays_with_gaps():
    h = np.random.default_rng(2).integers(-9, 9, (6001, 3)).astype(np.float32)
    out = wp.zeros(6001, dtype=wp.vec3)
    utils.array_scan(wp.array(h, dtype=wp.vec3), out)
    np.testing.assert_array_equal(out.numpy(), np.cumsum(h, 0))
    whole, gaps = wp.array(np.arange(12000), dtype=wp.int64), wp.zeros(12000, dtype=wp.int64)
    utils.array_scan(whole[::2], gaps[1::2], inclusive=False)
    np.testing.assert_array_equal(gaps.numpy()[1::2], np.cumsum(np.arange(0, 12000, 2)) - np.arange(0, 12000, 2))
    assert not gaps.numpy()[::2].any()


def test_sums_of_floats_err_little():
    h = np.random.default_rng(3).uniform(size=1_000_003).astype(np.float32)
    out = wp.zeros(h.size, dtype=wp.float32)
    utils.array_scan(wp.array(h), out)
    np.testing.assert_allclose(out.numpy(), np.cumsum(h.astype(np.float64)), rtol=2e-6)


@pytest.mark.parametrize("n", [30, 1003])
def test_tapes_see_scans(n, monkeypatch):
    monkeypatch.setattr(scan, "ALONE", 100)  # the longer one in blocks
    a = wp.array(np.arange(n), dtype=wp.float32, requires_grad=True)
    out = wp.zeros(n, dtype=wp.float32, requires_grad=True)
    with wp.Tape() as tape:
        utils.array_scan(a, out)
    out.grad.fill_(1.0)
    tape.backward()
    np.testing.assert_array_equal(a.grad.numpy(), np.arange(n, 0, -1))


def test_wrong_arguments_are_named():
    a = wp.zeros(3, dtype=int)
    with pytest.raises(RuntimeError, match=r"sizes do not match \(3 vs 4\)"):
        utils.array_scan(a, wp.zeros(4, dtype=int))
    with pytest.raises(RuntimeError, match=r"data types do not match \(int32 vs float32\)"):
        utils.array_scan(a, wp.zeros(3, dtype=float))
    with pytest.raises(RuntimeError, match="vec3h"):
        utils.array_scan(wp.zeros(3, dtype=wp.vec3h), wp.zeros(3, dtype=wp.vec3h))
