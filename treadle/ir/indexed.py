"""Accesses to arrays that are reached through lists of indices, written as accesses to the views they are made of.

An element of an indexed array is an element of its data at indices that are read from memory first; one of an array in
buckets is found by bisection of where buckets end. Later phases see nothing but these loads: bounds, effects,
derivatives and lanes follow from them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..types.core import Bucketed, Indexed, Struct, View, b1, i32, indexed, u64, view
from ..types.spelling import FAMILIES, spell
from .builder import Builder
from .node import Value


def listed(b: Builder, v: Value, axis: int) -> Value | None:
    """The view of the indices of dimension ``axis`` of an indexed array; None where it has no list."""
    part = v.type.axes[axis]
    return b.extract(v, part) if part else None


def extent(b: Builder, v: Value, axis: int) -> Value:
    """How many elements an array, indexed or not, has along ``axis``."""
    if isinstance(v.type, Bucketed) and not v.type.listed:
        return b.extract(v, v.type.index["total"])
    if isinstance(v.type, Indexed):
        found = listed(b, v, axis)
        return b.one("shape", (b.extract(v, 0),), i32, axis=axis) if found is None else extent(b, found, 0)
    return b.one("shape", (v,), i32, axis=axis)


def extents(b: Builder, v: Value) -> tuple[Value, ...]:
    """The extents of an array along each dimension; of an array of arrays, whose lengths differ, how many there are."""
    return tuple([extent(b, v, axis) for axis in range(1 if isinstance(v.type, Bucketed) else v.type.ndim)])


def located(b: Builder, v: Value, indices: Sequence[Value]) -> tuple[Value, tuple[Value, ...]]:
    """The view, and the indices in it, that ``v[indices]`` means in its leading dimensions; of a view both as given.

    What one index means in an array of arrays is a view with no index.
    """
    if isinstance(v.type, Bucketed):
        return _in_bucket(b, v, indices)
    if not isinstance(v.type, Indexed):
        return v, tuple(indices)
    found = []
    for axis, i in enumerate(indices):
        places = listed(b, v, axis)
        found.append(i if places is None else b.one("load", (places, i), i32))
    return b.extract(v, 0), tuple(found)


def _in_bucket(b: Builder, v: Value, indices: Sequence[Value]) -> tuple[Value, tuple[Value, ...]]:
    """:func:`located` of an array in buckets. An index below zero counts from the end of all of them."""
    t, places = v.type, listed(b, v, 0)
    i = indices[0] if indices[0].type is i32 else b.one("cast", (indices[0],), i32)
    i = i if places is None else b.one("load", (places, i), i32)
    total = b.extract(v, t.index["total"])
    given, negative = i, b.one("lt", (i, b.i32(0)), b1)
    i = b.one("select", (negative, b.one("add", (i, total), i32), i), i32)
    ok = b.one("bitand", (b.one("ge", (i, b.i32(0)), b1), b.one("lt", (i, total), b1)), b1)
    whole = f"a {FAMILIES['fabricarray']} of {spell(t.elem)}"
    b.op("check", (ok, given), kind="component", message=whole, optional=True)
    ends = b.extract(v, t.index["ends"])
    k = _first_beyond(b, ends, i)
    items = _of_bucket(b, v, "addresses" if t.nested else "data", k)
    start = b.one("sub", (b.one("load", (ends, k), i32), b.one("shape", (items,), i32, axis=0)), i32)
    at = b.one("sub", (i, start), i32)
    if not t.nested:
        return items, (at,)
    length = b.one("load", (_of_bucket(b, v, "lengths", k), at), u64)
    row = b.one("view_at", (b.one("load", (items, at), u64), b.one("cast", (length,), i32)), view(t.elem, 1))
    return row, tuple(indices[1:])


def _of_bucket(b: Builder, v: Value, name: str, k: Value) -> Value:
    """The array called ``name`` of bucket number ``k``."""
    buckets = b.extract(v, v.type.index["buckets"])
    bucket: Struct = buckets.type.elem
    number = bucket.index[name]
    part = bucket.fields[number][1]
    seen = b.one("field", (buckets,), view(part, 1, buckets.type.strides), index=number)
    return b.one("load", (seen, k), part)


def _first_beyond(b: Builder, ends: Value, i: Value) -> Value:
    """The first place in ``ends``, which is sorted, with a number above ``i``; the last one where none is."""
    low, high = Value(i32), Value(i32)
    inner = Builder(b.span)
    open_ = inner.one("lt", (low, high), b1)
    middle = inner.one("add", (low, high), i32)
    middle = inner.one("div", (middle, inner.i32(2)), i32)
    below = inner.one("le", (inner.one("load", (ends, middle), i32), i), b1)
    up = inner.one("bitand", (open_, below), b1)
    next_low = inner.one("select", (up, inner.one("add", (middle, inner.i32(1)), i32), low), i32)
    next_high = inner.one("select", (below, high, middle), i32)
    stay = inner.one("lt", (next_low, next_high), b1)
    block = inner.block((low, high), (stay, next_low, next_high))
    last = b.one("sub", (b.one("shape", (ends,), i32, axis=0), b.i32(1)), i32)
    return b.op("while", (b.i32(0), last), (i32, i32), (block,), bounded=True)[0]


def remade(b: Builder, data: Value, indices: Sequence[Value | None]) -> Value:
    """The indexed array of ``data`` and, for each of its dimensions, a view of indices or None."""
    t = indexed(data.type, tuple([i and i.type for i in indices]))
    return b.one("make", (data, *[i for i in indices if i is not None]), t)


def narrowed(b: Builder, v: Value, axis: int, at: Value) -> Value:
    """``v`` without dimension ``axis``, which stands at index ``at``."""
    data, places = b.extract(v, 0), listed(b, v, axis)
    at = at if places is None else b.one("load", (places, at), i32)
    t: View = data.type
    left = view(t.elem, t.ndim - 1, (*t.strides[:axis], *t.strides[axis + 1 :]), t.planar, t.space)
    made = b.op("subview", (data, at), (left,), **({"axis": axis} if axis else {}))[0]
    return remade(b, made, [listed(b, v, k) for k in range(t.ndim) if k != axis])
