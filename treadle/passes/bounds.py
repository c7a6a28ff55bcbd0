"""Which loops are sure to end."""

from __future__ import annotations

from ..ir.effects import counts_up
from ..ir.node import Func, Op
from ..ir.walk import ops_of
from .rewrite import Rewriter, rewrite

__all__ = ["mark_bounded"]


def mark_bounded(func: Func) -> Func:
    """Give every ``while`` that counts up to a limit the attribute ``bounded``: such a loop need not ask for the stop
    flag in each round."""
    consts = {op.result: op.attrs["value"] for op in ops_of(func.body) if op.name == "const"}

    def mark(rw: Rewriter, op: Op) -> None:
        if not op.attrs.get("bounded") and counts_up(op, consts):
            rw.op = Op("while", op.args, op.results, {**op.attrs, "bounded": True}, op.regions, op.span)

    return rewrite(func, {"while": mark})
