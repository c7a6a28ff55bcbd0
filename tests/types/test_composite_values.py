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
    for twice, given in (("p", ([*t], (1, 2, 3))), ("q", ([*t], None)), ("p", ([t.p], t.p)), ("q", ([t.p, t.q], None))):
        with pytest.raises(TypeError, match=f"argument '{twice}' of transformf is given twice"):
            values.transform(*given[0], p=given[1], q=t.q)


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


def test_numbers_keep_their_type_where_pythons_own_would_mean_another():
    import treadle as wp

    v = values.vec3d(1, 2, 3)
    assert (
        type(v[0]) is type(v.x) is type(next(iter(v))) is values.float64 and v[0] == 1 and repr(v[0]) == "float64(1.0)"
    )
    assert type(values.mat22h(1, 2, 3, 4)[1, 0]) is values.float16 and type(values.vec2s(1, 2)[0]) is values.int16
    assert type(values.vec3(1, 2, 3)[0]) is float and type(values.vec3i(1, 2, 3)[0]) is int
    assert str(v) == "[1.0, 2.0, 3.0]" and str(values.mat22d(v[0])) == "[[1.0, 1.0],\n [1.0, 1.0]]"
    assert wp.sin(v[0]) == np.sin(1.0) and type(wp.length(v)) is values.float64
    wp.config.legacy_scalar_return_types = True
    try:
        assert type(v[0]) is float and type(values.vec2s(1, 2)[0]) is int and type(wp.length(v)) is float
    finally:
        wp.config.legacy_scalar_return_types = False
    with pytest.raises(TypeError):
        values.vec3(1, 2, 3) * v[0]


def test_what_is_no_index_and_what_is_no_component_is_told():
    v, m = values.vec3(1, 2, 3), values.mat22h(1, 2, 3, 4)
    for value, key in ((v, None), (v, 1.0), (m, None), (m, (0, 1, 2)), (m, (0, "x"))):
        with pytest.raises(KeyError):
            value[key]
        with pytest.raises(KeyError):
            value[key] = 0
    for value, key in ((v, 3), (v, -4), (m, 2), (m, (0, 2)), (m, (-3, 0))):
        with pytest.raises(IndexError, match=f" the . (components|rows|columns) of {type(value).__name__}"):
            value[key]
        with pytest.raises(IndexError, match=f" the . (components|rows|columns) of {type(value).__name__}"):
            value[key] = 1
    for value, key, wrong in ((v, 0, "1"), (v, 0, v), (m, (0, 0), "1.0"), (m, (0, 0), None)):
        with pytest.raises(TypeError, match=f"components of {type(value).__name__} are float.., not "):
            value[key] = wrong
    with pytest.raises(TypeError, match="components of vec3i are int32, not 1.5"):
        values.vec3i(1, 2, 3)[0] = 1.5
    with pytest.raises(TypeError, match="components of vec3f are float32, not '3'"):
        values.vec3(1, 2, "3")
    for value, key in ((v, slice(2)), (m, 0)):
        with pytest.raises(TypeError, match="takes 2 numbers, not None"):
            value[key] = None
    for value, key, wrong in ((v, slice(2), (1, 2, 3)), (m, 0, (1, 2, 3)), (m, slice(2), ((1, 2), (3,)))):
        with pytest.raises(ValueError):
            value[key] = wrong
    with pytest.raises(AttributeError, match="vec3f has no attribute 'w'"):
        v.w = 1
    for name in ("xy", "zx", "xyzw"):  # would change nothing
        with pytest.raises(AttributeError, match=f"set one by one: vec3f has no attribute '{name}'"):
            setattr(v, name, 1)
    v.label = "p0"  # a program's own
    assert v.label == "p0" and not hasattr(v, "w")


def test_matrices_are_made_of_whole_rows_and_changed_by_rows_columns_and_blocks():
    m = values.mat22((1, 2), (3, 4))
    assert (
        m == values.mat22(((1, 2), (3, 4))) == values.mat22(1, 2, 3, 4) == values.mat22(np.arange(1, 5).reshape(2, 2))
    )
    assert values.mat22(2) == ((2, 2), (2, 2)) and values.mat22(values.vec2(1, 2), values.vec2(3, 4)) == m
    for wrong in (((1, 2, 3), (3, 4, 5)), ((1, 2, 3), (4,)), (1, 2, 3), (values.mat33(),)):
        with pytest.raises(ValueError):
            values.mat22(*wrong)
    big = values.mat33(*range(9))
    assert (
        big[1:, 1:] == ((4, 5), (7, 8))
        and big[:, 0] == (0, 3, 6)
        and big[-1] == (6, 7, 8)
        and big[0:0, 1:].__len__() == 0
    )
    big[0], big[:, 2], big[1:, :2] = 9, values.vec3(1, 2, 3), ((5, 5), (6, 6))
    assert big == ((9, 9, 1), (5, 5, 2), (6, 6, 3))


def test_classes_are_spelt_as_annotations_are():
    from typing import Literal, TypeVar, get_origin

    from treadle.types.annotations import type_of
    from treadle.types.composite_values import MatrixValue, QuaternionValue, TransformValue, VectorValue

    assert VectorValue[float, Literal[3]] is VectorValue[values.float32, 3] is values.vec3
    assert MatrixValue[values.float64, 2, 2] is values.mat22d
    assert QuaternionValue[float] is values.quat and TransformValue[values.float64] is values.transformd
    size = TypeVar("size", bound=int)
    assert get_origin(VectorValue[float, size]) is VectorValue and type_of(VectorValue[float, size]) is None
    for wrong in (float, (float, -1), (float, Literal[2, 3]), (str, 3)):
        with pytest.raises(TypeError):
            VectorValue[wrong]
    with pytest.raises(TypeError):
        values.vec3[float, 3]


def test_brain_floats_are_numbers_to_numpy():
    v = values.vector(2, values.bfloat16)(0.5, 3)
    assert np.asarray(v).dtype == np.float32 and np.asarray(v).tolist() == [0.5, 3.0]
    assert np.asarray(values.bfloat16(0.5)) == 0.5


def test_bytes_are_those_of_memory():
    import treadle as wp

    cases = [
        values.vec3d(1, 2, 3), values.vec2h(1, 2), values.mat22(1, 2, 3, 4), values.vec2i(1, -2),
        values.quat(0, 0, 0, 1), values.vector(2, values.bfloat16)(1, 2), values.vector(2, bool)(True, False),
    ]  # fmt: skip
    for value in cases:
        rows = wp.array([value], dtype=type(value))
        assert bytes(value) == rows.numpy().tobytes() and type(value).from_ptr(rows.ptr) == value
