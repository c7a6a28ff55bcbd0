"""Histograms equal NumPy's: counts exactly, weights to rounding."""

import histogram
import numpy as np
import pytest


@pytest.mark.parametrize(("n", "bins"), [(1, 4), (5000, 1), (20_001, 64), (20_001, 5000)])
def test_equals_numpy(n, bins):
    out = histogram.run(n, bins)
    values, weights = histogram.data(n)
    at = np.clip((values * np.float32(bins)).astype(int), 0, bins - 1)
    assert (out["counts"] == np.bincount(at, minlength=bins)).all()
    np.testing.assert_allclose(out["sums"], np.bincount(at, weights.astype(np.float64), bins), rtol=2e-5)
