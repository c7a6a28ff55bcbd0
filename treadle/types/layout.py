"""How a type lies in memory: its leaves with their byte offsets."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from .core import Fixed, Matrix, Scalar, Struct, Tuple, Type, Vector, View


class Leaf(NamedTuple):
    """One scalar or view inside a type: ``offset`` in bytes, and the ``path`` of child indices that leads to it."""

    offset: int
    type: Type
    path: tuple[int, ...]


def children(t: Type) -> tuple[Type, ...]:
    """The types of the direct parts of a composite (components, fields, items); empty for scalars and views.

    A matrix has its scalars as parts, row by row.
    """
    if isinstance(t, Vector | Matrix):
        return (t.elem,) * t.n
    if isinstance(t, Struct):
        return tuple(ft for _, ft in t.fields)
    if isinstance(t, Tuple):
        return t.items
    if isinstance(t, Fixed):
        return (t.elem,) * (t.size // max(t.elem.size, 1))
    return ()


def offsets(t: Type) -> tuple[int, ...]:
    """The byte offsets of the direct parts."""
    if isinstance(t, Struct):
        return t.offsets
    parts, at, out = children(t), 0, []
    for p in parts:
        out.append(at)
        at += p.size
    return tuple(out)


@cache
def leaves(t: Type) -> tuple[Leaf, ...]:
    """All scalars and views of ``t`` in memory order."""
    if isinstance(t, Scalar | View) or not children(t):
        return (Leaf(0, t, ()),) if isinstance(t, Scalar | View) else ()
    found = []
    for i, (part, offset) in enumerate(zip(children(t), offsets(t), strict=True)):
        found.extend(Leaf(offset + leaf.offset, leaf.type, (i, *leaf.path)) for leaf in leaves(part))
    return tuple(found)


@cache
def has_floats(t: Type) -> bool:
    """Whether values of ``t`` have parts that a derivative can be taken of; what a view leads to is no part of it."""
    return any(isinstance(leaf.type, Scalar) and leaf.type.is_float for leaf in leaves(t))


@cache
def has_tangent(t: Type) -> bool:
    """Whether a parameter of type ``t`` has a tangent: it has floats, or is or holds an array of what has floats."""
    return any(has_floats(leaf.type.elem if isinstance(leaf.type, View) else leaf.type) for leaf in leaves(t))


def is_composite(t: Type) -> bool:
    """Whether values of ``t`` are made of parts."""
    return isinstance(t, Vector | Matrix | Struct | Tuple | Fixed)


@cache
def pack(types: tuple[Type, ...]) -> tuple[tuple[int, ...], int]:
    """Offsets of arguments packed one after the other by C's rules, and the total size (a multiple of 8)."""
    at, out = 0, []
    for t in types:
        at = -(-at // t.align) * t.align
        out.append(at)
        at += t.size
    return tuple(out), -(-at // 8) * 8
