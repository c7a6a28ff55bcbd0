"""Random numbers: the published generator, its known values, and even distributions."""

import math

import numpy as np
import pytest

import treadle as wp
from treadle.types.core import i32, u32

from .kernels import run


def pcg(state: np.ndarray) -> np.ndarray:
    """The PCG hash in NumPy (Jarzynski and Olano, 2020)."""
    state = state.astype(np.uint64)
    mask = np.uint64(0xFFFFFFFF)
    b = (state * np.uint64(747796405) + np.uint64(2891336453)) & mask
    c = (((b >> ((b >> np.uint64(28)) + np.uint64(4))) ^ b) * np.uint64(277803737)) & mask
    return (c >> np.uint64(22)) ^ c


@pytest.mark.parametrize("width", [1, 8])
def test_a_seed_gives_the_same_numbers_everywhere(width):
    @wp.kernel(gang_width=width)
    def k(o: wp.array(dtype=float), state: wp.array(dtype=wp.uint32)):
        s = wp.rand_init(42, 7)
        o[0] = wp.randf(s)
        o[1] = float(wp.randi(s))
        o[2] = float(wp.randi(s, 3, 9))
        o[3] = wp.randn(s)
        o[4] = wp.randf(s, 2.0, 3.0)
        o[5] = float(wp.randu(s))
        o[6] = float(wp.randu(s, wp.uint32(3), wp.uint32(77)))
        state[0] = s

    o, state = wp.zeros(7, dtype=float), wp.zeros(1, dtype=wp.uint32)
    wp.launch(k, dim=1, inputs=[o, state])
    wanted = [0.49427831, 1413447399, 3, -1.2310697, 2.5558300, 492205119, 61]
    assert np.allclose(o.numpy(), wanted, rtol=1e-6)
    s = pcg(np.array([42 + pcg(np.array([7]))[0] & 0xFFFFFFFF]))
    for _ in range(8):
        s = pcg(s)
    assert state.numpy()[0] == s[0]


@pytest.mark.parametrize("width", [1, 8])
def test_a_state_moves_on_in_loops_and_branches(width):
    @wp.kernel(gang_width=width)
    def k(o: wp.array(dtype=float), n: wp.array(dtype=int)):
        i = wp.tid()
        state = wp.rand_init(5, i)
        total = float(0.0)
        for _ in range(n[i]):
            total += wp.randf(state)
        if i % 2 == 0:
            total += wp.randf(state)
        o[i] = total + wp.randf(state)

    count = 40
    n = np.arange(count, dtype=np.int32) % 7
    o = wp.zeros(count, dtype=float)
    wp.launch(k, dim=count, inputs=[o, wp.array(n, dtype=int)])
    for i in range(count):
        s, total = pcg((5 + pcg(np.array([i]))) & np.uint64(0xFFFFFFFF)), np.float32(0)
        for _ in range(n[i] + (i % 2 == 0) + 1):
            s = pcg(s)
            total = np.float32(total + np.float32(s[0] >> np.uint64(8)) * np.float32(2**-24))
        assert o.numpy()[i] == total


def test_indices_are_drawn_as_often_as_their_share():
    @wp.kernel
    def k(cdf: wp.array(dtype=float), o: wp.array(dtype=int)):
        i = wp.tid()
        state = wp.rand_init(9, i)
        o[i] = wp.sample_cdf(state, cdf)

    share = np.array([0.1, 0.4, 0.0, 0.3, 0.2])
    o = wp.zeros(SAMPLES, dtype=int)
    wp.launch(k, dim=SAMPLES, inputs=[wp.array(np.cumsum(share), dtype=float), o])
    assert np.allclose(np.bincount(o.numpy(), minlength=5) / SAMPLES, share, atol=0.015)


SAMPLES = 20000


def drawn(name: str, size: int) -> np.ndarray:
    """Many points of one of the samplers."""
    kind = {1: wp.float32, 2: wp.vec2, 3: wp.vec3}[size]
    sampler = getattr(wp, name)

    @wp.kernel
    def k(o: wp.array(dtype=kind)):
        i = wp.tid()
        state = wp.rand_init(123, i)
        o[i] = sampler(state)

    o = wp.zeros(SAMPLES, dtype=kind)
    wp.launch(k, dim=SAMPLES, inputs=[o])
    return o.numpy()


def test_normal_numbers_have_the_moments_of_a_normal_distribution():
    x = drawn("randn", 1)
    assert abs(x.mean()) < 0.03 and abs(x.std() - 1) < 0.02
    assert abs((x**3).mean()) < 0.06 and abs((x**4).mean() - 3) < 0.2


@pytest.mark.parametrize(("name", "size", "mean", "second"), [
    ("sample_unit_ring", 2, (0, 0), 1), ("sample_unit_disk", 2, (0, 0), 1 / 2),
    ("sample_unit_square", 2, (0, 0), 1 / 6), ("sample_unit_cube", 3, (0, 0, 0), 1 / 4),
    ("sample_unit_sphere_surface", 3, (0, 0, 0), 1),
    ("sample_unit_sphere", 3, (0, 0, 0), 3 / 5), ("sample_unit_hemisphere_surface", 3, (0, 0, 1 / 2), 1),
    ("sample_unit_hemisphere", 3, (0, 0, 3 / 8), 3 / 5), ("sample_triangle", 2, (1 / 3, 1 / 3), 1 / 3),
])  # fmt: skip
def test_points_are_evenly_distributed(name, size, mean, second):
    p = drawn(name, size)
    assert np.allclose(p.mean(0), mean, atol=0.02)
    assert abs((p**2).sum(1).mean() - second) < 0.01  # the mean squared distance from the origin
    if "surface" in name or "ring" in name:
        assert np.allclose((p**2).sum(1), 1, atol=1e-6)
    if "hemisphere" in name:
        assert p[:, 2].min() >= 0
    if "triangle" in name:
        assert p.min() >= 0 and p.sum(1).max() <= 1 + 1e-6


RATES = [0.01, 0.5, 3.0, 9.9, 10.0, 12.0, 42.0, 1000.0, 1e6]


@pytest.mark.parametrize("rate", RATES)
def test_poisson_numbers_have_their_distribution(rate):
    n = 100_000
    (found,) = run([f"wp.poisson(s, {rate})"], [(i32, np.arange(n))], [u32], before="s = wp.rand_init(3, x0)")
    found = found.astype(np.float64)
    error = 5 * np.sqrt(rate / n)
    assert abs(found.mean() - rate) < error
    assert abs(found.var() / rate - 1) < 5 * np.sqrt((2 + 1 / rate) / n)
    ks = np.arange(int(max(0, rate - 6 * rate**0.5)), int(rate + 6 * rate**0.5) + 2)
    log_factorial = np.array([math.lgamma(k + 1) for k in ks])
    wanted = n * np.exp(ks * np.log(rate) - rate - log_factorial)
    counts = np.array([(found == k).sum() for k in ks]) if len(ks) < 500 else wanted
    some = wanted > 10
    chi = ((counts - wanted)[some] ** 2 / wanted[some]).sum()
    assert chi < some.sum() + 5 * np.sqrt(2 * some.sum()) + 5


def test_the_rate_zero_gives_zero_and_leaves_the_state():
    state = np.arange(100).astype(np.uint32)
    found, after = run(["n", "s"], [(u32, state)], [u32, u32], before="s = x0; n = wp.poisson(s, 0.0)")
    assert not found.any() and np.array_equal(after, state)
    found, after = run(["n", "s"], [(u32, state)], [u32, u32], before="s = x0; n = wp.poisson(s, 2.0)")
    assert (after != state).all()
