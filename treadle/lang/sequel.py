"""What is likely to be overwritten next of the arrays that a tape looks at, once it records no more.

Programs that go on with the arrays of a recording mostly do again what was recorded, and so overwrite them in the order
in which the tape met them. To look at each of these writes, and to save by itself what it destroys, takes longer than
the copy. So where writes come in that order the arrays that stand next in it are saved with them, in proportion to what
was saved until then, and soon all of them; then nothing is left to be looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress, count
from operator import is_
from typing import Any

import numpy as np

from ..runtime.array import array
from ..runtime.runs import ROWS, Runs
from ..types.records import DESC, MAX_DIMS
from .slabs import SLAB

NEAR = 8  # so many arrays may writes leave out, and still come in order
MORE = 3  # so many bytes are saved ahead for each that was saved since the recording
SURE = 3  # so many guesses must be right, one after the other, before all that is left is saved
REST = 8  # what nothing recorded wrote is saved too where it is no more than this part of what was saved

Piece = tuple[Runs, list[array], list[int]]  # where arrays lie, those, and their cells


class Sequel:
    """What comes after a recording. ``cells``: what of it is watched, by the id of the allocation; ``wrote``: the ids
    of those that it wrote to.

    ``arrays``: those that it wrote to, each without gaps and watched alone in its allocation when the recording ended,
    in the order in which it met them; ``keys``: their cells; ``places``: their numbers, by id; ``table``: their
    addresses and bytes; ``sums``: the bytes of all before each. Up to number ``next`` all that writes reached, or are
    expected to, is saved; ``right``: how often they came as expected. ``nbytes``: what was saved since.
    """

    __slots__ = ("arrays", "cells", "keys", "nbytes", "next", "places", "right", "sums", "table")

    def __init__(self, cells: dict[int, Any], wrote: set[int]):
        self.cells, self.nbytes, self.next, self.right = cells, 0, -NEAR, 0
        both = [*cells.items()]  # at once: another thread may watch something
        keys, arrays = [key for key, _ in both], [a for _, a in both]
        taken = [*map(wrote.__contains__, keys)]
        arrays, self.keys, self.table = _whole([*compress(arrays, taken)], [*compress(keys, taken)])
        self.arrays, self.places = arrays, dict(zip(map(id, arrays), count()))
        self.sums = np.concatenate(([0], self.table["nbytes"].cumsum()))

    def after(self, a: Any, nbytes: int) -> Iterator[Piece]:
        """``nbytes`` of ``a`` were saved before it is overwritten: what should be saved with it, in pieces of about a
        slab. Each is to be saved, and watched no more, before the next is asked for."""
        self.nbytes += nbytes
        n = self.places.get(id(a))
        if n is None:
            return
        near, self.next = self.next <= n < self.next + NEAR, n + 1
        if not near:
            self.right = 0
            return
        begin, end = n + 1, len(self.arrays)
        self.right += 1
        if self.right < SURE:
            end = min(self.upto(begin, MORE * self.nbytes), end)
        self.next, self.nbytes = end, self.nbytes + int(self.sums[end] - self.sums[begin])
        while begin < end:
            some = min(max(self.upto(begin, SLAB) - 1, begin + 1), end)
            yield from self.piece(begin, some)
            begin = some
        if end == len(self.arrays):
            yield from self.rest()

    def upto(self, begin: int, nbytes: int) -> int:
        """The number up to which the arrays from number ``begin`` on have ``nbytes`` or a little more."""
        return int(self.sums.searchsorted(self.sums[begin] + nbytes))

    def piece(self, begin: int, end: int) -> Iterator[Piece]:
        """The arrays from number ``begin`` up to ``end``, as far as they are watched."""
        arrays, keys, table = self.arrays[begin:end], self.keys[begin:end], self.table[begin:end]
        watched = [*map(is_, map(self.cells.get, keys), arrays)]
        if not all(watched):
            arrays, keys = [*compress(arrays, watched)], [*compress(keys, watched)]
            table = table[watched]
        if keys:
            yield Runs.of(table), arrays, keys

    def rest(self) -> Iterator[Piece]:
        """All that is watched still, if that is little."""
        left = [*self.cells.items()]
        arrays, keys, table = _whole([a for _, a in left], [key for key, _ in left])
        if 0 < len(keys) == len(left) and table["nbytes"].sum() * REST <= self.nbytes:
            yield Runs.of(table), arrays, keys


def _whole(arrays: list[Any], keys: list[int]) -> tuple[list[array], list[int], np.ndarray]:
    """Those of ``arrays`` that are arrays without gaps, with their ``keys`` and the table of where they lie."""
    kinds = [*map(type, arrays)]
    if kinds.count(array) < len(kinds):  # some allocations are watched by bytes
        alone = [kind is array for kind in kinds]
        arrays, keys = [*compress(arrays, alone)], [*compress(keys, alone)]
    table = _places(arrays) if arrays else np.zeros(0, ROWS)
    full = table["nbytes"] > 0
    if not full.all():
        arrays, keys, table = [*compress(arrays, full)], [*compress(keys, full)], table[full]
    return arrays, keys, table


def _places(arrays: list[array]) -> np.ndarray:
    """Where each of ``arrays`` lies, as rows of a table of runs; no bytes where it is not row by row without gaps, in
    memory of the host. Their descriptors are looked at all at once, which takes a fraction of the time."""
    words = np.frombuffer(b"".join([a._desc for a in arrays]), np.int64).reshape(-1, len(DESC.at))
    column = {name: words[:, at // 8] for name, at in DESC.at.items()}
    size, ndim, component = np.zeros((3, len(words)), np.int64)
    _, firsts, kinds = np.unique(column["view"], return_index=True, return_inverse=True)
    for kind, first in enumerate(firsts.tolist()):
        alike, a = kinds == kind, arrays[first]
        size[alike] = a._element.size if a.device.queue is None else 0
        ndim[alike], component[alike] = a.ndim, a._element.component
    dense, nbytes = column["component_stride"] == component, size
    for axis in reversed(range(MAX_DIMS)):
        there = axis < ndim
        dense &= ~there | (column[f"stride{axis}"] == nbytes)
        nbytes = np.where(there, nbytes * column[f"shape{axis}"], nbytes)
    table = np.zeros(len(words), ROWS)
    table["at"], table["nbytes"], table["count"] = column["data"], np.where(dense, nbytes, 0), 1
    return table
