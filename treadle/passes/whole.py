"""Loads of all components of an element, one by one, become one load.

Adjoint programs add to vectors component by component and read their gradients so: side by side in memory, a lane takes
them at once.
"""

from __future__ import annotations

from ..ir.node import Block, Func, Op, Value
from ..ir.walk import ops_of, with_body, with_ops, with_regions
from ..types.core import Scalar
from ..types.layout import children
from .cse import writes

__all__ = ["load_whole"]

Group = dict[int, Op]  # by component, the load of it


def load_whole(func: Func) -> Func:
    """``func`` (scalarized) with loads of one scalar each, that together read an element, as one; no write lies in
    between."""
    parts = {
        op.result: (op.args[0], op.attrs["index"]) for op in ops_of(func.body)
        if op.name == "field" and all(isinstance(t, Scalar) for t in children(op.args[0].type.elem))
    }  # fmt: skip
    return with_body(func, _block(func.body, parts)) if parts else func


def _block(block: Block, parts: dict[Value, tuple[Value, int]]) -> Block:
    groups: dict[tuple, Group] = {}
    epoch = {"global": 0, "local": 0}
    out: list[Op] = []
    for op in block.ops:
        if op.regions:
            op = with_regions(op, tuple([_block(r, parts) for r in op.regions]))
        out.append(op)
        for space in {space for inner in ops_of(Block((), (op,))) for space in writes(inner)}:
            epoch[space] += 1
        if op.name == "load" and op.args[0] in parts:
            whole, index = parts[op.args[0]]
            groups.setdefault((whole, op.args[1:], epoch[whole.type.space]), {}).setdefault(index, op)
    firsts: dict[Op, Op] = {}
    dropped: set[Op] = set()
    for (whole, indices, _), group in groups.items():
        if len(group) == len(children(whole.type.elem)) > 1:
            first, *others = group.values()
            results = tuple([group[k].result for k in range(len(group))])
            firsts[first] = Op("load", (whole, *indices), results, first.attrs, (), first.span)
            dropped.update(others)
    return with_ops(block, tuple([firsts.get(op, op) for op in out if op not in dropped]))
