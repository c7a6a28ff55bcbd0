"""Memory that a thread need not ask: loads of what it stored before, stores to what it stores to again, stores to
arrays that nobody reads. For programs in which arrays of different parameters lie apart: who makes them must know.
"""

from __future__ import annotations

from collections.abc import Collection

from ..ir.node import Block, Func, Op, Value
from ..ir.walk import ops_of, with_body, with_ops, with_regions
from .rewrite import Rewriter

__all__ = ["drop_overwritten", "drop_unread", "forward_stored"]


def forward_stored(func: Func) -> Func:
    """Let a load outside of branches and loops, of an element that the thread has stored to, be what it stored."""
    walk = Rewriter({})
    known: dict[tuple[Value, ...], tuple[Value, ...]] = {}
    ops: list[Op] = []
    for op in func.body.ops:
        place = tuple([walk.env.get(a, a) for a in _place(op)])
        if op.name == "load" and place in known:
            walk.env.update(zip(op.results, known[place], strict=True))
            continue
        changed = {each.args[0] for each in ops_of(Block((), (op,))) if each.name in ("store", "atomic")}
        if any(each.name == "call" for each in ops_of(Block((), (op,)))):
            known.clear()
        known = {other: values for other, values in known.items() if other[0] not in changed}
        if op.name == "store":
            known[place] = tuple([walk.env.get(a, a) for a in op.args[len(place) :]])
        ops.append(op)
    return with_body(func, walk.block(with_ops(func.body, tuple(ops))))


def _place(op: Op) -> tuple[Value, ...]:
    """The array and the indices of a load or a store."""
    return op.args[: 1 + op.args[0].type.ndim] if op.name in ("load", "store") else ()  # type: ignore[attr-defined]


def drop_overwritten(func: Func) -> Func:
    """Remove a store that a later one of the same block, to the same element, makes useless, if nothing reads that
    array in between."""
    ops: list[Op] = []
    later: set[tuple[Value, ...]] = set()  # elements that will be stored to, with nobody looking before
    for op in reversed(func.body.ops):
        if op.name == "store":
            place = _place(op)
            if place in later:
                continue
            later.add(place)
        elif op.name == "load":
            later = {place for place in later if place[0] is not op.args[0]}
        elif op.regions or op.name in ("call", "atomic", "subview", "slice", "field", "parts", "grad"):
            later.clear()
        ops.append(op)
    return with_body(func, with_ops(func.body, tuple(reversed(ops))))


def drop_unread(func: Func, params: Collection[Value]) -> Func:
    """Remove the stores to arrays of ``params`` that are used for nothing else; nobody looks at them afterwards."""
    used = {a for op in ops_of(func.body) for a in (op.args[1:] if op.name == "store" else op.args)}
    unread = {p for p in params if p not in used}
    return with_body(func, _without(func.body, unread)) if unread else func


def _without(block: Block, unread: set[Value]) -> Block:
    kept = [op for op in block.ops if not (op.name == "store" and op.args[0] in unread)]
    return with_ops(block, tuple([with_regions(op, tuple([_without(r, unread) for r in op.regions])) if op.regions
                                  else op for op in kept]))  # fmt: skip
