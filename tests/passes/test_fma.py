"""Fused multiply-adds, by rule."""

import pytest

from tests.passes.text import body, of
from treadle.passes.fma import form_fma


def after(text: str) -> str:
    return body(form_fma(of(text)))


def test_a_product_and_a_sum_fuse():
    assert "%9: f32 = fma %2, %3, %2" in after("%9: f32 = mul %2, %3\n %10: f32 = add %9, %2\n store %0, %1, %10")
    assert "%9: f32 = fma %2, %3, %2" in after("%9: f32 = mul %2, %3\n %10: f32 = add %2, %9\n store %0, %1, %10")


def test_differences_fuse_with_a_negation():
    text = after("%9: f32 = mul %2, %3\n %10: f32 = sub %9, %2\n store %0, %1, %10")
    assert "neg %2" in text and "fma %2, %3, %9" in text
    text = after("%9: f32 = mul %2, %3\n %10: f32 = sub %2, %9\n store %0, %1, %10")
    assert "neg %2" in text and "fma %9, %3, %2" in text


@pytest.mark.parametrize(
    "text",
    [
        "%9: f32 = mul %2, %3\n %10: f32 = mul %3, %2\n %11: f32 = sub %9, %10\n store %0, %1, %11",  # exact zero
        "%9: f32 = mul %2, %2\n %10: f32 = mul %3, %3\n %11: f32 = add %9, %10\n store %0, %1, %11",
        "%9: f32 = mul %2, %2\n %10: f32 = mul %3, %3\n %12: f32 = neg %9\n %11: f32 = add %12, %10\n"
        " store %0, %1, %11",
        "%9: f32 = mul %2, %3\n %10: f32 = add %9, %2\n store %0, %1, %10\n"
        " store %0, %1, %9",  # the product is used twice
        "%9: f32 = mul %2, %3\n %10: f32 = add %9, %9\n store %0, %1, %10",
        "%9: i32 = mul %1, %1\n %10: i32 = add %9, %1\n store %7, %1, %10",
        "%9: vec<3,f32> = mul %5, %2\n %10: vec<3,f32> = add %9, %5\n store %6, %1, %10",
        "%8: f16 = cast %2\n %9: f16 = mul %8, %8\n %10: f16 = add %9, %8\n %11: f32 = cast %10\n store %0, %1, %11",
    ],
)
def test_what_must_not_fuse(text):
    assert "fma" not in after(text)


def test_a_third_product_fuses_with_the_sum_of_two():
    text = after("%9: f32 = mul %2, %2\n %10: f32 = mul %3, %3\n %11: f32 = add %9, %10\n %12: f32 = mul %2, %3\n"
                 "%13: f32 = add %11, %12\n store %0, %1, %13")  # fmt: skip
    assert text.count("fma") == 1 and "fma %2, %3" in text
