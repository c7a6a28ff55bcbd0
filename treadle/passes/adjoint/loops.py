"""Loops, forwards and backwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.errors import KernelGradientError
from ...ir.node import Block, Op, Value
from ...types.core import View, b1, i32, i64
from .facts import carried

if TYPE_CHECKING:
    from .reverse import Reverser

__all__ = ["reverse_loop", "run_loop"]


def run_loop(r: Reverser, op: Op) -> None:
    """A loop once more, where its reverse will stand: at the start of each round it pushes what it carries, and where
    the log stands; and it counts its rounds."""
    (body,) = op.regions
    counting = op.name == "while" or bool(op.attrs.get("stays"))
    with r.b.at(op.span):
        args = r.all_now(op.args)
        zero = r.b.i32(0)
        with r.scope() as here:
            params = r.bind(here, body.params)
            rounds = Value(i32, "rounds")
            state = _state(r, op)
            if state:
                r.b.op("push", state, (), site=r.site(op))
            for inner in body.ops:
                r.run(inner)
            yields = r.all_now(body.yields)
            if counting:
                params, yields = (*params, rounds), (*yields, r.b.one("add", (rounds, r.b.i32(1)), i32))
            region = r.b.block(params, yields)
        results = tuple([Value(v.type, v.name) for v in op.results])
        if counting:
            made = (*results, Value(i32, "trips"))
            r.b.ops.append(Op(op.name, (*args, zero), made, op.attrs, (region,), op.span))
            r.scopes[-1].trips[op] = made[-1]
        else:
            r.b.ops.append(Op(op.name, args, results, op.attrs, (region,), op.span))
            if _known_trips(r, op) is None:
                r.scopes[-1].trips[op] = _trips(r, op)
        r.scopes[-1].now.update(zip(op.results, results))


def _state(r: Reverser, op: Op) -> tuple[Value, ...]:
    """What a round of ``op`` starts from: the values it carries, as they stand now, and its place in the log."""
    inner = carried(op)[1]
    _refuse_views(op, inner)
    state = r.all_now(inner)
    return (*state, r.mark()) if op in r.facts.records else state


def _refuse_views(op: Op, inner: tuple[Value, ...]) -> None:
    for p in inner:
        if isinstance(p.type, View):
            raise KernelGradientError(
                f"{p.name or 'an array'} changes from round to round of a loop; the derivative through an array that "
                "is chosen while the program runs is not known", op.span, "index one array instead",
            )  # fmt: skip


def _known_trips(r: Reverser, op: Op) -> int | None:
    """How often a ``for`` runs whose bounds are constants."""
    if op.name != "for" or op.attrs.get("stays"):
        return None
    makers = [r.facts.makers.get(v) for v in op.args[:3]]
    if any(maker is None or maker.name != "const" for maker in makers):
        return None
    start, stop, step = [maker.attrs["value"] for maker in makers]
    return len(range(start, stop, step)) if step else 0


def _trips(r: Reverser, op: Op) -> Value:
    """How often a ``for`` without a stay flag runs: 1 + floor((stop - start ∓ 1) / step) if the step leads from start
    towards stop, else 0; in 64 bits, since distances may leave 32."""
    b, maker, bounds = r.b, r.facts.makers.get(op.args[2]), r.all_now(op.args[:3])
    if maker is not None and maker.name == "const" and maker.attrs["value"] == 1:
        (start, stop, _), t = bounds, bounds[0].type
        distance = b.one("sub", (stop, start), t)
        count = b.one("select", (b.one("lt", (start, stop), b1), distance, b.const(0, t)), t)
        return count if t is i32 else b.one("cast", (count,), i32)
    start, stop, step = [v if v.type is i64 else b.one("cast", (v,), i64) for v in bounds]
    zero, one, minus = b.const(0, i64), b.const(1, i64), b.const(-1, i64)
    up, down = b.one("gt", (step, zero), b1), b.one("lt", (step, zero), b1)
    runs = b.one("bitor", (b.one("bitand", (up, b.one("lt", (start, stop), b1)), b1),
                           b.one("bitand", (down, b.one("gt", (start, stop), b1)), b1)), b1)  # fmt: skip
    towards = b.one("select", (up, one, minus), i64)
    size = b.one("select", (runs, step, one), i64)
    steps = b.one("floordiv", (b.one("sub", (b.one("sub", (stop, start), i64), towards), i64), size), i64)
    count = b.one("select", (runs, b.one("add", (steps, one), i64), zero), i64)
    return b.one("cast", (count,), i32)


def reverse_loop(r: Reverser, op: Op) -> None:
    """From the last round to the first: what the round started from is popped, its body runs again and is gone back
    through. Adjoints of what the loop carries and of what it reads from outside are carried the other way."""
    (body,) = op.regions
    inits, inner, handed, results = carried(op)
    entering = {v: a for v in results if (a := r.take(v)) is not None}
    flows = [k for k, p in enumerate(inner) if r.is_active(p) or r.is_active(results[k]) or r.is_active(handed[k])]
    if not entering and not r.touches(op):
        return  # what the loop pushed is never popped, and falls with the rest of its second run
    outside = r.captured(op)
    start = [entering.get(results[k]) for k in flows]
    start = tuple([r.zero(results[k].type) if a is None else a for k, a in zip(flows, start)])
    sums = tuple([r.adjoint(v) for v in outside])
    minus, known = r.b.const(-1, i32), _known_trips(r, op)
    if known is None:
        trips = r.scopes[-1].trips[op]
        last = r.b.one("add", (r.b.one("lanes_max", (trips,), i32), minus), i32)
    else:
        last = r.b.const(known - 1, i32)
    with r.scope():
        k = Value(i32, "round")
        flow = tuple([Value(a.type, "adj") for a in start])
        total = tuple([Value(a.type, "adj") for a in sums])
        region = _round(r, op, body, k, dict(zip(flows, flow)), dict(zip(outside, total)))
        types = tuple([v.type for v in (*flow, *total)])
        if known is None:
            ran = r.b.one("lt", (k, trips), b1)
            skipped = Block((), (), (*flow, *total))
            after = r.b.op("if", (ran,), types, (region, skipped))
            loop = r.b.block((k, *flow, *total), after)
        else:
            loop = Block((k, *flow, *total), region.ops, region.yields)
    done = r.b.op("for", (last, minus, minus, *start, *sums), types, (loop,))
    here = r.scopes[-1].adjoints
    for v, a in zip(outside, done[len(flow) :]):
        here[v] = a
    for k, a in zip(flows, done):
        r.add(inits[k], a)


def _round(r: Reverser, op: Op, body: Block, k: Value, flow: dict[int, Value], total: dict[Value, Value]) -> Block:
    """One round backwards."""
    _, inner, handed, _ = carried(op)
    with r.scope() as here:
        logged = op in r.facts.records
        types = (*[p.type for p in inner], *((i64,) if logged else ()))
        state = r.b.op("pop", (), types, site=r.site(op)) if types else ()
        here.now.update(zip(inner, state))
        if op.name == "for":
            first, _, step = r.all_now(op.args[:3])
            t = first.type
            count = k if t is i32 else r.b.one("cast", (k,), t)
            here.now[body.params[0]] = r.b.one("add", (first, r.b.one("mul", (count, step), t)), t)
        if logged:
            r.b.op("seek", (state[-1],))
        here.adjoints.update(total)
        r.replay(body, outer=False)
        for n, a in flow.items():
            if r.is_active(handed[n]):
                r.add(handed[n], a)
        r.go_back(body)
        new = [r.adjoint(inner[n]) for n in flow]
        return r.b.block((), (*new, *[here.adjoints[v] for v in total]))
