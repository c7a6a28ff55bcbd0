"""Products and sums become fused multiply-adds, by a rule that depends on the program alone."""

from __future__ import annotations

from ..builtins.registry import primitive
from ..ir.node import Func, Op, Value
from ..ir.walk import uses_of
from ..types.core import f32, f64
from .rewrite import Rewriter, Rule, rewrite, rewrite_all

__all__ = ["form_fma", "leave_products"]


def form_fma(func: Func) -> Func:
    """``a*b + c``, ``a*b - c`` and ``c - a*b`` of f32 or f64 round once, as ``fma``.

    The product must be used once, and ``c`` must not be a product itself: so ``a*b - b*a`` stays 0, and ``x*x - y*y``
    keeps its sign. Products with the attribute ``exact`` (the elementary functions are proved with each rounding) stay
    as they are. The machine's own contraction is off; this is the only place where an fma comes from a sum.
    """
    primitive("fma")  # known to the IR from here on
    return rewrite(func, _rules(uses_of(func.body)))


def leave_products(func: Func) -> Func:
    """``func``, and what it calls, with products that no later pass fuses: what ``fuse_fp=False`` asks for."""
    return rewrite_all(func, {"mul": _exact})


def _exact(rw: Rewriter, op: Op) -> None:
    if not op.attrs.get("exact"):
        rw.op = Op(op.name, op.args, op.results, {**op.attrs, "exact": True}, op.regions, op.span)


def _rules(uses: dict[Value, int]) -> dict[str, Rule]:
    def product(rw: Rewriter, v: Value) -> Op | None:
        maker = rw.defs.get(v)
        return maker if maker is not None and maker.name == "mul" and not maker.attrs.get("exact") else None

    def factors(rw: Rewriter, v: Value, other: Value) -> tuple[Value, ...] | None:
        """The factors of ``v``, if it may fuse with a sum with ``other``."""
        made = product(rw, v)
        if made is None or uses[v] != 1 or product(rw, other) is not None:
            return None
        maker = rw.defs.get(other)
        if maker is not None and maker.name == "neg" and product(rw, maker.args[0]) is not None:
            return None
        return made.args

    def add(rw: Rewriter, op: Op) -> tuple[Value, ...] | None:
        a, b = op.args
        t = op.result.type
        if t is not f32 and t is not f64:
            return None
        if (ab := factors(rw, a, b)) is not None:
            return (rw.emit("fma", (*ab, b), t),)
        if (ab := factors(rw, b, a)) is not None:
            return (rw.emit("fma", (*ab, a), t),)
        return None

    def sub(rw: Rewriter, op: Op) -> tuple[Value, ...] | None:
        a, b = op.args
        t = op.result.type
        if t is not f32 and t is not f64:
            return None
        if (ab := factors(rw, a, b)) is not None:
            return (rw.emit("fma", (*ab, rw.emit("neg", (b,), t)), t),)
        if (ab := factors(rw, b, a)) is not None:
            return (rw.emit("fma", (rw.emit("neg", (ab[0],), t), ab[1], a), t),)
        return None

    return {"add": add, "sub": sub}
