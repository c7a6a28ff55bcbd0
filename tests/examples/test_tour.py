"""Each part of the tour equals NumPy's double precision."""

import numpy as np
import pytest
import tour

N = 257


@pytest.fixture(scope="module")
def out():
    return tour.run(N)


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(3).uniform(0.0, 4.0, N).astype(np.float32).astype(np.float64)


def test_balls_bounce_three_times_and_stop(out, x):
    height, speed, bounces = 1.0 + x, np.zeros(N), np.zeros(N, int)
    for _ in range(3000):
        on = bounces < 3
        speed[on] -= 9.81 * 0.001
        height[on] += speed[on] * 0.001
        touched = on & (height < 0.1)
        height[touched], speed[touched] = 0.2 - height[touched], -0.8 * speed[touched]
        bounces += touched
    same = out["bounces"] == bounces
    assert same.mean() > 0.99  # a rounding may move a bounce by one step
    assert (np.abs(out["height"] - height) < 2e-3)[same].mean() > 0.95
    assert np.abs(out["height"] - height)[same].max() < 0.02


def smooth(y):
    edge = np.concatenate([y[:1], y, y[-1:]])
    return 0.25 * edge[:-2] + 0.5 * edge[1:-1] + 0.25 * edge[2:]


def test_kernels_from_one_factory_differ(out, x):
    np.testing.assert_allclose(out["squares"], smooth(x * x), rtol=1e-6)
    np.testing.assert_allclose(out["halves"], smooth(0.5 * x), rtol=1e-6)


def test_generic_kernels_follow_their_types(out, x):
    assert out["numbers"].dtype == np.float64 and out["vectors"].dtype == np.float32
    np.testing.assert_allclose(out["numbers"], 0.75 * x + 0.25, rtol=1e-15)
    np.testing.assert_allclose(out["vectors"], np.stack([0.25 * x + 0.75, -0.25 * x + 0.75], 1), atol=1e-6)


def rotate(axis, angle, p):
    """Rodrigues' formula."""
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    return p * c + np.cross(axis, p) * s + axis * (p @ axis)[:, None] * (1 - c)


def test_points_are_scaled_and_turned(out, x):
    start = np.stack([x, x + 1.0, x + 2.0, 1.0 - x], 1)[:, :, None] * np.array([1.0, 0.5, -1.0])
    for j in range(4):
        axis = np.array([1.0, 1.0, j]) / np.sqrt(2.0 + j * j)
        want = rotate(axis, x, start[:, j] * [2.0, 3.0, 4.0])
        np.testing.assert_allclose(out["points"][:, j], want, atol=2e-5)
