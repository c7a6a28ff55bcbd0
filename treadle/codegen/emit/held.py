"""Held updates: where rounding makes the order matter, a gang's threads apply theirs one thread after the other.

A site outside loops has a fixed place in which it notes pointers and values. Where sites lie in loops, each run appends
a record to a list. At the gang's end lane after lane does what it noted, in program order. Lanes that did not run point
at a dummy, which costs less than to ask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...ir.node import Op
from ...types.core import Scalar
from . import buffer, rows
from .lanewise import Pointers
from .scalar import from_memory
from .text import memory as memory_type
from .text import register, vector
from .values import X
from .wide import indices

if TYPE_CHECKING:
    from .address import Index
    from .atomics import Plan
    from .emitter import Emitter

UNROLLED = 64  # updates that are applied without a loop over lanes


@dataclass(slots=True)
class Kept:
    """What is known of an update that every lane makes: its ``pointers``, and what they are made of. ``repeats``: a bit
    for each lane that meets the element of the lane before, if nothing changed that since. ``last``: what the lane
    before left there."""

    pointers: list[str]
    index: Index | None
    repeats: str | None = None
    last: str = ""


def sites(e: Emitter, how: str) -> list[tuple[tuple[Op, ...], Plan]]:
    """The updates held in the given way, those that go together as one; none where a gang has one thread."""
    return [(p.row or (op,), p) for op, p in e.unit.plans.items() if p.how == how] if e.width > 1 else []


# --- sites outside loops ----------------------------------------------------------------------------------------------


def _place(e: Emitter, ops: tuple[Op, ...], plan: Plan) -> str:
    """Where a site notes its update: a pointer a lane, then values."""
    key = f"noted{plan.number}"
    if key not in e.place:
        e.place[key] = e.t.into(e.entry, f"alloca [{_size(e, ops)} x i8], align 64")
    return e.place[key]


def _size(e: Emitter, ops: tuple[Op, ...]) -> int:
    """Bytes of what :func:`_write` writes."""
    vectors = 4 if rows.whole(e, len(ops)) else len(ops)
    return 8 * e.width + vectors * e.width * ops[0].results[0].type.size


def note(e: Emitter, ops: tuple[Op, ...], pointers: Pointers, values: list[X], plan: Plan) -> None:
    """Write down an update outside loops."""
    if plan.sure and plan.slots < 0 and e.mask is None:
        e.kept[plan.number] = Kept(pointers.each(0), pointers.index)
    _write(e, ops, _place(e, ops, plan), pointers, values)


def _dummies(e: Emitter, ops: tuple[Op, ...]) -> str:
    """For each lane a pointer to memory that nobody reads."""
    return e.spread_dummy(e.dummy(len(ops) * ops[0].results[0].type.size))


def _write(e: Emitter, ops: tuple[Op, ...], at: str, pointers: Pointers, values: list[X]) -> None:
    w, t = e.width, values[0].type
    many, kind, where = vector("ptr", w), vector(memory_type(t), w), pointers.vector()
    if e.mask is not None:
        where = e.t.ins(f"select {e.bits} {e.mask}, {many} {where}, {many} {_dummies(e, ops)}")
    e.t.do(f"store {many} {where}, ptr {at}, align 8")
    for k, column in enumerate(rows.columns(e, values)):
        to = e.t.ins(f"getelementptr i8, ptr {at}, i64 {8 * w + k * w * t.size}")
        e.t.do(f"store {kind} {column}, ptr {to}, align {t.size}")


def begin_gang(e: Emitter) -> None:
    """Sites that may not run have nothing to do."""
    e.kept.clear()
    for ops, plan in sites(e, "noted"):
        if not plan.sure:
            e.t.do(f"store {vector('ptr', e.width)} {_dummies(e, ops)}, ptr {_place(e, ops, plan)}, align 8")


def _apply(e: Emitter, ops: tuple[Op, ...], at: str, lane: int | str, kept: Kept | None = None) -> None:
    """Do the update that was written at ``at``, for one lane."""
    from .atomics import change

    t, w, kind = e.t, e.width, ops[0].results[0].type
    known = None if kept is None else kept.pointers[lane]
    pointer = t.ins(f"load ptr, ptr {_at(e, at, lane, 8)}, align 8") if known is None else known
    values = t.ins(f"getelementptr i8, ptr {at}, i64 {8 * w}")
    if rows.whole(e, len(ops)):
        row = t.ins(f"getelementptr i8, ptr {values}, i64 {rows.row_offset(e, lane, kind.size)}")
        value = t.ins(f"load {vector(memory_type(kind), len(ops))}, ptr {row}, align {kind.size}")
        again = kept is not None and kept.repeats is not None and lane != 0
        old = _repeated(e, kept, lane, pointer, len(ops), kind) if again else None
        new = rows.change_row(e, ops[0], pointer, value, len(ops), old)
        if kept is not None:
            kept.last = new
        return
    for k, op in enumerate(ops):
        column = t.ins(f"getelementptr i8, ptr {values}, i64 {k * w * kind.size}") if k else values
        own = _at(e, column, lane, kind.size)
        value = from_memory(e, t.ins(f"load {memory_type(kind)}, ptr {own}, align {kind.size}"), kind, True)
        change(e, op, kind, t.ins(f"getelementptr i8, ptr {pointer}, i64 {k * kind.size}") if k else pointer, [value])


def _find_repeats(e: Emitter, noted: list[tuple[tuple[Op, ...], Plan]]) -> None:
    """Springs and faces come sorted, so that neighbours often add to one element: what one left need not go through
    memory to the next, which takes several times as long as the sum."""
    many, shifted = vector("i32", e.width), indices([0, *range(e.width - 1)])
    for n, (ops, plan) in enumerate(noted):
        kept = e.kept.get(plan.number)
        alike = {k: e.kept.get(p.number) for k, (_, p) in enumerate(noted) if p.item == plan.item}
        if kept is None or kept.index is None or not rows.whole(e, len(ops)):
            continue
        if any([o is None or o.index is None or o.index[::2] != kept.index[::2] for o in alike.values()]):
            continue
        own = kept.index.numbers

        def before(numbers: str) -> str:
            return e.t.ins(f"shufflevector {many} {numbers}, {many} poison, {shifted}")

        mask = e.t.ins(f"icmp eq {many} {own}, {before(own)}")
        for k, other in alike.items():
            if k != n:  # what was updated between the two: by this lane, and by the lane before
                theirs = other.index.numbers if k < n else before(other.index.numbers)
                mask = e.t.ins(f"and {e.bits} {mask}, {e.t.ins(f'icmp ne {many} {own}, {theirs}')}")
        kept.repeats = e.t.ins(f"bitcast {e.bits} {mask} to i{e.width}")


def _repeated(e: Emitter, kept: Kept, lane: int, pointer: str, count: int, t: Scalar) -> str:
    """What stands at ``pointer``: what the lane before left, or what memory holds."""
    fresh, go, before, known = e.t.label("fresh"), e.t.label("repeated"), e.t.block, e.t.known
    bit = e.t.ins(f"and i{e.width} {kept.repeats}, {1 << lane}")
    e.t.branch(e.t.ins(f"icmp ne i{e.width} {bit}, 0"), go, fresh)
    e.t.start(fresh, known)
    loaded = rows.load_row(e, pointer, count, t)
    e.t.jump(go)
    e.t.start(go, known)
    return e.t.ins(f"phi {vector(register(t), count)} [ {kept.last}, %{before} ], [ {loaded}, %{fresh} ]")


def _at(e: Emitter, at: str, lane: int | str, size: int) -> str:
    """The pointer to ``lane`` of a vector."""
    offset = lane * size if isinstance(lane, int) else e.t.ins(f"mul i64 {lane}, {size}")
    return e.t.ins(f"getelementptr i8, ptr {at}, i64 {offset}")


def end_gang(e: Emitter) -> None:
    """Apply what the gang held."""
    noted, listed = sites(e, "noted"), sites(e, "listed")
    if noted and len(noted) * e.width <= UNROLLED:
        _find_repeats(e, noted)
        for lane in range(e.width):
            for ops, plan in noted:
                _apply(e, ops, _place(e, ops, plan), lane, e.kept.get(plan.number))
    elif noted:
        _apply_noted(e, noted)
    if listed:
        _apply_listed(e, listed)


def _apply_noted(e: Emitter, found: list[tuple[tuple[Op, ...], Plan]]) -> None:
    t = e.t
    lanes, done, before = t.label("lanes"), t.label("applied"), t.block
    t.jump(lanes)
    t.start(lanes)
    lane, after = t.name(), t.name()
    t.do(f"{lane} = phi i64 [ 0, %{before} ], [ {after}, %{lanes} ]")
    for ops, plan in found:
        _apply(e, ops, _place(e, ops, plan), lane)
    t.do(f"{after} = add i64 {lane}, 1")
    t.branch(t.ins(f"icmp ult i64 {after}, {e.width}"), lanes, done)
    t.start(done)


# --- sites in loops ---------------------------------------------------------------------------------------------------


def append(e: Emitter, ops: tuple[Op, ...], pointers: Pointers, values: list[X], plan: Plan) -> None:
    """Add an update to the list: the site's number, how long the record is, then what :func:`_write` writes."""
    nbytes = 16 + (_size(e, ops) + 15) // 16 * 16
    at = buffer.append(e, _list(e), nbytes)
    e.t.do(f"store i64 {plan.number}, ptr {at}, align 8")
    length = e.t.ins(f"getelementptr i8, ptr {at}, i64 8")
    e.t.do(f"store i64 {nbytes}, ptr {length}, align 8")
    _write(e, ops, e.t.ins(f"getelementptr i8, ptr {at}, i64 16"), pointers, values)


def _list(e: Emitter) -> str:
    """The list of held updates: data, bytes used, capacity."""
    if "held" not in e.place:
        e.t.declare("declare void @PyMem_RawFree(ptr)")
        e.t.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        e.place["held"] = e.t.into(e.entry, "alloca [3 x i64], align 8")
        e.entry.append(f"  call void @llvm.memset.p0.i64(ptr align 8 {e.place['held']}, i8 0, i64 24, i1 false)")
    return e.place["held"]


def _apply_listed(e: Emitter, found: list[tuple[tuple[Op, ...], Plan]]) -> None:
    t, made = e.t, _list(e)
    used_at = t.ins(f"getelementptr i8, ptr {made}, i64 8")
    used, data = t.ins(f"load i64, ptr {used_at}, align 8"), t.ins(f"load ptr, ptr {made}, align 8")
    t.do(f"store i64 0, ptr {used_at}, align 8")
    lanes, events, following = (t.label(h) for h in ("lanes", "events", "next"))
    next_lane, done, before = t.label("nextlane"), t.label("applied"), t.block
    t.branch(t.ins(f"icmp eq i64 {used}, 0"), done, lanes)
    t.start(lanes)
    lane, lane_after, place, place_after = t.name(), t.name(), t.name(), t.name()
    t.do(f"{lane} = phi i64 [ 0, %{before} ], [ {lane_after}, %{next_lane} ]")
    t.jump(events)
    t.start(events)
    t.do(f"{place} = phi i64 [ 0, %{lanes} ], [ {place_after}, %{following} ]")
    at = t.ins(f"getelementptr i8, ptr {data}, i64 {place}")
    length = t.ins(f"load i64, ptr {t.ins(f'getelementptr i8, ptr {at}, i64 8')}, align 8")
    written = t.ins(f"getelementptr i8, ptr {at}, i64 16")
    labels = [t.label("apply") for _ in found]
    cases = " ".join(f"i64 {p.number}, label %{label}" for (_, p), label in zip(found, labels, strict=True))
    known = t.known
    t.do(f"switch i64 {t.ins(f'load i64, ptr {at}, align 8')}, label %{following} [ {cases} ]")
    for (ops, _), label in zip(found, labels, strict=True):
        t.start(label, known)
        _apply(e, ops, written, lane)
        t.jump(following)
    t.start(following)
    t.do(f"{place_after} = add i64 {place}, {length}")
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
