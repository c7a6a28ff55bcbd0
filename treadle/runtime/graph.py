"""Graphs: what a capture wrote down, as a table that one native call runs.

Entries become rows of ``ENTRY``, bodies of branches and loops lie in line between them; arguments lie side by side in
one block of memory. :meth:`Graph.launch` runs the table as it was captured. :meth:`Graph.native` gives it to other
native code, with buffers that change from call to call.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
import weakref
from array import array as words
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from ..base.config import config
from ..base.errors import CaptureError, LaunchError
from ..types.core import u8
from ..types.records import (
    ABSOLUTE,
    ARGS_BYTES,
    ENTRY,
    ENTRY_KINDS,
    GRAPH,
    RELOC,
    REPLAY,
    SCRATCH,
    SELF,
    SLOT_HEAD,
    STOPPED,
    Memory,
)
from ..types.values import class_of
from . import chains, fast, native, prints, watch
from .array import array
from .array_views import product
from .capture import Block, Branch, Call, Capture, Entry, Launch, Loop, every, extent
from .chains import Blocks, Chain, addresses, chained, writes_elsewhere, written_by
from .dead import needed, read_by_name, settled
from .launch import WORTH_WORKERS
from .ranges import Ranges
from .system import usable_cores
from .transients import Transients

LASTING = 512 * WORTH_WORKERS  # ns of work from which on Ctrl-C should end a replay
NO_MEMORY, NOT_APART = 3, 4  # what a replay answers where scratch cannot be had, or buffers lie over each other
_Report = ctypes.c_int64 * len(REPLAY.at)
_ALIGN = 64


class Functions(NamedTuple):
    """The native functions that graphs are made of: ``address`` of the replay, ``replay`` as Python calls it where it
    must; ``launch``, the address of what Python calls otherwise; ``calls``, of what entries call, by name."""

    address: int
    launch: int
    replay: Any
    calls: dict[str, int]


@cache
def functions() -> Functions:
    """They are loaded once."""
    library = native.helper("graph", lambda: native.room().graph_binary())
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))  # other native code may hold their addresses
    pieces = native.helper("pieces", lambda: native.room().pieces_binary())
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(pieces))
    address, launch = (library.addresses[name] for name in ("treadle_replay", "treadle_launch_graph"))
    calls = {name: library.addresses[f"treadle_{name}"] for name in ("move", "zero", "spread", "sum")}
    calls |= {name: pieces.addresses[f"treadle_{name}"] for name in ("exchange", "keep", "put", "swap")}
    native.driver().env["print_log"] = ctypes.cast(_print_log, ctypes.c_void_p).value or 0
    replay = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)(address)
    return Functions(address, launch, replay, calls)


_tables: weakref.WeakValueDictionary[int, Table] = weakref.WeakValueDictionary()  # by address


@ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
def _print_log(table: int, number: int, data: int, used: int) -> None:
    """Native code calls it when a kernel has printed."""
    program = _tables[table].entries[number].program
    prints.write(ctypes.string_at(data, used), program.entry.meta["prints"])


class Native(NamedTuple):
    """A graph for other native code: ``i32 address(context, table, report)``.

    ``table`` points to the addresses of the buffers that take the place of the inputs, in their order; it may be null
    where there are none. ``report``, which may be null, gets what :meth:`Graph.error` reads where the answer is not 0.
    Several threads may call it at once, if the buffers let them. ``keepalive`` must live as long as calls are made.
    """

    address: int
    context: int
    keepalive: Any


_first = threading.RLock()


def first() -> threading.RLock:
    """What to hold while a graph is made ready for its runs, which several threads may want at once."""
    return _first


def _forked() -> None:
    """In a child process whoever held the lock is gone."""
    global _first
    _first = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Graph:
    """What was captured; run it with :func:`capture_launch`. It keeps all memory that it works on.

    Made by :class:`ScopedCapture` and :func:`capture_end`.
    """

    def __init__(self, made: Capture):
        self.device = made.device
        self.entries: list[Entry] = made.entries
        self.blocks: list[Block] = made.blocks
        self.capture = made
        self._kept = made.kept
        self._written: list[Any] | None = None
        self._read: list[tuple[int, int]] | None = None
        self._table: Table | None = None
        self._times = 1  # how often a run does everything
        self._run: Any = None

    def launch(self, stream: Any = None, times: int = 1) -> None:
        """Run everything that was captured, ``times`` times, and wait for its end. ``stream``: for devices that have
        several.

        Raises:
            IndexOutOfRange, KernelAssertionError, …: what a kernel reported.
            KeyboardInterrupt: Ctrl-C ended it.
        """
        if self._run is None:
            self._lay_out()
        if times != self._times:
            self._times = times
            self._table.repeat(times)
        failed = watch.replay(self, self._run) if watch.watchers else self._run()
        if failed is not None:
            raise self.error(failed[0], failed[8:], self._table)

    def use(self, new: array, old: array) -> None:
        """From now on work on ``new``, an array of the same layout, where ``old`` was captured, by no view of it."""
        if new.read_only and any([w._address <= old._address < w._address + w.nbytes for w in self.written()]):
            new._refuse_writes()
        self._kept[id(new)] = new
        self._lay_out().move(old._address, new._address)

    def _lay_out(self) -> Table:
        """The table of runs, made once, whoever comes first: another one would take memory from under those that run
        the first."""
        with first():
            if self._table is None:
                table = Table(self)
                self._table, self._run = table, table.callable()
            return self._table

    @property
    def scratch(self) -> int:
        """Bytes of memory of its own that a run takes; 0 before the first one."""
        return 0 if self._table is None else self._table.scratch

    def written(self) -> list[Any]:
        """All memory that a run may write, as arrays of bytes; what only the graph knows is left out."""
        if self._written is None:
            ranges = Ranges([r for entry in every(self.entries) for r in written_by(entry)])
            for block in self.blocks:
                if block.dead:
                    ranges.cut(block.address, block.address + block.nbytes)
            self._written = [
                array(ptr=low, shape=high - low, dtype=class_of(u8), device=self.device) for low, high in ranges
            ]
        return self._written

    def read(self) -> list[tuple[int, int]]:
        """All memory that a run may read, as far as arrays lead there."""
        if self._read is None:
            self._read = [*Ranges([r for entry in every(self.entries) for r in read_by_name(entry)])]
        return self._read

    def native(self, inputs: Sequence[Any] = (), forgotten: Sequence[Any] | None = None) -> Native:
        """The graph for other native code.

        Args:
            inputs: arrays in whose place each call gives buffers of the same layout. All entries that work on their
                memory, also by views, then work on those.
            forgotten: those of the inputs that nobody reads after a call. Where they are given, what only serves them,
                or memory that no array shows any more, is left out.

        Memory that was allocated in the capture, and that no array shows any more, is each call's own.

        Raises:
            CaptureError: two inputs lie over each other, or a kernel has too many arguments.
        """
        table = Table(self, inputs, forgotten)
        return Native(functions().address, table.address, table)

    def error(self, status: int, report: bytes, table: Any) -> BaseException:
        """The exception for what a call of ``table`` (the ``keepalive``) answered and reported."""
        if status == NOT_APART:
            return LaunchError("buffers that were given to a graph lie over each other")
        if status & STOPPED and status != NO_MEMORY:
            return KeyboardInterrupt()
        number, *_ = np.frombuffer(report, np.int64).tolist()
        entry = table.entries[number] if status != NO_MEMORY else None
        if isinstance(entry, Launch):
            return entry.program.error(report[8:], entry.dims)
        return MemoryError("no memory for a graph's scratch") if entry is None else LaunchError("a graph failed")

    def __repr__(self) -> str:
        return f"<graph of {len(self.entries)} operations on {self.device}>"


class Table:
    """A graph laid out for native code; ``entries`` tells for each row what it came from.

    ``inputs``: arrays whose memory changes from call to call; ``forgotten``: see :meth:`Graph.native`. ``uses`` says of
    each input whether it is "unused", "read", "written", or "made": written before anything of it is read.
    """

    def __init__(self, graph: Graph, inputs: Sequence[Any] = (), forgotten: Sequence[Any] | None = None):
        self._keep = graph.blocks, graph._kept
        entries, unread = graph.entries, Ranges()
        if forgotten is not None:
            unseen = [(b.address, b.address + b.nbytes) for b in graph.blocks if b.dead]
            dead = Ranges([*unseen, *[_range_of(a, 0)[:2] for a in forgotten]])
            entries, unread = needed(settled(needed(entries, dead)[0]), dead)
        self._transients = Transients(graph.blocks)
        entries = self._transients.serving(entries)
        self.ranges = sorted([_range_of(a, k) for k, a in enumerate(inputs)])
        self.uses = _uses(entries, self.ranges, unread)
        _refuse_overlaps(self.ranges)
        self.scratch, self._places = _own_memory(graph.blocks if inputs else [])
        self.entries: list[Any] = []
        self.work, self.loops, self.chains, self.merged = 0.0, False, 0, 0
        self._blocks = Blocks([b for b in graph.blocks if b.dead], entries)
        self._tables: list[Any] = []
        self._rows: list[dict[str, int]] = []
        self._blobs = bytearray()
        self._relocs: list[tuple[int, int, int]] = []
        self._own: list[tuple[int, int]] = []  # addresses in the block that lead to places in it
        self._places_of: dict[int, list[int]] = {}  # where addresses stand in the block
        self._gone: set[int] = set()  # addresses of transient blocks that chains have scratch for
        self._add(entries)
        self._lay_out()

    @property
    def short(self) -> bool:
        """Whether a call is over before other Python threads would notice."""
        return self.work < WORTH_WORKERS and not self.loops

    def callable(self) -> Callable[[], bytes | None]:
        """What runs the table; it gives None where all is done, else the answer and the report."""
        found = functions()
        made = fast.without_arguments(found.launch, self.address)
        if made is not None:
            return made

        def run() -> bytes | None:
            report = _Report()
            status = found.replay(self.address, None, report)
            return bytes([status, *bytes(7), *bytes(report)]) if status else None

        return run

    def repeat(self, times: int) -> None:
        """Let each call do everything so often."""
        self._record["times"] = times

    # ---- rows

    def _add(self, body: list[Entry]) -> None:
        found = [*chained(body, self._blocks)]
        gone = [block for chain in found if isinstance(chain, Chain) for block in chain.blocks]
        self._gone |= {block.address for block in gone if block.plane}
        for entry in found:
            if isinstance(entry, Chain):
                self._add_chain(entry)
            elif isinstance(entry, Launch):
                self._add_launch(entry)
            elif isinstance(entry, Call) and entry.name == "zero" and _lies_in(entry, gone):
                continue
            elif isinstance(entry, Call):
                self.work += entry.nbytes / 10
                row = self._row("call", entry, code=functions().calls[entry.name])
                self._arguments(row, entry.words, entry.pointers, entry.own)
            elif isinstance(entry, Branch):
                skip = self._condition(entry)
                self._add(entry.on_true)
                if entry.on_false:
                    over = self._row("jump", entry)
                    skip["target"] = len(self._rows)
                    self._add(entry.on_false)
                    over["target"] = len(self._rows)
                else:
                    skip["target"] = len(self._rows)
            else:
                self.loops, start = True, len(self._rows)
                skip = self._condition(entry)
                self._add(entry.body)
                self._row("jump", entry)["target"] = start
                skip["target"] = len(self._rows)

    def _row(self, kind: str, entry: Entry, **fields: int) -> dict[str, int]:
        row = dict.fromkeys(ENTRY.at, 0) | {"kind": ENTRY_KINDS[kind], **fields}
        self._rows.append(row)
        self.entries.append(entry)
        return row

    def _condition(self, entry: Branch | Loop) -> dict[str, int]:
        row = self._row("skip", entry)
        self._arguments(row, entry.condition.to_bytes(8, "little"), (0,))
        return row

    def _add_launch(self, entry: Launch) -> None:
        program, size = entry.program, product(entry.dims)
        meta, record = program.entry.meta, program.record
        if not program.entry.address:  # the null device
            return
        self.work += size * max(meta.get("weight", 1.0), 1e-3)
        self.loops = self.loops or program.lasts(entry.packed)
        plain = not meta.get("atomics") and record["bounded"] and size < record["pool_size"]
        direct = plain and not meta.get("prints") and not meta.get("races")
        row = self._row("run", entry, code=program.entry.address) if direct else self._row(
            "launch", entry, code=program.record.address)  # fmt: skip
        row.update(size=size, checked=int(program.checked), prints=int(bool(meta.get("prints"))))
        row.update({f"dim{k}": n for k, n in enumerate((*entry.dims, 1, 1, 1)[:4])})
        self._arguments(row, entry.packed, program.pointers)

    def _add_chain(self, chain: Chain) -> None:
        """One kernel that does all of it, where that is to be had, else its launches chunk by chunk."""
        one = chains.merge(chain) if chains.merge is not None and chain.mergeable else None
        if one is None:
            self._add_links(chain)
            return
        self.merged += 1
        apart = self._row("apart", one, **self._ranges_of(chain)) if self.ranges or self.scratch else None
        self._add_launch(one)
        if apart is not None:
            over = self._row("jump", one)
            apart["target"] = len(self._rows)
            for member in chain.members:
                self._add_launch(member)
            over["target"] = len(self._rows)

    def _add_links(self, chain: Chain) -> None:
        dims, size = chain.members[0].dims, product(chain.members[0].dims)
        self.chains += 1
        self.loops = self.loops or any(
            not m.program.record["bounded"] or m.program.lasts(m.packed) for m in chain.members
        )
        row = self._row("chain", chain.members[0], size=size, target=len(chain.members), chunk=chain.chunk)
        row.update({f"dim{k}": n for k, n in enumerate((*dims, 1, 1, 1)[:4])})
        row.update(shared=int(chain.work >= WORTH_WORKERS), checked=int(chain.members[0].program.checked))
        row.update(self._ranges_of(chain), bound=int(chain.bound), serial=1)
        content, pointers, patches, places = bytearray(), [], [], []
        for k, member in enumerate(chain.members):
            at = len(content)
            places.append(at)
            content += chain.arguments(k)
            content += bytes(-len(content) % _ALIGN)
            pointers += [at + pointer for pointer in member.program.pointers]
            patches += [(at + p.at, p.step, p.offset) for p in chain.patches[k]]
        self._arguments(row, bytes(content), tuple(pointers), limit=sys.maxsize)
        slots = max(usable_cores(), config.workers or 1)
        slot = -(-(SLOT_HEAD + len(content) + chain.scratch * chain.chunk) // _ALIGN) * _ALIGN
        row.update(patches=self._table(patches), npatches=len(patches), slots=slots, slot=slot)
        for member, place in zip(chain.members, places, strict=True):
            if chain.bound:
                self.work += size * max(member.program.entry.meta.get("weight", 1.0), 1e-3)
                own = self._row("run", member)
            else:
                self._add_launch(member)
                own = self._rows[-1]
            own.update(entry=member.program.entry.address, place=place)

    def _ranges_of(self, chain: Chain) -> dict[str, int]:
        """Where the memory of a chain lies, if that depends on the call."""
        found: dict[tuple[int, int, int], bool] = {}
        for u in [u for each in chain.uses for u in each] if self.ranges or self.scratch else ():
            if self._transients.at(u.low) is not None:
                continue
            symbol, delta = self._symbol(u.low)
            where = (ABSOLUTE, u.low) if symbol is None else (symbol, delta)
            key = *where, u.high - u.low
            found[key] = u.written or found.get(key, False)
        return {"ranges": self._table([(*key, int(written)) for key, written in found.items()]), "nranges": len(found)}

    def _table(self, rows: Sequence[Sequence[int]]) -> int:
        """The address of a table of numbers, which stays as long as this one."""
        made = words("q", [n for row in rows for n in row] or [0])
        self._tables.append(made)
        return made.buffer_info()[0]

    def _arguments(
        self, row: dict[str, int], content: bytes, pointers: tuple[int, ...], own: tuple[tuple[int, int], ...] = (),
        limit: int = ARGS_BYTES,
    ) -> None:  # fmt: skip
        """Append arguments to the block; note which addresses depend on the call."""
        begin, content = len(self._blobs), self._with_room(content, pointers)
        self._blobs += content
        self._blobs += bytes(-len(self._blobs) % _ALIGN)
        found = []
        for at in pointers:
            self._places_of.setdefault(int.from_bytes(content[at : at + 8], "little"), []).append(begin + at)
        if self.ranges or self.scratch:
            for at in pointers:
                symbol, delta = self._symbol(int.from_bytes(content[at : at + 8], "little"))
                if symbol is not None:
                    found.append((at, symbol, delta))
        if found:
            if len(content) > limit:
                raise CaptureError("a kernel with more than 8 KiB of arguments cannot be given other buffers")
            found += [(at, SELF, delta) for at, delta in own]
        row.update(args=begin, nbytes=len(content), relocs=len(self._relocs), nrelocs=len(found))
        self._relocs += found
        self._own += [(begin + at, begin + delta) for at, delta in own]

    def _with_room(self, content: bytes, pointers: tuple[int, ...]) -> bytes:
        """Arguments whose addresses of transient memory are those of room for it, unless chains have scratch for it."""
        if not self._transients.blocks:
            return content
        changed = bytearray(content)
        for at in pointers:
            (address,) = struct.unpack_from("<Q", content, at)
            block = self._transients.at(address)
            if block is not None and block.address not in self._gone:
                struct.pack_into("<Q", changed, at, self._transients.real(address))
        return bytes(changed)

    def _symbol(self, address: int) -> tuple[int | None, int]:
        """What of a call an address depends on, and how many bytes behind it it lies."""
        for table, symbols in ((self.ranges, True), (self._places, False)):
            k = bisect_right(table, address, key=itemgetter(0)) - 1
            if k >= 0 and address < table[k][1]:
                low, _, at, number = table[k]
                return (number, address - at) if symbols else (SCRATCH, address - low + at)
        return None, 0

    # ---- memory

    def _lay_out(self) -> None:
        """Make the memory that native code reads."""
        blob = self._blob = np.zeros(len(self._blobs) + _ALIGN, np.uint8)
        base = blob.ctypes.data + -blob.ctypes.data % _ALIGN
        blob[base - blob.ctypes.data :][: len(self._blobs)] = np.frombuffer(self._blobs, np.uint8)
        for at, to in self._own:
            ctypes.c_uint64.from_address(base + at).value = base + to
        relocs = words("q", [n for row in self._relocs for n in row] or [0])
        first = relocs.buffer_info()[0]
        for row in self._rows:
            row["args"] += base
            row["relocs"] = first + row["relocs"] * RELOC.size
        order = [*ENTRY.at]
        table = words("Q", [row[name] & 0xFFFFFFFFFFFFFFFF for row in self._rows for name in order] or [0])
        self._memory = relocs, table
        for k, row in enumerate(self._rows):
            if row["slots"]:
                self.scratch = -(-self.scratch // _ALIGN) * _ALIGN
                table[k * len(order) + order.index("place")] = self.scratch
                self.scratch += row["slots"] * row["slot"]
        record = self._record = Memory(GRAPH)
        record["env"], record["entries"] = native.driver().env.address, table.buffer_info()[0]
        record["count"], record["scratch"] = len(self._rows), self.scratch
        record["listens"], record["short"] = self.loops or self.work > LASTING, self.short
        lone = self._rows[:1] and self._rows[0]["kind"] == ENTRY_KINDS["chain"] and not self._rows[0]["nranges"]
        record["inside"] = bool(lone) and len(self._rows) == self._rows[0]["target"] + 1
        record["times"] = 1
        self.address = record.address
        self._base, self._chain_rows = base, [k for k, row in enumerate(self._rows) if row["slots"]]
        del self._rows, self._blobs, self._relocs, self._own, self._blocks
        _tables[self.address] = self
        weakref.finalize(self, _free_spare, record)

    def move(self, old: int, new: int) -> None:
        """Let what names the address ``old`` name ``new`` from now on."""
        places = self._places_of.pop(old, [])
        self._places_of.setdefault(new, []).extend(places)
        for at in places:
            ctypes.c_uint64.from_address(self._base + at).value = new
        serial, (_, table) = [*ENTRY.at].index("serial"), self._memory
        for k in self._chain_rows:
            table[k * len(ENTRY.at) + serial] += 1


def _free_spare(record: Memory) -> None:
    if record["spare"]:
        ctypes.pythonapi.PyMem_RawFree(ctypes.c_void_p(record["spare"]))


Range = tuple[int, int, int, int]  # first byte, end, and see below


def _range_of(a: Any, number: int) -> Range:
    """Where an array lies, the address of its first element, and its number."""
    return *extent(a), a._address, number


def _refuse_overlaps(ranges: list[Range]) -> None:
    for (_, end, *_), (begin, *_) in zip(ranges, ranges[1:]):
        if begin < end:
            raise CaptureError("inputs of a graph lie over each other")


def _uses(entries: list[Entry], ranges: list[Range], unread: Ranges) -> list[str]:
    """What a graph does with its inputs, in their order."""
    named = [address for entry in every(entries) for address in addresses(entry)]
    written = Ranges([r for entry in every(entries) for r in written_by(entry)])
    anywhere = any(writes_elsewhere(entry) for entry in every(entries))
    found = ["unused"] * len(ranges)
    for low, high, _, number in ranges:
        if anywhere or written.meets(low, high):
            found[number] = "made" if unread.holds(low, high) and not anywhere else "written"
        elif any(low <= address < high for address in named):
            found[number] = "read"
    return found


def _lies_in(zero: Call, blocks: list[Block]) -> bool:
    (low,) = struct.unpack_from("<Q", zero.words)
    return any(block.address <= low and low + zero.nbytes <= block.address + block.nbytes for block in blocks)


def _own_memory(blocks: list[Block]) -> tuple[int, list[Range]]:
    """How much scratch a call needs, and which bytes stand where in it: of blocks that no array shows any more."""
    places, total = [], 0
    for block in blocks:
        if block.dead and not block.plane:
            places.append((block.address, block.address + block.nbytes, total, 0))
            total += -(-block.nbytes // _ALIGN) * _ALIGN
    return total, sorted(places)
