"""What derivative rules of primitives are written with, and how they are asked.

A primitive of floats states its derivative once, as ``adjoint(b, args, result, adj)``: what each argument receives
when the result's adjoint is ``adj``, one value an argument, None for nothing. ``b`` is a :class:`Rules`. A contribution
is the partial derivative times ``adj``, so the same statement also serves forward mode: put the tangent of argument i
for ``adj`` and take contribution i; the sum over i is the tangent of the result (:func:`tangent`).

**Bad points.** Where a function has a kink, a jump or an infinite slope the rule gives the finite limit or one of the
subgradients, which the builtin's docstring names. Where the derivative is truly infinite (``1/x`` at 0) it is
infinite. What was not chosen (by ``where``, ``min``, ``max``) has the adjoint 0 and must receive 0 although 0 · ∞ is
NaN. Rules multiply with :meth:`Rules.times` and divide with :meth:`Rules.over`, which see to that where ``guarded``:
they replace the *factor* where the adjoint is 0; if the program is to be differentiated once more only an infinite
one, since the derivative of a product by its adjoint is the factor. A record whose partials may be infinite for
finite arguments says ``unbounded = True``; one that takes one of its arguments says ``chooses = True``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ..base.errors import KernelGradientError
from ..ir.builder import Builder
from ..ir.node import Op, Value
from ..types.core import Type, b1
from .registry import primitive

__all__ = ["Rules", "contributions", "tangent"]

for _name in ("add", "sub", "mul", "div", "neg", "copysign", "isfinite", "eq", "lt", "gt", "bitand"):
    primitive(_name)  # rules make these operations: known to the IR from here on


class Rules:
    """Arithmetic on scalar values, appended to ``builder``.

    ``wanted[i]`` says whether argument i needs a contribution: a rule may leave the others out. ``guarded``: an adjoint
    of 0 may meet an infinite partial; none of ``finite`` is one. ``again``: the result will be differentiated itself.
    """

    __slots__ = ("again", "builder", "finite", "guarded", "wanted")

    def __init__(
        self, builder: Builder, wanted: Sequence[bool] | None = None, guarded: bool = False,
        finite: Collection[Value] = (), again: bool = True,
    ):  # fmt: skip
        self.builder, self.wanted, self.guarded = builder, wanted, guarded
        self.finite, self.again = finite, again

    def wants(self, i: int) -> bool:
        """Whether argument ``i`` needs a contribution."""
        return self.wanted is None or self.wanted[i]

    # ---- operations

    def _same(self, name: str, *xs: Value) -> Value:
        return self.builder.one(name, xs, xs[0].type)

    def const(self, value: float, type: Type) -> Value:
        """A constant of ``type``."""
        return self.builder.const(value, type)

    def add(self, x: Value, y: Value) -> Value:
        return self._same("add", x, y)

    def sub(self, x: Value, y: Value) -> Value:
        return self._same("sub", x, y)

    def mul(self, x: Value, y: Value) -> Value:
        return self._same("mul", x, y)

    def div(self, x: Value, y: Value) -> Value:
        return self._same("div", x, y)

    def neg(self, x: Value) -> Value:
        return self._same("neg", x)

    def copysign(self, x: Value, y: Value) -> Value:
        return self._same("copysign", x, y)

    def eq(self, x: Value, y: Value) -> Value:
        return self.builder.one("eq", (x, y), b1)

    def lt(self, x: Value, y: Value) -> Value:
        return self.builder.one("lt", (x, y), b1)

    def gt(self, x: Value, y: Value) -> Value:
        return self.builder.one("gt", (x, y), b1)

    def select(self, c: Value, x: Value, y: Value) -> Value:
        """``x`` where ``c``, else ``y``."""
        return self.builder.one("select", (c, x, y), x.type)

    # ---- what rules are made of

    def scaled(self, x: Value, factor: float) -> Value:
        """``factor * x``."""
        return self.mul(x, self.const(factor, x.type))

    def if_chosen(self, c: Value, adj: Value) -> Value:
        """``adj`` where ``c``, else nothing."""
        return self.select(c, adj, self.const(0.0, adj.type))

    def by_sign(self, x: Value, adj: Value) -> Value:
        """``adj`` times the sign of ``x``; nothing where ``x`` is 0 or NaN."""
        zero = self.const(0.0, x.type)
        return self.select(self.lt(x, zero), self.neg(adj), self.if_chosen(self.gt(x, zero), adj))

    def times(self, adj: Value, partial: Value) -> Value:
        """``adj * partial``; 0 where ``adj`` is 0 and ``partial`` infinite, if guarded."""
        if self.guarded and partial not in self.finite:
            zero = self.const(0.0, adj.type)
            chosen = self.select(self.eq(adj, zero), zero, partial)
            finite = self.builder.one("isfinite", (partial,), b1) if self.again else None
            partial = chosen if finite is None else self.select(finite, partial, chosen)
        return self.mul(adj, partial)

    def over(self, adj: Value, x: Value) -> Value:
        """``adj / x``; 0 where both are 0, if guarded."""
        if self.guarded:
            zero = self.const(0.0, adj.type)
            idle = self.builder.one("bitand", (self.eq(adj, zero), self.eq(x, zero)), b1)
            x = self.select(idle, self.const(1.0, x.type), x)
        return self.div(adj, x)


Rule = Callable[[Rules, Sequence[Value], Value, Value], "list[Value | None]"]


def rule_of(op: Op) -> Rule:
    """The rule of the primitive that ``op`` is; raises KernelGradientError where it has none."""
    found = primitive(op.name).part("adjoint")
    if found is None:
        raise KernelGradientError(f"{op.name} has no derivative", op.span)
    return found


def contributions(b: Rules, op: Op, args: Sequence[Value], result: Value, adj: Value) -> list[Value | None]:
    """What the adjoint ``adj`` of the result of a primitive ``op`` gives to each argument.

    ``args`` and ``result`` stand for those of ``op`` where the rule is applied; all are scalars. A contribution is None
    where there is none. Raises KernelGradientError for a primitive without a derivative.
    """
    return rule_of(op)(b, args, result, adj)


def tangent(b: Rules, op: Op, args: Sequence[Value], result: Value, tangents: Sequence[Value | None]) -> Value | None:
    """The tangent of the result of a primitive ``op`` from those of its arguments (None: zero).

    Each tangent goes through the rule in the place of the adjoint; what that gives to the other arguments is left for
    ``remove_dead``. Raises KernelGradientError for a primitive without a derivative.
    """
    rule, total = rule_of(op), None
    for i, t in enumerate(tangents):
        if t is None:
            continue
        part = rule(Rules(b.builder, [k == i for k in range(len(args))], b.guarded), args, result, t)[i]
        if part is not None:
            total = part if total is None else b.add(total, part)
    return total
