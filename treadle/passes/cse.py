"""Equal computations become one."""

from __future__ import annotations

from typing import Any

from ..ir import ops
from ..ir.node import Block, Func, Op, Value
from ..ir.walk import once, ops_of, with_body, with_ops, with_regions
from ..types.core import View

__all__ = ["share_common", "writes"]


def share_common(func: Func) -> Func:
    """Replace a pure op, or a load with no write in between, by an equal one that dominates it.

    So are calls of functions of numbers, and branches and loops that only compute: ``sin(x)`` and ``cos(x)`` share the
    reduction of ``x``, and the adjoint of ``sin(x)`` the cosine that the program has anyway.
    """
    return with_body(func, _Sharer().block(func.body))


class _Sharer:
    """``seen`` maps what an op computes to the results of the first op that did, as far as it is in reach. ``plain``:
    whether the block just walked, or all regions of the op, only compute."""

    def __init__(self):
        self.env: dict[Value, Value] = {}
        self.seen: dict[tuple, tuple[Value, ...]] = {}
        # Number of the last write to memory of each space: part of a load's key, so that a write ends all sharing.
        # A thread's own arrays cannot overlap the others.
        self.epoch = {"global": 0, "local": 0}
        self.plain = True

    def block(self, block: Block) -> Block:
        env, seen, out, added, pure = self.env, self.seen, [], [], ops.OPS
        untouched, plain = env.keys().isdisjoint, True
        for op in block.ops:
            if not untouched(op.args):
                args = tuple([env.get(a, a) for a in op.args])
                op = Op(op.name, args, op.results, op.attrs, op.regions, op.span)
            name = op.name
            if pure[name].pure:
                key = (name, op.args, op.results[0].type, _attributes(op.attrs) if op.attrs else None)
            elif name == "load":
                v = op.args[0].type
                key = ("load", op.args, self.epoch[v.space])
                plain = plain and key in seen
            elif name == "call" and computes(op.attrs["func"]):
                key = ("call", op.args, _attributes(op.attrs))
            else:
                op = self.effect(op, added)
                plain = plain and self.plain
                if not (self.plain and op.results):
                    out.append(op)
                    continue
                key = _structure(op, {})
            first = seen.get(key)
            if first is None:
                seen[key] = op.results
                added.append(key)
                out.append(op)
            else:
                env.update(zip(op.results, first))
        for key in added:
            del seen[key]
        self.plain = plain
        return with_ops(block, tuple(out), tuple([env.get(y, y) for y in block.yields]) if env else None)

    def effect(self, op: Op, added: list[tuple]) -> Op:
        """Walk into regions; note writes, and what a store makes known of the element."""
        if op.regions:
            if op.name != "if":  # a loop's body runs again after its own writes: they count from its start on
                self.advance({space for region in op.regions for inner in ops_of(region) for space in writes(inner)})
            regions, plain = [], op.name != "while"
            for region in op.regions:
                regions.append(self.block(region))
                plain = plain and self.plain
            self.plain = plain
            return with_regions(op, tuple(regions))
        self.plain = False
        self.advance(writes(op))
        if op.name == "store":
            v = op.args[0].type
            assert isinstance(v, View)
            key = ("load", op.args[: 1 + v.ndim], self.epoch[v.space])
            self.seen[key] = op.args[1 + v.ndim :]
            added.append(key)
        return op

    def advance(self, spaces: set[str]) -> None:
        for space in spaces:
            self.epoch[space] += 1


def _structure(op: Op, inside: dict[Value, int]) -> tuple:
    """What an op that only computes is equal by: values made within are known by their number."""
    args = tuple([inside.get(a, a) for a in op.args])
    regions = []
    for region in op.regions:
        for p in region.params:
            inside[p] = len(inside)
        made = []
        for inner in region.ops:
            made.append(_structure(inner, inside))
            for r in inner.results:
                inside[r] = len(inside)
        regions.append((tuple(made), tuple([inside.get(y, y) for y in region.yields])))
    return op.name, args, tuple([r.type for r in op.results]), _attributes(op.attrs), tuple(regions)


@once
def computes(func: Func) -> bool:
    """Whether ``func`` is a function of numbers: it touches no memory but its own arrays, and nothing else."""
    if any(isinstance(p.type, View) for p in func.params):
        return False
    return all(_computes(op) for op in ops_of(func.body))


def _computes(op: Op) -> bool:
    if op.name in ("load", "store"):
        return op.args[0].type.space == "local"
    if op.name == "call":
        return computes(op.attrs["func"])
    return ops.OPS[op.name].pure or bool(op.regions) or op.name == "local"


_NONE: set[str] = set()
_BOTH = {"global", "local"}


def writes(op: Op) -> set[str]:
    """The spaces that ``op`` itself may write."""
    if op.name == "call":
        return _NONE if computes(op.attrs["func"]) else _BOTH
    if ops.OPS[op.name].writes:
        return {op.args[0].type.space}  # type: ignore[attr-defined]
    return _NONE


def _attributes(attrs: dict[str, Any]) -> tuple:
    """``attrs`` as part of a key; a float by its digits, so that 0.0 and -0.0 differ and NaN equals itself."""
    if len(attrs) == 1:
        ((name, value),) = attrs.items()
        return name, value.hex() if type(value) is float else value
    return tuple([(name, _attributes({name: attrs[name]})) for name in sorted(attrs)])
