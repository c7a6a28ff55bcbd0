"""Calls of a function's gradient become calls of its adjoint."""

import numpy as np
import pytest

import treadle as wp
from treadle.base.errors import KernelGradientError
from treadle.codegen import oracle
from treadle.frontend.core import Options
from treadle.frontend.parse import parse
from treadle.ir.verify import verify
from treadle.ir.walk import ops_of
from treadle.passes.gradients import expand_gradients
from treadle.passes.pipeline import LOWER, NORMALIZE, run
from treadle.types.core import f64, view


@wp.struct
class Weighted:
    v: wp.vec3d
    count: int
    w: wp.float64


@wp.func
def weight(s: Weighted, a: wp.array(dtype=wp.float64), x: wp.float64):
    r = x
    for k in range(s.count):
        r = r * s.w + a[k] * s.v[k]
        if r > wp.float64(50.0):
            break
    return r * r, s.count


@wp.func
def stores(a: wp.array(dtype=wp.float64), x: wp.float64):
    wp.atomic_add(a, 0, x)
    return x


@wp.kernel
def slopes(a: wp.array(dtype=wp.float64), out: wp.array(dtype=wp.float64)):
    s = Weighted()
    s.v = wp.vec3d(a[0], a[1], a[2])
    s.count = 3
    s.w = a[3]
    if a[0] > wp.float64(0.0):
        by_s, by_x = wp.grad(weight)(s, a, a[4])
        out[0] = by_s.v[1]
        out[1] = by_s.w
        out[2] = by_x
        out[3] = wp.float64(by_s.count)


@wp.kernel
def plain(a: wp.array(dtype=wp.float64)):
    a[0] = a[1] * a[2]


@wp.kernel
def refused(a: wp.array(dtype=wp.float64)):
    a[1] = wp.grad(stores)(a, a[0])


def program(kernel):
    types = [view(f64, 1) for _ in kernel.parameters]
    return parse(kernel.source, types, Options(), "kernel", name=kernel.key)


def value(v, w, x, a):
    r = x
    for k in range(3):
        r = r * w + a[k] * v[k]
    return r * r


def test_the_gradient_is_that_of_the_sum_of_the_results():
    func = program(slopes)
    made = verify(expand_gradients(func))
    assert not any(op.attrs.get("gradient") for op in ops_of(made.body) if op.name == "call")
    a, out = np.array([0.5, -0.3, 0.8, 1.2, 0.7]), np.full(4, 9.0)
    oracle.run(run(LOWER, run(NORMALIZE, func, verify=True), verify=True), [a, out], 1)
    v, w, x, h = a[:3].copy(), a[3], a[4], 1e-6
    step = np.array([0.0, h, 0.0])
    want = [
        (value(v + step, w, x, a) - value(v - step, w, x, a)) / (2 * h),
        (value(v, w + h, x, a) - value(v, w - h, x, a)) / (2 * h),
        (value(v, w, x + h, a) - value(v, w, x - h, a)) / (2 * h),
        0.0,
    ]
    np.testing.assert_allclose(out, want, rtol=1e-7)


def test_programs_without_gradients_stay_as_they_are():
    func = program(plain)
    assert expand_gradients(func) is func


def test_functions_that_write_are_refused_at_the_line_that_does():
    with pytest.raises(KernelGradientError, match="wp.grad of stores, which writes to an array") as caught:
        expand_gradients(program(refused))
    assert "atomic_add" in caught.value.span.text()
