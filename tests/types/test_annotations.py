"""Every spelling of a type means the same type."""

import collections.abc
import sys
import typing

import numpy as np
import pytest

from treadle.base.errors import KernelNameError, KernelTypeError
from treadle.types import values as wp
from treadle.types.annotations import ArrayAnnotation, fixedarray, type_of
from treadle.types.core import array, b1, f32, f64, fixed, i32, i64, tuple_of, vector

SPELLINGS = [
    (float, f32), (int, i32), (bool, b1), (wp.float64, f64), (wp.int64, i64), (np.float64, f64), (np.dtype("i8"), i64),
    ("float", f32), ("wp.vec3", vector(3, f32)), (wp.vec3d, vector(3, f64)), (vector(2, f32), vector(2, f32)),
    (ArrayAnnotation(float), array(f32, 1)), (ArrayAnnotation(wp.vec3, 2), array(vector(3, f32), 2)),
    (ArrayAnnotation("wp.vec3"), array(vector(3, f32), 1)), (ArrayAnnotation(typing.Any, 3), array(None, 3)),
    (ArrayAnnotation(float, 2, "indexedarray"), array(f32, 2, "indexedarray")),
    (fixedarray(float, 3), fixed(f32, (3,))), (fixedarray(dtype=wp.vec3, shape=(2, 4)), fixed(vector(3, f32), (2, 4))),
    (fixedarray(int), array(i32, 1)),
    (tuple[float, int], tuple_of(f32, i32)), (wp.vector(length=3, dtype=float), vector(3, f32)),
]  # fmt: skip


@pytest.mark.parametrize(("annotation", "meaning"), SPELLINGS, ids=lambda x: str(x)[:40])
def test_spelling(annotation, meaning):
    assert type_of(annotation, {"wp": wp}) is meaning


@pytest.mark.parametrize("annotation", [typing.Any, "Any", typing.TypeVar("T"), collections.abc.Callable,
                                        typing.Callable[[int], int], tuple[typing.Any, int]], ids=str)  # fmt: skip
def test_open_annotations_mean_no_type(annotation):
    assert type_of(annotation, {"Any": typing.Any}) is None


def test_fixed_arrays_have_positive_sizes():
    assert repr(fixedarray(float, 3)) == "fixedarray(dtype=float, shape=(3,))" and fixedarray(float, (3, 2)).size == 6
    for wrong in (0, (2, 0), (), (1,) * 5):
        with pytest.raises(KernelTypeError, match="the shape of a fixed array"):
            fixedarray(float, wrong)


def test_wrong_annotations_say_what_they_are():
    with pytest.raises(KernelTypeError, match="dict is no type") as error:
        type_of(dict)
    assert "array needs its element type" in error.value.hint
    with pytest.raises(KernelTypeError, match="3 is no type") as error:
        type_of(3)
    assert error.value.hint == "write its type, int32"
    with pytest.raises(KernelNameError, match="name 'nowhere' is not defined"):
        type_of("nowhere", {})
    with pytest.raises(KernelTypeError, match="no Python expression"):
        type_of("wp.", {})


def test_array_annotations_are_shown_as_they_are_written():
    import treadle as wp

    shown = {
        "wp.array[wp.float32]": wp.array(dtype=float), "wp.array2d[wp.vec3f]": wp.array2d[wp.vec3],
        "wp.array3d[wp.mat22d]": wp.array[wp.mat22d, typing.Literal[3]], "wp.array[Any]": wp.array(dtype=typing.Any),
        "wp.array[wp.float64, Any]": wp.array[np.float64, typing.Any], "wp.array4d[wp.bool]": wp.array[bool, 4],
        "wp.indexedarray[wp.int32]": wp.indexedarray[int],
        "wp.indexedarray[wp.int32, Literal[2]]": wp.indexedarray2d(dtype=int),
    }  # fmt: skip
    names = {"wp": wp, "Any": typing.Any, "Literal": typing.Literal}
    for text, annotation in shown.items():
        assert repr(annotation) == text and eval(text, names) == annotation
        assert hash(eval(text, names)) == hash(annotation)
    assert repr(wp.array[wp.types.vector(length=5, dtype=float)]) == "wp.array[vector(length=5, dtype=float32)]"
    assert wp.array[float] == wp.array(dtype=wp.float32) != wp.array2d[float] and wp.array[float].dtype is wp.float32
    assert type_of(wp.array[float, typing.Any]) is None


@pytest.mark.skipif(sys.version_info < (3, 11), reason="unions of Python 3.10 hold classes only")
def test_array_annotations_join_unions_for_python():
    import treadle as wp

    a = wp.array[float]
    assert typing.get_args(a | None) == (a, type(None)) and typing.get_args(float | a) == (float, a)
    with pytest.raises(KernelTypeError, match="Union type annotations are only supported at Python scope"):
        type_of(a | float)


def test_what_is_no_array_is_told():
    import treadle as wp

    for wrong in ((float, typing.Literal[1, 2]), (float, 0), (float, 2, 2), (float, "2")):
        with pytest.raises(TypeError):
            wp.array[wrong]
    with pytest.raises(TypeError, match="single type parameter"):
        wp.array2d[float, 2]
    with pytest.raises(ValueError, match="ndim must be between 1 and 4: it is 5"):
        wp.array[float, 5]
