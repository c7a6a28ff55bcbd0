"""Sum, smallest, largest and count equal NumPy's; the sum is far better than adding one by one in single precision."""

import numpy as np
import pytest
import reductions


@pytest.mark.parametrize("n", [1, 63, 300_007])
def test_equals_numpy(n):
    out, x = reductions.run(n), reductions.data(n)
    assert out["smallest"][0] == x.min() and out["largest"][0] == x.max()
    assert out["positive"][0] == (x > 0).sum()
    assert out["total"][0] == pytest.approx(x.astype(np.float64).sum(), rel=1e-6)
