"""What arrays and indexed arrays say alike."""

import gc
import weakref

import numpy as np
import pytest

import treadle as wp

BASE = np.arange(12.0, dtype=np.float32).reshape(3, 4)


def arrays():
    whole = wp.array(BASE, dtype=float)
    rows = wp.array([2, 0], dtype=int)
    return [(whole, BASE), (wp.indexedarray(whole, [rows, None]), BASE[[2, 0]])]


@pytest.mark.parametrize(("a", "want"), arrays())
def test_facts_and_elements_are_those_of_numpy(a, want):
    assert (a.shape, a.ndim, a.size, len(a)) == (want.shape, want.ndim, want.size, len(want))
    assert a.dtype is wp.float32 and not a.pinned
    assert a.list() == want.ravel().tolist() and str(a) == str(want)
    for row, other in zip(a, want, strict=True):
        assert (row.numpy() == other).all()


class Tagged(wp.array):
    def __init__(self, *args, tag, **kwargs):
        self.tag = tag
        super().__init__(*args, **kwargs)


class TaggedRows(wp.indexedarray):
    def __init__(self, *args, tag, **kwargs):
        super().__init__(*args, **kwargs)
        self.tag = tag


def test_classes_may_be_derived_from():
    @wp.kernel
    def double(a: wp.array(dtype=float), b: wp.indexedarray(dtype=float), c: wp.array(dtype=float)):
        i = wp.tid()
        c[i] = 2.0 * a[i] + b[i]

    a = Tagged([1.0, 2.0, 3.0], dtype=float, tag="in", requires_grad=True)
    b = TaggedRows(a, wp.array([2, 1, 0], dtype=int), tag="rows")
    c = Tagged(shape=3, dtype=float, tag="out", requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(double, dim=3, inputs=[a, b], outputs=[c])
    assert (a.tag, b.tag, c.tag, c.list()) == ("in", "rows", "out", [5.0, 6.0, 7.0])
    tape.backward(grads={c: wp.ones(3, dtype=float)})
    assert a.grad.list() == [3.0, 3.0, 3.0]
    assert type(a[1:]) is wp.array and type(wp.zeros_like(c)) is wp.array and type(b[:2]) is wp.indexedarray
    view, alive = a[1:], weakref.ref(a)  # whose class may free what it holds when it goes
    del a, b, tape
    gc.collect()
    assert alive() is not None and view.list() == [2.0, 3.0]
    del view
    gc.collect()
    assert alive() is None
    with pytest.raises(TypeError, match="needs elements"):
        Tagged(dtype=float, tag="none")
    with pytest.raises(TypeError, match=r"Subscript syntax not supported by Tagged: annotate wp.array\[…\]"):
        Tagged[float]
    with pytest.raises(wp.KernelTypeError, match="an array is a value, no annotation"):

        @wp.func
        def first(a: c):
            return a[0]


@pytest.mark.host
def test_pointers_of_c_show_elements():
    @wp.struct
    class Pair:
        flag: bool
        weights: wp.array(dtype=float)
        v: wp.vec2h
        m: wp.mat22d

    rows = wp.array([Pair(True, None, wp.vec2h(1.0, 2.0), wp.mat22d(1.0, 2.0, 3.0, 4.0))] * 2, dtype=Pair)
    second = rows.cptr()[1]
    assert second.flag is True and [*second.v] == [0x3C00, 0x4000] and second.m[1][0] == 3.0
    assert [wp.array([1, 2], dtype=wp.int8).cptr()[i] for i in (0, 1)] == [1, 2] and not wp.zeros(0, dtype=int).cptr()
    with pytest.raises(RuntimeError, match="contiguous"):
        wp.zeros((2, 2), dtype=int).transpose().cptr()


def test_arrays_take_attributes_and_other_classes():
    a = wp.zeros(2, dtype=float)
    a.note = "mine"
    a.__class__ = type("Kept", (wp.array,), {})
    assert a.note == "mine" and isinstance(a, wp.array) and a.list() == [0.0, 0.0]
