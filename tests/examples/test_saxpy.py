"""saxpy equals NumPy's, in any number of elements."""

import numpy as np
import pytest
import saxpy


@pytest.mark.parametrize("n", [1, 7, 16, 17, 100_003])
def test_equals_numpy(n):
    y = saxpy.run(n)["y"]
    assert y.shape == (n,) and y.dtype == np.float32
    np.testing.assert_allclose(y, 3.0 * np.linspace(0.0, 1.0, n) + 0.5, rtol=3e-7)
