"""Entries of graphs that nobody needs."""

import numpy as np
import pytest

import treadle as wp
from treadle.runtime.dead import needed, settled
from treadle.runtime.graph import Table
from treadle.runtime.ranges import Ranges

pytestmark = pytest.mark.host  # a graph of a GPU is the driver's and has no entries that could be left out


@wp.kernel
def halve(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 0.5 * x[i]


def captured(work):
    with wp.ScopedCapture() as capture:
        work()
    return capture.graph


def names(entries) -> list[str]:
    return [getattr(e, "name", None) or e.program.name for e in entries]


def of(a) -> tuple[int, int]:
    return a.ptr, a.ptr + a.nbytes


def test_what_is_overwritten_unread_goes():
    a, b, c = (wp.zeros(64, dtype=float) for _ in range(3))

    def work():
        b.zero_()
        wp.launch(halve, 64, [a], [b])
        wp.copy(c, b)
        b.fill_(1.0)
        wp.copy(b, a)
        wp.launch(halve, 64, [b], [c])

    entries = captured(work).entries
    assert len(needed(entries, Ranges())[0]) == len(entries) - 1  # what others may look at stays
    kept, unread = needed(entries, Ranges([of(b)]))
    assert names(kept) == [*names(entries)[:3], *names(entries)[-2:]]  # a launch may skip some, so b's zeros stay
    assert unread.holds(*of(b)) and not unread.meets(*of(a))
    assert needed(entries, Ranges([of(b), of(c)]))[0] == []


def test_backward_passes_run_forward_no_further_than_they_must():
    x, g = wp.array([1.0, 2.0], dtype=float), wp.zeros(2, dtype=float)
    x.grad = g

    def work():
        state = wp.clone(x)
        with wp.Tape() as tape:
            wp.copy(state, x)
            for _ in range(3):
                wp.launch(halve, 2, [state], [state])
        tape.backward(grads={state: wp.ones_like(state)})

    graph = captured(work)
    table = Table(graph, [x, g], [x])
    assert names(table.entries).count("halve") < names(graph.entries).count("halve") == 6
    assert table.uses == ["unused", "written"]
    wp.capture_launch(graph)
    assert np.array_equal(g.numpy(), [0.125, 0.125])


def test_sums_onto_zeros_are_copies():
    a, b = wp.ones((4, 3), dtype=float), wp.zeros((3, 4), dtype=float, requires_grad=True)

    def work():
        b.grad.zero_()
        with wp.Tape() as tape:
            shown = wp.clone(b.transpose())
        tape.backward(grads={shown: a})

    entries = captured(work).entries
    assert "sum" in names(entries) and "sum" not in names(settled(entries))
