"""Tiles mean what NumPy says of arrays, on every gang width, and have the derivatives that follow."""

from typing import Any

import numpy as np
import pytest

import treadle as wp


@pytest.fixture(params=[1, 8, 16], autouse=True)
def width(request, monkeypatch):
    monkeypatch.setattr(wp.config, "gang_width", request.param)
    return request.param


def rows(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def run(kernel, dim, *arrays, out):
    """The outputs, arrays of the shapes ``out``, of ``kernel`` on ``arrays``."""
    outputs = [wp.zeros(s, dtype=float) if isinstance(s, tuple | int) else s for s in out]
    wp.launch_tiled(kernel, dim=dim, inputs=[wp.array(a) for a in arrays], outputs=outputs, block_dim=64)
    return [o.numpy() for o in outputs]


# -- making and memory -------------------------------------------------------------------------------------------------


def test_what_lies_outside_of_an_array_is_zero_when_loaded_and_dropped_when_stored():
    @wp.kernel
    def shift(a: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
        i, j = wp.tid()
        t = wp.tile_load(a, shape=(3, 4), offset=(i * 3 - 1, j * 4 - 2))
        wp.tile_store(out, t, offset=(i * 3, j * 4))

    a = rows(7, 10)
    (out,) = run(shift, (4, 4), a, out=[(9, 11)])
    expected = np.zeros((12, 16), np.float32)
    expected[1:8, 2:12] = a
    np.testing.assert_array_equal(out, expected[:9, :11])


@pytest.mark.parametrize("ndim", [1, 2, 3, 4])
def test_tiles_have_one_to_four_dimensions(ndim):
    shape, start = (3, 2, 4, 5)[4 - ndim :], (1, 0, 2, 1)[4 - ndim :]

    @wp.kernel
    def part(a: wp.array(dtype=float, ndim=ndim), out: wp.array(dtype=float, ndim=ndim)):
        t = wp.tile_load(a, shape=shape, offset=start)
        wp.tile_atomic_add(out, t)
        wp.tile_store(out, t + wp.tile_load(out, shape=shape))

    a = rows(*[n + 3 for n in shape])
    (out,) = run(part, 1, a, out=[shape])
    np.testing.assert_array_equal(out, 2 * a[tuple(slice(s, s + n) for s, n in zip(start, shape))])


def test_making():
    @wp.kernel
    def make(out: wp.array2d(dtype=float)):
        wp.tile_store(out, wp.tile_ones(shape=(1, 6), dtype=float), offset=(0, 0))
        wp.tile_store(out, wp.tile_full(shape=(1, 6), value=2.5, dtype=float), offset=(1, 0))
        wp.tile_store(out, wp.tile_reshape(wp.tile_arange(0.0, 3.0, 0.5), (1, -1)), offset=(2, 0))
        wp.tile_store(out, wp.tile_astype(wp.tile_reshape(wp.tile_arange(6), (1, 6)), dtype=float), offset=(3, 0))
        wp.tile_store(out, wp.tile_zeros(shape=(1, 6), dtype=float), offset=(4, 0))

    (out,) = run(make, 1, out=[(5, 6)])
    np.testing.assert_array_equal(out, [[1] * 6, [2.5] * 6, np.arange(0, 3, 0.5), np.arange(6), [0] * 6])


def test_tiles_are_values():
    @wp.kernel
    def kernel(a: wp.array(dtype=float), out: wp.array2d(dtype=float)):
        t = wp.tile_load(a, shape=50)
        s = t
        s[3] = 100.0
        t[wp.tid()] += 1.0
        wp.tile_store(out, wp.tile_reshape(t, (1, 50)))
        wp.tile_store(out, wp.tile_reshape(s, (1, 50)), offset=(1, 0))

    a = rows(50)
    (out,) = run(kernel, 1, a, out=[(2, 50)])
    t, s = a.copy(), a.copy()
    s[3], t[0] = 100.0, t[0] + 1.0
    np.testing.assert_array_equal(out, [t, s])


def test_branches_and_loops_carry_tiles():
    @wp.kernel
    def kernel(a: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
        i = wp.tid()
        t = wp.tile_load(a, shape=(1, 40), offset=(i, 0))
        u = wp.tile_ones(shape=(1, 40), dtype=float)
        for k in range(i):
            if k % 2 == 0:
                t = t + u
                u[0, k] = 3.0
            else:
                t, u = u, t
        wp.tile_store(out, t - u, offset=(i, 0))

    a = rows(20, 40)
    (out,) = run(kernel, 20, a, out=[(20, 40)])
    for i in range(20):
        t, u = a[i].copy(), np.ones(40, np.float32)
        for k in range(i):
            if k % 2 == 0:
                t = t + u
                u[k] = 3.0
            else:
                t, u = u, t
        np.testing.assert_array_equal(out[i], t - u)


def test_elements_that_are_vectors_and_matrices():
    @wp.kernel
    def kernel(a: wp.array(dtype=wp.vec3), m: wp.array(dtype=wp.mat22), out: wp.array(dtype=float)):
        i = wp.tid()
        t = wp.tile_load(a, shape=4)
        n = wp.tile_load(m, shape=3)
        t[i][1] = 5.0
        t[2] = 2.0 * t[2]
        out[0] = t[i][1]
        out[1] = wp.dot(t[2], t[1])
        out[2] = n[i + 1][1, 0]
        out[3] = wp.tile_extract(t, 3, 2)
        out[4] = wp.tile_sum(t)[0][0]
        out[5] = wp.tile_dot(t, t)[0]

    a, m = rows(4, 3), rows(3, 2, 2)
    out = wp.zeros(6, dtype=float)
    wp.launch_tiled(kernel, dim=1, inputs=[wp.array(a, dtype=wp.vec3), wp.array(m, dtype=wp.mat22), out], block_dim=8)
    t = a.copy()
    t[0, 1], t[2] = 5.0, 2 * t[2]
    expected = [5.0, t[2] @ t[1], m[1, 1, 0], t[3, 2], t[:, 0].sum(), (t * t).sum()]
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5)


@wp.func
def bump(t: wp.tile[float, 2, 3], x: float):
    if x > 1.0:
        t += wp.tile_ones(shape=(2, 3), dtype=float) * x
        return 1
    t[0, 0] = -1.0
    return 2


@wp.func
def mark(t: wp.tile(dtype=float, shape=(2, 3)), here: bool):
    if here:
        t[1, 2] = -5.0


@wp.func
def twice(t: wp.tile(dtype=float, shape=(2, 3))):
    u = t * 2.0
    bump(u, 5.0)
    bump(t, 1.5)
    t += u
    return t


@wp.func
def only_reads(t: Any):
    t = t * 3.0
    t[0, 0] = 99.0
    return t


def test_functions_change_tiles_that_they_are_passed():
    @wp.kernel
    def kernel(a: wp.array2d(dtype=float), out: wp.array2d(dtype=float), n: wp.array(dtype=int)):
        n[wp.tid()] = 0
        t = wp.tile_load(a, shape=(2, 3))
        n[0] = bump(t, 2.0)
        n[1] = bump(t, 0.5)
        for q in range(n[0] + 2):
            bump(t, float(q))
        wp.tile_store(out, t)
        wp.tile_store(out, twice(t), offset=(2, 0))
        wp.tile_store(out, t, offset=(4, 0))
        only_reads(t)
        wp.tile_store(out, t, offset=(6, 0))
        w = wp.tile_zeros(shape=(4, 3), dtype=float)
        bump(w[1:3], 4.0)
        mark(w[2:4], True)
        mark(w[0:2], False)
        wp.tile_store(out, w, offset=(8, 0))

    a, n = rows(2, 3), wp.zeros(2, dtype=int)
    out = wp.zeros((12, 3), dtype=float)
    wp.launch_tiled(kernel, dim=1, inputs=[wp.array(a), out, n], block_dim=4)
    t = a + np.float32(2)
    t[0, 0] = -1
    t[0, 0] = -1
    t = t + np.float32(2)
    first = t.copy()
    t = t + np.float32(1.5) + (2 * first + np.float32(5))
    assert n.list() == [1, 2]
    np.testing.assert_allclose(out.numpy(), [*first, *t, *t, *t, [0] * 3, [4] * 3, [4] * 3, [0, 0, -5]], rtol=1e-6)


# -- shapes ------------------------------------------------------------------------------------------------------------


def test_shapes():
    @wp.kernel
    def kernel(a: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
        i = wp.tid()
        t = wp.tile_load(a, shape=(4, 6))
        wp.tile_store(out, wp.tile_transpose(t))
        wp.tile_store(out, wp.tile_view(t, offset=(i + 1, 2), shape=(2, 3)), offset=(6, 0))
        wp.tile_store(out, wp.tile_broadcast(wp.tile_view(t, offset=(2,)), shape=(2, 6)), offset=(8, 0))
        wp.tile_store(out, wp.tile_reshape(t[3], shape=(2, 3)), offset=(10, 0))
        wp.tile_assign(t, wp.tile_ones(shape=(2, 2), dtype=float), offset=(1, i + 3))
        wp.tile_store(out, t, offset=(12, 0))
        column = wp.tile_squeeze(wp.tile_view(t, offset=(0, 5), shape=(4, 1)))
        wp.tile_store(out, wp.tile_broadcast(wp.tile_reshape(column, (4, 1)), shape=(4, 3)), offset=(16, 0))

    a = rows(4, 6)
    (out,) = run(kernel, 1, a, out=[(20, 6)])
    np.testing.assert_array_equal(out[:6, :4], a.T)
    np.testing.assert_array_equal(out[6:8, :3], a[1:3, 2:5])
    np.testing.assert_array_equal(out[8:10], [a[2], a[2]])
    np.testing.assert_array_equal(out[10:12, :3], a[3].reshape(2, 3))
    changed = a.copy()
    changed[1:3, 3:5] = 1
    np.testing.assert_array_equal(out[12:16], changed)
    np.testing.assert_array_equal(out[16:20, :3], np.repeat(changed[:, 5:6], 3, axis=1))


def test_parts_by_slices_and_lists():
    @wp.kernel
    def kernel(a: wp.array2d(dtype=float), listed: wp.array(dtype=int), out: wp.array2d(dtype=float)):
        i = wp.tid()
        t = wp.tile_load(a, shape=(6, 8))
        wp.tile_store(out, t[1:5:2, :])
        t[i] = t[3]
        t[4:, 2:4] = t[:2, ::-4]
        t[-1][1] = 50.0
        wp.tile_store(out, t, offset=(2, 0))
        chosen = wp.tile_load(listed, shape=3)
        wp.tile_store(out, t[chosen, :], offset=(8, 0))
        wp.tile_store(out, t[:, 2:3], offset=(11, 0))

    a, listed = rows(6, 8), np.array([2, -1, 0], np.int32)
    out = wp.zeros((17, 8), dtype=float)
    wp.launch_tiled(kernel, dim=1, inputs=[wp.array(a), wp.array(listed), out], block_dim=4)
    found, t = out.numpy(), a.copy()
    np.testing.assert_array_equal(found[:2], t[1:5:2])
    t[0] = t[3]
    t[4:, 2:4] = t[:2, ::-4]
    t[-1][1] = 50
    np.testing.assert_array_equal(found[2:8], t)
    np.testing.assert_array_equal(found[8:11], t[[2, -1, 0]])
    np.testing.assert_array_equal(found[11:, :1], t[:, 2:3])


def test_views_share_elements_with_what_they_are_taken_from():
    @wp.kernel
    def kernel(a: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
        i = wp.tid()
        t = wp.tile_load(a, shape=(6, 8))
        v = wp.tile_view(t, offset=(1, i), shape=(2, 8))
        r = t[4]
        copy = t
        turned = wp.tile_transpose(t)
        v[0, 1] = 5.0
        wp.tile_assign(v, wp.tile_zeros(shape=(1, 2), dtype=float), offset=(1, 3))
        t[4, 2] = 9.0
        turned[7, 5] = -3.0
        for q in range(3):
            w = t[q]
            w[q] = 11.0
            w += w
        wp.tile_store(out, t)
        wp.tile_store(out, wp.tile_reshape(r, (1, 8)), offset=(6, 0))
        wp.tile_store(out, copy, offset=(7, 0))
        wp.tile_store(out, wp.tile_transpose(turned), offset=(13, 0))

    a = rows(6, 8)
    (out,) = run(kernel, 1, a, out=[(19, 8)])
    t = a.copy()
    t[1, 1], t[2, 3:5], t[4, 2], t[5, 7] = 5.0, 0.0, 9.0, -3.0
    for q in range(3):
        t[q, q] = 11.0
        t[q] *= 2
    np.testing.assert_array_equal(out, [*t, t[4], *a, *t])


def test_sharing_across_loops_is_refused():
    @wp.kernel
    def kernel(a: wp.array2d(dtype=float)):
        t = wp.tile_load(a, shape=(6, 8))
        v = t[1:3]
        for q in range(wp.tid()):
            t[q, 0] = 3.0
        wp.tile_store(a, v)

    assert "'v' (tile(dtype=float32, shape=(2, 8))) was a part of 't'" in refused(kernel, wp.zeros((6, 8), dtype=float))


def test_printing(capfd):
    @wp.kernel
    def kernel(a: wp.array2d(dtype=float)):
        t = wp.tile_load(a, shape=(2, 3))
        print(t)
        print(t[1])

    wp.launch_tiled(kernel, dim=1, inputs=[wp.array(np.arange(6, dtype=np.float32).reshape(2, 3))], block_dim=4)
    said = capfd.readouterr().out
    assert said == "[[0 1 2]\n [3 4 5]] = tile(shape=(2,3), storage=register)\n" \
                   "[3 4 5] = tile(shape=(3), storage=register)\n"  # fmt: skip


def test_tiles_made_of_the_threads_own_values():
    @wp.kernel
    def kernel(out: wp.array2d(dtype=float)):
        i, lane = wp.tid()
        t = wp.tile(float(i) + 0.5)
        v = wp.tile(wp.vec3(1.0, 2.0, float(i)))
        back = wp.untile(v)
        out[i, 0] = wp.untile(wp.tile_sum(t)) + float(lane)
        out[i, 1] = back[2] + v[1, 0]
        out[i, 2] = wp.tile(wp.vec2(3.0, 4.0), preserve_type=True)[0][1]

    (out,) = run(kernel, 3, out=[(3, 3)])
    np.testing.assert_array_equal(out, [[i + 0.5, i + 2.0, 4.0] for i in range(3)])


# -- mathematics -------------------------------------------------------------------------------------------------------


@wp.func
def mix(x: float, y: float, s: float):
    return x * s + wp.sin(y)


def test_maps_and_arithmetic():
    @wp.kernel
    def kernel(a: wp.array2d(dtype=float), out: wp.array3d(dtype=float)):
        x = wp.tile_load(a, shape=(6, 8))
        y = wp.tile_map(wp.abs, x)
        wp.tile_store(out, wp.tile_reshape(wp.tile_map(mix, x, y, 0.25), (1, 6, 8)))
        wp.tile_store(out, wp.tile_reshape((x + y) * x / (y + wp.tile_ones(shape=(6, 8), dtype=float)), (1, 6, 8)),
                      offset=(1, 0, 0))  # fmt: skip
        wp.tile_store(out, wp.tile_reshape(-x * 3.0 - 2.0 * y, (1, 6, 8)), offset=(2, 0, 0))

    a = rows(6, 8)
    (out,) = run(kernel, 1, a, out=[(3, 6, 8)])
    b = np.abs(a)
    np.testing.assert_allclose(out, [a * 0.25 + np.sin(b), (a + b) * a / (b + 1), -a * 3 - 2 * b], atol=2e-6)


def test_reductions():
    @wp.kernel
    def kernel(a: wp.array3d(dtype=float), out: wp.array(dtype=float), sums: wp.array2d(dtype=float)):
        t = wp.tile_load(a, shape=(3, 5, 4))
        out[0] = wp.tile_sum(t)[0]
        out[1] = wp.tile_min(t)[0]
        out[2] = wp.tile_max(t)[0]
        out[3] = float(wp.tile_argmin(t)[0])
        out[4] = float(wp.tile_argmax(t)[0])
        out[5] = wp.tile_reduce(wp.max, t)[0]
        wp.tile_store(sums, wp.tile_sum(t, axis=1))
        wp.tile_store(sums, wp.tile_reduce(wp.min, t, axis=-1), offset=(3, 0))

    a = rows(3, 5, 4)
    out, sums = run(kernel, 1, a, out=[6, (6, 5)])
    np.testing.assert_allclose(out, [a.sum(), a.min(), a.max(), a.argmin(), a.argmax(), a.max()], rtol=1e-5)
    np.testing.assert_allclose(sums[:3, :4], a.sum(axis=1), rtol=1e-5)
    np.testing.assert_array_equal(sums[3:], a.min(axis=2))


def test_scans_and_sorting():
    @wp.kernel
    def kernel(a: wp.array2d(dtype=float), out: wp.array3d(dtype=float)):
        i = wp.tid()
        t = wp.tile_load(a, shape=(1, 45), offset=(i, 0))
        wp.tile_store(out, wp.tile_reshape(wp.tile_scan_inclusive(t), (1, 1, 45)), offset=(i, 0, 0))
        wp.tile_store(out, wp.tile_reshape(wp.tile_scan_exclusive(t), (1, 1, 45)), offset=(i, 1, 0))
        wp.tile_store(out, wp.tile_reshape(wp.tile_scan_max_inclusive(t), (1, 1, 45)), offset=(i, 2, 0))
        wp.tile_store(out, wp.tile_reshape(wp.tile_scan_min_inclusive(t), (1, 1, 45)), offset=(i, 3, 0))
        places = wp.tile_reshape(wp.tile_arange(0.0, 45.0), (1, 45))
        wp.tile_sort(t, places)
        wp.tile_store(out, wp.tile_reshape(t, (1, 1, 45)), offset=(i, 4, 0))
        wp.tile_store(out, wp.tile_reshape(places, (1, 1, 45)), offset=(i, 5, 0))

    a = rows(9, 45)
    (out,) = run(kernel, 9, a, out=[(9, 6, 45)])
    total = np.cumsum(a, axis=1)
    np.testing.assert_allclose(out[:, 0], total, atol=1e-5)
    np.testing.assert_allclose(out[:, 1], total - a, atol=1e-5)
    np.testing.assert_array_equal(out[:, 2], np.maximum.accumulate(a, axis=1))
    np.testing.assert_array_equal(out[:, 3], np.minimum.accumulate(a, axis=1))
    np.testing.assert_array_equal(out[:, 4], np.sort(a, axis=1))
    np.testing.assert_array_equal(out[:, 5], np.argsort(a, axis=1))


@pytest.mark.parametrize(("m", "k", "n"), [(2, 3, 4), (5, 7, 3), (8, 16, 12)])
def test_products(m, k, n):
    @wp.kernel
    def kernel(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), out: wp.array3d(dtype=float)):
        x = wp.tile_load(a, shape=(m, k))
        y = wp.tile_load(b, shape=(k, n))
        z = wp.tile_ones(shape=(m, n), dtype=float)
        wp.tile_store(out, wp.tile_reshape(wp.tile_matmul(x, y), (1, m, n)))
        wp.tile_matmul(x, y, z)
        wp.tile_store(out, wp.tile_reshape(z, (1, m, n)), offset=(1, 0, 0))
        wp.tile_matmul(x, y, out=z, alpha=2.0, beta=-1.0)
        wp.tile_axpy(0.5, z, z)
        wp.tile_store(out, wp.tile_reshape(z, (1, m, n)), offset=(2, 0, 0))

    a, b = rows(m, k), rows(k, n, seed=1)
    (out,) = run(kernel, 1, a, b, out=[(3, m, n)])
    np.testing.assert_allclose(out, [a @ b, a @ b + 1, 1.5 * (2 * a @ b - (a @ b + 1))], atol=2e-5)


def test_factors_and_a_sum_of_different_float_types():
    @wp.kernel
    def kernel(a: wp.array2d(dtype=wp.float32), b: wp.array2d(dtype=wp.float16), out: wp.array2d(dtype=wp.float64)):
        total = wp.tile_zeros(shape=(3, 2), dtype=wp.float64)
        for k in range(2):
            x = wp.tile_load(a, shape=(3, 4), offset=(0, 4 * k))
            y = wp.tile_load(b, shape=(4, 2), offset=(4 * k, 0))
            wp.tile_matmul(x, y, total)
            wp.tile_matmul(x, y, total, alpha=0.1)
        wp.tile_store(out, total)

    x, y = rows(3, 8), rows(8, 2, seed=1).astype(np.float16)
    a, b = (wp.array(v, requires_grad=True) for v in (x, y))
    out = wp.zeros((3, 2), dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch_tiled(kernel, dim=1, inputs=[a, b], outputs=[out], block_dim=64)
    tape.backward(grads={out: wp.ones((3, 2), dtype=wp.float64)})
    x, y = x.astype(np.float64), y.astype(np.float64)
    np.testing.assert_allclose(out.numpy(), 1.1 * x @ y, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(a.grad.numpy(), 1.1 * np.ones((3, 2)) @ y.T, rtol=1e-6)
    np.testing.assert_allclose(b.grad.numpy(), 1.1 * x.T @ np.ones((3, 2)), rtol=2e-3, atol=2e-3)


def test_a_view_taken_in_a_nest_of_loops():
    """Nobody reads ``turned`` before it is assigned, but the elements that it shares with ``t`` are read."""

    @wp.kernel
    def kernel(a: wp.array2d(dtype=float), n: int, out: wp.array2d(dtype=float)):
        for i in range(n):
            for j in range(n):
                t = wp.tile_load(a, shape=(2, 2), offset=(2 * i, 2 * j))
                turned = wp.tile_transpose(t)
                wp.tile_store(out, turned, offset=(2 * j, 2 * i))

    a, out = rows(6, 6), wp.zeros((6, 6), dtype=float)
    wp.launch_tiled(kernel, dim=1, inputs=[wp.array(a), 3], outputs=[out], block_dim=64)
    np.testing.assert_array_equal(out.numpy(), a.T)


# -- derivatives -------------------------------------------------------------------------------------------------------


def test_derivatives_of_loads_maps_sums_and_products():
    @wp.kernel
    def kernel(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
        i = wp.tid()
        x = wp.tile_load(a, shape=(3, 4), offset=(3 * i, -1))
        y = wp.tile_load(b, shape=(4, 2))
        z = wp.tile_map(mix, wp.tile_matmul(x, y), wp.tile_ones(shape=(3, 2), dtype=float), 0.5)
        z[1, 1] = z[0, 0] * z[2, 1]
        s = wp.tile_sum(z, axis=0)
        wp.tile_store(out, z + wp.tile_broadcast(s, (3, 2)), offset=(3 * i, 0))
        wp.tile_atomic_add(out, wp.tile_transpose(z), offset=(6, 0))

    a, b = (wp.array(rows(*s), requires_grad=True) for s in ((6, 4), (4, 2)))
    out = wp.zeros((8, 3), dtype=float, requires_grad=True)
    assert wp.autograd.gradcheck(kernel, (2, 1), inputs=[a, b], outputs=[out], eps=1e-2, show_summary=False)


def test_derivatives_of_large_tiles():
    @wp.kernel
    def kernel(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
        i = wp.tid()
        s = wp.tile_zeros(shape=(8, 8), dtype=float)
        for k in range(2):
            x = wp.tile_load(a, shape=(8, 8), offset=(8 * i, 8 * k))
            y = wp.tile_load(b, shape=(8, 8), offset=(8 * k, 0))
            wp.tile_matmul(x, y, s)
        wp.tile_store(out, wp.tile_map(wp.tanh, s), offset=(8 * i, 0))

    x, y = rows(16, 16), rows(16, 8, seed=1)
    a, b = wp.array(x, requires_grad=True), wp.array(y, requires_grad=True)
    out = wp.zeros((16, 8), dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch_tiled(kernel, dim=2, inputs=[a, b], outputs=[out], block_dim=64)
    weights = rows(16, 8, seed=2)
    tape.backward(grads={out: wp.array(weights)})
    inner = weights * (1 - np.tanh(x @ y) ** 2)
    np.testing.assert_allclose(a.grad.numpy(), inner @ y.T, atol=1e-4)
    np.testing.assert_allclose(b.grad.numpy(), x.T @ inner, atol=1e-4)


# -- errors ------------------------------------------------------------------------------------------------------------


def refused(kernel, *arrays):
    with pytest.raises(wp.KernelTypeError) as found:
        wp.launch_tiled(kernel, dim=1, inputs=list(arrays), block_dim=1)
    return str(found.value)


def test_errors_name_the_shapes():
    @wp.kernel
    def load(a: wp.array2d(dtype=float)):
        wp.tile_load(a, shape=4)

    @wp.kernel
    def product(a: wp.array2d(dtype=float)):
        t = wp.tile_load(a, shape=(2, 3))
        wp.tile_matmul(t, t)

    @wp.kernel
    def unknown(a: wp.array2d(dtype=float)):
        wp.tile_zeros(shape=a.shape[0], dtype=float)

    a = wp.zeros((4, 4), dtype=float)
    assert "'shape' must have 2 numbers" in refused(load, a)
    assert "tile(dtype=float32, shape=(2, 3))" in refused(product, a)
    assert "'shape' must be a constant int" in refused(unknown, a)


def test_a_launch_needs_the_size_of_blocks():
    @wp.kernel
    def nothing():
        wp.tid()

    with pytest.raises(wp.LaunchError, match="block_dim"):
        wp.launch_tiled(nothing, dim=1)
    with pytest.raises(wp.LaunchError, match="3 dimensions"):
        wp.launch_tiled(nothing, dim=(1, 1, 1, 1), block_dim=4)
