"""Calls of small or once-called functions become their bodies."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from ..ir.node import Block, Func, Op, Value
from ..ir.walk import CALLED, JOINED, RULES, UNDECIDED, once, ops_of, with_body, with_functions, with_ops, with_regions
from .rewrite import Rewriter, rewrite, rewrite_all

__all__ = ["copied", "drop_rules", "inline_small", "join_apart", "size"]

# A call in gang code costs a mask, spills and the loss of what is known of the arguments: about this many ops.
SMALL = 60
# Bodies of builtins are written to be inlined; only the huge ones (decompositions, tree walks) stay calls.
SMALL_BUILTIN = 400


def inline_small(func: Func) -> Func:
    """Replace calls by the callee's body where that is small or called from one place alone.

    Callees are normalised first, each once. A function that stays a call stays one everywhere with equal arguments. The
    fact "inline" of a function decides, where there is one; one that is "rare" stays a call. So does a call that brings
    a rule for its derivative along, until ``drop_rules`` has taken that off, and one that is "apart", until
    ``join_apart``: for that it is decided here.
    """
    sites: dict[Func, int] = {}
    for op in ops_of(func.body):
        if op.name == "call":
            callee = op.attrs["func"]
            sites[callee] = sites.get(callee, 0) + 1
    if not sites:
        return func
    return with_body(func, _Inliner(func, sites).block(func.body))


def drop_rules(func: Func) -> Func:
    """``func``, and what it calls, with plain calls: for programs that are not differentiated any more."""
    return rewrite_all(func, {"call": _plain})


def _plain(rw: Rewriter, op: Op) -> None:
    if len(op.attrs) > 1:
        attrs = {key: value for key, value in op.attrs.items() if key not in RULES}
        rw.op = Op("call", op.args, op.results, attrs, op.regions, op.span)


def join_apart(func: Func) -> Func:
    """Let the bodies of functions that have rules take the place of their calls, as products have fused on either side.
    Where the program is differentiated they stay calls till then, and it must compute the same bits."""
    if not any([op.name == "call" and "apart" in op.attrs for op in ops_of(func.body)]):
        return func
    from .promote import promote_arrays

    return promote_arrays(inline_small(rewrite(func, {"call": _joined})))


def _joined(rw: Rewriter, op: Op) -> None:
    way = op.attrs.get("apart")
    if way is not None:
        callee = op.attrs["func"]
        callee = callee if way == UNDECIDED else _told(callee, way == JOINED)
        rw.op = Op("call", op.args, op.results, {"func": callee}, (), op.span)


@once
def _told(func: Func, inline: bool) -> Func:
    return replace(func, facts={**func.facts, "inline": inline})


@once
def normalised(func: Func) -> Func:
    """``func`` after the passes that every function sees before it is inlined."""
    from .pipeline import NORMALIZE, run

    return run(NORMALIZE, func)


@once
def size(func: Func) -> int:
    """How many ops ``func`` has, those of the regions counted too."""
    return sum(1 for _ in ops_of(func.body))


@once
def _sites(func: Func) -> tuple[int, ...]:
    """The numbers of the sites of stack and log in ``func``."""
    return tuple(sorted({op.attrs["site"] for op in ops_of(func.body) if op.attrs and "site" in op.attrs}))


class _Inliner:
    """``sites`` counts the calls of each function. ``numbers`` are those of sites of the gang's stack and log, which
    count function by function.

    Nobody inlines a kernel, so that the first copy of a body may have the very values of the original. ``defined`` are
    the kernel's values so far: passes keep values, so that two functions that were made from one may share some.
    """

    def __init__(self, func: Func, sites: dict[Func, int]):
        self.sites = sites
        self.defined = set(_results(func.body)) if func.kind == "kernel" else None
        self.numbers = count(1 + max(_sites(func), default=-1))
        self.env: dict[Value, Value] = {}

    def block(self, block: Block) -> Block:
        env, out = self.env, []
        untouched = env.keys().isdisjoint
        for op in block.ops:
            if not untouched(op.args):
                args = tuple([env.get(a, a) for a in op.args])
                op = Op(op.name, args, op.results, op.attrs, op.regions, op.span)
            if op.regions:
                op = with_regions(op, tuple([self.block(r) for r in op.regions]))
            elif op.name == "call":
                calls, op = self.sites[op.attrs["func"]], with_functions(op, normalised)
                callee = op.attrs["func"]
                if len(op.attrs) == 1 and self.wanted(callee, calls):  # nothing but the callee: no rule
                    inner = self.body(callee, op.args)
                    out.extend(inner.ops)
                    env.update(zip(op.results, inner.yields))
                    continue
                if op.attrs.get("apart") == UNDECIDED:
                    way = JOINED if self.wanted(callee, calls) else CALLED
                    op = Op("call", op.args, op.results, {**op.attrs, "apart": way}, (), op.span)
            out.append(op)
        return with_ops(block, tuple(out), tuple([env.get(y, y) for y in block.yields]))

    def wanted(self, callee: Func, calls: int) -> bool:
        """Whether the body of ``callee``, which is called from ``calls`` places, takes the place of its calls."""
        facts = callee.facts
        if facts.get("rare"):
            return False
        limit = SMALL_BUILTIN if facts.get("builtin") else SMALL
        return facts.get("inline", calls == 1 or size(callee) <= limit)

    def body(self, callee: Func, args: tuple[Value, ...]) -> Block:
        """The body of ``callee`` for these arguments."""
        env = dict(zip(callee.params, args))
        values = _results(callee.body) if self.defined is not None else []
        if values and self.defined.isdisjoint(values):
            self.defined.update(values)
            made = _renamed(callee.body, env)
        else:
            made = copied(callee.body, env)
        sites = _sites(callee)
        return _renumbered(made, dict(zip(sites, self.numbers))) if sites else made


def _results(block: Block) -> list[Value]:
    """What the ops of ``block`` and of the regions below define."""
    return [r for op in ops_of(block) for r in op.results]


def _renumbered(block: Block, sites: dict[int, int]) -> Block:
    """``block`` with other numbers for its sites of stack and log."""
    out = []
    for op in block.ops:
        if "site" in op.attrs:
            op = Op(op.name, op.args, op.results, {**op.attrs, "site": sites[op.attrs["site"]]}, (), op.span)
        out.append(with_regions(op, tuple([_renumbered(r, sites) for r in op.regions])) if op.regions else op)
    return with_ops(block, tuple(out))


def _renamed(block: Block, env: dict[Value, Value]) -> Block:
    """``block`` with other values for those from outside."""
    out, untouched = [], env.keys().isdisjoint
    for op in block.ops:
        if not untouched(op.args):
            op = Op(op.name, tuple([env.get(a, a) for a in op.args]), op.results, op.attrs, op.regions, op.span)
        out.append(with_regions(op, tuple([_renamed(r, env) for r in op.regions])) if op.regions else op)
    return with_ops(block, tuple(out), tuple([env.get(y, y) for y in block.yields]))


def copied(block: Block, env: dict[Value, Value]) -> Block:
    """A copy of ``block`` with values of its own; ``env`` says what stands for those from outside, and grows."""
    params, out = [], []
    for p in block.params:
        env[p] = v = Value(p.type, p.name)
        params.append(v)
    for op in block.ops:
        args = op.args
        if args:
            args = tuple([env[a] for a in args])
        regions = tuple([copied(r, env) for r in op.regions]) if op.regions else ()
        results = op.results
        if len(results) == 1:
            (r,) = results
            env[r] = v = Value(r.type, r.name)
            results = (v,)
        else:
            results = tuple([Value(r.type, r.name) for r in results])
            env.update(zip(op.results, results))
        out.append(Op(op.name, args, results, op.attrs, regions, op.span))
    return Block(tuple(params), tuple(out), tuple([env[y] for y in block.yields]))
