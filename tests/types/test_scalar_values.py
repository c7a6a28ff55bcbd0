"""Numbers of a given type on the host."""

import pytest

from treadle.types import values


def test_scalars_do_the_arithmetic_of_their_type():
    assert values.int8(300) == 44 and values.uint8(3) - 4 == 255
    assert values.int32(7) / 2 == 3 and values.int32(-7) % 2 == -1 and values.int32(-7) // 2 == -4
    assert values.int32(5) / 0 == 0 and values.float32(1) / 0 == float("inf")
    assert float(values.float32(1.5)) == 1.5 and [10, 20][values.int32(1)] == 20
    with pytest.raises(TypeError, match="not mixed in silence"):
        values.float32(1) + values.float64(1)


def test_a_float_that_was_given_as_an_int_is_shown_as_one():
    assert repr(values.float16(-1)) == "float16(-1)" and str(values.float32(3)) == f"{values.float64(3)}" == "3"
    assert repr(values.float16(-1.0)) == "float16(-1.0)" and repr(values.float64()) == "float64(0.0)"
    assert str(values.float32(2**24 + 1)) == "16777216.0"  # not all digits of it are kept
    assert str(-values.float32(0)) == "-0.0" and repr(values.float64(3) + 4) == "float64(7.0)"  # results are floats
    assert f"{values.float32(2):.2f}" == "2.00" and type(values.float32(2).value) is float
