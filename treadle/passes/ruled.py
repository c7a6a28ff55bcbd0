"""Calls that bring a rule for their derivative along, and how the rule is asked for tangents.

While a program is being differentiated a function with a rule stays a call, whose attributes hold the rule as a
function: ``adjoint`` takes arguments, results and the adjoints of the results, and gives those of the arguments;
``tangent`` takes arguments, results and the tangents of the arguments, and gives those of the results. Only what holds
floats has adjoints and tangents. Afterwards ``inline.drop_rules`` makes calls like others of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.errors import KernelGradientError
from ..ir.builder import Builder
from ..ir.node import Func, Op, Value
from ..ir.walk import is_float
from ..types.core import View
from .dce import has_effect

__all__ = ["has_rule", "tangents_by_rule"]


def has_rule(op: Op) -> bool:
    """Whether a call brings along how its callee is differentiated."""
    return "adjoint" in op.attrs or "tangent" in op.attrs


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
    return b.op("call", args, tuple([y.type for y in rule.body.yields]), func=rule)


def _sum(b: Builder, pairs: list[tuple[Value, Value]]) -> Value | None:
    """The sum of the products of ``pairs``; None if there is none."""
    total: Value | None = None
    for share, tangent in pairs:
        part = b.one("mul", (tangent, share), share.type)
        total = part if total is None else b.one("add", (total, part), part.type)
    return total
