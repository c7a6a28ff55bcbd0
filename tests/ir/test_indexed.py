"""Accesses to indexed arrays become accesses to the views they are made of."""

import numpy as np

from tests.frontend.language import error, program, run, wp
from treadle.ir.builder import Builder
from treadle.ir.indexed import extent, located, narrowed, remade
from treadle.ir.node import Value
from treadle.ir.read import read
from treadle.ir.show import show
from treadle.ir.verify import verify
from treadle.ir.walk import ops_of
from treadle.passes.pipeline import LOWER, NORMALIZE
from treadle.passes.pipeline import run as passes
from treadle.types.core import f32, i32, indexed, view

LIST = view(i32, 1)
ROWS = indexed(view(f32, 2), (LIST, None))
BOTH = indexed(view(f32, 2), (LIST, LIST))
LINE = indexed(view(f32, 1), (LIST,))


def test_an_access_reads_the_lists_and_then_the_data():
    b = Builder()
    v, i, j = Value(ROWS), Value(i32), Value(i32)
    data, (row, column) = located(b, v, (i, j))
    assert data.type is ROWS.data and column is j and row is not i
    assert [op.name for op in b.ops] == ["extract", "load", "extract"]
    plain = Value(view(f32, 2))
    assert located(b, plain, (i, j)) == (plain, (i, j)) and len(b.ops) == 3


def test_fewer_dimensions():
    b = Builder()
    v, i = Value(BOTH), Value(i32)
    assert narrowed(b, v, 0, i).type is LINE
    assert narrowed(b, v, 1, i).type is indexed(view(f32, 1, (None,)), (LIST,))
    assert narrowed(b, Value(ROWS), 0, i).type is indexed(view(f32, 1), (None,))
    assert narrowed(b, Value(ROWS), 1, i).type is indexed(view(f32, 1, (None,)), (LIST,))
    assert remade(b, Value(view(f32, 2)), (Value(LIST), None)).type is ROWS


def test_lengths_are_those_of_the_lists():
    b = Builder()
    v = Value(ROWS)
    extent(b, v, 0)
    extent(b, v, 1)
    assert [(op.name, op.attrs.get("index", op.attrs.get("axis"))) for op in b.ops] == [
        ("extract", 1), ("shape", 0), ("extract", 0), ("shape", 1),
    ]  # fmt: skip


def everything(a, out):
    i, j = wp.tid()
    row = a[i]
    out[i, j] = a[i, j] + row[j] * 10.0 + a[i][j] * 100.0
    part = a[1:, ::2]
    if j == 0:
        out[i, 0] += float(len(a)) + float(a.shape[1]) * 0.5 + part[0][0] + float(part.shape[1]) + a[-1, -1]


def test_the_oracle_agrees_with_numpy():
    rows, columns = [2, 0, 2], [1, 3, 0]
    for t, lists in ((BOTH, (rows, columns)), (ROWS, (rows, range(4)))):
        data = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
        x = data[np.ix_(*lists)]
        out = np.zeros(x.shape, np.float32)
        given = [data, *[np.array(n, np.int32) for n, axis in zip(lists, t.axes, strict=True) if axis]]
        run(everything, [given, out], [t, view(f32, 2)], dim=x.shape)
        expected = x * 111
        expected[:, 0] += len(x) + x.shape[1] * 0.5 + x[1, 0] + (x.shape[1] + 1) // 2 + x[-1, -1]
        assert np.allclose(out, expected, rtol=1e-5)


def test_later_phases_see_nothing_but_views():
    func = program(everything, [BOTH, view(f32, 2)], grid=2)
    text = show(func)
    assert "indexed<view<f32,2,(?,4)>,view<i32,1,(4)>,view<i32,1,(4)>>" in text
    assert show(verify(read(text))) == text
    lowered = verify(passes(LOWER, passes(NORMALIZE, func)))
    assert [p.type for p in lowered.params] == [view(f32, 2), LIST, LIST, view(f32, 2)]
    assert {op.name for op in ops_of(lowered.body)} & {"make", "extract"} == set()


def test_what_cannot_be_done_is_told():
    def store_a_row(a):
        a[0] = 1.0

    def too_many(a):
        a[0, 0, 0] = 1.0

    def no_pointer(a):
        x = a.ptr

    def sum_of_arrays(a):
        x = a + a

    assert "each of its dimensions needs an index" in str(error(store_a_row, [ROWS]))
    assert "array indexing: 3, the array has 2 dimensions" in str(error(too_many, [ROWS]))
    assert "`ptr` is not an attribute of an indexed array" in str(error(no_pointer, [ROWS]))
    assert "cannot take indexedarray(dtype=float32, ndim=2)" in str(error(sum_of_arrays, [ROWS]))
