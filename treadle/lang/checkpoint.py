"""Tapes that keep few states: what lies between is run again in the backward pass.

Operations are grouped in *steps*, steps in *segments*. Of a segment only the memory that it overwrites is kept, as it
was at the segment's start: bytes that something recorded had touched, saved when the segment first writes them. In the
backward pass a segment is undone at once, run forward with a log that keeps everything, then gone back through.
The number of steps is not known while recording; when there are too many segments, neighbours are merged.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from math import comb
from typing import Any

from ..runtime import fast
from ..runtime.array import array
from ..runtime.launch import normal_dims
from ..runtime.ranges import Ranges
from ..runtime.writes import gapless, put_rows, put_value
from ..types.core import u8
from ..types.values import class_of
from .contents import Aside
from .host_writes import Function, HostWrite, Kept
from .parts import span_of
from .plan import Plan
from .recorder import Recorder
from .reverse import Pass, written_by
from .undo import Bytes, Log, grid

MOST_SLOTS = 400  # each may be a level of recursion
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


def scheduled(checkpoint: int | str) -> Recorder:
    """The recorder for ``wp.Tape(checkpoint=…)`` that keeps less than "all".

    Raises:
        ValueError: no schedule of that name.
    """
    if checkpoint == "sqrt":
        return Scheduled(1, lambda r: len(r.segments) > 2 * r.length)
    if isinstance(checkpoint, int) and not isinstance(checkpoint, bool) and checkpoint > 0:
        return Scheduled(checkpoint, lambda r: False)
    size = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kKMG]?)B", checkpoint) if isinstance(checkpoint, str) else None
    if size is None:
        raise ValueError(f"checkpoint is 'all', 'sqrt', a number of steps or a size such as '64MB', not {checkpoint!r}")
    budget = int(float(size[1]) * _UNITS[size[2].lower()])
    return Scheduled(1, lambda r: len(r.segments) > 2 and 2 * r.saved_bytes > budget, budget)


class Segment:
    """Steps from operation ``start`` on. ``saved``: what they overwrote, ``nbytes`` in all, of the bytes ``covered``;
    ``written``: all that they wrote."""

    __slots__ = ("covered", "done", "nbytes", "saved", "start", "steps", "written")

    def __init__(self, start: int):
        self.start, self.steps, self.nbytes = start, 0, 0
        self.saved: list[Bytes] = []
        self.covered, self.written = Ranges(), Ranges()
        self.done: set[int] = {id(None)}  # ids of arrays of which nothing more is to be saved

    def keep(self, piece: Bytes) -> None:
        """Add what lay somewhere at the start."""
        self.saved.append(piece)
        self.nbytes += piece.nbytes

    def save(self, touched: Ranges, low: int, high: int, owner: Any) -> bool:
        """These bytes are about to be written; whether anybody had touched any of them."""
        met = touched.within(low, high)
        for begin, end in met:
            for first, last in self.covered.outside(begin, end):
                self.keep(Bytes(0, first, last - first, owner))
                self.covered.add(first, last)
        return bool(met)

    def append(self, later: Segment) -> None:
        """Take in the segment that follows: of what both saved, the older stays."""
        for piece in later.saved:
            low = piece.address
            for first, last in self.covered.outside(low, low + piece.nbytes):
                self.keep(Bytes(0, first, last - first, piece.owner, source=piece.at + first - low))
        for low, high in later.covered:
            self.covered.add(low, high)
        for low, high in later.written:
            self.written.add(low, high)
        self.steps += later.steps

    def undo(self) -> None:
        """Exchange what was saved with what lies in memory."""
        for piece in self.saved:
            piece.swap()


class Scheduled(Recorder):
    """A recorder that keeps the state every ``length`` steps. ``crowded`` says when neighbours are to be merged, which
    doubles the length. ``budget``: bytes that the backward pass may use as well; None: as many as a segment needs."""

    keeps_contents = True

    def __init__(self, length: int, crowded: Callable[[Any], bool], budget: int | None = None):
        super().__init__()
        self.length, self.crowded, self.budget = length, crowded, budget
        self.touched = Ranges()  # bytes that anything recorded read or wrote
        self.segments = [Segment(0)]
        self.starts: list[int] = []  # the first operation of each step
        self.marked = False
        self.printed: dict[int, Kept] = {}  # results of launches that print, which must not print again
        # Asked for at every step, so counted once: bytes of segments, of results, and the operations seen so far.
        self.held, self.results, self.counted = 0, 0, 0

    @property
    def saved_bytes(self) -> int:
        new, self.counted = self.ops[self.counted :], len(self.ops)
        self.results += sum([op.nbytes for op in new if type(op) is not tuple])
        return self.held + self.results

    def recount(self) -> None:
        """Segments were merged, which may keep less."""
        self.held = sum([segment.nbytes for segment in self.segments])

    # ---- steps

    def mark_step(self) -> None:
        if not self.marked:
            self.marked = True
            self.starts.clear()
            self.segments[0].steps = 0
            while len(self.segments) > 1:
                self.segments[0].append(self.segments.pop(1))
            self.recount()
        self.begin_step()

    def begin_step(self) -> None:
        if self.starts and self.starts[-1] == len(self.ops):  # nothing happened in the last one
            return
        if self.segments[-1].steps >= self.length:
            self.segments[-1].done = set()
            self.segments.append(Segment(len(self.ops)))
            if self.crowded(self):
                self.merge()
        self.segments[-1].steps += 1
        self.starts.append(len(self.ops))

    def merge(self) -> None:
        """Make one segment of each two; the last, which has just begun, stays."""
        *old, last = self.segments
        for first, second in zip(old[::2], old[1::2], strict=False):
            first.append(second)
        self.segments = [*old[::2], last]
        self.length *= 2
        self.recount()

    # ---- recording

    def before(self, plan: Plan, dim: Any, args: Sequence[Any], reading: bool = True) -> None:
        if reading and not self.marked:
            self.begin_step()
        self.met = self.look(plan, dim, args, reading)

    before_launch = before

    def look(self, plan: Plan, dim: Any, args: Sequence[Any], reading: bool = True) -> bool:
        """Touch what a launch reads, save what it overwrites."""
        segment, seen, met = self.segments[-1], self.seen, False
        for site in plan.sites if reading else ():
            a = site.of(args)
            if id(a) not in seen and (site.loads or site.added):
                if site.floats and not self.touched.meets(*span_of(a)):
                    self.inputs.append((a, site, plan))
                for low, high, _ in plan.parts(site, site.read_boxes, a, grid(dim), args) if site.read_boxes else ():
                    self.touched.add(low, high)
                if not site.read_boxes:
                    self.reads(a)
        for a in plan.held(args) if plan.holders else ():
            if reading:
                self.reads(a)
            if plan.unseen and not a.read_only:
                met |= self.overwrites(a, *span_of(a), reading)
        for site in plan.writes:
            a = site.of(args)
            if id(a) in segment.done:
                met |= a is not None  # nothing more to save, but what was touched changes
                continue
            asks = site.asks
            for low, high, _ in plan.parts(site, site.boxes, a, grid(dim), args) if asks else ((*span_of(a), None),):
                met |= self.overwrites(a, low, high, reading)
            if reading and not asks:
                self.seen[id(a)] = a
                segment.done.add(id(a))
        return met

    def overwrites(self, a: array, low: int, high: int, recorded: bool) -> bool:
        """These bytes of ``a`` are about to be written; whether anything recorded had touched any of them."""
        segment = self.segments[-1]
        before = segment.nbytes
        met = segment.save(self.touched, low, high, a)
        self.held += segment.nbytes - before
        if recorded:
            self.wrote.add(id(a._memory))
            self.touched.add(low, high)
        if recorded or met:
            segment.written.add(low, high)
        return met

    def launched(self, plan: Plan, dim: Any, args: list[Any]) -> None:
        if plan.prints:
            kept = self.printed[len(self.ops)] = Kept(plan.written(args))
            self.results += kept.nbytes
        super().launched(plan, dim, args)

    def failed(self, written: list[array]) -> None:
        super().failed(written)
        self.seen, self.segments[-1].done = {id(None): None}, {id(None)}  # its arrays may go, and others have their ids

    def host_write(self, dest: array, perform: Callable[..., None], args: tuple, source: array | None) -> None:
        if source is not None:
            self.reads(source)
        super().host_write(dest, perform, args, source)
        op = self.ops[-1] if self.ops else None
        if isinstance(op, HostWrite) and op.dest is dest and perform is put_value and source is None:
            op.perform, op.args = put_rows, (dest.numpy().copy(),)  # the user's object may change

    def reads(self, a: array) -> None:
        if id(a) not in self.seen:
            self.seen[id(a)] = a
            self.touched.add(*span_of(a))

    def writes(self, a: array) -> bool:
        return self.overwrites(a, *span_of(a), True)

    def before_foreign(self, written: list[array]) -> bool:
        with self.lock:
            return any([self.overwrites(a, *span_of(a), False) for a in written])

    def to_keep(self, written: list[array]) -> list[array]:
        """Only what was touched: other bytes are nobody's state, and may be gradients that the pass has changed when it
        comes here. Bytes that were touched are held by what touched them."""
        found = []
        for a in written:
            span = span_of(a)
            parts = self.touched.within(*span)
            if gapless(a) < 0:
                found += [a] if parts else []
            else:
                found += [a if each == span else _bytes(*each, a.device) for each in parts]
        return found

    def far(self, plan: Plan, args: Sequence[Any]) -> bool:
        return False

    def apart(self, a: array) -> bool:
        return False

    def meets(self, a: array) -> bool:
        return self.touched.meets(*span_of(a))

    def before_foreign_launch(self, plan: Plan, dims: tuple[int, ...], args: Sequence[Any]) -> bool:
        with self.lock:
            return self.look(plan, dims, args, reading=False)

    def prepare(self) -> Pass:
        return ScheduledPass(self)


class ScheduledPass(Pass):
    """A backward pass that runs segments again."""

    log: Scheduled

    def restored(self) -> set[int]:
        return {*range(len(self.log.ops))}  # all are run again

    def run(self, retained: dict[int, tuple] | None) -> None:
        self.retained = retained
        segments, undone = self.log.segments, []
        end = len(self.log.ops)
        slots = self.slots()
        try:
            for segment in reversed(segments):
                if segment.start < end:
                    self.undo(segment, end, undone, slots)
                end = min(end, segment.start)
        finally:
            for segment in reversed(undone):
                segment.undo()

    def slots(self) -> int | None:
        """How many states may be kept at a time; None: as many as there are steps."""
        if self.log.budget is None:
            return None
        state = max([segment.nbytes for segment in self.log.segments])
        return min(max(2, (self.log.budget - self.log.saved_bytes) // max(state, 1)), MOST_SLOTS)

    def undo(self, segment: Segment, end: int, undone: list[Segment], slots: int | None) -> None:
        """Bring memory to the start of ``segment``, and go back through it."""
        aside = [Aside(low, high - low) for begin, stop in segment.written
                 for low, high in segment.covered.outside(begin, stop)]  # fmt: skip
        segment.undo()
        undone.append(segment)
        try:
            self.process(segment.start, end, segment.covered, slots)
        finally:
            for bytes_ in aside:  # what the segment was the first to touch
                bytes_.put_back()

    def process(self, first: int, end: int, base: Ranges, slots: int | None) -> None:
        """Go back through operations ``first`` to ``end`` with memory as it was before them, which it is again
        afterwards in all bytes of ``base``, also after an error."""
        begin, stop = bisect_right(self.log.starts, first), bisect_left(self.log.starts, end)
        count = stop - begin + 1
        if slots is None or count <= max(slots, 1):
            self.in_detail(first, end, base)
            return
        middle = self.log.starts[begin + split(count, slots) - 1]
        part = Scheduled(count, lambda r: False)
        part.marked, part.touched = True, base.copy()
        segment = part.segments[0]
        try:
            self.forward(first, middle, part)
            self.process(middle, end, part.touched, slots - 1)
        finally:
            segment.undo()
        self.process(first, middle, base, slots)

    def in_detail(self, first: int, end: int, base: Ranges) -> None:
        """Run operations again and keep everything, then go back through them."""
        log = Log(base.copy())
        ahead = True
        try:
            self.forward(first, end, log)
            ahead = False
            self.go_back(log.saved, first, end, self.retained)
        except BaseException:
            for piece in reversed(log.saved if ahead else log.saved[: self.left]):
                piece.swap()
            raise

    def forward(self, first: int, end: int, log: Any) -> None:
        """Run operations again, with ``log`` looking on."""
        for k in range(first, end):
            op = self.log.ops[k]
            kept = self.log.printed.get(k)
            if type(op) is tuple:
                plan, dim, args = op
                log.before(plan, dim, args)
                if kept is None:
                    _launch_again(plan, dim, args)
                else:
                    kept.run()
            else:
                if isinstance(op, Function):
                    for a in op.arrays():
                        log.reads(a)
                for a in written_by(op):
                    log.writes(a)
                op.run()
            log.after()
            log.ops.append(op)


def split(steps: int, slots: int) -> int:
    """After how many of ``steps`` to keep a state, with ``slots`` to keep, so that none is run again more often than
    it must.

    With s slots and r runs of each step at most b(s, r) steps can be gone back through. One run reaches b(s, 1) = s of
    them, whose states are all kept; else those before the state are run once to get there, and those behind it have a
    slot less: b(s, r) = b(s, r - 1) + b(s - 1, r) = binomial(s + r - 1, r). After Griewank and Walther, "Algorithm 799:
    revolve" (2000).
    """
    runs = 2
    while comb(slots + runs - 1, runs) < steps:
        runs += 1
    return min(comb(slots + runs - 2, runs - 1), steps - 1)


def _bytes(low: int, high: int, device: Any) -> array:
    return array(ptr=low, shape=high - low, dtype=class_of(u8), device=device)


def _launch_again(plan: Plan, dim: Any, args: Sequence[Any]) -> None:
    quick = plan.kernel.fast
    usual = quick is not None and plan.plain and plan.overload.device is None
    done = quick(dim, args, ()) if usual else NotImplemented
    if done is None:
        return
    if done is not NotImplemented:
        raise fast.error(done)
    dims = normal_dims(dim)
    program = plan.overload.variant(dims).program
    packed = program.pack(args)
    if program.meets(packed):
        program = plan.overload.variant(dims, shared=True).program
    program.command(packed, dims, args)()
