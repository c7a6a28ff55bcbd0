"""What checked programs alone test: ``assert`` statements, as in Warp, and indices of components."""

from __future__ import annotations

from ..ir.node import Func, Op, Value
from .rewrite import Rewriter, rewrite

__all__ = ["drop_asserts"]


def drop_asserts(func: Func) -> Func:
    """``func``, and what it calls, without optional checks. Those of builtins and of unassigned names stay."""
    made: dict[Func, Func] = {}

    def without(f: Func) -> Func:
        if f not in made:
            made[f] = rewrite(f, {"check": _drop, "call": call})
        return made[f]

    def call(r: Rewriter, op: Op) -> None:
        callee = without(op.attrs["func"])
        if callee is not op.attrs["func"]:
            r.op = Op(op.name, op.args, op.results, {**op.attrs, "func": callee}, op.regions, op.span)

    return without(func)


def _drop(_: Rewriter, op: Op) -> tuple[Value, ...] | None:
    return () if op.attrs.get("optional") else None
