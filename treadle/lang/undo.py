"""The undo log: what recorded launches need and later writes would destroy, kept so that it can be put back.

A log *watches* bytes. Before anything writes, it saves those watched bytes that the write may change. Each piece that
it saved can be *swapped* with what lies in memory: going back through them takes memory to what it held before each
write, going forward again brings everything back to where it was, since a swap undoes itself.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..runtime import capture
from ..runtime.array import array
from ..runtime.device import far
from ..runtime.memory import Borrowed
from ..runtime.ranges import Ranges
from ..runtime.runs import Runs, exchange, move
from ..runtime.writes import gapless
from .contents import Aside
from .parts import Part, span_of, whole
from .plan import Plan, Site
from .slabs import room

if TYPE_CHECKING:
    from .bodies import Body

BLOCK = 64  # bytes that are compared, and kept, together
MOST = 1000  # launches of a kernel whose pieces are remembered
SMALL = 256  # up to so many bytes are kept without comparing

FOREIGN = (Borrowed, type(None))  # what the memory of arrays is whose bytes others may show as well

_string_at, _memmove = ctypes.string_at, ctypes.memmove


class Bytes:
    """The ``nbytes`` bytes that lay at ``address`` before the operation number ``position``, kept at ``at`` in a slab.
    ``owner`` keeps the memory alive."""

    __slots__ = ("address", "at", "nbytes", "owner", "position", "slab")

    def __init__(
        self, position: int, address: int, nbytes: int, owner: Any, data: bytes | None = None, source: int | None = None
    ):
        """``data``, or the address ``source`` of them: the bytes, if they are not those that lie there now."""
        self.position, self.address, self.nbytes, self.owner = position, address, nbytes, owner
        self.at, self.slab = room(nbytes, address)
        if data is None and (capture.active or far):
            _keep_owner(owner)
            move(self.at, address if source is None else source, nbytes, self.slab)
        else:
            _memmove(self.at, data or source or address, nbytes)

    def swap(self) -> None:
        """Exchange them with what lies there now."""
        exchange(self.address, self.at, self.nbytes, self.slab)

    def put(self, kept: Aside) -> None:
        """Write a copy of what was kept there."""
        move(self.address, kept.at, self.nbytes, kept.slab)

    @property
    def rows(self) -> list[tuple[int, int, int, int]]:
        """Where they lie, as rows of :class:`Runs`."""
        return [(self.address, self.nbytes, 1, 0)]


class Scattered:
    """As :class:`Bytes`, of bytes that do not lie side by side."""

    __slots__ = ("at", "nbytes", "owner", "position", "runs", "slab")

    def __init__(self, position: int, runs: Runs, owner: Any):
        self.position, self.runs, self.nbytes, self.owner = position, runs, runs.nbytes, owner
        self.at, self.slab = room(runs.nbytes, runs.first)
        if capture.active:
            _keep_owner(owner)
        runs.keep(self.at, self.slab)

    def swap(self) -> None:
        self.runs.swap(self.at, self.slab)

    def put(self, kept: Aside) -> None:
        self.runs.put(kept.at, kept.slab)

    @property
    def rows(self) -> list[tuple[int, int, int, int]]:
        return self.runs.rows


def _keep_owner(owner: Any) -> None:
    """Let a graph that is being captured keep an array, or those among the arguments of a launch."""
    now = capture.here() if capture.active else None
    if now is not None:
        now.keep(owner if isinstance(owner, list | tuple) else [owner])


class Cell:
    """One allocation that operations looked at: the arrays in it that are watched in whole, of which the first
    ``entered`` stand among the watched ranges. The rest waits until somebody writes to the allocation."""

    __slots__ = ("arrays", "entered")

    def __init__(self, arrays: list[array]):
        self.arrays, self.entered = arrays, 0


class Log:
    """Operations in the order in which they happened, and what they destroyed.

    ``ops``: tuples ``(plan, dim, args)`` for launches, objects for everything else. ``saved``: pieces, each with the
    number of the operation before which it was saved. ``watched``: the bytes whose content must stay known.
    ``wrote``: ids of the allocations that operations wrote to, or copied from. ``inputs``: arrays that were read before
    anything recorded wrote to them, with the site and plan of the first launch that did.

    Launches must cost little, so bytes are compared last. ``seen`` has the arrays that are watched in whole, by id.
    ``cells`` tells by the id of an allocation what of it is watched: one array, or a :class:`Cell`. Once memory takes
    part that was not allocated here the log is ``mixed``: any array may lie over any other, all ranges are in
    ``watched``, and there are no cells.

    A launch that left everything watched that was, and nothing else (``version`` counts changes), will save the same
    pieces when it comes again: ``steady`` keeps them by plan and key, as runs of bytes.
    """

    bodies: tuple[Body, ...] = ()  # which operations were captured in branches and loops

    def __init__(self, watched: Ranges | None = None):
        self.in_elements: dict[int, array] = {}  # results that only memory names, by where their gradients are
        self.ops: list[Any] = []
        self.saved: list[Any] = []
        self.mixed, self.watched = watched is not None, watched or Ranges()
        self.seen: dict[int, Any] = {id(None): None}
        self.cells: dict[int, array | Cell] = {}
        self.wrote: set[int] = set()
        self.inputs: list[tuple[array, Site, Plan]] = []
        self.pending: list[tuple[int, int, bytes, Any, bool]] = []
        self.version = 0
        self.steady: dict[Plan, dict[Any, tuple[int, Runs | None]]] = {}

    @property
    def saved_bytes(self) -> int:
        return sum([piece.nbytes for piece in self.saved])

    # ---- launches

    def before(self, plan: Plan, dim: Any, args: Sequence[Any], reading: bool = True) -> None:
        """A launch is about to run: watch what its adjoint will read, save what it destroys. ``reading``: it is to be
        recorded, else it only destroys."""
        if not plan.plain:
            args = plan.laid_out(args)
        known, key = None if plan.holders else self.steady.get(plan), None
        if known is not None:
            key = reading, plan.key(dim if type(dim) is int else tuple(dim), args)
            version, runs = known.get(key, (-1, None))
            if version == self.version:
                if runs is not None:
                    self.saved.append(Scattered(len(self.ops), runs, args))
                return
        version, count, recorded = self.version, len(self.saved), reading
        reading = reading and not plan.detached
        if reading:
            self.launch_reads(plan, dim, args)
        if plan.holders:
            self.launch_held(plan, args, reading)
        cells, wrote = self.cells, self.wrote
        for k, site in plan.writes_at:
            a = args[k]
            if a is None:
                continue
            memory = a._memory
            if recorded:
                wrote.add(id(memory))
            if self.mixed or id(memory) in cells or memory.__class__ in FOREIGN:
                self.launch_writes(plan, site, a, dim, args, reading and site.keeps)
            if reading and site.keeps and id(a) not in self.seen:
                for low, high, _ in plan.parts(site, site.boxes, a, grid(dim), args):
                    self.watch(a, low, high)
        settled = version == self.version and not self.pending and not plan.holders
        if settled and (self.mixed or len(self.saved) > count):
            self.settle(plan, key or (recorded, plan.key(dim if type(dim) is int else tuple(dim), args)), count)

    def far(self, plan: Plan, args: Sequence[Any]) -> bool:
        """Whether it is plain that a launch destroys nothing."""
        if self.mixed or not plan.plain or plan.unseen:
            return False
        cells = self.cells
        for k, _ in plan.writes_at:
            a = args[k]
            if a is not None and (id(a._memory) in cells or a._memory.__class__ in FOREIGN):
                return False
        return True

    def apart(self, a: array) -> bool:
        """Whether it is plain that no byte of ``a`` is watched."""
        return not self.mixed and id(a._memory) not in self.cells and a._memory.__class__ not in FOREIGN

    def launch_reads(self, plan: Plan, dim: Any, args: Sequence[Any]) -> None:
        """Watch what the adjoint of a launch will read."""
        seen = self.seen
        for k, site in plan.reads_at:
            a = args[k]
            if id(a) not in seen:
                if site.floats and id(a._memory) not in self.wrote:
                    self.inputs.append((a, site, plan))
                self.reads(a)
        for k, site in plan.boxed_at:
            a = args[k]
            for low, high, _ in plan.parts(site, site.read_boxes, a, grid(dim), args) if a is not None else ():
                self.watch(a, low, high)

    def launch_held(self, plan: Plan, args: Sequence[Any], reading: bool) -> None:
        """The same of arrays that the launch finds in memory, which it may also write."""
        for a in plan.held(args):
            if reading:
                self.reads(a)
            if plan.unseen and not a.read_only:
                self.writes(a)

    def settle(self, plan: Plan, key: Any, first: int) -> None:
        """Remember the pieces, from number ``first`` on, that a launch saved which changed nothing else. Pieces that
        lie over each other, as when two of its arguments are one array, are swapped in reverse order on the way back,
        which one table cannot say: those are saved anew each time."""
        if not _apart(self.saved[first:]):
            return
        known = self.steady.setdefault(plan, {})
        if len(known) >= MOST:
            known.clear()
        rows = [row for piece in self.saved[first:] for row in piece.rows]
        known[key] = self.version, Runs(rows) if rows else None

    def launch_writes(self, plan: Plan, site: Site, a: array, dim: Any, args: Sequence[Any], keeps: bool) -> None:
        """Save what a launch will destroy of ``a``. ``keeps``: what it writes is watched too."""
        dims = grid(dim)
        fills = site.own is not None and len(site.own) == len(dims) and all(
            [dims[axis] >= extent for axis, extent in zip(site.own, a.shape, strict=True)]
        )  # fmt: skip
        if fills and site.sure and self.save_alone(a, keeps):
            return
        if not self.meets(a):
            return
        for part in [whole(a)] if fills else plan.parts(site, site.boxes, a, dims, args):
            self.destroys(part, a, site.sure, keeps)

    def save_alone(self, a: array, keeps: bool) -> bool:
        """Save all of ``a`` if it is the one array of its allocation that is watched, and lies without gaps."""
        key = id(a._memory)
        if self.cells.get(key) is not a:
            return False
        nbytes = gapless(a)
        if nbytes < 0:
            return False
        self.saved.append(Bytes(len(self.ops), a._address, nbytes, a))
        if not keeps:
            del self.cells[key]
            del self.seen[id(a)]
            self.version += 1
        return True

    def destroys(self, part: Part, owner: array, sure: bool, keeps: bool = False) -> None:
        """The elements of ``part`` are about to be written; if not ``sure``, some of them. ``keeps``: what is written
        is watched too."""
        low, high, runs = part
        if runs is not None:
            last = self.saved[-1] if self.saved else None
            again = type(last) is Scattered and last.position == len(self.ops) and last.rows == runs.rows
            if self.watched.meets(low, high) and not again:
                self.saved.append(Scattered(len(self.ops), runs, owner))
            return
        for begin, end in self.watched.within(low, high):
            if sure or end - begin <= SMALL or capture.deferring(owner):  # nobody can look what has changed
                self.saved.append(Bytes(len(self.ops), begin, end - begin, owner))
                if not keeps:
                    self.forget(owner, begin, end)
            else:
                self.pending.append((begin, end, _string_at(begin, end - begin), owner, keeps))

    def after(self) -> None:
        """The write is done: of what was to be compared, keep the blocks that changed."""
        for begin, end, data, owner, keeps in self.pending:
            for low, high in _changed(data, _string_at(begin, end - begin)):
                self.saved.append(Bytes(len(self.ops), begin + low, high - low, owner, data[low:high]))
                if not keeps:
                    self.forget(owner, begin + low, begin + high)
        self.pending.clear()

    # ---- what is watched

    def reads(self, a: array) -> None:
        """The content of ``a`` must stay known."""
        if id(a) in self.seen:
            return
        memory = a._memory
        if memory.__class__ in FOREIGN:
            self.mix()
        self.seen[id(a)] = a
        if self.mixed:
            self.watch_bytes(*span_of(a))
            return
        self.version += 1
        if id(memory) in self.cells:
            self.cell(a).arrays.append(a)
        else:
            self.cells[id(memory)] = a

    def watch(self, a: array, low: int, high: int) -> None:
        """The same of some bytes of ``a``."""
        if a._memory.__class__ in FOREIGN:
            self.mix()
        if not self.mixed:
            self.cell(a)
        self.watch_bytes(low, high)

    def watch_bytes(self, low: int, high: int) -> None:
        if not self.watched.holds(low, high):
            self.watched.add(low, high)
            self.version += 1

    def cell(self, a: array) -> Cell:
        """The cell for the allocation of ``a``."""
        key = id(a._memory)
        have = self.cells.get(key)
        if have.__class__ is not Cell:
            have = self.cells[key] = Cell([] if have is None else [have])
        return have

    def mix(self) -> None:
        """From now on arrays may lie over each other whatever their allocations are."""
        if not self.mixed:
            self.mixed = True
            for have in self.cells.values():
                for a in have.arrays[have.entered :] if have.__class__ is Cell else (have,):
                    self.watched.add(*span_of(a))
            self.cells.clear()
            self.version += 1

    def meets(self, a: array) -> bool:
        """Whether any byte of ``a`` is watched."""
        if a._memory.__class__ in FOREIGN:
            self.mix()
        if not self.mixed:
            if id(a._memory) not in self.cells:
                return False
            self.enter(self.cell(a))
        return self.watched.meets(*span_of(a))

    def enter(self, cell: Cell) -> None:
        """Put the arrays that wait among the ranges."""
        for a in cell.arrays[cell.entered :]:
            self.watched.add(*span_of(a))
        cell.entered = len(cell.arrays)

    def forget(self, a: array, low: int, high: int) -> None:
        """These bytes of ``a`` change and are saved: nobody knows their content any more. Arrays in which they may lie
        are looked at anew when they are read next; what has not changed of them is still watched."""
        self.version += 1
        if self.mixed:
            self.seen = {id(None): None}
        elif id(a._memory) in self.cells:
            cell = self.cell(a)
            self.enter(cell)
            for each in cell.arrays:
                self.seen.pop(id(each), None)
            cell.arrays.clear()
            cell.entered = 0
        self.watched.cut(low, high)

    def writes(self, a: array) -> bool:
        """All of ``a`` is about to be written; whether any of it was watched."""
        if id(a) in self.seen and self.save_alone(a, False):
            return True
        if not self.meets(a):
            return False
        self.destroys(whole(a), a, True)
        return True

    def fresh(self, a: array) -> bool:
        """Whether no operation has read ``a`` or written to its allocation."""
        return id(a._memory) not in self.wrote and type(a._memory) not in FOREIGN and not self.meets(a)


def _apart(pieces: list[Any]) -> bool:
    """Whether the spans of ``pieces`` do not meet."""
    if len(pieces) < 2:
        return True
    spans = []
    for piece in pieces:
        rows = piece.rows
        spans += [(min([row[0] for row in rows]), max([at + (n - 1) * step + size for at, size, n, step in rows]))]
    spans.sort()
    return all([end <= begin for (_, end), (begin, _) in zip(spans, spans[1:])])


def grid(dim: Any) -> tuple[int, ...]:
    """The extents of a launch."""
    return (dim,) if type(dim) is int else tuple(dim)


def _changed(before: bytes, after: bytes) -> list[tuple[int, int]]:
    """Where two equally long pieces differ: ranges of whole blocks."""
    old, new = np.frombuffer(before, np.uint8), np.frombuffer(after, np.uint8)
    count = len(old) // BLOCK
    blocks = np.empty(count + 1, bool)
    full = count * BLOCK
    blocks[:count] = (old[:full].reshape(-1, BLOCK) != new[:full].reshape(-1, BLOCK)).any(axis=1)
    blocks[count] = bool((old[full:] != new[full:]).any())
    edges = np.flatnonzero(np.diff(blocks, prepend=False, append=False)).tolist()
    return [(low * BLOCK, min(high * BLOCK, len(old))) for low, high in zip(edges[::2], edges[1::2], strict=True)]
