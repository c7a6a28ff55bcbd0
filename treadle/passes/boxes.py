"""Numbers that are given as arrays of one element, as adjoints know gradients of arrays alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ..ir.builder import Builder
from ..ir.node import Block, Func, Op, Value
from ..types.core import Type, View, view

__all__ = ["box", "unboxed"]


def unboxed(types: Sequence[Type], places: Collection[int]) -> tuple[Type, ...]:
    """The types that the kernel says, of those of its arguments."""
    return tuple([t.elem if k in places and isinstance(t, View) else t for k, t in enumerate(types)])


def box(func: Func, places: Collection[int]) -> Func:
    """Kernel ``func`` as it was parsed, with the parameters at ``places`` read out of arrays of one element, once."""
    b, params = Builder(func.span), list(func.params)
    for k in places:
        value = params[k]
        params[k] = Value(view(value.type, 1), value.name)
        b.ops.append(Op("load", (params[k], b.i32(0)), (value,), span=func.span))
    signature = tuple([p.type for p in params])
    body = Block(func.body.params, (*b.ops, *func.body.ops), func.body.yields)
    return replace(func, params=tuple(params), signature=signature, body=body)
