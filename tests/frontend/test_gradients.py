"""Gradient functions as programs: what ``wp.adjoint[x]`` means, what a rule takes and gives; calls of ``wp.grad``."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.language import program, struct, wp
from treadle.base.errors import KernelGradientError, KernelTypeError, TreadleError
from treadle.codegen import oracle
from treadle.frontend.parse import parse_rule
from treadle.frontend.source import Source
from treadle.ir.node import Func
from treadle.ir.verify import verify
from treadle.ir.walk import ops_of
from treadle.types.core import f32, i32, vector, view

VEC3 = vector(3, f32)


@struct
class Ball:
    centre: wp.vec3
    radius: float
    count: int


BALL = Ball.__treadle_type__


def rule(f, arguments, results) -> Func:
    return verify(parse_rule(Source(f), arguments, results))


def given_back(f, arguments, results, *values):
    """What the rule gives for these arguments, results and adjoints."""
    (out,) = oracle.run(rule(f, arguments, results), values).values
    return out


def refused(f, arguments, results) -> TreadleError:
    with pytest.raises(TreadleError) as caught:
        rule(f, arguments, results)
    return caught.value


def test_adjoints_begin_at_zero_and_are_what_the_rule_gives():
    def adj(x: float, y: float, a: float):
        wp.adjoint[x] += a * y
        wp.adjoint[x] += 1.0

    assert given_back(adj, [f32, f32], [f32], 2.0, 3.0, 0.0, 5.0) == (16.0, 0.0)


def test_adjoints_can_be_assigned_and_read():
    def adj(x: float, y: float, a: float):
        wp.adjoint[x] = a
        wp.adjoint[y] = wp.adjoint[x] * 2.0

    assert given_back(adj, [f32, f32], [f32], 2.0, 3.0, 0.0, 5.0) == (5.0, 10.0)


def test_components_fields_and_run_time_indices():
    def adj(b: Ball, k: int, a: float):
        wp.adjoint[b.centre][k] += a
        wp.adjoint[b.centre].x += 1.0
        wp.adjoint[b].centre.y += 2.0
        wp.adjoint[b.radius] = a * b.radius

    ball = ((0.0, 0.0, 0.0), 4.0, 7)
    assert given_back(adj, [BALL, i32], [f32], ball, 2, 0.0, 5.0) == (((1.0, 2.0, 5.0), 20.0, 0),)


def test_adjoints_change_in_branches_and_loops_and_before_returns():
    def adj(x: float, n: int, a: float):
        for i in range(n):
            if i == 2:
                continue
            wp.adjoint[x] += float(i) * a
            if i == 4:
                return
        while wp.adjoint[x] < 100.0:
            wp.adjoint[x] *= 2.0

    assert given_back(adj, [f32, i32], [f32], 1.0, 9, 0.0, 1.0) == (8.0,)
    assert given_back(adj, [f32, i32], [f32], 1.0, 3, 0.0, 1.0) == (128.0,)


def test_an_argument_may_be_assigned_like_any_variable():
    def adj(x: float, a: float):
        x = x * 2.0
        wp.adjoint[x] += a * x

    assert given_back(adj, [f32], [f32], 3.0, 0.0, 1.0) == (6.0,)


def test_results_without_floats_have_zero_adjoints_that_nobody_passes():
    def adj(x: float, a: float, n: int, v: wp.vec3):
        wp.adjoint[x] += a + float(n) + v[1]

    made = rule(adj, [f32], [f32, i32, VEC3])
    assert [p.type for p in made.params] == [f32, f32, i32, VEC3, f32, VEC3]
    (out,) = oracle.run(made, [1.0, 0.0, 9, (0.0,) * 3, 5.0, (1.0, 2.0, 3.0)]).values
    assert out == (7.0,)


def test_the_adjoint_of_an_array_is_its_gradient():
    def adj(a: wp.array(dtype=float), i: int, adjoint: float):
        wp.adjoint[a][i] += adjoint
        wp.atomic_add(wp.adjoint[a], i + 1, a[i])

    made = rule(adj, [view(f32, 1), i32], [f32])
    grads = [op for op in ops_of(made.body) if op.name == "grad"]
    assert len(grads) == 2 and all(op.args == (made.params[0],) for op in grads)
    assert made.body.yields == ()


def test_wrong_uses_of_adjoint_are_told():
    def local(x: float, a: float):
        y = x * 2.0
        wp.adjoint[y] += a

    def result(x: float, a: float):
        wp.adjoint[a] += 1.0

    def integer(n: int, x: float, a: float):
        wp.adjoint[n] += 1

    def element(v: wp.array(dtype=float), a: float):
        wp.adjoint[v[0]] += a

    def kind(v: wp.vec3, a: float):
        wp.adjoint[v] = a

    def returns(x: float, a: float):
        return a

    assert "takes an argument of the function" in refused(local, [f32], [f32]).message
    assert "takes an argument of the function" in refused(result, [f32], [f32]).message
    assert "'n' is int32" in refused(integer, [i32, f32], [f32]).message
    assert "wp.adjoint[v][…]" in refused(element, [view(f32, 1)], [f32]).hint
    wrong = refused(kind, [VEC3], [f32])
    assert "wp.adjoint[v] expects value of type vec3f" in wrong.message and isinstance(wrong, KernelTypeError)
    assert "is a gradient function and returns nothing" in refused(returns, [f32], [f32]).message


def test_adjoint_belongs_to_gradient_functions():
    def kernel(out: wp.array(dtype=float)):
        wp.adjoint[out][0] += 1.0

    with pytest.raises(KernelGradientError, match="only in gradient functions"):
        program(kernel, [np.zeros(1, np.float32)])


@wp.func
def square(x: float):
    return x * x


@wp.func
def mixed(a: wp.array(dtype=float), x: float, n: int, v: wp.vec3):
    return a[n] * x * v[0], n


@wp.func
def ruled(x: float):
    return x * x


def adj_ruled(x: float, adj: float):
    wp.adjoint[x] += adj


ruled.rule = adj_ruled


def calls(func):
    return [op for op in ops_of(func.body) if op.name == "call"]


def test_a_program_that_is_differentiated_calls_with_the_rule():
    def kernel(out: wp.array(dtype=float)):
        out[0] = ruled(out[0]) + square(out[1])

    out = [np.zeros(2, np.float32)]
    first, second = calls(program(kernel, out, gradient=1))
    assert set(first.attrs) == {"func", "adjoint"} and set(second.attrs) == {"func"}
    assert [set(op.attrs) for op in calls(program(kernel, out))] == [{"func", "apart"}, {"func"}]
    assert isinstance(first.attrs["adjoint"], Func) and len(first.attrs["adjoint"].params) == 3


def test_grad_gives_a_value_for_each_argument_that_is_no_array():
    def kernel(out: wp.array(dtype=float)):
        out[0] = wp.grad(square)(out[1])
        x, n, v = wp.grad(mixed)(out, 2.0, 1, wp.vec3(1.0, 2.0, 3.0))
        out[1] = x + float(n) + v[0]

    first, second = calls(program(kernel, [np.zeros(2, np.float32)]))
    assert first.attrs["gradient"] == 1 and [r.type for r in first.results] == [f32]
    assert [r.type for r in second.results] == [f32, VEC3]


def test_grad_of_builtins_of_literals_and_of_what_has_a_rule():
    def kernel(out: wp.array(dtype=float)):
        g = wp.grad(wp.atan2)
        y, x = g(out[0], 2.0)
        out[0] = y * x * wp.grad(ruled)(1.5)

    builtin, own = calls(program(kernel, [np.zeros(2, np.float32)]))
    assert len(builtin.results) == 2 and builtin.attrs["func"].name == "atan2"
    (inner,) = calls(own.attrs["func"])
    assert "adjoint" in inner.attrs


def test_wrong_uses_of_grad_are_told():
    @wp.func
    def whole(n: int):
        return n

    def no_float(out: wp.array(dtype=float)):
        out[0] = float(wp.grad(whole)(1))

    def no_function(out: wp.array(dtype=float)):
        out[0] = wp.grad(3.0)(1.0)

    def python_function(out: wp.array(dtype=float)):
        out[0] = wp.grad(len)(out)

    out = [np.zeros(2, np.float32)]
    for kernel, words in ((no_float, "no argument that is a float"), (no_function, "takes one function"),
                          (python_function, "no function")):  # fmt: skip
        with pytest.raises(KernelGradientError, match=words) as caught:
            program(kernel, out)
        assert caught.value.span.line
