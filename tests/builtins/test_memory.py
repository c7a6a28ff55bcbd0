"""Builtins that reach memory, in kernels of every gang width."""

from typing import Any

import numpy as np
import pytest

import treadle as wp


@pytest.mark.parametrize("width", [1, 8])
def test_atomics_of_integers_combine_every_thread(width):
    @wp.kernel(gang_width=width)
    def k(x: wp.array(dtype=int), o: wp.array(dtype=int)):
        i = wp.tid()
        wp.atomic_add(o, 0, x[i])
        wp.atomic_sub(o, 1, x[i])
        wp.atomic_min(o, 2, x[i])
        wp.atomic_max(o, 3, x[i])
        wp.atomic_and(o, 4, x[i])
        wp.atomic_or(o, 5, x[i])
        wp.atomic_xor(o, 6, x[i])

    x = np.random.default_rng(0).integers(1, 1000, 333).astype(np.int32)
    o = wp.array([0, 0, 10**6, -1, -1, 0, 0], dtype=int)
    wp.launch(k, dim=len(x), inputs=[wp.array(x, dtype=int), o])
    reduce = [np.bitwise_and.reduce(x), np.bitwise_or.reduce(x), np.bitwise_xor.reduce(x)]
    assert o.numpy().tolist() == [x.sum(), -x.sum(), x.min(), x.max(), *reduce]


@pytest.mark.parametrize("width", [1, 8])
def test_atomics_give_the_old_value_once_to_each_thread(width):
    @wp.kernel(gang_width=width)
    def k(o: wp.array2d(dtype=int), seen: wp.array(dtype=int)):
        i = wp.tid()
        seen[wp.atomic_add(o, 0, 1, 1)] = i + 1
        before = wp.atomic_cas(o, 1, 0, 0, i + 1)
        if before == 0:
            wp.atomic_exch(o, 1, 1, i + 1)

    o, seen = wp.zeros((2, 2), dtype=int), wp.zeros(100, dtype=int)
    wp.launch(k, dim=100, inputs=[o, seen])
    assert sorted(seen.numpy()) == list(range(1, 101)) and o.numpy()[0, 1] == 100
    assert o.numpy()[1, 0] == o.numpy()[1, 1] != 0


def test_atomics_of_vectors_go_by_component():
    @wp.kernel
    def k(x: wp.array(dtype=wp.vec3), o: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        wp.atomic_add(o, 0, x[i])
        wp.atomic_max(o, 1, x[i])

    x = np.random.default_rng(1).integers(-9, 9, (50, 3)).astype(np.float32)
    o = wp.array([[0, 0, 0], [-99, -99, -99]], dtype=wp.vec3)
    wp.launch(k, dim=50, inputs=[wp.array(x, dtype=wp.vec3), o])
    assert np.array_equal(o.numpy(), [x.sum(0), x.max(0)])


def test_lengths_and_own_arrays():
    @wp.kernel
    def k(a: wp.array2d(dtype=float), o: wp.array(dtype=int)):
        own = wp.zeros(shape=(2, 3), dtype=int)
        for j in range(len(a)):
            own[j % 2, j % 3] += j
        o[0] = len(a)
        o[1] = len(wp.vec3()) + len(wp.quat()) + len(wp.transform())
        o[2] = own[0, 0] + own[1, 2] * 10

    o = wp.zeros(3, dtype=int)
    wp.launch(k, dim=1, inputs=[wp.zeros((6, 2), dtype=float), o])
    assert o.numpy().tolist() == [6, 14, 50]


def test_memory_by_address():
    @wp.kernel
    def k(p: wp.uint64, n: int, o: wp.array(dtype=float)):
        i = wp.tid()
        a = wp.array(ptr=p, shape=n, dtype=float)
        b = wp.array(ptr=p, shape=(2, 2), dtype=float)
        o[i] = a[i] + b[1, 1]

    data, o = wp.array([1.0, 2.0, 3.0, 4.0], dtype=float), wp.zeros(4, dtype=float)
    wp.launch(k, dim=4, inputs=[data.ptr, 4, o])
    assert o.numpy().tolist() == [5, 6, 7, 8]


def test_memory_by_address_with_strides():
    @wp.kernel
    def k(a: wp.array2d(dtype=float), o: wp.array2d(dtype=float)):
        i, j = wp.tid()
        flipped = wp.array(ptr=a.ptr, shape=(4, 3), strides=(4, 16), dtype=float)
        column = wp.array(ptr=a.ptr + wp.uint64(4), shape=3, strides=4 * a.shape[1], dtype=float)
        rows, columns = a.shape[0], a.shape[1]
        again = wp.array(a.ptr, (columns, rows), float, strides=(4, 4 * columns))
        o[i, j] = flipped[i, j] + again[i, j] * 100.0 + column[j] * 10000.0

    data, o = np.arange(12, dtype=np.float32).reshape(3, 4), wp.zeros((4, 3), dtype=float)
    wp.launch(k, dim=(4, 3), inputs=[wp.array(data), o])
    assert np.array_equal(o.numpy(), data.T * 101 + data[:, 1] * 10000)


def test_memory_by_address_says_what_is_missing():
    @wp.kernel
    def too_few(p: wp.uint64):
        a = wp.array(ptr=p, shape=(2, 2), strides=4, dtype=float)

    @wp.kernel
    def no_shape(p: wp.uint64):
        a = wp.array(ptr=p, dtype=float)

    @wp.kernel
    def no_int(p: wp.uint64):
        a = wp.array(ptr=p, shape=2, strides=1.5, dtype=float)

    for kernel, message in ((too_few, "2 sizes and 1 strides"), (no_shape, "ptr, shape and dtype are needed"),
                            (no_int, "'strides' must be an int or a tuple of them, not")):  # fmt: skip
        with pytest.raises(wp.KernelTypeError, match=message):
            wp.launch(kernel, dim=1, inputs=[0])


@wp.func
def counted(n: int) -> wp.fixedarray(dtype=float, shape=(2, 4)):
    own = wp.zeros(shape=(2, 4), dtype=float)
    for i in range(n):
        own[i // 4, i % 4] = float(i)
    return own


@wp.func
def swap_rows(a: wp.fixedarray(dtype=float, shape=(2, 4))):
    for j in range(a.shape[1]):
        a[0, j], a[1, j] = a[1, j], a[0, j]


@wp.func
def wrong_shape() -> wp.fixedarray(dtype=float, shape=2):
    return wp.zeros(shape=(2, 4), dtype=float)


def test_own_arrays_go_through_functions_and_are_sliced():
    @wp.kernel
    def k(o: wp.array2d(dtype=float)):
        i = wp.tid()
        own = counted(i + 4)
        swap_rows(own)
        left: wp.fixedarray(dtype=float, shape=(2, 2)) = own[:, :2]
        backwards = own[1, ::-1]
        left[0, 0] += 10.0
        o[i, 0] = own[0, 0] + left[1, 1] * 100.0
        o[i, 1] = backwards[0] + float(len(backwards)) + float(left.shape[1])

    o = wp.zeros((4, 2), dtype=float)
    wp.launch(k, dim=4, inputs=[o])
    assert o.numpy().tolist() == [[110, 9], [114, 9], [114, 9], [114, 9]]


def test_what_is_no_such_own_array_is_refused():
    @wp.kernel
    def returned(o: wp.array2d(dtype=float)):
        own = wrong_shape()

    @wp.kernel
    def passed(o: wp.array2d(dtype=float)):
        swap_rows(o)

    @wp.kernel
    def parameter(o: wp.fixedarray(dtype=float, shape=3)):
        o[0] = 1.0

    for kernel, message, error in (
        (returned, r"annotated to return `.*fixedarray.*`, but the code returns a value", wp.KernelTypeError),
        (passed, "must be fixedarray.*not array", wp.KernelTypeError),
        (parameter, "fixedarray.*cannot be passed to kernels", wp.LaunchTypeError),
    ):
        with pytest.raises(error, match=message):
            wp.launch(kernel, dim=1, inputs=[wp.zeros((2, 4), dtype=float)])


def test_small_numbers_are_updated_in_place_but_by_no_atomic_function():
    @wp.kernel
    def add(a: wp.array(dtype=Any), b: wp.array(dtype=Any)):
        a[0] += b[wp.tid()]

    @wp.kernel
    def least(a: wp.array(dtype=Any), b: wp.array(dtype=Any)):
        wp.atomic_min(a, 0, b[wp.tid()])

    for dtype in (wp.int8, wp.vec2us):
        a, b = wp.zeros(1, dtype=dtype), wp.ones(20, dtype=dtype)
        wp.launch(add, dim=20, inputs=[a, b])
        assert (a.numpy() == 20).all()
    with pytest.raises(wp.KernelTypeError, match=r"atomic_min\(\) .* holds vec2us, made of uint16$"):
        wp.launch(least, dim=20, inputs=[a, b])


@pytest.mark.parametrize("width", [1, 8])
def test_lower_bound_is_that_of_numpy(width):
    @wp.kernel(gang_width=width)
    def k(a: wp.array(dtype=float), x: wp.array(dtype=float), o: wp.array2d(dtype=int)):
        i = wp.tid()
        o[i, 0] = wp.lower_bound(a, x[i])
        o[i, 1] = wp.lower_bound(a, 2, 6, x[i])

    a = np.sort(np.random.default_rng(2).integers(0, 20, 10)).astype(np.float32)
    x = np.linspace(-1, 21, 45, dtype=np.float32)
    o = wp.zeros((45, 2), dtype=int)
    wp.launch(k, dim=45, inputs=[wp.array(a, dtype=float), wp.array(x, dtype=float), o])
    assert np.array_equal(o.numpy()[:, 0], np.minimum(np.searchsorted(a, x), 9))
    assert np.array_equal(o.numpy()[:, 1], np.clip(np.searchsorted(a, x), 2, 5))


def test_structs_start_at_zero_with_arrays_of_no_elements():
    @wp.struct
    class Bag:
        weight: float
        items: wp.array(dtype=int)

    @wp.kernel
    def k(o: wp.array(dtype=float)):
        bag = Bag()
        o[0] = bag.weight + float(len(bag.items))
        bag.weight = 2.5
        o[1] = bag.weight

    o = wp.array([9.0, 9.0], dtype=float)
    wp.launch(k, dim=1, inputs=[o])
    assert o.numpy().tolist() == [0, 2.5]


@pytest.mark.parametrize("width", [1, 8])
def test_an_empty_array_has_what_was_written_and_a_gradient_from_zero(width):
    @wp.kernel(gang_width=width)
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        for turn in range(2):
            own = wp.empty(shape=(40,), dtype=float)
            for j in range(i):
                own[j] = x[i] * float(j)
            for j in range(i):
                y[i] += own[j]

    x, y = wp.ones(30, dtype=float, requires_grad=True), wp.zeros(30, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(k, dim=30, inputs=[x, y])
    tape.backward(grads={y: wp.ones(30, dtype=float)})
    i = np.arange(30)
    assert np.array_equal(y.numpy(), i * (i - 1)) and np.array_equal(x.grad.numpy(), i * (i - 1))
