"""Numbers known while compiling behave as they would at run time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from treadle.base.errors import KernelTypeError
from treadle.frontend.constants import Constant, constant_of, fold, materialize, plain, round_float
from treadle.ir.builder import Builder
from treadle.types.core import b1, bf16, f16, f32, f64, i8, i32, i64, u8, u64


def typed(value, t):
    return Constant(value, t)


@pytest.mark.parametrize(
    ("value", "t", "want"),
    [(300, u8, 44), (-1, u8, 255), (200, i8, -56), (2.9, i32, 2), (-2.9, i32, -2), (True, i32, 1), (0, b1, False),
     (2**63, i64, -(2**63)), (-1, u64, 2**64 - 1), (0.1, f32, float(np.float32(0.1))), (1e60, f32, math.inf),
     (0.1, f64, 0.1), (0.1, f16, float(np.float16(0.1)))],
)  # fmt: skip
def test_numbers_as_a_type_holds_them(value, t, want):
    assert plain(value, t) == want


def test_bfloat16_rounds_to_even():
    assert round_float(1.0 + 2.0**-8, bf16) == 1.0
    assert round_float(1.0 + 3 * 2.0**-8, bf16) == 1.0 + 2.0**-6
    assert round_float(-1.0 - 2.0**-7, bf16) == -1.0 - 2.0**-7


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "mod", "floordiv", "bitand", "bitor", "bitxor"])
def test_integers_fold_as_they_run(name):
    from treadle.builtins import registry

    for x, y in [(7, 2), (7, -2), (-7, 2), (-7, -2), (2**31 - 1, 3), (-(2**31), 5)]:
        made = fold(name, typed(x, i32), typed(y, i32))
        with np.errstate(all="ignore"):
            want = registry.primitive(name).part("ref")(np.int32(x), np.int32(y))
        assert made.value == int(want), (name, x, y)
        assert made.type is i32


def test_what_is_left_to_run_time():
    assert fold("div", typed(1, i32), typed(0, i32)) is None
    assert fold("add", typed(1.0, f32), typed(2.0, f32)) is None  # typed floats round as the program does
    assert fold("add", typed(1, i32), typed(2, i64)) is None


def test_literals():
    assert constant_of(5).literal and constant_of(5).type is i32
    assert constant_of(5000000000).type is i64
    assert constant_of(True).type is b1
    two_thirds = fold("div", constant_of(2.0), constant_of(3.0))
    assert two_thirds.literal and two_thirds.value == 2.0 / 3.0
    assert fold("add", typed(7, i64), constant_of(1)).type is i64


def test_what_has_no_value():
    with pytest.raises(KernelTypeError, match="the function len is not a value"):
        materialize(Builder(), constant_of(len))
    with pytest.raises(KernelTypeError, match="does not fit into uint8"):
        materialize(Builder(), Constant(300, u8))
