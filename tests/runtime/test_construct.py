"""Functions that make arrays."""

import numpy as np
import pytest

from treadle.base.errors import ArrayError
from treadle.runtime.array import array
from treadle.runtime.construct import (
    dtype_from_numpy,
    dtype_to_numpy,
    empty,
    empty_like,
    from_numpy,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from treadle.types.core import b1, bf16, f32, f64, i32, i64, matrix, vector
from treadle.types.values import class_of

vec3, mat22 = class_of(vector(3, f32)), class_of(matrix(2, 2, f32))


@pytest.mark.parametrize(("shape", "want"), [(3, (3,)), ((2, 3), (2, 3)), ([2, 0], (2, 0)), (np.int64(4), (4,)),
                                            (np.array([2, 3]), (2, 3))])  # fmt: skip
def test_shapes(shape, want):
    assert zeros(shape).shape == empty(shape).shape == ones(shape).shape == want
    assert zeros(shape=shape, dtype=vec3).numpy().shape == (*want, 3)


@pytest.mark.parametrize(("shape", "error"), [(-1, ValueError), ((1, 2, 3, 4, 5), ValueError), ((), ValueError),
                                             (3.0, TypeError), (None, TypeError), ((2, -1), ValueError)])  # fmt: skip
def test_shapes_that_are_none(shape, error):
    with pytest.raises(error):
        zeros(shape)


def test_unknown_arguments_are_errors_and_n_is_a_shape():
    assert zeros(n=3).shape == (3,)
    with pytest.raises(TypeError, match="unknown argument 'dtyp'"):
        zeros(3, dtyp=int)


def test_strides():
    for shape, strides in (((3, 3), (16, 12)), ((2, 3, 4), (40, 16, 4)), ((3, 5), (4, 12))):
        a = zeros(shape, dtype=int, strides=strides, requires_grad=True)
        assert a.strides == a.grad.strides == strides and not a.numpy().any()
        assert a.capacity == 4 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    assert array(dtype=float, shape=3, strides=(8,)).strides == (8,) and (full(2, 3, strides=(8,)).numpy() == 3).all()
    assert empty((0, 3), dtype=int, strides=(4, 16)).capacity == 0
    with pytest.raises(ValueError, match="Invalid number of strides, expected 2 strides, got 1"):
        empty((2, 3), strides=(4,))


def test_values():
    assert zeros(3, dtype=int).list() == [0] * 3 and ones(2, dtype=vec3).list() == [vec3(1, 1, 1)] * 2
    assert full(2, 7, dtype=float).list() == [7.0] * 2 and full(1, (1, 2, 3), dtype=vec3).list() == [vec3(1, 2, 3)]


@pytest.mark.parametrize(("value", "t"), [(2, i32), (2.5, f32), (True, b1), (vec3(1, 2, 3), vector(3, f32)),
                                          ((1, 2), vector(2, i64)), (np.eye(2), matrix(2, 2, f64)),
                                          (np.float64(1), f64)])  # fmt: skip
def test_full_takes_its_type_from_the_value(value, t):
    assert full(2, value).dtype is class_of(t)


@pytest.mark.parametrize("dtype", [str, "nonsense", object(), None, array])
def test_types_that_are_none(dtype):
    with pytest.raises((TypeError, NameError)):
        zeros(3, dtype=dtype)


def test_likes():
    a = array(np.arange(12).reshape(3, 4), dtype=float, requires_grad=True)[:, 1:3]
    for made, want in ((zeros_like(a), 0), (ones_like(a), 1), (full_like(a, 3), 3), (empty_like(a), None)):
        assert made.shape == a.shape and made.dtype is a.dtype and made.is_contiguous and made.requires_grad
        assert want is None or (made.numpy() == want).all()
    assert not zeros_like(a, requires_grad=False).requires_grad
    assert zeros_like(np.zeros((2, 3), np.int32)).dtype is class_of(i32)


def test_from_numpy_groups_components():
    assert from_numpy(np.zeros((4, 3))).dtype is class_of(vector(3, f64))
    assert from_numpy(np.zeros((4, 2, 2), np.float32)).dtype is mat22
    assert from_numpy(np.zeros((4, 3)), dtype=vec3).shape == (4,) and from_numpy(np.zeros(4)).dtype is class_of(f64)


def test_dtypes_and_numpys():
    assert dtype_to_numpy(class_of(f32)) is np.float32 and dtype_to_numpy(class_of(bf16)) is np.uint16
    assert dtype_from_numpy(np.float64) is class_of(f64)
    with pytest.raises(TypeError):
        dtype_from_numpy(np.complex64)


def test_an_array_beyond_all_addresses_finds_no_memory():
    with pytest.raises(MemoryError, match="no memory for an array of"):
        zeros(2**62)


def test_elements_at_no_address_cannot_be_read():
    with pytest.raises(ArrayError, match="the array has 4 elements, and its pointer is null"):
        array(ptr=0, shape=4, dtype=class_of(f32)).numpy()
    assert array(ptr=0, shape=0, dtype=class_of(f32)).numpy().shape == (0,)
