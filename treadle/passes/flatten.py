"""Branches that cost more than both their sides become selects."""

from __future__ import annotations

from ..ir.node import NO_ATTRS, Func, Op, Value
from ..ir.walk import ops_of
from .rewrite import Rewriter, rewrite

__all__ = ["flatten_cheap"]

# What may run on both sides at once; three of these cost less than a branch, or than a mask.
CHEAP = frozenset(
    "add sub mul fma neg min max abs eq ne lt le gt ge logical_not bitand bitor bitxor shl shr select cast".split()
)
BUDGET = 3


def flatten_cheap(func: Func) -> Func:
    """Turn an ``if`` with little in its sides, all of it pure, into these ops and a select for each result.

    Not so a branch by which threads leave a loop: as a branch it says that what the leaving side yields is not seen in
    the next round, so that values of the other side need no select, and counters stay the same in all lanes.
    """
    leaving: list[set[Value]] = [set()]  # of the loops around, innermost last

    def enter(rw: Rewriter, loop: Op) -> None:
        leaving.append(_leaving(loop))

    def leave(rw: Rewriter, loop: Op) -> None:
        leaving.pop()

    def flatten(rw: Rewriter, op: Op) -> tuple[Value, ...] | None:
        then, other = op.regions
        if op.args[0] in leaving[-1] or not leaving[-1].isdisjoint(op.results) or not _cheap(then.ops + other.ops):
            return None
        values = [_either(rw, op.args[0], r, a, b) for r, a, b in zip(op.results, rw.splice(then), rw.splice(other))]
        return tuple(values)

    return rewrite(func, {"if": flatten, "for": leave, "while": leave}, {"for": enter, "while": enter})


def _either(rw: Rewriter, c: Value, result: Value, a: Value, b: Value) -> Value:
    """``result`` as ``a`` where ``c``, else ``b``; what nobody may look at gives way to the other."""
    if a is b or rw.is_poison(b):
        return a
    if rw.is_poison(a):
        return b
    rw.out.append(Op("select", (c, a, b), (result,), NO_ATTRS, (), rw.op.span))
    return result


def _cheap(ops: tuple[Op, ...]) -> bool:
    spent = 0
    for op in ops:
        if op.name not in ("const", "poison"):
            spent += 1
            if spent > BUDGET or op.name not in CHEAP:
                return False
    return True


def _leaving(loop: Op) -> set[Value]:
    """The conditions that make up the stay flag of ``loop``; none if it has none."""
    (body,) = loop.regions
    if loop.name == "for" and not loop.attrs.get("stays"):
        return set()
    made = {r: op for op in ops_of(body) for r in op.results}
    found: set[Value] = set()
    todo = [body.yields[0]]
    while todo:
        v = todo.pop()
        if v in found:
            continue
        found.add(v)
        op = made.get(v)
        if op is None:
            continue
        if op.name in ("bitand", "bitor", "logical_not", "select"):
            todo.extend(op.args)
        elif op.name == "if":
            k = op.results.index(v)
            todo.extend((op.args[0], op.regions[0].yields[k], op.regions[1].yields[k]))
    return found
