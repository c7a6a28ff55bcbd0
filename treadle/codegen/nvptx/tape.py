"""Stack and log of a hardware thread, in 32-bit words.

Word k of a thread lies beside word k of its neighbours, ``[word][thread]`` in scratch memory, so that threads that run
alike write side by side. How many words a thread has there, the runtime knows from launches before; a thread that needs
more moves to memory of its own from the device's heap, and says how much it needed. Positions begin anew with each
thread of the launch. See ``emit/tape.py`` for what the ops mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.node import Op
from ...types.core import Scalar, View, b1, i64
from ...types.records import words
from ..emit import faults, views
from ..emit.merge import Thing, part_steps
from ..emit.scalar import from_memory
from ..emit.text import memory
from ..emit.values import ViewX, X
from .parts import in_global, item

if TYPE_CHECKING:
    from ..emit.emitter import Emitter
    from .unit import ThreadUnit

# Of stack and log: where they are, words that lie there, words that fit, bytes from word to word, memory of the heap.
_FIELDS = {"data": "ptr", "used": "i64", "capacity": "i64", "step": "i64", "heap": "ptr"}
_TAPE = words(" ".join([*(f"{n}_{f}" for n in ("stack", "log") for f in _FIELDS), "log_read"]))
FIRST = {"stack": 64, "log": 32}  # words a thread, before anything is known

_GROW = """
declare ptr @malloc(i64)
declare void @free(ptr)
define internal ptr @treadle_grow(ptr %data, i64 %step, i64 %used, i64 %capacity, ptr %heap, ptr %needed) noinline {
entry:
  %bytes = shl i64 %capacity, 2
  %made = call ptr @malloc(i64 %bytes)
  %none = icmp eq ptr %made, null
  br i1 %none, label %full, label %test
test:
  %k = phi i64 [ 0, %entry ], [ %next, %copy ]
  %more = icmp ult i64 %k, %used
  br i1 %more, label %copy, label %moved
copy:
  %from = mul i64 %k, %step
  %fp = getelementptr i8, ptr %data, i64 %from
  %word = load i32, ptr %fp, align 4
  %tp = getelementptr i32, ptr %made, i64 %k
  store i32 %word, ptr %tp, align 4
  %next = add i64 %k, 1
  br label %test
moved:
  %old = icmp eq ptr %heap, null
  br i1 %old, label %told, label %release
release:
  call void @free(ptr %heap)
  br label %told
told:
  atomicrmw umax ptr %needed, i64 %capacity syncscope("device") monotonic, align 8
  ret ptr %made
full:
  ret ptr null
}
"""


def plan(unit: ThreadUnit) -> None:
    """Ask for the scratch memory that the program's tape needs."""
    for name, puts in (("stack", "push"), ("log", "record")):
        if puts in unit.puts(unit.kernel):
            needed = unit.way.item(bytes=8, per="host", slots=1, zeroed=True)
            at = unit.way.item(bytes=4, per="thread", slots=None, first=FIRST[name], needs=needed, zeroed=False)
            unit.tape_items[name], unit.tape_items[f"{name} needs"] = at, needed


def create(e: Emitter, number: str, count: str) -> None:
    """At the top of an entry: what lies in scratch for hardware thread ``number`` of ``count``."""
    if not e.unit.taped:
        return
    e.place["tape"] = e.t.into(e.entry, f"alloca [{_TAPE.size} x i8], align 8")
    for name in _names(e):
        at = item(e, e.unit.tape_items[name])
        data = e.t.ins(f"getelementptr i8, ptr {at}, i64 {e.t.ins(f'shl i64 {number}, 2')}")
        _set(e, name, "data", data)
        _set(e, name, "capacity", item(e, e.unit.tape_items[name], 1))
        _set(e, name, "step", e.t.ins(f"shl i64 {count}, 2"))
        _set(e, name, "heap", "null")


def begin(e: Emitter) -> None:
    """A thread of the launch begins."""
    if "tape" in e.place:
        e.entries.clear()
        for name in _names(e):
            _set(e, name, "used", "0")
        e.t.do(f"store i64 0, ptr {_at(e, 'log_read')}, align 8")


def release(e: Emitter) -> None:
    """At the end of an entry: give back what came from the heap."""
    if "tape" in e.place:
        e.unit.helper(_GROW)
        for name in _names(e):
            e.t.do(f"call void @free(ptr {_get(e, name, 'heap')})")


def _names(e: Emitter) -> list[str]:
    return [name for name in ("stack", "log") if name in e.unit.tape_items]


def _at(e: Emitter, field: str) -> str:
    return e.t.ins(f"getelementptr i8, ptr {e.place['tape']}, i64 {_TAPE[field]}")


def _get(e: Emitter, name: str, field: str) -> str:
    return e.t.ins(f"load {_FIELDS[field]}, ptr {_at(e, f'{name}_{field}')}, align 8")


def _set(e: Emitter, name: str, field: str, value: str) -> None:
    e.t.do(f"store {_FIELDS[field]} {value}, ptr {_at(e, f'{name}_{field}')}, align 8")


# --- entries ---------------------------------------------------------------------------------------------------------


def _kinds(e: Emitter, name: str, op: Op) -> list[Scalar]:
    """The numbers of an entry at ``op``."""
    found: list[Scalar] = []
    for v, step in zip(op.args or op.results, e.lanes.sites[name, op.attrs["site"]], strict=True):
        if isinstance(v.type, View):
            kinds = [kind for _, kind in views.view_leaves(v.type)]
            if v.type.space == "local":
                kinds[0] = i64
            assert len(part_steps(step, len(kinds))) == len(kinds)
            found += kinds
        else:
            assert isinstance(v.type, Scalar)
            found.append(v.type)
    return found


def _split(kinds: list[Scalar]) -> tuple[list[int], list[int], int]:
    """Which numbers are truth values, which are others, and the words of all: 32 truth values share one."""
    bits = [k for k, t in enumerate(kinds) if t is b1]
    others = [k for k, t in enumerate(kinds) if t is not b1]
    return bits, others, (len(bits) + 31) // 32 + sum(_words(kinds[k]) for k in others)


def _words(t: Scalar) -> int:
    return 2 if memory(t) == "ptr" or t.size == 8 else 1


def _write(e: Emitter, xs: list[X], at: str, step: str) -> None:
    bits, others, _ = _split([x.type for x in xs])
    place = 0
    for first in range(0, len(bits), 32):
        word = "0"
        for bit, k in enumerate(bits[first : first + 32]):
            one = e.t.ins(f"zext i1 {xs[k].text} to i32")
            word = one if bit == 0 else e.t.ins(f"or i32 {word}, {e.t.ins(f'shl i32 {one}, {bit}')}")
        _put_word(e, word, at, step, place)
        place += 1
    for k in others:
        for word in _to_words(e, xs[k]):
            _put_word(e, word, at, step, place)
            place += 1


def _read(e: Emitter, kinds: list[Scalar], at: str, step: str) -> list[X]:
    bits, others, _ = _split(kinds)
    found: dict[int, X] = {}
    place = 0
    for first in range(0, len(bits), 32):
        word = _get_word(e, at, step, place)
        place += 1
        for bit, k in enumerate(bits[first : first + 32]):
            moved = e.t.ins(f"lshr i32 {word}, {bit}") if bit else word
            found[k] = X(b1, e.t.ins(f"trunc i32 {moved} to i1"))
    for k in others:
        parts = [_get_word(e, at, step, place + j) for j in range(_words(kinds[k]))]
        place += len(parts)
        found[k] = _from_words(e, kinds[k], parts)
    return [found[k] for k in range(len(kinds))]


def _pointer(e: Emitter, at: str, step: str, place: int) -> str:
    if place:
        at = e.t.ins(f"getelementptr i8, ptr {at}, i64 {e.t.ins(f'mul i64 {step}, {place}')}")
    return f"ptr addrspace(1) {in_global(e.t.ins, at)}"


def _put_word(e: Emitter, word: str, at: str, step: str, place: int) -> None:
    e.t.do(f"store i32 {word}, {_pointer(e, at, step, place)}, align 4")


def _get_word(e: Emitter, at: str, step: str, place: int) -> str:
    return e.t.ins(f"load i32, {_pointer(e, at, step, place)}, align 4")


def _to_words(e: Emitter, x: X) -> list[str]:
    kind, text = memory(x.type), x.text
    if kind == "ptr":
        text, size = e.t.ins(f"ptrtoint ptr {text} to i64"), 64
    else:
        size = x.type.bits
        if not kind.startswith("i"):
            text = e.t.ins(f"bitcast {kind} {text} to i{size}")
    if size < 32:
        return [e.t.ins(f"zext i{size} {text} to i32")]
    if size == 32:
        return [text]
    return [e.t.ins(f"trunc i64 {text} to i32"), e.t.ins(f"trunc i64 {e.t.ins(f'lshr i64 {text}, 32')} to i32")]


def _from_words(e: Emitter, t: Scalar, parts: list[str]) -> X:
    kind, text = memory(t), parts[0]
    if len(parts) == 2:
        high = e.t.ins(f"shl i64 {e.t.ins(f'zext i32 {parts[1]} to i64')}, 32")
        text = e.t.ins(f"or i64 {e.t.ins(f'zext i32 {text} to i64')}, {high}")
        if kind == "ptr":
            return e.uniform(t, e.t.ins(f"inttoptr i64 {text} to ptr"))
    elif t.bits < 32:
        text = e.t.ins(f"trunc i32 {text} to i{t.bits}")
    return from_memory(e, text if kind.startswith("i") else e.t.ins(f"bitcast i{t.bits} {text} to {kind}"), t, True)


# --- ops -------------------------------------------------------------------------------------------------------------


def _put(e: Emitter, op: Op) -> None:
    """``push`` and ``record``: an entry at the end."""
    name, takes = ("stack", "pop") if op.name == "push" else ("log", "recall")
    if name not in e.unit.tape_items:
        return  # nobody takes anything
    things = [e.get(a) for a in op.args]
    e.entries.setdefault((takes, op.attrs["site"]), things)
    total = _split(_kinds(e, takes, op))[2]
    at = _reserve(e, op, name, total)
    _write(e, [x for thing in things for x in _parts(thing)], at, _get(e, name, "step"))


def _parts(thing: Thing) -> list[X]:
    return thing.parts() if isinstance(thing, ViewX) else [thing]


def _reserve(e: Emitter, op: Op, name: str, total: int) -> str:
    """Where the next ``total`` words begin."""
    e.unit.helper(_GROW)
    used = _get(e, name, "used")
    after = e.t.ins(f"add i64 {used}, {total}")
    fits = e.t.ins(f"icmp ule i64 {after}, {_get(e, name, 'capacity')}")
    ready, grow, grown, full = (e.t.label(h) for h in ("ready", "grow", "grown", "full"))
    before = e.t.known
    e.t.branch(fits, ready, grow)
    e.t.start(grow, before)
    capacity = e.t.ins(f"shl i64 {after}, 1")
    data, step, heap = (_get(e, name, f) for f in ("data", "step", "heap"))
    needed = item(e, e.unit.tape_items[f"{name} needs"])
    more = e.t.ins(
        f"call ptr @treadle_grow(ptr {data}, i64 {step}, i64 {used}, i64 {capacity}, ptr {heap}, ptr {needed})"
    )
    e.t.branch(e.t.ins(f"icmp eq ptr {more}, null"), full, grown)
    e.t.start(full, before)
    faults.end(e, e.unit.site(op, "memory"))
    e.t.start(grown, before)
    for field, value in (("data", more), ("heap", more), ("capacity", capacity), ("step", "4")):
        _set(e, name, field, value)
    e.t.jump(ready)
    e.t.start(ready, before)
    _set(e, name, "used", after)
    return _place(e, name, used)


def _place(e: Emitter, name: str, word: str) -> str:
    offset = e.t.ins(f"mul i64 {word}, {_get(e, name, 'step')}")
    return e.t.ins(f"getelementptr i8, ptr {_get(e, name, 'data')}, i64 {offset}")


def _take(e: Emitter, op: Op) -> None:
    """``pop``: the entry at the end, which goes. ``recall``: the one at the read cursor, which goes on."""
    kinds = _kinds(e, op.name, op)
    total = _split(kinds)[2]
    if op.name == "pop":
        name, place = "stack", e.t.ins(f"sub i64 {_get(e, 'stack', 'used')}, {total}")
        _set(e, "stack", "used", place)
    else:
        name, cursor = "log", _at(e, "log_read")
        place = e.t.ins(f"load i64, ptr {cursor}, align 8")
        e.t.do(f"store i64 {e.t.ins(f'add i64 {place}, {total}')}, ptr {cursor}, align 8")
    xs = iter(_read(e, kinds, _place(e, name, place), _get(e, name, "step")))
    for k, r in enumerate(op.results):
        if isinstance(r.type, View):
            pattern = e.entries[op.name, op.attrs["site"]][k]
            assert isinstance(pattern, ViewX)
            made = pattern.rebuilt([next(xs) for _ in views.view_leaves(r.type)])
            pairs = zip(made.strides, made.type.strides, strict=True)
            made.strides = [x if s is None else e.fixed(i64, s) for x, s in pairs]
            e.env[r] = made
        else:
            e.env[r] = next(xs)


def _mark(e: Emitter, op: Op) -> None:
    if "log" not in e.unit.tape_items:
        e.env[op.results[0]] = e.fixed(i64, 0)
        return
    field = "log_read" if op.attrs.get("read") else "log_used"
    e.env[op.results[0]] = e.uniform(i64, e.t.ins(f"load i64, ptr {_at(e, field)}, align 8"))


def _seek(e: Emitter, op: Op) -> None:
    e.t.do(f"store i64 {e.number(op.args[0]).text}, ptr {_at(e, 'log_read')}, align 8")


HANDLERS = {"push": _put, "record": _put, "pop": _take, "recall": _take, "mark": _mark, "seek": _seek}
