"""Which rounds of a loop no other round needs, so that different threads may run them.

Every element that a round writes must be touched by no other round. That is found out by enumerating: the indices of
loops over tiles depend on nothing but counters of loops whose bounds are known, and on offsets that are the same in all
rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir.node import Block, Op, Value
from ...ir.walk import ops_of
from ...types.core import Scalar
from .footprint import UNKNOWN, Program, Root

MOST = 1 << 17  # rounds that are enumerated
INT = 32  # bits of the integers that indices usually are
WIDE = 8  # rounds of an inner loop for which it is worth sharing with the loop around it


@dataclass(frozen=True, slots=True)
class Part:
    """Which rounds of a loop a thread runs: those whose number modulo ``width`` is its number in the block, shifted
    right by ``shift`` bits, modulo ``width``. Rounds count upwards in the counter. ``rounds``: how many there are."""

    shift: int
    width: int
    rounds: int | None


class _Hidden(Exception):
    """What matters cannot be enumerated."""


Number = tuple[dict[Value, int], Any]  # multiples of values that are the same in all rounds, and what is known


@dataclass(slots=True)
class _Points:
    """Rounds that are enumerated: for each the counters of the loops around it, and the numbers of thread and group,
    which are rounds of loops that all threads go through together."""

    counters: dict[Value, Any]
    owner: Any
    group: Any

    def only(self, rows: Any) -> _Points:
        return _Points({v: a[rows] for v, a in self.counters.items()}, self.owner[rows], self.group[rows])


@dataclass(frozen=True, slots=True)
class _Access:
    root: Root
    writes: bool
    terms: tuple[tuple, ...]
    places: tuple[Any, ...]
    points: _Points


class Divider:
    """Divides the loops of a program among ``threads``, a power of two. ``commutes``: whether an atomic may come in any
    order, whoever does it."""

    def __init__(self, program: Program, threads: int, commutes: Callable[[Op], bool]):
        self.program, self.threads, self.commutes = program, threads, commutes

    def divide(self, loop: Op) -> dict[Op, Part]:
        """How the rounds of ``loop``, and maybe of loops in it, are divided; nothing if they cannot be."""
        step = self._constant(loop.args[2]) if loop.name == "for" else None
        if step not in (1, -1) or len(loop.args) > 3 or loop.attrs.get("stays"):
            return {}
        found = self.program.of(loop)
        outside = {r for r in found.reads | found.writes if not self.program.own(r)}
        if found.alone or UNKNOWN in found.writes or (len(outside) > 1 and any(r in found.writes for r in outside)):
            return {}  # arrays of different names may lie over each other
        rounds = self.rounds(loop)
        if rounds is not None and rounds < 2:
            return {}
        inner = self._inner(loop)
        widths = [self.rounds(one) or 0 for one in inner]
        if inner and min(widths) >= WIDE and self._independent(loop, inner):
            across = min(1 << (max(widths) - 1).bit_length(), self.threads)
            parts = {one: Part(0, across, n) for one, n in zip(inner, widths, strict=True)}
            return {loop: Part(across.bit_length() - 1, self.threads // across, rounds), **parts}
        return {loop: Part(0, self.threads, rounds)} if self._independent(loop, ()) else {}

    def rounds(self, loop: Op) -> int | None:
        """How many rounds a loop has, if that is known."""
        start, stop, step = map(self._constant, loop.args[:3])
        return None if None in (start, stop, step) else len(range(start, stop, step))

    def _constant(self, v: Value) -> int | None:
        op = self.program.made.get(v)
        return op.attrs["value"] if op is not None and op.name == "const" else None

    def _inner(self, loop: Op) -> tuple[Op, ...]:
        """The loops right inside ``loop``, maybe in branches, that have all its effects; none if some lie between."""
        found: list[Op] = []

        def walk(block: Block) -> bool:
            for op in block.ops:
                touched = self.program.of(op)
                if op.name == "if":
                    if not all([walk(region) for region in op.regions]):
                        return False
                elif op.name == "for" and touched.writes:
                    if len(op.args) > 3 or op.attrs.get("stays") or self._constant(op.args[2]) not in (1, -1):
                        return False
                    if self.rounds(op) is None:
                        return False
                    found.append(op)
                elif touched.writes or touched.taped:
                    return False
            return True

        return tuple(found) if walk(loop.regions[0]) else ()

    # ---- enumerating

    def _independent(self, loop: Op, inner: tuple[Op, ...]) -> bool:
        """Whether rounds of ``loop``, with rounds of the loops ``inner`` counted as well, never meet in memory."""
        own = {r for op in ops_of(loop.regions[0]) if op.name == "local" for r in op.results}
        written = {root for root in self.program.of(loop).writes if root[0] not in own}
        outer = [op for op in self.program.around[loop] if op.name == "for" and self.rounds(op) is not None]
        for together in ((), outer) if outer else ((),):
            try:
                accesses = _Enumeration(self, loop, inner, written).run(together)
            except _Hidden:
                continue
            if all([_apart([a for a in accesses if a.root == root]) for root in written]):
                return True
        return False


class _Enumeration:
    """All accesses of a loop to what it writes."""

    def __init__(self, divider: Divider, loop: Op, inner: tuple[Op, ...], written: set[Root]):
        self.divider, self.loop, self.inner, self.written = divider, loop, inner, written
        self.program = divider.program
        self.accesses: list[_Access] = []
        self.inside = {r for op in ops_of(loop.regions[0]) for r in op.results}
        self.inside.update(loop.regions[0].params)
        for op in ops_of(loop.regions[0]):
            for region in op.regions:
                self.inside.update(region.params)

    def run(self, together: tuple[Op, ...] | list[Op]) -> list[_Access]:
        one = np.zeros(1, np.int64)
        points = _Points({}, one, one)
        for op in together:
            points, number = self.entered(op, points)
            points.group = points.group * (int(number.max(initial=0)) + 1) + number
        points, number = self.entered(self.loop, points)
        points.owner = number
        self.block(self.loop.regions[0], points)
        return self.accesses

    def entered(self, loop: Op, points: _Points) -> tuple[_Points, Any]:
        """The points of the rounds of ``loop``, and the number of each round, counted upwards in the counter."""
        bounds = []
        for a in loop.args[:3]:
            terms, number = self.number(a, points)
            if terms:
                raise _Hidden
            bounds.append(np.broadcast_to(np.asarray(number, np.int64), points.owner.shape))
        start, stop, step = bounds
        if not step.all():
            raise _Hidden
        counts = np.maximum(-((start - stop) // step), 0)
        total = int(counts.sum())
        if total > MOST:
            raise _Hidden
        rows = np.repeat(np.arange(len(counts)), counts)
        at = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        made = points.only(rows)
        made.counters[loop.regions[0].params[0]] = start[rows] + at * step[rows]
        return made, np.where(step[rows] < 0, counts[rows] - 1 - at, at)

    def block(self, block: Block, points: _Points) -> None:
        for op in block.ops:
            touched = self.program.of(op)
            if not (touched.reads | touched.writes) & self.written:
                continue
            if op.name == "for":
                made, number = self.entered(op, points)
                if op in self.inner:
                    made.owner = made.owner * MOST + number
                self.block(op.regions[0], made)
            elif op.regions:
                for region in op.regions:
                    self.block(region, points)
            elif op.name == "atomic" and self.divider.commutes(op):
                self.access(op, points, False)
            elif op.name in ("load", "store", "atomic"):
                self.access(op, points, op.name != "load")
            else:
                raise _Hidden

    def access(self, op: Op, points: _Points, writes: bool) -> None:
        if op.name == "atomic" and not writes:
            self.accesses.append(_Access(self.program.root(op.args[0]), False, ("atomic",), (), points))
            return
        view = op.args[0]
        indices = list(op.args[1 : 1 + view.type.ndim])
        path: tuple = ()
        while (made := self.program.made.get(view)) is not None and made.name != "local":
            if made.name == "subview" and not made.attrs.get("axis"):
                indices = [*made.args[1:], *indices]
            elif made.name == "field":
                path = (made.attrs["index"], *path)
            elif made.name != "grad":
                raise _Hidden
            view = made.args[0]
        numbers = [self.number(i, points) for i in indices]
        terms = tuple([tuple(sorted((id(v), n) for v, n in t.items() if n)) for t, _ in numbers])
        places = tuple([np.broadcast_to(np.asarray(k, np.int64), points.owner.shape) for _, k in numbers])
        self.accesses.append(_Access(self.program.root(op.args[0]), writes, (path, *terms), places, points))

    # ---- numbers

    def number(self, v: Value, points: _Points) -> Number:
        """What is known of an integer in each of the points."""
        if v in points.counters:
            return {}, points.counters[v]
        if not (isinstance(v.type, Scalar) and v.type.is_int):
            raise _Hidden
        op = self.program.made.get(v)
        if op is not None and op.name == "const":
            return {}, int(op.attrs["value"])
        if op is not None and op.name in _ARITHMETIC:
            try:
                return _held(_ARITHMETIC[op.name](*[self.number(a, points) for a in op.args]), op)
            except _Hidden:
                pass  # it is the same in all rounds, perhaps
        if v in self.inside and not (op is not None and op.name == "shape" and op.args[0] not in self.inside):
            raise _Hidden
        return {v: 1}, 0


def _held(found: Number, op: Op) -> Number:
    """``found``, which is what ``op`` gives: a known number that its type holds. Where a part of it is not known it may
    wrap around, but then numbers that differ by less than the type counts differ still."""
    terms, number = found
    low, high = int(np.min(number, initial=0)), int(np.max(number, initial=0))
    if terms:
        fits = high - low < 1 << (INT - 1) and all([v.type.bits >= INT for v in (*op.args, *op.results)])
    else:
        bits, signed = op.results[0].type.bits, op.results[0].type.is_signed
        fits = low >= (-1 << (bits - 1) if signed else 0) and high < 1 << (bits - signed)
    if not fits:
        raise _Hidden
    return found


def _sum(sign: int) -> Callable[[Number, Number], Number]:
    def rule(a: Number, b: Number) -> Number:
        terms = dict(a[0])
        for v, n in b[0].items():
            terms[v] = terms.get(v, 0) + sign * n
        return terms, a[1] + sign * b[1]

    return rule


def _product(a: Number, b: Number) -> Number:
    if a[0] and b[0]:
        raise _Hidden
    (terms, number), (more, factor) = (a, b) if a[0] else (b, a)
    if more or not isinstance(factor, int):
        if terms:
            raise _Hidden
    return {v: n * factor for v, n in terms.items()}, number * factor


def _known(rule: Callable[[Any, Any], Any]) -> Callable[[Number, Number], Number]:
    def both(a: Number, b: Number) -> Number:
        if a[0] or b[0] or (isinstance(b[1], int) and b[1] == 0):
            raise _Hidden
        return {}, rule(a[1], b[1])

    return both


def _quotient(a: Any, b: Any) -> Any:
    if not np.all(b):
        raise _Hidden
    return a // b


def _remainder(a: Any, b: Any) -> Any:
    """That of numbers without sign, about which all rules agree. There may be no points, and so no numbers."""
    if np.min(a, initial=0) < 0 or np.min(b, initial=1) < 1:
        raise _Hidden
    return a % b


_ARITHMETIC: dict[str, Callable[..., Number]] = {
    "add": _sum(1), "sub": _sum(-1), "mul": _product, "floordiv": _known(_quotient),
    "mod": _known(_remainder), "min": _known(np.minimum), "max": _known(np.maximum), "cast": lambda a: a,
}  # fmt: skip


def _apart(accesses: list[_Access]) -> bool:
    """Whether no element is written by one owner and touched by another, in one group."""
    if not accesses or all(a.terms == ("atomic",) for a in accesses):
        return True
    if len({(a.terms, len(a.places)) for a in accesses}) > 1:
        return False  # offsets that differ, or atomics beside plain accesses
    columns = [np.concatenate([a.points.group for a in accesses])]
    columns += [np.concatenate([a.places[k] for a in accesses]) for k in range(len(accesses[0].places))]
    owners = np.concatenate([a.points.owner for a in accesses])
    writes = np.concatenate([np.full(a.points.owner.shape, a.writes) for a in accesses])
    if not owners.size:
        return True
    key = np.zeros(owners.shape, np.int64)
    for column in columns:
        low = int(column.min())
        key = key * (int(column.max()) - low + 1) + (column - low)
    _, cell = np.unique(key, return_inverse=True)
    least, most = np.full(cell.max() + 1, np.iinfo(np.int64).max), np.full(cell.max() + 1, -1)
    np.minimum.at(least, cell, owners)
    np.maximum.at(most, cell, owners)
    written = np.zeros(cell.max() + 1, bool)
    written[cell[writes]] = True
    return bool((~written | (least == most)).all())
