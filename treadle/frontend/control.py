"""Control flow as regions: names assigned in a branch become its results; leaving early becomes flags.

Translating a list of statements answers its *flow*: True if control always goes on behind it, False if it never does,
or a bool value of the program, true where it does. A statement whose flow is such a value guards the rest of its block:
``if go { rest }``. Where one arm of an ``if`` always leaves, the rest is nested in the other arm instead.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from ..base.errors import KernelTypeError, TreadleError
from ..ir.builder import Builder
from ..ir.node import Op, Value
from ..types.core import Scalar, Type, b1, tuple_of
from ..types.spelling import spell
from .constants import FALSE, TRUE, Constant, Operand
from .core import Core, common_type
from .environment import FLOW, RESULT, Broken, Cascade, Environment, TypeNeeded, Unsettled, Variable
from .facts import NONE, Names

Flow = bool | Value
FLOWS: Names = frozenset([FLOW])


class Arm:
    """One side of a branch after its translation: its builder, its variables, its flow, what it yields."""

    __slots__ = ("builder", "env", "flow", "yields")

    def __init__(self, builder: Builder, env: Environment, flow: Flow):
        self.builder, self.env, self.flow = builder, env, flow
        self.yields: list[Operand | None] = []  # None: nothing is known there (poison)


class Control(Core):
    """Blocks and branches."""

    def block(self, statements: Sequence[ast.stmt], live: Names = NONE) -> Flow:
        """Translate ``statements``; ``live`` are the names somebody reads after them, on any way out."""
        for i, s in enumerate(statements):
            rest = statements[i + 1 :]
            seen = live | FLOWS if rest else live
            flow, nested = self.attempt(lambda s=s, rest=rest, seen=seen: self._one(s, rest, live, seen), s) or (
                True,
                False,
            )
            if nested:
                return flow
            if flow is True:
                continue
            if flow is False or not rest:
                return flow
            made = self.attempt(lambda s=s, go=flow, rest=rest: self._guarded(go, rest, live, s), s)
            return True if made is None else made
        return True

    def _guarded(self, go: Value, rest: Sequence[ast.stmt], live: Names, s: ast.stmt) -> Flow:
        return self.branch(go, lambda: self.block(rest, live), lambda: False, live, s)

    def _one(self, s: ast.stmt, rest: Sequence[ast.stmt], live: Names, seen: Names) -> tuple[Flow, bool]:
        return self.if_statement(s, rest, live, seen) if isinstance(s, ast.If) else (self.statement(s, live), False)

    def attempt(self, translate: Callable[[], Any], s: ast.stmt) -> Any:
        """The result of ``translate``; None if it failed: the error is noted, and what ``s`` assigns is broken."""
        builder, env, kind = self.builder, self.env, Broken
        try:
            return translate()
        except TreadleError as error:
            self.errors.append(self.placed(error, s))
        except TypeNeeded as missing:
            self.needed.setdefault(missing.name, missing.span)
            kind = Unsettled
        except Cascade:
            pass
        self.builder, self.env = builder, env
        for name in self.facts.of[s].rebinds:
            self.env[name] = kind(self.span(s))
        return None

    def if_statement(self, s: ast.If, rest: Sequence[ast.stmt], live: Names, seen: Names) -> tuple[Flow, bool]:
        """Translate an ``if``, and ``rest`` with it if one arm always leaves.

        ``live`` are the names read behind the block, ``seen`` those and perhaps the flow behind this statement. Answers
        the flow, and whether ``rest`` was included.
        """
        test = self.attempt(lambda: self.truth(self.expression(s.test), s.test), s)
        facts, body, orelse = self.facts, s.body, s.orelse
        if isinstance(test, bool):
            return self.block(body if test else orelse, facts.after[s] | seen), False
        then_leaves, else_leaves = facts.always_leaves(body), facts.always_leaves(orelse)
        nested = bool(rest) and then_leaves != else_leaves
        if nested and else_leaves:
            body = [*body, *rest]
        elif nested:
            orelse = [*orelse, *rest]
        elif not (facts.any_leaves(body) or facts.any_leaves(orelse)):
            live = facts.after[s]
        else:
            live = facts.after[s] | seen
        if test is None:  # an error in the condition: translate both arms for their errors
            self.block(body, live)
            self.block(orelse, live)
            return True, nested
        then, other = (lambda: self.block(body, live)), (lambda: self.block(orelse, live))
        if then_leaves and not else_leaves:  # turned round, so that the condition says who stays
            return self.branch(self.negate(test, s.test), other, then, live, s, turned=True), nested
        return self.branch(test, then, other, live, s), nested

    # -- branches ----------------------------------------------------------------------------------------------------

    def branch(
        self,
        c: Value,
        then: Callable[[], Flow],
        orelse: Callable[[], Flow],
        live: Names,
        node: ast.AST,
        turned: bool = False,
    ) -> Flow:
        """``if c { then } else { orelse }``; afterwards the names in ``live`` have the value of the side that ran.

        ``turned``: the other side stands first in the source, and is translated first.
        """
        outer, before = self.builder, self.env
        other = self._arm(orelse, before, outer) if turned else None
        arms = (self._arm(then, before, outer), other or self._arm(orelse, before, outer))
        self.builder, self.env = outer, dict(before)
        results = Results(self, c, arms, node)
        for name in _changed(before, arms):
            if name in live or name[0] == "$":
                self._merge(name, arms, results)
            else:
                self.env.pop(name, None)
        flow = self._merge_flow(arms, results) if FLOW in live else True
        results.emit()
        return flow

    def _arm(self, translate: Callable[[], Flow], before: Environment, outer: Builder) -> Arm:
        self.builder, self.env = Builder(outer.span), dict(before)
        flow = translate()
        return Arm(self.builder, self.env, flow)

    def _merge(self, name: str, arms: tuple[Arm, Arm], results: Results) -> None:
        """Give ``name`` its value after the branch."""
        a, b = (arm.env.get(name) for arm in arms)
        present = a or b
        self.env.pop(name, None)
        if present is None:
            return
        for v, other in ((a, b), (b, a)):
            if isinstance(v, Broken):
                settled = isinstance(v, Unsettled) and other is not None
                self.env[name] = other if settled else v  # the other side tells the type
                return
        x, y = (None if v is None else v.operand for v in (a, b))
        operand, t = present.operand, self._merged_type(name, a, b, results.node)
        if x is not y and not (isinstance(x, Constant) and x.same(y)):
            if t is None:
                if a is not None and b is not None:
                    self.fail(results.node, f"{name!r} is a different compile-time object in each branch",
                              "choose it outside of the kernel, or with wp.static")  # fmt: skip
            elif not (isinstance(present.operand, Constant) and (a is None or b is None)):
                operand = results.add(x, y, t)
        defined: bool | Value = True
        if name != RESULT:
            bits = [FALSE if v is None else TRUE if v.defined is True else v.defined for v in (a, b)]
            bit = results.add(bits[0], bits[1], b1)
            defined = True if bit is TRUE else bit
        self.env[name] = Variable(operand, defined, present.span)

    def _merged_type(self, name: str, a: Variable | None, b: Variable | None, node: ast.AST) -> Type | None:
        """The type both sides agree on; None if one is a compile-time object."""
        if a is None or b is None:
            return operand_type((a or b).operand)
        s, t = operand_type(a.operand), operand_type(b.operand)
        if s is None and isinstance(a.operand, Value):  # its type was unknown so far
            a.operand.type = s = t
        if t is None and isinstance(b.operand, Value):
            b.operand.type = t = s
        if s is not t and s is not None and t is not None:
            both = common_type(s, t)
            if both is None:
                self.two_types(name, a, t, b.span, node)
            return both
        return s if t is not None else None

    def two_types(self, name: str, known: Variable, other: Type, where: Any, node: ast.AST) -> None:
        """Complain that a variable changes its type."""
        first = operand_type(known.operand)
        where = where if where.line else self.span(node)
        if name == RESULT:
            places = f"{spell(first)} in line {known.span.line} and {spell(other)} in line {where.line}"
            raise KernelTypeError(f"{self.source.name} returns {places}", where, "return the same types everywhere")
        line = f" since line {known.span.line}" if known.span.line else ""
        raise KernelTypeError(
            f"variable {name!r} is {spell(first)}{line} and cannot become {spell(other)}",
            where,
            "use another name, or convert the value",
        )

    def _merge_flow(self, arms: tuple[Arm, Arm], results: Results) -> Flow:
        flows = [arm.flow if isinstance(arm.flow, Value) else TRUE if arm.flow else FALSE for arm in arms]
        made = results.add(flows[0], flows[1], b1)
        return made.value if isinstance(made, Constant) else made

    def aside(self, translate: Callable[[], Any]) -> tuple[Any, list[Op]]:
        """Translate into a list of ops of its own, to be spliced in or put under a branch."""
        outer, env = self.builder, self.env
        self.builder, self.env = Builder(outer.span), dict(env)
        try:
            made = translate()
            return made, self.builder.ops
        finally:
            self.builder, self.env = outer, env


class Results:
    """The results an ``if`` must have: pairs of what each side yields."""

    def __init__(self, parser: Control, c: Value, arms: tuple[Arm, Arm], node: ast.AST):
        self.parser, self.c, self.arms, self.node = parser, c, arms, node
        self.values: list[Value] = []
        self.idle = not any(arm.builder.ops for arm in arms)  # neither side does anything: selects are enough
        self.inverse: Value | None = None

    def add(self, x: Operand | None, y: Operand | None, t: Type) -> Operand:
        """The operand that is ``x`` where the condition holds, else ``y``; None stands for anything."""
        if x is y or (isinstance(x, Constant) and x.same(y)):
            return x
        if t is b1 and isinstance(x, Constant) and isinstance(y, Constant):
            return self.c if x.value else self.negated()
        if self.idle and (x is None or y is None):  # it was there before: where it is not assigned it may be anything
            return y if x is None else x
        if self.idle and isinstance(t, Scalar):
            return self._select(x, y, t)
        self.arms[0].yields.append(x)
        self.arms[1].yields.append(y)
        self.values.append(Value(t))
        return self.values[-1]

    def negated(self) -> Value:
        """The opposite of the condition."""
        if self.inverse is None:
            self.inverse = self.parser.negate(self.c, self.node)
        return self.inverse

    def _select(self, x: Operand, y: Operand, t: Type) -> Value:
        p, b = self.parser, self.parser.here(self.node)
        if t is b1 and isinstance(y, Constant) and not y.value:
            return b.one("bitand", (self.c, p.value(x, self.node)), b1)
        if t is b1 and isinstance(x, Constant) and x.value:
            return b.one("bitor", (self.c, p.value(y, self.node)), b1)
        return b.one("select", (self.c, p.value(x, self.node, t), p.value(y, self.node, t)), t)

    def emit(self) -> None:
        """Append the op, unless nothing is left for it to do."""
        p, outer = self.parser, self.parser.builder
        span = p.span(self.node)
        blocks = []
        for arm in self.arms:
            p.builder = arm.builder
            arm.builder.span = span
            ready = [
                arm.builder.one("poison", (), r.type)
                if y is None
                else p.laid_out(p.value(y, self.node, r.type), r.type, self.node)
                for y, r in zip(arm.yields, self.values, strict=True)
            ]
            blocks.append(arm.builder.block((), tuple(ready)))
        p.builder = outer
        if self.values or any(block.ops for block in blocks):
            outer.ops.append(Op("if", (self.c,), tuple(self.values), regions=(blocks[0], blocks[1]), span=span))


def _changed(before: Environment, arms: tuple[Arm, Arm]) -> list[str]:
    """The names that a side has bound anew or lost, in a fixed order."""
    a, b = arms[0].env, arms[1].env
    names = [n for n, v in a.items() if before.get(n) is not v]
    names += [n for n, v in b.items() if before.get(n) is not v and n not in names]
    return names + [n for n in before if (n not in a or n not in b) and n not in names]


def operand_type(x: Operand) -> Type | None:
    """The type ``x`` has as a value of the program; None for compile-time objects."""
    if isinstance(x, tuple):
        parts = [operand_type(p) for p in x]
        return None if None in parts else tuple_of(*parts)
    return x.type
