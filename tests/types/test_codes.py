"""Short text for types, and what is told of shapes."""

from typing import Any

import pytest

import treadle as wp
from treadle.types.codes import check_array_shape, get_signature, get_type_code, strides_from_shape, type_str


@wp.struct
class Ball:
    x: float


@pytest.mark.parametrize(
    ("annotation", "code"),
    [
        (float, "f4"), (bool, "b"), (wp.bfloat16, "bf2"), (wp.uint64, "u8"), (wp.vec3, "v3f4"), (wp.mat33d, "m33f8"),
        (wp.quat, "qf4"), (wp.transformh, "tf2"), (wp.types.vector(5, int), "v5i4"), (str, "str"), (Any, "?"),
        (wp.Float, "f?"), (wp.array2d[wp.vec3], "a2v3f4"), (wp.array(dtype=Any), "a1?"),
        (wp.indexedarray(dtype=float, ndim=2), "ia2f4"), (tuple[int, wp.quat], "tpl2i4qf4"),
        (tuple[wp.vec3, ...], "tpl2v3f4?"), (wp.fixedarray(dtype=int, shape=(2, 3)), "a2i4"),
    ],
)  # fmt: skip
def test_codes(annotation, code):
    assert get_type_code(annotation) == code


def test_an_array_has_the_code_of_its_annotation():
    a = wp.zeros((2, 3), dtype=wp.vec3)
    assert get_type_code(a) == get_type_code(wp.array2d[wp.vec3])
    assert get_type_code(wp.zeros(2, dtype=Ball)) == get_type_code(wp.array(dtype=Ball)) == "a1" + get_type_code(Ball)
    assert get_signature([float, a, Ball]).startswith("f4_a2v3f4_")


def test_what_is_no_type():
    with pytest.raises(TypeError):
        get_type_code(3)


def test_texts_and_shapes():
    assert [type_str(t) for t in (list[int], tuple[int, float], float, Ball)] == [
        "list[int]", "tuple[int, float]", "float", "Ball"]  # fmt: skip
    assert strides_from_shape((2, 3), wp.vec3) == (36, 12) and strides_from_shape((4,), Ball) == (4,)
    with pytest.raises(TypeError, match="has no size"):
        strides_from_shape((2,), Any)
    check_array_shape((0, 5))
    for wrong in ((2, -1), (2**31,)):
        with pytest.raises(ValueError, match="from 0 to 2147483647"):
            check_array_shape(wrong)
