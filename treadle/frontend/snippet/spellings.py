"""How C and C++ spell the types of the language."""

from __future__ import annotations

from functools import cache
from typing import Any

from ...types import values
from ...types.core import (
    SCALARS,
    Type,
    b1,
    f16,
    f32,
    f64,
    fixed,
    i8,
    i16,
    i32,
    i64,
    matrix,
    quaternion,
    transformation,
    u8,
    u16,
    u32,
    u64,
    vector,
)
from ..constants import type_in

_SCALARS: dict[Type, str] = {
    b1: "bool|_Bool",
    i8: "char|signed char|int8_t|int8",
    u8: "unsigned char|uint8_t|uint8|uchar|byte",
    i16: "short|short int|int16_t|int16",
    u16: "unsigned short|uint16_t|uint16|ushort",
    i32: "int|signed|signed int|int32_t|int32",
    u32: "unsigned|unsigned int|uint32_t|uint32|uint",
    i64: "long|long int|long long|long long int|int64_t|int64|ptrdiff_t|intptr_t",
    u64: "unsigned long|unsigned long long|unsigned long int|unsigned long long int|uint64_t|uint64|size_t|uintptr_t",
    f16: "half|float16",
    f32: "float|float32",
    f64: "double|float64",
}

KEYWORDS = frozenset("char short int long float double signed unsigned _Bool".split())  # C itself knows these types
TEMPLATES = frozenset({"vec_t", "mat_t", "quat_t", "transform_t", "fixedarray_t", "array_t"})
AUTO = "__auto"  # the type of a variable declared with ``auto``


@cache
def names() -> dict[str, Type]:
    """Every type by its names in C, words separated by one space."""
    found = {name: t for t, spellings in _SCALARS.items() for name in spellings.split("|")}
    for name, cls in values.names().items():
        t = type_in(cls)
        if name.isidentifier() and isinstance(t, Type) and name not in found:
            found[name] = t
    return found


def template(name: str, args: list[Any]) -> Type | None:
    """The type of ``name<args>``, where each argument is an int or a type; None where there is none. An ``array_t`` is
    whatever array stands at its right."""
    match name, args:
        case "vec_t", [int(n), t] if t in SCALARS:
            return vector(n, t)
        case "mat_t", [int(rows), int(cols), t] if t in SCALARS:
            return matrix(rows, cols, t)
        case "quat_t", [t] if t in SCALARS:
            return quaternion(t)
        case "transform_t", [t] if t in SCALARS:
            return transformation(t)
        case "fixedarray_t", [int(n), Type() as t]:
            return fixed(t, (n,))
    return None
