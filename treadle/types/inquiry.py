"""Questions about types: ``wp.types.type_is_float(t)`` asks of a class, ``wp.types.is_float(x)`` of a value."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from .annotations import ArrayAnnotation, fixedarray, type_of
from .core import FLOATS, INTS, Array, Fixed, Indexed, Matrix, Scalar, Struct, Tile, Type, Vector, View, b1
from .numbers import c_type
from .scalar_values import scalar_class
from .spelling import spell
from .tile_annotations import TileAnnotation


def _composite(t: Type) -> bool:
    return isinstance(t, Vector | Matrix) and not isinstance(t, Tile)


_KINDS: dict[str, tuple[str, Callable[[Type], bool]]] = {
    "int": ("an integer", lambda t: t in INTS),
    "float": ("a float", lambda t: t in FLOATS),
    "scalar": ("an integer or a float", lambda t: isinstance(t, Scalar) and t is not b1),
    "vector": ("a vector", lambda t: isinstance(t, Vector) and t.tag == "vec"),
    "quaternion": ("a quaternion", lambda t: isinstance(t, Vector) and t.tag == "quat"),
    "transformation": ("a rigid transform", lambda t: isinstance(t, Vector) and t.tag == "transform"),
    "matrix": ("a matrix", lambda t: isinstance(t, Matrix)),
    "composite": ("a vector, quaternion, transform or matrix", _composite),
    "value": ("a scalar, a truth value or made of scalars", lambda t: isinstance(t, Scalar) or _composite(t)),
    "struct": ("a struct", lambda t: isinstance(t, Struct) and not isinstance(t, Indexed)),
    "array": ("an array", lambda t: isinstance(t, View | Array | Fixed | Indexed)),
    "tile": ("a tile", lambda t: isinstance(t, Tile)),
}

# What stands for all arrays or all tiles, by name; and the annotations of either, whose elements may be open.
_NAMES = {"array": ("array", "fixedarray", "indexedarray", "fabricarray", "indexedfabricarray"), "tile": ("tile",)}
_ANNOTATIONS: dict[str, type] = {"array": ArrayAnnotation, "tile": TileAnnotation}


def type_meant(c: Any) -> Type | None:
    """The type that a class names, or None."""
    if isinstance(c, Type):
        return c
    if isinstance(c, ArrayAnnotation) or (isinstance(c, type) and (c in (int, float, bool) or _own(c) is not None)):
        return type_of(c)
    return None


def _own(c: Any) -> Type | None:
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
    return _own(x) or (x.type if isinstance(getattr(x, "type", None), View | Indexed) else None)


def _of_class(kind: str) -> Callable[[Any], bool]:
    phrase, holds = _KINDS[kind]

    def ask(t: Any) -> bool:
        if isinstance(t, ArrayAnnotation):
            return False  # it stands for an array, not for a class of arrays
        found = type_meant(t)
        if found is None and kind in _NAMES and (kind == "tile" or isinstance(t, type)):
            return getattr(t, "__treadle_builtin__", "") in _NAMES[kind]
        return found is not None and holds(found)

    ask.__doc__ = f"Whether the class ``t`` is that of {phrase}."
    ask.__name__ = f"type_is_{kind}"
    return ask


def _of_value(kind: str) -> Callable[[Any], bool]:
    phrase, holds = _KINDS[kind]

    def ask(x: Any) -> bool:
        if kind in _ANNOTATIONS and isinstance(x, _ANNOTATIONS[kind]):
            return True
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


def type_length(value: Any) -> int:
    """How many scalars a value of a type has, as :func:`type_size`, or how long a sequence is.

    >>> type_length((1.0, 2.0))
    2
    """
    return type_size(value) if isinstance(value, type) or not hasattr(value, "__len__") else len(value)


def type_scalar_type(dtype: Any) -> type:
    """The class of the scalars that a value of ``dtype`` is made of.

    Raises:
        TypeError: ``dtype`` is no scalar, vector, quaternion, transform or matrix.

    >>> import treadle as wp
    >>> type_scalar_type(wp.mat22d) is type_scalar_type(wp.float64) is wp.float64
    True
    """
    t = _required(dtype)
    if not isinstance(t, Scalar) and not _composite(t):
        raise TypeError(f"values of {spell(t)} are not made of scalars of one type")
    return scalar_class(t if isinstance(t, Scalar) else t.elem)


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
    """Whether two classes name one type, as ``float`` and ``wp.float32`` do. What names no type equals only itself.

    >>> types_equal(float, int)
    False
    """
    found = type_meant(a)
    return a == b if found is None else found is type_meant(b)


def type_ctype(dtype: Any) -> Any:
    """The type of :mod:`ctypes` that lies in memory as a value of ``dtype`` does; 16-bit floats as their bits.

    Raises:
        TypeError: ``dtype`` is no scalar, vector, quaternion, transform or matrix.

    >>> type_ctype(float)
    <class 'ctypes.c_float'>
    """
    t = _required(dtype)
    if isinstance(t, Scalar):
        return c_type(t)
    if not _composite(t):
        raise TypeError(f"ctypes has no type for values of {spell(t)}")
    whole: type[ctypes.Array]
    whole = c_type(t.elem) * t.cols * t.rows if isinstance(t, Matrix) else c_type(t.elem) * t.n
    return whole


def type_repr(t: Any) -> str:
    """The name of a class or an array annotation, as messages have it; the repr of anything else.

    >>> type_repr(float)
    'float'
    """
    if isinstance(t, ArrayAnnotation):
        return spell(t.type)
    if isinstance(t, type):
        return t.__name__ if _own(t) is not None or t in (int, float, bool) else f"{t.__module__}.{t.__qualname__}"
    return repr(t)


FUNCTIONS: dict[str, Callable] = {
    **QUESTIONS, "type_length": type_length, "type_size": type_size, "type_size_in_bytes": type_size_in_bytes,
    "type_scalar_type": type_scalar_type, "types_equal": types_equal,
    "type_ctype": type_ctype, "type_repr": type_repr,
}  # fmt: skip
