"""Calls on memory that bring rules: what runs where the program runs again, and what takes their place backwards."""

import numpy as np
import pytest

import treadle as wp
from treadle.base.errors import KernelGradientError
from treadle.frontend.core import Options
from treadle.frontend.parse import parse
from treadle.ir.verify import verify
from treadle.ir.walk import ops_of
from treadle.passes.adjoint import reverse
from treadle.passes.adjoint.calls import flatten_calls
from treadle.passes.pipeline import LOWER, NORMALIZE, PREPARE, run
from treadle.types.core import Array, view

F = wp.float64
A = wp.array(dtype=F)


@wp.func
def read(a: A, i: int, x: F):
    return a[i] * x


@wp.func_grad(read)
def adj_read(a: A, i: int, x: F, adj: F):
    wp.adjoint[a][i] += F(3.0) * adj * x
    wp.adjoint[x] += F(5.0) * adj * a[i]


@wp.func
def numbers(x: F):
    return x * x


@wp.func_grad(numbers)
def adj_numbers(x: F, adj: F):
    wp.adjoint[x] += F(7.0) * adj


@wp.func
def drawn(c: wp.array(dtype=int), at: wp.array(dtype=int), i: int):
    at[i] = wp.atomic_add(c, 0, 1)
    return at[i]


@wp.func_replay(drawn)
def drawn_again(c: wp.array(dtype=int), at: wp.array(dtype=int), i: int):
    return at[i]


@wp.func
def noted(i: int, left: wp.array(dtype=int), right: wp.array(dtype=int)):
    chosen = left
    if i > 2:
        chosen = right
    chosen[i] = i
    return i


@wp.func_replay(noted)
def noted_again(i: int, left: wp.array(dtype=int), right: wp.array(dtype=int)):
    return i


@wp.kernel
def notes(left: wp.array(dtype=int), right: wp.array(dtype=int), x: A, y: A):
    i = wp.tid()
    y[noted(i, left, right)] = x[i] * x[i] * F(left[i] + right[i])


@wp.kernel
def reads(a: A, x: A, y: A):
    i = wp.tid()
    y[i] = read(a, i, x[i]) * numbers(x[i])


@wp.kernel
def draws(c: wp.array(dtype=int), at: wp.array(dtype=int), x: A, y: A):
    i = wp.tid()
    y[drawn(c, at, i)] = x[i] * x[i]


@wp.kernel
def changes(a: A, x: A, y: A):
    i = wp.tid()
    y[i] = read(a, i, x[i])
    a[i] = y[i]


def primal(kernel):
    types = tuple(view(t.elem, t.ndim) if isinstance(t, Array) else t for t in kernel.declared)
    func = parse(kernel.source, types, Options(gradient=1), "kernel", name=kernel.key)
    return run(PREPARE, run(NORMALIZE, func))


def calls(func):
    return [op for op in ops_of(func.body) if op.name == "call"]


def test_only_calls_on_memory_own_what_runs_again():
    first, second = calls(flatten_calls(primal(reads)))
    assert [op.name for op in first.regions[0].ops] == ["load", "mul"] and second.regions == ()


def test_what_replays_a_function_is_what_runs_again():
    (call,) = calls(flatten_calls(primal(draws)))
    assert [op.name for op in call.regions[0].ops] == ["load"]


def adjoint(kernel, active):
    return verify(run(LOWER, reverse(primal(kernel), active)), scalar=True)


def test_arrays_without_a_gradient_get_none():
    both = [op.name for op in ops_of(adjoint(reads, ("a", "x", "y")).body)].count("grad")
    alone = [op.name for op in ops_of(adjoint(reads, ("x", "y")).body)].count("grad")
    assert (both, alone) == (3, 2)


def test_what_a_rule_looks_at_is_noted():
    assert adjoint(reads, ("a", "x", "y")).facts["seen"] == ("a",)
    made = adjoint(draws, ("x", "y"))
    assert made.facts["seen"] == ("at",)
    assert not any(op.name == "atomic" and op.args[0].type.elem.is_int for op in ops_of(made.body))


def test_arrays_that_a_function_may_write_are_not_taken_for_unchanged():
    assert set(adjoint(notes, ("x", "y")).facts["seen"]) == {"left", "right"}


def test_rules_that_look_at_what_changes_are_refused():
    with pytest.raises(KernelGradientError, match="adjoint read reads 'a', which the kernel also reads and changes"):
        adjoint(changes, ("a", "x", "y"))


def test_the_rule_decides():
    a, x, y = (wp.array(v, dtype=F, requires_grad=True) for v in ([1.0, 2.0], [3.0, 5.0], [0.0, 0.0]))
    with wp.Tape() as tape:
        wp.launch(reads, 2, inputs=[a, x], outputs=[y])
    tape.backward(grads={y: wp.array([1.0, 10.0], dtype=F)})
    av, xv, seed = a.numpy(), x.numpy(), np.array([1.0, 10.0])
    np.testing.assert_allclose(a.grad.numpy(), seed * 3.0 * xv * xv * xv)
    np.testing.assert_allclose(x.grad.numpy(), seed * (5.0 * av * xv * xv + 7.0 * av * xv))
