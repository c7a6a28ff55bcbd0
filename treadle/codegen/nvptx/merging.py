"""Passes that put together what hardware threads left: sums, counters, exact accumulators.

``merge`` and ``scan`` are one block each, whose threads share an array and meet at barriers; ``fold`` goes over the
scalars of arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...types.core import Scalar
from ...types.records import LAUNCH
from ..emit.atomics import update
from ..emit.emitter import Emitter
from ..emit.scalar import Lower
from ..emit.text import Text, memory
from ..emit.values import X
from ..native.text import Code
from . import exact
from .entry import begin, head, identity_of, parameters
from .parts import BARRIER, ROW, first_byte, hardware, item
from .way import LIMBS, Counter

if TYPE_CHECKING:
    from .unit import ThreadUnit

MERGERS, SCANNERS = 256, 1024  # threads of a block


def launched(threads: int, block: int) -> int:
    """The most blocks of ``block`` threads that ``threads`` are."""
    return max(threads // block, 1)


class _Block:
    """An entry for one block, with an array that its threads share."""

    def __init__(self, unit: ThreadUnit, symbol: str, threads: int):
        self.unit, self.threads = unit, threads
        self.shared = f"@{symbol}_shared"
        unit.helper(f"{self.shared} = internal addrspace(3) global [{threads} x i64] undef, align 8")
        unit.needs.add("declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()")
        unit.needs.add(f"declare void {BARRIER}(i32)")
        self.c = Code(symbol, "void", parameters(unit), "ptx_kernel")
        self.tid = self.c.cast("zext", "i32", self.c.value("call i32 @llvm.nvvm.read.ptx.sreg.tid.x()"), "i64")
        self.table = self.c.load("ptr", "%launch", LAUNCH["priv_targets"])

    def item(self, number: int) -> str:
        """The address of an item of scratch."""
        return self.c.load("ptr", self.table, ROW * number)

    def count(self, threads: int, block: int) -> str:
        """How many hardware threads the passes before had."""
        c = self.c
        size = c.load("i64", "%launch", LAUNCH["size"])
        each = 1 if self.unit.together else block
        blocks = c.op("udiv", "i64", c.op("add", "i64", size, each - 1), each)
        most = launched(threads, block)
        blocks = c.select(c.op("icmp ult", "i64", blocks, most), "i64", blocks, most)
        return c.op("mul", "i64", blocks, block)

    def place(self, number: str) -> str:
        """A cell of the shared array."""
        return self.c.value(f"getelementptr i64, ptr addrspace(3) {self.shared}, i64 {number}")

    def get(self, kind: str, number: str) -> str:
        return self.c.value(f"load {kind}, ptr addrspace(3) {self.place(number)}, align 8")

    def put(self, kind: str, value: str, number: str) -> None:
        self.c.line(f"store {kind} {value}, ptr addrspace(3) {self.place(number)}, align 8")

    def barrier(self) -> None:
        self.c.line(f"call void {BARRIER}(i32 0)")

    def first(self, index: int) -> str:
        """Where the sum or counter is, null if no thread came there."""
        return self.c.load("ptr", self.item(self.unit.way.heads), 8 * index)

    def text(self) -> str:
        return self.c.text().replace(") {", ") #2 {", 1)


def combine(unit: ThreadUnit, kind: str, t: Scalar) -> str:
    """The name of a function that puts two results together."""
    name = f"@treadle_{kind}s_{t.name}"
    e = Emitter(unit, None, Text(unit.needs))  # type: ignore[arg-type]
    result = update(Lower(e, t, t, True), kind, X(t, "%a"), [X(t, "%b")])
    m = memory(t)
    lines = f"entry:\n{e.t.text()}\n  ret {m} {result.text}"
    unit.helper(f"define internal {m} {name}({m} %a, {m} %b) alwaysinline nounwind {{\n{lines}\n}}\n")
    return name


def write_merge(unit: ThreadUnit, symbol: str, block: int) -> str:
    """Each thread adds up every 256th register, then the threads by halves; the first adds what they are to the
    target."""
    b = _Block(unit, symbol, MERGERS)
    c, count = b.c, b.count(unit.way.threads, block)
    for k, one in enumerate(unit.way.sums):
        kind, both = memory(one.type), combine(unit, one.kind, one.type)
        total, base = c.var(kind, identity_of(one.kind, one.type)), b.item(one.item)
        with c.for_(count, b.tid, MERGERS) as i:
            other = c.load(kind, base, c.op("mul", "i64", i, one.type.size))
            total.set(c.call(kind, both, (kind, total.get()), (kind, other)))
        b.put(kind, total.get(), b.tid)
        b.barrier()
        half = MERGERS // 2
        while half:
            with c.if_(c.op("icmp ult", "i64", b.tid, half)):
                other = b.get(kind, c.op("add", "i64", b.tid, half))
                b.put(kind, c.call(kind, both, (kind, b.get(kind, b.tid)), (kind, other)), b.tid)
            b.barrier()
            half //= 2
        with c.if_(c.op("icmp eq", "i64", b.tid, 0)):
            target = b.first(k)
            with c.if_(c.op("icmp ne", "ptr", target, "null")):
                total.set(c.call(kind, both, (kind, c.load(kind, target)), (kind, b.get(kind, "0"))))
                c.store(kind, total.get(), target)
        b.barrier()
    return b.text()


def write_scan(unit: ThreadUnit, symbol: str, number: int, block: int) -> str:
    """What hardware threads add to the counters of a round becomes what they start from."""
    b = _Block(unit, symbol, SCANNERS)
    c, count = b.c, b.count(unit.way.threads, block)
    share = c.op("udiv", "i64", c.op("add", "i64", count, SCANNERS - 1), SCANNERS)
    first = c.op("mul", "i64", b.tid, share)
    first = c.select(c.op("icmp ult", "i64", first, count), "i64", first, count)
    last = c.op("add", "i64", first, share)
    last = c.select(c.op("icmp ult", "i64", last, count), "i64", last, count)
    for k, one in enumerate(unit.way.counters):
        if one.round == number:
            _scan(b, one, b.first(len(unit.way.sums) + k), first, last)
    return b.text()


def _scan(b: _Block, one: Counter, target: str, first: str, last: str) -> None:
    c, kind = b.c, memory(one.type)
    base, mine = b.item(one.item), c.var(kind, 0)
    with c.for_(last, first) as i:
        mine.set(c.op("add", kind, mine.get(), c.load(kind, base, c.op("mul", "i64", i, one.type.size))))
    b.put(kind, mine.get(), b.tid)
    b.barrier()
    reach = 1
    while reach < b.threads:  # sums of twice as many each time (Hillis, Steele 1986)
        sum_ = c.var(kind, b.get(kind, b.tid))
        with c.if_(c.op("icmp uge", "i64", b.tid, reach)):
            sum_.set(c.op("add", kind, sum_.get(), b.get(kind, c.op("sub", "i64", b.tid, reach))))
        b.barrier()
        b.put(kind, sum_.get(), b.tid)
        b.barrier()
        reach *= 2
    with c.if_(c.op("icmp ne", "ptr", target, "null")):
        start = c.load(kind, target)
        b.barrier()  # before it changes
        running = c.var(kind, c.op("add", kind, start, c.op("sub", kind, b.get(kind, b.tid), mine.get())))
        with c.for_(last, first) as i:
            at = c.at(base, c.op("mul", "i64", i, one.type.size))
            amount = c.load(kind, at)
            c.store(kind, running.get(), at)
            running.set(c.op("add", kind, running.get(), amount))
        with c.if_(c.op("icmp eq", "i64", b.tid, b.threads - 1)):
            c.store(kind, c.op("add", kind, start, b.get(kind, b.tid)), target)
    b.barrier()


def write_fold(unit: ThreadUnit, symbol: str) -> str:
    """Add every accumulator to its scalar."""
    e = begin(unit, unit.kernel)
    number, count = hardware(e)
    t = e.t
    t.declare("declare i64 @llvm.ctlz.i64(i64, i1)")
    for array in unit.way.exact:
        unit.helper(exact.add(array.type))
        unit.helper(exact.round_(array.type))
        scalars, base, first = item(e, array.item, 1), item(e, array.item), first_byte(e, array)
        loop, body, done = (t.label(h) for h in ("scalars", "scalar", "folded"))
        before, i, following = t.block, t.name(), t.name()
        t.jump(loop)
        t.start(loop)
        t.do(f"{i} = phi i64 [ {number}, %{before} ], [ {following}, %{body} ]")
        t.branch(t.ins(f"icmp ult i64 {i}, {scalars}"), body, done)
        t.start(body)
        row = t.ins(f"mul i64 {i}, {8 * (LIMBS[array.type] + 1)}")
        at = t.ins(f"getelementptr i8, ptr {base}, i64 {row}")
        place = t.ins(f"add i64 {first}, {t.ins(f'mul i64 {i}, {array.type.size}')}")
        target = t.ins(f"inttoptr i64 {place} to ptr")
        t.do(f"call void {exact.name_of(array.type, 'round')}(ptr {at}, ptr {target})")
        t.do(f"{following} = add i64 {i}, {count}")
        t.jump(loop)
        t.start(done)
    t.do("ret void")
    return f"{head(unit, symbol)} {{\n{t.text()}\n}}\n"
