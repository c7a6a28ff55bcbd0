"""Accesses to arrays that are reached through lists of indices, written as accesses to the views they are made of.

An element of an indexed array is an element of its data at indices that are read from memory first. Later phases see
nothing but these loads: bounds, effects, derivatives and lanes follow from them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..types.core import Indexed, View, i32, indexed, view
from .builder import Builder
from .node import Value


def listed(b: Builder, v: Value, axis: int) -> Value | None:
    """The view of the indices of dimension ``axis`` of an indexed array; None where it has no list."""
    part = v.type.axes[axis]
    return b.extract(v, part) if part else None


def extent(b: Builder, v: Value, axis: int) -> Value:
    """How many elements an array, indexed or not, has along ``axis``."""
    if isinstance(v.type, Indexed):
        found = listed(b, v, axis)
        return b.one("shape", (b.extract(v, 0),), i32, axis=axis) if found is None else extent(b, found, 0)
    return b.one("shape", (v,), i32, axis=axis)


def located(b: Builder, v: Value, indices: Sequence[Value]) -> tuple[Value, tuple[Value, ...]]:
    """The view, and the indices in it, that ``v[indices]`` means in its leading dimensions; of a view both as given."""
    if not isinstance(v.type, Indexed):
        return v, tuple(indices)
    found = []
    for axis, i in enumerate(indices):
        places = listed(b, v, axis)
        found.append(i if places is None else b.one("load", (places, i), i32))
    return b.extract(v, 0), tuple(found)


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
