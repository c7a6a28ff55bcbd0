"""What a loop computes anew in each round, though nothing changes, is computed once before it."""

from __future__ import annotations

from ..builtins.registry import primitive
from ..ir.node import NO_ATTRS, Block, Func, Op, Value
from ..ir.ops import OPS
from ..ir.walk import ops_of, with_body, with_ops, with_regions
from ..types.core import View, b1
from .cse import writes

__all__ = ["hoist_unchanging"]


def hoist_unchanging(func: Func) -> Func:
    """Move pure ops, and loads of memory that the loop does not write, in front of loops that do not change them.

    Only what every round runs moves, nothing out of a branch and no load across a check. A load moves under the
    condition that the loop runs at all: its index may be valid only then.
    """
    if not any(op.name in ("for", "while") for op in ops_of(func.body)):
        return func
    primitive("lt")  # known to the IR from here on
    return with_body(func, _Hoister(func).block(func.body))


class _Hoister:
    def __init__(self, func: Func):
        self.consts = {op.results[0]: op.attrs["value"] for op in ops_of(func.body) if op.name == "const"}

    def block(self, block: Block) -> Block:
        """``block`` with its loops relieved, inner ones first."""
        out: list[Op] = []
        for op in block.ops:
            if op.regions:
                op = with_regions(op, tuple([self.block(r) for r in op.regions]))
                if op.name != "if":
                    op = self.relieve(op, out)
            out.append(op)
        return with_ops(block, tuple(out))

    def relieve(self, loop: Op, out: list[Op]) -> Op:
        """Move to ``out`` what ``loop`` does not change; give back the rest of it."""
        (body,) = loop.regions
        written = {space for op in ops_of(body) for space in writes(op)}
        kept: list[Op] = []
        inside = set(body.params)  # what a round makes and keeps
        loads: list[Op] = []  # they wait until somebody reads one of them, so that few branches guard many
        waiting: set[Value] = set()
        sure = self.runs(loop) is not None
        for op in body.ops:
            free = not op.regions and inside.isdisjoint(op.args)
            if free and OPS[op.name].pure:
                if not waiting.isdisjoint(op.args):
                    self.guard(loop, loads, out)
                    waiting.clear()
                out.append(op)
            elif free and sure and op.name == "load" and _space(op) not in written:
                loads.append(op)
                waiting.update(op.results)
            else:
                kept.append(op)
                inside.update(op.results)
                sure = sure and not _may_end(op)
        if len(kept) == len(body.ops):
            return loop
        self.guard(loop, loads, out)
        return with_regions(loop, (Block(body.params, tuple(kept), body.yields),))

    def runs(self, loop: Op) -> bool | tuple[Value, Value] | None:
        """Whether ``loop`` runs at least once: True, two values of which the first is then the smaller, or unknown."""
        if loop.name == "while":
            return True
        start, stop, step = loop.args[:3]
        by = self.consts.get(step)
        if not by:
            return None
        low, high = (start, stop) if by > 0 else (stop, start)
        first, last = self.consts.get(low), self.consts.get(high)
        return True if first is not None and last is not None and first < last else (low, high)

    def guard(self, loop: Op, loads: list[Op], out: list[Op]) -> None:
        """``loads`` in front of ``loop``, run only if it runs. Their results stay the values they were."""
        if not loads:
            return
        pair = self.runs(loop)
        if pair is True:
            out.extend(loads)
        else:
            assert isinstance(pair, tuple)
            results = tuple([r for op in loads for r in op.results])
            inner: list[Op] = []
            fresh: dict[Value, Value] = {}
            for op in loads:  # a later one may go through what an earlier one found
                args, made = tuple([fresh.get(a, a) for a in op.args]), [Value(r.type, r.name) for r in op.results]
                inner.append(Op("load", args, tuple(made), op.attrs, (), op.span))
                fresh.update(zip(op.results, made, strict=True))
            nothing = [Op("poison", (), (Value(r.type),), NO_ATTRS, (), loop.span) for r in results]
            then = Block((), tuple(inner), tuple([r for op in inner for r in op.results]))
            other = Block((), tuple(nothing), tuple([op.results[0] for op in nothing]))
            test = Value(b1)
            out.append(Op("lt", pair, (test,), NO_ATTRS, (), loop.span))
            out.append(Op("if", (test,), results, NO_ATTRS, (then, other), loop.span))
        loads.clear()


def _space(load: Op) -> str:
    v = load.args[0].type
    assert isinstance(v, View)
    return v.space


def _may_end(op: Op) -> bool:
    """Whether a thread may stop in ``op``."""
    return any(inner.name in ("check", "call") for inner in ops_of(Block((), (op,))))
