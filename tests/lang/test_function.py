"""Functions: annotations, overloads, generics, closures, Python-scope calls."""

from __future__ import annotations

import linecache
import math
from typing import Any

import numpy as np
import pytest

import treadle as wp


@wp.func
def twice(x: float):
    return x * 2.0


@wp.func
def pick(x: int):
    return 1


@wp.func  # noqa: F811
def pick(x: float):  # noqa: F811
    return 2


@wp.func
def anything(a: Any, b: Any):
    return a + b


@wp.func
def divmod_of(a: int, b: int = 3):
    return a // b, a % b


def run(kernel, n, dtype):
    out = wp.zeros(n, dtype=dtype)
    wp.launch(kernel, dim=1, inputs=[out])
    return out.list()


def test_overloads_are_chosen_by_type_and_literals_adapt():
    @wp.kernel
    def k(out: wp.array(dtype=int)):
        out[0] = pick(7)
        out[1] = pick(7.0)
        out[2] = int(twice(3.0))

    assert run(k, 3, int) == [1, 2, 6]


def test_generic_functions_and_defaults():
    @wp.kernel
    def k(out: wp.array(dtype=float)):
        out[0] = anything(1.5, 2.0)
        out[1] = float(anything(1, 2))
        out[2] = anything(wp.vec3(1.0, 2.0, 3.0), wp.vec3(1.0, 1.0, 1.0))[2]
        q, r = divmod_of(11)
        out[3] = float(q)
        out[4] = float(r)
        q, r = divmod_of(b=4, a=11)
        out[5] = float(r)

    assert run(k, 6, float) == [3.5, 3.0, 4.0, 3.0, 2.0, 3.0]


def test_a_call_that_does_not_fit_names_the_argument_and_the_line():
    @wp.kernel
    def k(out: wp.array(dtype=float), n: int):
        out[0] = twice(n)

    with pytest.raises(wp.KernelTypeError) as caught:
        wp.launch(k, dim=1, inputs=[wp.zeros(1, dtype=float), 1])
    for word in ("test_function.py", "twice(n)", "argument 'x' of twice must be float32, not int32", "float32(…)"):
        assert word in str(caught.value)


def test_closures_keep_their_values():
    def make(factor, fn):
        @wp.kernel
        def k(out: wp.array(dtype=float)):
            i = wp.tid()
            out[i] = fn(float(i)) * factor

        return k

    first, second = make(2.0, twice), make(10.0, twice)
    for kernel, want in ((first, [0.0, 4.0, 8.0]), (second, [0.0, 20.0, 40.0]), (first, [0.0, 4.0, 8.0])):
        out = wp.zeros(3, dtype=float)
        wp.launch(kernel, dim=3, inputs=[out])
        assert out.list() == want


def test_functions_are_called_from_python():
    @wp.func
    def bell(a: wp.float64):
        return wp.exp(-a * a)

    assert float(bell(wp.float64(0.5))) == pytest.approx(math.exp(-0.25), rel=1e-15)
    assert twice(4.0) == 8.0


@wp.func
def kind_of(x: int):
    return "an int"


@wp.func
def kind_of(x: float, times: int = 1):  # noqa: F811
    return "a float" * times


@wp.func
def kind_of(x: wp.array(dtype=float)):  # noqa: F811
    return "floats"


@wp.func
def kind_of(f: wp.Function, x: float):  # noqa: F811
    return f"a function of {f(x)}"


@wp.func
def kind_of(x: Any):  # noqa: F811
    return "anything else"


@wp.func
def kind_of(x: wp.vec3):  # noqa: F811
    return "a vector"


def test_calls_from_python_choose_overloads_by_exact_types():
    for _ in range(2):  # looked for, then remembered
        assert kind_of(1) == "an int" and kind_of(1.0) == "a float" and kind_of(wp.vec3()) == "a vector"
        assert kind_of(2.0, times=2) == "a float" * 2 and kind_of(x=1) == "an int"
        assert kind_of(wp.zeros(1, dtype=float)) == "floats"
        assert kind_of(wp.zeros(1, dtype=int)) == kind_of(wp.float64(1.0)) == "anything else"
        assert kind_of(twice, 2.0) == "a function of 4.0" and kind_of(wp.sqrt, 4.0) == "a function of 2.0"
    assert kind_of.get_overload([float]).func("", 1) == "a float"
    for wrong in (lambda: kind_of(), lambda: kind_of(lambda x: x, 2.0), lambda: kind_of(1, y=2),
                  lambda: twice(wp.float64(1.0)), lambda: twice(1)):  # fmt: skip
        with pytest.raises(wp.KernelTypeError, match="no overload found for arguments"):
            wrong()


@wp.func
def width(x: int):
    return 32


@wp.func
def width(x: wp.int64):  # noqa: F811
    return 64


def test_how_wide_a_number_is_chooses_the_overload_each_time():
    assert [width(x) for x in (1, 2**40, 1, -(2**40))] == [32, 64, 32, 64]


def test_overloads_stand_in_one_scope():
    def scaled(k: int):
        @wp.func
        def f():
            return k

        @wp.func
        def f(x: int):  # noqa: F811
            return f() * x

        return f

    two, three = scaled(2), scaled(3)
    assert len(two.overloads) == len(three.overloads) == 2

    @wp.kernel
    def k(out: wp.array(dtype=int)):
        out[0], out[1] = two(), two(5)
        out[2], out[3] = three(), three(5)

    assert run(k, 4, int) == [2, 10, 3, 15]


def test_an_overload_defined_again_takes_the_place_of_the_first():
    @wp.func
    def f(x: int):
        return x

    @wp.func
    def f(x: float):  # noqa: F811
        return 2.0 * x

    first = f

    @wp.func
    def f(x: int):  # noqa: F811
        return 10 * x

    @wp.kernel
    def k(out: wp.array(dtype=float)):
        out[0], out[1], out[2] = float(f(1)), f(1.0), float(first(1))

    assert run(k, 3, float) == [10.0, 2.0, 1.0]


def test_defaults_can_be_changed():
    @wp.func
    def shifted(x: float, by: float = 1.0, then: wp.Function = twice):
        return then(x + by)

    def launched():
        @wp.kernel
        def k(out: wp.array(dtype=float)):
            out[0] = shifted(1.0)

        return run(k, 1, float)

    assert launched() == [4.0]
    shifted.defaults.update(by=2.0, then=wp.neg)
    assert launched() == [-3.0]


def test_wrong_ways_of_declaring_and_passing_functions():
    with pytest.raises(TypeError, match="inline must be a bool"):

        @wp.func(inline="always")
        def f(x: float):
            return x

    @wp.func
    def apply(f: wp.Function, x: float):
        return f(x)

    @wp.kernel
    def k(out: wp.array(dtype=float)):
        out[0] = apply(wp.printf, 1.0)

    with pytest.raises(wp.KernelTypeError, match="unsupported built-in function 'printf'"):
        run(k, 1, float)


def test_functions_are_arguments_of_functions():
    @wp.func
    def apply(f: Any, x: float):
        return f(x) + 1.0

    @wp.kernel
    def k(out: wp.array(dtype=float)):
        out[0] = apply(twice, 3.0)

    assert run(k, 1, float) == [7.0]


def test_recursion_is_an_error_not_a_crash():
    @wp.func
    def down(n: int):
        if n > 0:
            return down(n - 1)
        return 0

    @wp.kernel
    def k(out: wp.array(dtype=int)):
        out[0] = down(3)

    with pytest.raises(wp.KernelSyntaxError, match="calls itself"):
        run(k, 1, int)


def test_host_builtins_agree_with_kernels():
    @wp.kernel
    def k(v: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)):
        out[0] = wp.length(v[0])
        out[1] = wp.dot(v[0], v[0])

    v = wp.vec3(1.0, 2.0, 3.5)
    out = wp.zeros(2, dtype=float)
    wp.launch(k, dim=1, inputs=[wp.array([v], dtype=wp.vec3), out])
    assert out.list() == [wp.length(v), wp.dot(v, v)]
    assert wp.min(3, 4) == 3
    np.testing.assert_array_equal(np.array(wp.cross(wp.vec3(1.0, 0.0, 0.0), wp.vec3(0.0, 1.0, 0.0))), [0, 0, 1])


def test_inline_decides_what_becomes_of_calls():
    from treadle.ir.walk import ops_of
    from treadle.lang.compile import Options, translate

    @wp.func(inline=False)
    def kept(x: float):
        return x * 3.0

    @wp.kernel
    def call(out: wp.array(dtype=float)):
        out[0] = kept(2.0) + twice(2.0)

    out = wp.zeros(1, dtype=float)
    wp.launch(call, dim=1, inputs=[out])
    assert out.list() == [10.0]
    func = translate(call, call.declared_variants()[0].types, Options(16, False, False, 8)).func
    assert [op.attrs["func"].name for op in ops_of(func.body) if op.name == "call"] == ["kept"]


def test_a_function_serves_grids_of_several_ranks():
    @wp.func(inline=False)
    def heavy(x: int):
        return x * x

    @wp.func(inline=False)
    def row_and_column():
        i, j = wp.tid()
        return 100 * heavy(i) + heavy(j)

    @wp.kernel
    def line(out: wp.array(dtype=int)):
        i = wp.tid()
        out[i] = heavy(i)

    @wp.kernel
    def plane(out: wp.array2d(dtype=int)):
        i, j = wp.tid()
        out[i, j] = row_and_column()

    one, two = wp.zeros(20, dtype=int), wp.zeros((3, 20), dtype=int)
    wp.launch(line, dim=20, inputs=[one])
    wp.launch(plane, dim=(3, 20), inputs=[two])
    assert (one.numpy() == np.arange(20) ** 2).all()
    assert (two.numpy() == 100 * np.arange(3)[:, None] ** 2 + np.arange(20) ** 2).all()


def cell(text: str, names: dict) -> None:
    """Run ``text`` as a notebook runs a cell."""
    file = f"<cell {len(linecache.cache)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), names)


def test_a_function_that_is_defined_anew_is_used_by_kernels_that_were_launched_before():
    names = {"wp": wp, "__name__": "notebook"}
    cell("@wp.func\ndef inner(x: float):\n    return x + 1.0\n", names)
    cell("@wp.func\ndef outer(x: float):\n    return inner(x)\n", names)
    cell("@wp.kernel\ndef k(a: wp.array(dtype=float)):\n    a[0] = outer(2.0)\n", names)
    a = wp.zeros(1, dtype=float)
    wp.launch(names["k"], dim=1, inputs=[a])
    assert a.list() == [3.0]
    cell("@wp.func\ndef inner(x: float):\n    return x * 10.0\n", names)
    wp.launch(names["k"], dim=1, inputs=[a])
    assert a.list() == [20.0]


@wp.struct
class Rows:
    p: wp.array(dtype=float)
    q: wp.array(dtype=float)


@wp.func
def chosen_row(s: Rows, a: wp.array(dtype=float), m: wp.array2d(dtype=float), n: int):
    if n == 0:
        return a
    if n == 1:
        return s.p
    for k in range(n):
        if k == 3:
            return m[k]
        if k == 4:
            return s.q
    return m[0]


@wp.func
def pair_of_rows(s: Rows, a: wp.array(dtype=float), n: int):
    if n == 0:
        return a, s.p
    elif n == 1:
        return s.p, a
    return a, a


def test_an_array_of_a_functions_own_is_not_given_back_as_one_in_memory():
    @wp.func
    def own() -> wp.array(dtype=int):
        return wp.zeros(shape=2, dtype=int)

    @wp.kernel
    def k(a: wp.array(dtype=int)):
        a[0] = own()[1]

    with pytest.raises(wp.KernelTypeError, match="of its own, of which the caller gets a copy"):
        wp.launch(k, dim=1, inputs=[wp.zeros(1, dtype=int)])

    class Derived(wp.fixedarray):
        pass

    def wrong():
        return wp.zeros(shape=2, dtype=int)

    wrong.__annotations__["return"] = Derived(dtype=int, shape=2)
    with pytest.raises(TypeError, match="a fixedarray subclass instance as an annotation says no more"):
        wp.func(wrong)


def test_functions_may_return_arrays_that_lie_in_different_ways():
    @wp.kernel
    def k(s: Rows, a: wp.array(dtype=float), m: wp.array2d(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        v = chosen_row(s, a, m, i)
        u, w = pair_of_rows(s, a, i % 3)
        y[i] = v[0] * 100.0 + u[0] * 10.0 + w[0]

    s, m = Rows(), np.array([[3, 0], [0, 0], [0, 0], [5, 0]], np.float32)
    s.p, s.q = wp.array([2.0, 0.0], dtype=float), wp.array([7.0, 0.0], dtype=float)
    a, whole = wp.array([1.0, 0.0], dtype=float), wp.array(np.repeat(m, 2, axis=1), dtype=float)
    y = wp.zeros(6, dtype=float)
    wp.launch(k, 6, inputs=[s, a, whole[:, ::2], y])
    assert y.list() == [112.0, 221.0, 311.0, 312.0, 521.0, 511.0]


def test_open_annotations_tell_overloads_apart():
    from typing import Any  # noqa: F401, used by annotations that are text

    @wp.func
    def kind(x: wp.types.vector(length=Any, dtype=float)):
        return 1

    @wp.func
    def kind(x: wp.types.matrix(shape=(Any, Any), dtype=wp.Float)):  # noqa: F811
        return 2

    @wp.func
    def kind(x: wp.Int):  # noqa: F811
        return 3

    @wp.func
    def kind(x: wp.Float):  # noqa: F811
        return 4

    @wp.func
    def kind(x: wp.array(dtype=Any)):  # noqa: F811
        return 5

    @wp.func
    def kind(x: Any):  # noqa: F811
        return 6

    @wp.kernel
    def kinds(a: wp.array(dtype=wp.vec3), found: wp.array(dtype=int)):
        found[0] = kind(wp.vec2(1.0, 2.0))
        found[1] = kind(wp.mat22d())
        found[2] = kind(wp.int8(1)) * 10 + kind(1)
        found[3] = kind(wp.float16(1.0)) * 10 + kind(1.0)
        found[4] = kind(a)
        found[5] = kind(wp.quat(0.0, 0.0, 0.0, 1.0))

    found = wp.zeros(6, dtype=int)
    wp.launch(kinds, dim=1, inputs=[wp.zeros(1, dtype=wp.vec3), found])
    assert found.numpy().tolist() == [1, 2, 33, 44, 5, 6]
    assert [kind(x) for x in (wp.vec2(), wp.mat33(), 3, 4.0, wp.float64(4.0), wp.zeros(1), wp.quat())] == [
        1,
        2,
        3,
        4,
        4,
        5,
        6,
    ]


def test_an_argument_must_be_what_an_open_annotation_asks_for():
    @wp.func
    def half(x: wp.Float):
        return x * type(x)(0.5)

    @wp.kernel
    def wrong(a: wp.array(dtype=int)):
        a[0] = half(a[0])

    with pytest.raises(wp.KernelTypeError, match="argument 'x' of .*half must be wp.Float, not int32"):
        wp.launch(wrong, dim=1, inputs=[wp.zeros(1, dtype=int)])
