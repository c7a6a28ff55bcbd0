"""Copies through lists of indices in graphs: as on the host, with the indices of the moment at which a graph runs."""

import numpy as np
import pytest

import treadle as wp

CAPTURED = {
    "item": lambda x, y, z, ix: y.__setitem__(ix, x),
    "copy in": lambda x, y, z, ix: wp.copy(y[ix], x),
    "assign": lambda x, y, z, ix: y[ix].assign(x),
    "values": lambda x, y, z, ix: y[ix].assign([5.0, 6.0, 7.0]),
    "fill": lambda x, y, z, ix: y[ix].fill_(2.0),
    "zero": lambda x, y, z, ix: y[ix].zero_(),
    "copy out": lambda x, y, z, ix: wp.copy(x, y[ix]),
    "clone": lambda x, y, z, ix: wp.copy(x, wp.clone(y[ix])),
    "over itself": lambda x, y, z, ix: wp.copy(y[:3], y[ix]),
    "between": lambda x, y, z, ix: wp.copy(y[ix], z[:, 1][wp.clone(ix[::-1])]),
    "rows": lambda x, y, z, ix: z.__setitem__((ix, slice(None)), z[ix]),
    "both": lambda x, y, z, ix: z[ix, ix].fill_(-3.0),
    "indices of indices": lambda x, y, z, ix: wp.copy(x, y[ix][wp.array([2, 0, 1], dtype=int)]),
}


@pytest.mark.parametrize("write", CAPTURED.values(), ids=CAPTURED)
def test_captured_copies_through_indices_look_at_them_when_the_graph_runs(write):
    found = []
    for graph in (False, True):
        x, y = wp.array([1.0, 2.0, 3.0], dtype=float), wp.array(np.arange(10.0, 15.0), dtype=float)
        z, ix = wp.array(np.arange(25.0).reshape(5, 5), dtype=float), wp.array([3, 1, 3], dtype=int)
        rows = []
        if graph:
            with wp.ScopedCapture() as capture:
                write(x, y, z, ix)
        for places in ([3, 1, 3], [4, 0, 2]):
            ix.assign(places)
            if graph:
                wp.capture_launch(capture.graph)
            else:
                write(x, y, z, ix)
            rows += [a.numpy().tolist() for a in (x, y, z)]
        found.append(rows)
    assert found[0] == found[1]


def test_a_graph_finds_indices_outside():
    x, y, ix = wp.ones(2, dtype=wp.vec2), wp.zeros(4, dtype=wp.vec2), wp.array([1, 0], dtype=int)
    with wp.ScopedCapture() as capture:
        y[ix] = x
    wp.capture_launch(capture.graph)
    assert y.numpy()[:2].all()
    ix.assign([1, 4])
    with pytest.raises(IndexError):
        wp.capture_launch(capture.graph)


def test_captured_copies_through_indices_have_gradients():
    x, ix = wp.ones(3, dtype=float, requires_grad=True), wp.array([1, 0, 1], dtype=int)
    y = wp.zeros(4, dtype=float, requires_grad=True)
    seed = wp.array([1.0, 10.0, 100.0, 1000.0], dtype=float)
    with wp.ScopedCapture() as capture:
        x.grad.zero_()
        with wp.Tape() as tape:
            y[ix] = x
            ix.fill_(3)
        tape.backward(grads={y: seed})
        ix.assign([1, 0, 1])
    wp.capture_launch(capture.graph)
    assert x.grad.list() == [0.0, 1.0, 10.0]
