"""Custom gradients: rules on numbers, replay functions, ``wp.grad``, and what is refused."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

import treadle as wp
from tests.lang.rules import backward, floats, results
from treadle.base.errors import AutogradError, KernelGradientError

# ---- rules on numbers


@wp.struct
class Body:
    mass: float
    place: wp.vec3


@wp.func
def blend(x: float, y: float):
    return x * 3.0 + y / 3.0, y**2.5


@wp.func_grad(blend)
def adj_blend(x: float, y: float, adj_first: float, adj_second: float):
    """The docstring of a rule stays."""
    wp.adjoint[x] += x * adj_first * 42.0 + y * adj_second * 10.0
    wp.adjoint[y] += y * adj_second * 3.0


@wp.func  # noqa: F811
def blend(b: Body):  # noqa: F811
    return b.place[0] * b.place[1] * 4.0, wp.length(b.place), b.mass**0.5


@wp.func_grad(blend)
def adj_blend_body(b: Body, adj_volume: float, adj_length: float, adj_root: float):
    wp.adjoint[b.mass] += b.mass * adj_volume * 10.0
    wp.adjoint[b.place][0] += adj_volume * b.place[1] * 20.0
    wp.adjoint[b.place].y += adj_length * b.place[0] * 30.0
    wp.adjoint[b].place[2] = adj_root * 40.0


def test_each_overload_has_its_rule():
    @wp.kernel
    def numbers(x: wp.array(dtype=float), y: wp.array(dtype=float), a: wp.array(dtype=float), b: wp.array(dtype=float)):
        i = wp.tid()
        a[i], b[i] = blend(x[i], y[i])

    @wp.kernel
    def bodies(x: wp.array(dtype=Body), out: wp.array(dtype=float)):
        i = wp.tid()
        u, v, w = blend(x[i])
        out[i] = u + v + w

    x, y = floats([1.0, 2.0, 3.0]), floats([10.0, 11.0, 12.0])
    backward(numbers, 3, [x, y], [results(3), results(3)])
    np.testing.assert_allclose(x.grad.numpy(), x.numpy() * 42.0 + y.numpy() * 10.0)
    np.testing.assert_allclose(y.grad.numpy(), y.numpy() * 3.0)
    one, other = Body(), Body()
    one.mass, one.place, other.mass, other.place = 4.0, wp.vec3(1.0, 2.0, 3.0), 1.0, wp.vec3(5.0, 6.0, 7.0)
    both = wp.array([one, other], dtype=Body, requires_grad=True)
    backward(bodies, 2, [both], [results(2)])
    np.testing.assert_allclose(both.grad.numpy()["mass"], [40.0, 10.0])
    np.testing.assert_allclose(both.grad.numpy()["place"], [[40.0, 30.0, 40.0], [120.0, 150.0, 40.0]])
    assert adj_blend.__doc__ == "The docstring of a rule stays."


@wp.func
def sigmoid(x: float):
    return 1.0 / (1.0 + wp.exp(-x))


@wp.func_grad(sigmoid)
def adj_sigmoid(x: float, adj: float):
    wp.adjoint[x] += 10.0 * adj * sigmoid(x) * (1.0 - sigmoid(x))


@wp.func
def nested(x: float):
    return sigmoid(x) * 2.0


def test_a_rule_may_call_its_function_and_serves_inside_others_loops_and_branches():
    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        s = x[i]
        for n in range(3):
            if s > 0.0:
                s = nested(s)
            else:
                s = s * s
        y[i] = s

    def slope(x):
        d = 1.0
        for _ in range(3):
            s = 1.0 / (1.0 + np.exp(-x))
            x, d = (2.0 * s, d * 20.0 * s * (1.0 - s)) if x > 0.0 else (x * x, d * 2.0 * x)
        return d

    x, y = floats([0.5, -0.7, 2.0, 0.0]), results(4)
    backward(k, 4, [x], [y])
    np.testing.assert_allclose(x.grad.numpy(), [slope(v) for v in x.list()], rtol=2e-5)


def test_a_straight_through_estimator_passes_where_there_is_no_derivative():
    @wp.func
    def step(x: float):
        return wp.round(x)

    @wp.func_grad(step)
    def adj_step(x: float, adj: float):
        wp.adjoint[x] += adj

    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = step(x[i]) * 3.0

    x = floats([0.2, 0.7, 1.6])
    backward(k, 3, [x], [results(3)])
    assert x.grad.list() == [3.0, 3.0, 3.0]


def test_rules_of_generic_functions_serve_every_type():
    @wp.func
    def cube(x: Any):
        return x * x * x

    @wp.func_grad(cube)
    def adj_cube(x: Any, adj: Any):
        wp.adjoint[x] += adj * x * x * type(x)(3.0)

    @wp.kernel
    def k(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
        i = wp.tid()
        y[i] = cube(x[i])

    for dtype in (wp.float32, wp.float64):
        x = floats([1.0, 2.0], dtype)
        backward(k, 2, [x], [results(2, dtype)])
        assert x.grad.list() == [3.0, 12.0]


def test_results_that_are_integers_have_a_zero_in_their_place():
    @wp.func
    def split(x: float):
        return x - wp.floor(x), int(x)

    @wp.func_grad(split)
    def adj_split(x: float, adj: float, whole: int):
        wp.adjoint[x] += adj + float(whole)

    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        part, whole = split(x[i])
        y[i] = part * float(whole)

    x = floats([2.25, 3.5])
    backward(k, 2, [x], [results(2)])
    assert x.grad.list() == [2.0, 3.0]


def test_functions_may_be_arguments_of_what_has_a_rule():
    @wp.func
    def apply(f: wp.Function, x: float):
        return f(x)

    @wp.func_grad(apply)
    def adj_apply(f: wp.Function, x: float, adj: float):
        wp.adjoint[x] += 10.0 * adj * f(x)

    @wp.func
    def half(x: float):
        return 0.5 * x

    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = apply(half, x[i]) + apply(wp.floor, x[i])

    x = floats([2.5, 4.0])
    backward(k, 2, [x], [results(2)])
    np.testing.assert_allclose(x.grad.numpy(), [12.5 + 20.0, 20.0 + 40.0])


@pytest.mark.parametrize("factor", [2.0, 3.0])
def test_rules_made_in_a_python_function_see_its_variables(factor):
    @wp.func
    def scaled(x: float):
        return factor * x

    @wp.func_grad(scaled)
    def adj_scaled(x: float, adj: float):
        wp.adjoint[x] += 100.0 * factor * adj

    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = scaled(x[i])

    x = floats([1.0])
    backward(k, 1, [x], [results(1)])
    assert x.grad.list() == [100.0 * factor]


def test_forward_mode_asks_the_rule():
    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = sigmoid(x[i])

    (moved,) = wp.jvp(k, 2, [floats([0.0, 0.0])], [results(2)], tangents=[[1.0, 2.0]])
    assert moved.list() == [2.5, 5.0]


@wp.func
def counted_up(x: float):
    s = float(0.0)
    for k in range(100):
        s += x * float(k)
    return s


@wp.func_grad(counted_up)
def adj_counted_up(x: float, a: float):
    wp.adjoint[x] += 4950.0 * a


@wp.func
def at_thread(x: float):
    return x * float(wp.tid() + 1)


@wp.func_grad(at_thread)
def adj_at_thread(x: float, a: float):
    wp.adjoint[x] += float(wp.tid() + 1) * a


def test_functions_of_constants_that_are_no_constants_stay_calls():
    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        for j in range(3):
            if x[i] > float(j):
                y[i] += counted_up(2.0) * x[i] + at_thread(3.0)

    x, y = floats([1.0, 5.0]), results(2)
    backward(k, 2, [x], [y])
    assert y.list() == [9903.0, 3.0 * (5.0 * 9900.0 + 6.0)] and x.grad.list() == [9900.0, 29700.0]
    values = results(2)
    (moved,) = wp.jvp(k, 2, [x], [values], tangents=[[1.0, 1.0]])
    assert values.list() == y.list() and moved.list() == x.grad.list()


# ---- replay


@wp.func
def ticket(counter: wp.array(dtype=int), drawn: wp.array(dtype=int), tid: int):
    number = wp.atomic_add(counter, 0, 1)
    drawn[tid] = number
    return number


@wp.func_replay(ticket)
def ticket_again(counter: wp.array(dtype=int), drawn: wp.array(dtype=int), tid: int):
    return drawn[tid]


@wp.kernel
def squares(
    x: wp.array(dtype=float), counter: wp.array(dtype=int), drawn: wp.array(dtype=int), y: wp.array(dtype=float)
):
    i = wp.tid()
    n = ticket(counter, drawn, i)
    y[n] = x[i] * x[i]


def test_a_replay_function_stands_for_the_function_in_the_second_run():
    n = 50
    x, y = floats(np.arange(n)), results(n)
    counter, drawn = wp.zeros(1, dtype=int), wp.zeros(n, dtype=int)
    with wp.Tape() as tape:
        wp.launch(squares, n, inputs=[x, counter, drawn], outputs=[y])
        drawn.zero_()
    tape.backward(grads={y: floats(np.arange(n) + 1.0, grad=False)})
    np.testing.assert_allclose(x.grad.numpy(), 2.0 * np.arange(n) * (np.arange(n) + 1.0))
    assert counter.list() == [n] and drawn.list() == [0] * n


def test_a_replay_function_that_hides_a_derivative_is_refused():
    @wp.func
    def kept(a: wp.array(dtype=float), i: int, x: float):
        a[i] = x * x
        return a[i]

    @wp.func_replay(kept)
    def kept_again(a: wp.array(dtype=float), i: int, x: float):
        return a[i]

    @wp.kernel
    def k(a: wp.array(dtype=float), x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = kept(a, i, x[i])

    with pytest.raises(KernelGradientError, match="has a replay function and works on arrays"):
        backward(k, 2, [results(2), floats([1.0, 2.0])], [results(2)])


# ---- wp.grad


@wp.func
def energy(x: float, k: float):
    return 0.5 * k * x * x


@wp.func
def chain(x: float, n: int):
    y = x
    for i in range(n):
        y = y * y * 0.5 + x
        if y > 4.0:
            break
    return y


@wp.func
def weighted(a: wp.array(dtype=float), v: wp.vec3, b: Body):
    s = float(0.0)
    for i in range(a.shape[0]):
        s = s * b.mass + a[i] * v[i]
    return s, wp.dot(v, b.place)


def test_grad_of_functions_builtins_and_functions_with_rules():
    @wp.kernel
    def k(a: wp.array(dtype=float), out: wp.array(dtype=float)):
        by_x, by_k = wp.grad(energy)(3.0, 2.0)
        slope, whole = wp.grad(chain)(a[0] * 0.3, 4)
        b = Body()
        b.mass = 0.5
        b.place = wp.vec3(1.0, 2.0, 3.0)
        by_v, by_b = wp.grad(weighted)(a, wp.vec3(1.0, -1.0, 2.0), b)
        sine = wp.grad(wp.sin)
        by_base, by_exponent = wp.grad(wp.pow)(2.0, 3.0)
        out[0], out[1], out[2], out[3] = by_x, by_k, slope, float(whole)
        out[4], out[5], out[6], out[7] = by_v[0], by_v[2], by_b.mass, by_b.place[1]
        out[8], out[9], out[10], out[11] = sine(0.3), by_base, by_exponent, wp.grad(sigmoid)(0.0)

    def y(x):
        v = x
        for _ in range(4):
            v = v * v * 0.5 + x
        return v

    out = wp.zeros(12, dtype=float)
    wp.launch(k, 1, inputs=[floats([1.0, 2.0, 3.0], grad=False), out])
    want = [6.0, 4.5, (y(0.3001) - y(0.2999)) / 2e-4, 0.0, 0.25 + 1.0, 3.0 + 3.0, 2.0 * 0.5 - 2.0, -1.0,
            np.cos(0.3), 12.0, 8.0 * np.log(2.0), 2.5]  # fmt: skip
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-5)


def test_the_tape_differentiates_a_gradient_once_more():
    @wp.kernel
    def force(x: wp.array(dtype=wp.float64), f: wp.array(dtype=wp.float64)):
        i = wp.tid()
        f[i] = -wp.grad(bump)(x[i])

    @wp.func
    def bump(x: wp.float64):
        return wp.sin(x) * x * x

    x = floats([0.3, -1.2], wp.float64)
    check = dict(eps=1e-5, atol=1e-8, rtol=1e-6, show_summary=False)
    assert wp.autograd.gradcheck(force, 2, [x], [results(2, wp.float64)], **check)


def test_grad_of_what_writes_to_arrays_is_refused():
    @wp.func
    def fill(a: wp.array(dtype=float), x: float):
        a[0] = x
        return x

    @wp.kernel
    def k(a: wp.array(dtype=float)):
        a[1] = wp.grad(fill)(a, 1.0)

    with pytest.raises(KernelGradientError, match="wp.grad of fill, which writes to an array") as caught:
        wp.launch(k, 1, inputs=[wp.zeros(2, dtype=float)])
    assert "a[0] = x" in str(caught.value)


# ---- what is refused


def test_signatures_that_do_not_fit_are_told_where_the_rule_stands():
    @wp.func
    def f(x: float, n: int):
        return x, n

    with pytest.raises(KernelGradientError, match=r"adj\(float32, float32\) fits no overload of .*f"):

        @wp.func_grad(f)
        def adj(x: float, a: float):
            wp.adjoint[x] += a

    with pytest.raises(KernelGradientError, match="fits no overload"):

        @wp.func_replay(f)
        def again(x: float):
            return x, 1

    with pytest.raises(KernelGradientError, match="takes a function under @wp.func, not len"):
        wp.func_grad(len)
    with pytest.raises(RuntimeError, match="not int"):
        wp.grad(3)


def test_adjoints_that_do_not_fit_the_results_are_told_when_the_gradient_is_compiled():
    @wp.func
    def f(x: float):
        return x * x

    @wp.func_grad(f)
    def adj(x: float, a: float, b: float):
        wp.adjoint[x] += a

    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = f(x[i])

    with pytest.raises(KernelGradientError, match=r"takes \(float32, float32\) after the arguments of f"):
        backward(k, 2, [floats([1.0, 2.0])], [results(2)])


def test_outside_of_kernels_there_are_no_adjoints():
    with pytest.raises(KernelGradientError, match="only in gradient functions"):
        wp.adjoint[3]
    with pytest.raises(KernelGradientError, match="only be called in kernels"):
        wp.grad(energy)(1.0, 2.0)


def test_a_rule_of_ones_own_is_found_wrong_by_gradcheck():
    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = sigmoid(x[i])

    with pytest.raises(AutogradError, match="differ from central differences"):
        wp.autograd.gradcheck(k, 2, [floats([0.5, 1.0])], [results(2)], show_summary=False)


# ---- compiled code that is kept


PROGRAM = """
import treadle as wp, treadle.lang.compile as compiler
@wp.func
def f(x: float):
    return x * x
{rule}
@wp.kernel
def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = f(x[i])
built = []
real = compiler.translate
compiler.translate = lambda *a: built.append(1) or real(*a)
x, y = wp.array([3.0], dtype=float, requires_grad=True), wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(k, 1, inputs=[x], outputs=[y])
tape.backward(y)
print(x.grad.list(), len(built))
"""
RULE = "@wp.func_grad(f)\ndef adj(x: float, a: float):\n    wp.adjoint[x] += {} * a"


def run(folder, rule):
    path = folder / "program.py"
    path.write_text(textwrap.dedent(PROGRAM).format(rule=rule))
    code = f"import treadle as wp, runpy; wp.config.kernel_cache_dir = {str(folder)!r}; runpy.run_path({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_gradients_that_were_kept_are_those_of_the_rule_of_now(tmp_path):
    assert run(tmp_path, "pass") == "[6.0] 2"
    assert run(tmp_path, RULE.format(7.0)) == "[7.0] 2"
    assert run(tmp_path, RULE.format(7.0)) == "[7.0] 0"
    assert run(tmp_path, RULE.format(8.0)).startswith("[8.0]")


def square_without_rule():
    """A function, and a kernel that calls it."""

    @wp.func
    def f(x: float):
        return x * x

    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = f(x[i])

    return f, k


def test_a_rule_that_comes_later_replaces_the_gradient_that_was_compiled():
    f, k = square_without_rule()
    x = floats([3.0])
    backward(k, 1, [x], [results(1)])
    assert x.grad.list() == [6.0]

    @wp.func_grad(f)
    def adj(x: float, a: float):
        wp.adjoint[x] += 11.0 * a

    backward(k, 1, [x], [results(1)])
    assert x.grad.list() == [11.0]


def test_a_rule_that_comes_between_launch_and_backward_pass_counts():
    f, k = square_without_rule()
    x, y = floats([3.0]), results(1)
    tape = wp.Tape()
    with tape:
        wp.launch(k, dim=1, inputs=[x, y])

    def declare():  # a rule keeps the names around it, and the tape is none of these here
        @wp.func_grad(f)
        def adj(x: float, a: float):
            wp.adjoint[x] += 11.0 * a

    declare()
    tape.backward(grads={y: wp.ones(1, dtype=float)})
    assert x.grad.list() == [11.0]
