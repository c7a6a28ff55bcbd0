"""The hanging cloth equals the same scheme in NumPy's double precision."""

import numpy as np
import springs

SIDE, STEPS, DT = 12, 50, 1e-3


def test_equals_numpy():
    x, ends, inv_mass = springs.cloth(SIDE)
    x, a, b = x.astype(np.float64), ends[:, 0], ends[:, 1]
    rest = np.linalg.norm(x[b] - x[a], axis=1)
    v, free = np.zeros_like(x), inv_mass > 0
    for _ in range(STEPS):
        d = x[b] - x[a]
        length = np.linalg.norm(d, axis=1)
        along = d / length[:, None]
        f = along * (500.0 * (length - rest) + 0.1 * ((v[b] - v[a]) * along).sum(1))[:, None]
        force = np.zeros_like(x)
        np.add.at(force, a, f)
        np.add.at(force, b, -f)
        v[free] += (force * inv_mass[:, None] + [0.0, 0.0, -9.81])[free] * DT
        x[free] += v[free] * DT
    out = springs.run(SIDE, STEPS, DT)
    np.testing.assert_allclose(out["x"], x, atol=2e-5)
    np.testing.assert_allclose(out["v"], v, atol=5e-3)


def test_corners_stay_and_the_rest_falls():
    x = springs.run(SIDE, 20)["x"].reshape(SIDE, SIDE, 3)
    start = springs.cloth(SIDE)[0].reshape(SIDE, SIDE, 3)
    assert (x[-1, 0] == start[-1, 0]).all() and (x[-1, -1] == start[-1, -1]).all()
    assert (x[0, :, 2] < 0.0).all()
