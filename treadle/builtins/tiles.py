"""Tiles: arrays of a block of threads, of a shape known while compiling; making, loading, storing, rearranging them.

On a CPU a block is one thread, so a tile is the thread's own array; gangs run many blocks side by side. Tiles are
values: assigning one to another variable copies it, and so do views of a part. ``storage`` ("register" or "shared")
tells a GPU where to keep it and is without effect here.
"""

from __future__ import annotations

from math import prod

from ..ir.builder import Builder
from ..ir.node import Value
from ..types.core import ARITHMETIC, INTS, Indexed, Matrix, Scalar, Tile, Type, View, f32, i32, matrix, vector
from ..types.core import tile as tile_of
from ..types.promotion import literal_type
from ..types.spelling import spell
from . import tile_bodies as bodies
from .constructors import convert, zero
from .patterns import Any, Known
from .registry import Mismatch
from .tile_parts import four, placed, steps_of, taken
from .tile_terms import (
    Given,
    Plan,
    blank,
    call,
    element,
    elements,
    filled_with,
    item_of,
    offsets,
    places,
    planned,
    shape_of,
    stored,
)

SHAPE, DTYPE, STORAGE = Known("a constant int or tuple"), Known("a type"), Known("a constant string")

# -- making ------------------------------------------------------------------------------------------------------------


def _constant(number: float | None):
    """A rule for tiles whose elements are all ``number``; None leaves them as they are."""

    def plan(given: Given) -> Plan:
        stored(given)
        item = item_of(given)
        t = tile_of(item, shape_of(given))

        def emit(b: Builder, values: dict[str, Value]) -> Value:
            one = zero(b, item)
            if number:
                scalar = item if isinstance(item, Scalar) else item.elem
                part = b.const(number if scalar.is_float else bool(number) if scalar.kind == "b" else 1, scalar)
                one = part if isinstance(item, Scalar) else b.one("make", (part,) * item.n, item)
            return call(b, given.context, bodies.fill, blank(b, t), one)

        return Plan(t, {}, emit)

    return plan


@planned
class tile_zeros:
    """A tile whose elements are zero: ``wp.tile_zeros(shape=(4, 4), dtype=float)``. ``shape`` is a constant."""

    def sig(shape: SHAPE, dtype: DTYPE = float, storage: STORAGE = "register"): ...

    plan = staticmethod(_constant(0.0))


@planned
class tile_ones:
    """A tile whose elements are one."""

    def sig(shape: SHAPE, dtype: DTYPE = float, storage: STORAGE = "register"): ...

    plan = staticmethod(_constant(1.0))


@planned
class tile_empty:
    """A tile to be filled; its elements are zero, which a GPU does not promise."""

    def sig(shape: SHAPE, dtype: DTYPE = float, storage: STORAGE = "register"): ...

    plan = staticmethod(_constant(0.0))


def _filled(given: Given) -> Plan:
    stored(given)
    item = item_of(given) if "dtype" in given else element(given["value"].type)
    t = tile_of(item, shape_of(given))

    def emit(b: Builder, values: dict[str, Value]) -> Value:
        x = values["value"]
        return call(b, given.context, bodies.fill, blank(b, t), convert(b, x, item) if isinstance(item, Scalar) else x)

    return Plan(t, {"value": filled_with(given, "value", item), **_index(given, "thread_idx")}, emit)


def _index(given: Given, name: str) -> dict[str, Type]:
    if name not in given:
        return {}
    t = given[name].type
    if t not in INTS:
        raise Mismatch(f"argument {name!r} must be an integer, not {given[name].show()}")
    return {name: t}


@planned
class tile_full:
    """A tile whose elements are ``value``."""

    def sig(shape: SHAPE, value: Any, dtype: DTYPE = float, storage: STORAGE = "register"): ...

    plan = staticmethod(_filled)


@planned
class tile_from_thread:
    """A tile whose elements are the ``value`` of one thread of the block; on a CPU the block has only this one."""

    def sig(shape: SHAPE, value: Any, thread_idx: Any = 0, storage: STORAGE = "register"): ...

    plan = staticmethod(_filled)


@planned
class tile_arange:
    """A tile of evenly spaced numbers: ``tile_arange(stop)``, ``(start, stop)`` or ``(start, stop, step)``, constants.

    ``dtype`` is that of the numbers unless given.
    """

    def sig(*args: Any, dtype: DTYPE = None, storage: STORAGE = "register"): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        stored(given)
        numbers = [given[name] for name in given if name.isdigit()]
        known = [getattr(a.value, "value", a.value) for a in numbers]
        if not 1 <= len(known) <= 3 or not all(isinstance(k, int | float) for k in known):
            raise Mismatch("tile_arange takes one to three constant numbers")
        start, stop, step = (0, known[0], 1) if len(known) == 1 else (*known, 1)[:3]
        if step == 0:
            raise Mismatch("the step of tile_arange cannot be 0")
        floats = any(isinstance(k, float) for k in known)
        typed = next((a.type for a in numbers if not a.literal), None)
        item = item_of(given) if given.value("dtype") else typed or (f32 if floats else literal_type(0))
        if item not in ARITHMETIC:
            raise Mismatch(f"argument 'dtype' must be a numeric scalar dtype, not {spell(item)}")
        count = -((start - stop) // step)
        if not 0 < count < 2**31:
            raise Mismatch("this range is empty" if count <= 0 else "this range has too many numbers")
        count = int(count)
        t, number = tile_of(item, (count,)), float if item.is_float else int

        def emit(b: Builder, values: dict[str, Value]) -> Value:
            first, by = (b.const(number(k), item) for k in (start, step))
            return call(b, given.context, bodies.count_up, blank(b, t), first, by)

        return Plan(t, {}, emit)


@planned
class tile:
    """A tile with a value of each thread of the block: of one element on a CPU.

    A vector becomes a column, a matrix a stack of its rows, unless ``preserve_type`` keeps them as elements.
    """

    def sig(x: Any, preserve_type: Known("a constant bool") = False): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        x = element(given["x"].type)
        if isinstance(x, Scalar) or given.value("preserve_type", False):
            t = tile_of(x, (1,))
        else:
            t = tile_of(x.elem, (x.rows, x.cols, 1) if isinstance(x, Matrix) else (x.n, 1))

        def emit(b: Builder, values: dict[str, Value]) -> Value:
            v = values["x"]
            return b.one("make", (v,) if isinstance(x, Scalar) else tuple(b.parts(v)), t)

        return Plan(t, {"x": x}, emit)



@planned
class untile:
    """The value that each thread of the block has in a tile; what :func:`tile` made a tile of."""

    def sig(a: Any): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        t = given.tile("a")
        lengths = t.shape[:-1] if t.shape[-1] == 1 else None
        if lengths is None or len(lengths) > 2 or (lengths and not isinstance(t.item, Scalar)):
            raise Mismatch(f"argument 'a' must have one element a thread along its last axis, as wp.tile makes it; "
                           f"it is {spell(t)}")  # fmt: skip
        x = t.item if not lengths else vector(lengths[0], t.elem) if len(lengths) == 1 else matrix(*lengths, t.elem)

        def emit(b: Builder, values: dict[str, Value]) -> Value:
            parts = tuple([b.extract(values["a"], k) for k in range(t.n)])
            return parts[0] if isinstance(x, Scalar) else b.one("make", parts, x)

        return Plan(x, {"a": t}, emit)


# -- memory ------------------------------------------------------------------------------------------------------------


def _array(given: Given, name: str = "a") -> View | Indexed:
    t = given[name].type
    if not isinstance(t, View | Indexed):
        raise Mismatch(f"argument {name!r} must be an array, not {given[name].show()}")
    return t


def _held(given: Given, a: View | Indexed, t: Tile) -> None:
    if t.item is not a.elem or len(t.shape) != a.ndim:
        raise Mismatch(f"argument 't' must be a tile of {spell(a.elem)} with {a.ndim} dimensions, it is {spell(t)}")


def _types(given: Given, count: int, **types: Type) -> dict[str, Type]:
    offset = offsets(given, "offset", count)
    return types if offset is None else {**types, "offset": offset}


@planned
class tile_load:
    """A tile of the elements of ``a`` from ``offset`` on. ``shape`` is a constant with as many numbers as ``a`` has
    dimensions. What lies outside of the array is zero.

    ``bounds_check`` and ``aligned`` are promises that a GPU can make use of.
    """

    def sig(a: Any, shape: SHAPE, offset: Any = (), storage: STORAGE = "register", bounds_check: Known("a bool") = True,
            aligned: Known("a bool") = False): ...  # fmt: skip

    @staticmethod
    def plan(given: Given) -> Plan:
        stored(given)
        a, shape = _array(given), shape_of(given)
        if len(shape) != a.ndim:
            raise Mismatch(f"argument 'shape' must have {a.ndim} numbers, as the array has dimensions, not {shape}")
        t = tile_of(element(a.elem), shape)

        def emit(b: Builder, values: dict[str, Value]) -> Value:
            at = places(b, given, values, "offset", a.ndim)
            start = (values["a"], blank(b, t), b.i32(0), zero(b, a.elem))
            return call(b, given.context, bodies.LOADS[a.ndim - 1], *start, *at)

        return Plan(t, _types(given, a.ndim, a=a), emit)


def _writing(row):
    """A rule for writing a tile into an array, its rows by ``row``."""

    def plan(given: Given) -> Plan:
        a, t = _array(given), given.tile("t")
        _held(given, a, t)
        gives = t if row is bodies.add_row else None

        def emit(b: Builder, values: dict[str, Value]) -> Value | None:
            at = places(b, given, values, "offset", a.ndim)
            call(b, given.context, bodies.writer(row, a.ndim), values["a"], values["t"], b.i32(0), *at)
            return values["t"] if gives else None

        return Plan(gives, _types(given, a.ndim, a=a, t=t), emit)

    return plan


@planned
class tile_store:
    """Write a tile into ``a`` from ``offset`` on. What would lie outside of the array is dropped."""

    def sig(a: Any, t: Any, offset: Any = (), bounds_check: Known("a bool") = True,
            aligned: Known("a bool") = False): ...  # fmt: skip

    plan = staticmethod(_writing(bodies.store_row))


@planned
class tile_atomic_add:
    """Add the elements of a tile to those of ``a`` from ``offset`` on, each in one step; what lies outside is dropped.

    Gives the tile that was added.
    """

    def sig(a: Any, t: Any, offset: Any = (), bounds_check: Known("a bool") = True,
            aligned: Known("a bool") = False): ...  # fmt: skip

    plan = staticmethod(_writing(bodies.add_row))


# -- parts and other shapes --------------------------------------------------------------------------------------------


def _first(b: Builder, at: list[Value], steps: tuple[int, ...]) -> Value:
    """The number of the element at indices ``at``."""
    found = b.i32(0)
    for k, step in zip(at, steps):
        found = b.one("add", (found, b.one("mul", (k, b.i32(step)), i32)), i32)
    return found


@planned
class tile_view:
    """A copy of the part of a tile from ``offset`` on. Without ``shape``: all that is there at the leading indices
    ``offset``, with the dimensions that follow."""

    def sig(t: Any, offset: Any, shape: SHAPE = None): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        t, rank = given.tile("t"), len(given.tile("t").shape)
        types = {**_types(given, rank), "t": t}
        steps = steps_of(t.shape)
        if given.value("shape") is not None:
            shape = shape_of(given)
            if len(shape) != rank or any(n > m for n, m in zip(shape, t.shape)):
                raise Mismatch(f"argument 'shape' must be that of a part of {spell(t)}, not {shape}")
            made = tile_of(t.item, shape)
            known = given.value("offset")
            for k, n, m in zip(known if isinstance(known, tuple) else (), shape, t.shape):
                if not 0 <= k <= m - n:
                    raise Mismatch(f"a part of shape {shape} from {known} on is out of bounds of {spell(t)}")
        else:
            kind = given["offset"].type
            items = getattr(kind, "items", None) or getattr(kind, "n", None)
            fixed = len(given.value("offset") or items or (0,)) if not isinstance(items, int) else items
            if fixed >= rank:
                raise Mismatch(f"an offset of {fixed} numbers leaves nothing of {spell(t)}", "give a shape too")
            made, steps = tile_of(t.item, t.shape[fixed:]), steps[fixed:]

        def emit(b: Builder, values: dict[str, Value]) -> Value:
            first = _first(b, places(b, given, values, "offset", rank), steps_of(t.shape))
            return taken(b, given.context, values["t"], made, steps, first)

        return Plan(made, types, emit)


@planned
class tile_assign:
    """Change the part of tile ``dst`` from ``offset`` on to ``src``."""

    updates = ("dst",)

    def sig(dst: Any, src: Any, offset: Any = ()): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        t, src = given.tile("dst"), given.tile("src")
        rank = len(t.shape)
        fits = src.item is t.item or isinstance(src.item, Scalar) and isinstance(t.item, Scalar)
        if not fits or len(src.shape) != rank or any(n > m for n, m in zip(src.shape, t.shape)):
            raise Mismatch(f"argument 'src' must be a part of {spell(t)}, it is {spell(src)}")

        def emit(b: Builder, values: dict[str, Value]) -> Value:
            first = _first(b, places(b, given, values, "offset", rank), steps_of(t.shape))
            part = values["src"]
            if src.item is not t.item:
                part = call(b, given.context, bodies.convert, blank(b, tile_of(t.item, src.shape)), part)
            return placed(b, given.context, values["dst"], part, steps_of(t.shape), first)

        return Plan(None, _types(given, rank, dst=t, src=src), emit)


def _reshaped(given: Given, shape: tuple[int, ...]) -> Plan:
    t = given.tile("t")
    made = tile_of(t.item, shape)
    return Plan(made, {"t": t}, lambda b, values: b.one("cast", (values["t"],), made))


@planned
class tile_reshape:
    """The elements of a tile, in order, in another ``shape``; one of its numbers may be -1, to follow from the rest."""

    def sig(t: Any, shape: SHAPE): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        t, asked = given.tile("t"), given.value("shape")
        sizes = tuple(asked) if isinstance(asked, tuple | list) else (asked,)
        known = prod(n for n in sizes if n != -1)
        sizes = tuple(elements(t) // known if n == -1 and known > 0 else n for n in sizes)
        if not all(isinstance(n, int) and n > 0 for n in sizes) or prod(sizes) != elements(t) or len(sizes) > 4:
            raise Mismatch(f"{spell(t)} has {elements(t)} elements and cannot have the shape {asked!r}")
        return _reshaped(given, sizes)


@planned
class tile_squeeze:
    """A tile without its dimensions of one element, or without those that ``axis`` names."""

    def sig(t: Any, axis: SHAPE = None): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        shape, axis = given.tile("t").shape, given.value("axis")
        if axis is None:
            gone = {k for k, n in enumerate(shape) if n == 1}
        else:
            asked = axis if isinstance(axis, tuple | list) else (axis,)
            if not all(isinstance(k, int) and -len(shape) <= k < len(shape) for k in asked):
                raise Mismatch(f"argument 'axis' must name some of the {len(shape)} axes, not {axis!r}")
            gone = {k % len(shape) for k in asked}
        if any(shape[k] != 1 for k in gone):
            raise Mismatch(f"only dimensions of one element can go, not {sorted(gone)} of {shape}")
        return _reshaped(given, tuple(n for k, n in enumerate(shape) if k not in gone) or (1,))


@planned
class tile_transpose:
    """A tile of two dimensions with rows and columns exchanged."""

    def sig(a: Any): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        t = given.tile("a")
        if len(t.shape) != 2:
            raise Mismatch(f"argument 'a' must have two dimensions, it is {spell(t)}")
        made = tile_of(t.item, t.shape[::-1])
        return Plan(made, {"a": t}, lambda b, v: taken(b, given.context, v["a"], made, (1, t.shape[1]), b.i32(0)))


@planned
class tile_broadcast:
    """A tile of ``shape`` with the elements of ``a`` repeated along its dimensions of one element, and new ones before.

    A leading dimension, or one of a single element, may grow; others stay.
    """

    def sig(a: Any, shape: SHAPE): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        t, shape = given.tile("a"), shape_of(given)
        have = four(t.shape, 1)[4 - len(shape) :]
        if len(t.shape) > len(shape) or any(n not in (1, m) for n, m in zip(have, shape)):
            raise Mismatch(f"{spell(t)} cannot be broadcast to the shape {shape}")
        steps = tuple(0 if n == 1 else s for n, s in zip(have, steps_of(have)))
        made = tile_of(t.item, shape)
        return Plan(made, {"a": t}, lambda b, v: taken(b, given.context, v["a"], made, steps, b.i32(0)))


@planned
class tile_astype:
    """A tile with its elements converted to the scalar type ``dtype``."""

    def sig(t: Any, dtype: DTYPE): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        t, item = given.tile("t"), item_of(given)
        if not isinstance(item, Scalar) or not isinstance(t.item, Scalar):
            raise Mismatch(f"only scalars are converted, not {spell(t.item)} to {spell(item)}")
        made = tile_of(item, t.shape)
        return Plan(made, {"t": t}, lambda b, v: call(b, given.context, bodies.convert, blank(b, made), v["t"]))


@planned
class tile_extract:
    """The element of a tile at indices, or a component of it: ``t[i, j]`` as a function."""

    def sig(a: Any, *indices: Any): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        t = given.tile("a")
        names = [name for name in given if name != "a"]
        types = {name: given[name].type for name in names}
        rank = len(t.shape)
        extra = len(names) - rank
        if any(x not in INTS for x in types.values()) or not 0 <= extra <= _depth(t.item):
            raise Mismatch(f"{spell(t)} takes {rank} integers, and those of a component")
        item = t.item if not extra else t.elem if extra == _depth(t.item) else vector(t.item.cols, t.elem)

        def emit(b: Builder, values: dict[str, Value]) -> Value:
            at = [convert(b, values[name], i32) for name in names]
            inner = (t.item.cols, 1) if isinstance(t.item, Matrix) else (1,)
            steps = (*[s * t.width for s in steps_of(t.shape)], *inner)
            first, width = _first(b, at, steps), 1 if isinstance(item, Scalar) else item.n
            parts = [b.one("add", (first, b.i32(k)), i32) for k in range(width)]
            found = tuple([b.one("pick", (values["a"], k), t.elem) for k in parts])
            return found[0] if isinstance(item, Scalar) else b.one("make", found, item)

        return Plan(item, {"a": t, **types}, emit)


def _depth(item: Type) -> int:
    """How many indices lead to a scalar of an element."""
    return 0 if isinstance(item, Scalar) else 2 if isinstance(item, Matrix) else 1
