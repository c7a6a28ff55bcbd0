"""Gradients of copies: of parts, of other element types, of structs."""

import numpy as np
import pytest

import treadle as wp
from treadle.base.errors import KernelGradientError


def both(dtype, source, dest=None):
    """Two arrays with gradients."""
    a = wp.array(source, dtype=dtype, requires_grad=True)
    return a, wp.zeros_like(a) if dest is None else wp.array(dest, dtype=dtype, requires_grad=True)


def flow(write, a, b, seed):
    """The gradients of ``a`` and ``b`` after what ``write`` does is gone back through."""
    with wp.Tape() as tape:
        write()
    b.grad.assign(seed)
    tape.backward()
    return a.grad.numpy().tolist(), b.grad.numpy().tolist()


def test_elements_of_strided_arrays():
    a, b = both(float, np.ones((2, 4)))
    seed = np.arange(8.0).reshape(2, 4)
    got = flow(lambda: wp.copy(b[:, ::2], a[:, 1:], 1, 2, 3), a, b, seed)
    # elements 2, 3, 4 of a[:, 1:] go to elements 1, 2, 3 of b[:, ::2]
    assert got == ([[0, 0, 0, 2], [0, 4, 6, 0]], [[0, 1, 0, 3], [0, 5, 0, 7]])


def test_an_array_over_itself():
    a, _ = both(float, np.arange(4.0))
    assert flow(lambda: wp.copy(a, a, 1, 0, 3), a, a, [1.0, 2.0, 3.0, 4.0])[0] == [3.0, 3.0, 4.0, 0.0]


def test_half_precision_and_vectors():
    for dtype, seed in ((wp.bfloat16, [1.5, -2.0]), (wp.float16, [1.5, -2.0]), (wp.vec2, [[1, 2], [3, 4]])):
        a, b = both(dtype, np.zeros_like(seed))
        with wp.Tape() as tape:
            b.assign(a)
        b.grad.assign(np.array(seed, np.float32))
        a.grad.assign(np.array(seed, np.float32))
        tape.backward()
        assert np.allclose(np.array([[*np.atleast_1d(x)] for x in a.grad.list()]).squeeze(), 2 * np.array(seed))
        assert not np.array([[*np.atleast_1d(x)] for x in b.grad.list()]).any()


def test_structs_by_field():
    @wp.struct
    class Cell:
        n: int
        x: float
        v: wp.vec2

    cell = Cell(n=3, x=1.0, v=wp.vec2(1.0, 2.0))
    a, b = wp.array([cell], dtype=Cell, requires_grad=True), wp.zeros(1, dtype=Cell, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(b, a)
    b.grad.assign([Cell(n=7, x=2.0, v=wp.vec2(3.0, 4.0))])
    tape.backward()
    (got,) = a.grad.list()
    assert (got.n, got.x, got.v) == (0, 2.0, wp.vec2(3.0, 4.0))
    assert b.grad.list()[0].x == 0.0


def test_a_row_for_many_has_no_gradient_yet_says_so():
    a, b = wp.ones(3, dtype=float, requires_grad=True), wp.zeros((2, 3), dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        b.assign(a)
    with pytest.raises(KernelGradientError, match=r"shape \(3,\) to shape \(2, 3\)"):
        tape.backward()


@wp.kernel
def weigh(y: wp.array(dtype=float), o: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(o, 0, y[i] * float(i + 1))


def by_key(y, x, places):
    y[places] = x


def kept_then_filled(y, x, places):
    wp.copy(y, x, count=2)
    y[places].fill_(0.0)


def through_another(y, x, places):
    z = wp.zeros(4, dtype=float)
    wp.copy(z, x, count=2)
    wp.copy(y, wp.clone(z[places]), count=2)


INDEXED = {
    by_key: [2.0, 1.0], kept_then_filled: [0.0, 0.0], through_another: [2.0, 1.0],
    (lambda y, x, places: wp.copy(y[places], x)): [2.0, 1.0], (lambda y, x, places: y[places].assign(x)): [2.0, 1.0],
}  # fmt: skip


@pytest.mark.parametrize("checkpoint", ["all", 1, "sqrt"])
@pytest.mark.parametrize("write", INDEXED, ids=["key", "fill", "clone", "copy", "assign"])
def test_indices_are_those_of_the_write(write, checkpoint):
    x, places = wp.ones(2, dtype=float, requires_grad=True), wp.array([1, 0], dtype=int)
    y, o = wp.zeros(4, dtype=float), wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape(checkpoint) as tape:
        write(y, x, places)
        places.assign([2, 3])
        wp.launch(weigh, dim=4, inputs=[y, o])
    tape.backward(o)
    assert x.grad.list() == INDEXED[write]
    assert places.list() == [2, 3]
