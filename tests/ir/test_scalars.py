"""Scalars on the host are what the machine holds."""

import math

import numpy as np
import pytest

from treadle.ir.scalars import boxed, converted, dtype_of, plain
from treadle.types.core import SCALARS, b1, bf16, f16, f32, f64, i8, i32, i64, u8, u64


def test_each_type_has_a_class_of_its_size():
    for t in SCALARS:
        assert np.dtype(dtype_of(t)).itemsize == (4 if t is bf16 else t.size)


def test_boxing_rounds_and_unboxing_gives_the_value():
    assert plain(boxed(0.1, f32)) == float(np.float32(0.1)) != 0.1
    assert plain(boxed(0.1, f64)) == 0.1
    assert plain(boxed(True, b1)) is True and type(plain(boxed(7, i64))) is int
    with np.errstate(over="ignore"):
        assert plain(boxed(1e6, f16)) == math.inf


@pytest.mark.parametrize(
    "value, result",
    [(1.0, 1.0), (1.00390625, 1.0), (1.01171875, 1.015625), (1.005, 1.0078125), (-0.0, -0.0), (3.4e38, math.inf),
     (math.inf, math.inf)],
)  # fmt: skip
def test_bf16_rounds_to_eight_bits_ties_to_even(value, result):
    found = plain(boxed(np.float32(value), bf16))
    assert found == result and math.copysign(1, found) == math.copysign(1, result)


def test_bf16_keeps_nan():
    assert math.isnan(boxed(np.float32(math.nan), bf16))


@pytest.mark.parametrize(
    "x, t, result",
    [
        (np.float32(2.9), i32, 2), (np.float32(-2.9), i32, -2), (np.float32(3e38), i32, 2**31 - 1),
        (np.float64(-1e300), i64, -(2**63)), (np.float64(1e300), u64, 2**64 - 1), (np.float32(math.nan), i8, 0),
        (np.float32(-1.0), u8, 0), (np.int32(-1), u8, 255), (np.int64(2**40 + 5), i32, 5), (np.int32(200), i8, -56),
        (np.bool_(True), f32, 1.0), (np.float32(0.25), b1, True), (np.float32(-0.0), b1, False),
        (np.float32(math.nan), b1, True), (np.int64(2**53 + 1), f64, 2.0**53), (np.uint64(2**64 - 1), f32, 2.0**64),
    ],
)  # fmt: skip
def test_conversions_are_defined_for_every_value(x, t, result):
    found = converted(x, t)
    assert type(found) is dtype_of(t) and plain(found) == result
