"""Views that an ``if`` chooses: with the view it gives its gradient's view, and whether there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.node import Op, Value
from ...types.core import View, b1
from .facts import UNKNOWN
from .memory import gradient, has_gradient

if TYPE_CHECKING:
    from .reverse import Reverser

__all__ = ["chooses_views", "run_choice"]


def chooses_views(op: Op) -> bool:
    """Whether ``op`` is an ``if`` that gives a view of memory that others see."""
    return op.name == "if" and any(map(_shared, op.results))


def _shared(v: Value) -> bool:
    return isinstance(v.type, View) and v.type.space == "global"


def run_choice(r: Reverser, op: Op) -> None:
    """The ``if`` once more; of each view that it gives the gradient becomes known."""
    chosen = [k for k, v in enumerate(op.results) if _shared(v)]
    regions = []
    for region in op.regions:
        with r.scope():
            for inner in region.ops:
                r.run(inner)
            beside = [x for k in chosen for x in _gradient(r, region.yields[k])]
            regions.append(r.b.block((), (*r.all_now(region.yields), *beside)))
    results = tuple([Value(v.type, v.name) for v in op.results])
    views = [Value(op.results[k].type) for k in chosen]
    there = [Value(b1) for _ in chosen]
    made = (*results, *[x for pair in zip(views, there) for x in pair])
    r.b.ops.append(Op("if", r.all_now(op.args), made, op.attrs, tuple(regions), op.span))
    here = r.scopes[-1]
    here.now.update(zip(op.results, results))
    for k, view, known in zip(chosen, views, there):
        here.views[op.results[k]] = view
        here.there[op.results[k]] = known


def _gradient(r: Reverser, v: Value) -> tuple[Value, Value]:
    """The view of the gradient of what ``v`` shows, anything if there is none; and whether there is."""
    if r.facts.root[v] == UNKNOWN:
        return gradient(r, v), has_gradient(r, v)
    if r.facts.watched(v):
        return gradient(r, v), r.b.const(True, b1)
    return r.now(v), r.b.const(False, b1)
