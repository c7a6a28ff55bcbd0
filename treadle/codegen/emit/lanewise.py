"""Accesses lane by lane: gathers and scatters, and elements of several scalars as rows.

A lane whose element has two or more scalars side by side moves up to four of them at once, as a *row*; four rows are
turned into columns, one vector a component, by the usual transposition. Lanes that do not run access a dummy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...types.core import Scalar
from .scalar import from_memory, to_memory
from .text import PTR, memory, vector
from .values import X
from .wide import indices, short

if TYPE_CHECKING:
    from .address import Index
    from .emitter import Emitter


HARDWARE = 4  # bytes of the smallest item that instructions gather; LLVM makes a branch a lane of smaller ones


class Item(NamedTuple):
    """One scalar of an element: its byte offset, its type, and in planar arrays the number of its plane."""

    offset: int
    type: Scalar
    plane: int = 0

    @property
    def size(self) -> int:
        return 8 if self.type is PTR else self.type.size


class Pointers:
    """Where the lanes of an access point. ``vector``: all pointers, or None if they are ``start`` and ``offsets``, a
    vector of bytes, or ``start`` and a byte ``step`` from lane to lane. ``index``: what they are made of, if that is
    simple."""

    def __init__(
        self, e: Emitter, vector: str | None, start: str = "", step: int = 0, index: Index | None = None,
        offsets: str = "",
    ):  # fmt: skip
        self.e, self._vector, self.start, self.step, self.index, self.offsets = e, vector, start, step, index, offsets

    def vector(self) -> str:
        e = self.e
        if self._vector is None:
            offsets = self.offsets or e.ramp("i64", self.step)
            self._vector = e.t.ins(f"getelementptr i8, ptr {self.start}, {vector('i64', e.width)} {offsets}")
        return self._vector

    def each(self, reach: int) -> list[str]:
        """The pointer of each lane; of lanes that do not run, one to ``reach`` bytes of dummy."""
        if self._vector is None and not self.offsets:
            return self._each_step(reach)
        alone = self.index is not None and self.e.mask is None
        return self.index.pointers(self.e) if alone else each_pointer(self.e, self.vector(), reach)

    def each_changed(self, reach: int) -> list[str]:
        """As :meth:`each`, for integers that are changed in memory.

        Processors that hand what was stored to a load through the same registers, before addresses are known, do not
        notice that a register was set out of a vector, and begin anew after each wrong guess: it costs ten times what
        the update does. An offset therefore leaves its vector twice as large, to be halved by a scalar instruction.
        """
        e = self.e
        if not self.offsets or (self.index is not None and e.mask is None):
            return self.each(reach)
        kind, offsets = vector("i64", e.width), self.offsets
        if e.mask is not None:
            here, there = (e.t.ins(f"ptrtoint ptr {p} to i64") for p in (self.start, e.dummy(reach)))
            apart = e.t.ins(f"sub i64 {there}, {here}")
            filler = e.spread(e.t.slot(), "i64", apart, 0)
            offsets = e.t.ins(f"select {e.bits} {e.mask}, {kind} {offsets}, {kind} {filler}")
        twice, found = e.t.ins(f"shl {kind} {offsets}, splat (i64 1)"), []
        for lane in range(e.width):
            offset = e.t.ins(f"ashr i64 {e.t.ins(f'extractelement {kind} {twice}, i64 {lane}')}, 1")
            found.append(e.t.ins(f"getelementptr i8, ptr {self.start}, i64 {offset}"))
        return found

    def _each_step(self, reach: int) -> list[str]:
        e = self.e
        found = [
            self.start if lane == 0 else e.t.ins(f"getelementptr i8, ptr {self.start}, i64 {lane * self.step}")
            for lane in range(e.width)
        ]
        if e.mask is None:
            return found
        dummy = e.dummy(reach)
        whole = e.t.ins(f"bitcast {e.bits} {e.mask} to i{e.width}")
        out = []
        for lane, pointer in enumerate(found):
            bit = e.t.ins(f"icmp ne i{e.width} {e.t.ins(f'and i{e.width} {whole}, {1 << lane}')}, 0")
            out.append(e.t.ins(f"select i1 {bit}, ptr {pointer}, ptr {dummy}"))
        return out


def each_pointer(e: Emitter, pointers: str, reach: int) -> list[str]:
    """The pointer of each lane; of lanes that do not run, one to ``reach`` bytes of dummy."""
    many = vector("ptr", e.width)
    if e.mask is not None:
        filler = e.spread_dummy(e.dummy(reach))
        pointers = e.t.ins(f"select {e.bits} {e.mask}, {many} {pointers}, {many} {filler}")
    return [e.t.ins(f"extractelement {many} {pointers}, i64 {lane}") for lane in range(e.width)]


def last_lane(e: Emitter) -> str:
    """The number of the last lane that runs, as an i64; the mask has one."""
    if e.mask is None:
        return str(e.width - 1)
    kind = f"i{e.width}"
    whole = e.t.ins(f"bitcast {e.bits} {e.mask} to {kind}")
    e.t.declare(f"declare {kind} @llvm.ctlz.{kind}({kind}, i1)")
    above = e.t.ins(f"call {kind} @llvm.ctlz.{kind}({kind} {whole}, i1 true)")
    last = e.t.ins(f"sub {kind} {e.width - 1}, {above}")
    return last if kind == "i64" else e.t.ins(f"zext {kind} {last} to i64")


# --- how an element falls into rows -----------------------------------------------------------------------------------


def rows_of(items: list[Item], overlap: bool) -> list[list[int]]:
    """The items (their numbers) in runs of up to four that lie side by side and have one size.

    ``overlap``: a run's last row may repeat items so as to have four.
    """
    order = sorted(range(len(items)), key=lambda k: items[k].offset)
    runs: list[list[int]] = []
    for k in order:
        item, previous = items[k], items[runs[-1][-1]] if runs else None
        joins = (
            previous is not None and previous.size == item.size and item.size >= 4
            and item.offset == previous.offset + item.size
        )  # fmt: skip
        if joins:
            runs[-1].append(k)
        else:
            runs.append([k])
    rows = []
    for run in runs:
        for first in range(0, len(run), 4):
            row = run[first : first + 4]
            rows.append(run[-4:] if overlap and len(row) < 4 <= len(run) else row)
    return rows


def _bits(item: Item) -> str:
    """The integer type as wide as the item: rows may mix floats and integers."""
    return memory(item.type) if item.type.is_float and item.type.bits >= 32 else f"i{8 * item.size}"


def turned(e: Emitter, kind: str, four: list[str]) -> list[str]:
    """The transposition of 4 × 4 blocks: of four vectors, block by block, the first, second, third and fourth
    elements."""
    w, many = e.width, vector(kind, e.width)
    blocks = range(0, w, 4)

    def pair(a: str, b: str, x: int, y: int, interleave: bool) -> str:
        picks = []
        for k in blocks:
            picks += [k + x, w + k + x, k + y, w + k + y] if interleave else [k + x, k + y, w + k + x, w + k + y]
        return e.t.ins(f"shufflevector {many} {a}, {many} {b}, {indices(picks)}")

    a, b, c, d = four
    low1, high1 = pair(a, b, 0, 1, True), pair(a, b, 2, 3, True)
    low2, high2 = pair(c, d, 0, 1, True), pair(c, d, 2, 3, True)
    return [pair(low1, low2, 0, 1, False), pair(low1, low2, 2, 3, False),
            pair(high1, high2, 0, 1, False), pair(high1, high2, 2, 3, False)]  # fmt: skip


def _load_row(e: Emitter, pointers: list[str], items: list[Item]) -> list[str]:
    """One vector for each of two to four items side by side."""
    kind, n, offset = _bits(items[0]), len(items), items[0].offset
    if n == 3 and items[0].size == 4 and e.unit.target.mask_registers and e.width >= 8:
        return turned(e, kind, [_load_pairs(e, kind, pointers[i::4], offset) for i in range(4)])[:n]
    rows = []
    for pointer in pointers:
        at = pointer if not offset else e.t.ins(f"getelementptr i8, ptr {pointer}, i64 {offset}")
        if n == 3 and items[0].size == 4 and e.unit.target.masked_loads:  # else two loads, put together
            rows.append(_masked_row(e, kind, at, "1110"))
            continue
        row = e.t.ins(f"load {vector(kind, n)}, ptr {at}, align {items[0].size}")
        if n < 4:
            part = vector(kind, n)
            row = e.t.ins(f"shufflevector {part} {row}, {part} poison, {indices([*range(n), *[n] * (4 - n)])}")
        rows.append(row)
    return turned(e, kind, [_side_by_side(e, kind, rows[i::4]) for i in range(4)])[:n]


def _masked_row(e: Emitter, kind: str, at: str, mask: str, others: str = "zeroinitializer") -> str:
    """Scalars of 4 bytes at ``at`` where ``mask`` has a 1, and ``others``."""
    n = len(mask)
    many, name = vector(kind, n), f"@llvm.masked.load.v{n}{short(kind)}.p0"
    bits = f"{vector('i1', n)} <{', '.join([f'i1 {bit}' for bit in mask])}>"
    e.t.declare(f"declare {many} {name}(ptr, i32, {vector('i1', n)}, {many})")
    return e.t.ins(f"call {many} {name}(ptr {at}, i32 4, {bits}, {many} {others})")


def _load_pairs(e: Emitter, kind: str, pointers: list[str], offset: int) -> str:
    """Rows of three scalars of 4 bytes at ``offset``, each followed by one that means nothing, side by side. The second
    row of a pair is loaded into its place beside the first: a mask keeps the load from what lies around it, which may
    not be memory."""
    four, pairs = vector(kind, 4), []
    for low, high in zip(pointers[::2], pointers[1::2], strict=True):
        at = e.t.ins(f"getelementptr i8, ptr {low}, i64 {offset}") if offset else low
        first = _masked_row(e, kind, at, "1110")
        wide = e.t.ins(f"shufflevector {four} {first}, {four} zeroinitializer, {indices(range(8))}")
        before = e.t.ins(f"getelementptr i8, ptr {high}, i64 {offset - 16}")
        pairs.append(_masked_row(e, kind, before, "00001110", wide))
    return _side_by_side(e, kind, pairs, 8)


def _side_by_side(e: Emitter, kind: str, parts: list[str], size: int = 4) -> str:
    while len(parts) > 1:
        many = vector(kind, size)
        parts = [
            e.t.ins(f"shufflevector {many} {a}, {many} {b}, {indices(range(2 * size))}")
            for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
        size *= 2
    return parts[0]


def _store_row(e: Emitter, pointers: list[str], items: list[Item], columns: list[str]) -> None:
    """Write two to four items side by side, lane after lane."""
    kind, n, offset = _bits(items[0]), len(items), items[0].offset
    four = turned(e, kind, columns + ["poison"] * (4 - n))
    many, row = vector(kind, e.width), vector(kind, n)
    for lane, pointer in enumerate(pointers):
        first = lane // 4 * 4
        part = e.t.ins(f"shufflevector {many} {four[lane % 4]}, {many} poison, {indices(range(first, first + n))}")
        at = pointer if not offset else e.t.ins(f"getelementptr i8, ptr {pointer}, i64 {offset}")
        e.t.do(f"store {row} {part}, ptr {at}, align {items[0].size}")


def _recast(e: Emitter, name: str, source: str, target: str) -> str:
    """A vector of the same bits."""
    if source == target:
        return name
    many, other = vector(source, e.width), vector(target, e.width)
    if "ptr" in (source, target):
        return e.t.ins(f"{'inttoptr' if target == 'ptr' else 'ptrtoint'} {many} {name} to {other}")
    return e.t.ins(f"bitcast {many} {name} to {other}")


# --- gathers and scatters ---------------------------------------------------------------------------------------------


def gather(e: Emitter, pointers: Pointers, items: list[Item]) -> list[X]:
    """The items that the lanes point at, one vector each."""
    rows = rows_of(items, overlap=True) if e.width >= 4 else [[k] for k in range(len(items))]
    names: dict[int, str] = {}
    each: list[str] | None = None
    for row in rows:
        if len(row) == 1 and e.unit.target.gathers and items[row[0]].size >= HARDWARE:
            names[row[0]] = _hardware_gather(e, pointers.vector(), items[row[0]])
            continue
        each = each or pointers.each(max(i.offset + i.size for i in items))
        if len(row) == 1:
            names[row[0]] = _insert_each(e, each, items[row[0]])
            continue
        found = _load_row(e, each, [items[k] for k in row])
        for k, name in zip(row, found, strict=True):
            names[k] = _recast(e, name, _bits(items[row[0]]), memory(items[k].type))
    return [from_memory(e, names[k], item.type, False) for k, item in enumerate(items)]


def _hardware_gather(e: Emitter, pointers: str, item: Item) -> str:
    w, many, kind = e.width, vector("ptr", e.width), vector(memory(item.type), e.width)
    at = pointers if not item.offset else e.t.ins(f"getelementptr i8, {many} {pointers}, i64 {item.offset}")
    name = f"@llvm.masked.gather.v{w}{short(memory(item.type))}.v{w}p0"
    e.t.declare(f"declare {kind} {name}({many}, i32, {e.bits}, {kind})")
    return e.t.ins(
        f"call {kind} {name}({many} {at}, i32 {item.size}, {e.bits} {e.mask_text()}, {kind} zeroinitializer)"
    )


def _insert_each(e: Emitter, pointers: list[str], item: Item) -> str:
    kind, name = memory(item.type), "poison"
    for lane, pointer in enumerate(pointers):
        at = pointer if not item.offset else e.t.ins(f"getelementptr i8, ptr {pointer}, i64 {item.offset}")
        one = e.t.ins(f"load {kind}, ptr {at}, align {item.size}")
        name = e.t.ins(f"insertelement {vector(kind, e.width)} {name}, {kind} {one}, i64 {lane}")
    return name


def scatter(e: Emitter, pointers: Pointers, items: list[Item], xs: list[X]) -> None:
    """Write the items lane after lane: where two lanes meet, the later one wins, as in thread order."""
    values = [to_memory(e, x, False) for x in xs]
    rows = rows_of(items, overlap=True) if e.width >= 4 else [[k] for k in range(len(items))]
    each: list[str] | None = None
    for row in rows:
        item, value = items[row[0]], values[row[0]]
        if len(row) == 1 and e.unit.target.scatters and item.size >= HARDWARE:
            _hardware_scatter(e, pointers.vector(), item, value)
            continue
        each = each or pointers.each(max(i.offset + i.size for i in items))
        if len(row) == 1:
            _extract_each(e, each, item, value)
            continue
        kind = _bits(item)
        columns = [_recast(e, values[k], memory(items[k].type), kind) for k in row]
        _store_row(e, each, [items[k] for k in row], columns)


def _hardware_scatter(e: Emitter, pointers: str, item: Item, value: str) -> None:
    w, many, kind = e.width, vector("ptr", e.width), vector(memory(item.type), e.width)
    at = pointers if not item.offset else e.t.ins(f"getelementptr i8, {many} {pointers}, i64 {item.offset}")
    name = f"@llvm.masked.scatter.v{w}{short(memory(item.type))}.v{w}p0"
    e.t.declare(f"declare void {name}({kind}, {many}, i32, {e.bits})")
    e.t.do(f"call void {name}({kind} {value}, {many} {at}, i32 {item.size}, {e.bits} {e.mask_text()})")


def _extract_each(e: Emitter, pointers: list[str], item: Item, value: str) -> None:
    kind = memory(item.type)
    for lane, pointer in enumerate(pointers):
        at = pointer if not item.offset else e.t.ins(f"getelementptr i8, ptr {pointer}, i64 {item.offset}")
        one = e.t.ins(f"extractelement {vector(kind, e.width)} {value}, i64 {lane}")
        e.t.do(f"store {kind} {one}, ptr {at}, align {item.size}")
