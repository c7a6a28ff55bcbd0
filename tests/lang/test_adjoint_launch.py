"""``wp.launch(…, adjoint=True)``: one adjoint, with the gradients named."""

import pytest

import treadle as wp
from treadle.base.errors import KernelGradientError


@wp.kernel
def scale(x: wp.array(dtype=float), s: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i] * s


def arr(values, grad=True):
    return wp.array(values, dtype=float, requires_grad=grad)


def adjoint(kernel, inputs, outputs, **more):
    wp.launch(kernel, dim=2, inputs=inputs, outputs=outputs, adjoint=True, **more)


def test_named_gradients_are_used_instead_of_own():
    x, y, into, seed = arr([1.0, 2.0]), arr([5.0, 5.0]), arr([0.0, 0.0], False), arr([1.0, 1.0], False)
    adjoint(scale, [x, 3.0], [y], adj_inputs=[into, None], adj_outputs=[seed])
    assert into.list() == [6.0, 6.0] and seed.list() == [1.0, 1.0]
    assert x.grad.list() == y.grad.list() == [0.0, 0.0] and y.list() == [5.0, 5.0]


@pytest.mark.parametrize("lists", [{}, {"adj_inputs": [None, 0.0], "adj_outputs": [None]}], ids=["none", "Nones"])
def test_own_gradients_are_used_where_none_is_named(lists):
    x, y = arr([1.0, 2.0]), arr([0.0, 0.0])
    y.grad.fill_(1.0)
    adjoint(scale, [x, 3.0], [y], **lists)
    assert x.grad.list() == [6.0, 6.0] and y.grad.list() == [0.0, 0.0]


def test_arrays_that_the_kernel_changes_stay_as_they_are():
    @wp.kernel
    def square(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = x[i] * x[i]

    x = arr([3.0, 4.0])
    x.grad.fill_(1.0)
    adjoint(square, [x], [])
    assert x.list() == [3.0, 4.0] and x.grad.list() == [6.0, 8.0]


def test_winners_are_found_by_a_run_of_the_kernel():
    @wp.kernel
    def lowest(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        wp.atomic_min(y, 0, x[wp.tid()])

    x, y = arr([3.0, 2.0]), arr([9.0])
    y.grad.fill_(1.0)
    adjoint(lowest, [x], [y])
    assert x.grad.list() == [0.0, 1.0] and y.list() == [9.0]


def test_bad_use():
    @wp.kernel(enable_backward=False)
    def closed(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[wp.tid()] = x[wp.tid()]

    x, y = arr([1.0, 2.0]), arr([0.0, 0.0])
    with pytest.raises(KernelGradientError, match="closed has no adjoint: enable_backward is False"):
        adjoint(closed, [x], [y])
    with pytest.raises(wp.LaunchError, match="adj_inputs must have one entry an argument, 2, not 1"):
        adjoint(scale, [x, 3.0], [y], adj_inputs=[x.grad])
    with pytest.raises(wp.ArrayError, match="same dtype and shape"):
        adjoint(scale, [x, 3.0], [y], adj_outputs=[arr([1.0])])
