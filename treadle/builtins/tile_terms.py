"""What the records of tiles share: arguments by name, shapes and offsets, calls of bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from ..ir.builder import Builder
from ..ir.node import Value
from ..types.annotations import type_of
from ..types.core import Matrix, Scalar, Tile, Tuple, Type, Vector, i32, tile
from ..types.promotion import adapts, literal_type
from ..types.spelling import spell
from .constructors import convert
from .registry import EMPTY, Arg, Match, Mismatch, Result, Signature, builtin


@dataclass(frozen=True, slots=True)
class Plan:
    """What a call will be. ``types``: per parameter the type its value must have; parameters that are not in it have
    no value. ``emit`` takes the builder and the values by name."""

    result: Result
    types: dict[str, Type]
    emit: Callable[[Builder, dict[str, Value]], object]


class Given(dict):
    """The arguments of a call by the names of the parameters; those left out are not in it."""

    def __init__(self, args: dict[str, Arg], context: object):
        super().__init__(args)
        self.context = context

    def value(self, name: str, default: object = None) -> object:
        """What is known of argument ``name`` while compiling, or ``default``."""
        if name not in self:
            return default
        arg = self[name]
        return arg.function if arg.value is None and arg.function is not None else arg.value

    def tile(self, name: str) -> Tile:
        """The type of argument ``name``, which must be a tile."""
        t = self[name].type
        if not isinstance(t, Tile):
            raise Mismatch(f"argument {name!r} must be a tile, not {self[name].show()}")
        return t


def planned(definition: type, group: str = "tile primitives", name: str | None = None) -> object:
    """Register a record with a signature ``sig`` and a rule ``plan(given) -> Plan``.

    ``updates`` names a parameter whose variable the call changes; its value is then the last that ``emit`` gives.
    """
    signature = Signature.of(vars(definition)["sig"])
    updates = vars(definition).get("updates", ())
    definition.sig = signature

    def match(args: list[Arg], kwargs: dict[str, Arg], context: object) -> Match:
        names = _names(signature, args, kwargs)
        plan = vars(definition)["plan"](Given(dict(zip(names, [*args, *kwargs.values()])), context))
        types = [plan.types.get(n) for n in names]

        def emit(b: Builder, values: list[Value | None]) -> object:
            return plan.emit(b, {n: v for n, v in zip(names, values) if v is not None})

        changed = tuple([names.index(n) for n in updates])
        return Match(name or definition.__name__, types, plan.result, emit, changed)

    definition.match = staticmethod(match)
    return builtin(group, name)(definition)


def _names(signature: Signature, args: list[Arg], kwargs: dict[str, Arg]) -> list[str]:
    """Per argument the name of its parameter; those of a parameter that takes many are numbered."""
    params = signature.params
    many = next((k for k, p in enumerate(params) if p.variadic), None)
    by_place = params if many is None else params[:many]
    if len(args) > len(by_place) and many is None:
        raise Mismatch(f"{len(args)} arguments are too many")
    names = [by_place[k].name if k < len(by_place) else f"{k}" for k in range(len(args))]
    known = {p.name for p in params if not p.variadic}
    for key in kwargs:
        if key not in known:
            raise Mismatch(f"there is no parameter {key!r}")
        if key in names:
            raise Mismatch(f"argument {key!r} is given twice")
        names.append(key)
    missing = [p.name for p in params if not p.variadic and p.default is EMPTY and p.name not in names]
    if missing:
        raise Mismatch(f"argument {missing[0]!r} is missing")
    return names


# -- shapes and types --------------------------------------------------------------------------------------------------


def shape_of(given: Given, name: str = "shape") -> tuple[int, ...]:
    """A constant shape: an int or up to four."""
    shape = given.value(name)
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    sizes = tuple(getattr(s, "value", s) for s in sizes)
    if not 1 <= len(sizes) <= 4 or not all(isinstance(s, int) and not isinstance(s, bool) for s in sizes):
        raise Mismatch(f"argument {name!r} must be a constant int or up to four of them, not {given[name].show()}")
    if any(s < 1 for s in sizes):
        raise Mismatch(f"argument {name!r} must be positive, not {shape!r}")
    return tuple(int(s) for s in sizes)


def item_of(given: Given, name: str = "dtype") -> Type:
    """The type of the elements that ``dtype`` names; float if it is not given."""
    return element(type_of(given.value(name, float)))


def element(t: Type | None) -> Type:
    """``t``, which must be what a tile can hold."""
    if not isinstance(t, Scalar | Vector | Matrix) or isinstance(t, Tile):
        raise Mismatch(f"a tile holds scalars, vectors or matrices, not {spell(t)}")
    return t


def stored(given: Given) -> None:
    """Check ``storage``, which says where a GPU keeps the tile."""
    if given.value("storage", "register") not in ("register", "shared"):
        raise Mismatch(f"argument 'storage' must be 'register' or 'shared', not {given.value('storage')!r}")


def filled_with(given: Given, name: str, item: Type) -> Type:
    """The type that argument ``name`` must have to be an element, or a number that becomes one."""
    arg = given[name]
    if arg.literal and isinstance(item, Scalar):
        return item if adapts(arg.value, item) else literal_type(arg.value)
    if arg.type is item or (isinstance(arg.type, Scalar) and isinstance(item, Scalar)):
        return arg.type
    raise Mismatch(f"argument {name!r} must be {spell(item)}, not {arg.show()}")


def offsets(given: Given, name: str, count: int) -> Type | None:
    """Check an offset of up to ``count`` numbers; the type of its value, None where it is known or left out."""
    if name not in given:
        return None
    arg = given[name]
    if arg.type is None:
        found = arg.value if isinstance(arg.value, tuple | list) else None
        good = found is not None and all(isinstance(getattr(k, "value", k), int) for k in found)
        n = len(found) if good else -1
    else:
        items = arg.type.items if isinstance(arg.type, Tuple) else (arg.type,)
        if isinstance(arg.type, Vector) and not isinstance(arg.type, Tile):
            items = (arg.type.elem,) * arg.type.n
        n = len(items) if all(isinstance(t, Scalar) and t.is_int for t in items) else -1
    if not 1 <= n <= count:
        raise Mismatch(f"argument {name!r} must be {count} integer{'s' * (count > 1)}, not {arg.show()}")
    return None if arg.type is None else arg.type


def places(b: Builder, given: Given, values: dict[str, Value], name: str, count: int) -> list[Value]:
    """The numbers of an offset as values; those left out are zero."""
    if name in values:
        v = values[name]
        found = [v] if isinstance(v.type, Scalar) else list(b.parts(v))
    else:
        known = given.value(name, ())
        found = [b.i32(int(getattr(k, "value", k))) for k in (known if isinstance(known, tuple | list) else (known,))]
    return [convert(b, v, i32) for v in found] + [b.i32(0)] * (count - len(found))


def scalar_tile(item: Type) -> Tile:
    """The tile with one element, which reductions give."""
    return tile(item, (1,))


def elements(t: Tile) -> int:
    """How many elements a tile has."""
    return prod(t.shape)


# -- code --------------------------------------------------------------------------------------------------------------


def blank(b: Builder, t: Tile) -> Value:
    """A tile that nobody has filled."""
    return b.one("poison", (), t)


def call(b: Builder, context: object, body: Callable, *values: Value) -> Value:
    """What ``body``, a function in the kernel language, gives for ``values``."""
    func = context.instantiate(body, [v.type for v in values])
    made = b.op("call", values, tuple([y.type for y in func.body.yields]), func=func)
    return made[0] if made else None


def result_of(context: object, body: Callable, types: Sequence[Type]) -> Type:
    """The type of what ``body`` gives for arguments of ``types``."""
    found = context.instantiate(body, types).body.yields
    if len(found) != 1:
        raise Mismatch("the function must give one value")
    return found[0].type


def single(b: Builder, x: Value) -> Value:
    """A tile with the one element ``x``."""
    parts = (x,) if isinstance(x.type, Scalar) else b.parts(x)
    return b.one("make", tuple(parts), scalar_tile(x.type))
