"""The translator refuses what would not mean the same everywhere."""

from __future__ import annotations

import pytest

from tests.builtins.elementary.to_c import Refused, to_c
from treadle.builtins.elementary.dsl import bitcast, float32, fma, int32, where


def fused(x: float32, y: float32) -> float32:
    return x * y + float32(1.0)


def fused_by_name(x: float32, y: float32) -> float32:
    p = x * y
    return p - x


def product(x: float32) -> float32:
    return x * x


def fused_by_call(x: float32) -> float32:
    return x + product(x)


def mixed(x: float32, n: int32) -> float32:
    return x * n


def good(x: float32) -> tuple[float32, int32]:
    p = x * x
    n = int32(0)
    for i in range(3):
        n = n + i
    if not (x <= float32(2.0)):
        p = where(n > 2, fma(x, x, -p), p)
    elif x < 0.5:
        n = bitcast(x, int32) >> 23
    return p, n


@pytest.mark.parametrize("body", [fused, fused_by_name, fused_by_call])
def test_a_product_in_a_sum_is_refused(body):
    with pytest.raises(Refused, match="write fma"):
        to_c([body])


def test_mixed_types_are_refused():
    with pytest.raises(Refused, match="int32 where float32 is wanted"):
        to_c([mixed])


def test_the_subset_is_translated():
    text = to_c([good])
    assert "for (i = 0; i < ((int32_t)3); i++)" in text
    assert "fmaf(x, x, (-p))" in text
