"""Structure that is settled while compiling goes: composites taken apart at once, decided branches, idle loops."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..builtins.registry import primitive
from ..ir.node import Block, Func, Op, Value
from ..ir.walk import ops_of
from ..types.core import Fixed, Matrix, Type, Vector, View, b1
from .dce import remove_dead
from .fold import folding
from .rewrite import Rewriter, Rule, rewrite

__all__ = ["RULES", "Knowing", "keep_views", "settle", "simplify"]

LOOPS = ("for", "while")


def simplify(func: Func) -> Func:
    """Read parts straight from where they were put; choose what a known condition chooses; unwrap loops that run once
    or never; hand on past a loop what it does not change."""
    primitive("logical_not")  # known to the IR from here on
    return rewrite(func, RULES, {"for": _unchanging, "while": _unchanging}, Knowing)


def settle(func: Func) -> Func:
    """`fold` and `simplify` in one walk: what either finds, the other sees from there on."""
    primitive("logical_not")
    with np.errstate(all="ignore"):
        return rewrite(func, {**folding(func), **RULES}, {"for": _unchanging, "while": _unchanging}, Knowing)


def keep_views(func: Func) -> Func:
    """A view that a loop hands on as it came is the one from before the loop. `settle` asks that before it knows what
    the branches in the body come to, and differentiation needs the answer: it knows one array for each view."""
    for _ in [op for op in ops_of(func.body) if op.name in LOOPS]:  # what is found of a loop may decide one around it
        if not any([_hands_on_a_view(op) for op in ops_of(func.body) if op.name in LOOPS]):
            break
        func = remove_dead(rewrite(func, {}, dict.fromkeys(LOOPS, _unchanging)))
    return func


def _hands_on_a_view(op: Op) -> bool:
    n, body = len(op.results), op.regions[0]
    return n > 0 and any([
        isinstance(p.type, View) and p is handed for p, handed in zip(body.params[-n:], body.yields[-n:], strict=True)
    ])  # fmt: skip


class Knowing(Rewriter):
    """A rewriter that knows, inside a branch, how its condition came out."""

    __slots__ = ("truths",)

    def __init__(self, rules: Mapping[str, Rule], before: Mapping[str, Rule] | None = None):
        super().__init__(rules, before)
        self.truths: dict[Value, bool] = {}

    def regions(self, op: Op) -> tuple[Block, ...]:
        if op.name != "if":
            return super().regions(op)
        before, made = self.truths, []
        for region, truth in zip(op.regions, (True, False)):
            self.truths = dict(before)
            self.learn(op.args[0], truth)
            made.append(self.block(region))
        self.truths = before
        return tuple(made)

    def learn(self, v: Value, truth: bool) -> None:
        """Note that ``v`` is ``truth``, and what follows for the values it was made from."""
        self.truths[v] = truth
        op = self.defs.get(v)
        if op is None:
            return
        if op.name == "logical_not":
            self.learn(op.args[0], not truth)
        elif op.name == ("bitand" if truth else "bitor") and v.type is b1:
            for a in op.args:
                self.learn(a, truth)

    def truth(self, v: Value) -> bool | None:
        """Whether ``v`` is true, if that is known here."""
        known = self.consts.get(v, self.truths.get(v))
        op = self.defs.get(v)
        if known is None and op is not None and op.name == "logical_not":
            known = self.truth(op.args[0])
            return None if known is None else not known
        return known


# ---- composites


def _extract(rw: Rewriter, op: Op) -> tuple[Value, ...] | None:
    (c,), index = op.args, op.attrs["index"]
    before = c
    while (maker := rw.defs.get(c)) is not None:
        if maker.name == "make":
            return (maker.args[index],)
        if maker.name != "insert":
            break
        if maker.attrs["index"] == index:
            return (maker.args[1],)
        c = maker.args[0]
    return None if c is before else (rw.emit("extract", (c,), op.result.type, index=index),)


def _insert(rw: Rewriter, op: Op) -> tuple[Value, ...] | None:
    c, part = op.args
    maker = rw.defs.get(c)
    if maker is None or maker.name != "make":
        return None
    index = op.attrs["index"]
    return (rw.emit("make", (*maker.args[:index], part, *maker.args[index + 1 :]), op.result.type),)


def _make(rw: Rewriter, op: Op) -> tuple[Value, ...] | None:
    """All parts of one composite put together again are that composite."""
    whole: Value | None = None
    for i, part in enumerate(op.args):
        maker = rw.defs.get(part)
        if maker is None or maker.name != "extract" or maker.attrs["index"] != i:
            return None
        if maker.args[0] is not whole and (i or maker.args[0].type is not op.result.type):
            return None
        whole = maker.args[0]
    return None if whole is None else (whole,)


def _known_part(rw: Rewriter, t: Type, indices: tuple[Value, ...]) -> int | None:
    """Which direct part constant ``indices`` mean, if they name one part and lie inside."""
    match t:
        case Vector():
            shape: tuple[int, ...] = (t.n,)
        case Matrix():
            shape = (t.rows, t.cols)
        case Fixed():
            shape = t.shape
        case _:
            return None
    if len(shape) != len(indices):
        return None
    flat = 0
    for extent, v in zip(shape, indices):
        i = rw.consts.get(v)
        if i is None or not 0 <= i < extent:
            return None
        flat = flat * extent + i
    return flat


def _pick(rw: Rewriter, op: Op) -> tuple[Value, ...] | None:
    c, *indices = op.args
    part = _known_part(rw, c.type, tuple(indices))
    if part is None:
        return None
    rw.op = Op("extract", (c,), op.results, {"index": part}, (), op.span)
    return _extract(rw, rw.op)


def _put(rw: Rewriter, op: Op) -> tuple[Value, ...] | None:
    c, x, *indices = op.args
    part = _known_part(rw, c.type, tuple(indices))
    if part is None:
        return None
    rw.op = Op("insert", (c, x), op.results, {"index": part}, (), op.span)
    return _insert(rw, rw.op)


# ---- choices


def _select(rw: Knowing, op: Op) -> tuple[Value, ...] | None:
    c, a, b = op.args
    known = rw.truth(c)
    if known is not None:
        return (a if known else b,)
    if a is b or rw.is_poison(b):
        return (a,)
    return (b,) if rw.is_poison(a) else _truth(rw, c, a, b)


def _truth(rw: Rewriter, c: Value, a: Value, b: Value) -> tuple[Value, ...] | None:
    """``True if c else False`` and the reverse."""
    if a.type is not b1:
        return None
    match rw.consts.get(a), rw.consts.get(b):
        case (True, False):
            return (c,)
        case (False, True):
            return (rw.emit("logical_not", (c,), b1),)
    return None


def _if(rw: Knowing, op: Op) -> tuple[Value, ...] | None:
    (c,) = op.args
    then, other = op.regions
    known = rw.truth(c)
    if known is not None:
        return rw.splice(then if known else other)
    # A result that both sides agree on, or that is the condition, needs no branch; remove_dead then drops it here.
    for r, a, b in zip(op.results, then.yields, other.yields):
        if a is b:
            rw.env[r] = a
        elif truth := _truth(rw, c, a, b):
            (rw.env[r],) = truth
    return None


def _check(rw: Knowing, op: Op) -> tuple[Value, ...] | None:
    return () if rw.truth(op.args[0]) else None


# ---- loops


def _unchanging(rw: Rewriter, op: Op) -> tuple[Value, ...] | None:
    """Asked before the region is rewritten: a carried value that is handed on as it came is the initial one."""
    n = len(op.results)
    (body,) = op.regions
    if n:
        carried = zip(op.args[-n:], body.params[-n:], body.yields[-n:], op.results)
        for initial, inner, handed, final in carried:
            if handed is inner or rw.env.get(handed, handed) is initial:
                rw.env[inner] = rw.env[final] = initial
    return None


def _for(rw: Rewriter, op: Op) -> tuple[Value, ...] | None:
    start, stop, step, *initial = op.args
    first, end, by = (rw.consts.get(v) for v in (start, stop, step))
    if first is None or end is None or not by:
        return None
    match len(range(first, end, by)):
        case 0:
            return tuple(initial)
        case 1:
            return _once(rw, op, (start, *initial))
    return None


def _while(rw: Rewriter, op: Op) -> tuple[Value, ...] | None:
    stay = rw.consts.get(op.regions[0].yields[0])
    return _once(rw, op, op.args) if stay is False else None


def _once(rw: Rewriter, op: Op, values: tuple[Value, ...]) -> tuple[Value, ...]:
    """A loop that runs once is its body: what it reads gets ``values``."""
    (body,) = op.regions
    inner = Rewriter({})
    inner.env.update(zip(body.params, values))
    block = inner.block(body)
    rw.defs.update(inner.defs)
    rw.consts.update(inner.consts)
    return rw.splice(block)[len(block.yields) - len(op.results) :]


RULES: dict[str, Rule] = {
    "extract": _extract, "insert": _insert, "make": _make, "pick": _pick, "put": _put, "select": _select, "if": _if,
    "check": _check, "for": _for, "while": _while,
}  # fmt: skip
