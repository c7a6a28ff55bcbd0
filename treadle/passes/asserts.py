"""What checked programs alone test: ``assert`` statements, as in Warp, and indices of components."""

from __future__ import annotations

from ..ir.node import Func, Op, Value
from .rewrite import Rewriter, rewrite_all

__all__ = ["drop_asserts"]


def drop_asserts(func: Func) -> Func:
    """``func``, and what it calls, without optional checks. Those of builtins and of unassigned names stay."""
    return rewrite_all(func, {"check": _drop})


def _drop(_: Rewriter, op: Op) -> tuple[Value, ...] | None:
    return () if op.attrs.get("optional") else None
