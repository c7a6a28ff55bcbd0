"""Arithmetic on tiles: element by element, reductions, scans, sorting, products of matrices."""

from __future__ import annotations

from collections.abc import Callable

from ..base.errors import KernelTypeError
from ..ir.builder import Builder
from ..ir.node import Value
from ..types.core import ARITHMETIC, FLOATS, Matrix, Scalar, Tile, Type, Vector, i32
from ..types.core import tile as tile_of
from ..types.spelling import spell
from . import tile_bodies as bodies
from .constructors import convert
from .language import add, div, max, min, mul  # noqa: A004
from .patterns import Any, Known
from .registry import Mismatch
from .tile_matmul import product_of
from .tile_terms import Given, Plan, blank, call, filled_with, planned, result_of, scalar_tile, single

OP, AXIS = Known("a function"), Known("a constant int")

# -- operators ---------------------------------------------------------------------------------------------------------


def _pairwise(op: str, word: object, verb: str):
    """A rule for the products or quotients of elements: of two tiles of one shape, or of one and a value for all."""

    def plan(given: Given) -> Plan:
        types = {name: given[name].type for name in "ab"}
        shapes = {t.shape for t in types.values() if isinstance(t, Tile)}
        items = [t.item if isinstance(t, Tile) else t for t in types.values()]
        if len(shapes) != 1:
            raise Mismatch("a tile goes with a tile of its shape")
        if not all(isinstance(x, Scalar | Vector | Matrix) for x in items):
            raise Mismatch("a tile goes with numbers, vectors and matrices")
        if not any(isinstance(x, Scalar) for x in items):
            what = "element type must be scalar" if all(isinstance(t, Tile) for t in types.values()) else (
                "operand must be a scalar type")  # fmt: skip
            raise KernelTypeError(
                f"Cannot {verb} {given['a'].show()} by {given['b'].show()}: at least one {what}",
                hint=f"wp.tile_map(wp.{op}, a, b) takes what wp.{op} takes",
            )
        tiles = [tile_of(x, *shapes) for x in items]
        direct = items[0] is items[1]
        t = tiles[0] if direct else tile_of(result_of(given.context, bodies.prober(word, 2), tiles), *shapes)

        def emit(b: Builder, v: dict[str, Value]) -> Value:
            x, y = (v[n] if isinstance(types[n], Tile) else call(b, given.context, bodies.fill, blank(b, full), v[n])
                    for n, full in zip("ab", tiles))  # fmt: skip
            if direct:
                return b.one(op, (x, y), t)
            return call(b, given.context, bodies.mapper(word, 2), blank(b, t), x, y)

        return Plan(t, types, emit)

    return plan


class _Product:
    """The products of the elements of two tiles of one shape."""

    def sig(a: Any, b: Any): ...

    plan = staticmethod(_pairwise("mul", mul, "multiply"))


class _Quotient:
    """The quotients of the elements of two tiles of one shape."""

    def sig(a: Any, b: Any): ...

    plan = staticmethod(_pairwise("div", div, "divide"))


planned(_Product, "tile primitives", "mul")
planned(_Quotient, "tile primitives", "div")


# -- functions of elements ---------------------------------------------------------------------------------------------


@planned
class tile_map:
    """The tile of what ``op`` gives for the elements of up to four tiles of one shape; scalars stand for all elements.

    ``op`` is a builtin or a ``@wp.func``; what it gives is the type of the elements: ``wp.tile_map(wp.sin, t)``.
    """

    def sig(op: OP, a: Any, *args: Any): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        op, names = _function(given), [name for name in given if name != "op"]
        types = {name: given[name].type for name in names}
        shapes = {t.shape for t in types.values() if isinstance(t, Tile)}
        if len(shapes) != 1 or not 1 <= len(names) <= 4:
            raise Mismatch(f"tile_map takes up to four tiles of one shape, here are {len(names)} of {sorted(shapes)}")
        (shape,) = shapes
        like = next(t for t in types.values() if isinstance(t, Tile))
        for name in names:
            if not isinstance(types[name], Tile):
                types[name] = filled_with(given, name, like.item) if given[name].literal else given[name].type
        tiles = [t if isinstance(t, Tile) else tile_of(t, shape) for t in types.values()]
        made = tile_of(result_of(given.context, bodies.prober(op, len(names)), tiles), shape)

        def emit(b: Builder, values: dict[str, Value]) -> Value:
            full = []
            for name, t in zip(names, tiles):
                v = values[name]
                full.append(v if v.type is t else call(b, given.context, bodies.fill, blank(b, t), v))
            return call(b, given.context, bodies.mapper(op, len(names)), blank(b, made), *full)

        return Plan(made, types, emit)


def _function(given: Given) -> Callable:
    op = given["op"].function or given["op"].value
    if op is None or not callable(op) and not hasattr(op, "__treadle_builtin__"):
        raise Mismatch(f"argument 'op' must be a function, not {given['op'].show()}")
    return op


# -- reductions --------------------------------------------------------------------------------------------------------


def _joined(given: Given, op: Callable, t: Tile) -> Plan:
    """What ``op`` makes of all elements, or of those along ``axis``."""
    axis = given.value("axis")
    if axis is None:
        made, cut = scalar_tile(t.item), (1, t.n // t.width, 1)
    else:
        axis = getattr(axis, "value", axis)
        if not isinstance(axis, int) or not -len(t.shape) <= axis < len(t.shape):
            raise Mismatch(f"argument 'axis' must be one of the {len(t.shape)} axes of {spell(t)}, not {axis!r}")
        axis %= len(t.shape)
        before, after = t.shape[:axis], t.shape[axis + 1 :]
        made, cut = tile_of(t.item, (before + after) or (1,)), (_size(before), t.shape[axis], _size(after))
    body = bodies.reducer(op, *cut)
    return Plan(made, {"a": t}, lambda b, v: call(b, given.context, body, blank(b, made), v["a"]))


def _size(shape: tuple[int, ...]) -> int:
    n = 1
    for extent in shape:
        n *= extent
    return n


@planned
class tile_sum:
    """The sum of all elements of a tile, as a tile of one; with ``axis`` the sums along that axis."""

    def sig(a: Any, axis: AXIS = None): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        return _joined(given, add, given.tile("a"))


@planned
class tile_reduce:
    """What the function ``op`` of two elements makes of all elements of a tile, one after the other, as a tile of one;
    with ``axis`` of those along that axis."""

    def sig(op: OP, a: Any, axis: AXIS = None): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        return _joined(given, _function(given), given.tile("a"))


def _numbers(given: Given, name: str = "a") -> Tile:
    t = given.tile(name)
    if t.item not in ARITHMETIC:
        raise Mismatch(f"argument {name!r} must hold numbers, it is {spell(t)}")
    return t


@planned
class tile_min:
    """The least element of a tile, as a tile of one."""

    def sig(a: Any): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        return _joined(given, min, _numbers(given))


@planned
class tile_max:
    """The greatest element of a tile, as a tile of one."""

    def sig(a: Any): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        return _joined(given, max, _numbers(given))


def _place_of(body: Callable):
    def plan(given: Given) -> Plan:
        t = _numbers(given)
        return Plan(scalar_tile(i32), {"a": t}, lambda b, v: single(b, call(b, given.context, body, v["a"])))

    return plan


@planned
class tile_argmin:
    """Where the first of the least elements of a tile is, counted row by row, as a tile of one."""

    def sig(a: Any): ...

    plan = staticmethod(_place_of(bodies.least_place))


@planned
class tile_argmax:
    """Where the first of the greatest elements of a tile is, counted row by row, as a tile of one."""

    def sig(a: Any): ...

    plan = staticmethod(_place_of(bodies.largest_place))


def _scanned(op: Callable, skip: int = 0):
    """A rule for scans, which go over all elements row by row."""

    def plan(given: Given) -> Plan:
        t = _numbers(given)
        body = bodies.scanner(op, skip, 0)
        return Plan(t, {"a": t}, lambda b, v: call(b, given.context, body, blank(b, t), v["a"]))

    return plan


@planned
class tile_scan_inclusive:
    """Each element of a tile added to all before it."""

    def sig(a: Any): ...

    plan = staticmethod(_scanned(add))


@planned
class tile_scan_exclusive:
    """For each element of a tile the sum of those before it."""

    def sig(a: Any): ...

    plan = staticmethod(_scanned(add, 1))


@planned
class tile_scan_max_inclusive:
    """For each element of a tile the greatest so far."""

    def sig(a: Any): ...

    plan = staticmethod(_scanned(max))


@planned
class tile_scan_min_inclusive:
    """For each element of a tile the least so far."""

    def sig(a: Any): ...

    plan = staticmethod(_scanned(min))


@planned
class tile_sort:
    """Sort a tile of keys, least first, and with them a tile of as many values. Equal keys stay in order."""

    updates = ("keys", "values")

    def sig(keys: Any, values: Any): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        keys, values = _numbers(given, "keys"), given.tile("values")
        if keys.n != values.n // values.width:
            raise Mismatch(f"there must be as many values as keys, here are {spell(keys)} and {spell(values)}")

        def emit(b: Builder, v: dict[str, Value]) -> tuple[Value, ...]:
            func = given.context.instantiate(bodies.sort, (keys, values))
            return b.op("call", (v["keys"], v["values"]), (keys, values), func=func)

        return Plan(None, {"keys": keys, "values": values}, emit)


# -- products ----------------------------------------------------------------------------------------------------------


@planned
class tile_dot:
    """The sum of the products of the elements of two tiles of one shape, as a tile of one; of vectors: of all
    components."""

    def sig(a: Any, b: Any): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        t = given.tile("a")
        if given["b"].type is not t:
            raise Mismatch(f"both must be tiles of one shape and type, here are {spell(t)} and {given['b'].show()}")
        flat = tile_of(t.elem, (t.n,))

        def emit(b: Builder, v: dict[str, Value]) -> Value:
            x, y = (b.one("cast", (v[name],), flat) for name in "ab")
            return single(b, call(b, given.context, bodies.dot, x, y))

        return Plan(scalar_tile(t.elem), {"a": t, "b": t}, emit)


@planned
class tile_axpy:
    """Add ``alpha * src`` to the tile ``dest``."""

    updates = ("dest",)

    def sig(alpha: Any, src: Any, dest: Any): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        t = given.tile("dest")
        if given["src"].type is not t:
            raise Mismatch(f"src and dest must be of one shape and type, here are {given['src'].show()} and {spell(t)}")
        alpha = filled_with(given, "alpha", t.elem)

        def emit(b: Builder, v: dict[str, Value]) -> Value:
            return call(b, given.context, bodies.axpy, convert(b, v["alpha"], t.elem), v["src"], v["dest"])

        return Plan(None, {"alpha": alpha, "src": t, "dest": t}, emit)


@planned
class tile_diag_add:
    """A square tile with a tile of as many elements added to its diagonal."""

    def sig(a: Any, d: Any): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        t, d = given.tile("a"), given.tile("d")
        if len(t.shape) != 2 or t.shape[0] != t.shape[1] or d is not tile_of(t.item, t.shape[:1]):
            raise Mismatch(f"a square tile and one of as many elements are needed, not {spell(t)} and {spell(d)}")
        return Plan(t, {"a": t, "d": d}, lambda b, v: call(b, given.context, bodies.add_to_diagonal, v["a"], v["d"]))


@planned
class tile_matmul:
    """The product of two tiles of two dimensions: ``out += a b``, or with numbers ``out = alpha a b + beta out``.

    ``out`` is a variable that is changed; each of the three may have a float type of its own, that of ``out`` is
    computed in. Without it the product is the result, and the factors have one type.
    """

    def sig(a: Any, b: Any): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        a, b = _factors(given)
        if a.item is not b.item:
            raise Mismatch(f"tiles of one float type are needed, not {spell(a)} and {spell(b)}")
        made = tile_of(a.item, (a.shape[0], b.shape[1]))

        def emit(build: Builder, v: dict[str, Value]) -> Value:
            zeros = call(build, given.context, bodies.fill, blank(build, made), build.const(0.0, a.item))
            return _product(build, given, v["a"], v["b"], zeros)

        return Plan(made, {"a": a, "b": b}, emit)


class _Accumulate:
    """``out = alpha * a b + beta * out`` for tiles of two dimensions; ``out`` is a variable that is changed."""

    updates = ("out",)

    def sig(a: Any, b: Any, out: Any, alpha: Any = 1.0, beta: Any = 1.0): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        a, b = _factors(given)
        out = given.tile("out")
        if out.shape != (a.shape[0], b.shape[1]) or out.item not in FLOATS:
            raise Mismatch(f"argument 'out' must be a tile of shape {(a.shape[0], b.shape[1])}, it is {spell(out)}")
        types: dict[str, Type] = {"a": a, "b": b, "out": out}
        scale = {name: filled_with(given, name, out.item) for name in ("alpha", "beta") if name in given}

        def emit(build: Builder, v: dict[str, Value]) -> Value:
            left, target = v["a"], v["out"]
            for name in scale:
                x = convert(build, v[name], out.item)
                if given[name].literal and given[name].value == 1.0:
                    continue
                if name == "alpha":
                    if a.item is not out.item:
                        room = blank(build, tile_of(out.item, a.shape))
                        left = call(build, given.context, bodies.convert, room, left)
                    left = call(build, given.context, bodies.scaled, left, x)
                else:
                    target = call(build, given.context, bodies.faded, target, x)
            return _product(build, given, left, v["b"], target)

        return Plan(None, {**types, **scale}, emit)


planned(_Accumulate, "tile primitives", "tile_matmul")


def _product(b: Builder, given: Given, x: Value, y: Value, out: Value) -> Value:
    """``out`` with the product of ``x`` and ``y`` added to it."""
    body = product_of(x.type.shape[0], y.type.shape[1], given.context.gradient > 0)
    return call(b, given.context, body, x, y, out)


def _factors(given: Given) -> tuple[Tile, Tile]:
    a, b = given.tile("a"), given.tile("b")
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0]:
        raise Mismatch(f"these tiles have no product: {spell(a)} and {spell(b)}")
    if a.item not in FLOATS or b.item not in FLOATS:
        raise Mismatch(f"tiles of floats are needed, not {spell(a)} and {spell(b)}")
    return a, b
