"""Held updates: where rounding makes the order matter, a gang's threads apply theirs one thread after the other.

A site outside loops has a fixed place in which it notes pointers, values and the lanes that ran. Where sites lie in
loops, each run appends a record to a list. At the gang's end lane after lane does what it noted, in program order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.node import Op
from . import buffer
from .lanewise import Pointers
from .scalar import from_memory, to_memory
from .text import memory as memory_type
from .text import vector
from .values import X

if TYPE_CHECKING:
    from .atomics import Plan
    from .emitter import Emitter


def sites(e: Emitter, how: str) -> list[tuple[Op, Plan]]:
    """The sites held in the given way; none where a gang has one thread."""
    return [(op, p) for op, p in e.unit.plans.items() if p.how == how] if e.width > 1 else []


# --- sites outside loops ----------------------------------------------------------------------------------------------


def _place(e: Emitter, number: int) -> str:
    """Where site ``number`` notes its update: the lanes that ran, then a pointer a lane, then a value a lane."""
    key = f"noted{number}"
    if key not in e.place:
        e.place[key] = e.t.into(e.entry, f"alloca [{8 + 16 * e.width} x i8], align 8")
    return e.place[key]


def note(e: Emitter, op: Op, pointers: Pointers, value: X, plan: Plan) -> None:
    """Write down an update outside loops. The components of a vector, one after the other, share the lanes that ran."""
    here = (e.t.block, e.mask)
    if e.noted is not None and e.noted[0] == here:
        plan.leader = e.noted[1]
    else:
        plan.leader, e.noted = plan.number, (here, plan.number)
        _write_lanes(e, _place(e, plan.number))
    _write(e, _place(e, plan.number), pointers, value)


def _write_lanes(e: Emitter, at: str) -> None:
    w = e.width
    whole = e.t.ins(f"bitcast {e.bits} {e.mask_text()} to i{w}")
    e.t.do(f"store i64 {whole if w == 64 else e.t.ins(f'zext i{w} {whole} to i64')}, ptr {at}, align 8")


def _write(e: Emitter, at: str, pointers: Pointers, value: X) -> None:
    w, kind = e.width, vector(memory_type(value.type), e.width)
    where = e.t.ins(f"getelementptr i8, ptr {at}, i64 8")
    e.t.do(f"store {vector('ptr', w)} {pointers.vector()}, ptr {where}, align 8")
    what = e.t.ins(f"getelementptr i8, ptr {at}, i64 {8 + 8 * w}")
    e.t.do(f"store {kind} {to_memory(e, value, False)}, ptr {what}, align 8")


def begin_gang(e: Emitter) -> None:
    """No site has run yet."""
    e.noted = None
    for _, plan in sites(e, "noted"):
        e.t.do(f"store i64 0, ptr {_place(e, plan.number)}, align 8")


def _apply(e: Emitter, op: Op, at: str, lane: str) -> None:
    """Do the update that was written at ``at``, for one lane."""
    from .atomics import change

    t, kind = e.t, op.results[0].type
    first = t.ins(f"getelementptr i8, ptr {at}, i64 8")
    pointer = t.ins(f"load ptr, ptr {t.ins(f'getelementptr ptr, ptr {first}, i64 {lane}')}, align 8")
    values = t.ins(f"getelementptr i8, ptr {at}, i64 {8 + 8 * e.width}")
    own = t.ins(f"getelementptr {memory_type(kind)}, ptr {values}, i64 {lane}")
    value = from_memory(e, t.ins(f"load {memory_type(kind)}, ptr {own}, align {kind.size}"), kind, True)
    change(e, op, kind, pointer, [value])


def _lane_bit(e: Emitter, at: str, lane: str) -> str:
    """Whether ``lane`` ran what was written at ``at``."""
    runs = e.t.ins(f"load i64, ptr {at}, align 8")
    return e.t.ins(f"trunc i64 {e.t.ins(f'lshr i64 {runs}, {lane}')} to i1")


def end_gang(e: Emitter) -> None:
    """Apply what the gang held."""
    noted, listed = sites(e, "noted"), sites(e, "listed")
    if noted:
        _apply_noted(e, noted)
    if listed:
        _apply_listed(e, listed)


def _apply_noted(e: Emitter, found: list[tuple[Op, Plan]]) -> None:
    t = e.t
    lanes, done, before = t.label("lanes"), t.label("applied"), t.block
    t.jump(lanes)
    t.start(lanes)
    lane, after, phi = t.name(), t.name(), t.slot()
    for leader in dict.fromkeys(plan.leader for _, plan in found):
        go, following = t.label("apply"), t.label("next")
        t.branch(_lane_bit(e, _place(e, leader), lane), go, following)
        t.start(go)
        for op, plan in found:
            if plan.leader == leader:
                _apply(e, op, _place(e, plan.number), lane)
        t.jump(following)
        t.start(following)
    t.do(f"{after} = add i64 {lane}, 1")
    phi.append(f"  {lane} = phi i64 [ 0, %{before} ], [ {after}, %{t.block} ]")
    t.branch(t.ins(f"icmp ult i64 {after}, {e.width}"), lanes, done)
    t.start(done)


# --- sites in loops ---------------------------------------------------------------------------------------------------


def _record_size(e: Emitter) -> int:
    """Bytes of a record: the site's number, then what :func:`_write` writes."""
    return 16 + 16 * e.width


def append(e: Emitter, op: Op, pointers: Pointers, value: X, plan: Plan) -> None:
    """Add an update to the list."""
    at = buffer.append(e, _list(e), _record_size(e))
    e.t.do(f"store i64 {plan.number}, ptr {at}, align 8")
    written = e.t.ins(f"getelementptr i8, ptr {at}, i64 8")
    _write_lanes(e, written)
    _write(e, written, pointers, value)


def _list(e: Emitter) -> str:
    """The list of held updates: data, bytes used, capacity."""
    if "held" not in e.place:
        e.t.declare("declare void @PyMem_RawFree(ptr)")
        e.t.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        e.place["held"] = e.t.into(e.entry, "alloca [3 x i64], align 8")
        e.entry.append(f"  call void @llvm.memset.p0.i64(ptr align 8 {e.place['held']}, i8 0, i64 24, i1 false)")
    return e.place["held"]


def _apply_listed(e: Emitter, found: list[tuple[Op, Plan]]) -> None:
    t, size, made = e.t, _record_size(e), _list(e)
    used_at = t.ins(f"getelementptr i8, ptr {made}, i64 8")
    used, data = t.ins(f"load i64, ptr {used_at}, align 8"), t.ins(f"load ptr, ptr {made}, align 8")
    t.do(f"store i64 0, ptr {used_at}, align 8")
    lanes, events, event, following = (t.label(h) for h in ("lanes", "events", "event", "next"))
    next_lane, done, before = t.label("nextlane"), t.label("applied"), t.block
    t.branch(t.ins(f"icmp eq i64 {used}, 0"), done, lanes)
    t.start(lanes)
    lane, lane_after, place, place_after = t.name(), t.name(), t.name(), t.name()
    t.do(f"{lane} = phi i64 [ 0, %{before} ], [ {lane_after}, %{next_lane} ]")
    t.jump(events)
    t.start(events)
    t.do(f"{place} = phi i64 [ 0, %{lanes} ], [ {place_after}, %{following} ]")
    at = t.ins(f"getelementptr i8, ptr {data}, i64 {place}")
    written = t.ins(f"getelementptr i8, ptr {at}, i64 8")
    t.branch(_lane_bit(e, written, lane), event, following)
    t.start(event)
    labels = [t.label("apply") for _ in found]
    cases = " ".join(f"i64 {p.number}, label %{label}" for (_, p), label in zip(found, labels, strict=True))
    t.do(f"switch i64 {t.ins(f'load i64, ptr {at}, align 8')}, label %{following} [ {cases} ]")
    for (op, _), label in zip(found, labels, strict=True):
        t.start(label)
        _apply(e, op, written, lane)
        t.jump(following)
    t.start(following)
    t.do(f"{place_after} = add i64 {place}, {size}")
    t.branch(t.ins(f"icmp ult i64 {place_after}, {used}"), events, next_lane)
    t.start(next_lane)
    t.do(f"{lane_after} = add i64 {lane}, 1")
    t.branch(t.ins(f"icmp ult i64 {lane_after}, {e.width}"), lanes, done)
    t.start(done)


def free_list(e: Emitter) -> None:
    """At the end of an entry."""
    if "held" in e.place:
        data = e.t.ins(f"load ptr, ptr {e.place['held']}, align 8")
        e.t.do(f"call void @PyMem_RawFree(ptr {data})")
