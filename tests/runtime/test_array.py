"""Arrays: construction, views, host access, gradients, foreign memory."""

import copy
import gc
import pickle

import numpy as np
import pytest

from treadle.base.errors import ArrayError
from treadle.runtime.array import array
from treadle.runtime.construct import empty, full, zeros, zeros_like
from treadle.runtime.dimensions import array1d, array2d
from treadle.types.annotations import ArrayAnnotation
from treadle.types.core import (
    Struct,
    bf16,
    f16,
    f32,
    f64,
    i32,
    i64,
    matrix,
    quaternion,
    transformation,
    u8,
    u16,
    u32,
    vector,
    view,
)
from treadle.types.values import class_of, register_class, vector_class

vec3i = class_of(vector(3, i32))
vec3, mat22, mat33 = class_of(vector(3, f32)), class_of(matrix(2, 2, f32)), class_of(matrix(3, 3, f32))
quat, transform = class_of(quaternion(f32)), class_of(transformation(f32))


class Ball:
    """A stand-in for a user's struct class."""

    __treadle_type__ = Struct("tests.Ball", (("centre", vector(3, f32)), ("mass", f64), ("id", i32)))

    def __init__(self, centre=(0.0, 0.0, 0.0), mass=0.0, id=0):  # noqa: A002
        self.centre, self.mass, self.id = vec3(*centre), mass, id


register_class(Ball.__treadle_type__, Ball)


@pytest.mark.parametrize(
    ("data", "dtype", "shape", "strides"),
    [
        ([1, 2, 3], float, (3,), (4,)),
        ([[1, 2], [3, 4]], int, (2, 2), (8, 4)),
        ([1.5, 2], int, (2,), (4,)),
        (range(3), float, (3,), (4,)),
        ([True, False], bool, (2,), (1,)),
        ([[1, 2, 3]], vec3, (1,), (12,)),
        ([1, 2, 3, 4, 5, 6], vec3, (2,), (12,)),
        ([vec3(1, 2, 3), vec3(4, 5, 6)], vec3, (2,), (12,)),
        (np.zeros((2, 4, 3)), vec3, (2, 4), (48, 12)),
        (np.zeros((2, 9)), mat33, (2,), (36,)),
        (np.zeros((4, 6)), vec3, (4, 2), (24, 12)),
        (np.zeros(18), mat33, (2,), (36,)),
        (np.zeros((3, 3)), mat33, (1,), (36,)),
        (np.zeros((2, 5, 2, 2)), mat22, (2, 5), (80, 16)),
        ([], float, (0,), (4,)),
        ([], vec3, (0,), (12,)),
        (np.zeros((5, 7)), transform, (5,), (28,)),
        ([[0, 0, 0, 1]], quat, (1,), (16,)),
    ],
)
def test_from_data(data, dtype, shape, strides):
    a = array(data, dtype=dtype)
    assert (a.shape, a.strides, a.ndim) == (shape, strides, len(shape))
    flat = (
        [x for row in data for x in row] if len(data) and isinstance(data, list) and not np.isscalar(data[0]) else data
    )
    assert np.array_equal(a.numpy().reshape(-1), np.asarray(list(flat), a.numpy().dtype).reshape(-1))
    assert a.is_contiguous and (a.ptr % 64 == 0 if a.size else a.ptr is None)


def test_dtype_is_taken_from_data():
    assert array([1.0, 2.0]).dtype is class_of(f64) and array([1, 2]).dtype is class_of(i64)
    assert array(np.zeros((4, 3), np.float32)).shape == (4, 3)
    assert array(array([[1, 2, 3]], dtype=vec3)).dtype is vec3


@pytest.mark.parametrize(
    ("data", "dtype", "error"),
    [
        (3.0, float, TypeError),
        (np.float32(3), None, TypeError),
        ("abc", None, TypeError),
        ([[1, 2], [3]], float, ValueError),
        ([1, 2, 3, 4], vec3, ValueError),
        (np.zeros((2, 4)), vec3, ValueError),
        (np.zeros((1, 1, 1, 1, 1)), float, ValueError),
    ],
)
def test_data_that_does_not_fit(data, dtype, error):
    with pytest.raises(error):
        array(data, dtype=dtype) if dtype else array(data)


@pytest.mark.host
def test_data_is_copied_unless_it_may_be_shared():
    rows = np.ones((3, 4), np.float32)
    copied, shared = array(rows), array(rows, copy=False)
    converted = array(rows, dtype=np.float64, copy=False)
    rows[0, 0] = 7
    assert copied.numpy()[0, 0] == 1 and shared.numpy()[0, 0] == 7 and converted.numpy()[0, 0] == 1
    shared[1, 1] = 9
    assert rows[1, 1] == 9 and shared.ptr == rows.ctypes.data


@pytest.mark.host
def test_strided_data_can_be_shared():
    rows = np.arange(24, dtype=np.float32).reshape(4, 6)
    for part in (rows[::2, ::3], rows[::-1], rows.T):
        a = array(part, copy=False)
        assert a.strides == part.strides and np.shares_memory(a.numpy(), rows) and np.array_equal(a.numpy(), part)


def test_shape_reshapes_data():
    assert array(np.arange(6.0), dtype=float, shape=(2, 3)).numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert array(np.zeros((2, 3)), dtype=vec3, shape=(2, 1)).shape == (2, 1)


def test_annotations():
    assert array(dtype=float) == ArrayAnnotation(float, 1) and array(dtype=float, ndim=2) == ArrayAnnotation(float, 2)
    assert array[vec3] == ArrayAnnotation(vec3, 1) and array2d[vec3] == array2d(dtype=vec3) == ArrayAnnotation(vec3, 2)
    assert array2d([[1.0]], dtype=float).shape == (1, 1)
    with pytest.warns(UserWarning, match="array1d was given 2-dimensional data"):
        array1d([[1.0]], dtype=float)


# Views ----------------------------------------------------------------------------------------------------------------


def numbered(shape=(4, 5)):
    return array(np.arange(np.prod(shape)).reshape(shape), dtype=float)


@pytest.mark.parametrize(
    "key",
    [
        0, -1, slice(0, 2), slice(None, None, 2), slice(None, None, -1), slice(-2, None), (slice(1, 3), slice(2, 4)),
        (slice(None), 1), (slice(None), -1), (..., 1), (1, ...), (slice(0, 0),), slice(3, 3), slice(2, 1), slice(9, 12),
        (slice(None, None, -2), slice(None, None, -1)), ..., (slice(None), slice(None)),
    ],
)  # fmt: skip
def test_indexing_is_numpys(key):
    a = numbered()
    view_, expected = a[key], a.numpy()[key]
    assert view_.shape == expected.shape and np.array_equal(view_.numpy(), expected)
    view_.fill_(-1)
    assert (a.numpy()[key] == -1).all() and (a.numpy() == -1).sum() == expected.size


@pytest.mark.parametrize(("key", "error"), [(4, IndexError), (-5, IndexError), ((0, 5), IndexError),
                                           ((0, 0, 0), IndexError),
                                           (None, TypeError), (1.0, TypeError), ((..., ...), IndexError)])  # fmt: skip
def test_indices_that_are_none(key, error):
    with pytest.raises(error):
        numbered()[key]


def test_elements_are_read_and_written():
    a, v = numbered(), zeros((2, 2), dtype=vec3)
    assert a[1, 2] == 7.0 and type(a[1, 2]) is float and type(zeros(1, dtype=int)[0]) is int
    a[1, 2] = 100
    v[0, 1] = vec3(1, 2, 3)
    v[1] = [4, 5, 6]
    assert a.numpy()[1, 2] == 100 and v[0, 1] == vec3(1, 2, 3) and type(v[0, 1]) is vec3
    assert v.numpy()[1].tolist() == [[4, 5, 6], [4, 5, 6]]
    a[0] = a[3]
    a[1:3] = np.zeros((2, 5))
    assert a.numpy()[0].tolist() == [15, 16, 17, 18, 19] and not a.numpy()[1:3].any()
    assert [row.list() for row in a[:, :2]] == [[15, 16], [0, 0], [0, 0], [15, 16]]


def test_reshape_flatten_transpose_contiguous():
    a = numbered((2, 3, 4))
    assert a.reshape((4, -1)).numpy().tolist() == a.numpy().reshape(4, -1).tolist() and a.reshape(-1).shape == (24,)
    assert a.flatten().ptr == a.ptr and a.flatten().strides == (4,)
    for axes in (None, (1, 0, 2), (2, 0, 1)):
        t = a.transpose(axes)
        assert (
            np.array_equal(t.numpy(), a.numpy().transpose(axes))
            and not t.is_contiguous
            and t.contiguous().is_contiguous
        )
        assert np.array_equal(t.contiguous().numpy(), t.numpy())
    assert a.contiguous() is a and a[0].transpose().is_transposed
    for wrong in (lambda: a.reshape((5, 5)), lambda: a.reshape((-1, -1)), lambda: a.reshape((7, -1)),
                  lambda: a.transpose().reshape(24), lambda: a.transpose().flatten(),
                  lambda: a.transpose((0, 0, 1))):  # fmt: skip
        with pytest.raises(ValueError):
            wrong()


def test_view_reads_the_same_bytes():
    v = array([[1, 2, 3], [4, 5, 6]], dtype=vec3)
    assert v.view(float).numpy().tolist() == [[1, 2, 3], [4, 5, 6]] and v.view(float).ptr == v.ptr
    assert zeros(3).view(int).dtype is class_of(i32) and array([1.0], dtype=float).view(int).list() == [0x3F800000]
    assert array(np.eye(4), dtype=float).view(quat).list()[1] == quat(0, 1, 0, 0)
    assert array([[1, 2], [3, 4]], dtype=float).view(mat22).shape == (1,)
    with pytest.raises(TypeError, match="dtype vec3f cannot be viewed as .* 12 bytes, .* 16$"):
        v.view(quat)
    assert zeros((4, 5))[:, :4].view(quat).strides == (20,)
    for wrong in (zeros((4, 5)), zeros((4, 4)).transpose()):
        with pytest.raises(TypeError):
            wrong.view(quat)


def test_what_no_view_or_shape_can_be_says_why():
    with pytest.raises(ArrayError, match=r"into shape \(4, -1\): 6 elements are not divisible by 4"):
        zeros(6).reshape((4, -1))
    with pytest.raises(TypeError, match=r"shape \(6,\) .* vec3f: its last dimension must be 3, the components"):
        zeros(6).view(vec3)
    with pytest.raises(TypeError, match=r"shape \(6,\) .* mat22f: its last 2 dimensions must be \(2, 2\)"):
        zeros(6).view(mat22)
    with pytest.raises(TypeError, match="its last dimension must lie without gaps"):
        zeros((3, 5)).transpose().view(vec3)


def test_layout_classes_are_few():
    e, a, v = f32, zeros((4, 5)), zeros((3, 4, 5), dtype=vec3)
    assert a.type is view(e, 2, (None, 4)) and a[:, 1:3].type is a.type and a[::2].type is a.type
    assert (
        a.transpose().type is view(e, 2, (4, None)) and a[:, 1].type is view(e, 1, (None,)) and a[1].type is view(e, 1)
    )
    assert a[::-1, ::-1].type is view(e, 2, (None, None))
    assert v.type is view(vector(3, f32), 3) and v.transpose().type is view(vector(3, f32), 3, (12, None, None))


def test_views_keep_the_memory_alive():
    tail = zeros(1000)[990:]
    tail.fill_(3)
    gc.collect()
    assert tail.list() == [3.0] * 10
    numpy = zeros(100_000).numpy()
    gc.collect()
    numpy[:] = 1
    assert numpy.sum() == 100_000


# Memory ---------------------------------------------------------------------------------------------------------------


@pytest.mark.host
def test_more_than_two_billion_elements():
    n = 2**31 + 16
    a = empty(n, dtype=class_of(u8))
    tail = a[n - 4 :]
    tail.fill_(7)
    assert a.shape == (n,) and tail.list() == [7] * 4 and a[n - 1] == 7
    grid = zeros((3, 2**30), dtype=class_of(u16))
    assert grid.strides == (2**31, 2) and grid[2, -1] == 0


def test_memory_is_allocated_forwards():
    with pytest.raises(NotImplementedError, match="Negative strides, here \\(16, -4\\), are those of views"):
        empty((3, 3), dtype=class_of(f32), strides=(16, -4))
    x = array(np.arange(3.0), dtype=class_of(f32))[::-1]
    x.requires_grad = True  # memory that follows such a view does so all the same
    assert x.grad.strides == (-4,)


@pytest.mark.host
def test_planar_arrays_have_a_plane_a_component():
    nworld, nbody, pitch = 5, 2, 24
    memory = np.arange(nbody * 3 * pitch // 4, dtype=np.float32)
    a = array(ptr=memory.ctypes.data, dtype=vec3, shape=(nworld, nbody), strides=(4, 3 * pitch), component_stride=pitch)
    assert a.type is view(vector(3, f32), 2, (4, None), planar=True) and a[:, 0].type is view(
        vector(3, f32), 1, (4,), True
    )
    expected = memory.reshape(nbody, 3, pitch // 4)[:, :, :nworld].transpose(2, 0, 1)
    assert np.array_equal(a.numpy(), expected) and np.shares_memory(a.numpy(), memory)
    assert not a.is_contiguous and a.contiguous().is_contiguous and np.array_equal(a.contiguous().numpy(), expected)
    assert a[3].numpy().tolist() == expected[3].tolist() and a[3, 1] == vec3(*expected[3, 1])


def test_planar_gradients_have_the_same_layout():
    memory = np.zeros(60, np.float32)
    a = array(ptr=memory.ctypes.data, dtype=vec3, shape=(5,), strides=(4,), component_stride=20, requires_grad=True)
    assert (a.grad.strides, a.grad.component_stride, a.grad.type) == (a.strides, 20, a.type)
    a.grad.fill_(2)
    assert (a.grad.numpy() == 2).all() and not memory.any()


def test_matrices_can_be_planar():
    memory = np.arange(40, dtype=np.float32)
    a = array(ptr=memory.ctypes.data, dtype=mat22, shape=(10,), strides=(4,), component_stride=40)
    assert np.array(a[3]).reshape(2, 2).tolist() == [[3, 13], [23, 33]]
    assert a.numpy()[9].tolist() == [[9, 19], [29, 39]]


def test_memory_of_others():
    memory, gone = np.arange(6, dtype=np.float32), []
    a = array(ptr=memory.ctypes.data, dtype=float, shape=(2, 3), capacity=64, deleter=lambda p, n: gone.append((p, n)))
    assert a.numpy().tolist() == [[0, 1, 2], [3, 4, 5]] and a.capacity == 64
    row = a[1]
    a = None
    gc.collect()
    assert gone == [] and row.list() == [3, 4, 5]
    row = None
    gc.collect()
    assert gone == [(memory.ctypes.data, 64)]
    for wrong in (
        lambda: array(ptr=1, dtype=float),
        lambda: array([1.0], ptr=1),
        lambda: array(ptr=1, dtype=float, shape=2, strides=(4, 4)),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_copies_by_the_standard_library():
    a = array([[1, 2, 3], [4, 5, 6]], dtype=vec3, requires_grad=True)[::-1]
    a.grad.fill_(2)
    shared, deep, back = copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))
    assert shared.ptr == a.ptr and shared.grad.ptr == a.grad.ptr
    assert deep.list() == back.list() == a.list() and deep.is_contiguous and deep.grad.list() == a.grad.list()
    deep.fill_(0)
    assert a.numpy().any() and back.dtype is vec3


@pytest.mark.host
def test_array_interface():
    a = numbered((3, 4))[::2, 1:3]
    assert np.shares_memory(np.asarray(a), a.numpy()) and np.asarray(a).tolist() == [[1, 2], [9, 10]]
    assert np.asarray(zeros((1, 0), dtype=vec3)).shape == (1, 0, 3)


# Gradients ------------------------------------------------------------------------------------------------------------


def test_gradients_follow_views():
    a = zeros((4, 5), requires_grad=True)
    assert a.requires_grad and a.grad.shape == a.shape and not a.grad.numpy().any()
    for change in (
        lambda x: x[1:3, ::2],
        lambda x: x[2],
        lambda x: x.transpose(),
        lambda x: x.reshape((2, 10)),
        lambda x: x.view(int),
    ):
        v, g = change(a), change(a.grad)
        assert v.requires_grad and v.grad.ptr == g.ptr and v.grad.strides == g.strides == v.strides
    assert a.numpy() is not None and zeros(3).grad is None and not zeros(3).requires_grad


def test_gradients_can_be_set_and_dropped():
    a, g = zeros(3), zeros(3)
    a.grad = g
    assert a.grad is g and a.requires_grad
    a.requires_grad = False
    assert a.grad is None
    with pytest.raises(ValueError, match="no gradient to retain"):
        a.retain_grad = True
    a.requires_grad = a.retain_grad = True
    assert a.grad.shape == (3,) and a.retain_grad
    for wrong in (zeros(4), zeros(3, dtype=int), zeros(6)[::2], np.zeros(3)):
        with pytest.raises(ValueError):
            a.grad = wrong
    assert array([1.0], dtype=float, grad=zeros(1)).requires_grad


@pytest.mark.host
def test_desc_says_the_same_as_the_array():
    a = zeros((2, 3), dtype=vec3, requires_grad=True)[1:]
    fields = np.frombuffer(a._desc, np.uint64).astype(np.int64).tolist()
    assert fields == [id(a.type), a.ptr, a.grad.ptr, 1, 3, 0, 0, 36, 12, 0, 0, 4]


# Values ---------------------------------------------------------------------------------------------------------------


def test_fill_and_zero():
    a, v, m = zeros((2, 3)), zeros(2, dtype=vec3), zeros(2, dtype=mat22)
    a[:, 1].fill_(2)
    v.fill_(1.5)
    m.fill_([[1, 2], [3, 4]])
    assert a.numpy().tolist() == [[0, 2, 0], [0, 2, 0]] and v.numpy().tolist() == [[1.5] * 3] * 2
    assert m.numpy().tolist() == [[[1, 2], [3, 4]]] * 2
    v.fill_(vec3(1, 2, 3))
    m[0:1].fill_([5, 6, 7, 8])
    assert v.list() == [vec3(1, 2, 3)] * 2 and m.numpy()[0].tolist() == [[5, 6], [7, 8]]
    a[:, 1].zero_()
    v.zero_()
    assert not a.numpy().any() and not v.numpy().any()


def test_assign():
    a = zeros((2, 3))
    for source in ([1] * 6, np.ones((2, 3)), [[1, 1, 1]] * 2, full((2, 3), 1.0), full((2, 3), 1, dtype=np.int32)):
        a.zero_()
        a.assign(source)
        assert (a.numpy() == 1).all()
    for many, given in (([1, 2, 3, 4], r"\(4,\)"), (np.zeros(7), r"\(7,\)"), (zeros((2, 4)), r"\(2, 4\)")):
        with pytest.raises(ArrayError, match=rf"shape {given} cannot be assigned to an array of shape \(2, 3\)"):
            a.assign(many)
    with pytest.raises(ArrayError, match=r"data of shape \(5,\) cannot"):
        zeros(3, dtype=vec3).assign(np.zeros((5, 3)))


def test_integers_are_filled_with_integers():
    a, v = zeros(2, dtype=i32), zeros(2, dtype=vec3i)
    for wrong, why in ((2.7, "not a whole number"), (np.float32(2.5), "not a whole number"), (np.nan, "not a"),
                       (1e20, "does not fit"), (2**32, "does not fit"), (class_of(f32)(0.5), "not a")):  # fmt: skip
        with pytest.raises(ArrayError, match=f"of int32 cannot be filled with .*{why}"):
            a.fill_(wrong)
    with pytest.raises(ArrayError, match="cannot be filled with 1.5"):
        v.fill_([1.5, 2, 3])
    with pytest.raises(ArrayError, match=r"data of shape \(2,\) cannot fill elements of type vec3i"):
        v.fill_([1, 2])
    assert a.list() == [0, 0]
    a.fill_(3.0)
    v.fill_(vec3i(1, 2, 3))
    assert a.list() == [3, 3] and v.list() == [vec3i(1, 2, 3)] * 2
    v.fill_(2)
    assert v.list() == [vec3i(2, 2, 2)] * 2 and full(2, -1, dtype=class_of(u32)).list() == [2**32 - 1] * 2
    with pytest.raises(ArrayError, match="filled with 300: it does not fit"):
        full(2, 300, dtype=class_of(u8))


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_numbers_of_numpy_are_cast_as_numpy_does(monkeypatch):
    monkeypatch.setattr("treadle.base.logs._said", set())
    floats = np.array([3.7, np.nan, -2.5])
    with pytest.warns(UserWarning, match="floats that int32 has no number for") as said:
        a = array(floats, dtype=int)
    assert a.list()[::2] == [3, -2] and said[0].filename == __file__
    assert array(np.array([300, -1]), dtype=u8).list() == [44, 255]
    with pytest.raises(ArrayError, match="300"):
        array([300, -1], dtype=u8)


def test_list_gives_host_values():
    assert array([[1, 2], [3, 4]], dtype=int).list() == [1, 2, 3, 4]
    assert array([[1, 2, 3]], dtype=vec3).list() == [vec3(1, 2, 3)]
    assert numbered().transpose().list()[:3] == [0, 5, 10]


def test_structs_are_records():
    balls = [Ball((1, 2, 3), 0.5, 7), Ball(mass=2.0)]
    a = array(balls, dtype=Ball)
    rows = a.numpy()
    assert (
        rows["centre"].tolist() == [[1, 2, 3], [0, 0, 0]]
        and rows["mass"].tolist() == [0.5, 2.0]
        and rows["id"].tolist() == [7, 0]
    )
    assert rows.dtype.itemsize == Ball.__treadle_type__.size == 32
    back = a.list()
    assert back[0].centre == vec3(1, 2, 3) and back[0].mass == 0.5 and a[0].id == 7
    a[1] = balls[0]
    a[0:1].fill_(balls[1])
    assert a.numpy()["id"].tolist() == [0, 7]
    again = array(rows, dtype=Ball)
    assert again.numpy().tobytes() == rows.tobytes() and array([balls, balls], dtype=Ball).shape == (2, 2)
    again.zero_()
    assert not again.numpy()["mass"].any()
    with pytest.raises(TypeError, match="expected Ball instances, got int"):
        array([1, 2], dtype=Ball)


def test_halves():
    a = array([1.0, 1.00390625, 3.4e38, float("nan")], dtype=class_of(bf16))
    assert a.numpy().itemsize == 2 and a.list()[:2] == [1.0, 1.0] and np.isnan(a.list()[3])
    assert array([1.5], dtype=class_of(f16)).numpy().dtype == np.float16


@pytest.mark.parametrize("dtype", [f32, i32, vec3])
def test_repr_and_str(dtype):
    a = zeros((2,), dtype=dtype)
    assert repr(a) == f"array(shape=(2,), dtype={a.dtype.__name__})" and str(a) == str(a.numpy())


class Five(vector_class(5, f32)):
    """As libraries name their vectors."""


def test_arrays_know_the_class_that_a_program_derived():
    base = vector_class(5, f32)
    a = array([Five(1.0), Five(2.0)], dtype=Five, requires_grad=True)
    assert a.dtype is a[0:1].dtype is zeros_like(a).dtype is a.grad.dtype is Five and array([base()]).dtype is not Five
    assert type(a.list()[1]) is Five and type(a[0]) is Five and repr(a[0]) == "Five([1.0, 1.0, 1.0, 1.0, 1.0])"
    b = array([base(3.0), base(4.0)], dtype=base)
    a.assign(b)
    a.grad = zeros_like(b)
    assert a.type is b.type and b.list() == a.list() == [(3,) * 5, (4,) * 5]
    again = pickle.loads(pickle.dumps(a[0]))
    assert type(again) is Five and again == (3,) * 5
