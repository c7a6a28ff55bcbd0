"""``copy`` and ``clone``, strided and overlapping ones included."""

import numpy as np
import pytest

from treadle.runtime.array import array
from treadle.runtime.construct import zeros
from treadle.runtime.copies import clone, copy
from treadle.types.core import f32, f64, vector
from treadle.types.values import class_of

vec3 = class_of(vector(3, f32))


def ints(n):
    return array(np.arange(n), dtype=int)


def test_whole_arrays():
    a, b = zeros((2, 3)), array(np.arange(6).reshape(2, 3), dtype=float)
    copy(a, b)
    assert np.array_equal(a.numpy(), b.numpy())
    copy(a.transpose(), array(np.ones((3, 2)), dtype=float))
    assert (a.numpy() == 1).all()


def test_offsets_and_counts_go_in_row_major_order():
    a = array([9, 0, 9, 0, 9, 0, 9, 0], dtype=int)
    copy(a[::2], array([1, 2, 3, 4], dtype=int), dest_offset=1, src_offset=1, count=2)
    assert a.list() == [9, 0, 2, 0, 3, 0, 9, 0]
    grid, source = zeros((3, 4), dtype=int), ints(12).reshape((4, 3)).transpose()
    copy(grid[:, 1:3], source, dest_offset=1, src_offset=2, count=4)
    assert grid.numpy()[:, 1:3].reshape(-1).tolist() == [0, *source.numpy().reshape(-1)[2:6], 0]


def test_the_rest_of_the_source_where_no_count_is_given():
    a = zeros(6, dtype=int)
    copy(a, ints(4), dest_offset=2)
    assert a.list() == [0, 0, 0, 1, 2, 3]
    copy(a, ints(4), src_offset=3)
    assert a.list() == [3, 0, 0, 1, 2, 3]


def test_overlap():
    a = ints(8)
    copy(a[1:], a[:-1])
    assert a.list() == [0, 0, 1, 2, 3, 4, 5, 6]
    a = ints(8)
    copy(a[::2], a[:4])  # NumPy alone would read what it has just written
    assert a.list() == [0, 1, 1, 3, 2, 5, 3, 7]
    a = ints(8)
    copy(a[::2], a, count=4)
    assert a.list() == [0, 1, 1, 3, 2, 5, 3, 7]


def test_elements_of_equal_size_are_copied_as_they_are():
    bits = zeros(1, dtype=int)
    copy(bits, array([1.0], dtype=float))
    assert bits.list() == [0x3F800000]
    with pytest.raises(ValueError, match="dtype=vec3f, source dtype=float32"):
        copy(zeros(1, dtype=vec3), zeros(3))


@pytest.mark.parametrize(
    "wrong", [{"count": 5}, {"src_offset": 2, "count": 3}, {"dest_offset": 5}, {"dest_offset": -1}]
)
def test_what_reaches_outside_is_an_error(wrong):
    with pytest.raises(ValueError, match="exceeds the|must be non-negative"):
        copy(zeros(8, dtype=int), ints(4), **wrong) if "dest_offset" not in wrong else copy(ints(6), ints(4), **wrong)


def test_offsets_are_whole_and_gaps_need_equal_shapes():
    with pytest.raises(ValueError, match="must be integers"):
        copy(ints(4), ints(4), src_offset=1.5)
    with pytest.raises(ValueError, match=r"destination shape=\(3, 2\), source shape=\(2, 3\)"):
        copy(zeros((6, 2), dtype=int)[::2], zeros((6, 3), dtype=int)[::3])


def test_an_empty_copy_does_nothing():
    a = ints(3)
    copy(a, ints(5)[2:2])
    assert a.list() == [0, 1, 2]


def test_other_data_is_converted():
    a = zeros(2, dtype=vec3)
    copy(a, [[1, 2, 3], [4, 5, 6]])
    assert a.numpy().tolist() == [[1, 2, 3], [4, 5, 6]]


def test_clone():
    a = array(np.arange(6).reshape(2, 3), dtype=class_of(f64), requires_grad=True)
    b = clone(a.transpose())
    assert b.is_contiguous and b.numpy().tolist() == a.numpy().T.tolist() and b.requires_grad
    b.fill_(0)
    assert a.numpy().any() and not clone(a, requires_grad=False).requires_grad and clone([1.0]).list() == [1.0]
