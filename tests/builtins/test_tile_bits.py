"""Programs on tiles have the same bits on gangs of all widths, forwards and backwards."""

import numpy as np

import treadle as wp


def rows(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@wp.kernel
def whole(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    s = wp.tile_zeros(shape=(8, 8), dtype=float)
    for k in range(2):
        x = wp.tile_load(a, shape=(8, 8), offset=(8 * i - 3, 8 * k))
        y = wp.tile_load(b, shape=(8, 8), offset=(8 * k, 8 * j))
        if (i + k) % 2 == 0:
            wp.tile_matmul(x, y, s)
        else:
            s += x * y
    wp.tile_store(out, wp.tile_map(wp.sin, s), offset=(8 * i, 8 * j))
    wp.tile_store(out, wp.tile_transpose(s)[0:1, :], offset=(8 * i + 7, 8 * j))


def test_all_widths_give_the_same_bits(monkeypatch):
    found = []
    for width in (1, 8, 16):
        monkeypatch.setattr(wp.config, "gang_width", width)
        a, b = wp.array(rows(30, 24), requires_grad=True), wp.array(rows(24, 100, seed=1), requires_grad=True)
        out = wp.zeros((32, 100), dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch_tiled(whole, dim=(4, 13), inputs=[a, b], outputs=[out], block_dim=64)
        tape.backward(grads={out: wp.array(rows(32, 100, seed=2))})
        found.append([x.numpy().tobytes() for x in (out, a.grad, b.grad)])
    assert found[0] == found[1] == found[2]


def test_forward_mode():
    a, b = wp.array(rows(8, 24)), wp.array(rows(24, 8, seed=1))
    da, db = rows(8, 24, seed=2), rows(24, 8, seed=3)

    @wp.kernel
    def kernel(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
        wp.tile_store(out, wp.tile_matmul(wp.tile_load(a, shape=(8, 24)), wp.tile_load(b, shape=(24, 8))))

    out = wp.zeros((8, 8), dtype=float)
    (tangent,) = wp.jvp(kernel, 1, [a, b], [out], [wp.array(da), wp.array(db)])
    np.testing.assert_allclose(tangent.numpy(), da @ b.numpy() + a.numpy() @ db, atol=1e-4)
