"""Arrays over the same memory with gradients: shared, or refused where neither would be right."""

import numpy as np
import pytest

import treadle as wp


@wp.kernel
def square(x: wp.array(dtype=float)):
    x[wp.tid()] *= x[wp.tid()]


@wp.kernel
def add(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    wp.atomic_add(out, 0, x[wp.tid()])


def backward(written: wp.array, read: wp.array, times: int = 1) -> None:
    out = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for _ in range(times):
            wp.launch(square, dim=len(written), inputs=[written])
        wp.launch(add, dim=len(read), inputs=[read], outputs=[out])
    tape.backward(out)


def shown(rows: np.ndarray) -> wp.array:
    return wp.array(rows, dtype=float, copy=False, requires_grad=True)


@pytest.mark.host
def test_two_gradients_of_memory_that_is_written_are_refused():
    rows = np.array([1.0, 2.0, 3.0, 4.0], dtype=np.float32)
    for one, other in ((rows, rows), (rows[:2], rows[1:]), (rows[1:], rows)):
        with pytest.raises(wp.KernelGradientError, match="each has a gradient of its own"):
            backward(shown(one), shown(other))


def test_views_that_got_gradients_of_their_own_are_refused():
    x = wp.array([1.0, 2.0, 3.0], dtype=float)
    view = x[1:]
    view.requires_grad = True
    x.requires_grad = True
    with pytest.raises(wp.KernelGradientError, match="each has a gradient of its own"):
        backward(view, x)


def test_two_gradients_are_fine_where_nothing_is_written_or_nothing_is_shared():
    rows = np.array([1.0, 2.0, 3.0, 4.0], dtype=np.float32)
    one, other = shown(rows), shown(rows)
    backward(one, other, times=0)
    assert one.grad.list() == [0.0] * 4 and other.grad.list() == [1.0] * 4
    x = wp.array(rows, dtype=float)
    even, odd = x[::2], x[1::2]
    even.requires_grad = odd.requires_grad = True
    backward(even, odd)
    assert odd.grad.list() == [1.0, 1.0] and not even.grad.numpy().any()


def test_an_array_made_of_another_without_a_copy_has_its_gradient():
    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    same = wp.array(x, copy=False, requires_grad=True)
    backward(same, x)
    assert x.grad.list() == same.grad.list() == [2.0, 4.0, 6.0]
