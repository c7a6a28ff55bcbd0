"""Stack and log of a gang: where a program that goes backwards keeps what its first, forward part computed.

Both are memory that grows, with their positions in the *tape record*. It lies in the kernel's frame, where LLVM keeps
it in registers, unless functions use it too: those get its address with the call. Positions belong to the gang: an op
moves them once when any lane runs it, whoever runs it. Code with such ops runs only where a lane does, so two parts of
a program with the same control flow move them in step.

What one op puts there is an *entry*: a vector for each varying value, one scalar for a uniform one, a bit a lane for
truth values, the largest first. All entries are multiples of a vector, so that vectors lie aligned. Entries of one site
have one layout, which follows from all values that the site is given. Lanes that do not run put something there too.
Where a gang splits, both arms of an ``if`` put entries there one after the other, see :func:`turns`.

No lane dies alone in a program with a tape: a check that fails, or memory that cannot be had, ends the whole gang.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...base.errors import InternalError
from ...ir.node import Op
from ...ir.ops import info
from ...ir.walk import ops_of
from ...types.core import Scalar, Type, View, b1, i64
from ...types.records import words
from . import faults, views
from .merge import Thing, part_steps
from .scalar import Lower, from_memory, to_memory
from .text import memory, vector
from .values import ViewX, X

if TYPE_CHECKING:
    from .emitter import Emitter

_TAPE = words("stack stack_used stack_capacity log log_used log_capacity log_read")
_KINDS = {"data": "ptr", "used": "i64", "capacity": "i64", "read": "i64"}
_FIRST = 16384  # bytes that memory has at least

# Vectors want to be aligned, and the allocator does not know: what it gave stands in front of the memory.
_GROW = """
define internal ptr @treadle_grow(ptr %data, i64 %used, i64 %capacity) noinline cold {
entry:
  %bytes = add i64 %capacity, 64
  %raw = call ptr @PyMem_RawRealloc(ptr null, i64 %bytes)
  %none = icmp eq ptr %raw, null
  br i1 %none, label %full, label %copy
copy:
  %whole = ptrtoint ptr %raw to i64
  %past = add i64 %whole, 64
  %line = and i64 %past, -64
  %at = inttoptr i64 %line to ptr
  call void @llvm.memcpy.p0.p0.i64(ptr %at, ptr %data, i64 %used, i1 false)
  %note = getelementptr i8, ptr %at, i64 -8
  store ptr %raw, ptr %note, align 8
  call void @treadle_release(ptr %data)
  ret ptr %at
full:
  ret ptr null
}
"""
_RELEASE = """
define internal void @treadle_release(ptr %data) noinline cold {
entry:
  %none = icmp eq ptr %data, null
  br i1 %none, label %done, label %free
free:
  %note = getelementptr i8, ptr %data, i64 -8
  %raw = load ptr, ptr %note, align 8
  call void @PyMem_RawFree(ptr %raw)
  br label %done
done:
  ret void
}
"""


# --- its life -------------------------------------------------------------------------------------------------------


def create(e: Emitter) -> None:
    """At the top of an entry: a tape without memory."""
    if not e.unit.taped:
        return
    e.place["tape"] = e.t.into(e.entry, f"alloca [{_TAPE.size} x i8], align 64")
    for name in ("stack", "log"):
        for field, nothing in (("data", "null"), ("used", "0"), ("capacity", "0")):
            _set(e, name, field, nothing, e.entry)
    _set(e, "log", "read", "0", e.entry)


def begin_gang(e: Emitter) -> None:
    """Nothing is there yet."""
    if "tape" in e.place:
        e.entries.clear()
        for name, field in (("stack", "used"), ("log", "used"), ("log", "read")):
            _set(e, name, field, "0")


def release(e: Emitter) -> None:
    """At the end of an entry."""
    if "tape" in e.place:
        _helpers(e)
        for name in ("stack", "log"):
            e.t.do(f"call void @treadle_release(ptr {_get(e, name, 'data')})")


def _helpers(e: Emitter) -> None:
    """The functions that get and free memory."""
    e.t.declare("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
    e.t.declare("declare ptr @PyMem_RawRealloc(ptr, i64)")
    e.t.declare("declare void @PyMem_RawFree(ptr)")
    e.unit.helper(_RELEASE)
    e.unit.helper(_GROW)


def turns(op: Op) -> tuple[int, int] | None:
    """In which order the arms of an ``if`` that splits a gang take their turns; None where the tape does not care.

    What is pushed first is popped last, across both arms: an ``if`` that takes back what another one pushed runs the
    other way round.
    """
    arms = [[inner for inner in ops_of(region) if info(inner.name).tape] for region in op.regions]
    if not any(arms):
        return None
    sites = [[{inner.attrs["site"] for inner in arm if inner.name == name} for name in ("pop", "push")] for arm in arms]
    return (1, 0) if any([popped - pushed for popped, pushed in sites]) else (0, 1)


# --- the record ------------------------------------------------------------------------------------------------------


def _field(e: Emitter, name: str, field: str, slot: list | None) -> str:
    offset = _TAPE[name if field == "data" else f"{name}_{field}"]
    rhs = f"getelementptr i8, ptr {e.place['tape']}, i64 {offset}"
    return e.t.ins(rhs) if slot is None else e.t.into(slot, rhs)


def _get(e: Emitter, name: str, field: str) -> str:
    return e.t.ins(f"load {_KINDS[field]}, ptr {_field(e, name, field, None)}, align 8")


def _set(e: Emitter, name: str, field: str, value: str, slot: list | None = None) -> None:
    line = f"  store {_KINDS[field]} {value}, ptr {_field(e, name, field, slot)}, align 8"
    (e.t.lines if slot is None else slot).append(line)


# --- entries ---------------------------------------------------------------------------------------------------------


class Slot(NamedTuple):
    """One number of an entry. ``step``: None if each lane has its own, else the lane step of the one that lies there
    alone."""

    type: Scalar
    step: int | None
    offset: int

    @property
    def single(self) -> bool:
        return self.step is not None


def _numbers(t: Type, step: int | None | str) -> list[tuple[Scalar, int | None]]:
    """The numbers of a value with lane step ``step``, each with its own."""
    if not isinstance(t, View):
        assert isinstance(t, Scalar) and step != "base"
        return [(t, step)]
    kinds = [kind for _, kind in views.view_leaves(t)]
    if t.space == "local":
        kinds[0] = i64
    return list(zip(kinds, part_steps(step, len(kinds)), strict=True))


def _size(e: Emitter, t: Scalar, step: int | None) -> int:
    if step is not None:
        return t.size
    return max(e.width // 8, 1) if t is b1 else t.size * e.width


def _unit(e: Emitter) -> int:
    """Entries are multiples of this many bytes."""
    return min(max(4 * e.width, 8), 64)


def _layout(e: Emitter, name: str, op: Op) -> tuple[list[Slot], int]:
    """The slots of an entry at ``op``, number after number, and its bytes."""
    values = op.args or op.results
    steps = e.lanes.sites[name, op.attrs["site"]]
    numbers = [n for v, s in zip(values, steps, strict=True) for n in _numbers(v.type, s)]
    slots: list[Slot | None] = [None] * len(numbers)
    total = 0
    for k in sorted(range(len(numbers)), key=lambda k: -_size(e, *numbers[k])):  # powers of two: each lies aligned
        slots[k] = Slot(*numbers[k], total)
        total += _size(e, *numbers[k])
    unit = _unit(e)
    return slots, (total + unit - 1) // unit * unit


def _parts(thing: Thing) -> list[X]:
    return thing.parts() if isinstance(thing, ViewX) else [thing]


def _mask_type(e: Emitter) -> str:
    """The integer that holds a bit a lane in memory."""
    return f"i{max(e.width, 8)}"


def _write(e: Emitter, x: X, slot: Slot, at: str) -> None:
    pointer = e.t.ins(f"getelementptr i8, ptr {at}, i64 {slot.offset}") if slot.offset else at
    align = min(_size(e, slot.type, slot.step), _unit(e))
    if slot.single:
        kind, text = memory(slot.type), to_memory(e, x, True)
    elif slot.type is b1:
        kind = _mask_type(e)
        text = e.t.ins(f"bitcast {e.bits} {e.wide(x)} to i{e.width}")
        if e.width < 8:
            text = e.t.ins(f"zext i{e.width} {text} to {kind}")
    else:
        kind, text = vector(memory(slot.type), e.width), to_memory(e, x, False)
    e.t.do(f"store {kind} {text}, ptr {pointer}, align {align}")


def _read(e: Emitter, slot: Slot, at: str) -> X:
    pointer = e.t.ins(f"getelementptr i8, ptr {at}, i64 {slot.offset}") if slot.offset else at
    align = min(_size(e, slot.type, slot.step), _unit(e))
    if slot.single:
        x = from_memory(e, e.t.ins(f"load {memory(slot.type)}, ptr {pointer}, align {align}"), slot.type, True)
        return e.uniform(slot.type, x.text, slot.step)
    if slot.type is b1:
        whole = e.t.ins(f"load {_mask_type(e)}, ptr {pointer}, align {align}")
        if e.width < 8:
            whole = e.t.ins(f"trunc {_mask_type(e)} {whole} to i{e.width}")
        return X(b1, None, e.t.ins(f"bitcast i{e.width} {whole} to {e.bits}"), None)
    kind = vector(memory(slot.type), e.width)
    return from_memory(e, e.t.ins(f"load {kind}, ptr {pointer}, align {align}"), slot.type, False)


# --- ops -------------------------------------------------------------------------------------------------------------


def _put(e: Emitter, op: Op) -> None:
    """``push`` and ``record``: an entry at the end."""
    name, takes = ("stack", "pop") if op.name == "push" else ("log", "recall")
    things = [e.get(a) for a in op.args]
    _remember(e, (takes, op.attrs["site"]), things)
    slots, total = _layout(e, takes, op)
    xs = [x for thing in things for x in _parts(thing)]
    for x, slot in zip(xs, slots, strict=True):
        if not slot.single:
            e.wide(x)  # before the branch
    at = _reserve(e, op, name, total)
    for x, slot in zip(xs, slots, strict=True):
        _write(e, x, slot, at)


def _remember(e: Emitter, key: tuple[str, int], things: list[Thing]) -> None:
    """Views come back as what they were put there as: the arrays of a thread's own among them are known by name."""
    known = e.entries.setdefault(key, things)
    for a, b in zip(known, things, strict=True):
        if isinstance(a, ViewX) and isinstance(b, ViewX) and a.base != b.base:
            raise InternalError("two different arrays of a thread meet in one site of the tape")


def _reserve(e: Emitter, op: Op, name: str, total: int) -> str:
    """Where the next ``total`` bytes lie."""
    _helpers(e)
    used, data = _get(e, name, "used"), _get(e, name, "data")
    after = e.t.ins(f"add i64 {used}, {total}")
    fits = e.t.ins(f"icmp ule i64 {after}, {_get(e, name, 'capacity')}")
    ready, grow, grown, full = (e.t.label(h) for h in ("ready", "grow", "grown", "full"))
    here, before = e.t.block, e.t.known
    e.t.branch(fits, ready, grow)
    e.t.start(grow, before)
    capacity = e.t.ins(f"add i64 {e.t.ins(f'shl i64 {after}, 1')}, {_FIRST}")
    more = e.t.ins(f"call ptr @treadle_grow(ptr {data}, i64 {used}, i64 {capacity})")
    e.t.branch(e.t.ins(f"icmp eq ptr {more}, null"), full, grown)
    e.t.start(full, before)
    faults.end(e, e.unit.site(op, "memory"))
    e.t.start(grown, before)
    _set(e, name, "data", more)
    _set(e, name, "capacity", capacity)
    e.t.jump(ready)
    e.t.start(ready, before)
    now = e.t.ins(f"phi ptr [ {data}, %{here} ], [ {more}, %{grown} ]")
    _set(e, name, "used", after)
    return e.t.ins(f"getelementptr i8, ptr {now}, i64 {used}")


def _take(e: Emitter, op: Op) -> None:
    """``pop``: the entry at the end, which goes. ``recall``: the one at the read cursor, which goes on."""
    slots, total = _layout(e, op.name, op)
    if op.name == "pop":
        place = e.t.ins(f"sub i64 {_get(e, 'stack', 'used')}, {total}")
        _set(e, "stack", "used", place)
        data = _get(e, "stack", "data")
    else:
        place = _get(e, "log", "read")
        _set(e, "log", "read", e.t.ins(f"add i64 {place}, {total}"))
        data = _get(e, "log", "data")
    at = e.t.ins(f"getelementptr i8, ptr {data}, i64 {place}")
    xs = iter([_read(e, slot, at) for slot in slots])
    for k, r in enumerate(op.results):
        if isinstance(r.type, View):
            e.env[r] = _view(e, op, k, [next(xs) for _ in views.view_leaves(r.type)])
        else:
            e.env[r] = next(xs)


def _view(e: Emitter, op: Op, k: int, numbers: list[X]) -> ViewX:
    """The view that was put at place ``k`` of an entry."""
    pattern = e.entries[op.name, op.attrs["site"]][k]
    assert isinstance(pattern, ViewX)
    made = pattern.rebuilt(numbers)
    made.strides = [x if s is None else e.fixed(i64, s) for x, s in zip(made.strides, made.type.strides, strict=True)]
    return made


def _mark(e: Emitter, op: Op) -> None:
    e.env[op.results[0]] = e.uniform(i64, _get(e, "log", "read" if op.attrs.get("read") else "used"))


def _seek(e: Emitter, op: Op) -> None:
    _set(e, "log", "read", _largest(e, e.number(op.args[0])).text)


def _lanes_max(e: Emitter, op: Op) -> None:
    x = e.number(op.args[0])
    if op.attrs.get("same") and e.mask is None and x.text is None:  # all lanes have what the first one has
        kind = Lower(e, x.type, x.type, False).llvm(x.type)
        e.env[op.results[0]] = e.uniform(x.type, e.t.ins(f"extractelement {kind} {e.wide(x)}, i64 0"))
    else:
        e.env[op.results[0]] = _largest(e, x)


def _largest(e: Emitter, x: X) -> X:
    """The largest ``x`` among the lanes that run."""
    if x.text is not None and x.step == 0:
        return x
    low = Lower(e, x.type, x.type, False)
    if e.mask is not None:
        x = e.blend(e.mask, x, e.fixed(x.type, -1 << x.type.bits - 1))
    kind = low.llvm(x.type)
    scalar = f"i{x.type.bits}"
    name = f"@llvm.vector.reduce.smax.v{e.width}{scalar}"
    e.t.declare(f"declare {scalar} {name}({kind})")
    return e.uniform(x.type, e.t.ins(f"call {scalar} {name}({kind} {e.wide(x)})"))


HANDLERS = {
    "push": _put, "record": _put, "pop": _take, "recall": _take, "mark": _mark, "seek": _seek, "lanes_max": _lanes_max,
}  # fmt: skip
