"""How types are written for users: ``float32``, ``vec3f``, ``mat33d``, ``array(dtype=vec3f, ndim=2)``."""

from __future__ import annotations

import typing
from typing import Any

from .core import (
    STR,
    Array,
    Fixed,
    FunctionType,
    Indexed,
    Matrix,
    Scalar,
    Struct,
    Tile,
    TileStack,
    Tuple,
    Type,
    Vector,
    View,
    b1,
    bf16,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
)

SCALAR_NAMES: dict[Scalar, str] = {
    b1: "bool", i8: "int8", u8: "uint8", i16: "int16", u16: "uint16", i32: "int32", u32: "uint32", i64: "int64",
    u64: "uint64", f16: "float16", bf16: "bfloat16", f32: "float32", f64: "float64",
}  # fmt: skip
SUFFIXES: dict[Scalar, str] = {
    i8: "b", u8: "ub", i16: "s", u16: "us", i32: "i", u32: "ui", i64: "l", u64: "ul", f16: "h", f32: "f", f64: "d",
}  # fmt: skip


FAMILIES = {
    "array": "array", "indexedarray": "indexed array", "fabricarray": "Fabric array",
    "indexedfabricarray": "indexed Fabric array",
}  # fmt: skip


def spell(t: Type | None) -> str:
    """The name of ``t`` as a user would write it."""
    if t is None:
        return "None"
    if isinstance(t, Scalar):
        return SCALAR_NAMES[t]
    if isinstance(t, TileStack):
        return f"tile_stack(capacity={t.capacity}, dtype={spell(t.item)})"
    if isinstance(t, Tile):
        return f"tile(dtype={spell(t.item)}, shape={t.shape})"
    if isinstance(t, Vector):
        return _vector(t)
    if isinstance(t, Matrix):
        return _matrix(t)
    if isinstance(t, View | Array | Indexed):
        dtype = spell(t.elem) if t.elem is not None else "Any"
        name = "array" if isinstance(t, View) else t.family
        return f"{name}(dtype={dtype})" if t.ndim == 1 else f"{name}(dtype={dtype}, ndim={t.ndim})"
    if isinstance(t, Struct):
        return t.key.rpartition(".")[2]
    if isinstance(t, Fixed):
        return f"fixedarray(dtype={spell(t.elem)}, shape={t.shape})"
    if isinstance(t, Tuple):
        return f"tuple[{', '.join(spell(item) for item in t.items)}]"
    if isinstance(t, FunctionType):
        return "function"
    return "str" if t is STR else t.name


def _vector(t: Vector) -> str:
    suffix = SUFFIXES.get(t.elem)
    if t.tag != "vec":
        return f"{t.tag}{suffix}" if suffix else f"{t.tag}(dtype={spell(t.elem)})"
    if suffix and t.n in (2, 3, 4):
        return f"vec{t.n}{suffix}"
    if t.n == 6 and t.elem in (f16, f32, f64):
        return f"spatial_vector{suffix}"
    return f"vector(length={t.n}, dtype={spell(t.elem)})"


def _matrix(t: Matrix) -> str:
    if t.elem in (f16, f32, f64) and t.rows == t.cols:
        if t.rows in (2, 3, 4):
            return f"mat{t.rows}{t.rows}{SUFFIXES[t.elem]}"
        if t.rows == 6:
            return f"spatial_matrix{SUFFIXES[t.elem]}"
    return f"matrix(shape=({t.rows}, {t.cols}), dtype={spell(t.elem)})"


def literal_size(n: Any) -> int:
    """A positive int, given as it is or as ``Literal[n]``.

    Raises:
        TypeError: it is neither.
    """
    if typing.get_origin(n) is typing.Literal:
        values = typing.get_args(n)
        if len(values) != 1:
            raise TypeError(f"Expected a single Literal value as a size, not one of {values}")
        n = values[0]
    if not isinstance(n, int) or n < 1:
        raise TypeError(f"a size is a positive integer, not {n!r}")
    return n
