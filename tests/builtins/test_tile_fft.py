"""Fourier transforms of tiles are those of NumPy, there and back; their derivatives."""

import numpy as np
import pytest

import treadle as wp


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("n", [1, 8, 12, 35, 64])
def test_transforms_of_rows(n, width, monkeypatch):
    monkeypatch.setattr(wp.config, "gang_width", width)

    @wp.kernel
    def kernel(x: wp.array3d(dtype=wp.vec2d), there: wp.array3d(dtype=wp.vec2d), back: wp.array3d(dtype=wp.vec2d)):
        i = wp.tid()
        t = wp.tile_load(x, shape=(1, 2, n), offset=(i, 0, 0))
        wp.tile_fft(t)
        wp.tile_store(there, t, offset=(i, 0, 0))
        wp.tile_ifft(t)
        wp.tile_store(back, t, offset=(i, 0, 0))

    x = np.random.default_rng(0).normal(size=(3, 2, n, 2))
    there, back = wp.zeros((3, 2, n), dtype=wp.vec2d), wp.zeros((3, 2, n), dtype=wp.vec2d)
    wp.launch_tiled(kernel, dim=3, inputs=[wp.array(x, dtype=wp.vec2d), there, back], block_dim=8)
    found = there.numpy()[..., 0] + 1j * there.numpy()[..., 1]
    np.testing.assert_allclose(found, np.fft.fft(x[..., 0] + 1j * x[..., 1]), atol=1e-12 * n)
    np.testing.assert_allclose(back.numpy(), n * x, atol=1e-12 * n)


def test_derivatives():
    @wp.kernel
    def kernel(x: wp.array2d(dtype=wp.vec2d), y: wp.array2d(dtype=wp.vec2d)):
        t = wp.tile_load(x, shape=(1, 6))
        wp.tile_fft(t)
        wp.tile_store(y, t)

    x = wp.array(np.random.default_rng(0).normal(size=(1, 6, 2)), dtype=wp.vec2d, requires_grad=True)
    y = wp.zeros((1, 6), dtype=wp.vec2d, requires_grad=True)
    assert wp.autograd.gradcheck(kernel, 1, inputs=[x], outputs=[y], eps=1e-5, atol=1e-7, show_summary=False)


def test_other_elements_are_refused():
    @wp.kernel
    def kernel():
        t = wp.tile_zeros(shape=(2, 4), dtype=float)
        wp.tile_fft(t)

    with pytest.raises(wp.KernelTypeError, match="tile of vec2f or vec2d"):
        wp.launch_tiled(kernel, dim=1, block_dim=1)
