"""Indexed arrays on the host: some elements of an array, as an array."""

import copy as python_copy
import pickle
from typing import Any, Literal

import numpy as np
import pytest

from treadle.base.errors import ArrayError
from treadle.runtime.array import array
from treadle.runtime.construct import empty_like, full_like, zeros, zeros_like
from treadle.runtime.copies import clone, copy
from treadle.runtime.dimensions import array2d, indexedarray1d, indexedarray2d
from treadle.runtime.indexed import indexedarray
from treadle.runtime.packing import packer, unpacker
from treadle.types.annotations import ArrayAnnotation
from treadle.types.core import bf16, f32, i32, indexed, vector, view
from treadle.types.inquiry import QUESTIONS
from treadle.types.values import class_of

vec3, bfloat16 = class_of(vector(3, f32)), class_of(bf16)
ROWS, COLUMNS = [3, 0, 3], [4, 1]


def ints(items):
    return array(items, dtype=int)


def grid():
    """Five columns of four rows, counted."""
    return array(np.arange(20).reshape(4, 5), dtype=float)


def test_lists_of_indices_select_along_their_dimensions():
    a, rows, columns = grid(), ints(ROWS), ints(COLUMNS)
    whole, n = a.numpy(), np.newaxis
    for found, expected in [
        (indexedarray(a, rows), whole[ROWS]),
        (indexedarray(a, [rows]), whole[ROWS]),
        (indexedarray(a, [None, columns]), whole[:, COLUMNS]),
        (indexedarray(a, [rows, columns]), whole[np.array(ROWS)[:, n], COLUMNS]),
        (indexedarray(a), whole),
        (a[rows], whole[ROWS]),
        (a[:, columns], whole[:, COLUMNS]),
        (a[..., columns], whole[:, COLUMNS]),
        (a[1:3, columns], whole[1:3][:, COLUMNS]),
        (a[2, columns], whole[2, COLUMNS]),
        (a[rows, ::2], whole[ROWS, ::2]),
        (a[rows, columns], whole[np.array(ROWS)[:, n], COLUMNS]),
        (a[ints([0, 9, 3, 9, 2])[::2]], whole[[0, 3, 2]]),
    ]:
        assert isinstance(found, indexedarray)
        assert np.array_equal(found.numpy(), expected)
        assert found.shape == expected.shape and found.size == expected.size and len(found) == len(expected)
        assert found.list() == expected.ravel().tolist()


def test_facts():
    a, rows = grid(), ints(ROWS)
    x = indexedarray(a, rows)
    assert (x.data, x.indices, x.ndim, x.dtype, x.device) == (a, (rows, None), 2, a.dtype, a.device)
    assert x.type is indexed(view(f32, 2), (view(i32, 1), None))
    assert not x.is_contiguous and not x.pinned
    assert repr(x) == "indexedarray(shape=(3, 5), dtype=float32)" and str(x) == str(x.numpy())
    assert np.array_equal(np.asarray(x), x.numpy())
    assert QUESTIONS["is_array"](x) and QUESTIONS["type_is_array"](indexedarray)
    assert not QUESTIONS["type_is_struct"](x.type)
    assert not isinstance(x, array)


def test_it_shows_the_memory_of_its_data():
    a = grid()
    x = a[ints(ROWS), ints(COLUMNS)]
    expected = a.numpy().copy()
    x.fill_(7.0)
    expected[np.ix_(ROWS, COLUMNS)] = 7.0
    assert np.array_equal(a.numpy(), expected)
    x.zero_()
    expected[np.ix_(ROWS, COLUMNS)] = 0.0
    assert np.array_equal(a.numpy(), expected)
    x.assign(np.arange(6).reshape(3, 2))
    expected[np.ix_([0, 3], COLUMNS)] = [[2, 3], [4, 5]]  # the last of two equal indices wins
    assert np.array_equal(a.numpy(), expected)
    a[1] = 5.0
    assert x[0].list() == [4.0, 5.0]


@pytest.mark.host
def test_parts_of_it():
    a, rows, columns = grid(), ints(ROWS), ints(COLUMNS)
    x, whole = a[rows], a.numpy()
    assert x[1, 2] == whole[0, 2] and isinstance(x[1, 2], float)
    assert isinstance(x[1], array) and np.array_equal(x[1].numpy(), whole[0])
    assert isinstance(x[0:2], indexedarray) and np.array_equal(x[0:2].numpy(), whole[[3, 0]])
    assert np.array_equal(x[::-1, 1:3].numpy(), whole[[3, 0, 3], 1:3])
    assert np.array_equal(x[:, columns].numpy(), whole[np.ix_(ROWS, COLUMNS)])
    assert np.array_equal(x[ints([2, 1])].numpy(), whole[[3, 0]])  # lists of lists
    assert np.array_equal(x[..., -1].numpy(), whole[ROWS, -1])
    assert [row.list() for row in x] == [whole[r].tolist() for r in ROWS]
    x[1] = 1.0
    x[0, 0] = 2.0
    x[0:1, columns] = [[8.0, 9.0]]
    a[rows, 2] = -1.0
    assert whole[0].tolist() == [1.0, 1.0, -1.0, 1.0, 1.0]
    assert whole[3].tolist() == [2.0, 9.0, -1.0, 18.0, 8.0]
    with pytest.raises(IndexError):
        x[3]
    with pytest.raises(IndexError, match="3 indices for an array of 2 dimensions"):
        x[0, 0, 0]


def test_elements_of_all_kinds():
    pos = array(np.arange(12), dtype=vec3)
    x = pos[ints([2, 0])]
    assert x.numpy().tolist() == [[6, 7, 8], [0, 1, 2]] and x.list() == [vec3(6, 7, 8), vec3(0, 1, 2)]
    x.fill_(vec3(1, 2, 3))
    x[0] = [4, 5, 6]
    assert pos.list() == [vec3(1, 2, 3), vec3(3, 4, 5), vec3(4, 5, 6), vec3(9, 10, 11)]
    x.fill_(0.5)
    assert pos.numpy()[0].tolist() == [0.5] * 3
    half = array([1.0, 2.0, 3.0], dtype=bfloat16)
    y = half[ints([2, 1])]
    y.fill_(1.5)
    assert half.list() == [1.0, 1.5, 1.5] and y.list() == [1.5, 1.5]
    planes = zeros(12)
    planar = array(ptr=planes.ptr, dtype=vec3, shape=4, strides=(4,), component_stride=16)
    planar[ints([3, 1])] = array([[1, 2, 3], [4, 5, 6]], dtype=vec3)
    assert planes.list() == [0, 4, 0, 1, 0, 5, 0, 2, 0, 6, 0, 3]


def test_copies():
    a, rows = grid(), ints(ROWS)
    x = a[rows]
    points = array(np.arange(6), dtype=vec3)
    assert array(points[ints([1])]).list() == [vec3(3, 4, 5)]
    for made in (x.contiguous(), clone(x), array(x), array(x, dtype=float)):
        assert type(made) is array and np.array_equal(made.numpy(), x.numpy()) and made.is_contiguous
    b = zeros((3, 5))
    copy(b, x)
    assert np.array_equal(b.numpy(), x.numpy())
    b.fill_(3.0)
    copy(x, b)
    assert a.numpy()[ROWS].tolist() == [[3.0] * 5] * 3 and a.numpy()[1].tolist() == [5, 6, 7, 8, 9]
    copy(a[ints([0, 1])], a[ints([1, 0])])  # both show the same memory: what was read first is stored
    assert a.numpy()[:2].tolist() == [[5, 6, 7, 8, 9], [3] * 5]
    flat = zeros(15)
    flat.assign(x)
    assert np.array_equal(flat.numpy(), x.numpy().ravel())
    flat[ints([1, 0])] = flat[:2]
    words = zeros(2, dtype=int)
    copy(words, flat[ints([0, 14])])
    assert words.numpy().view(np.float32).tolist() == [flat[0], flat[14]]
    for like in (zeros_like(x), empty_like(x), full_like(x, 2.0)):
        assert type(like) is array and like.shape == x.shape and like.dtype is x.dtype


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda a, i: copy(a[i], zeros(3), 1), "copied as a whole"),
        (lambda a, i: copy(zeros(10), a[i], count=2), "copied as a whole"),
        (lambda a, i: copy(a[i], zeros(2)), "cannot copy 2 elements to 3"),
        (lambda a, i: indexedarray([1.0], i), "the data of an indexed array is an array, not list"),
        (lambda a, i: indexedarray(a, [i, i]), "2 lists of indices for an array of 1 dimensions"),
        (lambda a, i: indexedarray(a, [1, 2]), "2 lists of indices"),
        (lambda a, i: indexedarray(a, [1]), "one-dimensional arrays of int32, not in a int"),
        (lambda a, i: indexedarray(a, np.array([1])), "not in a ndarray"),
        (lambda a, i: indexedarray(a, array([1], dtype=class_of(f32))), "not in array.*float32"),
        (lambda a, i: indexedarray(a, array2d([[1]], dtype=int)), r"not in array\(shape=\(1, 1\)"),
        (lambda a, i: indexedarray(a, i, dtype=int), "asked to have another dtype"),
        (lambda a, i: indexedarray(a, i, ndim=2), "of 2 dimensions was given 1-dimensional data"),
        (lambda a, i: indexedarray2d(a, i), "of 2 dimensions was given 1-dimensional data"),
        (lambda a, i: a[i].assign(zeros(4)), r"data of shape .* cannot be assigned to an array of shape"),
    ],
)
def test_what_does_not_fit_is_told(wrong, error):
    with pytest.raises((ArrayError, ValueError), match=error):
        wrong(array(np.arange(6), dtype=float), ints([1, 2, 3]))


def test_copies_of_other_sizes_are_refused():
    with pytest.raises(ArrayError, match="dtype=float32, source dtype=vec2f|dtype=vec2f, source dtype=float32"):
        copy(grid()[ints(ROWS)], zeros(15, dtype=class_of(vector(2, f32))))


def test_indices_outside_of_the_data_are_found():
    a = array(np.arange(6), dtype=float)
    for bad in (6, -1):
        x = a[ints([1, bad])]
        for use in (x.numpy, x.zero_, lambda x=x: x[1], lambda x=x: x.assign([1.0, 2.0])):
            with pytest.raises(IndexError, match=f"index {bad}, of the indices of dimension 0, is outside"):
                use()


def test_no_elements():
    x = grid()[zeros(0, dtype=int)]
    assert x.shape == (0, 5) and x.size == 0 and x.list() == []
    x.zero_()
    x.fill_(1.0)
    copy(x, x.contiguous())
    assert x.numpy().shape == (0, 5)


def test_gradients_are_those_of_the_data():
    a, rows = grid(), ints(ROWS)
    x = a[rows]
    assert x.grad is None and not x.requires_grad
    x.requires_grad = True
    assert a.requires_grad and x.requires_grad
    a.grad.fill_(2.0)
    assert isinstance(x.grad, indexedarray) and x.grad.data is a.grad and x.grad.numpy().tolist() == [[2.0] * 5] * 3
    assert clone(x).requires_grad and not clone(x, requires_grad=False).requires_grad
    x.grad.zero_()
    assert a.grad.numpy().sum(axis=1).tolist() == [0, 10, 10, 0]


def test_pickled_and_copied():
    x = grid()[ints(ROWS)]
    for made in (pickle.loads(pickle.dumps(x)), python_copy.deepcopy(x)):
        assert isinstance(made, indexedarray) and np.array_equal(made.numpy(), x.numpy()) and made.data is not x.data


def test_annotations():
    for meant, annotation in [
        (ArrayAnnotation(float, 1, "indexedarray"), indexedarray(dtype=float)),
        (ArrayAnnotation(float, 1, "indexedarray"), indexedarray[float]),
        (ArrayAnnotation(float, 2, "indexedarray"), indexedarray(dtype=float, ndim=2)),
        (ArrayAnnotation(float, 2, "indexedarray"), indexedarray2d(dtype=float)),
        (ArrayAnnotation(float, 2, "indexedarray"), indexedarray2d[float]),
        (ArrayAnnotation(float, 2, "indexedarray"), indexedarray[float, Literal[2]]),
        (ArrayAnnotation(float, 3), array[float, Literal[3]]),
        (ArrayAnnotation(float), array[float]),
        (ArrayAnnotation(Any, 1, "indexedarray"), indexedarray1d()),
    ]:
        assert annotation == meant
    with pytest.raises(TypeError, match="a size is a positive integer, not 'x'"):
        array[float, Literal["x"]]


def test_packed_as_its_views():
    a = grid()
    x = a[ints(ROWS), :]
    buffer = bytearray(x.type.size)
    packer(x.type)(buffer, 0, x)
    back = unpacker(x.type)(buffer, 0)
    assert back.data.ptr == a.ptr and back.indices[0].ptr == x.indices[0].ptr and back.indices[1] is None
    packer(x.type)(buffer, 0, None)
    assert not any(buffer) and unpacker(x.type)(buffer, 0) is None
    full = indexed(view(f32, 2, (None, None)), (view(i32, 1, (None,)),) * 2)  # as structs hold it
    buffer = bytearray(full.size)
    packer(full)(buffer, 0, x)
    back = unpacker(full)(buffer, 0)
    assert [places.list() for places in back.indices] == [ROWS, [0, 1, 2, 3, 4]]
    assert np.array_equal(back.numpy(), x.numpy())
