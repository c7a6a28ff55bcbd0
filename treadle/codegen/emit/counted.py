"""Counters at one address whose results are used: what a lane sees is what lanes before it add.

One site outside loops is a prefix sum over the gang where it stands (:func:`scan`). With several sites, or a site in a
loop, lane l comes to all of its own before lane l + 1 comes to its first, so each gang is run through twice: first as a
counting pass, which *tallies* what each lane will add; a prefix sum of that gives each lane the value from which the
lane itself *draws* in the real run. Where counters depend on others, they are tallied round by round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.node import Op
from ...types.core import Scalar
from . import memory
from .text import register, vector
from .values import X
from .wide import indices

if TYPE_CHECKING:
    from .atomics import Plan
    from .emitter import Emitter


def _added(e: Emitter, op: Op, amount: X) -> str:
    """What each lane adds: nothing if it does not run."""
    x = amount if e.mask is None else e.blend(e.mask, amount, e.fixed(amount.type, 0))
    kind, added = vector(register(x.type), e.width), e.wide(x)
    return e.t.ins(f"sub {kind} zeroinitializer, {added}") if op.attrs["op"] == "sub" else added


def _sums(e: Emitter, t: Scalar, added: str) -> tuple[str, str]:
    """By lane the sum of what lanes before it add, in log W shifts; and the sum of all."""
    w, scalar = e.width, register(t)
    kind, sums = vector(scalar, w), added
    for d in [1 << k for k in range(w.bit_length() - 1)]:
        picks = indices([w if lane < d else lane - d for lane in range(w)])
        moved = e.t.ins(f"shufflevector {kind} {sums}, {kind} zeroinitializer, {picks}")
        sums = e.t.ins(f"add {kind} {sums}, {moved}")
    return e.t.ins(f"sub {kind} {sums}, {added}"), e.t.ins(f"extractelement {kind} {sums}, i64 {w - 1}")


def _raise(e: Emitter, t: Scalar, pointer: str, total: str) -> X:
    """Add ``total`` to a counter; what it was."""
    scalar = register(t)
    old = e.t.ins(f"load {scalar}, ptr {pointer}, align {t.size}")
    e.t.do(f"store {scalar} {e.t.ins(f'add {scalar} {old}, {total}')}, ptr {pointer}, align {t.size}")
    return e.uniform(t, old)


def scan(e: Emitter, op: Op, element: memory.Access, amount: X) -> None:
    """The only site of a counter, outside loops: a gang at once."""
    result, t = op.results[0], element.items[0].type
    kind, scalar = vector(register(t), e.width), register(t)
    pointer = element.at.start(element.view.data)
    if e.mask is not None and not e.some:
        pointer = e.t.ins(f"select i1 {e.any(e.mask)}, ptr {pointer}, ptr {e.dummy(t.size)}")
    uniform = amount.text is not None and amount.step == 0
    if e.lanes.uses.get(result, 0) > 0:
        before, total = _sums(e, t, _added(e, op, amount))
        first = e.wide(_raise(e, t, pointer, _product(e, op, amount) if uniform else total))
        e.env[result] = X(t, None, e.t.ins(f"add {kind} {before}, {first}"), None)
        return
    if uniform:
        total = _product(e, op, amount)
    else:
        name = f"@llvm.vector.reduce.add.v{e.width}{scalar}"
        e.t.declare(f"declare {scalar} {name}({kind})")
        total = e.t.ins(f"call {scalar} {name}({kind} {_added(e, op, amount)})")
    _raise(e, t, pointer, total)
    e.env[result] = e.zero(result)


def _product(e: Emitter, op: Op, amount: X) -> str:
    """The sum over all lanes of what is the same in each: it takes no part in the gang's longest chain of waits."""
    w, scalar = e.width, register(amount.type)
    count = str(w)
    if e.mask is not None:
        bits = e.t.ins(f"bitcast {e.bits} {e.mask} to i{w}")
        e.t.declare(f"declare i{w} @llvm.ctpop.i{w}(i{w})")
        count, held = e.t.ins(f"call i{w} @llvm.ctpop.i{w}(i{w} {bits})"), amount.type.bits
        if held != w:
            count = e.t.ins(f"{'zext' if held > w else 'trunc'} i{w} {count} to {scalar}")
    total = count if amount.const == 1 else e.t.ins(f"mul {scalar} {count}, {amount.text}")
    return e.t.ins(f"sub {scalar} 0, {total}") if op.attrs["op"] == "sub" else total


# --- tally, then draw -------------------------------------------------------------------------------------------------


def _slots(e: Emitter, plan: Plan) -> tuple[str, str, str]:
    """Of a counter: where its address is noted, what lanes have tallied, and what they draw from."""
    key = f"counter{plan.counter}"
    if key not in e.place:
        size = max(e.width * plan.type.size, 8)
        e.place[key] = e.t.into(e.entry, "alloca ptr, align 8")
        for part in ("tallied", "drawn"):
            e.place[f"{key} {part}"] = e.t.into(e.entry, f"alloca [{size} x i8], align {min(size, 64)}")
    return e.place[key], e.place[f"{key} tallied"], e.place[f"{key} drawn"]


def draw(e: Emitter, op: Op, element: memory.Access, amount: X, plan: Plan) -> None:
    """A site of a counter that is tallied: note what lanes will add, or give each what its turn is."""
    where, tallied, drawn = _slots(e, plan)
    result, t = op.results[0], plan.type
    kind, align = vector(register(t), e.width), min(e.width * t.size, 64)
    added = _added(e, op, amount)
    tallies = plan.round == e.unit.tallying
    if tallies:
        pointer = element.at.start(element.view.data)
        if e.mask is not None and not e.some:
            before = e.t.ins(f"load ptr, ptr {where}, align 8")
            pointer = e.t.ins(f"select i1 {e.any(e.mask)}, ptr {pointer}, ptr {before}")
        e.t.do(f"store ptr {pointer}, ptr {where}, align 8")
    at = tallied if tallies else drawn
    old = e.t.ins(f"load {kind}, ptr {at}, align {align}")
    e.t.do(f"store {kind} {e.t.ins(f'add {kind} {old}, {added}')}, ptr {at}, align {align}")
    e.env[result] = e.zero(result) if tallies else X(t, None, old, None)


def begin_gang(e: Emitter) -> None:
    """Tally round after round, so that all counters can be drawn from."""
    if e.width == 1 or not e.unit.drawing:
        return
    state = e.env, e.lanes, e.mask
    counters: dict[int, Plan] = {p.counter: p for p in e.unit.plans.values() if p.how == "drawn"}
    for number, func in enumerate(e.unit.drawing):
        mine = [p for p in counters.values() if p.round == number]
        for plan in mine:
            where, tallied, _ = _slots(e, plan)
            e.t.do(f"store ptr null, ptr {where}, align 8")
            _fill(e, plan, tallied, "zeroinitializer")
        starts = [(p, _lanes_of(e, p, _slots(e, p)[2])) for p in counters.values() if p.round < number]
        e.lanes, e.env = e.unit.lanes(func), dict(state[0])
        e.unit.tallying = number
        e.block(func.body)
        e.unit.tallying = None
        (e.env, e.lanes, e.mask), e.some, e.valid, e.known_true = state, True, {}, set()
        if "alive" in e.place:  # who failed will do so again
            e.t.do(f"store i{e.width} -1, ptr {e.place['alive']}, align 8")
        for plan, start in starts:  # lanes begin from the same value in the next run
            _fill(e, plan, _slots(e, plan)[2], start)
        for plan in mine:
            _share(e, plan)


def _share(e: Emitter, plan: Plan) -> None:
    """Give every lane what it draws from, and the counter what the gang adds."""
    where, tallied, drawn = _slots(e, plan)
    t, kind = plan.type, vector(register(plan.type), e.width)
    go, end = e.t.label("share"), e.t.label("shared")
    pointer = e.t.ins(f"load ptr, ptr {where}, align 8")
    e.t.branch(e.t.ins(f"icmp eq ptr {pointer}, null"), end, go)
    e.t.start(go)
    before, total = _sums(e, t, _lanes_of(e, plan, tallied))
    first = e.wide(_raise(e, t, pointer, total))
    _fill(e, plan, drawn, e.t.ins(f"add {kind} {before}, {first}"))
    e.t.jump(end)
    e.t.start(end)


def _lanes_of(e: Emitter, plan: Plan, slot: str) -> str:
    kind = vector(register(plan.type), e.width)
    return e.t.ins(f"load {kind}, ptr {slot}, align {min(e.width * plan.type.size, 64)}")


def _fill(e: Emitter, plan: Plan, slot: str, lanes: str) -> None:
    kind = vector(register(plan.type), e.width)
    e.t.do(f"store {kind} {lanes}, ptr {slot}, align {min(e.width * plan.type.size, 64)}")
