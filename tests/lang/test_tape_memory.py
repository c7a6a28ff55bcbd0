"""What a tape saves, what memory holds after a backward pass, and what it says of writes that it did not see."""

import gc
import warnings

import numpy as np
import pytest

import treadle as wp
from tests.lang.tapes import arr, chain, double, grow, squares
from treadle.base.errors import KernelGradientError
from treadle.runtime import watch


@wp.kernel
def next_row(t: wp.array2d(dtype=float), k: int):
    i = wp.tid()
    t[k + 1, i] = 0.999 * t[k, i] + 0.001 * t[k, i] * t[k, i]


@wp.kernel
def next_view(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 0.999 * x[i] + 0.001 * x[i] * x[i]


@pytest.mark.parametrize("by_view", [True, False])
def test_a_trajectory_in_one_array_costs_what_it_holds(by_view):
    steps, n = 2000, 8
    t = wp.zeros((steps + 1, n), dtype=float, requires_grad=True)
    t[0] = np.linspace(0.1, 0.8, n)
    with wp.Tape() as tape:
        for k in range(steps):
            if by_view:
                wp.launch(next_view, dim=n, inputs=[t[k]], outputs=[t[k + 1]])
            else:
                wp.launch(next_row, dim=n, inputs=[t, k])
    assert tape.saved_bytes <= 2 * t.nbytes
    seed = np.zeros((steps + 1, n))
    seed[-1] = 1.0
    t.grad.assign(seed)
    tape.backward()
    x, slope = np.linspace(0.1, 0.8, n), np.ones(n)
    for _ in range(steps):
        x, slope = 0.999 * x + 0.001 * x * x, slope * (0.999 + 0.002 * x)
    assert np.allclose(t.grad.numpy()[0], slope, rtol=1e-4)


@pytest.mark.host
def test_only_what_changes_is_saved():
    @wp.kernel
    def put(x: wp.array(dtype=float), at: wp.array(dtype=int), y: wp.array(dtype=float)):
        i = wp.tid()
        y[at[i]] = x[i] * y[at[i]]

    x, at, y = arr([2.0, 3.0]), wp.array([70_000, 5], dtype=int), wp.ones(100_000, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(put, dim=2, inputs=[x, at], outputs=[y])
        wp.launch(grow, dim=10, inputs=[y, x])
    assert tape.saved_bytes == 2 * 64 + 10 * 4
    before = y.numpy().copy()
    y.grad.fill_(1.0)
    tape.backward()
    assert (y.numpy() == before).all()
    assert y.grad.numpy()[[70_000, 5, 0]].tolist() == [2.0, 3.0 * (1 + 4 * 3), 5.0]


def test_columns_are_saved_as_columns():
    m = wp.ones((4, 100), dtype=float, requires_grad=True)
    k = arr([1.0])
    with wp.Tape() as tape:
        for _ in range(3):
            wp.launch(grow, dim=4, inputs=[m[:, 7], k])
    assert tape.saved_bytes == 3 * 16
    m.grad.fill_(1.0)
    tape.backward()
    assert m.grad.numpy()[:, 7].tolist() == [3.0 * 5.0 * 13.0] * 4 and m.grad.numpy()[0, 6] == 1.0


def test_writes_that_are_not_recorded_are_undone_too():
    x, y, out, tape = chain()
    y.fill_(-1.0)
    wp.launch(grow, dim=2, inputs=[y, arr([1.0])])
    wp.copy(y, x)
    wp.launch(double, dim=2, inputs=[x], outputs=[y], record_tape=False)
    y[1] = 8.0
    tape.backward(out)
    assert x.grad.list() == [40.0, 80.0] and y.list() == [2.0, 8.0]


def test_two_tapes_watch_the_same_array():
    x, k, y = arr([1.0]), arr([1.0]), arr([0.0])
    with wp.Tape() as one:
        wp.launch(double, dim=1, inputs=[x], outputs=[y])
        wp.launch(grow, dim=1, inputs=[x, k])
    with wp.Tape() as two:
        wp.launch(grow, dim=1, inputs=[x, k])
    assert x.list() == [6.0]
    two.backward(grads={x: arr([1.0], grad=False)})
    assert x.grad.list() == [5.0]
    one.backward()
    assert x.grad.list() == [15.0] and x.list() == [6.0]


def test_an_error_in_the_backward_pass_leaves_arrays_as_they_were():
    x, y, out = arr([1.0, 2.0]), arr([0.0, 0.0]), arr([0.0])

    def fail():
        raise RuntimeError("no way back")

    with wp.Tape() as tape:
        wp.launch(double, dim=2, inputs=[x], outputs=[y])
        x.fill_(9.0)
        tape.record_func(fail, arrays=[])
        wp.launch(grow, dim=2, inputs=[y, x])
        wp.launch(squares, dim=2, inputs=[y], outputs=[out])
        y.zero_()
    with pytest.raises(RuntimeError, match="no way back"):
        tape.backward(out)
    assert x.list() == [9.0, 9.0] and y.list() == [0.0, 0.0]


@pytest.mark.host
@pytest.mark.parametrize("checkpoint", ["all", 1, "sqrt"])
def test_a_launch_that_fails_is_no_operation_but_is_undone(checkpoint):
    @wp.kernel
    def wrong(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = 7.0
        assert i < 1

    x, out, k = arr([1.0, 2.0]), arr([0.0]), arr([0.5])
    with wp.Tape(checkpoint=checkpoint) as tape:
        wp.launch(grow, dim=2, inputs=[x, k])
        wp.launch(squares, dim=2, inputs=[x], outputs=[out])
        with pytest.raises(wp.KernelAssertionError):
            wp.launch(wrong, dim=2, inputs=[x], checked=True)
        assert x.list()[0] == 7.0
        x.assign([3.0, 4.0])
        wp.launch(squares, dim=2, inputs=[x], outputs=[out])
    tape.backward(out)
    v = np.array([1.5, 4.0])
    assert np.allclose(x.grad.numpy(), 10.0 * v * (1.0 + np.array([1.0, 2.0]))) and x.list() == [3.0, 4.0]


def test_tapes_that_go_watch_no_more():
    gc.collect()
    assert not watch.watchers
    _, _, _, tape = chain()
    assert len(watch.watchers) == 1
    del tape
    assert not watch.watchers
    _, y, out, tape = chain()
    tape.reset()
    assert not watch.watchers and tape.launches == [] and out.grad.list() == [0.0]
    y.fill_(1.0)
    assert tape.saved_bytes == 0


@pytest.mark.host
def test_unseen_writes_are_found_where_that_is_asked_for():
    x, y, out = arr([1.0, 2.0]), arr([0.0, 0.0]), arr([0.0])
    wp.config.verify_autograd_array_access = True
    try:
        with wp.Tape() as tape:
            wp.launch(double, dim=2, inputs=[x], outputs=[y])
            wp.launch(grow, dim=2, inputs=[y, arr([0.5])])
            wp.launch(squares, dim=2, inputs=[y], outputs=[out])
        with pytest.warns(UserWarning, match="is being written to by the host at"):
            y.fill_(7.0)
        tape.backward(out)  # that was seen
        x.numpy()[1] = 8.0
        with pytest.raises(KernelGradientError, match="'x' changed after kernel double had read it"):
            tape.backward(out)
        assert x.list() == [1.0, 8.0] and y.list() == [7.0, 7.0]
    finally:
        wp.config.verify_autograd_array_access = False


def test_writes_to_what_a_backward_pass_will_look_at_are_warned_of_where_that_is_asked_for():
    x, y, other, out = arr([1.0, 2.0]), arr([0.0, 0.0]), arr([5.0, 6.0]), arr([0.0])
    wp.config.verify_autograd_array_access = True
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with wp.Tape() as tape:
                wp.launch(double, dim=2, inputs=[x], outputs=[y])
                wp.launch(squares, dim=2, inputs=[y], outputs=[out])
                assert not told
                wp.launch(double, dim=2, inputs=[other], outputs=[y])
                wp.copy(x, other)
            x.fill_(1.0)
            tape.backward(out)
            x.fill_(2.0)  # the backward pass was gone through
        said = [str(w.message) for w in told]
        assert [s.partition(" at ")[0] for s in said] == [
            "Array 'y' is being written to by kernel double",
            "An array of dtype float32 and shape (2,) is being written to by an array copy",
        ]
        assert all(f"at {__file__}:" in s and "The tape keeps what is overwritten" in s for s in said)
        assert all(w.filename == __file__ for w in told)
        assert x.grad.list() == [40.0, 80.0]
    finally:
        wp.config.verify_autograd_array_access = False
