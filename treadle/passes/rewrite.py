"""The walk that peephole passes share: forward once, each op offered to the rule of its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..ir.node import NO_ATTRS, Block, Func, Op, Value
from ..ir.walk import names_of, with_body, with_functions, with_ops, with_regions
from ..types.core import Type

__all__ = ["Rewriter", "Rule", "rewrite", "rewrite_all"]


class Rewriter:
    """One walk over one function, as its rules see it.

    A rule gets the op, its arguments and regions already rewritten, and answers None to keep it (or what it put into
    ``self.op`` instead), or the values that stand for its results; ops it makes with :meth:`emit` land before the op.
    ``defs`` gives the op that made a value, ``consts`` what a constant is, ``env`` the value that stands for another
    from here on.
    """

    __slots__ = ("before", "consts", "defs", "env", "op", "out", "rules")

    def __init__(self, rules: Mapping[str, Rule], before: Mapping[str, Rule] | None = None):
        self.rules = rules
        self.before = before or {}  # rules for ops with regions, asked before those are rewritten
        self.env: dict[Value, Value] = {}
        self.defs: dict[Value, Op] = {}
        self.consts: dict[Value, Any] = {}
        self.out: list[Op] = []

    def emit(self, name: str, args: tuple[Value, ...], type: Type, **attrs: Any) -> Value:
        """A new op with one result, in front of the one the rule looks at."""
        result = Value(type)
        op = Op(name, args, (result,), attrs or NO_ATTRS, (), self.op.span)
        self.out.append(op)
        self.defs[result] = op
        return result

    def const(self, value: bool | int | float, type: Type) -> Value:
        result = self.emit("const", (), type, value=value)
        self.consts[result] = value
        return result

    def is_poison(self, v: Value) -> bool:
        """Whether ``v`` is what nobody may look at."""
        maker = self.defs.get(v)
        return maker is not None and maker.name == "poison"

    def splice(self, block: Block) -> tuple[Value, ...]:
        """Put the ops of a region, rewritten already, in place of the op that owns it; give back what it yields."""
        self.out.extend(block.ops)
        return block.yields

    def regions(self, op: Op) -> tuple[Block, ...]:
        """The regions of ``op``, rewritten."""
        return tuple([self.block(r) for r in op.regions])

    def block(self, block: Block) -> Block:
        outer, self.out = self.out, []
        out, defs, env, rule_of = self.out, self.defs, self.env, self.rules.get
        untouched = env.keys().isdisjoint
        for op in block.ops:
            name, results = op.name, op.results
            if name == "const":
                (r,) = results
                self.consts[r] = op.attrs["value"]
                defs[r] = op
                out.append(op)
                continue
            if not untouched(op.args):
                op = Op(name, tuple([env.get(a, a) for a in op.args]), results, op.attrs, op.regions, op.span)
            if op.regions:
                self.op = op
                rule = self.before.get(name)
                if rule is not None:
                    rule(self, op)
                op = with_regions(op, self.regions(op))
            rule = rule_of(name)
            if rule is not None:
                self.op = op
                values = rule(self, op)
                if values is not None:
                    env.update(zip(results, values))
                    continue
                op = self.op
            out.append(op)
            for r in results:
                defs[r] = op
        self.out = outer
        return with_ops(block, tuple(out), tuple([env.get(y, y) for y in block.yields]))


Rule = Callable[[Rewriter, Op], "tuple[Value, ...] | None"]


def rewrite(
    func: Func, rules: Mapping[str, Rule], before: Mapping[str, Rule] | None = None, kind: type[Rewriter] = Rewriter
) -> Func:
    """``func`` with ``rules`` (by op name) applied once, in order of execution."""
    if names_of(func).isdisjoint({*rules, *(before or ())}):
        return func
    return with_body(func, kind(rules, before).block(func.body))


def rewrite_all(func: Func, rules: Mapping[str, Rule]) -> Func:
    """``func``, and every function that it calls, with ``rules`` applied; those that nothing changes stay the same."""
    return _Everywhere(rules).changed(func)


class _Everywhere:
    """A class, as functions that know each other would keep all that they made until the collector finds them."""

    def __init__(self, rules: Mapping[str, Rule]):
        self.rules = rules
        self.made: dict[Func, Func] = {}

    def changed(self, func: Func) -> Func:
        if func not in self.made:
            self.made[func] = rewrite(func, {**self.rules, "call": self.call})
        return self.made[func]

    def call(self, rw: Rewriter, op: Op) -> None:
        rule = self.rules.get("call")
        if rule is not None:
            rule(rw, op)
        rw.op = with_functions(rw.op, self.changed)
