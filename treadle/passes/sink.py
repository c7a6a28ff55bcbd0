"""A store that both arms of a branch end with becomes one store after it.

``if c: a[i] = x`` / ``else: a[i] = y`` then writes once, where under masks it would write twice, each time in part.
"""

from __future__ import annotations

from ..ir.node import Block, Func, Op, Value
from ..ir.ops import info
from ..ir.walk import with_body, with_ops, with_regions

__all__ = ["sink_stores"]


def sink_stores(func: Func) -> Func:
    """``func`` with stores to the same element moved out of both arms."""
    return with_body(func, _block(func.body))


def _block(block: Block) -> Block:
    out: list[Op] = []
    for op in block.ops:
        if op.regions:
            op = with_regions(op, tuple([_block(r) for r in op.regions]))
            if op.name == "if":
                out.extend(_sunk(op))
                continue
        out.append(op)
    return with_ops(block, tuple(out))


def _sunk(op: Op) -> list[Op]:
    """``op`` without the stores that end both its arms, then those stores."""
    then, other = op.regions
    at, there = _last_effect(then), _last_effect(other)
    if at is None or there is None:
        return [op]
    a, b = then.ops[at], other.ops[there]
    places = 1 + a.args[0].type.ndim if a.name == b.name == "store" else 0
    inside = {r for region in op.regions for o in region.ops for r in o.results}
    if not places or a.args[:places] != b.args[:places] or any(v in inside for v in a.args[:places]):
        return [op]
    values = tuple([Value(x.type) for x in a.args[places:]])
    regions = (_without(then, at, a.args[places:]), _without(other, there, b.args[places:]))
    branch = Op("if", op.args, op.results + values, op.attrs, regions, op.span)
    store = Op("store", a.args[:places] + values, (), a.attrs, (), a.span)
    return [*_sunk(branch), store]


def _last_effect(block: Block) -> int | None:
    """The place of the last op that does more than compute."""
    for k in range(len(block.ops) - 1, -1, -1):
        if block.ops[k].regions or not info(block.ops[k].name).pure:
            return k
    return None


def _without(block: Block, at: int, values: tuple[Value, ...]) -> Block:
    return Block(block.params, block.ops[:at] + block.ops[at + 1 :], block.yields + values)
