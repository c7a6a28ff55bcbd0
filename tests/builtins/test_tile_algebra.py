"""Factors of tiles and triangular systems, against NumPy; their derivatives."""

import numpy as np
import pytest

import treadle as wp

N = 7


def positive(n=N, seed=0):
    m = np.random.default_rng(seed).normal(size=(n, n))
    return (m @ m.T + n * np.eye(n)).astype(np.float32)


def rows(*shape):
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("mode", ["lower", "upper"])
@pytest.mark.parametrize("n", [3, 7])
def test_cholesky_reads_one_triangle(mode, n, width, monkeypatch):
    monkeypatch.setattr(wp.config, "gang_width", width)

    @wp.kernel
    def kernel(a: wp.array2d(dtype=float), y: wp.array2d(dtype=float), f: wp.array2d(dtype=float),
               x: wp.array2d(dtype=float), x1: wp.array(dtype=float)):  # fmt: skip
        t = wp.tile_load(a, shape=(n, n))
        factor = wp.tile_cholesky(t, fill_mode=mode)
        wp.tile_store(f, factor)
        b = wp.tile_load(y, shape=(n, 2))
        wp.tile_store(x, wp.tile_cholesky_solve(factor, b, fill_mode=mode))
        column = wp.tile_squeeze(wp.tile_view(b, offset=(0, 1), shape=(n, 1)))
        wp.tile_cholesky_inplace(t, mode)
        wp.tile_cholesky_solve_inplace(t, column, mode)
        wp.tile_store(x1, column)

    whole, y = positive(n), rows(n, 2)
    half = np.tril(whole) if mode == "lower" else np.triu(whole)
    junk = np.triu(np.full((n, n), np.nan, np.float32), 1)
    given = half + np.where(np.isnan(junk if mode == "lower" else junk.T), 77.0, 0.0).astype(np.float32)
    f, x, x1 = wp.zeros((n, n), dtype=float), wp.zeros((n, 2), dtype=float), wp.zeros(n, dtype=float)
    wp.launch_tiled(kernel, dim=1, inputs=[wp.array(given), wp.array(y), f, x, x1], block_dim=32)
    lower = np.linalg.cholesky(whole.astype(np.float64))
    np.testing.assert_allclose(f.numpy(), lower if mode == "lower" else lower.T, atol=1e-5)
    solution = np.linalg.solve(whole.astype(np.float64), y)
    np.testing.assert_allclose(x.numpy(), solution, atol=1e-5)
    np.testing.assert_allclose(x1.numpy(), solution[:, 1], atol=1e-5)


def test_triangular_systems():
    @wp.kernel
    def kernel(a: wp.array2d(dtype=float), y: wp.array2d(dtype=float), low: wp.array2d(dtype=float),
               up: wp.array2d(dtype=float)):  # fmt: skip
        t = wp.tile_load(a, shape=(N, N))
        b = wp.tile_load(y, shape=(N, 3))
        wp.tile_store(low, wp.tile_lower_solve(t, b))
        wp.tile_upper_solve_inplace(t, b)
        wp.tile_store(up, b)

    a, y = positive(), rows(N, 3)
    low, up = wp.zeros((N, 3), dtype=float), wp.zeros((N, 3), dtype=float)
    wp.launch_tiled(kernel, dim=1, inputs=[wp.array(a), wp.array(y), low, up], block_dim=32)
    np.testing.assert_allclose(low.numpy(), np.linalg.solve(np.tril(a), y), atol=1e-5)
    np.testing.assert_allclose(up.numpy(), np.linalg.solve(np.triu(a), y), atol=1e-5)


def test_derivatives_are_those_of_the_triangle_that_is_read():
    @wp.kernel
    def kernel(a: wp.array2d(dtype=wp.float64), y: wp.array(dtype=wp.float64), x: wp.array(dtype=wp.float64)):
        factor = wp.tile_cholesky(wp.tile_load(a, shape=(4, 4)))
        wp.tile_store(x, wp.tile_cholesky_solve(factor, wp.tile_load(y, shape=4)))

    a = wp.array(positive(4).astype(np.float64), requires_grad=True)
    y = wp.array(rows(4).astype(np.float64), requires_grad=True)
    x = wp.zeros(4, dtype=wp.float64, requires_grad=True)
    assert wp.autograd.gradcheck(kernel, 1, inputs=[a, y], outputs=[x], eps=1e-5, atol=1e-6, show_summary=False)


def test_shapes_that_do_not_fit_are_refused():
    @wp.kernel
    def kernel(a: wp.array2d(dtype=float)):
        t = wp.tile_load(a, shape=(4, 4))
        wp.tile_lower_solve(t, wp.tile_zeros(shape=3, dtype=float))

    with pytest.raises(wp.KernelTypeError, match="'y' must have 4 rows of float32"):
        wp.launch_tiled(kernel, dim=1, inputs=[wp.zeros((4, 4), dtype=float)], block_dim=1)
