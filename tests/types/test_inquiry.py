"""What the questions about types and values answer."""

import numpy as np
import pytest

import treadle as wp
from treadle.types.inquiry import QUESTIONS

CLASSES = {
    "int": [int, wp.int8, wp.uint64], "float": [float, wp.float16], "vector": [wp.vec3, wp.vec2i], "matrix": [wp.mat33],
    "quaternion": [wp.quat], "transformation": [wp.transform], "array": [wp.array, wp.fixedarray],
    "tile": [wp.tile],
}  # fmt: skip


def test_each_class_is_of_its_own_kind_only():
    for kind, classes in CLASSES.items():
        for c in classes:
            found = {k for k in CLASSES if QUESTIONS[f"type_is_{k}"](c)}
            assert found == {kind}, c


def test_wider_kinds():
    types = wp.types
    assert types.type_is_scalar(int) and not types.type_is_scalar(bool) and types.type_is_value(bool)
    assert types.type_is_composite(wp.quat) and not types.type_is_composite(wp.float32)
    assert not types.type_is_value(wp.array) and not types.type_is_value(str)

    @wp.struct
    class Ball:
        radius: float

    assert types.type_is_struct(Ball) and types.is_struct(Ball()) and not types.is_struct(Ball)


def test_values_are_asked_for_their_type():
    types = wp.types
    assert types.is_int(3) and types.is_int(wp.int32(3)) and not types.is_int(True) and not types.is_int(int)
    assert types.is_float(2.0) and types.is_vector(wp.vec3()) and not types.is_vector("x")
    assert types.is_matrix(wp.mat22()) and not types.is_matrix(wp.mat22)
    assert types.is_array(wp.zeros(2, dtype=float)) and not types.is_array(3.0)
    annotation = wp.array(dtype=float)
    assert types.is_array(annotation) and not types.type_is_array(annotation)
    tile = wp.tile[float, 2, 2]
    assert types.is_tile(tile) and types.is_tile(wp.tile[float]) and not types.is_composite(tile)
    assert not types.is_vector(tile) and not types.type_is_tile(tile) and not types.is_tile(wp.vec3())


def test_sizes_equality_and_names():
    types = wp.types
    assert [types.type_size(t) for t in (float, wp.vec3, wp.mat33, wp.transform)] == [1, 3, 9, 7]
    assert [types.type_length(x) for x in (wp.transform, wp.vec3(), (1, 2), wp.zeros(4), float)] == [7, 3, 2, 4, 1]
    assert [types.type_size_in_bytes(t) for t in (bool, int, wp.vec3h, wp.mat33d)] == [1, 4, 6, 72]
    assert types.types_equal(float, wp.float32) and not types.types_equal(wp.float32, wp.float64)
    assert [types.type_repr(t) for t in (float, wp.vec3, str)] == ["float", "vec3f", "builtins.str"]
    assert [types.type_scalar_type(t) for t in (int, wp.vec3h, wp.quatd)] == [wp.int32, wp.float16, wp.float64]
    assert types.types_equal(str, str) and not types.types_equal(int, "int") and not types.types_equal("int", int)
    with pytest.raises(TypeError):
        types.type_size(str)


def test_ctypes_have_the_size_of_values():
    from ctypes import c_float, c_uint16, sizeof

    types = wp.types
    assert types.type_ctype(float) is c_float is wp.float32._type_ and types.type_ctype(wp.bfloat16) is c_uint16
    for dtype in (bool, int, wp.uint64, wp.float16, wp.vec3d, wp.quat, wp.transform, wp.mat33h):
        assert sizeof(types.type_ctype(dtype)) == types.type_size_in_bytes(dtype)
    with pytest.raises(TypeError):
        types.type_ctype(wp.array(dtype=float))


def test_numpy_takes_scalar_classes_for_dtypes():
    for name in ("bool", "int8", "uint64", "float16", "float32", "float64"):
        assert np.dtype(getattr(wp, name)) == np.dtype(name)
    assert np.zeros(3, dtype=wp.float32).dtype == np.float32
    assert np.arange(3).astype(wp.int64).dtype == np.int64
