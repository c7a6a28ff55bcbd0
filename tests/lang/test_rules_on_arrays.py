"""Custom gradients of functions that read and write arrays."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as wp
from tests.lang.rules import backward, floats, results
from treadle.base.errors import KernelGradientError


@wp.func
def store_sigmoid(i: int, xs: wp.array(dtype=float), ys: wp.array(dtype=float)):
    ys[i] = 1.0 / (1.0 + wp.exp(-xs[i]))


@wp.func_grad(store_sigmoid)
def adj_store_sigmoid(i: int, xs: wp.array(dtype=float), ys: wp.array(dtype=float)):
    wp.adjoint[xs][i] += ys[i] * (1.0 - ys[i]) * wp.adjoint[ys][i]


@wp.kernel
def store_sigmoids(xs: wp.array(dtype=float), ys: wp.array(dtype=float)):
    i = wp.tid()
    store_sigmoid(i, xs, ys)


def test_a_rule_sees_what_the_launch_left_even_if_later_ones_overwrite_it():
    xs, ys, zs = floats([1.0, 2.0, -3.0]), results(3), results(3)
    with wp.Tape() as tape:
        wp.launch(store_sigmoids, 3, inputs=[xs], outputs=[ys])
        wp.copy(zs, ys)
        ys.fill_(0.5)
    s = zs.numpy()
    tape.backward(grads={zs: wp.array([1.0, 2.0, 4.0], dtype=float)})
    np.testing.assert_allclose(xs.grad.numpy(), s * (1.0 - s) * [1.0, 2.0, 4.0], rtol=1e-6)
    assert ys.list() == [0.5, 0.5, 0.5]


def test_an_output_that_keeps_its_value_keeps_its_gradient():
    xs, ys = floats([0.0]), wp.full(1, 0.5, dtype=float, requires_grad=True)
    backward(store_sigmoids, 1, [xs], [ys], [np.array([8.0])])
    np.testing.assert_allclose(xs.grad.numpy(), [2.0])


@wp.func
def row_dot(a: wp.array(dtype=float), w: wp.array(dtype=wp.vec3), k: float):
    s = float(0.0)
    for j in range(a.shape[0]):
        s += a[j] * w[j].x * k
    return s


@wp.func_grad(row_dot)
def adj_row_dot(a: wp.array(dtype=float), w: wp.array(dtype=wp.vec3), k: float, adj: float):
    for j in range(a.shape[0]):
        wp.adjoint[a][j] += adj * w[j].x * k
        wp.atomic_add(wp.adjoint[w], j, wp.vec3(adj * a[j] * k, 0.0, 0.0))
        wp.adjoint[k] += adj * a[j] * w[j].x


@wp.kernel
def rows(m: wp.array2d(dtype=float), w: wp.array(dtype=wp.vec3), k: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    for r in range(3):
        if k[i] > -0.5:
            y[i] += wp.sin(row_dot(m[i], w, k[i] * float(r)))


@pytest.mark.parametrize("w_has_gradient", [True, False])
def test_views_of_arrays_lead_to_the_gradients_of_these_parts(w_has_gradient):
    rng = np.random.default_rng(0)
    m, k = floats(rng.normal(size=(5, 4))), floats(rng.normal(size=5))
    w = floats(rng.normal(size=(4, 3)), wp.vec3, w_has_gradient)
    assert wp.autograd.gradcheck(rows, 5, [m, w, k], [results(5)], eps=1e-2, show_summary=False)
    assert (w.grad is not None) is w_has_gradient


@wp.func
def gather(a: wp.array(dtype=float), w: wp.array(dtype=float), i: int, n: int):
    s = float(0.0)
    for k in range(n):
        s += a[(i + k) % 7] * w[k]
    return s


@wp.func_grad(gather)
def adj_gather(a: wp.array(dtype=float), w: wp.array(dtype=float), i: int, n: int, adj: float):
    for k in range(n):
        wp.adjoint[a][(i + k) % 7] += adj * w[k]
        wp.adjoint[w][k] += adj * a[(i + k) % 7]


@wp.kernel
def gathers(a: wp.array(dtype=float), w: wp.array(dtype=float), rounds: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    s = float(1.0)
    for j in range(rounds[i]):
        s = s * 0.7 + wp.sin(gather(a, w, i + j, j % 4 + 1) * s)
        if s > 1.8:
            continue
        wp.atomic_add(y, j % 2, s)
    y[2 + i] += s


def test_rules_on_arrays_in_loops_of_many_lengths():
    rng = np.random.default_rng(1)
    rounds = wp.array(np.arange(20) % 5, dtype=int)
    inputs = [floats(rng.normal(size=7)), floats(rng.normal(size=4)), rounds]
    assert wp.autograd.gradcheck(gathers, 20, inputs, [results(22)], eps=1e-2, atol=1e-2, show_summary=False)


@wp.struct
class Table:
    values: wp.array(dtype=float)
    scale: float


@wp.func
def look_up(t: Table, i: int):
    return t.values[i] * t.scale


@wp.func_grad(look_up)
def adj_look_up(t: Table, i: int, adj: float):
    wp.adjoint[t.values][i] += adj * t.scale
    wp.adjoint[t.scale] += adj * t.values[i]


def table(values, scale, grad=True):
    made = Table()
    made.values, made.scale = floats(values, grad=grad), scale
    return made


def test_arrays_in_structs_and_in_arrays_of_structs():
    @wp.kernel
    def k(t: Table, many: wp.array(dtype=Table), x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        own = Table()
        own.values = t.values
        own.scale = x[i]
        y[i] = look_up(own, i) + look_up(many[0], i) * x[i] + look_up(many[1], i)

    t, first, second = table([1.0, 2.0], 1.0), table([4.0, 5.0], 3.0), table([7.0, 8.0], 2.0, grad=False)
    x = floats([0.5, 0.25])
    backward(k, 2, [t, wp.array([first, second], dtype=Table), x], [results(2)])
    np.testing.assert_allclose(t.values.grad.numpy(), x.numpy())
    np.testing.assert_allclose(x.grad.numpy(), [1.0 + 12.0, 2.0 + 15.0])
    np.testing.assert_allclose(first.values.grad.numpy(), 3.0 * x.numpy())


@wp.func
def product(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float), n: int, ta: bool, tb: bool):
    for i in range(n):
        for j in range(n):
            s = float(0.0)
            for k in range(n):
                s += a[k * n + i if ta else i * n + k] * b[j * n + k if tb else k * n + j]
            c[i * n + j] += s


@wp.func_grad(product)
def adj_product(
    a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float), n: int, ta: bool, tb: bool
):
    product(wp.adjoint[c], b, wp.adjoint[a], n, False, True)
    product(a, wp.adjoint[c], wp.adjoint[b], n, True, False)


def test_adjoints_of_arrays_can_be_handed_to_functions():
    @wp.kernel
    def k(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float)):
        product(a, b, c, 3, False, False)

    rng = np.random.default_rng(2)
    a, b, seed = floats(rng.normal(size=9)), floats(rng.normal(size=9)), rng.normal(size=9)
    backward(k, 1, [a, b], [results(9)], [seed])
    left, right, g = (np.asarray(v).reshape(3, 3) for v in (a.numpy(), b.numpy(), seed))
    np.testing.assert_allclose(a.grad.numpy().reshape(3, 3), g @ right.T, rtol=1e-5)
    np.testing.assert_allclose(b.grad.numpy().reshape(3, 3), left.T @ g, rtol=1e-5)


def test_a_rule_that_reads_what_the_kernel_changes_and_reads_is_refused():
    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        store_sigmoid(i, x, y)
        y[i] = y[i] * 2.0

    with pytest.raises(KernelGradientError, match="reads 'y', which the kernel also reads and changes"):
        backward(k, 2, [floats([1.0, 2.0])], [results(2)])


@wp.func
def scaled(calls: wp.array(dtype=int), x: float, s: float):
    return x * s


@wp.func_grad(scaled)
def adj_scaled(calls: wp.array(dtype=int), x: float, s: float, adj: float):
    wp.atomic_add(calls, int(adj), 1)
    wp.adjoint[x] += adj * s


def test_a_rule_may_keep_a_record_of_its_own():
    @wp.kernel
    def k(calls: wp.array(dtype=int), x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = scaled(calls, x[i], 3.0)

    calls, x = wp.zeros(3, dtype=int), floats([1.0, 2.0, 3.0])
    backward(k, 3, [calls, x], [results(3)], [np.array([0.0, 2.0, 2.0])])
    assert calls.list() == [1, 0, 2] and x.grad.list() == [0.0, 6.0, 6.0]


def test_a_rule_that_writes_elsewhere_is_refused():
    @wp.func
    def f(a: wp.array(dtype=float), x: float):
        return a[0] * x

    @wp.func_grad(f)
    def adj(a: wp.array(dtype=float), x: float, g: float):
        a[0] = g

    @wp.kernel
    def k(a: wp.array(dtype=float), x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = f(a, x[i])

    with pytest.raises(KernelGradientError, match="adjoint .*f writes to an array that its kernel works on"):
        backward(k, 2, [floats([1.0]), floats([1.0, 2.0])], [results(2)])
