"""Host values: construction, arithmetic, indexing, NumPy, pickling."""

import copy
import pickle

import numpy as np
import pytest

from treadle.types import values
from treadle.types.core import b1, bf16, f16, f32, f64, i8, i32, matrix, u8, vector
from treadle.types.values import class_of, matrix_class, numpy_dtype, type_of_numpy, vector_class


def test_a_type_has_one_class_and_the_class_names_its_type():
    assert values.vec3 is values.vec3f is vector_class(3, f32) is class_of(vector(3, f32))
    assert values.vec3.__treadle_type__ is vector(3, f32)
    assert values.vec3.__name__ == "vec3f" and values.vec3.dtype is values.float32
    assert values.matrix(shape=(2, 3), dtype=float) is matrix_class(2, 3, f32)


@pytest.mark.parametrize("name", sorted(values.names()))
def test_every_named_class_starts_at_zero_and_survives_pickling(name):
    cls = getattr(values, name)
    value = cls()
    again = pickle.loads(pickle.dumps(value))
    assert type(again) is cls and again == value
    assert copy.deepcopy(value) == value
    if "transform" in name:
        assert list(value) == [0, 0, 0, 0, 0, 0, 1]
    elif hasattr(value, "value"):
        assert value.value == 0
    else:
        assert not np.asarray(value).any()


def test_vectors_are_made_of_numbers_sequences_vectors_or_one_number():
    v = values.vec3(1, 2, 3)
    assert v == values.vec3([1, 2, 3]) == values.vec3(np.array([1, 2, 3])) == values.vec3(values.vec2(1, 2), 3)
    assert values.vec3(2) == (2, 2, 2) and values.vec3() == (0, 0, 0)
    assert values.vec3d(v) == (1, 2, 3) and type(values.vec3d(v)) is values.vec3d
    with pytest.raises(ValueError, match="vec3f takes 3 numbers, not 2"):
        values.vec3(1, 2)
    with pytest.raises(TypeError):
        values.vec3i(1.5, 2, 3)


def test_components_are_rounded_to_their_scalar_type():
    assert values.vec2(0.1, 1e-46)[0] == float(np.float32(0.1)) and values.vec2(0.1, 1e-46)[1] == 0.0
    assert values.vec2h(0.1, 70000.0)[0] == float(np.float16(0.1)) and values.vec2h(0.1, 70000.0)[1] == float("inf")
    assert list(values.vec3b(300, -129, 2)) == [44, 127, 2]
    assert values.vector(length=1, dtype=values.bfloat16)(1.01)[0] == 1.0078125


def test_arithmetic_goes_by_component_and_rounds_every_step():
    v, w = values.vec3(1, 2, 3), values.vec3(4, 5, 6)
    assert v + w == (5, 7, 9) and w - v == (3, 3, 3) and -v == (-1, -2, -3)
    assert v * 2 == 2 * v == (2, 4, 6) and v / 2 == (0.5, 1, 1.5) and 6 / v == (6, 3, 2)
    assert (values.vec3(0.1) + values.vec3(0.2))[0] == float(np.float32(0.1) + np.float32(0.2))
    with pytest.raises(TypeError):
        v * w
    with pytest.raises(TypeError):
        v + values.vec3d(1, 2, 3)
    i = values.vec2i(7, -7)
    assert i / 2 == (3, -3) and i % values.vec2i(2, 2) == (1, -1) and i / 0 == (0, 0)
    assert values.vec2i(2**31 - 1, 0) + values.vec2i(1, 0) == (-(2**31), 0)


def test_matrices_multiply_matrices_and_vectors_from_both_sides():
    m = values.mat22(1, 2, 3, 4)
    assert np.array_equal(np.asarray(m @ m), [[7, 10], [15, 22]]) and m * m == m @ m
    assert m * values.vec2(1, 1) == (3, 7) and values.vec2(1, 1) * m == (4, 6)
    wide = values.matrix(shape=(2, 3), dtype=float)(1, 2, 3, 4, 5, 6)
    assert type(m @ wide).__treadle_type__ is matrix(2, 3, f32)
    with pytest.raises(TypeError):
        wide @ m


def test_rotations_and_transforms_compose():
    turn = values.quat(0, 0, 1, 0)  # half a turn about z
    assert turn * turn == (0, 0, 0, -1)
    t = values.transform(values.vec3(1, 0, 0), turn)
    assert (t * t).p == (0, 0, 0)
    t.p = (5, 6, 7)
    t.q = values.quat(0, 0, 0, 1)
    assert list(t) == [5, 6, 7, 0, 0, 0, 1] and t.p.y == 6 and type(t.q) is values.quat


def test_indexing_reads_and_writes_parts():
    v = values.vec4(1, 2, 3, 4)
    v[1], v.z, v[-1] = 9, 8, 7
    assert list(v) == [1, 9, 8, 7] and type(v[:2]) is values.vec2
    v[:2] = (0, 0)
    assert list(v) == [0, 0, 8, 7]
    m = values.mat33(1, 2, 3, 4, 5, 6, 7, 8, 9)
    assert m[1] == (4, 5, 6) and m[2, 0] == 7 and m[:, 1] == (2, 5, 8) and m.get_col(0) == (1, 4, 7)
    m[0] = (0, 0, 0)
    m[1, 1] = 50
    m[:, 2] = values.vec3(1, 1, 1)
    assert np.array_equal(np.asarray(m), [[0, 0, 1], [4, 50, 1], [7, 8, 1]])
    with pytest.raises(IndexError):
        v[4]


def test_values_compare_and_hash_by_value():
    assert values.vec2(1, 2) == values.vec2(1, 2) != values.vec2(1, 3)
    assert len({values.vec2(1, 2), values.vec2(1, 2), values.vec2d(1, 2)}) == 2
    assert values.int32(3) == 3 and values.float32(0.5) < 1 and hash(values.int32(3)) == hash(3)


def test_text_shows_class_and_components():
    assert repr(values.vec3(1, 2, 3)) == "vec3f([1.0, 2.0, 3.0])" and str(values.vec3(1, 2, 3)) == "[1.0, 2.0, 3.0]"
    assert repr(values.mat22(1, 2, 3, 4)) == "mat22f([[1.0, 2.0], [3.0, 4.0]])"
    assert repr(values.float64(0.1)) == "float64(0.1)"


def test_scalars_do_the_arithmetic_of_their_type():
    assert values.int8(300) == 44 and values.uint8(3) - 4 == 255
    assert values.int32(7) / 2 == 3 and values.int32(-7) % 2 == -1 and values.int32(-7) // 2 == -4
    assert values.int32(5) / 0 == 0 and values.float32(1) / 0 == float("inf")
    assert float(values.float32(1.5)) == 1.5 and [10, 20][values.int32(1)] == 20
    with pytest.raises(TypeError, match="not mixed in silence"):
        values.float32(1) + values.float64(1)


def test_numpy_reads_values_and_dtypes():
    assert np.array(values.vec3(1, 2, 3)).dtype == np.float32
    assert np.array([values.vec2(1, 2), values.vec2(3, 4)]).shape == (2, 2)
    assert np.asarray(values.mat33(1.0)).shape == (3, 3)
    assert numpy_dtype(matrix(3, 3, f64)) == np.dtype((np.float64, (3, 3)))
    assert type_of_numpy(np.int8) is i8 and type_of_numpy(">f4") is f32 and type_of_numpy(np.complex64) is None
    assert [numpy_dtype(t) for t in (b1, u8, f16, bf16, i32)] == ["?", "u1", "f2", "u2", "i4"]


def test_open_shapes_stand_for_any_value():
    from typing import Any

    from treadle.types.annotations import type_of

    assert type_of(values.vector(length=Any, dtype=float)) is None
    assert type_of(values.matrix(shape=(3, Any), dtype=float)) is None
    with pytest.raises(TypeError):
        values.vector(length=0, dtype=float)
