"""Statements mean what Python's do; checked by running them on the oracle."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

from tests.frontend.language import outputs, program, run, wp
from treadle.base.errors import KernelAssertionError, UnassignedError
from treadle.frontend.parse import parse
from treadle.frontend.source import Source
from treadle.types.core import f32, i32, matrix, vector, view


def test_assignment_forms():
    def kernel(out):
        a, b = 1.0, 2.0
        a, b = b, a
        (c, d), e = (3.0, 4.0), 5.0
        f = g = 6.0
        h: float = 7.0
        out[0], out[1] = a, b
        out[2] = c + d
        out[3] = e
        out[4] = f + g
        out[5] = h
        """A text alone does nothing."""
        out[0], out[6] = out[6], out[0]

    assert outputs(kernel) == [0.0, 1.0, 7.0, 5.0, 12.0, 7.0, 2.0, 0.0]


def test_augmented_assignment():
    def kernel(out):
        a = 7
        a += 2
        a -= 1
        a *= 3
        a //= 5
        a %= 3
        a <<= 4
        a |= 3
        a &= 18
        a ^= 1
        out[0] = a
        out[1] = 5
        out[1] *= 2
        out[1] //= 3
        out[1] -= 1
        out[2] += 4
        out[3] |= 5
        out[3] &= 12
        out[3] ^= 1

    assert outputs(kernel, 4, np.int32) == [19, 2, 4, 5]


def test_reads_take_the_value_of_the_moment():
    def kernel(out):
        out[0] = 1.0
        out[1] = 2.0
        t = out[0]
        out[0] = out[1]
        out[1] = t

    assert outputs(kernel, 2) == [2.0, 1.0]


def test_values_are_copied_not_shared():
    def kernel(out):
        v = wp.vec3(1.0, 2.0, 3.0)
        u = v
        u[0] = 5.0
        out[0] = v[0]
        out[1] = u[0]

    assert outputs(kernel, 2) == [1.0, 5.0]


def test_branches():
    def kernel(x, out):
        i = wp.tid()
        if x[i] > 2.0:
            y = 1.0
        elif x[i] > 1.0:
            y = 2.0
        else:
            y = 3.0
        if x[i] > 0.5:
            y += 10.0
        out[i] = y

    x, out = np.array([3.0, 2.0, 1.0, 0.0], np.float32), np.zeros(4, np.float32)
    run(kernel, [x, out], dim=4)
    assert out.tolist() == [11.0, 12.0, 13.0, 3.0]


def test_known_conditions_are_decided_while_compiling():
    def kernel(out):
        n = 2
        if n == 3:
            out[0] = no_such_name  # noqa: F821
        else:
            out[0] = 1.0
        out[1] = 2.0 if n > 1 else no_such_name  # noqa: F821
        if wp.static(False):
            out[2] = no_such_name  # noqa: F821

    assert outputs(kernel, 3) == [1.0, 2.0, 0.0]


def test_early_return():
    def kernel(x, out):
        i = wp.tid()
        if x[i] > 2.0:
            out[i] = 1.0
            return
        if x[i] > 0.5:
            if x[i] > 1.0:
                return
            out[i] = 5.0
        else:
            out[i] = 7.0
        out[i] += 10.0

    x, out = np.array([3.0, 2.0, 1.0, 0.0], np.float32), np.zeros(4, np.float32)
    run(kernel, [x, out], dim=4)
    assert out.tolist() == [1.0, 0.0, 15.0, 17.0]


def test_functions_return_from_anywhere():
    @wp.func
    def find(x: wp.array(dtype=float), limit: float):
        for i in range(x.shape[0]):
            if x[i] > limit:
                return i, x[i]
            for k in range(3):
                if x[i] == -float(k + 1):
                    return -k, 0.0
        return -100, -1.0

    def kernel(x, limits, out):
        t = wp.tid()
        k, v = find(x, limits[t])
        out[t] = float(k) + v

    x, limits = np.array([1.0, 2.5, -3.0, 9.0], np.float32), np.array([0.0, 2.0, 5.0], np.float32)
    out = np.zeros(3, np.float32)
    run(kernel, [x, limits, out], dim=3)
    assert out.tolist() == [1.0, 3.5, -2.0]


def test_a_path_without_return_is_told_when_it_runs():
    @wp.func
    def half(x: float):
        if x > 1.0:
            return 3.0

    def kernel(x, out):
        out[0] = half(x[0])

    x, out = np.array([2.0], np.float32), np.zeros(1, np.float32)
    run(kernel, [x, out])
    assert out.tolist() == [3.0]
    x[0] = 0.0
    with pytest.raises(UnassignedError, match="half ended without returning a value"):
        run(kernel, [x, out])


def test_a_name_from_an_untaken_branch_raises():
    def kernel(flag, out):
        if flag[0] > 0:
            a = 7.0
        out[0] = a
        out[1] = a

    flag, out = np.array([1], np.int32), np.zeros(2, np.float32)
    run(kernel, [flag, out])
    assert out.tolist() == [7.0, 7.0]
    flag[0] = 0
    with pytest.raises(UnassignedError, match="'a'"):
        run(kernel, [flag, out])


def test_a_name_assigned_in_every_branch_needs_no_check():
    def kernel(flag, out):
        if flag[0] > 0:
            a = out[0]
        else:
            a = 8.0
        out[0] = a

    func = program(kernel, [view(i32, 1), view(f32, 1)])
    assert not any(op.name == "check" for op in func.body.ops)


def test_assert():
    def kernel(x):
        i = wp.tid()
        assert x[i] > 0.0, "must be positive"

    run(kernel, [np.ones(2, np.float32)], dim=2)
    with pytest.raises(KernelAssertionError, match="x\\[i\\] > 0.0: must be positive"):
        run(kernel, [np.zeros(2, np.float32)], dim=2)


def test_components_of_local_values():
    def kernel(k, out):
        v = wp.vec3(1.0, 2.0, 3.0)
        v[0] = 5.0
        v.y += 1.0
        v[k[0]] *= 2.0
        m = wp.mat22(1.0, 2.0, 3.0, 4.0)
        m[0, 1] = 9.0
        m[1] = wp.vec2(7.0, 8.0)
        m[0][0] += 0.5
        m[k[1], 0] += 1.0
        out[0] = v[0] + v.y * 10.0 + v[2] * 100.0
        out[1] = m[0, 0] + m[0][1] * 10.0 + m[1, 0] * 100.0 + m[-1, -1] * 1000.0
        v[0:2] = wp.vec2(1.0, 1.0)
        out[2] = v[0] + v[1] + v[2]

    k, out = np.array([2, 1], np.int32), np.zeros(3, np.float32)
    run(kernel, [k, out])
    assert out.tolist() == [5.0 + 30.0 + 600.0, 1.5 + 90.0 + 800.0 + 8000.0, 8.0]


def test_stores_to_parts_touch_only_that_part():
    def kernel(p, m):
        i = wp.tid()
        p[i].x = 1.0
        p[i][1] = 2.0
        p[i][i] += 3.0
        m[i][0, 1] = 4.0
        m[i][1][i] = 5.0

    func = program(kernel, [view(vector(3, f32), 1), view(matrix(2, 2, f32), 1)])
    loads = [op for op in func.body.ops if op.name == "load"]
    assert all(op.result.type is f32 for op in loads)
    p, m = np.zeros((2, 3), np.float32), np.zeros((2, 2, 2), np.float32)
    run(kernel, [p, m], [view(vector(3, f32), 1), view(matrix(2, 2, f32), 1)], dim=2)
    assert p.tolist() == [[4.0, 2.0, 0.0], [1.0, 5.0, 0.0]]
    assert m.tolist() == [[[0.0, 4.0], [5.0, 0.0]], [[0.0, 4.0], [0.0, 5.0]]]


@pytest.mark.parametrize("kind", ["continue", "elif", "sum"])
def test_long_chains(kind):
    n = 250
    if kind == "continue":
        lines = ["for i in range(x.shape[0]):"]
        lines += [f"    if x[i] == {k}:\n            continue\n        s += 1" for k in range(n)]
    elif kind == "elif":
        lines = ["if x[0] == -1:\n        s = 1"] + [f"elif x[0] == {k}:\n        s = {k}" for k in range(n)]
    else:
        lines = ["s = " + " + ".join(["x[0]"] * n)]
    source = "def kernel(x, out):\n    s = 0\n" + "".join(f"    {line}\n" for line in lines) + "    out[0] = s\n"
    name = f"<chain of {kind}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace = {"wp": wp}
    exec(compile(source, name, "exec"), namespace)
    func = parse(Source(namespace["kernel"]), [view(i32, 1), view(i32, 1)])
    assert func.kind == "kernel"
