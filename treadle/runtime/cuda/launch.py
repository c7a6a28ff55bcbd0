"""Launches on a GPU: the passes of a kernel with their grids, its parameters, memory between passes, and what its
threads report.

Nothing waits here. What a kernel reports lies in host memory that the GPU writes; it is looked at when the host waits
for the GPU anyway. Only kernels that print are waited for.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
import threading
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.errors import CaptureError
from ...types.records import FAULT, LAUNCH, LOG, MAX_DIMS
from .. import capture, prints
from ..array_views import product
from ..launch import Command, bytes_of
from . import memory

if TYPE_CHECKING:
    from .gpu import Gpu
    from .modules import GpuEntry

WAVES = 4  # times that a grid may fill the device before threads take several turns
PRINTED = 1 << 20  # bytes that one launch can print
_TOGETHER = 64  # fault records in a piece of memory
COMPLETE = 2  # the state of a fault record that is written
_LAUNCH = struct.Struct(f"<{len(LAUNCH.at)}q")
_ALIGN = 256
LEAST = 32  # threads of a block: those that run in step
_SHARE = 8  # of a device's memory tapes may take this part


class GpuCommand(Command):
    """One launch on a GPU, with all it needs. Calling it gives it to the current stream."""

    __slots__ = ("_made", "most")

    def __init__(self, program: Any, packed: bytearray, dims: tuple[int, ...], values: Sequence[Any] = ()):
        self.program, self.packed, self.dims, self.values = program, packed, dims, values
        self._unchecked = bool(program.own) and product(dims) > 0
        self._made: Launch | None = None
        self.most = 0

    def limit(self, blocks: int) -> None:
        self.most, self._made = max(blocks, 0), None

    def __call__(self) -> None:
        """Give it to the current stream, or while a graph is captured let it be part of that.

        Raises:
            IndexOutOfRange: an access that is checked before the launch leaves its array.
        """
        if self._unchecked:
            self.program.check_own(self.packed, self.dims)
            self._unchecked = False
        device = self.program.entry.device
        if capture.active and (now := capture.sink(device)) is not device.queue:
            now.launch(self)
        elif product(self.dims):
            if self._made is None:
                self._made = Launch(self.program, self.packed, self.dims, self.most)
            self._made.run()
            if device.lent.streams:
                device.give_back()


class Launch:
    """A launch that is laid out: which functions, over which grids, with which parameters."""

    __slots__ = ("_args", "_block", "_fault", "_log", "_most", "_params", "_record", "device", "dims", "entry",
                 "program", "steps")  # fmt: skip

    def __init__(self, program: Any, packed: Any, dims: tuple[int, ...], most: int = 0):
        self.program, self.dims, self._most = program, dims, most
        self.entry: GpuEntry = program.entry
        self.device: Gpu = self.entry.device
        self._args = (ctypes.c_char * max(len(packed), 8)).from_buffer_copy(bytes(packed).ljust(8, b"\0"))
        self._record = (ctypes.c_int64 * len(LAUNCH.at))()
        params = ctypes.addressof(self._args), ctypes.addressof(self._record)
        self._params = (ctypes.c_void_p * 2)(*params)
        meta = self.entry.meta
        reports = self.device.queue.reports
        self._fault = reports.record(program, dims) if meta.get("sites") else None
        self._log = self.entry.log
        self._block: Scratch | None = None
        self.steps = [self._step(each) for each in self.entry.passes]
        self._fill(0)

    # ---- grids

    def _step(self, one: dict[str, Any]) -> tuple[int, int, int, int]:
        """Function, blocks, threads a block and shared memory of a pass."""
        size, block, grid = product(self.dims), one.get("block", 256), one["grid"]
        if grid in ("threads", "blocks"):
            blocks, block = self._spread(one, size, block)
        elif grid == "thread":
            blocks = block = 1
        else:
            blocks = 1 if grid == "one" else grid
        return self.entry.library.addresses[one["entry"]], blocks, block, one.get("shared", 0)

    def _spread(self, one: dict[str, Any], size: int, block: int) -> tuple[int, int]:
        """Blocks, and threads a block, of a pass that strides over ``size`` threads of the launch, or has a block for
        each."""
        together = one["grid"] == "blocks"
        if "most" in one:  # what is computed depends on the grid
            return min(size if together else -(-size // block), one["most"]), block
        while not together and block > LEAST and block % 2 == 0 and -(-size // block) < self.device.sm_count:
            block //= 2  # few threads go to as many multiprocessors as there are
        waves = 1 if self.entry.taped else WAVES
        most = max(self.device.threads * waves // block, 1)
        return min(size if together else -(-size // block), most, self._most or most), block

    def _fill(self, table: int) -> None:
        extents = (*self.dims, *(1,) * (MAX_DIMS - len(self.dims)))
        log = self._log.address if self._log is not None else 0
        fault = self._fault.address if self._fault is not None else 0
        fields = {"size": product(self.dims), "fault": fault, "log": log, "priv_targets": table}
        fields |= {f"dim{k}": n for k, n in enumerate(extents)} | {"checked": int(self.program.checked)}
        values = [fields.get(name, 0) for name in LAUNCH.at]
        ctypes.memmove(self._record, _LAUNCH.pack(*values), LAUNCH.size)

    # ---- running

    def run(self) -> None:
        """Give it to the current stream."""
        if self._log is None:
            self._run()
            return
        with printing([self]):
            self._run()

    def _run(self) -> None:
        device = self.device
        with device.entered:
            if self.entry.scratch:
                if device.is_captured:
                    raise CaptureError(
                        f"kernel {self.program.name} needs memory between its passes, which another library's capture "
                        "does not keep", hint="capture it by wp.ScopedCapture, and launch that graph there",
                    )  # fmt: skip
                self.settle()
            self.issue(device.queue.stream)
            if self._fault is not None or self._log is not None:  # a graph of somebody else's may run at any time
                self.arm(None if device.is_captured else device.queue.stream)
            if self._block is not None:
                self._block.give()
                self._block = None
        if self._log is not None:
            device.stream.synchronize()

    def settle(self) -> Scratch | None:
        """Take the memory that its passes share, if they need any; the context is current. Who runs it many times gives
        it back in the end."""
        if self.entry.scratch:
            self._block = Scratch(self)
            self._fill(self._block.address)
        return self._block

    def issue(self, stream: int) -> None:
        """Give its passes to a stream; the context is current."""
        driver, params = self.device.driver, ctypes.addressof(self._params)
        for address, nbytes in self._block.zeroed if self._block is not None else ():
            driver.cuMemsetD8Async(address, 0, nbytes, stream)
        for function, blocks, block, shared in self.steps:
            driver.cuLaunchKernel(function, blocks, 1, 1, block, 1, 1, shared, stream, params, 0)

    def arm(self, stream: int | None) -> None:
        """Its threads may report something from now on, as long as that stream works; None: always."""
        if self._fault is not None or self._log is not None:
            self.device.queue.reports.arm(self.program, self.dims, self._fault, self._log, stream)

    @property
    def record(self) -> bytes:
        """What its threads are told of the launch."""
        return bytes(self._record)

    @property
    def log(self) -> Log | None:
        """Where its threads print, if they do."""
        return self._log

    # ---- memory between passes

    def threads(self) -> int:
        """Hardware threads of the largest pass that runs threads of the launch."""
        return max([blocks * block for blocks, block in self._grids()], default=1)

    def blocks(self) -> int:
        """Blocks of the same."""
        return max([blocks for blocks, _ in self._grids()], default=1)

    def _grids(self) -> list[tuple[int, int]]:
        """Blocks, and threads a block, of passes that run threads of the launch; others put things together."""
        found = zip(self.steps, self.entry.passes, strict=True)
        return [step[1:3] for step, one in found if one["grid"] in ("threads", "blocks", "thread")]


class Scratch:
    """Memory that the passes of a launch share: one block with a table in front. ``zeroed``: what is cleared before."""

    __slots__ = ("address", "device", "zeroed")

    def __init__(self, launch: Launch):
        device = self.device = launch.device
        rows, nbytes = laid_out(launch, 16 * len(launch.entry.scratch))
        self.address = device.heap.take(nbytes)
        self.zeroed = [(self.address + row.place, row.cleared) for row in rows if row.cleared]
        words = [n for row in rows for n in (self.address + row.place if row.place else row.own, row.slots)]
        content = (ctypes.c_uint64 * len(words))(*words)
        device.driver.cuMemcpyAsync(self.address, ctypes.addressof(content), 8 * len(words), device.queue.stream)

    def give(self) -> None:
        """Give the memory back, once the work given so far is done."""
        self.device.heap.give(self.address)


class Row(NamedTuple):
    """An item of the memory that passes share: ``place``, bytes from the begin of all, or 0 where it has none and lies
    at ``own``; its slots; how many bytes are cleared before; its bytes."""

    place: int
    own: int
    slots: int
    cleared: int
    nbytes: int


def laid_out(launch: Launch, head: int, rooms: Sequence[int] = ()) -> tuple[list[Row], int]:
    """The items of a launch behind ``head`` bytes for their table, and the bytes of all. ``rooms``: how many
    bytes each may have at most, if it can do with less; none: what launches needed so far decides."""
    rows, at = [], head
    for number, item in enumerate(launch.entry.scratch):
        nbytes, slots = _size(launch, item, rooms[number] if rooms else None)
        at += -at % _ALIGN
        cleared = nbytes if item.get("zeroed") else 0
        rows.append(Row(at if nbytes else 0, launch.entry.lasting.get(number, 0), slots, cleared, nbytes))
        at += nbytes
    return rows, at


def _size(launch: Launch, item: dict[str, Any], room: int | None = None) -> tuple[int, int]:
    """Bytes and slots of an item; see :func:`laid_out`."""
    if item["per"] == "host":
        return 0, 1
    if item["per"] == "scalar":
        return by_scalar(launch.program, launch._args, item)
    each = {"launch": 1, "thread": launch.threads(), "block": launch.blocks()}[item["per"]]
    slots = item.get("slots")
    if slots is None:
        slots = max(item["first"], launch.entry.kept(item["needs"]))
        most = launch.device.total_memory // _SHARE if room is None else room
        slots = max(min(slots, most // (item["bytes"] * max(each, 1))), 1)  # who needs more takes it from the heap
    return item["bytes"] * slots * each, slots


def by_scalar(program: Any, packed: Any, item: dict[str, Any]) -> tuple[int, int]:
    """Bytes and slots of an item that has some for each scalar of an array; none where there is no array."""
    leaf = program.leaf(item["path"])
    if not int.from_bytes(bytes(packed[leaf.pointer : leaf.pointer + 8]), "little"):
        return 0, 0
    low, high = bytes_of(packed, leaf)
    count = (high - low) // item["size"]
    return item["bytes"] * count, count


# ---- what threads report --------------------------------------------------------------------------------------------


class Log:
    """The print buffer of a kernel, in host memory that the GPU writes. ``turn``: held by who launches the kernel, from
    before that until it is finished and its text is shown; so nobody writes while somebody shows."""

    __slots__ = ("_memory", "address", "sites", "turn")

    def __init__(self, device: Gpu, sites: list[dict[str, Any]]):
        self._memory, _, self.address = memory.pinned(device, LOG.size + PRINTED, True)
        self.sites, self.turn = sites, threading.RLock()
        self._clear()

    def _clear(self) -> None:
        words = (self.address + LOG.size, 0, PRINTED)
        ctypes.memmove(self.address, struct.pack("<3q", *words), LOG.size)

    def show(self) -> None:
        """Print what is in it, in the order of threads; not while another thread lets the kernel run, which then does
        so itself."""
        if self.turn.acquire(blocking=False):
            try:
                self._show()
            finally:
                self.turn.release()

    def _show(self) -> None:
        used = ctypes.c_int64.from_address(self.address + LOG["used"]).value
        text = ctypes.string_at(self.address + LOG.size, min(used, PRINTED))
        self._clear()
        if used:
            prints.write(_in_order(text, self.sites), self.sites)
        if used > PRINTED:
            from ...base.logs import log_warning

            log_warning(f"a launch printed {used} bytes, of which {PRINTED} are kept")


def _in_order(log: bytes, sites: list[dict[str, Any]]) -> bytes:
    """The records sorted by thread, as launches on a CPU leave them. One that was cut off is left out."""
    found, at = [], 0
    while at + 16 <= len(log):
        thread, number = struct.unpack_from("<2q", log, at)
        size = 8 + 8 * sum([not isinstance(t, dict) for t in sites[number]["values"]])
        if at + 8 + size > len(log):
            break
        found.append((thread, log[at + 8 : at + 8 + size]))
        at += 8 + size
    found.sort(key=lambda each: each[0])
    return b"".join([record for _, record in found])


@contextmanager
def printing(launches: Sequence[Launch]) -> Iterator[None]:
    """In the block some launches run, until they are finished if one of them prints: no other thread lets the same
    kernels run meanwhile if they print, nor shows what they did."""
    logs = {launch.log.address: launch.log for launch in launches if launch.log is not None}
    with ExitStack() as turns:
        for address in sorted(logs):  # in one order, so that nobody waits for who waits for him
            turns.enter_context(logs[address].turn)
        yield


class Record:
    """A fault record, which launches that are alike share; it serves others when the last of them has gone, and nobody
    waits any more for what they report."""

    __slots__ = ("__weakref__", "address")

    def __init__(self, address: int, free: deque[int]):
        self.address = address
        weakref.finalize(self, free.append, address).atexit = False


class Armed(NamedTuple):
    """What may be reported: by launches of a program over ``dims`` on ``stream`` (None: at any time) into a log, and
    into a fault record. ``number``: of the last time that such were launched."""

    program: Any
    dims: tuple[int, ...]
    fault: Record | None
    log: Log | None
    stream: int | None
    number: int


class Reports:
    """The fault records and print buffers of a device, and which of them launches may have written to."""

    def __init__(self, device: Gpu):
        self.device = device
        self._records: weakref.WeakKeyDictionary[Any, weakref.WeakValueDictionary[tuple[int, ...], Record]]
        self._records = weakref.WeakKeyDictionary()
        self._memory: list[Any] = []
        self._free: deque[int] = deque()
        self._armed: dict[tuple[int, int, int | None], Armed] = {}
        self._numbers = itertools.count(1)

    def record(self, program: Any, dims: tuple[int, ...]) -> Record:
        """The fault record for launches of ``program`` over ``dims``."""
        known = self._records.setdefault(program, weakref.WeakValueDictionary())
        found = known.get(dims)
        if found is None:
            try:
                address = self._free.popleft()
            except IndexError:
                self._memory.append(memory.pinned(self.device, _TOGETHER * FAULT.size, True))
                address, *more = [self._memory[-1][2] + k * FAULT.size for k in range(_TOGETHER)]
                self._free += more
            ctypes.memset(address, 0, FAULT.size)
            found = known[dims] = Record(address, self._free)
        return found

    def arm(self, program: Any, dims: tuple[int, ...], fault: Record | None, log: Log | None,
            stream: int | None) -> None:  # fmt: skip
        """Launches were given to a stream that may write to these; None: they may come at any time."""
        key = fault.address if fault is not None else 0, log.address if log is not None else 0, stream
        self._armed[key] = Armed(program, dims, fault, log, stream, next(self._numbers))

    def number(self) -> int:
        """To be asked for before all is waited for that was given so far: what was given then has numbers below it."""
        return next(self._numbers)

    def look(self, stream: int | None = None, upto: int = 0) -> None:
        """Print what was printed; raise what was reported first.

        Args:
            stream: all work of that stream is done; None: that of all streams.
            upto: that is, what was given before this :meth:`number`; 0: nothing is, only faults are looked for.

        Raises:
            IndexOutOfRange, KernelAssertionError, …: it.
        """
        failed: Exception | None = None
        for key, one in list(self._armed.items()):
            over = one.number < upto and (stream is None or one.stream in (stream, None))
            if over and one.log is not None and (one.stream is not None or stream is None):
                one.log.show()  # what may run at any time must not run now
            fault = ctypes.string_at(one.fault.address, FAULT.size) if one.fault is not None else b""
            if one.fault is not None and int.from_bytes(fault[:8], "little") == COMPLETE:
                ctypes.memset(one.fault.address, 0, FAULT.size)
                failed = failed or one.program.error(fault, one.dims)
            if over and one.stream is not None and self._armed.get(key) is one:
                self._armed.pop(key, None)
        if failed is not None:
            raise failed
