"""``wp.Tape``: what is no use of it, and what is told then."""

import warnings

import numpy as np
import pytest

import treadle as wp
from tests.lang.tapes import arr, chain, double
from treadle.base.errors import KernelGradientError


def test_what_is_no_loss():
    x, y, out, tape = chain()
    for loss, word in (
        (y, "one float"), (wp.zeros(1, dtype=wp.vec3, requires_grad=True), "one float"),
        (wp.zeros(1, dtype=int), "one float"), (arr([0.0], grad=False), "keeps no gradient"),
        (arr([0.0]), "nothing recorded on it writes the loss"),
    ):  # fmt: skip
        with pytest.raises(KernelGradientError, match=word):
            tape.backward(loss)
    with pytest.raises(wp.ArrayError, match="shape"):
        tape.backward(grads={y: arr([1.0, 2.0, 3.0])})
    tape.backward(out)
    tape.reset()
    with pytest.raises(KernelGradientError, match="it was reset"):
        tape.backward(out)


def test_tapes_do_not_nest():
    one, two = wp.Tape(), wp.Tape()
    with one:
        for tape in (one, two):
            with pytest.raises(RuntimeError, match="recording already"), tape:
                raise AssertionError("not reached")
    with two:
        pass


def test_a_gradient_that_was_not_zeroed_is_told_once():
    x, y, out, tape = chain()
    tape.backward(out)
    for k in range(2):
        with wp.Tape() as tape:
            wp.launch(double, dim=2, inputs=[x], outputs=[y])
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            tape.backward(grads={y: arr([1.0, 1.0], grad=False)})
        assert [str(w.message).split(" is not zero")[0] for w in told] == (
            ["the gradient of array 'x' (an argument of kernel double)"] if k == 0 else []
        )


def test_what_has_no_derivative_is_refused_before_anything_happens():
    @wp.kernel
    def swap(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = wp.atomic_exch(x, 0, y[i]) * 2.0

    x, y = arr([1.0]), arr([2.0])
    with wp.Tape() as tape:
        wp.launch(swap, dim=1, inputs=[x], outputs=[y])
    with pytest.raises(KernelGradientError, match="atomic_exch"):
        tape.backward(y)
    assert (x.list(), y.list()) == ([2.0], [2.0])


def test_a_gradient_that_the_pass_itself_would_change_first_is_refused():
    @wp.kernel
    def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i] * x[i]

    x = wp.array([3.0], dtype=float, requires_grad=True)
    y, z = wp.zeros(1, dtype=float, requires_grad=True), wp.zeros(1, dtype=float, requires_grad=True)
    x.grad.requires_grad = True
    with wp.Tape() as tape:
        wp.launch(square, dim=1, inputs=[x.grad], outputs=[z])
        wp.launch(square, dim=1, inputs=[x], outputs=[y])
    with pytest.raises(KernelGradientError, match="kernel square uses an array whose gradient an earlier launch"):
        tape.backward(grads={z: wp.ones(1, dtype=float), y: wp.ones(1, dtype=float)})


@pytest.mark.parametrize("loss", [3.0, "x", np.ones(1, np.float32)])
def test_a_loss_that_is_no_array_is_told(loss):
    with pytest.raises(KernelGradientError, match="must be an array of one float"):
        wp.Tape().backward(loss)


def test_a_scope_ends_once():
    tape = wp.Tape()
    with pytest.raises(KernelGradientError, match="ended tape scope, but scope not present"):
        tape.record_scope_end()
    tape.record_scope_begin("a")
    tape.record_scope_begin("b")
    tape.record_scope_end(remove_scope_if_empty=False)
    tape.record_scope_end()
    with pytest.raises(KernelGradientError, match="ended tape scope, but scope not present"):
        tape.record_scope_end()


@wp.kernel
def drift(x: wp.array(dtype=float), a: float, z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = a * x[i] + z[i]
    x[i] = z[i]


@pytest.mark.parametrize("checkpoint", ["all", 1])
@pytest.mark.parametrize("recorded", [False, True])
def test_wrong_arguments_are_told_as_without_a_tape(recorded, checkpoint):
    x, z = (wp.ones(3, dtype=float, requires_grad=True) for _ in range(2))
    table = wp.zeros((3, 3), dtype=float)
    cases = [(3, [x, 2.0]), (3, []), (3, [x, 2.0, table]), (3, [table, 2.0, z]), (3, [x, 2.0, 5]), (3, [x, x, z]),
             ("a", [x, 2.0, z]), (None, [x, 2.0, z]), (2.5, [x, 2.0, z]), ((3, "b"), [x, 2.0, z]),
             (-1, [x, 2.0, z])]  # fmt: skip

    def told(dim, args):
        with pytest.raises(Exception) as caught:  # noqa: PT011, compared below
            wp.launch(drift, dim=dim, inputs=args)
        return type(caught.value), str(caught.value)

    wp.launch(drift, dim=3, inputs=[x, 2.0, z])
    before = [told(*case) for case in cases]
    with wp.Tape(checkpoint) as tape:
        wp.launch(drift, dim=3, inputs=[x, 2.0, z])
        if recorded:
            assert [told(*case) for case in cases] == before
        wp.launch(drift, dim=3, inputs=[x, 2.0, z])
    if not recorded:
        assert [told(*case) for case in cases] == before
    tape.backward(grads={x: wp.ones(3, dtype=float)})
    assert x.grad.list() == [6.0] * 3 and x.list() == [27.0] * 3


def test_gradients_that_are_none_are_told():
    x, y = arr([1.0, 2.0]), arr([0.0, 0.0])
    with wp.Tape() as tape:
        wp.copy(y, x)
    for grads, why in (
        ([x], "is a dict of gradients by their arrays"), (x, "is a dict"),
        ({y: None}, "must be an array like it, not None"),
        ({y: 3.0}, "must be an array like it, not 3.0"), ({"y": x}, "the keys of grads are arrays, not 'y'"),
    ):  # fmt: skip
        with pytest.raises(KernelGradientError, match=why):
            tape.backward(grads=grads)
    tape.backward(grads={y: np.array([1.0, 2.0], np.float32)})
    assert x.grad.list() == [1.0, 2.0]


def test_record_func_takes_a_function_and_arrays():
    tape = wp.Tape()
    with pytest.raises(TypeError, match="takes a function to call in the backward pass, not 3"):
        tape.record_func(3, [])
    for arrays in (3, arr([1.0])):
        with pytest.raises(TypeError, match="come in a list"):
            tape.record_func(print, arrays)
    assert not tape.launches


def test_checks_of_gradients_take_tapes_and_steps():
    x = arr([1.0, 2.0])
    with pytest.raises(wp.AutogradError, match="takes a tape, not 3"):
        wp.autograd.gradcheck_tape(3)
    for eps, why in ((0.0, "more than 0"), (-1.0, "more than 0"), (1e-12, "too small a step from 1.0 in float32")):
        with pytest.raises(wp.AutogradError, match=why):
            wp.autograd.jacobian_fd(wp.clone, inputs=[x], eps=eps)


def test_none_is_no_number():
    for a in (wp.zeros(3, dtype=float), wp.zeros(3, dtype=wp.vec2), wp.zeros(3, dtype=wp.bfloat16)):
        for write in (lambda a: a.fill_(None), lambda a: a.assign(None), lambda a: a.__setitem__(0, None)):
            with pytest.raises(TypeError, match="None is no number"):
                write(a)
    with pytest.raises(wp.ArrayError, match="reads an array, or what one can be made of, not None"):
        wp.copy(a, None)
    with pytest.raises(wp.ArrayError, match="writes to an array, not to None"):
        wp.copy(None, a)


def test_operators_tell_types_and_no_place_that_nobody_wrote():
    a, b = wp.zeros(3, dtype=float), wp.zeros(3, dtype=int)
    with pytest.raises(wp.KernelTypeError, match=r"^'\+' cannot take float32 and int32\nhint"):
        a += b
