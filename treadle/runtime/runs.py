"""Runs of bytes in memory: where the elements of an array lie, and how they are put aside, put back and exchanged."""

from __future__ import annotations

from array import array as words
from collections.abc import Iterable
from ctypes import memmove
from functools import cache
from typing import Any

import numpy as np

from ..types.records import RUNS
from . import capture, native
from .device import far
from .loader import Library

ROWS = np.dtype([(name, np.int64) for name in RUNS.at])  # of a table of runs
Axis = tuple[int, int]  # extent and stride in bytes of one dimension


class _Functions:
    """What does the work. ``library``: its code."""

    __slots__ = ("exchange", "keep", "library", "put", "swap")

    def __init__(self, library: Library, exchange: Any, keep: Any, put: Any, swap: Any):
        self.library, self.exchange, self.keep, self.put, self.swap = library, exchange, keep, put, swap


@cache
def _functions() -> _Functions:
    """The native functions; they keep Python's lock."""
    from ctypes import PYFUNCTYPE, c_int64, c_void_p

    library = native.helper("pieces", lambda: native.room().pieces_binary())
    exchange = PYFUNCTYPE(None, c_void_p, c_void_p, c_int64)
    each = PYFUNCTYPE(None, c_void_p, c_int64, c_void_p)
    at = library.addresses
    tables = [each(at[f"treadle_{name}"]) for name in ("keep", "put", "swap")]
    return _Functions(library, exchange(at["treadle_exchange"]), *tables)


def exchange(here: int, there: int, nbytes: int, owner: Any = None) -> None:
    """Exchange the ``nbytes`` bytes at two addresses, which must not overlap. ``owner`` keeps those at ``there``."""
    if (capture.active or far) and (now := capture.sink_at(here)) is not None:
        now.hold(owner)
        now.call("exchange", (here, there, nbytes), (0, 1), nbytes)
    else:
        _functions().exchange(here, there, nbytes)


def move(into: int, source: int, nbytes: int, owner: Any = None) -> None:
    """Copy ``nbytes`` bytes. ``owner`` keeps the memory that no array has."""
    if (capture.active or far) and (now := capture.sink_at(into)) is not None:
        now.hold(owner)
        now.move(into, source, nbytes)
    else:
        memmove(into, source, nbytes)


class Runs:
    """A table of runs, ``nbytes`` in all: rows ``(address, bytes, how many, bytes from one to the next)``."""

    __slots__ = ("_at", "_count", "_rows", "nbytes")

    def __init__(self, rows: Iterable[tuple[int, int, int, int]]):
        self._rows: list[tuple[int, int, int, int]] | None = [*rows]
        table = words("q", [number for row in self._rows for number in row])
        self._at, self._count = (table, table.buffer_info()[0]), len(self._rows)
        self.nbytes = sum([nbytes * count for _, nbytes, count, _ in self._rows])

    @classmethod
    def of(cls, table: np.ndarray) -> Runs:
        """Those in a table of the type :data:`ROWS`, which nobody changes."""
        made = cls.__new__(cls)
        made._rows, made._at, made._count = None, (table, table.ctypes.data), len(table)
        made.nbytes = int((table["nbytes"] * table["count"]).sum())
        return made

    @property
    def rows(self) -> list[tuple[int, int, int, int]]:
        """The table, row by row."""
        if self._rows is None:
            self._rows = self._at[0].tolist()
        return self._rows

    @property
    def first(self) -> int:
        """The address of the first run; 0 where there is none."""
        return int(self._at[0][0] if self._rows is not None else self._at[0]["at"][0]) if self._count else 0

    @property
    def alone(self) -> bool:
        """Whether they are one run."""
        return len(self.rows) == 1 and self.rows[0][2] == 1

    def keep(self, aside: int, owner: Any = None) -> None:
        """Copy the bytes to address ``aside``, which ``owner`` keeps, one run after the other."""
        self._do("keep", aside, owner)

    def put(self, aside: int, owner: Any = None) -> None:
        """Copy back what lies there."""
        self._do("put", aside, owner)

    def swap(self, aside: int, owner: Any = None) -> None:
        """Exchange both."""
        self._do("swap", aside, owner)

    def _do(self, what: str, aside: int, owner: Any = None) -> None:
        if (capture.active or far) and (now := capture.sink_at(aside)) is not None:
            now.hold(owner)
            now.runs(what, self, aside)
        else:
            getattr(_functions(), what)(self._at[1], self._count, aside)


def runs(address: int, axes: Iterable[Axis], size: int) -> Runs | None:
    """The runs of elements of ``size`` bytes, the first of which lies at ``address``; None where they lie over each
    other."""
    joined: list[list[int]] = []  # extent and stride of what is not side by side, the nearest first
    run = reach = size  # bytes side by side; bytes up to the end of all so far
    for extent, stride in sorted(axes, key=lambda axis: abs(axis[1])):
        if extent == 0:
            return Runs([])
        if extent == 1:
            continue
        if stride < 0:
            address, stride = address + (extent - 1) * stride, -stride
        if stride < reach:
            return None
        if joined and stride == joined[-1][0] * joined[-1][1]:
            joined[-1][0] *= extent
        elif joined or stride > reach:
            joined.append([extent, stride])
        else:
            run *= extent
        reach += (extent - 1) * stride
    count, step = joined[0] if joined else (1, 0)
    firsts = [address]
    for extent, stride in joined[1:]:
        firsts = [first + k * stride for k in range(extent) for first in firsts]
    return Runs([(first, run, count, step) for first in firsts])
