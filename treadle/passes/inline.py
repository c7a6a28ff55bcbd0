"""Calls of small or once-called functions become their bodies."""

from __future__ import annotations

from functools import lru_cache

from ..ir.node import Block, Func, Op, Value
from ..ir.walk import ops_of, with_args, with_body, with_ops, with_regions

__all__ = ["copied", "inline_small", "size"]

# A call in gang code costs a mask, spills and the loss of what is known of the arguments: about this many ops.
SMALL = 60
# Bodies of builtins are written to be inlined; only the huge ones (decompositions, tree walks) stay calls.
SMALL_BUILTIN = 400


def inline_small(func: Func) -> Func:
    """Replace calls by the callee's body where that is small or called from one place alone.

    Callees are normalised first, each once. A function that stays a call stays one everywhere with equal arguments.
    """
    sites: dict[Func, int] = {}
    for op in ops_of(func.body):
        if op.name == "call":
            callee = op.attrs["func"]
            sites[callee] = sites.get(callee, 0) + 1
    if not sites:
        return func
    return with_body(func, _inline(func.body, sites, {}))


@lru_cache(maxsize=1024)
def normalised(func: Func) -> Func:
    """``func`` after the passes that every function sees before it is inlined."""
    from .pipeline import NORMALIZE, run

    return run(NORMALIZE, func)


@lru_cache(maxsize=1024)
def size(func: Func) -> int:
    """How many ops ``func`` has, those of the regions counted too."""
    return sum(1 for _ in ops_of(func.body))


def _inline(block: Block, sites: dict[Func, int], env: dict[Value, Value]) -> Block:
    out: list[Op] = []
    for op in block.ops:
        op = with_args(op, tuple([env.get(a, a) for a in op.args])) if env else op
        if op.regions:
            op = with_regions(op, tuple([_inline(r, sites, env) for r in op.regions]))
        elif op.name == "call":
            callee = normalised(op.attrs["func"])
            limit = SMALL_BUILTIN if callee.facts.get("builtin") else SMALL
            if sites[op.attrs["func"]] == 1 or size(callee) <= limit:
                inner = copied(callee.body, dict(zip(callee.params, op.args)))
                out.extend(inner.ops)
                env.update(zip(op.results, inner.yields))
                continue
            op = Op("call", op.args, op.results, {"func": callee}, (), op.span)
        out.append(op)
    return with_ops(block, tuple(out), tuple([env.get(y, y) for y in block.yields]))


def copied(block: Block, env: dict[Value, Value]) -> Block:
    """A copy of ``block`` with values of its own; ``env`` says what stands for those from outside, and grows."""

    def fresh(values: tuple[Value, ...]) -> tuple[Value, ...]:
        if not values:
            return values
        new = tuple([Value(v.type, v.name) for v in values])
        env.update(zip(values, new))
        return new

    def copy(b: Block) -> Block:
        params, out = fresh(b.params), []
        for op in b.ops:
            args = tuple([env[a] for a in op.args])
            regions = tuple([copy(r) for r in op.regions]) if op.regions else ()
            out.append(Op(op.name, args, fresh(op.results), op.attrs, regions, op.span))
        return Block(params, tuple(out), tuple([env[y] for y in b.yields]))

    return copy(block)
