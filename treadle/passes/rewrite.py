"""The walk that peephole passes share: forward once, each op offered to the rule of its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..ir.node import NO_ATTRS, Block, Func, Op, Value
from ..ir.walk import with_args, with_body, with_ops, with_regions
from ..types.core import Type

__all__ = ["Rewriter", "Rule", "rewrite"]


class Rewriter:
    """One walk over one function, as its rules see it.

    A rule gets the op, its arguments and regions already rewritten, and answers None to keep it (or what it put into
    ``self.op`` instead), or the values that stand for its results; ops it makes with :meth:`emit` land before the op.
    ``defs`` gives the op that made a value, ``env`` the value that stands for another from here on.
    """

    __slots__ = ("before", "defs", "env", "op", "out", "rules")

    def __init__(self, rules: Mapping[str, Rule], before: Mapping[str, Rule] | None = None):
        self.rules = rules
        self.before = before or {}  # rules for ops with regions, asked before those are rewritten
        self.env: dict[Value, Value] = {}
        self.defs: dict[Value, Op] = {}
        self.out: list[Op] = []

    def emit(self, name: str, args: tuple[Value, ...], type: Type, **attrs: Any) -> Value:
        """A new op with one result, in front of the one the rule looks at."""
        result = Value(type)
        op = Op(name, args, (result,), attrs or NO_ATTRS, (), self.op.span)
        self.out.append(op)
        self.defs[result] = op
        return result

    def const(self, value: bool | int | float, type: Type) -> Value:
        return self.emit("const", (), type, value=value)

    def known(self, value: Value) -> Any:
        """What constant ``value`` is; None if it is none (text is no constant here)."""
        op = self.defs.get(value)
        return op.attrs["value"] if op is not None and op.name == "const" else None

    def splice(self, block: Block) -> tuple[Value, ...]:
        """Put the ops of a region, rewritten already, in place of the op that owns it; give back what it yields."""
        self.out.extend(block.ops)
        return block.yields

    def renamed(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        env = self.env
        for v in values:
            if v in env:
                return tuple([env.get(v, v) for v in values])
        return values

    def block(self, block: Block) -> Block:
        outer, self.out = self.out, []
        out, defs, env, rules = self.out, self.defs, self.env, self.rules
        for op in block.ops:
            if env:
                for a in op.args:
                    if a in env:
                        op = with_args(op, self.renamed(op.args))
                        break
            self.op = op
            if op.regions:
                rule = self.before.get(op.name)
                if rule is not None:
                    rule(self, op)
                op = self.op = with_regions(op, tuple([self.block(r) for r in op.regions]))
            rule = rules.get(op.name)
            if rule is not None:
                values = rule(self, op)
                if values is not None:
                    env.update(zip(op.results, values))
                    continue
                op = self.op
            out.append(op)
            for r in op.results:
                defs[r] = op
        self.out = outer
        return with_ops(block, tuple(out), self.renamed(block.yields))


Rule = Callable[[Rewriter, Op], "tuple[Value, ...] | None"]


def rewrite(func: Func, rules: Mapping[str, Rule], before: Mapping[str, Rule] | None = None) -> Func:
    """``func`` with ``rules`` (by op name) applied once, in order of execution."""
    return with_body(func, Rewriter(rules, before).block(func.body))
