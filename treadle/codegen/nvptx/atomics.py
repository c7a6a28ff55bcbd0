"""Atomic updates as :mod:`way` plans them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.node import Op
from ...types.core import Scalar
from ..emit import memory
from ..emit.atomics import change, update
from ..emit.scalar import Lower, from_memory, to_memory
from ..emit.text import memory as memory_type
from ..emit.values import X
from . import exact, parts
from .way import LIMBS, Site

if TYPE_CHECKING:
    from ..emit.emitter import Emitter

_SCOPE = 'syncscope("device") monotonic'
_RMW = {"add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor", "exch": "xchg"}


def atomic(e: Emitter, op: Op) -> None:
    """Write an ``atomic`` op."""
    site = e.unit.way.sites.get(op, Site("hardware"))
    if site.how == "joined":
        e.env[op.results[0]] = e.zero(op.results[0])
        return
    for each in site.row or (op,):
        element, view = memory.access(e, each)
        values = [e.number(a) for a in each.args[1 + view.type.ndim :]]
        how = "own" if view.base is not None else site.how
        e.settle(each.results[0], _HOW[how](e, each, element, values, site))


def _own(e: Emitter, op: Op, element: memory.Access, values: list[X], site: Site) -> X:
    """Nobody else comes here, or there is one thread: read, change, write."""
    (old,) = element.load()
    element.store([update(Lower(e, old.type, old.type, True), op.attrs["op"], old, values)])
    return old


def _sum(e: Emitter, op: Op, element: memory.Access, values: list[X], site: Site) -> X:
    """In the hardware thread's register."""
    return _in_register(e, op, element, values, f"sum{site.index}")


def _counter(e: Emitter, op: Op, element: memory.Access, values: list[X], site: Site) -> X:
    """From the hardware thread's range of what all will add."""
    return _in_register(e, op, element, values, f"counter{site.index}")


def _in_register(e: Emitter, op: Op, element: memory.Access, values: list[X], name: str) -> X:
    if f"{name} at" in e.place:
        e.t.do(f"store ptr {element.at.start(element.view.data)}, ptr {e.place[f'{name} at']}, align 8")
    return change(e, op, element.items[0].type, e.place[name], values)


def _exact(e: Emitter, op: Op, element: memory.Access, values: list[X], site: Site) -> X:
    """In the accumulator of the scalar."""
    array, t = e.unit.way.exact[site.index], element.items[0].type
    x = values[0]
    if op.attrs["op"] == "sub":
        x = Lower(e, t, t, True).unary("fneg", x)
    e.t.declare("declare i64 @llvm.ctlz.i64(i64, i1)")
    e.unit.helper(exact.add(t))
    first = parts.first_byte(e, array)
    offset = e.t.ins(f"sub i64 {_number(e, element.at.start(element.view.data))}, {first}")
    row = e.t.ins(f"mul i64 {e.t.ins(f'udiv exact i64 {offset}, {t.size}')}, {8 * (LIMBS[t] + 1)}")
    at = e.t.ins(f"getelementptr i8, ptr {parts.item(e, array.item)}, i64 {row}")
    e.t.do(f"call void {exact.name_of(t, 'add')}(ptr {at}, {memory_type(t)} {x.text})")
    return e.zero(op.results[0])


def _number(e: Emitter, pointer: str) -> str:
    return e.t.ins(f"ptrtoint ptr {pointer} to i64")


# --- the hardware's -------------------------------------------------------------------------------------------------


def _hardware(e: Emitter, op: Op, element: memory.Access, values: list[X], site: Site) -> X:
    t, kind = element.items[0].type, op.attrs["op"]
    pointer, llvm = element.at.start(element.view.data), memory_type(t)
    if t.is_float and kind in ("min", "max") and t.size >= 4:
        return _extremum(e, kind, pointer, t, values[0])
    if kind == "cas" or (t.is_float and kind in ("min", "max")) or t.size < 4:
        return _compare_and_swap(e, kind, pointer, t, values)
    if t.is_float and kind in ("add", "sub"):
        name = f"f{kind}"
    elif kind in ("min", "max"):
        name = kind if t.is_signed else f"u{kind}"
    else:
        name = _RMW[kind]
    return X(t, e.t.ins(f"atomicrmw {name} ptr {pointer}, {llvm} {values[0].text} {_SCOPE}, align {t.size}"))


def _extremum(e: Emitter, kind: str, pointer: str, t: Scalar, x: X) -> X:
    """The least or greatest float, by its bits: as integers with a sign, floats that are not negative lie as they
    should, negative ones the other way round, which is how they lie without a sign. So -0.0 is less than 0.0, whoever
    comes first. A NaN changes nothing, and gives way to any number."""
    word, llvm = f"i{t.bits}", memory_type(t)
    low = Lower(e, t, t, True)
    first = e.t.ins(f"load {word}, ptr {pointer}, align {t.size}")
    number, found, up, down, done = (e.t.label(h) for h in ("number", "found", "up", "down", "least"))
    start, before = e.t.block, e.t.known
    e.t.branch(e.t.ins(f"fcmp uno {llvm} {x.text}, {x.text}"), done, number)
    e.t.start(number, before)
    bits = e.t.ins(f"bitcast {llvm} {x.text} to {word}")
    old = from_memory(e, e.t.ins(f"bitcast {word} {first} to {llvm}"), t, True)
    blank = e.t.label("blank")
    e.t.branch(low.fcmp("uno", old, old).text, blank, found)
    e.t.start(blank, before)
    e.t.ins(f"cmpxchg ptr {pointer}, {word} {first}, {word} {bits} {_SCOPE} monotonic, align {t.size}")
    e.t.jump(found)
    e.t.start(found, before)
    e.t.branch(e.t.ins(f"icmp slt {word} {bits}, 0"), down, up)
    e.t.start(up, before)
    a = e.t.ins(f"atomicrmw {kind} ptr {pointer}, {word} {bits} {_SCOPE}, align {t.size}")
    e.t.jump(done)
    e.t.start(down, before)
    other = "umax" if kind == "min" else "umin"
    b = e.t.ins(f"atomicrmw {other} ptr {pointer}, {word} {bits} {_SCOPE}, align {t.size}")
    e.t.jump(done)
    e.t.start(done, before)
    last = e.t.ins(f"phi {word} [ {first}, %{start} ], [ {a}, %{up} ], [ {b}, %{down} ]")
    return X(t, e.t.ins(f"bitcast {word} {last} to {llvm}"))


def _compare_and_swap(e: Emitter, kind: str, pointer: str, t: Scalar, values: list[X]) -> X:
    """Any update as a loop around compare-and-swap on the bits."""
    word = f"i{8 * t.size}"
    before, again, done = e.t.block, e.t.label("again"), e.t.label("swapped")
    first = e.t.ins(f"load {word}, ptr {pointer}, align {t.size}")
    e.t.jump(again)
    e.t.start(again)
    bits, seen = e.t.name(), e.t.name()
    e.t.do(f"{bits} = phi {word} [ {first}, %{before} ], [ {seen}, %{again} ]")
    same = word == memory_type(t)
    old = from_memory(e, bits if same else e.t.ins(f"bitcast {word} {bits} to {memory_type(t)}"), t, True)
    new = to_memory(e, update(Lower(e, t, t, True), kind, old, values), True)
    new = new if same else e.t.ins(f"bitcast {memory_type(t)} {new} to {word}")
    pair = e.t.ins(f"cmpxchg ptr {pointer}, {word} {bits}, {word} {new} {_SCOPE} monotonic, align {t.size}")
    e.t.do(f"{seen} = extractvalue {{ {word}, i1 }} {pair}, 0")
    e.t.branch(e.t.ins(f"extractvalue {{ {word}, i1 }} {pair}, 1"), done, again)
    e.t.start(done)
    return old


_HOW = {
    "own": _own, "plain": _own, "hardware": _hardware, "sum": _sum, "counter": _counter, "exact": _exact,
}  # fmt: skip
