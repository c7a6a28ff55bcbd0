"""Expressions: operators, literals, conditions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.frontend.language import error, outputs, program, run, wp
from treadle.ir.walk import ops_of
from treadle.types.core import f32, f64, i32, i64, vector, view


def names(func) -> list[str]:
    return [op.name for op in ops_of(func.body)]


def test_division_and_remainder_of_integers():
    """C's division and remainder, Python's floor: as in the field."""

    def known(out):
        out[0] = 7 / -2
        out[1] = 7 // -2
        out[2] = 7 % -2
        out[3] = -7 % 3

    def at_run_time(x, out):
        out[0] = x[0] / x[1]
        out[1] = x[0] // x[1]
        out[2] = x[0] % x[1]
        out[3] = -x[0] % x[2]

    want = [-3, -4, 1, -1]
    assert outputs(known, 4, np.int32) == want
    out = np.zeros(4, np.int32)
    run(at_run_time, [np.array([7, -2, 3], np.int32), out])
    assert out.tolist() == want


def test_operators_of_floats():
    def kernel(x, out):
        a, b = x[0], x[1]
        out[0] = a + b
        out[1] = a - b
        out[2] = a * b
        out[3] = a / b
        out[4] = a // b
        out[5] = a % b
        out[6] = -a + +b

    out = np.zeros(7, np.float32)
    run(kernel, [np.array([7.5, -2.0], np.float32), out])
    assert out.tolist() == [5.5, 9.5, -15.0, -3.75, -4.0, 1.5, -9.5]


def test_bits():
    def kernel(x, out):
        a = x[0]
        out[0] = (a & 6) | 8
        out[1] = a ^ 3
        out[2] = ~a
        out[3] = a << 3
        out[4] = a >> 1

    out = np.zeros(5, np.int32)
    run(kernel, [np.array([5], np.int32), out])
    assert out.tolist() == [12, 6, -6, 40, 2]


def test_literals_take_the_type_of_their_partner():
    def kernel(x, n, out):
        out[0] = x[0] * 2 + 1
        out[1] = 1.5 * x[0]
        y = wp.float64(2) * x[0]
        out[2] = y / 3.0
        k = n[0] + 1
        out[3] = float(k) * wp.float64(1.0) if False else wp.float64(k)

    out = np.zeros(4)
    run(kernel, [np.array([0.1]), np.array([2**40], np.int64), out])
    assert out.tolist() == [0.1 * 2 + 1, 1.5 * 0.1, 2 * 0.1 / 3.0, 2.0**40 + 1]


def test_arithmetic_of_literals_is_exact():
    def kernel(out):
        out[0] = wp.float64(2.0 / 3.0)
        out[1] = wp.float64(1.0) * (1.0 / 3.0)

    assert outputs(kernel, 2, np.float64) == [2.0 / 3.0, 1.0 / 3.0]


def test_wide_literals():
    def kernel(out):
        out[0] = wp.int64(5000000000)
        out[1] = wp.int64(1) << wp.int64(40)
        out[2] = wp.int64(-9007199254740993)
        out[3] = wp.int64(wp.uint64(0xFFFFFFFFFFFFFFFE))

    assert outputs(kernel, 4, np.int64) == [5000000000, 1 << 40, -9007199254740993, -2]


def test_casts_of_known_numbers():
    def kernel(out):
        out[0] = float(True)
        out[1] = float(int(-2.7))
        out[2] = float(bool(2.5))
        out[3] = float(wp.uint8(300))
        out[4] = float(wp.float16(0.1))

    assert outputs(kernel, 5) == [1.0, -2.0, 1.0, 44.0, float(np.float16(0.1))]


def test_named_numbers_have_a_type():
    def kernel(x):
        a = 1
        x[0] = x[0] * a

    assert "float64 and int32" in str(error(kernel, [view(f64, 1)]))


def test_conditions():
    def kernel(x, out):
        i = wp.tid()
        a = x[i]
        if 0 < a <= 2 < 5:
            out[i] += 1
        if a and not a == 3:
            out[i] += 10
        if a == 0 or 6 / a == 2:
            out[i] += 100
        b = a > 0 and a < 3
        if b:
            out[i] += 1000
        out[i] += 10000 if a == 3 else 20000

    out = np.zeros(4, np.int32)
    run(kernel, [np.arange(4, dtype=np.int32), out], dim=4)
    assert out.tolist() == [20100, 21011, 21011, 10100]


def test_the_right_side_runs_only_where_it_must():
    def kernel(n, out):
        i = wp.tid()
        if i < 3 or wp.atomic_add(n, 0, 1) >= 0:
            out[i] = 1
        if i > 2 and wp.atomic_add(n, 0, 10) >= 0:
            out[i] += 1

    n, out = np.zeros(1, np.int32), np.zeros(4, np.int32)
    run(kernel, [n, out], dim=4)
    assert n.tolist() == [11]
    assert out.tolist() == [1, 1, 1, 2]


def test_a_harmless_right_side_costs_no_branch():
    def cheap(a, b, out):
        if a > 0 and a + b < 10:
            out[0] = 1
        out[1] = a if b > 0 else b

    def reads(a, b, out):
        if a > 0 and out[a] < 10:
            out[0] = 1

    assert names(program(cheap, [i32, i32, view(i32, 1)])).count("if") == 1
    assert "bitand" in names(program(cheap, [i32, i32, view(i32, 1)]))
    assert "select" in names(program(cheap, [i32, i32, view(i32, 1)]))
    assert names(program(reads, [i32, i32, view(i32, 1)])).count("if") == 2


def test_a_conditional_expression_runs_one_side():
    def kernel(x, out):
        i = wp.tid()
        out[i] = x[i] if i < 2 else -1.0

    x, out = np.array([5.0, 6.0], np.float32), np.zeros(3, np.float32)
    run(kernel, [x, out], dim=3)
    assert out.tolist() == [5.0, 6.0, -1.0]


def test_strings_are_known_while_compiling():
    mode = "fast"

    def kernel(out):
        if mode == "fast":
            out[0] = 1.0
        if mode != "slow":
            out[1] = 1.0

    assert outputs(kernel, 2) == [1.0, 1.0]


def test_vectors_add_and_scale():
    def kernel(v, out):
        i = wp.tid()
        u = 2.0 * v[i] + wp.vec3(1.0, 1.0, 1.0) / 2
        out[0] = u[0] + u.y * 10.0 + u[2] * 100.0

    v, out = np.array([[1.0, 2.0, 3.0]], np.float32), np.zeros(1, np.float32)
    run(kernel, [v, out], [view(vector(3, f32), 1), view(f32, 1)])
    assert out[0] == 2.5 + 45.0 + 650.0


def test_constants_of_math():
    def kernel(out):
        out[0] = math.pi
        out[1] = math.sqrt(2.25)
        out[2] = wp.pi

    assert outputs(kernel, 3) == [float(np.float32(math.pi)), 1.5, float(np.float32(math.pi))]


@pytest.mark.parametrize(("left", "right"), [(i32, f32), (f32, f64), (i64, i32)])
def test_run_time_values_of_two_types_do_not_mix(left, right):
    from treadle.types.spelling import spell

    def kernel(a, b, out):
        out[0] = float(a * b)

    message = str(error(kernel, [left, right, view(f32, 1)]))
    assert "out[0] = float(a * b)" in message
    assert spell(left) in message and spell(right) in message
    assert "hint: " in message
