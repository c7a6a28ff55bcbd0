"""Launches that native code gives to a stream, whenever it is called: functions, grids, records and the memory that
passes share are known before (``codegen/native/ffi_gpu.py``)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...types.records import FAR, LAUNCH, MAX_ITEMS, Memory
from ..array_views import product
from ..launch import table
from .launch import Launch, laid_out
from .modules import helper

if TYPE_CHECKING:
    from .gpu import Gpu

HEAD = 16 * MAX_ITEMS  # bytes of the table in front of what passes share
_SOMEWHERE = 1 << 12  # the address of an array, where only that there is one matters


class Handed:
    """A launch of ``program`` over a grid of ``dims``, on one GPU. ``pointers``: where the addresses of arrays go in
    the arguments ``packed``. ``nbytes``: what its passes share, 0 if nothing; ``rooms``: what of it each item has, to
    which those of another launch may be held. Over no threads nothing is launched."""

    def __init__(self, program: Any, packed: bytes, dims: tuple[int, ...], pointers: Iterable[int],
                 rooms: Sequence[int] = ()):  # fmt: skip
        device: Gpu = program.entry.device
        there = bytearray(packed)
        for at in pointers:
            there[at : at + 8] = _SOMEWHERE.to_bytes(8, "little")
        self.program, self.device = program, device
        self.launch = launch = Launch(program, there, dims)
        rows, size = laid_out(launch, HEAD, rooms) if product(dims) else ([], 0)
        steps = launch.steps if product(dims) else []
        self.nbytes, self.rooms = size if rows else 0, [row.nbytes for row in rows]
        self._steps = table(steps)
        self._items = table([(row.own, row.place, row.slots, row.cleared) for row in rows])
        self._launch = Memory(LAUNCH)
        ctypes.memmove(self._launch.address, launch.record, LAUNCH.size)
        self.record = record = Memory(FAR)
        record["gpu"], record["launch"] = device.quick.record.address, self._launch.address
        record["steps"], record["nsteps"] = self._steps.buffer_info()[0], len(steps)
        record["items"], record["nitems"] = self._items.buffer_info()[0], len(rows)
        record["fills"] = helper(device, "transfers").addresses["treadle_words"]
        self.fault = self._launch["fault"]  # where its threads report
        launch.arm(None)
