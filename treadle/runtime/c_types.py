"""Elements of arrays as ctypes sees them: scalars, C arrays of components, structures."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from ..types import numbers
from ..types.core import Indexed, Matrix, Scalar, Struct, Type, Vector, View
from ..types.spelling import spell


@cache
def c_type(t: Type) -> Any:
    """The ctypes class for values of type ``t``. Floats of 16 bits are their bits; arrays in structs are bytes."""
    if isinstance(t, Scalar):
        return numbers.c_type(t)
    if isinstance(t, Vector):
        return type(spell(t), (c_type(t.elem) * t.n,), {"__eq__": _equal, "__hash__": None})
    if isinstance(t, Matrix):
        return c_type(t.elem) * t.cols * t.rows
    if isinstance(t, View | Indexed):
        return ctypes.c_uint64 * (t.size // 8)
    if isinstance(t, Struct):
        return _structure(t)
    raise TypeError(f"elements of type {t} have no form in C")


def _equal(self: Any, other: Any) -> bool:
    return list(self) == list(other) if hasattr(other, "__len__") else NotImplemented


def _structure(t: Struct) -> Any:
    fields = [(name, c_type(part)) for name, part in t.fields]
    made = type(t.key.rpartition(".")[2], (ctypes.Structure,), {"_fields_": fields})
    assert ctypes.sizeof(made) == t.size, t
    return made


def pointer_to(address: int, t: Type) -> Any:
    """A ctypes pointer to values of type ``t`` at ``address``."""
    return ctypes.cast(address, ctypes.POINTER(c_type(t)))
