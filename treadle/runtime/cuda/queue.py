"""What is done to a GPU's memory: the same operations that a capture writes down, given to the current stream at once.

Array methods, copies and tapes know only who takes their operations (``runtime/capture.py``, :func:`sink`); on a GPU it
is this, or a capture whose graph gives them to a stream later.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...types.records import MAX_AXES, SPREAD
from ..memory import addressed, span
from ..streams import get_stream

if TYPE_CHECKING:
    from ..runs import Runs
    from .gpu import Gpu

_SPREAD = struct.Struct(f"<{len(SPREAD.at)}q")
_BLOCK = 256  # threads a block of what moves bytes
_WIDEST = 16  # bytes that a thread moves at once
_PATTERNS = {1: "cuMemsetD8Async", 2: "cuMemsetD16Async", 4: "cuMemsetD32Async"}
_WHERE = 24  # bytes of words in front of the record of a "spread"

Axis = tuple[int, int, int]  # extent, step in what is written, step in what is read


class _Thread(threading.local):
    """Where a thread's operations go, if not to the current stream."""

    upon: int | None = None


class Queue:
    """Takes operations on the memory of one GPU."""

    writes_down = False

    def __init__(self, device: Gpu):
        from .launch import Reports

        self.device = device
        self.reports = Reports(device)
        self._thread = _Thread()

    @property
    def stream(self) -> int:
        """The handle of the stream that operations go to."""
        upon = self._thread.upon
        return get_stream(self.device).handle if upon is None else upon

    @contextmanager
    def upon(self, stream: int) -> Iterator[None]:
        """In the block operations go to another stream."""
        before, self._thread.upon = self._thread.upon, stream
        try:
            yield
        finally:
            self._thread.upon = before

    # ---- what captures have too

    def keep(self, things: Iterable[Any]) -> None:
        """Memory that work uses is not freed before that is done, so nothing is to be kept."""

    def hold(self, thing: Any) -> None:
        """The same of whatever keeps memory alive."""

    def call(self, name: str, words: Sequence[int], pointers: tuple[int, ...] = (), nbytes: int = 0) -> None:
        """One of the functions ``move``, ``zero``, ``fill`` and ``exchange``, of three words."""
        with self.device.entered:
            getattr(self, f"_{name}")(*words)

    def call_with_table(self, name: str, words: Sequence[int], table: bytes, pointers: tuple[int, ...],
                        nbytes: int) -> None:  # fmt: skip
        """``spread``, with its record."""
        with self.device.entered:
            self._strided("spread", table)

    def runs(self, name: str, runs: Runs, aside: int) -> None:
        """``keep``, ``put`` or ``swap``: runs of bytes are kept at ``aside``, put back, or exchanged."""
        with self.device.entered:
            for at, nbytes, count, step in runs.rows:
                axes = [(count, nbytes, step)] if count > 1 else []
                if name == "put":
                    axes = [(n, out, into) for n, into, out in axes]
                into, source = (at, aside) if name == "put" else (aside, at)
                if not axes and name != "swap":
                    self._move(into, source, nbytes)
                else:
                    self._strided("exchange" if name == "swap" else "spread", record(into, source, nbytes, axes))
                aside += nbytes * count

    def move(self, into: int, source: int, nbytes: int) -> None:
        """Copy bytes: of the device, of the host, or of another device."""
        with self.device.entered:
            self._move(into, source, nbytes)

    def zeros(self, nbytes: int) -> tuple[Any, int]:
        """Memory of zeros: what keeps it, and its address."""
        buffer, _, address = self.device.reserve(nbytes, True)
        return buffer, address

    def aside(self, nbytes: int) -> tuple[int, Any]:
        """The address of memory, and what keeps it."""
        buffer, _, address = self.device.reserve(max(nbytes, 1), False)
        return address, buffer

    def fill(self, target: np.ndarray, value: np.ndarray) -> bool:
        """Set all of ``target``, elements of the device, to what the host has; whether that could be done at once:
        where all get one value, or both lie without gaps."""
        words = self.filling(target, value)
        if words is not None:
            self.call("fill", words)
        elif value.shape == target.shape and value.flags.c_contiguous and target.flags.c_contiguous:
            self.move(_address(target), _address(value), target.nbytes)
        else:
            return False
        return True

    def constant(self, rows: np.ndarray) -> np.ndarray:
        """``rows`` as they are now, in the device's memory."""
        return self.uploaded(rows)

    # ---- between host and device

    @staticmethod
    def filling(target: np.ndarray, value: np.ndarray) -> tuple[int, int, int] | None:
        """The words of ``fill`` that set all of ``target`` to ``value``; None where there are none."""
        if not target.flags.c_contiguous or value.size != 1 or not target.size:
            return None
        raw = value.tobytes()
        if not raw.strip(b"\0"):
            return _address(target), 1 << 32, target.nbytes
        for size in (1, 2, 4):
            if len(raw) % size == 0 and raw == raw[:size] * (len(raw) // size):
                word = int.from_bytes(raw[:size], "little")
                return _address(target), size << 32 | word, target.nbytes // size
        return None

    def uploaded(self, rows: np.ndarray) -> np.ndarray:
        """A copy in the device's memory, as NumPy would show it."""
        dense = np.ascontiguousarray(rows).reshape(np.shape(rows))
        buffer, _, address = self.device.reserve(max(dense.nbytes, 1), False)
        if dense.nbytes:
            self.move(address, _address(dense), dense.nbytes)
        return np.ndarray(dense.shape, dense.dtype, addressed(address, max(dense.nbytes, 1), buffer))

    def downloaded(self, a: Any) -> np.ndarray:
        """The elements of an array of the device, in host memory of their own, once all work before is done."""
        e = a._element
        inner = e.inner_steps(a.component_stride) if e.inner else ()
        shape, strides = a.shape + e.inner, a.strides + inner
        low, high = span(shape, strides, e.dtype.itemsize)
        content = np.empty(high - low, np.uint8)
        if content.size:
            given = self.reports.number()
            with self.device.entered as driver:
                stream = self.stream
                driver.cuMemcpyAsync(content.ctypes.data, a._address + low, content.size, stream)
                driver.cuStreamSynchronize(stream)
            self.reports.look(stream, given)
        return np.ndarray(shape, e.dtype, content, -low, strides)

    # ---- the functions; the context is current

    def _move(self, into: int, source: int, nbytes: int) -> None:
        from ..device import far

        device = self.device
        if len(far) > 1:
            other = device.device_at(source)
            if other is not None and other is not device:
                own, others = get_stream(device), get_stream(other)
                apart = self._thread.upon is None  # within a graph the driver knows what comes after what
                if apart:
                    own.wait_stream(others)
                args = into, device.context, source, other.context, nbytes, self.stream
                device.driver.cuMemcpyPeerAsync(*args)
                if apart:
                    others.wait_stream(own)
                return
        device.driver.cuMemcpyAsync(into, source, nbytes, self.stream)

    def _zero(self, address: int, _: int, nbytes: int) -> None:
        self.device.driver.cuMemsetD8Async(address, 0, nbytes, self.stream)

    def _fill(self, address: int, pattern: int, count: int) -> None:
        getattr(self.device.driver, _PATTERNS[pattern >> 32])(address, pattern & 0xFFFFFFFF, count, self.stream)

    def _exchange(self, here: int, there: int, nbytes: int) -> None:
        self._strided("exchange", record(here, there, nbytes, []))

    def _strided(self, what: str, packed: bytes) -> None:
        """Copy or exchange bytes as a record says, on the device."""
        from .modules import helper

        unit, total, table = in_units(packed)
        if not total:
            return
        device = self.device
        most = max(device.threads * 4 // _BLOCK, 1)
        args, count = (ctypes.c_char * len(table)).from_buffer_copy(table), ctypes.c_uint64(total)
        params = (ctypes.c_void_p * 2)(ctypes.addressof(args), ctypes.addressof(count))
        function = helper(device, "transfers").addresses[f"treadle_{what}_{unit}"]
        blocks = min(-(-total // _BLOCK), most)
        device.driver.cuLaunchKernel(
            function, blocks, 1, 1, _BLOCK, 1, 1, 0, self.stream, ctypes.addressof(params), 0
        )  # fmt: skip


def _address(rows: np.ndarray) -> int:
    return rows.__array_interface__["data"][0]


def record(into: int, source: int, run: int, axes: list[Axis]) -> bytes:
    """The record ``SPREAD`` of a copy of ``run`` bytes over ``axes``, the outer ones first."""
    table = dict.fromkeys(SPREAD.at, 0)
    table.update(into=into, source=source, run=run, ndim=len(axes))
    for k, (extent, there, here) in enumerate(axes):
        table[f"extent{k}"], table[f"into_step{k}"], table[f"source_step{k}"] = extent, there, here
    return _SPREAD.pack(*table.values())


def in_units(packed: bytes) -> tuple[int, int, bytes]:
    """A record as the device's code reads it (``codegen/native/transfers.py``): bytes of a unit, how many of them, and
    the record with its run in units and the innermost axis first."""
    into, source, run, ndim, *rest = _SPREAD.unpack(packed)
    columns = [rest[k * MAX_AXES : k * MAX_AXES + ndim][::-1] for k in range(3)]
    unit = _WIDEST
    for number in (into, source, run, *columns[1], *columns[2]):
        while number % unit:
            unit //= 2
    run //= unit
    padded = [n for column in columns for n in (*column, *[0] * (MAX_AXES - ndim))]
    return unit, run * prod(columns[0]), _SPREAD.pack(into, source, run, ndim, *padded)
