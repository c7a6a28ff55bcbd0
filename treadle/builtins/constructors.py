"""Making values of a type: ``float32(x)``, ``vec3(x, y, z)``, ``mat33(…)``, ``quat(…)``, ``transform(p, q)``, structs.

A scalar converts from any scalar. A composite is made

* of nothing: all zero, also a transform, which in Python is one that moves nothing;
* of one scalar: all components equal (not quaternions);
* of its parts in order, scalars or vectors: ``vec4(xyz, w)``, ``spatial_vector(w, v)``, ``quat(ijk, w)``;
* of a composite with as many components, each converted.

Scalars among the parts must have the component's type; literals adapt.
"""

from __future__ import annotations

from typing import Any

from ..base.errors import KernelTypeError
from ..ir.builder import Builder
from ..ir.node import Value
from ..types.annotations import type_of
from ..types.core import Matrix, Scalar, Struct, Type, Vector, View, b1, quaternion, u64, vector
from ..types.layout import children
from ..types.promotion import adapts, literal_type
from ..types.spelling import spell
from .registry import Arg, Match


def construct(t: Type, args: list[Arg], kwargs: dict[str, Arg], context: Any) -> Match:
    """The constructor of ``t`` that takes these arguments; raises KernelTypeError if none does."""
    count = len(args) + len(kwargs)
    args, order = _in_order(t, args, kwargs)
    if isinstance(t, Scalar):
        match = _cast(t, args)
    elif isinstance(t, Vector | Matrix):
        match = _composite(t, args)
    elif isinstance(t, Struct):
        match = _struct(t, args)
    else:
        raise KernelTypeError(f"a value of type {spell(t)} cannot be made in a kernel")
    if order == list(range(count)):
        return match
    types: list[Type | None] = [None] * count
    for where, wanted in zip(order, match.types):
        if where >= 0:
            types[where] = wanted

    def emit(b: Builder, values: list[Value | None]) -> Value:
        return match.emitter(b, [values[i] if i >= 0 else None for i in order])

    return Match(match.name, types, match.result, emit)


def _in_order(t: Type, args: list[Arg], kwargs: dict[str, Arg]) -> tuple[list[Arg], list[int]]:
    """All arguments as if given by position, and where each was given (-1: a field of a struct that was not)."""
    if not kwargs:
        return args, list(range(len(args)))
    names = _parameters(t)
    told = {name: arg for name, arg in kwargs.items() if name in ("length", "shape", "dtype") and name not in names}
    if told:
        return _without(t, args, kwargs, told)
    for name in kwargs:
        if name not in names[len(args) :]:
            raise KernelTypeError(f"{spell(t)}: there is no argument {name!r}", hint=f"it has {', '.join(names)}")
    where = {name: len(args) + k for k, name in enumerate(kwargs)}
    if isinstance(t, Struct):
        filled = [*args, *(kwargs.get(name, Arg(None)) for name in names[len(args) :])]
        return filled, [*range(len(args)), *(where.get(name, -1) for name in names[len(args) :])]
    given = [name for name in names[len(args) :] if name in kwargs]
    return [*args, *(kwargs[name] for name in given)], [*range(len(args)), *(where[name] for name in given)]


def _without(t: Type, args: list[Arg], kwargs: dict[str, Arg], told: dict[str, Arg]) -> tuple[list[Arg], list[int]]:
    """As :func:`_in_order` where keywords repeat what the type says already: ``mat22(1.0, shape=(2, 2))``."""
    known: dict[str, Any] = {}
    if isinstance(t, Vector | Matrix):
        known = {"length": t.n} if isinstance(t, Vector) else {"shape": (t.rows, t.cols)}
        known["dtype"] = t.elem
    for name, arg in told.items():
        found = type_of(arg.value) if name == "dtype" else arg.value
        if name not in known or found != known[name]:
            raise KernelTypeError(f"{spell(t)}: argument {name!r} cannot be {arg.show()}")
    rest = {name: arg for name, arg in kwargs.items() if name not in told}
    place = [*range(len(args)), *(len(args) + i for i, name in enumerate(kwargs) if name not in told)]
    ordered, order = _in_order(t, args, rest)
    return ordered, [place[i] for i in order]


def _parameters(t: Type) -> tuple[str, ...]:
    if isinstance(t, Struct):
        return tuple(t.index)
    if isinstance(t, Vector):
        return ("p", "q") if t.tag == "transform" else tuple("xyzw")[: t.n]
    return ("x",) if isinstance(t, Scalar) else ()


# -- scalars -----------------------------------------------------------------------------------------------------------


def _cast(t: Scalar, args: list[Arg]) -> Match:
    if not args:
        return Match(spell(t), [], t, lambda b, values: zero(b, t))
    if len(args) > 1 or not isinstance(args[0].type, Scalar):
        raise KernelTypeError(f"{spell(t)}: takes one number, not {_shown(args)}")
    arg = args[0]
    source = arg.type
    if arg.literal:
        source = t if adapts(arg.value, t) else literal_type(arg.value)
    return Match(spell(t), [source], t, lambda b, values: convert(b, values[0], t))


def convert(b: Builder, value: Value, t: Scalar) -> Value:
    """``value`` as a ``t``. Integers wrap; floats to integers truncate and saturate, NaN is 0; to bool: is it not 0."""
    if value.type is t:
        return value
    if t is b1:
        return b.one("ne", (value, b.const(0.0 if value.type.is_float else 0, value.type)), b1)
    return b.one("cast", (value,), t)


def zero(b: Builder, t: Type) -> Value:
    """The value of ``t`` whose scalars are all zero; arrays in structs have no memory and no elements."""
    if isinstance(t, Scalar):
        return b.const(False if t is b1 else 0.0 if t.is_float else 0, t)
    if isinstance(t, View):
        return b.one("view_at", (b.const(0, u64), *[b.i32(0)] * t.ndim), t)
    if isinstance(t, Vector | Matrix):
        return b.one("make", (zero(b, t.elem),) * t.n, t)
    return b.one("make", tuple(zero(b, part) for part in children(t)), t)


# -- vectors, quaternions, transforms, matrices ------------------------------------------------------------------------


def _composite(t: Vector | Matrix, args: list[Arg]) -> Match:
    name = spell(t)
    if not args:
        return Match(name, [], t, lambda b, values: zero(b, t))
    if len(args) == 1 and isinstance(args[0].type, Vector | Matrix) and args[0].type.n == t.n:
        return Match(name, [args[0].type], t, lambda b, values: _converted(b, values[0], t))
    if len(args) == 1 and isinstance(args[0].type, Scalar) and (isinstance(t, Matrix) or t.tag != "quat"):
        wanted = _part(t, args[0], name)
        return Match(name, [wanted], t, lambda b, values: b.one("make", (values[0],) * t.n, t))
    if isinstance(t, Matrix) and any(isinstance(a.type, Vector) for a in args):
        raise KernelTypeError(f"{name}: takes numbers row by row, not {_shown(args)}",
                              hint="write matrix_from_rows(…) or matrix_from_cols(…)")  # fmt: skip
    if _is_transform(t) and len(args) == 1 and args[0].type is vector(3, t.elem):
        only = [args[0].type]
        return Match(name, only, t, lambda b, values: b.one("make", (*b.parts(values[0]), *_no_turn(b, t.elem)), t))
    types = [_part(t, a, name) for a in args]
    count = sum(part.n if isinstance(part, Vector) else 1 for part in types)
    if count != t.n:
        raise KernelTypeError(f"{name}: takes {t.n} numbers, not {count}", hint=f"given: {_shown(args)}")
    return Match(name, list(types), t, lambda b, values: b.one("make", tuple(flat(b, values)), t))


def _is_transform(t: Type) -> bool:
    return isinstance(t, Vector) and t.tag == "transform"


def _part(t: Vector | Matrix, arg: Arg, name: str) -> Type:
    """The type argument ``arg`` must have to be a part of ``t``: its scalar, or a vector of them."""
    if arg.literal and adapts(arg.value, t.elem):
        return t.elem
    if not arg.literal and (arg.type is t.elem or (isinstance(arg.type, Vector) and arg.type.elem is t.elem)):
        return arg.type
    hint = f"write {spell(t.elem)}(…)" if isinstance(arg.type, Scalar) and not arg.literal else ""
    shown = repr(arg.value) if arg.literal else arg.show()
    raise KernelTypeError(f"{name}: a component is expected to be of the type {spell(t.elem)}, not {shown}", hint=hint)


def flat(b: Builder, values: list[Value]) -> list[Value]:
    """The scalars of scalars and vectors, in order."""
    out: list[Value] = []
    for v in values:
        out.extend(b.parts(v) if isinstance(v.type, Vector | Matrix) else (v,))
    return out


def _converted(b: Builder, value: Value, t: Vector | Matrix) -> Value:
    if value.type is t:
        return value
    return b.one("make", tuple(convert(b, part, t.elem) for part in b.parts(value)), t)


def _no_turn(b: Builder, elem: Scalar) -> tuple[Value, ...]:
    """The components of the rotation that does nothing."""
    nothing = b.const(0.0, elem)
    return nothing, nothing, nothing, b.const(1.0, elem)


def identity_transform(b: Builder, t: Vector) -> Value:
    """The transform that moves nothing."""
    return b.one("make", (b.const(0.0, t.elem),) * 3 + _no_turn(b, t.elem), t)


def identity_quaternion(b: Builder, elem: Scalar) -> Value:
    """The rotation that turns nothing."""
    return b.one("make", _no_turn(b, elem), quaternion(elem))


# -- structs -----------------------------------------------------------------------------------------------------------


def _struct(t: Struct, args: list[Arg]) -> Match:
    name = spell(t)
    if len(args) > len(t.fields):
        raise KernelTypeError(f"{name}: has {len(t.fields)} fields, {len(args)} values were given")
    types: list[Type | None] = []
    for arg, (field, wanted) in zip(args, t.fields):
        fits = adapts(arg.value, wanted) if arg.literal else arg.type is wanted or arg.type is None
        if not fits:
            raise KernelTypeError(f"{name}: field {field!r} is {spell(wanted)}, not {arg.show()}")
        types.append(None if arg.type is None else wanted)

    def emit(b: Builder, values: list[Value | None]) -> Value:
        given = [*values, *[None] * (len(t.fields) - len(values))]
        return b.one("make", tuple(v if v is not None else zero(b, ft) for v, (_, ft) in zip(given, t.fields)), t)

    return Match(name, types, t, emit)


def _shown(args: list[Arg]) -> str:
    return ", ".join(a.show() for a in args)
