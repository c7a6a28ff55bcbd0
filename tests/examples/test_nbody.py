"""n-body equals the same leapfrog in NumPy's double precision and keeps energy and momentum."""

import nbody
import numpy as np
import pytest

N, STEPS, DT = 300, 20, 0.01


@pytest.fixture(scope="module")
def out():
    return nbody.run(N, STEPS, DT)


def accelerate(p, m):
    d = p[None] - p[:, None]
    return (d * (m[None] / ((d**2).sum(2) + 0.05**2) ** 1.5)[:, :, None]).sum(1)


def test_equals_numpy(out):
    p, v, m = (each.astype(np.float64) for each in nbody.start(N))
    a = accelerate(p, m)
    for _ in range(STEPS):
        v += 0.5 * DT * a
        p += DT * v
        a = accelerate(p, m)
        v += 0.5 * DT * a
    np.testing.assert_allclose(out["p"], p, atol=2e-5)
    np.testing.assert_allclose(out["v"], v, atol=1e-4)


def test_keeps_energy_and_momentum(out):
    p, v, m = nbody.start(N)
    assert nbody.energy(out["p"], out["v"], m) == pytest.approx(nbody.energy(p, v, m), rel=1e-4)
    np.testing.assert_allclose((m[:, None] * out["v"]).sum(0), (m[:, None] * v).sum(0), atol=1e-6)
