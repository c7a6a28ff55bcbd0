"""Numbers on the host behave as in kernels."""

import math

import numpy as np
import pytest

from treadle.types.core import ARITHMETIC, bf16, f16, f32, f64, i8, i32, u8
from treadle.types.numbers import quotient, remainder, rounder


def test_integers_wrap_around():
    assert [rounder(i8)(x) for x in (127, 128, 255, 256, -129)] == [127, -128, -1, 0, 127]
    assert [rounder(u8)(x) for x in (-1, 256, 3.9)] == [255, 0, 3]


@pytest.mark.parametrize("t", [t for t in ARITHMETIC if t.is_float], ids=str)
def test_floats_round_to_nearest_and_keep_special_values(t):
    narrow = rounder(t)
    for special in (0.0, -0.0, math.inf, -math.inf):
        assert math.copysign(1, narrow(special)) == math.copysign(1, special) and narrow(special) == special
    assert math.isnan(narrow(math.nan))
    assert narrow(narrow(0.1)) == narrow(0.1)


def test_rounding_agrees_with_the_bits():
    assert rounder(f32)(0.1) == float(np.float32(0.1)) and rounder(f64)(0.1) == 0.1
    assert rounder(f16)(1e6) == math.inf
    assert rounder(bf16)(1 + 2**-8) == 1.0 and rounder(bf16)(1 + 3 * 2**-8) == 1 + 2**-6  # ties to even


def test_division_is_c_with_defined_ends():
    assert [quotient(i32)(*p) for p in ((7, 2), (-7, 2), (7, -2), (7, 0))] == [3, -3, -3, 0]
    assert [remainder(i32)(*p) for p in ((7, 2), (-7, 2), (7, -2), (7, 0))] == [1, -1, 1, 0]
    assert quotient(f32)(1.0, -0.0) == -math.inf and math.isnan(quotient(f32)(0.0, 0.0))
    assert remainder(f32)(-7.5, 2.0) == -1.5 and math.isnan(remainder(f32)(1.0, 0.0))
