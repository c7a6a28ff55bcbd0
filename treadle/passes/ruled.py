"""Calls that bring a rule for their derivative along: how the rule is asked, and how such calls end.

While a program is being differentiated a function with a rule stays a call, whose attributes hold the rule as a
function: ``adjoint`` takes arguments, results and the adjoints of the results, and gives those of the arguments;
``tangent`` takes arguments, results and the tangents of the arguments, and gives those of the results. Only what holds
floats has adjoints and tangents. Afterwards these calls are calls like others, and small ones become their bodies.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.errors import KernelGradientError
from ..ir.builder import Builder
from ..ir.node import Block, Func, Op, Value
from ..ir.walk import with_body, with_ops, with_regions
from ..types.core import View
from .activity import is_float
from .dce import has_effect
from .inline import SMALL, SMALL_BUILTIN, copied, size

__all__ = ["expand_ruled", "has_rule", "tangents_by_rule"]


def has_rule(op: Op) -> bool:
    """Whether a call brings along how its callee is differentiated."""
    return "adjoint" in op.attrs or "tangent" in op.attrs


# ---- asking


def tangents_by_rule(b: Builder, op: Op, tangents: Sequence[Value | None]) -> dict[Value, Value]:
    """The tangents of the floats that a call with a rule gives, appended to ``b``; ``tangents`` are those of its
    arguments (None: zero). An adjoint rule is asked once for each float among the results.

    Raises:
        KernelGradientError: the rule, or the function, works on memory, so that nothing can be said of tangents.
    """
    rule, callee = op.attrs.get("tangent") or op.attrs["adjoint"], op.attrs["func"]
    if has_effect(rule) or has_effect(callee) or any(isinstance(a.type, View) for a in op.args):
        raise KernelGradientError(
            f"{callee.name} has a gradient of its own that works on arrays, which forward mode cannot follow", op.span
        )
    moving = [(a, t) for a, t in zip(op.args, tangents) if is_float(a)]
    results = [r for r in op.results if is_float(r)]
    if "tangent" in op.attrs:
        return dict(zip(results, _ask(b, rule, op, [t or b.const(0.0, a.type) for a, t in moving])))
    found = {}
    for r in results:
        shares = _ask(b, rule, op, [b.const(1.0 if s is r else 0.0, s.type) for s in results])
        total = _sum(b, [(share, t) for share, (_, t) in zip(shares, moving) if t is not None])
        if total is not None:
            found[r] = total
    return found


def _ask(b: Builder, rule: Func, op: Op, seeds: list[Value]) -> tuple[Value, ...]:
    args = (*op.args, *op.results, *seeds)
    return b.op("call", args, tuple([y.type for y in rule.body.yields]), func=rule, rule=True)


def _sum(b: Builder, pairs: list[tuple[Value, Value]]) -> Value | None:
    """The sum of the products of ``pairs``; None if there is none."""
    total: Value | None = None
    for share, tangent in pairs:
        part = b.one("mul", (tangent, share), share.type)
        total = part if total is None else b.one("add", (total, part), part.type)
    return total


# ---- the end of them


def expand_ruled(func: Func) -> Func:
    """``func``, and what it calls, with calls of functions with rules, and of rules, replaced by bodies where those are
    small, and else plain calls."""
    return _Expander().function(func)


class _Expander:
    """``env`` gives the values that stand for the results of calls that are no more."""

    def __init__(self) -> None:
        self.env: dict[Value, Value] = {}
        self.made: dict[Func, Func] = {}

    def function(self, func: Func) -> Func:
        if func not in self.made:
            self.made[func] = with_body(func, self.block(func.body))
        return self.made[func]

    def block(self, block: Block) -> Block:
        env, out = self.env, []
        for op in block.ops:
            if any(a in env for a in op.args):
                op = Op(op.name, tuple([env.get(a, a) for a in op.args]), op.results, op.attrs, op.regions, op.span)
            if op.regions:
                op = with_regions(op, tuple([self.block(r) for r in op.regions]))
            elif op.name == "call":
                callee = self.function(op.attrs["func"])
                ruled = len(op.attrs) > 1  # more than the callee
                if ruled and _small(callee):
                    inner = copied(callee.body, dict(zip(callee.params, op.args)))
                    out += inner.ops
                    env.update(zip(op.results, inner.yields))
                    continue
                if ruled or callee is not op.attrs["func"]:
                    op = Op("call", op.args, op.results, {"func": callee}, (), op.span)
            out.append(op)
        return with_ops(block, tuple(out), tuple([env.get(y, y) for y in block.yields]))


def _small(callee: Func) -> bool:
    facts = callee.facts
    limit = SMALL_BUILTIN if facts.get("builtin") else SMALL
    return not facts.get("rare") and facts.get("inline", size(callee) <= limit)
