"""Noise: where it is 0, how large it is, that it is smooth, repeats, and that flows made of it have no sources."""

import numpy as np
import pytest

import treadle as wp
from treadle.types.core import f32, u32, vector

from .kernels import kernel, run

COUNT = 20000
POINT = {1: f32, 2: vector(2, f32), 3: vector(3, f32), 4: vector(4, f32)}
BOUND = {1: 0.5, 2: np.sqrt(0.5), 3: np.sqrt(0.75), 4: 1.0}  # a gradient of length 1 times the way to the middle
PERIODS = (3, 4, 5, 6)
DIMENSIONS = pytest.mark.parametrize("n", POINT)


def points(n: int, seed: int = 0, size: float = 50.0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-size, size, (COUNT, n)).astype(np.float32).squeeze()


def noise(x: np.ndarray, n: int, text: str = "wp.noise(wp.rand_init(7), x0)") -> np.ndarray:
    (found,) = run([text], [(POINT[n], x)], [f32])
    return found


@DIMENSIONS
def test_noise_is_bounded_balanced_and_zero_on_the_lattice(n):
    x = points(n)
    found = noise(x, n)
    assert np.abs(found).max() <= BOUND[n] and np.abs(found).max() > 0.45 * BOUND[n]
    assert abs(found.mean()) < 0.02 and 0.1 < found.std() < 0.3
    assert not noise(np.round(x), n).any()
    huge = (np.sign(x) * (np.abs(x) + 1) * 2.0**23).astype(np.float32)
    assert not noise(huge, n).any()


@DIMENSIONS
def test_seeds_choose_fields_that_have_nothing_in_common(n):
    x = points(n, size=4000.0 if n == 1 else 50.0)  # in many cells
    a, b = noise(x, n), noise(x, n, "wp.noise(wp.rand_init(8), x0)")
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.05
    assert np.array_equal(a, noise(x, n, "wp.noise(wp.rand_init(7), x0) + 0.0 * float(i)"))


@DIMENSIONS
def test_noise_and_its_slope_go_on_over_the_borders_of_cells(n):
    """Both sides of a border have the same values, slopes and curvatures: these come from the same two corners."""
    step = 2.0**-9
    places = points(n, 1, 8.0).reshape(COUNT, -1)
    for axis in range(n):
        values = []
        for k in (-3, -2, -1, 1, 2, 3):
            at = places.copy()
            at[:, axis] = np.round(at[:, axis]) + k * step
            values.append(noise(at.squeeze(), n).astype(np.float64))
        far, middle, near, after, next, last = values
        assert np.abs((near - middle) - (next - after)).max() / step < 0.1
        assert np.abs((far - 2 * middle + near) - (after - 2 * next + last)).max() / step**2 < 1.0


@DIMENSIONS
def test_periodic_noise_repeats(n):
    periods = ", ".join(map(str, PERIODS[:n]))
    text = f"wp.pnoise(wp.rand_init(7), x0, {periods})"
    x = np.round(points(n, 2, 20.0) * 64) / 64  # moved by whole periods they stay exact
    moved = x + (np.array(PERIODS[:n]) * [-5, 2, 7, -3][:n]).squeeze()
    found = noise(x, n, text)
    assert np.array_equal(found, noise(moved.astype(np.float32), n, text)) and found.std() > 0.05
    inside = np.random.default_rng(3).uniform(0, 1, x.shape) * (np.array(PERIODS[:n]) - 1).squeeze()
    inside = inside.astype(np.float32)
    assert np.array_equal(noise(inside, n), noise(inside, n, text))


def gradient_of_noise(x: np.ndarray, n: int) -> np.ndarray:
    """By a tape."""
    dtype = wp.types.vector(n, float) if n > 1 else float
    at = wp.array(x, dtype=dtype, requires_grad=True)
    out = wp.zeros(len(x), dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        launched = kernel(["wp.noise(wp.rand_init(7), x0)"], [POINT[n]], [f32])
        wp.launch(launched, dim=len(x), inputs=[at, out])
    tape.backward(grads={out: wp.full(len(x), 1.0, dtype=float)})
    return at.grad.numpy()


@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_flow_is_the_curl_of_noise(n):
    x = points(n, 4, 5.0)
    flow_type = vector(min(n, 3), f32)
    (flow,) = run(["wp.curlnoise(wp.rand_init(7), x0)"], [(POINT[n], x)], [flow_type])
    slope = gradient_of_noise(x, n)
    if n == 2:
        assert np.allclose(flow, np.stack([-slope[:, 1], slope[:, 0]], 1), atol=1e-5)
    assert 0.4 < flow.std() < 1.0 and np.abs(flow.mean(axis=0)).max() < 0.05


@pytest.mark.parametrize("n", [2, 3, 4])
def test_flows_have_no_sources(n):
    space = min(n, 3)
    made = wp.types.vector(space, float)
    at = wp.array(points(n, 5, 5.0), dtype=wp.types.vector(n, float), requires_grad=True)
    out = wp.zeros(COUNT, dtype=made, requires_grad=True)
    text = "wp.curlnoise(wp.rand_init(7), x0, wp.uint32(2), 1.5, 0.7)"
    launched, divergence, size = kernel([text], [POINT[n]], [vector(space, f32)]), 0.0, 0.0
    for axis in range(space):
        at.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(launched, dim=COUNT, inputs=[at, out])
        seeds = np.zeros((COUNT, space), np.float32)
        seeds[:, axis] = 1.0
        tape.backward(grads={out: wp.array(seeds, dtype=made)})
        divergence, size = divergence + at.grad.numpy()[:, axis], max(size, np.abs(at.grad.numpy()).max())
    assert size > 1.0 and np.abs(divergence).max() < 1e-5 * size


def test_octaves_add_finer_and_weaker_flows():
    x = points(3, 6, 5.0)
    texts = [f"wp.curlnoise(wp.rand_init(7), x0, wp.uint32({k}), 3.0, 0.25)" for k in range(4)]
    none, *flows = run(texts, [(POINT[3], x)], [vector(3, f32)] * 4)
    assert not none.any()
    sizes = [flows[0].std(), (flows[1] - flows[0]).std(), (flows[2] - flows[1]).std()]
    assert np.allclose(sizes / sizes[0], [1.0, 0.25, 0.0625], rtol=0.1)


def test_states_are_not_moved_on():
    state = np.arange(COUNT).astype(np.uint32)
    before = "s = x0; a = wp.noise(s, 0.5); b = wp.curlnoise(s, wp.vec2(0.5, 0.5))"
    (found,) = run(["s"], [(u32, state)], [u32], before=before)
    assert np.array_equal(found, state)
