"""Tiles and memory by lists of indices; what single threads put into tiles; tiles of random numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ..ir.builder import Builder
from ..ir.node import Value
from ..types.core import INTS, Indexed, Scalar, Tile, Type, View, b1, f32, i32, tile, u32
from ..types.promotion import adapts
from ..types.spelling import spell
from .constructors import convert, zero
from .language import atomic_add, randf, randi
from .patterns import Any, Known
from .registry import Mismatch
from .tile_bodies import clear
from .tile_terms import Given, Plan, blank, call, element, filled_with, offsets, places, planned, shape_of, stored

SHAPE, AXIS, STORAGE = Known("a constant int or tuple"), Known("a constant int"), Known("a constant string")

# -- one axis by a list of indices; ``axis`` is counted from the dimension at hand -------------------------------------


@cache
def gather(rank: int, axis: int) -> Callable:
    """What loads a tile of the last ``rank`` dimensions."""
    if rank == 1:

        def row(a, t, listed, at, nothing, i):
            for c in range(t.shape[-1]):
                x = i + c
                if axis == 0:
                    x = i + listed[c]
                found = nothing
                if x >= 0 and x < a.shape[0]:
                    found = a[x]
                t[at + c] = found
            return t

        return row
    inner = gather(rank - 1, axis - 1)
    return _nested(rank, axis, inner)


def _nested(rank: int, axis: int, inner: Callable) -> Callable:
    """The loop over a dimension around ``inner``; rows that lie outside are cleared."""

    def plane(a, t, listed, at, nothing, i, j):
        n = t.shape[-1]
        for r in range(t.shape[-2]):
            x = i + r
            if axis == 0:
                x = i + listed[r]
            if x >= 0 and x < a.shape[0]:
                t = inner(a[x], t, listed, at + r * n, nothing, j)
            else:
                t = clear(t, at + r * n, n, nothing)
        return t

    def box(a, t, listed, at, nothing, i, j, k):
        n = t.shape[-1] * t.shape[-2]
        for r in range(t.shape[-3]):
            x = i + r
            if axis == 0:
                x = i + listed[r]
            if x >= 0 and x < a.shape[0]:
                t = inner(a[x], t, listed, at + r * n, nothing, j, k)
            else:
                t = clear(t, at + r * n, n, nothing)
        return t

    def boxes(a, t, listed, at, nothing, i, j, k, l):  # noqa: E741
        n = t.shape[-1] * t.shape[-2] * t.shape[-3]
        for r in range(t.shape[-4]):
            x = i + r
            if axis == 0:
                x = i + listed[r]
            if x >= 0 and x < a.shape[0]:
                t = inner(a[x], t, listed, at + r * n, nothing, j, k, l)
            else:
                t = clear(t, at + r * n, n, nothing)
        return t

    return (plane, box, boxes)[rank - 2]


@cache
def scatter(rank: int, axis: int, adds: bool) -> Callable:
    """What writes a tile of the last ``rank`` dimensions, or adds it."""
    if rank == 1:

        def row(a, t, listed, at, i):
            for c in range(t.shape[-1]):
                x = i + c
                if axis == 0:
                    x = i + listed[c]
                if x >= 0 and x < a.shape[0]:
                    if adds:
                        atomic_add(a, x, t[at + c])
                    else:
                        a[x] = t[at + c]

        return row
    inner = scatter(rank - 1, axis - 1, adds)

    def plane(a, t, listed, at, i, j):
        for r in range(t.shape[-2]):
            x = i + r
            if axis == 0:
                x = i + listed[r]
            if x >= 0 and x < a.shape[0]:
                inner(a[x], t, listed, at + r * t.shape[-1], j)

    def box(a, t, listed, at, i, j, k):
        for r in range(t.shape[-3]):
            x = i + r
            if axis == 0:
                x = i + listed[r]
            if x >= 0 and x < a.shape[0]:
                inner(a[x], t, listed, at + r * t.shape[-1] * t.shape[-2], j, k)

    def boxes(a, t, listed, at, i, j, k, l):  # noqa: E741
        for r in range(t.shape[-4]):
            x = i + r
            if axis == 0:
                x = i + listed[r]
            if x >= 0 and x < a.shape[0]:
                inner(a[x], t, listed, at + r * t.shape[-1] * t.shape[-2] * t.shape[-3], j, k, l)

    return (plane, box, boxes)[rank - 2]


def _place(given: Given, shape: tuple[int, ...]) -> tuple[View | Indexed, Tile, int, dict[str, Type]]:
    """The array, the tile of indices, the axis they are of, and the types of the arguments."""
    a, listed = given["a"].type, given.tile("indices")
    if not isinstance(a, View | Indexed):
        raise Mismatch(f"argument 'a' must be an array, not {given['a'].show()}")
    if len(shape) != a.ndim:
        raise Mismatch(f"the shape must have {a.ndim} numbers, as the array has dimensions, not {shape}")
    axis = given.value("axis", 0)
    if not isinstance(axis, int) or not 0 <= axis < a.ndim:
        raise Mismatch(f"argument 'axis' must be one of the {a.ndim} axes of the array, not {axis!r}")
    if listed.item is not i32 or listed.shape != (shape[axis],):
        raise Mismatch(f"argument 'indices' must be a tile of {shape[axis]} int32, it is {spell(listed)}")
    types: dict[str, Type] = {"a": a, "indices": listed}
    offset = offsets(given, "offset", a.ndim)
    return a, listed, axis, types if offset is None else {**types, "offset": offset}


@planned
class tile_load_indexed:
    """A tile of the elements of ``a`` whose index on ``axis`` is listed in the tile ``indices``; others as in
    :func:`tile_load`. What lies outside of the array is zero."""

    def sig(a: Any, indices: Any, shape: SHAPE, offset: Any = (), axis: AXIS = 0, storage: STORAGE = "register"): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        stored(given)
        shape = shape_of(given)
        a, _, axis, types = _place(given, shape)
        t = tile(element(a.elem), shape)

        def emit(b: Builder, v: dict[str, Value]) -> Value:
            at = places(b, given, v, "offset", a.ndim)
            start = (v["a"], blank(b, t), v["indices"], b.i32(0), zero(b, a.elem))
            return call(b, given.context, gather(a.ndim, axis), *start, *at)

        return Plan(t, types, emit)


def _written(adds: bool):
    def plan(given: Given) -> Plan:
        t = given.tile("t")
        a, _, axis, types = _place(given, t.shape)
        if t.item is not a.elem:
            raise Mismatch(f"argument 't' must be a tile of {spell(a.elem)}, it is {spell(t)}")

        def emit(b: Builder, v: dict[str, Value]) -> Value | None:
            at = places(b, given, v, "offset", a.ndim)
            call(b, given.context, scatter(a.ndim, axis, adds), v["a"], v["t"], v["indices"], b.i32(0), *at)
            return v["t"] if adds else None

        return Plan(t if adds else None, {**types, "t": t}, emit)

    return plan


@planned
class tile_store_indexed:
    """Write a tile to the elements of ``a`` whose index on ``axis`` is listed in the tile ``indices``. What would lie
    outside of the array is dropped."""

    def sig(a: Any, indices: Any, t: Any, offset: Any = (), axis: AXIS = 0): ...

    plan = staticmethod(_written(False))


@planned
class tile_atomic_add_indexed:
    """Add a tile to the elements of ``a`` whose index on ``axis`` is listed in ``indices``, each in one step; gives the
    tile that was added."""

    def sig(a: Any, indices: Any, t: Any, offset: Any = (), axis: AXIS = 0): ...

    plan = staticmethod(_written(True))


# -- what single threads put into tiles --------------------------------------------------------------------------------


def put(t, k, value, has_value):
    if has_value:
        t[k] = value
    return t


def put_more(t, k, value, has_value):
    if has_value:
        t[k] += value
    return t


def _from_threads(body: Callable):
    def plan(given: Given) -> Plan:
        t, rank = given.tile("a"), len(given.tile("a").shape)
        names = [name for name in given if name not in ("a", "atomic")]
        if len(names) != rank + 2:
            raise Mismatch(f"{spell(t)} takes {rank} indices, a value and whether there is one")
        *at, value, has = names
        if any(given[name].type not in INTS for name in at):
            raise Mismatch("indices must be integers")
        if given[has].type is not b1:
            raise Mismatch(f"whether there is a value must be a bool, not {given[has].show()}")
        types = {name: given[name].type for name in at}

        def emit(b: Builder, v: dict[str, Value]) -> Value:
            k = b.i32(0)
            for name, n in zip(at, t.shape):
                k = b.one("add", (b.one("mul", (k, b.i32(n)), i32), convert(b, v[name], i32)), i32)
            x = convert(b, v[value], t.item) if isinstance(t.item, Scalar) else v[value]
            return call(b, given.context, body, v["a"], k, x, v[has])

        return Plan(None, {"a": t, **types, value: filled_with(given, value, t.item), has: b1}, emit)

    return plan


@planned
class tile_scatter_add:
    """Add ``value`` to the element of tile ``a`` at the indices, in each thread whose ``has_value`` is true:
    ``tile_scatter_add(a, i, value, has_value)``, with as many indices as ``a`` has dimensions."""

    updates = ("a",)

    def sig(a: Any, *indices_value_has_value: Any, atomic: Known("a constant bool") = True): ...

    plan = staticmethod(_from_threads(put_more))


@planned
class tile_scatter_masked:
    """Write ``value`` to the element of tile ``a`` at the indices, in each thread whose ``has_value`` is true."""

    updates = ("a",)

    def sig(a: Any, *indices_value_has_value: Any): ...

    plan = staticmethod(_from_threads(put))


# -- random numbers ----------------------------------------------------------------------------------------------------


# The generator makes one step first, as that of the field does for the thread that it is in.


def fill_randf(t, state):
    randi(state)
    for k in range(t.size):
        t[k] = randf(state)
    return t


def fill_randf_between(t, state, low, high):
    randi(state)
    for k in range(t.size):
        t[k] = randf(state, low, high)
    return t


def fill_randi(t, state):
    randi(state)
    for k in range(t.size):
        t[k] = randi(state)
    return t


def fill_randi_between(t, state, low, high):
    randi(state)
    for k in range(t.size):
        t[k] = randi(state, low, high)
    return t


def _random(item: Scalar, body: Callable, between: Callable):
    def plan(given: Given) -> Plan:
        stored(given)
        t, bounds = tile(item, shape_of(given)), [name for name in ("min", "max") if name in given]
        if given["rng"].type is not u32:
            raise Mismatch(f"argument 'rng' must be uint32, as wp.rand_init gives it, not {given['rng'].show()}")
        if len(bounds) == 1:
            raise Mismatch("min and max go together")
        for name in bounds:
            if not (given[name].type is item or given[name].literal and adapts(given[name].value, item)):
                raise Mismatch(f"argument {name!r} must be {spell(item)}, not {given[name].show()}")

        def emit(b: Builder, v: dict[str, Value]) -> Value:
            limits = [v[name] for name in bounds]
            return call(b, given.context, between if bounds else body, blank(b, t), v["rng"], *limits)

        return Plan(t, {"rng": u32, **dict.fromkeys(bounds, item)}, emit)

    return plan


@planned
class tile_randf:
    """A tile of random float32 in [0, 1), or in [min, max), drawn one after the other from ``rng``, which stays."""

    def sig(shape: SHAPE, rng: Any, min: Any = None, max: Any = None, storage: STORAGE = "register"): ...

    plan = staticmethod(_random(f32, fill_randf, fill_randf_between))


@planned
class tile_randi:
    """A tile of random int32, or of such in [min, max), drawn one after the other from ``rng``, which stays."""

    def sig(shape: SHAPE, rng: Any, min: Any = None, max: Any = None, storage: STORAGE = "register"): ...

    plan = staticmethod(_random(i32, fill_randi, fill_randi_between))
