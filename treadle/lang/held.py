"""The arrays that memory holds: in the elements of arrays of structs, and in buckets. No argument names them, so a tape
asks what arguments lead to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..runtime.array import array
from ..types.core import Bucketed, Indexed, Struct, Type, View
from ..types.layout import leaves

__all__ = ["holds_arrays", "held_by"]


def holds_arrays(t: Type) -> bool:
    """Whether arguments of type ``t`` are, or have, arrays whose elements have arrays."""
    return any([isinstance(leaf.type, View) and _has_arrays(leaf.type.elem) for leaf in leaves(t)])


def _has_arrays(elem: Type) -> bool:
    return any([isinstance(leaf.type, View) for leaf in leaves(elem)])


def held_by(value: Any, t: Type, named: bool = True) -> Iterator[array]:
    """The arrays in the memory that ``value``, of type ``t``, leads to. ``named``: ``value`` is an argument or a part
    of one, so that its own arrays are none of these."""
    if value is None:
        return
    if isinstance(t, Bucketed):
        yield from (value.fa if t.listed else value).memory()
    elif isinstance(t, Indexed):
        yield from held_by(value.data, value.data.type, named)
    elif isinstance(t, Struct):
        for name, part in t.fields:
            yield from held_by(getattr(value, name), part, named)
    elif isinstance(t, View):
        if not named:
            yield value
        for item in value.list() if _has_arrays(t.elem) else ():
            yield from held_by(item, t.elem, False)
