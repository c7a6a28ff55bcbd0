"""Short text for types, as libraries use it in names that they make: ``f4`` for float32, ``a2v3f4`` for 2D of vec3."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Sequence
from typing import Any

from ..base.errors import KernelTypeError
from .annotations import ArrayAnnotation, fixedarray, type_of
from .core import (
    STR,
    Array,
    Fixed,
    Indexed,
    Matrix,
    Scalar,
    Struct,
    Tile,
    Tuple,
    Type,
    Vector,
    View,
    b1,
    bf16,
    family_of,
)

_MAX_DIMENSION = 2**31 - 1  # what kernels count with


def get_type_code(annotation: Any) -> str:
    """The code of a class, an annotation or an array.

    Args:
        annotation: whatever may annotate a parameter, or an array. ``Any``, type variables and open dimensions
            give a question mark.

    Raises:
        TypeError: it is no type of the language.

    >>> import treadle as wp
    >>> get_type_code(wp.array2d[wp.vec3]), get_type_code(tuple[int, wp.quat])
    ('a2v3f4', 'tpl2i4qf4')
    """
    if isinstance(annotation, ArrayAnnotation | fixedarray):
        return _array_code(annotation.dtype, annotation.ndim, getattr(annotation, "family", "array"))
    if isinstance(getattr(annotation, "type", None), View | Indexed):  # an array
        return _array_code(annotation.dtype, annotation.ndim, family_of(annotation.type))
    if annotation is Ellipsis or annotation is typing.Any:
        return "?"
    if isinstance(annotation, typing.TypeVar):
        return {"Int": "i?", "Float": "f?", "Scalar": "s?"}.get(annotation.__name__, "?")
    if typing.get_origin(annotation) is tuple:
        items = typing.get_args(annotation)
        return f"tpl{len(items)}" + "".join(map(get_type_code, items))
    try:
        t = STR if annotation is str else type_of(annotation)
    except KernelTypeError:
        raise TypeError(f"Unrecognized type: {annotation!r}") from None
    return "?" if t is None else _code(t)


_FAMILY_CODES = {"array": "a", "indexedarray": "ia", "fabricarray": "fa", "indexedfabricarray": "ifa"}


def _array_code(dtype: Any, ndim: Any, family: str) -> str:
    return f"{_FAMILY_CODES[family]}{ndim if isinstance(ndim, int) else '?'}{get_type_code(dtype)}"


def _code(t: Type) -> str:
    if isinstance(t, Scalar):
        return "b" if t is b1 else f"{'bf' if t is bf16 else t.kind}{t.size}"
    if isinstance(t, Tile):
        return f"tl{'x'.join(map(str, t.shape))}{_code(t.item)}"
    if isinstance(t, Vector):
        return {"vec": f"v{t.n}", "quat": "q", "transform": "t"}[t.tag] + _code(t.elem)
    if isinstance(t, Matrix):
        return f"m{t.rows}{t.cols}{_code(t.elem)}"
    if isinstance(t, Tuple):
        return f"tpl{len(t.items)}" + "".join(map(_code, t.items))
    if isinstance(t, Array | View | Indexed):
        family = t.family if isinstance(t, Array) else family_of(t)
        return f"{_FAMILY_CODES[family]}{t.ndim}{_code(t.elem) if t.elem else '?'}"
    if isinstance(t, Fixed):
        return f"a{len(t.shape)}{_code(t.elem)}"
    return t.key if isinstance(t, Struct) else t.name


def type_str(annotation: Any) -> str:
    """How an annotation is written: ``tuple[int, float]``, ``list[int]``, ``array(dtype=vec3f)``.

    >>> type_str(tuple[int, ...])
    'tuple[int, ...]'
    """
    if annotation is Ellipsis:
        return "..."
    origin, items = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(origin, type) and items:
        return f"{origin.__name__}[{', '.join(map(type_str, items))}]"
    return annotation.__name__ if isinstance(annotation, type) else repr(annotation)


def get_signature(
    arg_types: Iterable[Any], func_name: str | None = None, arg_names: Sequence[str] | None = None
) -> str:
    """The codes of several types, joined by underscores.

    >>> get_signature([float, int])
    'f4_i4'
    """
    return "_".join(map(get_type_code, arg_types))


def strides_from_shape(shape: Sequence[int], dtype: Any) -> tuple[int, ...]:
    """Bytes from one element to the next in each dimension of a row-major array.

    >>> strides_from_shape((2, 3), float)
    (12, 4)
    """
    t = type_of(dtype)
    if t is None:
        raise TypeError(f"{dtype!r} has no size")
    strides, step = [], t.size
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def check_array_shape(shape: Sequence[int]) -> None:
    """Raise ValueError unless each extent is one that kernels can count in int32.

    >>> check_array_shape((2, 0))
    """
    for axis, extent in enumerate(shape):
        if not 0 <= extent <= _MAX_DIMENSION:
            raise ValueError(f"Array shapes must be from 0 to {_MAX_DIMENSION}: {extent} in dimension {axis}")
