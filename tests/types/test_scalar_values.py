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
