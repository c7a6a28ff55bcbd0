"""Which literals adapt, and C's common types."""

import numpy as np
import pytest

from treadle.types.core import SCALARS, b1, bf16, f16, f32, f64, i8, i16, i32, i64, u8, u32, u64, vector
from treadle.types.promotion import adapts, common, in_bits, literal_type, working


def test_a_literal_alone_is_narrow_unless_it_must_be_wide():
    assert [literal_type(v) for v in (True, 1, -1, 1.0)] == [b1, i32, i32, f32]
    assert [literal_type(v) for v in (2**31 - 1, 2**31, -(2**31), 2**63, 2**64 - 1)] == [i32, i64, i32, u64, u64]


@pytest.mark.parametrize("t", SCALARS, ids=str)
def test_literals_adapt_to_what_can_hold_them(t):
    assert adapts(1, t) is (t is not b1)
    assert adapts(1.5, t) is t.is_float
    assert adapts(True, t) is (t is b1)


def test_numbers_from_outside_give_their_bits_if_these_are_not_too_many():
    for t in (i8, u8, i32, u32, i64, u64):
        half, kind = 1 << t.bits - 1, "i" if t.is_signed else "u"
        for value in (-half, -1, 0, half - 1, half, 2 * half - 1):
            assert in_bits(value, t) == int(np.array(value % (2 * half), f"u{t.size}").astype(f"{kind}{t.size}"))
        assert in_bits(-half - 1, t) is None and in_bits(2 * half, t) is None


def test_a_number_too_large_for_an_integer_type_does_not_adapt():
    assert adapts(255, u8) and not adapts(256, u8) and not adapts(-1, u8) and adapts(-128, i8) and not adapts(128, i8)
    assert not adapts(1, vector(3, f32)) and not adapts("1", i32) and not adapts(1, None)


@pytest.mark.parametrize(("a", "b", "c"), [
    (i32, i32, i32), (i32, i64, i64), (i32, u32, u32), (i64, u32, i64), (i64, u64, u64), (i8, i16, i32), (u8, u8, u8),
    (i64, f32, f32), (f32, f64, f64), (f16, f32, f32), (f16, bf16, f32), (b1, i32, i32),
])  # fmt: skip
def test_common_type_is_that_of_c(a, b, c):
    assert common(a, b) is common(b, a) is c


def test_short_floats_work_in_float32():
    assert [working(t) for t in (f16, bf16, f32, f64, i32)] == [f32, f32, f32, f64, i32]
