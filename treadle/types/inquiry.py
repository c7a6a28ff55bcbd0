"""Questions about types: ``wp.types.type_is_float(t)`` asks of a class, ``wp.types.is_float(x)`` of a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .annotations import ArrayAnnotation, fixedarray, type_of
from .core import FLOATS, INTS, Array, Fixed, Indexed, Matrix, Scalar, Struct, Tile, Type, Vector, View, b1

_KINDS: dict[str, tuple[str, Callable[[Type], bool]]] = {
    "int": ("an integer", lambda t: t in INTS),
    "float": ("a float", lambda t: t in FLOATS),
    "scalar": ("an integer or a float", lambda t: isinstance(t, Scalar) and t is not b1),
    "vector": ("a vector", lambda t: isinstance(t, Vector) and t.tag == "vec"),
    "quaternion": ("a quaternion", lambda t: isinstance(t, Vector) and t.tag == "quat"),
    "transformation": ("a rigid transform", lambda t: isinstance(t, Vector) and t.tag == "transform"),
    "matrix": ("a matrix", lambda t: isinstance(t, Matrix)),
    "composite": ("a vector, quaternion, transform or matrix", lambda t: isinstance(t, Vector | Matrix)),
    "value": ("a scalar, a truth value or made of scalars", lambda t: isinstance(t, Scalar | Vector | Matrix)),
    "tile": ("a tile", lambda t: isinstance(t, Tile)),
    "struct": ("a struct", lambda t: isinstance(t, Struct) and not isinstance(t, Indexed)),
    "array": ("an array", lambda t: isinstance(t, View | Array | Fixed | Indexed)),
}

_ARRAYS = ("array", "fixedarray", "indexedarray")  # what the classes of arrays are called


def type_meant(c: Any) -> Type | None:
    """The type that a class names, or None."""
    if isinstance(c, Type):
        return c
    if isinstance(c, ArrayAnnotation) or (isinstance(c, type) and (c in (int, float, bool) or _own(c) is not None)):
        return type_of(c)
    return None


def _own(c: type) -> Type | None:
    found = getattr(c, "__treadle_type__", None)
    return found if isinstance(found, Type) else None


def type_held(x: Any) -> Type | None:
    """The type of a value, or None."""
    if isinstance(x, bool | int | float):
        return type_meant(type(x))
    if isinstance(x, type | Type):
        return None
    if isinstance(x, ArrayAnnotation | fixedarray):
        return x.type
    return _own(type(x)) or (x.type if isinstance(getattr(x, "type", None), View | Indexed) else None)


def _of_class(kind: str) -> Callable[[Any], bool]:
    phrase, holds = _KINDS[kind]

    def ask(t: Any) -> bool:
        found = type_meant(t)
        if found is None and kind == "array":
            return isinstance(t, type) and getattr(t, "__treadle_builtin__", "") in _ARRAYS
        return found is not None and holds(found)

    ask.__doc__ = f"Whether the class ``t`` is that of {phrase}."
    ask.__name__ = f"type_is_{kind}"
    return ask


def _of_value(kind: str) -> Callable[[Any], bool]:
    phrase, holds = _KINDS[kind]

    def ask(x: Any) -> bool:
        found = type_held(x)
        return found is not None and holds(found)

    ask.__doc__ = f"Whether the value ``x`` is {phrase}."
    ask.__name__ = f"is_{kind}"
    return ask


QUESTIONS: dict[str, Callable[[Any], bool]] = {
    **{f"type_is_{kind}": _of_class(kind) for kind in _KINDS},
    **{f"is_{kind}": _of_value(kind) for kind in _KINDS},
}


def type_size(dtype: Any) -> int:
    """How many scalars a value of ``dtype`` has; 1 for a struct.

    >>> type_size(float)
    1
    """
    t = _required(dtype)
    return t.n if isinstance(t, Vector | Matrix) else 1


def type_size_in_bytes(dtype: Any) -> int:
    """How many bytes a value of ``dtype`` takes in memory.

    >>> type_size_in_bytes(float)
    4
    """
    return _required(dtype).size


def _required(dtype: Any) -> Type:
    found = type_meant(dtype)
    if found is None:
        raise TypeError(f"{dtype!r} is no type of the kernel language")
    return found


def types_equal(a: Any, b: Any) -> bool:
    """Whether two classes name one type, as ``float`` and ``wp.float32`` do.

    >>> types_equal(float, int)
    False
    """
    return _required(a) is _required(b)


def type_repr(t: Any) -> str:
    """The name of a class, as its values show it; the repr of anything else.

    >>> type_repr(float)
    'float'
    """
    if isinstance(t, type):
        return t.__name__ if _own(t) is not None or t in (int, float, bool) else f"{t.__module__}.{t.__qualname__}"
    return repr(t)


FUNCTIONS: dict[str, Callable] = {
    **QUESTIONS, "type_size": type_size, "type_size_in_bytes": type_size_in_bytes, "types_equal": types_equal,
    "type_repr": type_repr,
}  # fmt: skip
