"""The message of every kind of mistake, as users read it; the golden file is the list."""

from __future__ import annotations

import linecache
import warnings

from tests.frontend.language import error, wp
from treadle.base.errors import ManyErrors, UnassignedError
from treadle.frontend.parse import parse
from treadle.frontend.source import Source
from treadle.types.core import f32, i32, vector, view

ARGUMENTS = {"a": view(f32, 1), "v": view(vector(3, f32), 1), "n": i32, "x": f32}

MISTAKES = r"""
y = x * n
y = a[0] + n
a[0] = n
a[n] += n
v[0] = x
v[0].x = n
y = 1\n    y = 2.0
y = x if n > 0 else n
if v[0]:\n        a[0] = 1.0
y = a + x
y = -v
y = a[x]
a[0] = wp.vec3
a[0] = f'{x}'
y = [1, 2]
y = {1: 2}
y = {1, 2}
y = lambda z: z
y = [z for z in range(3)]
(y := 3)
y = (z for z in a)
y, *z = 1, 2, 3
with a:\n        pass
try:\n        pass\n    except ValueError:\n        pass
raise ValueError
def inner():\n        pass
class C:\n        pass
del x
global y
import math
match n:\n        case 1:\n            pass
assert x, n
y = x is None
y = n in a
y = b'abc'
y = 1j
y = None + 1
for y, z in a:\n        pass
for y in x:\n        pass
y = range(3)
y = a(3)
y = z + 1\n    z = 1
y = undefined_name
y = wp.sine(x)
y = 5000000000\n    n = y
y = wp.static(n + 1)
y = wp.static(1, 2)
return x
a[0, 1] = 2.0
y = a[1:2, 3:4]
y = a[::0]
y = a[::1.5]
y = v[0][n:]
y = v[0].w
y = a.colour
y = x.y
x[0] = 1.0
y = wp.tid(1)
wp.printf(x)
y: int = x
if n > 0:\n        y = 1\n    else:\n        y = 1.0\n    a[y] = 0.0
for k in range(n):\n        f = wp.abs if k > 2 else wp.min
f = wp.abs\n    f = wp.min
f = wp.abs\n    f = x
y = x < 1.0 == (n > 0)
y = wp.address_of(x)
""".strip().split("\n")


def kernel_of(body: str):
    """The kernel with that body, from a file of a fixed name."""
    source = f"def kernel({', '.join(ARGUMENTS)}):\n    {body}\n"
    name = f"kernel_{abs(hash(body))}.py"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace = {"wp": wp}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(source, name, "exec"), namespace)
    return namespace["kernel"], name


def test_every_mistake_has_its_message(golden):
    told = []
    for written in MISTAKES:
        kernel, name = kernel_of(written.replace("\\n", "\n"))
        found = error(kernel, list(ARGUMENTS.values()))
        told.append(f"{type(found).__name__}\n{str(found).replace(name, 'kernel.py')}\n")
    golden("errors.txt", "\n".join(told))


def test_all_errors_of_a_program_are_told_together():
    def kernel(a, n):
        x = a[0] * n
        y = x + 1.0
        if y > 2.0:
            a[0] = undefined_name  # noqa: F821
        else:
            a[1] = n
        z = 3
        a[2] = float(z)

    found = error(kernel, [view(f32, 1), i32])
    assert isinstance(found, ManyErrors)
    lines = [e.span.text().strip().split("  #")[0] for e in found.errors]
    assert lines == ["x = a[0] * n", "a[0] = undefined_name", "a[1] = n"]


def test_a_name_that_nothing_can_have_assigned():
    def before(a):
        a[0] = b
        b = 1.0  # noqa: F841

    def in_a_loop(a, n):
        for i in range(n):
            a[i] = c
            c = c + 1.0  # noqa: F821

    def never(a, n):
        if n > 0:
            d = 1.0
        else:
            a[0] = d
        a[1] = 2.0

    for kernel, types in ((before, [view(f32, 1)]), (in_a_loop, [view(f32, 1), i32]), (never, [view(f32, 1), i32])):
        assert isinstance(error(kernel, types), UnassignedError)


def test_kernels_that_promise_a_result():
    def kernel(a: view(f32, 1)) -> float:
        a[0] = 1.0

    def other(a: view(f32, 1)):
        return None

    assert "declares a return value" in str(error(kernel, [view(f32, 1)]))
    assert "a kernel cannot return a value" in str(error(other, [view(f32, 1)]))


def test_columns_count_characters():
    def kernel(a, n):
        a[0] = 1.0 if "äöü" == "äöü" else a[n]
        größe = a[0] * n  # noqa: F841

    found = error(kernel, [view(f32, 1), i32])
    shown = str(found).splitlines()
    assert shown[1].index("a[0] * n") == shown[2].index("^^^^^^^^")


def test_errors_inside_functions_point_into_them():
    @wp.func
    def broken(x: float, n: int):
        return x * n

    def kernel(a, n):
        a[0] = broken(a[0], n)

    assert "return x * n" in str(error(kernel, [view(f32, 1), i32]))


def test_argument_counts():
    def kernel(a, n):
        pass

    try:
        parse(Source(kernel), [i32])
    except TypeError as found:
        assert "kernel takes 2 arguments, here are 1" in str(found)
    else:
        raise AssertionError
