"""Entries of a kernel: what one hardware thread does, which strides over the threads of the launch.

An entry gets the packed arguments and the launch record by value. The passes of a kernel (see ``way.py``) that run its
body are entries of this shape: the kernel itself, and what counts for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...ir.node import Func
from ...ir.walk import ops_of
from ...types.layout import pack
from ...types.records import LAUNCH, identity
from ..emit import kernel
from ..emit.emitter import Emitter
from ..emit.text import Text, constant, memory
from . import tape
from .parts import hardware, item, register

if TYPE_CHECKING:
    from .unit import ThreadUnit


def parameters(unit: ThreadUnit) -> list[tuple[str, str]]:
    """The parameters of an entry: type with attributes, and name."""

    def block(size: int) -> str:
        return f'ptr byval([{size} x i8]) align 8 readonly "nvvm.grid_constant"'

    return [(block(max(pack(unit.kernel.signature)[1], 8)), "args"), (block(LAUNCH.size), "launch")]


def head(unit: ThreadUnit, symbol: str) -> str:
    """The first line of the entry ``symbol``."""
    listed = ", ".join(f"{kind} %{name}" for kind, name in parameters(unit))
    return f"define ptx_kernel void @{symbol}({listed}) #1"


def begin(unit: ThreadUnit, func: Func) -> Emitter:
    """An entry whose parameters have been read."""
    e = Emitter(unit, unit.lanes(func), Text(unit.needs))
    e.place = {"launch": "%launch"}
    e.t.start("entry")
    e.entry = e.t.slot()
    kernel.parameters(e, func, "%args")
    e.place["priv"] = e.t.ins(f"load ptr, ptr {_launch_at(e, 'priv_targets')}, align 8, !invariant.load !0")
    e.after_parameters = e.t.slot()
    return e


def _launch_at(e: Emitter, name: str) -> str:
    return e.t.ins(f"getelementptr i8, ptr %launch, i64 {LAUNCH[name]}")


def write_threads(unit: ThreadUnit, func: Func, symbol: str, counting: int | None = None) -> str:
    """The text of an entry that runs the body of ``func``: the kernel, or the counting pass of a round."""
    e, way = begin(unit, func), unit.way
    if any(op.name == "call" for op in ops_of(func.body)):
        e.place["alive"] = e.t.into(e.entry, "alloca i1, align 8")
    number, count = hardware(e)
    size = e.launch_word(LAUNCH["size"])
    first, stop, step = number, size, count
    if unit.together:
        first, step = register(e, "ctaid.x"), register(e, "nctaid.x")
    if way.order == "ordered":
        first, step = "0", "1"
    elif way.counters:  # neighbours in the launch stay together
        above = e.t.ins(f"add i64 {size}, {e.t.ins(f'sub i64 {count}, 1')}")
        share = e.t.ins(f"udiv i64 {above}, {count}")
        first, step = e.t.ins(f"mul i64 {number}, {share}"), "1"
        e.t.declare("declare i64 @llvm.umin.i64(i64, i64)")
        stop = e.t.ins(f"call i64 @llvm.umin.i64(i64 {e.t.ins(f'add i64 {first}, {share}')}, i64 {size})")
    tape.create(e, number, count)
    end = _private(e, number, counting)
    _loop(e, func, first, stop, step)
    end()
    tape.release(e)
    e.t.do("ret void")
    return f"{head(unit, symbol)} {{\n{e.t.text()}\n}}\n"


def _loop(e: Emitter, func: Func, first: str, stop: str, step: str) -> None:
    """Thread after thread. One that fails ends; so does the launch, if threads run in order, and a hardware thread
    whose block shares the work, which then meets no barrier any more."""
    t, before = e.t, e.t.block
    loop, body, after, done = (t.label(h) for h in ("threads", "thread", "next", "done"))
    t.jump(loop)
    t.start(loop)
    thread, following, phi = t.name(), t.name(), t.slot()
    t.branch(t.ins(f"icmp ult i64 {thread}, {stop}"), body, done)
    t.start(body)
    env, place = dict(e.env), dict(e.place)
    e.place["thread"] = thread
    if "alive" in e.place:
        t.do(f"store i1 true, ptr {e.place['alive']}, align 8")
    if any(op.name == "tid" for op in ops_of(func.body)):
        e.axes = kernel.axes(e, func.facts.get("ndim", 0), thread)
    tape.begin(e)
    e.block(func.body)
    made = {key: text for key, text in e.place.items() if key not in ("thread", *place)}  # at the function's top
    e.env, e.place = env, {**place, **made}
    t.jump(after)
    if e.abort_label is not None:
        t.start(e.abort_label)
        t.jump(done if e.unit.way.order == "ordered" or e.unit.together else after)
        e.abort_label = None
    t.start(after)
    t.do(f"{following} = add i64 {thread}, {step}")
    t.jump(loop)
    phi.append(f"  {thread} = phi i64 [ {first}, %{before} ], [ {following}, %{after} ]")
    t.start(done)


def _private(e: Emitter, number: str, counting: int | None) -> Callable[[], None]:
    """Registers of this hardware thread for sums and counters; what leaves them in scratch."""
    way, ends = e.unit.way, []

    def own(name: str, kind: str, start: str) -> str:
        e.place[name] = e.t.into(e.entry, f"alloca {kind}, align 8")
        e.t.do(f"store {kind} {start}, ptr {e.place[name]}, align 8")
        return e.place[name]

    def cell(item_number: int, nbytes: int) -> str:
        return e.t.ins(f"getelementptr i8, ptr {item(e, item_number)}, i64 {e.t.ins(f'mul i64 {number}, {nbytes}')}")

    def leave(kind: str, slot: str, place: str) -> None:
        e.t.do(f"store {kind} {e.t.ins(f'load {kind}, ptr {slot}, align 8')}, ptr {place}")

    def head_of(name: str, index: int) -> None:
        """Say once where the sum or counter is, if any thread came there."""
        some, none = e.t.label("known"), e.t.label("unknown")
        where = e.t.ins(f"load ptr, ptr {e.place[name]}, align 8")
        e.t.branch(e.t.ins(f"icmp eq ptr {where}, null"), none, some)
        e.t.start(some)
        at = e.t.ins(f"getelementptr i8, ptr {item(e, way.heads)}, i64 {8 * index}")
        e.t.do(f"store ptr {where}, ptr {at}, align 8")
        e.t.jump(none)
        e.t.start(none)

    for k, one in enumerate(way.sums if counting is None else ()):
        kind = memory(one.type)
        slot, place = own(f"sum{k}", kind, identity_of(one.kind, one.type)), cell(one.item, one.type.size)
        own(f"sum{k} at", "ptr", "null")
        ends += [
            lambda kind=kind, slot=slot, place=place: leave(kind, slot, place),
            lambda k=k: head_of(f"sum{k} at", k),
        ]
    for k, one in enumerate(way.counters):
        kind, place = memory(one.type), cell(one.item, one.type.size)
        if counting is None or one.round < counting:
            own(f"counter{k}", kind, e.t.ins(f"load {kind}, ptr {place}"))
        elif one.round == counting:
            slot, at = own(f"counter{k}", kind, "0"), f"counter{k} at"
            own(at, "ptr", "null")
            ends.append(lambda kind=kind, slot=slot, place=place: leave(kind, slot, place))
            ends.append(lambda at=at, k=k: head_of(at, len(way.sums) + k))
    return lambda: [end() for end in ends]


def identity_of(kind: str, t) -> str:
    """The constant that leaves others unchanged."""
    number = identity(kind, t)
    if not t.is_float:
        return constant(number - (1 << t.bits) if t.is_signed and number >> t.bits - 1 else number, t)
    return f"bitcast (i{t.bits} {number} to {memory(t)})"
