"""Vectors, matrices, rotations and transforms on the host."""

import numpy as np
import pytest

from treadle.types import values
from treadle.types.core import f32, matrix


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


def test_text_shows_class_and_components():
    assert repr(values.vec3(1, 2, 3)) == "vec3f([1.0, 2.0, 3.0])" and str(values.vec3(1, 2, 3)) == "[1.0, 2.0, 3.0]"
    assert repr(values.mat22(1, 2, 3, 4)) == "mat22f([[1.0, 2.0], [3.0, 4.0]])"
    assert repr(values.float64(0.1)) == "float64(0.1)"


def test_values_are_read_from_memory():
    data = np.arange(9, dtype=np.float32)
    assert values.mat33.from_ptr(data.ctypes.data)[2] == (6, 7, 8)
    short = data.astype(np.float16)
    assert values.vec2h.from_ptr(short.ctypes.data + 2) == (1, 2)
    with pytest.raises(RuntimeError):
        values.vec3.from_ptr(0)
