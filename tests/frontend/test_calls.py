"""Calls of user functions, constructors, wp.static, wp.tid and printing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.frontend.language import error, outputs, program, run, struct, wp
from treadle.base.errors import KernelNameError, KernelSyntaxError, KernelTypeError
from treadle.codegen import oracle
from treadle.frontend.parse import parse
from treadle.frontend.source import Source
from treadle.ir.walk import callees
from treadle.types.core import f32, i32, vector, view


@wp.func
def scaled(x: float, factor: float = 2.0):
    return x * factor


@wp.func
def same(x: Any):
    return x


@wp.func
def split(x: float):
    return x + 1.0, int(x)


@wp.func
def apply(f: Any, x: float):
    return f(x)


@wp.func
def fill(a: wp.array(dtype=float), i: int, x: float):
    a[i] = x


@struct
class Ball:
    centre: wp.vec3
    radius: float


@wp.func
def grown(b: Ball, by: float):
    b.radius += by
    return b


def test_arguments_by_position_name_and_default():
    def kernel(out):
        out[0] = scaled(1.0)
        out[1] = scaled(1.0, 3.0)
        out[2] = scaled(factor=4.0, x=1.5)
        out[3] = scaled(5)

    assert outputs(kernel, 4) == [2.0, 3.0, 6.0, 10.0]


def test_several_results():
    def kernel(out):
        a, b = split(2.5)
        out[0] = a
        out[1] = float(b)
        t = split(4.0)
        out[2] = t[0]
        out[3] = float(len(t))

    assert outputs(kernel, 4) == [3.5, 2.0, 5.0, 2.0]


def test_generic_functions_have_a_program_for_each_type():
    def kernel(out):
        out[0] = same(1.0)
        out[1] = float(same(3))
        out[2] = same(wp.vec3(1.0, 2.0, 3.0))[1]

    assert outputs(kernel, 3) == [1.0, 3.0, 2.0]
    assert len(list(callees(program(kernel, [view(f32, 1)])))) == 3


def test_functions_are_values_while_compiling():
    def kernel(out):
        f = scaled
        out[0] = f(3.0)
        out[1] = apply(scaled, 5.0)
        out[2] = apply(wp.abs, -5.0)
        out[3] = wp.static(scaled)(7.0)

    assert outputs(kernel, 4) == [6.0, 10.0, 5.0, 14.0]


def test_functions_store_to_arrays():
    def kernel(out):
        fill(out, 1, 5.0)
        fill(out[2:], 1, 6.0)

    assert outputs(kernel, 4) == [0.0, 5.0, 0.0, 6.0]


def test_arguments_are_copied():
    def kernel(out):
        b = Ball(wp.vec3(1.0, 2.0, 3.0), 4.0)
        c = grown(b, 1.0)
        out[0] = b.radius
        out[1] = c.radius
        out[2] = grown(Ball(), 3.0).radius

    assert outputs(kernel, 3) == [4.0, 5.0, 3.0]


def test_each_function_is_parsed_once_for_its_types():
    def kernel(out):
        out[0] = scaled(1.0) + scaled(2.0) + scaled(3.0, 1.0)

    assert len(list(callees(program(kernel, [view(f32, 1)])))) == 1


def test_functions_may_ask_for_the_thread():
    @wp.func
    def here():
        i, j = wp.tid()
        return i * 10 + j

    def kernel(out):
        i, j = wp.tid()
        out[i, j] = here()

    def flat(out):
        out[wp.tid()] = here()

    out = np.zeros((2, 2), np.int32)
    run(kernel, [out], dim=(2, 2))
    assert out.tolist() == [[0, 1], [10, 11]]
    assert program(kernel, [view(i32, 2)]).facts == {"ndim": 2}
    column = np.zeros(2, np.int32)
    run(flat, [column], dim=(2, 2))  # who asks for fewer indices gets the first ones
    assert column.tolist() == [1, 11]


def test_static_values():
    table = [scaled, same]
    ball = Ball()
    ball.centre, ball.radius = wp.vec3(1.0, 2.0, 3.0), 7.0

    def kernel(out):
        out[0] = wp.static(2 * 3 + len(table))
        out[1] = wp.static(table[0])(1.0)
        out[2] = wp.static(wp.vec3(1.0, 2.0, 3.0))[1]
        out[3] = wp.static(ball).radius + ball.centre.y
        out[4] = wp.static(float)(3)
        for k in range(2):
            out[5 + k] = wp.static(table[k])(10.0)
        out[7] = wp.static([x * x for x in (3.0, 4.0)][1])

    assert outputs(kernel) == [8.0, 2.0, 2.0, 9.0, 3.0, 20.0, 10.0, 16.0]


def test_printing():
    def kernel(n):
        print("value", n[0], 1.5, True)
        print(wp.vec3(1.0, 2.0, 3.0))
        print("a", "b", sep="-", end="!\n")
        print()
        print("100%")
        wp.printf("%d %5.2f\n", n[0], 2.5)

    printed = run(kernel, [np.array([7], np.int32)])
    assert printed == "value 7 1.5 True\n1 2 3\na-b!\n\n100%\n7  2.50\n"


def test_types_are_called_by_any_name():
    kind = wp.vec3

    def kernel(v, out):
        T = kind
        u = T(1.0, 2.0, 3.0)
        w = v.dtype(u[0], 0.0, 0.0)
        out[0] = u[2] + w[0]

    out = np.zeros(1, np.float32)
    run(kernel, [np.zeros((1, 3), np.float32), out], [view(vector(3, f32), 1), view(f32, 1)])
    assert out[0] == 4.0


def test_a_function_that_calls_itself_is_refused():
    def kernel(out):
        out[0] = endless(1.0)

    found = error(kernel, [view(f32, 1)])
    assert isinstance(found, KernelSyntaxError)
    assert "endless calls itself" in str(found)


@wp.func
def endless(x: float):
    return endless(x)


def test_results_must_fit_their_annotation():
    def promised(x: float) -> int:
        return x

    def two(x: float) -> tuple[float, int]:
        return x, 1

    def three(x: float) -> tuple[float, int, int]:
        return x, 1

    def integers(x: float) -> tuple[int, int]:
        return x, 1

    def single(x: float) -> float:
        return x, x

    for f, what in ((promised, "annotated to return `int`, but the code returns a value of type `float32`."),
                    (three, "annotated to return a tuple of 3 elements, but the code returns 2 values."),
                    (integers, "annotated to return `tuple[int, int]`, but the code returns a tuple with types `(flo"),
                    (single, "annotated to return `float`, but the code returns 2 values.")):  # fmt: skip
        assert what in str(error(f, [f32], "function"))
    func = parse(Source(two), [f32], kind="function")
    assert [v.type for v in func.body.yields] == [f32, i32]
    assert oracle.run(func, [2.0]).values == [(2.0, 1)]


def test_all_returns_agree():
    def mixed(x: float):
        if x > 1.0:
            return 1.0
        return int(x)

    assert "returns int32 here and float32 in line" in str(error(mixed, [f32], "function"))


def plain_python(x):
    return x


@pytest.mark.parametrize(
    ("line", "kind", "words"),
    [
        ("out[0] = plain_python(1.0)", KernelNameError, "decorate it with @wp.func"),
        ("out[0] = np.sin(1.0)", KernelNameError, "write wp.sin"),
        ("out[0] = scaled()", KernelTypeError, "argument 'x' of scaled is missing"),
        ("out[0] = scaled(1.0, 2.0, 3.0)", KernelTypeError, "scaled takes 2 arguments, here are 3"),
        ("out[0] = scaled(1.0, x=2.0)", KernelTypeError, "argument 'x' of scaled is given twice"),
        ("out[0] = scaled(1.0, facto=2.0)", KernelTypeError, "did you mean factor?"),
        ("out[0] = scaled(out.shape[0])", KernelTypeError, "argument 'x' of scaled must be float32, not int32"),
        ("a, b, c = split(1.0)", KernelTypeError, "3 names cannot take 2 values"),
        ("out[0] = fill(out, 0, 1.0)", KernelTypeError, "this call returns nothing"),
        ("out[0] = wp.static(n)", KernelNameError, "its value is known only at run time"),
        ("out[0] = wp.static(1 // 0)", KernelTypeError, "ZeroDivisionError"),
        ("out[0] = wp.abz(1.0)", Exception, "`abz` is not an attribute of wp"),
        ("out[0] = nowhere(1.0)", KernelNameError, "undefined symbol: nowhere is neither a variable"),
        ("out[0] = 3.0(1.0)", KernelTypeError, "float32 cannot be called"),
        ("i, j, k, l, m = wp.tid()", KernelTypeError, "a grid has 1 to 4 dimensions, not 5"),
        ("wp.printf('%d %d', n)", KernelTypeError, "the format has 2 conversions, here are 1"),
        ("wp.printf('%q', n)", KernelTypeError, "printf knows no conversion %q"),
        ("wp.printf('100%', n)", KernelTypeError, "printf knows no conversion %"),
        ("out[0] = Ball(radius=1.0, mass=2.0).radius", Exception, "mass"),
    ],
)
def test_mistakes(line, kind, words):
    import linecache
    import warnings

    source = f"def kernel(out, n):\n    {line}\n"
    name = f"<call {line}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace = {
        "wp": wp,
        "np": np,
        "scaled": scaled,
        "plain_python": plain_python,
        "split": split,
        "fill": fill,
        "Ball": Ball,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(source, name, "exec"), namespace)
    found = error(namespace["kernel"], [view(f32, 1), i32])
    assert isinstance(found, kind)
    assert words in str(found)
    assert line in str(found)


def test_unpacked_arguments():
    def kernel(a, out):
        u = wp.vec2(5.0, 10.0)
        out[0] = wp.max(*u)
        v = wp.vec4(1.0, *u, 4.0)
        out[1] = v[2] + v[3]
        w = wp.vec3(*v[1:])
        out[2] = w[0]
        out[3] = wp.max(*a[1:3])
        q = wp.vec4(*wp.quat(1.0, 2.0, 3.0, 4.0))
        out[4] = q.w
        t = (2.0, 3.0)
        out[5] = scaled(*t)

    out = np.zeros(6, np.float32)
    run(kernel, [np.array([9.0, 2.0, 7.0], np.float32), out])
    assert out.tolist() == [10.0, 14.0, 5.0, 7.0, 4.0, 6.0]


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("*a[:n]", "must be a compile-time constant where '*' unpacks an array"),
        ("*a[0:]", "requires explicit upper bound"),
        ("*a[:-3]", "bounds cannot be negative"),
        ("*a[0:3:-1]", "step cannot be negative or zero: it is -1"),
        ("*n", "only supported for vectors, matrices, tuples"),
    ],
)
def test_what_cannot_be_unpacked(written, words):
    import linecache

    source = f"def kernel(a, n):\n    a[0] = wp.max({written})\n"
    name = f"<unpacked {written}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace = {"wp": wp}
    exec(compile(source, name, "exec"), namespace)
    assert words in str(error(namespace["kernel"], [view(f32, 1), i32]))


def test_lengths_are_known_while_compiling():
    @wp.func
    def total(values: Any):
        s = float(0.0)
        for i in range(len(values)):
            s += float(values[i])
        return s * wp.static(float(len(values)))

    def kernel(v, out):
        out[0] = total((1, 2, 3))
        out[1] = total((4.0, 5))
        out[2] = float(wp.static(len(out_names)))
        u = v[0]
        out[3] = float(wp.static(2 * len(u)))

    out_names = ["a", "b"]
    out = np.zeros(4, np.float32)
    run(kernel, [np.zeros((1, 3), np.float32), out], [view(vector(3, f32), 1), view(f32, 1)])
    assert out.tolist() == [18.0, 18.0, 2.0, 6.0]


@struct
class Complex:
    real: float
    imag: float


@wp.func
def mul(a: Complex, b: Complex):
    return Complex(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


@wp.func
def neg(a: Complex):
    return Complex(-a.real, -a.imag)


def test_operators_of_structs_are_the_users_functions():
    def kernel(out):
        a = Complex(1.0, 2.0)
        b = -(a * a)
        out[0] = b.real
        out[1] = b.imag

    def none(out):
        out[0] = (Complex() + Complex()).real

    assert outputs(kernel, 2) == [3.0, -4.0]
    assert "'+' cannot take Complex and Complex" in str(error(none, [view(f32, 1)]))
