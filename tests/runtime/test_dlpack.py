"""Arrays by DLPack: what a capsule says, what is made of one, and who keeps the memory."""

import gc
import weakref

import numpy as np
import pytest

import treadle as wp
from treadle.base.errors import ArrayError
from treadle.runtime.adopt import adopt
from treadle.runtime.elements import element
from treadle.types.groups import scalar_types


def test_every_scalar_comes_back_as_it_went():
    for dtype in scalar_types:
        a = wp.zeros((3, 4), dtype=dtype)
        b = wp.from_dlpack(wp.to_dlpack(a))
        assert (b.dtype, b.shape, b.strides, b.ptr) == (a.dtype, a.shape, a.strides, a.ptr)


def test_components_are_the_last_dimensions_and_back():
    a = wp.array(np.arange(24, dtype=np.float32), dtype=wp.mat22)
    flat = wp.from_dlpack(a)
    assert (flat.shape, flat.dtype, flat.ptr) == ((6, 2, 2), wp.float32, a.ptr)
    again = wp.from_dlpack(wp.to_dlpack(flat), dtype=wp.mat22)
    assert again.shape == (6,) and np.array_equal(again.numpy(), a.numpy())


def test_strides_of_any_kind_need_no_copy():
    rows = np.arange(24, dtype=np.float64).reshape(4, 6)
    for view in (rows.T, rows[1:, ::2], rows[::-1], np.broadcast_to(rows[0], (3, 6))):
        a = wp.from_dlpack(
            wp.to_dlpack(adopt(view.ctypes.data, view.shape, view.strides, element(wp.float64), None, rows))
        )
        assert a.ptr == view.ctypes.data and np.array_equal(a.numpy(), view)
    planes = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(4, 3))  # components far apart
    v = wp.from_dlpack(planes, dtype=wp.vec3)
    assert v.component_stride == 16 and np.array_equal(v.numpy(), planes)


@wp.kernel
def step(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] + 1.0


@pytest.mark.host
def test_memory_that_numpy_keeps_from_changes_is_read_but_not_written():
    rows, y = np.arange(3, dtype=np.float32), wp.zeros(3, dtype=float)
    rows.flags.writeable = False
    for _ in range(2):  # before and after the kernel is known
        wp.launch(step, dim=3, inputs=[rows], outputs=[y])
        with pytest.raises(wp.LaunchTypeError, match="'y', a ndarray that must not be changed"):
            wp.launch(step, dim=3, inputs=[y], outputs=[rows])
    assert wp.from_dlpack(rows).list() == [0.0, 1.0, 2.0] and y.list() == [1.0, 2.0, 3.0]


@pytest.mark.host
def test_memory_lives_as_long_as_whoever_sees_it():
    a = wp.array([1.0, 2.0], dtype=float)
    rows = np.from_dlpack(a)
    del a
    gc.collect()
    assert rows.tolist() == [1.0, 2.0]

    class Owner:
        def __init__(self):
            self.rows = np.array([3.0, 4.0], np.float32)

        def __dlpack__(self, **options):
            return self.rows.__dlpack__()

        def __dlpack_device__(self):
            return 1, 0

    owner = Owner()
    b = wp.from_dlpack(owner)
    del owner
    gc.collect()
    assert b.list() == [3.0, 4.0]
    kept = weakref.ref(b._ref)
    del b
    gc.collect()
    assert kept() is None  # then the tensor was given back


def test_a_capsule_is_taken_once_and_others_are_refused():
    capsule = wp.to_dlpack(wp.zeros(2, dtype=float))
    wp.from_dlpack(capsule)
    with pytest.raises(TypeError, match="used before"):
        wp.from_dlpack(capsule)
    with pytest.raises(TypeError, match="valid DLPack capsule, got int"):
        wp.from_dlpack(7)

    class Elsewhere:
        def __dlpack_device__(self):
            return 10, 1

        def __dlpack__(self):
            raise AssertionError("not asked")

    with pytest.raises(TypeError, match="device_type=10, device_id=1"):
        wp.from_dlpack(Elsewhere())


@pytest.mark.host
def test_what_does_not_fit_is_said():
    a = wp.zeros((2, 3), dtype=float)
    for dtype, words in (
        (wp.float64, "float32 cannot be seen as float64"),
        (wp.vec2, r"last dimensions must be \(2,\)"),
    ):
        with pytest.raises(ArrayError, match=words):
            wp.from_dlpack(a, dtype=dtype)
    uneven = np.lib.stride_tricks.as_strided(np.zeros(64, np.float32), (2, 2, 2), (64, 20, 4))
    with pytest.raises(ArrayError, match="equal distances"):
        wp.from_dlpack(uneven, dtype=wp.mat22)
    with pytest.raises(TypeError, match="stream"):
        a.__dlpack__(stream=3)
    with pytest.raises(ArrayError, match="at most 4 dimensions"):
        wp.from_dlpack(np.zeros((1,) * 5, np.float32))


@wp.kernel
def add_one(a: wp.array(dtype=float)):
    a[wp.tid()] += 1.0


@pytest.mark.host
def test_launches_take_what_says_where_its_memory_is():
    class Foreign:
        def __init__(self, rows):
            self.rows = rows

        def __dlpack__(self, **options):
            return self.rows.__dlpack__()

        def __dlpack_device__(self):
            return 1, 0

    rows = np.zeros(6, np.float32)
    wp.launch(add_one, dim=3, inputs=[Foreign(rows[::2])])
    assert rows.tolist() == [1, 0, 1, 0, 1, 0]
    with pytest.raises(wp.LaunchTypeError, match="int32 cannot be seen as float32"):
        wp.launch(add_one, dim=3, inputs=[Foreign(np.zeros(3, np.int32))])
