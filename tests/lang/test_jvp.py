"""``wp.jvp``: launches with tangents."""

from __future__ import annotations

import doctest
import importlib

import numpy as np
import pytest

import treadle as wp
from treadle.base.errors import KernelGradientError, LaunchError, LaunchTypeError


@wp.struct
class Spring:
    stiffness: wp.float64
    rest: wp.array(dtype=wp.float64)
    count: int


@wp.kernel
def pull(x: wp.array(dtype=wp.vec3d), spring: Spring, scale: wp.float64, force: wp.array(dtype=wp.float64)):
    i = wp.tid()
    force[i] = (wp.length(x[i]) - spring.rest[i]) * spring.stiffness * scale


@wp.kernel
def step(x: wp.array(dtype=wp.float64), v: wp.array(dtype=wp.float64), dt: wp.float64):
    i = wp.tid()
    v[i] -= dt * wp.sin(x[i])
    x[i] += dt * v[i]


@wp.kernel
def smooth(a: wp.array(dtype=wp.float64), b: wp.array(dtype=wp.float64)):
    for k in range(b.shape[0]):
        b[k] = 0.5 * b[k] + a[k] * a[k]


def doubles(values: object) -> wp.array:
    return wp.array(values, dtype=wp.float64)


def spring_of(stiffness: float, rest: object) -> Spring:
    made = Spring()
    made.stiffness, made.rest, made.count = stiffness, rest, 7
    return made


def test_every_kind_of_argument_has_a_tangent():
    rng = np.random.default_rng(0)
    (x, dx), rest, drest = rng.standard_normal((2, 4, 3)), np.arange(4.0), rng.standard_normal(4)
    force = wp.zeros(4, dtype=wp.float64)
    inputs = [wp.array(x, dtype=wp.vec3d), spring_of(2.0, doubles(rest)), 0.5]
    (df,) = wp.jvp(pull, 4, inputs, [force], [dx, spring_of(3.0, doubles(drest)), -0.25])
    length = np.linalg.norm(x, axis=1)
    assert np.allclose(force.numpy(), (length - rest) * 2.0 * 0.5)
    stretch = (x * dx).sum(1) / length - drest
    assert np.allclose(df.numpy(), stretch * 2.0 * 0.5 + (length - rest) * (3.0 * 0.5 - 2.0 * 0.25), rtol=1e-12)


def test_tangents_by_name_and_missing_ones_are_zero():
    x, force = wp.array([[3.0, 0.0, 4.0]], dtype=wp.vec3d), wp.zeros(1, dtype=wp.float64)
    inputs = [x, spring_of(2.0, doubles([1.0])), 0.5]
    (df,) = wp.jvp(pull, 1, inputs, [force], {"scale": 10.0})
    assert df.list() == [80.0]
    (df,) = wp.jvp(pull, 1, inputs, [force], {"spring": spring_of(1.0, None)})
    assert df.list() == [2.0]
    (df,) = wp.jvp(pull, 1, inputs, [force])
    assert df.list() == [0.0] and force.list() == [4.0]


def test_a_state_stepped_in_place_takes_its_tangents_along():
    """A pendulum's state after 100 steps, by its start: against difference quotients."""

    def run(start: np.ndarray) -> np.ndarray:
        x, v = doubles(start), doubles(np.zeros(3))
        for _ in range(100):
            wp.launch(step, 3, [x, v, 0.05])
        return x.numpy().copy()

    start, direction = np.array([0.1, 1.0, 2.0]), np.array([1.0, 1.0, -2.0])
    x, v, dx, dv = doubles(start), doubles(np.zeros(3)), doubles(direction), doubles(np.zeros(3))
    for _ in range(100):
        wp.jvp(step, 3, [x, v, 0.05], tangents=[dx, dv])
    assert np.array_equal(x.numpy(), run(start))
    h = 1e-6
    quotient = (run(start + h * direction) - run(start - h * direction)) / (2 * h)
    assert np.allclose(dx.numpy(), quotient, rtol=1e-7)


def test_outputs_give_their_own_tangent_array_back():
    x, v, dx, dv = (doubles(np.full(2, value)) for value in (0.0, 1.0, 1.0, 0.0))
    (back,) = wp.jvp(smooth, 1, [x], [v], [dx, dv])
    assert back is dv


def test_arrays_that_share_memory_share_tangents():
    whole, d = doubles([1.0, 2.0, 3.0, 4.0]), doubles([1.0, 10.0, 100.0, 1000.0])
    wp.jvp(smooth, 1, [whole[0:3]], [whole[1:4]], [d[0:3], d[1:4]])
    a, da = [1.0, 2.0, 3.0, 4.0], [1.0, 10.0, 100.0, 1000.0]
    for k in range(3):  # what the kernel does, element by element
        da[k + 1] = 0.5 * da[k + 1] + 2 * a[k] * da[k]
        a[k + 1] = 0.5 * a[k + 1] + a[k] * a[k]
    assert whole.list() == a and d.list() == da


def test_one_tangent_serves_all_that_share_memory():
    whole = doubles([1.0, 2.0, 3.0])
    (db,) = wp.jvp(smooth, 1, [whole[0:2]], [whole[1:3]], [[1.0, 10.0]])
    assert db.list() == [0.5 * 10 + 2, 2 * 2.0 * 7.0]


def test_tangents_of_shared_memory_must_agree():
    whole = doubles([1.0, 2.0, 3.0])
    with pytest.raises(LaunchError, match="a and b share memory"):
        wp.jvp(smooth, 1, [whole[0:2]], [whole[1:3]], [[1.0, 10.0], [11.0, 0.0]])


def test_a_tangent_of_another_layout_is_copied_in_and_out():
    a, b = doubles([1.0, 2.0, 3.0]), doubles([1.0, 1.0, 1.0])
    wide = doubles(np.ones(6))
    (db,) = wp.jvp(smooth, 1, [a], [b], [[1.0, 1.0, 1.0], wide[::2]])
    assert db.list() == [2.5, 4.5, 6.5] and wide.list() == [2.5, 1.0, 4.5, 1.0, 6.5, 1.0]


def test_the_values_are_those_of_a_launch_in_every_width():
    rng = np.random.default_rng(1)
    start = rng.uniform(-3, 3, 50)
    results = []
    for width in (None, 1, 8, 16):
        before, wp.config.gang_width = wp.config.gang_width, width
        try:
            x, v, dx, dv = doubles(start), doubles(start[::-1].copy()), doubles(start * 0.3), doubles(np.ones(50))
            if width is None:
                wp.launch(step, 50, [x, v, 0.1])
            else:
                wp.jvp(step, 50, [x, v, 0.1], tangents=[dx, dv, 0.7])
                results.append((dx.numpy().tobytes(), dv.numpy().tobytes()))
            values = x.numpy().tobytes(), v.numpy().tobytes()
            assert width is None or values == first
            first = values
        finally:
            wp.config.gang_width = before
    assert len(set(results)) == 1


def test_bad_tangents_are_told():
    x, v = doubles([1.0]), doubles([1.0])
    with pytest.raises(LaunchError, match="3 arguments, 4 tangents"):
        wp.jvp(step, 1, [x, v, 0.1], tangents=[None] * 4)
    with pytest.raises(LaunchError, match="no argument 'w'"):
        wp.jvp(step, 1, [x, v, 0.1], tangents={"w": x})
    with pytest.raises(LaunchTypeError, match="tangent of argument 'x': shape"):
        wp.jvp(step, 1, [x, v, 0.1], tangents=[[1.0, 2.0]])
    with pytest.raises(LaunchTypeError, match="tangent of argument 'dt'"):
        wp.jvp(step, 1, [x, v, 0.1], tangents=[None, None, x])
    with pytest.raises(LaunchTypeError, match="takes a kernel"):
        wp.jvp(len, 1)


def test_what_has_no_derivative_is_told_with_its_line():
    @wp.kernel
    def points(x: wp.array(dtype=wp.float64), p: wp.uint64):
        x[0] = x[0] * wp.array(ptr=p, shape=(1,), dtype=wp.float64)[0]

    x = doubles([1.0])
    with pytest.raises(KernelGradientError, match=r"x\[0\] = x\[0\] \*"):
        wp.jvp(points, 1, [x, wp.uint64(x.ptr)], tangents=[[1.0]])


@wp.kernel
def turn(
    a: wp.array2d(dtype=wp.float64),
    q: wp.array(dtype=wp.quatd),
    m: wp.array(dtype=wp.mat33d),
    out: wp.array2d(dtype=wp.float64),
    ends: wp.array(dtype=wp.vec3d),
):
    i, j = wp.tid()
    r = wp.quat_rotate(wp.normalize(q[i]), wp.vec3d(a[i, j], wp.float64(1.0), a[i, j] * a[i, j]))
    s = wp.determinant(m[i]) * wp.atan2(r[0], r[1]) + wp.pow(wp.abs(r[2]) + 1.0, a[i, j])
    out[i, j] = s + wp.dot(wp.inverse(m[i]) * r, r)
    wp.atomic_add(ends, 0, r)
    wp.atomic_max(ends, 1, r)


@pytest.mark.parametrize("shape", [(3, 40), (5, 3)])
def test_grids_of_two_dimensions_and_arrays_of_composites(shape):
    rng = np.random.default_rng(2)
    given = rng.standard_normal(shape), rng.standard_normal((shape[0], 4)), rng.standard_normal((shape[0], 3, 3))
    given[2][...] += 2 * np.eye(3)
    direction = [rng.standard_normal(x.shape) for x in given]
    kinds = wp.float64, wp.quatd, wp.mat33d

    def launch(move: float, tangents: list | None = None) -> tuple[np.ndarray, list]:
        inputs = [wp.array(x + move * d, dtype=t) for x, d, t in zip(given, direction, kinds)]
        outputs = [wp.zeros(shape, dtype=wp.float64), wp.array(np.full((2, 3), -9.0), dtype=wp.vec3d)]
        found = []
        if tangents is None:
            wp.launch(turn, shape, inputs, outputs)
        else:
            found = wp.jvp(turn, shape, inputs, outputs, tangents)
        return flat(outputs), found

    values, tangents = launch(0.0, direction)
    assert np.array_equal(values, launch(0.0)[0])
    h = 1e-6
    quotient = (launch(h)[0] - launch(-h)[0]) / (2 * h)
    assert np.abs(flat(tangents) - quotient).max() < 1e-8 * np.abs(quotient).max()


def flat(arrays: list) -> np.ndarray:
    return np.concatenate([a.numpy().ravel() for a in arrays])


@pytest.mark.host
def test_checked_modules_check_indices_here_too():
    @wp.kernel(module="unique", module_options={"mode": "debug"})
    def past(a: wp.array(dtype=wp.float64), b: wp.array(dtype=wp.float64)):
        i = wp.tid()
        b[i] = a[2 * i]

    with pytest.raises(IndexError, match=r"a\[2 \* i\](.|\n)*index 4 is out of bounds of array 'a'"):
        wp.jvp(past, 3, [doubles(np.ones(3))], [doubles(np.zeros(3))], [np.ones(3)])


def test_arrays_that_a_loop_chooses_bring_their_tangents():
    @wp.kernel
    def choose(a: wp.array(dtype=wp.float64), b: wp.array(dtype=wp.float64), out: wp.array(dtype=wp.float64)):
        i = wp.tid()
        rows = a
        for j in range(i):
            rows = b if j == 0 else a
        out[i] = rows[0] * rows[1] * a[1]

    a, b, out = doubles([1.0, 2.0]), doubles([4.0, 5.0]), doubles(np.zeros(3))
    (dout,) = wp.jvp(choose, 3, [a, b], [out], {"b": [1.0, 10.0]})
    assert out.list() == [4.0, 40.0, 4.0] and dout.list() == [0.0, (5.0 + 40.0) * 2.0, 0.0]


def test_the_example_of_the_docstring_runs():
    found = doctest.testmod(importlib.import_module("treadle.lang.jvp"))
    assert found.attempted > 3 and found.failed == 0


@wp.func
def product(a: float, b: float):
    return a * b


@wp.func_grad(product)
def product_grad(a: float, b: float, adj: float):
    wp.adjoint[a] += b * adj
    wp.adjoint[b] += a * adj


@wp.kernel
def near_constants(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = x[i] * y[i] - 0.3 * wp.exp(0.7) + y[i] * product(0.9, product(0.3, 0.7))


def test_functions_with_rules_are_constants_of_constants_so_that_the_same_products_fuse():
    rng = np.random.default_rng(0)
    x, y = (wp.array(rng.normal(size=1000).astype(np.float32), dtype=float) for _ in range(2))
    plain, values = wp.zeros(1000, dtype=float), wp.zeros(1000, dtype=float)
    wp.launch(near_constants, dim=1000, inputs=[x, y], outputs=[plain])
    wp.jvp(near_constants, dim=1000, inputs=[x, y], outputs=[values], tangents=[y])
    assert (plain.numpy() == values.numpy()).all()
