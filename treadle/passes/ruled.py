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
from ..types.core import Scalar, Type, View, b1
from ..types.layout import leaves
from .dce import has_effect
from .inline import SMALL, SMALL_BUILTIN, copied, size
from .scalarize import lowered

__all__ = ["expand_ruled", "has_rule", "tangents_by_rule"]


def has_rule(op: Op) -> bool:
    """Whether a call brings along how its callee is differentiated."""
    return "adjoint" in op.attrs or "tangent" in op.attrs


# ---- asking


def tangents_by_rule(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
    """The tangents of the results of a call with a rule, appended to ``b``; ``tangents`` are those of its arguments
    (None: zero). An adjoint rule is asked once for each float among the results.

    Raises:
        KernelGradientError: the rule, or the function, works on memory, so that nothing can be said of tangents.
    """
    rule = lowered(op.attrs.get("tangent") or op.attrs["adjoint"])
    callee = op.attrs["func"]
    if has_effect(rule) or has_effect(callee) or any(isinstance(a.type, View) for a in op.args):
        raise KernelGradientError(
            f"{callee.name} has a gradient of its own that works on arrays, which forward mode cannot follow", op.span
        )
    given = callee.signature or tuple([a.type for a in op.args])
    args = _float_parts(given, op.args)
    results = _float_parts(_result_types(rule, len(given), len(op.results)), op.results)
    given_tangents = dict(zip(op.args, tangents))  # of one value once more: the same
    if "tangent" in op.attrs:
        made = _ask(b, rule, op, [given_tangents[a] or _zero(b, a.type) for a in args])
        found = dict(zip(results, made))
    else:
        found = {}
        for r in results:
            if r.type.is_float:
                shares = _ask(b, rule, op, [_one(b, s.type) if s is r else _zero(b, s.type) for s in results])
                found[r] = _sum(b, list(zip(shares, [given_tangents[a] for a in args])))
    return [found.get(r) if isinstance(r.type, Scalar) and r.type.is_float else None for r in op.results]


def _ask(b: Builder, rule: Func, op: Op, seeds: list[Value]) -> tuple[Value, ...]:
    args = (*op.args, *op.results, *seeds)
    return b.op("call", args, tuple([y.type for y in rule.body.yields]), func=rule, rule=True)


def _sum(b: Builder, pairs: list[tuple[Value, Value | None]]) -> Value | None:
    """The sum of the products of ``pairs``; None if there is none."""
    total: Value | None = None
    for share, tangent in pairs:
        if tangent is not None:
            part = b.one("mul", (tangent, share), share.type)
            total = part if total is None else b.one("add", (total, part), part.type)
    return total


def _zero(b: Builder, t: Scalar) -> Value:
    return b.const(0.0 if t.is_float else False if t is b1 else 0, t)


def _one(b: Builder, t: Scalar) -> Value:
    return b.const(1.0, t)


def _has_floats(t: Type) -> bool:
    return any(isinstance(leaf.type, Scalar) and leaf.type.is_float for leaf in leaves(t))


def _float_parts(types: Sequence[Type], values: Sequence[Value]) -> list[Value]:
    """The leaves of those of ``types`` in which there are floats."""
    found, at = [], 0
    for t in types:
        count = len(leaves(t))
        if _has_floats(t):
            found += values[at : at + count]
        at += count
    return found


def _result_types(rule: Func, start: int, count: int) -> tuple[Type, ...]:
    """The types of the results of a function, ``count`` leaves in all, which follow its arguments in its rule."""
    signature, found = rule.signature or tuple([p.type for p in rule.params]), []
    while count > 0:
        t = signature[start + len(found)]
        found.append(t)
        count -= len(leaves(t))
    return tuple(found)


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
                ruled = has_rule(op) or "rule" in op.attrs
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
