"""Tiles by lists of indices, tiles that single threads write to, tiles of random numbers."""

import numpy as np
import pytest

import treadle as wp


def rows(*shape):
    return np.random.default_rng(5).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_axis_by_a_list_of_indices(axis):
    shape = tuple(np.insert([2, 3], axis, 4).tolist())
    offset = tuple(np.insert([1, 2], axis, 1).tolist())

    @wp.kernel
    def kernel(a: wp.array3d(dtype=float), listed: wp.array(dtype=int), out: wp.array3d(dtype=float),
               back: wp.array3d(dtype=float)):  # fmt: skip
        places = wp.tile_load(listed, shape=4)
        t = wp.tile_load_indexed(a, places, shape=shape, offset=offset, axis=axis)
        wp.tile_store(out, t)
        wp.tile_store_indexed(back, places, t, offset=offset, axis=axis)
        wp.tile_atomic_add_indexed(back, places, t, offset=offset, axis=axis)

    a, listed = rows(5, 5, 5), np.array([3, -2, 0, 9], np.int32)
    out, back = wp.zeros(shape, dtype=float), wp.zeros((5, 5, 5), dtype=float)
    x = wp.array(a, requires_grad=True)
    out.requires_grad = back.requires_grad = True
    with wp.Tape() as tape:
        wp.launch_tiled(kernel, dim=1, inputs=[x, wp.array(listed)], outputs=[out, back], block_dim=8)
    expected, written, share = np.zeros(shape), np.zeros((5, 5, 5)), np.zeros((5, 5, 5))
    weights = rows(*shape)
    for c in np.ndindex(*shape):
        at = [o + k for o, k in zip(offset, c)]
        at[axis] = offset[axis] + listed[c[axis]]
        if all(0 <= k < 5 for k in at):
            expected[c], written[tuple(at)] = a[tuple(at)], 2 * a[tuple(at)]
            share[tuple(at)] += weights[c]
    np.testing.assert_array_equal(out.numpy(), expected)
    np.testing.assert_allclose(back.numpy(), written, rtol=1e-6)
    tape.backward(grads={out: wp.array(weights)})
    np.testing.assert_allclose(x.grad.numpy(), share, rtol=1e-6)


@pytest.mark.parametrize("width", [1, 8])
def test_threads_put_values_into_tiles(width, monkeypatch):
    monkeypatch.setattr(wp.config, "gang_width", width)

    @wp.kernel
    def kernel(a: wp.array2d(dtype=float), out: wp.array3d(dtype=float)):
        i = wp.tid()
        t = wp.tile_zeros(shape=(3, 20), dtype=float)
        for k in range(40):
            wp.tile_scatter_add(t, k % 3, k % 20, a[i, k], k % 4 != i % 4)
        wp.tile_scatter_masked(t, 2, i, 9.0, i > 2)
        wp.tile_store(out, wp.tile_reshape(t, (1, 3, 20)), offset=(i, 0, 0))

    a = rows(6, 40)
    out = wp.zeros((6, 3, 20), dtype=float)
    wp.launch_tiled(kernel, dim=6, inputs=[wp.array(a), out], block_dim=16)
    expected = np.zeros((6, 3, 20), np.float32)
    for i in range(6):
        for k in range(40):
            expected[i, k % 3, k % 20] += a[i, k] if k % 4 != i % 4 else 0
        if i > 2:
            expected[i, 2, i] = 9
    np.testing.assert_allclose(out.numpy(), expected, atol=1e-6)


def test_random_tiles_are_the_numbers_of_the_generator():
    @wp.kernel
    def kernel(seed: int, f: wp.array(dtype=float), n: wp.array(dtype=int), plain: wp.array(dtype=float)):
        i = wp.tid()
        rng = wp.rand_init(seed, i)
        wp.tile_store(f, wp.tile_randf(shape=10, rng=rng), offset=i * 20)
        wp.tile_store(f, wp.tile_randf(shape=(10,), rng=rng, min=-1.0, max=1.0), offset=i * 20 + 10)
        wp.tile_store(n, wp.tile_randi(shape=10, rng=rng, min=3, max=6), offset=i * 10)
        wp.randi(rng)
        for k in range(10):
            plain[i * 10 + k] = wp.randf(rng)

    f, n, plain = wp.zeros(60, dtype=float), wp.zeros(30, dtype=int), wp.zeros(30, dtype=float)
    wp.launch_tiled(kernel, dim=3, inputs=[42, f, n, plain], block_dim=4)
    drawn = f.numpy().reshape(3, 2, 10)
    np.testing.assert_array_equal(drawn[:, 0], plain.numpy().reshape(3, 10))
    assert (abs(drawn[:, 1]) <= 1).all() and drawn[:, 1].min() < 0 < drawn[:, 1].max()
    assert set(n.numpy()) == {3, 4, 5}
