"""Blocks that work on one thread of the launch together (``passes/blocks``): their arrays in shared memory, barriers,
and the number of a thread in its block.

Arrays that shared memory has no room for lie in scratch memory, which each block has its own part of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.node import Func, Op
from ...ir.walk import ops_of
from ...passes.blocks import share_block
from ...types.core import b1, i32
from ..emit import memory
from ..emit.text import register as register_type
from .parts import BARRIER, clear, item, register
from .way import Way

if TYPE_CHECKING:
    from ..emit.emitter import Emitter
    from .unit import ThreadUnit

SHUFFLE = "@llvm.nvvm.shfl.sync.bfly.i32"
SHARED = "@treadle_shared"  # its size is said at the launch
_ALIGN = 16
# Bytes of shared memory that a block can have, by architecture: CUDA C++ Programming Guide, technical specifications.
_ROOM = {75: 64 << 10, 80: 163 << 10, 86: 99 << 10, 87: 163 << 10, 89: 99 << 10, 120: 99 << 10, 121: 99 << 10}
_LARGE_ROOM = 227 << 10
_ANY = ("hardware", "exact", "sum")  # atomics that may come in any order, whoever does them


def shared(func: Func, way: Way, block: int) -> Func | None:
    """A kernel on tiles for the threads of a block; None where each thread had better work for itself."""
    if not func.facts.get("tiles") or way.order != "free" or block < 2:
        return None

    def commutes(op: Op) -> bool:
        site = way.sites.get(op)
        if site is not None and site.how == "joined":
            site = next(s for s in way.sites.values() if op in s.row)
        return site is not None and site.how in _ANY

    return share_block(func, 1 << (block.bit_length() - 1), commutes)


def lay_out(unit: ThreadUnit, arch: int) -> int:
    """Give each shared array of the kernel its place; the bytes of shared memory that a block needs."""
    room, used, beyond = _ROOM.get(arch, _LARGE_ROOM), 0, 0
    apart: list[Op] = []
    for op in ops_of(unit.kernel.body):
        if op.name == "local" and op.attrs.get("shared"):
            size = -(-op.attrs["type"].size // _ALIGN) * _ALIGN
            if used + size <= room:
                unit.shared[op] = (None, used)
                used += size
            else:
                apart.append(op)
    if apart:
        number = unit.way.item(bytes=0, per="block", slots=1, zeroed=False)
        for op in apart:
            unit.shared[op] = (number, beyond)
            beyond += -(-op.attrs["type"].size // _ALIGN) * _ALIGN
        unit.way.scratch[number]["bytes"] = beyond
    if used:
        unit.helper(f"{SHARED} = external addrspace(3) global [0 x i8], align {_ALIGN}")
    return used


def _local(e: Emitter, op: Op) -> None:
    if not op.attrs.get("shared"):
        memory.local(e, op, clear)
        return
    number, offset = e.unit.shared[op]
    if number is None:
        start = f"getelementptr i8, ptr addrspacecast (ptr addrspace(3) {SHARED} to ptr), i64 {offset}"
        base = e.t.into(e.entry, start)
    else:
        block = e.t.ins(f"mul i64 {register(e, 'ctaid.x')}, {e.unit.way.scratch[number]['bytes']}")
        base = e.t.ins(f"getelementptr i8, ptr {item(e, number)}, i64 {e.t.ins(f'add i64 {block}, {offset}')}")
    e.born[base] = e.mask
    memory.own_array(e, op, base)


def _lane(e: Emitter, op: Op) -> None:
    e.t.declare("declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()")
    e.env[op.results[0]] = e.uniform(i32, e.t.ins("call i32 @llvm.nvvm.read.ptx.sreg.tid.x()"))


def _barrier(e: Emitter, op: Op) -> None:
    e.t.declare(f"declare void {BARRIER}(i32)")
    e.t.do(f"call void {BARRIER}(i32 0)")


def _shuffle(e: Emitter, op: Op) -> None:
    """Bits go as words of 32."""
    x, r = e.number(op.args[0]), op.results[0]
    if x.type is b1:
        word = e.t.ins(f"zext i1 {x.text} to i32")
        e.env[r] = e.uniform(b1, e.t.ins(f"icmp ne i32 {_word(e, op, word)}, 0"))
        return
    bits, kind = x.type.bits, register_type(x.type)
    raw = x.text if kind.startswith("i") else e.t.ins(f"bitcast {kind} {x.text} to i{bits}")
    if bits == 64:
        low, high = e.t.ins(f"trunc i64 {raw} to i32"), e.t.ins(f"trunc i64 {e.t.ins(f'lshr i64 {raw}, 32')} to i32")
        low, high = [e.t.ins(f"zext i32 {_word(e, op, half)} to i64") for half in (low, high)]
        raw = e.t.ins(f"or i64 {low}, {e.t.ins(f'shl i64 {high}, 32')}")
    elif bits == 32:
        raw = _word(e, op, raw)
    else:
        raw = e.t.ins(f"trunc i32 {_word(e, op, e.t.ins(f'zext i{bits} {raw} to i32'))} to i{bits}")
    text = raw if kind.startswith("i") else e.t.ins(f"bitcast i{bits} {raw} to {kind}")
    e.env[r] = e.uniform(x.type, text)


def _word(e: Emitter, op: Op, word: str) -> str:
    e.t.declare(f"declare i32 {SHUFFLE}(i32, i32, i32, i32)")
    threads = min(e.unit.kernel.facts["threads"], 32)
    mask = -1 if threads == 32 else (1 << threads) - 1  # of those that take part
    made = e.t.name()
    e.t.do(f"{made} = call i32 {SHUFFLE}(i32 {mask}, i32 {word}, i32 {op.attrs['by']}, i32 31)")
    return made


HANDLERS = {"local": _local, "lane": _lane, "barrier": _barrier, "shuffle": _shuffle}
