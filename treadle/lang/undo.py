"""The undo log: what recorded launches need and later writes would destroy, kept so that it can be put back.

A log *watches* bytes. Before anything writes, it saves those watched bytes that the write may change. Each piece that
it saved can be *swapped* with what lies in memory: going back through them takes memory to what it held before each
write, going forward again brings everything back to where it was, since a swap undoes itself.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..runtime.array import array
from ..runtime.ranges import Ranges
from .plan import Part, Plan, Site, span_of

BLOCK = 64  # bytes that are compared, and kept, together
SMALL = 4096  # up to so many bytes are kept without comparing

_string_at, _memmove = ctypes.string_at, ctypes.memmove


class Bytes:
    """Bytes that lay at ``address`` before the operation number ``position``. ``owner`` keeps the memory alive."""

    __slots__ = ("address", "data", "owner", "position")

    def __init__(self, position: int, address: int, data: bytes, owner: Any):
        self.position, self.address, self.data, self.owner = position, address, data, owner

    @property
    def nbytes(self) -> int:
        return len(self.data)

    def swap(self) -> None:
        """Exchange them with what lies there now."""
        data = self.data
        self.data = _string_at(self.address, len(data))
        _memmove(self.address, data, len(data))

    def put(self, data: bytes) -> None:
        """Write ``data`` there."""
        _memmove(self.address, data, len(data))


class Elements:
    """As :class:`Bytes`, of elements that do not lie side by side."""

    __slots__ = ("data", "position", "rows")

    def __init__(self, position: int, part: array):
        self.position, self.rows = position, part.numpy()
        self.data = self.rows.copy()

    @property
    def nbytes(self) -> int:
        return self.data.nbytes

    def swap(self) -> None:
        data, self.data = self.data, self.rows.copy()
        self.rows[...] = data

    def put(self, data: np.ndarray) -> None:
        self.rows[...] = data


class Log:
    """Operations in the order in which they happened, and what they destroyed.

    ``ops``: tuples ``(plan, dim, args)`` for launches, objects for everything else. ``saved``: pieces, each with the
    number of the operation before which it was saved. ``watched``: the bytes whose content must stay known.
    ``seen``: descriptions of arrays that are watched in whole, so that the next look costs nothing.
    """

    def __init__(self, watched: Ranges | None = None):
        self.ops: list[Any] = []
        self.saved: list[Any] = []
        self.watched = watched or Ranges()
        self.seen: set[bytes] = set()
        self.spans: dict[bytes, tuple[int, int]] = {}
        self.wrote: set[int] = set()  # ids of the memories that operations wrote to
        self.pending: list[tuple[int, int, bytes, Any, bool]] = []

    @property
    def saved_bytes(self) -> int:
        return sum([piece.nbytes for piece in self.saved])

    def span(self, a: array) -> tuple[int, int]:
        found = self.spans[a._desc] = span_of(a)
        return found

    # ---- launches

    def before(self, plan: Plan, dim: Any, args: Sequence[Any], reading: bool = True) -> None:
        """A launch is about to run: watch what its adjoint will read, save what it destroys. ``reading``: it is to be
        recorded, else it only destroys."""
        seen, spans, watched = self.seen, self.spans, self.watched
        if reading:
            for site in plan.reads:
                a = args[site.k] if not site.fields else site.of(args)
                if a is not None and (d := a._desc) not in seen:
                    seen.add(d)
                    watched.add(*(spans.get(d) or self.span(a)))
            for site in plan.boxed:
                a = site.of(args)
                for low, high, _ in plan.parts(site, site.read_boxes, a, _dims(dim), args) if a is not None else ():
                    watched.add(low, high)
        for site in plan.writes:
            a = args[site.k] if not site.fields else site.of(args)
            if a is None:
                continue
            low, high = spans.get(a._desc) or self.span(a)
            if watched.meets(low, high):
                self.launch_writes(plan, site, a, dim, args)
            self.wrote.add(id(a._memory))
            if site.keeps and reading:
                self.keep(plan, site, a, dim, args)

    def launch_writes(self, plan: Plan, site: Site, a: array, dim: Any, args: Sequence[Any]) -> None:
        """Save what a launch will destroy of ``a``."""
        dims = _dims(dim)
        whole = site.own is not None and len(site.own) == len(dims) and all(
            dims[axis] >= extent for axis, extent in zip(site.own, a.shape, strict=True)
        )  # fmt: skip
        parts = [_whole(a)] if whole else plan.parts(site, site.boxes, a, dims, args)
        for part in parts:
            self.destroys(part, a, site.sure, site.keeps)

    def keep(self, plan: Plan, site: Site, a: array, dim: Any, args: Sequence[Any]) -> None:
        """Watch what a launch leaves in ``a``."""
        if a._desc not in self.seen:
            for low, high, _ in plan.parts(site, site.boxes, a, _dims(dim), args):
                self.watched.add(low, high)

    def destroys(self, part: Part, owner: array, sure: bool, keeps: bool = False) -> None:
        """The elements of ``part`` are about to be written; if not ``sure``, some of them. ``keeps``: what is written
        is watched too."""
        low, high, elements = part
        if elements is not None:
            if self.watched.meets(low, high):
                self.saved.append(Elements(len(self.ops), elements))
            return
        for begin, end in self.watched.within(low, high):
            data = _string_at(begin, end - begin)
            if sure or end - begin <= SMALL:
                self.saved.append(Bytes(len(self.ops), begin, data, owner))
                self.forget(begin, end)
            else:
                self.pending.append((begin, end, data, owner, keeps))

    def forget(self, low: int, high: int) -> None:
        """These bytes change and are saved: nobody knows their content any more."""
        self.watched.cut(low, high)
        spans, met = self.spans, []
        if len(self.seen) > 256:
            self.seen.clear()
        for d in self.seen:
            begin, end = spans[d]
            if begin < high and low < end:
                met.append(d)
        self.seen.difference_update(met)

    def after(self) -> None:
        """The write is done: of what was to be compared, keep the blocks that changed."""
        for begin, end, data, owner, keeps in self.pending:
            for low, high in _changed(data, _string_at(begin, end - begin)):
                self.saved.append(Bytes(len(self.ops), begin + low, data[low:high], owner))
                if not keeps:
                    self.forget(begin + low, begin + high)
        self.pending.clear()

    # ---- everything else

    def reads(self, a: array) -> None:
        """The content of ``a`` must stay known."""
        if a._desc not in self.seen:
            self.seen.add(a._desc)
            self.watched.add(*(self.spans.get(a._desc) or self.span(a)))

    def writes(self, a: array) -> bool:
        """All of ``a`` is about to be written; whether any of it was watched."""
        low, high = self.spans.get(a._desc) or self.span(a)
        self.wrote.add(id(a._memory))
        if not self.watched.meets(low, high):
            return False
        self.destroys(_whole(a), a, True)
        return True

    def fresh(self, a: array) -> bool:
        """Whether no operation has read or written memory of ``a``."""
        memory = a._memory
        return memory is not None and id(memory) not in self.wrote and not self.watched.meets(
            *(self.spans.get(a._desc) or self.span(a)))  # fmt: skip


def _dims(dim: Any) -> tuple[int, ...]:
    return (dim,) if type(dim) is int else tuple(dim)


def _whole(a: array) -> Part:
    low, high = span_of(a)
    return low, high, None if a.is_contiguous else a


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
