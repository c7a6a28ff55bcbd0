"""Values known while compiling, and how they become values of the program."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from ..base.errors import KernelTypeError
from ..ir.builder import Builder
from ..ir.node import Value
from ..types.core import STR, FunctionType, Indexed, Matrix, Scalar, Struct, Type, Vector, View, b1, f32, i32, tuple_of
from ..types.layout import leaves
from ..types.numbers import rounder
from ..types.numpy_types import type_of_numpy
from ..types.promotion import adapts, fits, literal_type
from ..types.spelling import spell

FUNCTION = FunctionType()  # the type of functions passed as arguments


class Constant:
    """A Python value met while compiling.

    ``type``: its type in the language; None for what has none (functions, modules, types, Python containers).
    ``literal``: a number that takes the type its partners ask for. ``named``: it was one before it was given a name;
    now it takes another type only where a constructor says which.
    """

    __slots__ = ("literal", "named", "type", "value")

    def __init__(self, value: Any, type: Type | None, literal: bool = False, named: bool = False):
        self.value, self.type, self.literal, self.named = value, type, literal, named

    def __repr__(self) -> str:
        return f"Constant({self.value!r}, {self.type})"

    def same(self, other: object) -> bool:
        """Whether ``other`` is a constant of the same type and value, bit for bit."""
        if not isinstance(other, Constant) or other.type is not self.type:
            return False
        if self.value is other.value:
            return True
        return isinstance(self.type, Scalar) and repr(self.value) == repr(other.value)


Operand = Value | Constant | tuple  # a tuple holds operands: several values, as in ``a, b``

TRUE, FALSE = Constant(True, b1), Constant(False, b1)


def constant_of(value: Any) -> Constant:
    """What the Python object ``value`` means inside a kernel."""
    kind = type(value)
    if kind is bool:
        return TRUE if value else FALSE
    if kind is int:
        return Constant(value, i32 if -(2**31) <= value < 2**31 else literal_type(value), True)
    if kind is float:
        return Constant(value, f32, True)
    if kind is str:
        return Constant(value, STR)
    if kind is ModuleType or kind is type:
        return Constant(value, None)
    if isinstance(value, np.generic):
        return _numpy_scalar(value)
    own = getattr(kind, "treadle_type", None)
    found = own(value) if own is not None else getattr(kind, "__treadle_type__", None)
    if isinstance(found, Scalar):
        return Constant(plain(value.value, found), found)
    if isinstance(found, Type):
        return Constant(value, found)
    if isinstance(value, int):  # IntEnum, IntFlag
        return Constant(value, literal_type(int(value)), True)
    if isinstance(value, float):
        return Constant(float(value), f32, True)
    return Constant(value, None)


def is_foreign(c: Constant) -> bool:
    """Whether ``c`` is an object of Python that is no value of a kernel, nor something to call: an array is none, nor
    is a struct with arrays, whose memory is there at run time only."""
    if c.type is None:
        return not callable(c.value)
    if isinstance(c.type, Struct):
        return any(isinstance(leaf.type, View) for leaf in leaves(c.type))
    return isinstance(c.type, View | Indexed)


def _numpy_scalar(value: np.generic) -> Constant:
    t = type_of_numpy(value.dtype)
    return Constant(value, None) if t is None else Constant(plain(value.item(), t), t)


def type_in(value: Any) -> Type | None:
    """The type that the object ``value`` names: ``wp.vec3``, ``float``, a struct class; None if it names none."""
    if isinstance(value, Type):
        return value
    if value is float or value is int or value is bool:
        return {float: f32, int: literal_type(0), bool: b1}[value]
    if isinstance(value, type):
        found = getattr(value, "__treadle_type__", None)
        if found is None and issubclass(value, np.generic):
            return type_of_numpy(value)
        return found if isinstance(found, Type) else None
    return None


def plain(value: Any, t: Scalar) -> bool | int | float:
    """``value`` as the scalar type ``t`` holds it, a Python number: integers wrap, floats round."""
    if t.kind == "b":
        return bool(value)
    if t.is_float:
        return round_float(float(value), t)
    number = int(value) & ((1 << t.bits) - 1)
    return number - (1 << t.bits) if t.is_signed and number >> (t.bits - 1) else number


def round_float(value: float, t: Scalar) -> float:
    """``value`` rounded to the float type ``t``, ties to even."""
    return value if math.isnan(value) else rounder(t)(value)


def adapted(c: Constant, t: Type | None) -> Constant:
    """The literal ``c`` in type ``t`` where it takes that type; else ``c`` itself."""
    if c.literal and c.type is not t and adapts(c.value, t):
        return Constant(plain(c.value, t), t)
    return c


def materialize(b: Builder, x: Operand, t: Type | None = None) -> Value:
    """``x`` as a value of the program, in type ``t`` if it is a literal that takes it.

    Raises:
        KernelTypeError: ``x`` is something that has no run-time value, such as a function or a module.
    """
    if isinstance(x, Value):
        return x
    if isinstance(x, tuple):
        parts = tuple(materialize(b, p) for p in x)
        return b.one("make", parts, tuple_of(*[p.type for p in parts]))
    if t is not None:
        x = adapted(x, t)
    if isinstance(x.type, Scalar):
        return b.const(_checked(x), x.type)
    if x.type is STR:
        return b.const(x.value, STR)
    if x.type is None:
        raise KernelTypeError(f"{describe(x)} is not a value a kernel can compute with")
    parts = tuple(materialize(b, p) for p in parts_of(x))
    return b.one("make", parts, x.type)


def _checked(x: Constant) -> Any:
    t = x.type
    if t.is_int and not fits(x.value, t):
        raise KernelTypeError(f"{x.value} does not fit into {spell(t)}", hint="write wp.int64(…) or wp.uint64(…)")
    return round_float(float(x.value), t) if t.is_float else bool(x.value) if t is b1 else int(x.value)


def parts_of(x: Constant) -> list[Constant]:
    """The direct parts of a vector, matrix or struct constant."""
    t = x.type
    if isinstance(t, Vector):
        return [Constant(plain(getattr(v, "value", v), t.elem), t.elem) for v in x.value]
    if isinstance(t, Matrix):
        flat = [x.value[i, j] for i in range(t.rows) for j in range(t.cols)]
        return [Constant(plain(getattr(v, "value", v), t.elem), t.elem) for v in flat]
    if isinstance(t, Struct):
        parts = []
        for name, ft in t.fields:
            value = getattr(x.value, name)
            if isinstance(ft, Scalar):
                parts.append(Constant(plain(getattr(value, "value", value), ft), ft))
            elif isinstance(ft, Vector | Matrix | Struct):
                parts.append(Constant(value, ft))
            else:
                raise KernelTypeError(
                    f"the array in field {name!r} cannot be captured", hint="pass the struct as an argument"
                )
        return parts
    raise KernelTypeError(f"{describe(x)} cannot be captured as a constant")


def describe(x: Operand) -> str:
    """``x`` in the words of a message."""
    if isinstance(x, Value):
        return spell(x.type)
    if isinstance(x, tuple):
        return f"({', '.join(describe(p) for p in x)})"
    if x.type is not None:
        return spell(x.type)
    v = x.value
    if v is None:
        return "None"
    if isinstance(v, Type):
        return f"the type {spell(v)}"
    name, kind = getattr(v, "__name__", None), type(v).__name__
    if kind != "module" and callable(v):
        kind = "type" if isinstance(v, type) else "function"
    return f"the {kind} {name}" if name else f"a {kind}"


def fold(name: str, a: Constant, b: Constant) -> Constant | None:
    """``a name b`` for two constants, where it is worth knowing while compiling (bounds, indices, shapes); else None.

    Integers wrap, divide towards zero and take the remainder's sign from the left, as at run time. Arithmetic on two
    literals gives a literal, so ``2.0 / 3.0`` is as exact as the type that it meets.
    """
    literal = a.literal and b.literal
    if a.literal != b.literal:
        a, b = (adapted(a, b.type), b) if a.literal else (a, adapted(b, a.type))
    ta, tb = a.type, b.type
    if not (isinstance(ta, Scalar) and isinstance(tb, Scalar)):
        return None
    x, y = a.value, b.value
    if name in _COMPARE:
        return Constant(_COMPARE[name](x, y), b1) if ta is tb or ta.is_float == tb.is_float else None
    if ta is b1 or (ta is not tb and not (literal and not (ta.is_float ^ tb.is_float))):
        return None
    if ta.is_float:
        if not literal or name not in ("add", "sub", "mul", "div") or (name == "div" and y == 0.0):
            return None
        value = {"add": x + y, "sub": x - y, "mul": x * y}.get(name) if name != "div" else x / y
        return Constant(value, f32, True)
    made = _integers(name, x, y)
    if made is None:
        return None
    t = literal_type(made) if literal else ta
    return Constant(made if literal else plain(made, ta), t, literal)


_COMPARE = {
    "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y, "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
}  # fmt: skip


def _integers(name: str, x: int, y: int) -> int | None:
    if name in ("div", "mod", "floordiv"):
        if y == 0:
            return None
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return {"div": quotient, "mod": x - quotient * y, "floordiv": x // y}[name]
    if name in ("shl", "shr"):
        return (x << y if name == "shl" else x >> y) if 0 <= y < 64 else None
    rule = {"add": int.__add__, "sub": int.__sub__, "mul": int.__mul__, "bitand": int.__and__, "bitor": int.__or__,
            "bitxor": int.__xor__}.get(name)  # fmt: skip
    return rule(x, y) if rule else None
