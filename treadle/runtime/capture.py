"""Captures: operations are written down instead of done, as the entries of a graph.

A capture belongs to the thread that began it. While there is one anywhere, native launchers decline, so that every
launch comes by :class:`runtime.launch.Command`, which asks :func:`here`; array methods ask before they write, and
refuse to read. What is written down are addresses: so a capture keeps all memory that its entries name.
"""

from __future__ import annotations

import struct
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import CaptureError
from ..base.forks import fresh_lock
from . import native
from .device import device_at, far
from .memory import allocate, span

if TYPE_CHECKING:
    from .runs import Runs

PAGE = 4096
_nowhere = [1 << 62]  # where transient memory lies next: at addresses that no process has
active = 0  # captures under way in this process; most programs never have one
_lock = fresh_lock(globals(), threading.RLock)  # a finalizer may run while it is held
_WORDS = struct.Struct("<3q")


@dataclass(slots=True, eq=False)
class Launch:
    """A kernel with its grid and its arguments, as bytes. ``most``: blocks of threads, 0 for as many as there are."""

    program: Any  # runtime.launch.Program
    packed: bytes
    dims: tuple[int, ...]
    most: int = 0


@dataclass(slots=True, eq=False)
class Call:
    """A native function of three words. ``words``: these, and what lies behind them; ``pointers``: where addresses
    stand among them; ``own``: where the address of a place among them stands, and how far on that is; ``nbytes``: that
    it moves."""

    name: str
    words: bytes
    pointers: tuple[int, ...]
    own: tuple[tuple[int, int], ...] = ()
    nbytes: int = 0


@dataclass(slots=True, eq=False)
class Branch:
    """One of two bodies, as the int32 at address ``condition`` says when it is reached."""

    condition: int
    on_true: list[Any]
    on_false: list[Any]


@dataclass(slots=True, eq=False)
class Loop:
    """``body`` again and again, while the int32 at address ``condition`` is not 0."""

    condition: int
    body: list[Any]


Entry = Launch | Call | Branch | Loop


def every(entries: list[Entry]) -> Iterator[Entry]:
    """All entries, those of bodies included."""
    for entry in entries:
        yield entry
        if isinstance(entry, Branch):
            yield from every(entry.on_true)
            yield from every(entry.on_false)
        elif isinstance(entry, Loop):
            yield from every(entry.body)


class Captured(np.ndarray):
    """Memory that was allocated in a capture, as arrays hold it. The graph holds what lies below, so that it can see
    when the last array over it has gone."""


@dataclass(slots=True, eq=False)
class Block:
    """Memory that belongs to a graph: where it lies, what owns it, and the arrays' hold on it, if any is left.

    ``plane``: the block is *transient* (see :meth:`Capture.transient`) and made of planes of so many bytes.
    """

    address: int
    nbytes: int
    memory: Any
    held: Any = None  # weak reference to a Captured
    plane: int = 0

    @property
    def dead(self) -> bool:
        """Whether no array shows it any more."""
        return self.nbytes > 0 and (self.held is None or self.held() is None)


@dataclass(eq=False)
class Capture:
    """One capture under way. ``body`` is what entries go to now. ``outer``: the capture inside which it is, which then
    was open to that (``nests``), as those of functions that may capture graphs of their own."""

    device: Any
    entries: list[Any] = field(default_factory=list)
    kept: dict[int, Any] = field(default_factory=dict)  # memory by id
    blocks: list[Block] = field(default_factory=list)
    paused: bool = False
    ended: bool = False
    writes_down = True  # what it takes is not done yet
    nests: bool = False
    outer: Capture | None = None
    lost: Any = None  # what happens if it goes before it has ended
    story: Any = None  # what a tape will be told when the graph runs
    graded: set[tuple[int, int]] = field(default_factory=set)  # where arrays with gradients lie

    def __post_init__(self) -> None:
        self.body = self.entries

    # ---- entries

    def launch(self, command: Any) -> None:
        """Write down a launch."""
        self.keep(command.values)
        if 0 not in command.dims:
            self.body.append(Launch(command.program, bytes(command.packed), command.dims, command.most))

    def call(self, name: str, words: Sequence[int], pointers: tuple[int, ...], nbytes: int = 0) -> None:
        """Write down a call of the native function ``name``; words number ``pointers`` are addresses."""
        self.body.append(Call(name, _WORDS.pack(*words), tuple([8 * k for k in pointers]), (), nbytes))

    def call_with_table(self, name: str, words: Sequence[int], table: bytes, pointers: tuple[int, ...],
                        nbytes: int) -> None:  # fmt: skip
        """The same of a function whose first word is the address of ``table``."""
        packed = _WORDS.pack(0, *words) + table
        self.body.append(Call(name, packed, pointers, ((0, _WORDS.size),), nbytes))

    def runs(self, name: str, runs: Runs, aside: int) -> None:
        """Write down that runs of bytes are kept at ``aside``, put back from there, or swapped with it."""
        table = b"".join([struct.pack("<4q", *row) for row in runs.rows])
        places = tuple([_WORDS.size + 32 * k for k in range(len(runs.rows))])
        self.call_with_table(name, (len(runs.rows), aside), table, (16, *places), runs.nbytes)

    def move(self, into: int, source: int, nbytes: int) -> None:
        """Write down a copy of bytes."""
        self.call("move", (into, source, nbytes), (0, 1), nbytes)

    def include(self, graph: Any) -> None:
        """Write down all that another graph has."""
        self.body += graph.entries
        self.graded |= graph.capture.graded
        self.include_memory(graph)

    def include_memory(self, graph: Any) -> None:
        """Hold the memory that another graph works on, and have what was allocated for it."""
        known = {id(block) for block in self.blocks}
        ours = self.device.queue is None
        self.blocks += [block for block in graph.blocks if (block.plane or ours) and id(block) not in known]
        self.hold(graph)

    @contextmanager
    def inside(self) -> Iterator[list[Any]]:
        """What is written down in the block goes to a body of its own."""
        outer, self.body = self.body, []
        try:
            yield self.body
        finally:
            self.body = outer

    @contextmanager
    def outside(self) -> Iterator[None]:
        """What is written down in the block comes before the bodies that are open."""
        inner, self.body = self.body, self.entries
        try:
            yield
        finally:
            self.body = inner

    # ---- memory

    def keep(self, things: Iterable[Any]) -> None:
        """Hold arrays, also those in structs, and their memory and that of gradients; but nothing that was allocated
        for the graph, which shall know what the program lets go."""
        for thing in things:
            for a in _arrays(thing):
                if a._grad is not None:
                    self.graded.add(extent(a))
                memories = [*_memories(a)]
                outside = [memory for memory in memories if not isinstance(memory, Captured)]
                for held in outside if len(outside) < len(memories) else (*outside, a):
                    self.hold(held)

    def own(self, made: tuple[Any, int, int], nbytes: int, zeroed: bool) -> tuple[Any, int, int]:
        """Take over memory that was just allocated for an array; if ``zeroed``, every replay does so again."""
        buffer, at, address = made
        held = np.frombuffer(buffer, np.uint8).view(Captured)
        self.blocks.append(Block(address, nbytes, buffer, weakref.ref(held)))
        if zeroed and nbytes:
            self.call("zero", (address, 0, nbytes), (0,), nbytes)
        return held, at, address

    def transient(self, nbytes: int, plane: int) -> int:
        """The address of memory that is not there: of ``nbytes``, in planes of ``plane`` bytes.

        A plane has a number for each thread of a grid of one dimension, side by side. A thread must write to its own
        numbers before it reads them, unless nobody ever writes to them: then they are 0. Nobody sees them afterwards,
        so what only serves them is not done, and launches that follow each other find them in a chunk's scratch. Where
        that cannot be, the graph makes room for them.
        """
        with _lock:
            address, _nowhere[0] = _nowhere[0], _nowhere[0] + -(-nbytes // PAGE) * PAGE
        self.blocks.append(Block(address, nbytes, None, plane=plane))
        return address

    def room(self, nbytes: int, zeroed: bool = False) -> int:
        """The address of memory that only entries use."""
        buffer, _, address = self.device.reserve(max(nbytes, 1), False)
        self.blocks.append(Block(address, nbytes, buffer))
        if zeroed and nbytes:
            self.call("zero", (address, 0, nbytes), (0,), nbytes)
        return address

    def zeros(self, nbytes: int) -> tuple[Any, int]:
        """Memory of zeros that only entries use: what keeps it, and its address."""
        return None, self.room(nbytes, zeroed=True)

    def aside(self, nbytes: int) -> tuple[int, Any]:
        """The address of memory that only entries use, and what keeps it."""
        return self.room(nbytes), self.blocks[-1].memory

    def hold(self, thing: Any) -> None:
        """Hold whatever keeps memory alive."""
        self.kept[id(thing)] = thing

    def fill(self, target: np.ndarray, value: np.ndarray) -> bool:
        """Write down that all of ``target`` gets one value, where the device has a way of its own to do that."""
        words = None if self.device.queue is None else self.device.queue.filling(target, value)
        if words is not None:
            self.call("fill", words, (0,), target.nbytes)
        return words is not None

    def constant(self, rows: np.ndarray) -> np.ndarray:
        """``rows`` as they are now, for all replays, where the graph can read them."""
        held = np.array(rows) if self.device.queue is None else self.device.queue.uploaded(rows)
        self.hold(held)
        return held


def extent(a: Any) -> tuple[int, int]:
    """The addresses from which and up to which an array lies."""
    e = a._element
    low, high = span(a.shape + e.inner, a.strides + e.inner_steps(a.component_stride), e.dtype.itemsize)
    return a._address + low, a._address + high


def _memories(a: Any) -> Iterator[Any]:
    """What keeps the memory of an array alive, and that of its gradient."""
    memory = a._memory
    if memory is None:
        memory = getattr(a, "_ref", None)
    if memory is not None:
        yield memory
    if a._grad is not None:
        yield from _memories(a._grad)


def _arrays(thing: Any) -> Iterator[Any]:
    """An array, or all those in a struct instance."""
    if hasattr(thing, "_address"):
        yield thing
    elif hasattr(thing, "_parts"):
        for part in thing._parts:
            yield from _arrays(part)
    elif hasattr(type(thing), "__treadle_type__") and hasattr(type(thing).__treadle_type__, "fields"):
        for name, _ in type(thing).__treadle_type__.fields:
            yield from _arrays(getattr(thing, name))


class _Here(threading.local):
    """What each thread has of its own, which goes with it."""

    capture: Capture | None = None


_here = _Here()


def here() -> Capture | None:
    """The capture of this thread, if it has one. Ask only where :data:`active` is not 0."""
    return _here.capture


def sink(device: Any) -> Any:
    """What takes operations on memory of ``device``: the capture of this thread, or the queue of a device whose memory
    the host cannot reach; None where the host does them at once."""
    now = here() if active else None
    if now is not None and (now.device is device or now.device.queue is device.queue is None):
        return now
    return device.queue


def sink_between(a: Any, source: Any) -> Any:
    """What takes an assignment of ``source`` to the array ``a``: :func:`sink` of its device, or the capture of a GPU
    whose memory goes to pinned memory of the host, which that reaches by itself."""
    found = sink(a.device)
    if found is None and active and a.pinned and getattr(source, "_address", None) is not None:
        now = here()
        if now is not None and now.device.queue is not None and now.device is source.device:
            return now
    return found


def sink_at(address: int) -> Any:
    """The same of the memory at ``address``."""
    where = device_at(address) if far else None
    if where is not None:
        return sink(where)
    now = here() if active else None
    return now if now is not None and now.device.queue is None else None


def zeros(nbytes: int, beside: int) -> tuple[Any, int]:
    """Memory of zeros that no array owns, where the memory at ``beside`` is: what keeps it, and its address."""
    now = sink_at(beside) if active or far else None
    if now is not None:
        return now.zeros(nbytes)
    buffer, _, address = allocate(nbytes, True)
    return buffer, address


def recording() -> bool:
    """Whether this thread's operations are written down."""
    return active > 0 and here() is not None


def deferring(a: Any) -> bool:
    """Whether what is done to the array ``a`` is not done by the host at once, so that nobody can look at its content
    in between."""
    return sink(a.device) is not None


def begin(device: Any) -> Capture:
    """Let this thread's operations on ``device`` be written down.

    Raises:
        CaptureError: they are already.
    """
    now = here()
    if now is not None and not now.nests:
        raise CaptureError("a graph is being captured already", hint="call wp.capture_end first")
    made = _here.capture = Capture(device, outer=now)
    _begun(made)
    return made


def end() -> Capture:
    """The capture of this thread, which is over.

    Raises:
        CaptureError: there is none.
    """
    found = _here.capture
    if found is None:
        raise CaptureError("no graph is being captured", hint="call wp.capture_begin first")
    found.ended = True
    _here.capture = found.outer
    if found.lost is not None:
        found.lost.detach()
    _count(-1)
    return found


def _begun(capture: Capture) -> None:
    """A capture is under way now, until it ends, or is lost with the thread that began it."""
    _count(1)
    capture.lost = weakref.finalize(capture, _count, -1)
    capture.lost.atexit = False


@contextmanager
def declining() -> Iterator[None]:
    """In the block native launchers decline, so that every launch comes by way of Python."""
    _count(1)
    try:
        yield
    finally:
        _count(-1)


def _count(change: int) -> None:
    global active
    with _lock:
        active += change
        native.driver().env["capturing"] = active


def pause() -> Capture:
    """The capture of this thread, which goes on with :func:`resume`; until then operations are done at once.

    Raises:
        CaptureError: there is none.
    """
    found = end()
    found.paused, found.ended = True, False
    return found


def resume(paused: Capture) -> None:
    """Go on with a capture, also in another thread.

    Raises:
        CaptureError: it is not paused, or this thread captures another.
    """
    if not getattr(paused, "paused", False):
        raise CaptureError("the capture is not paused")
    if here() is not None:
        raise CaptureError("a graph is being captured already", hint="call wp.capture_end first")
    paused.paused = False
    _here.capture = paused
    _begun(paused)


def refuse(what: str, hint: str = "", device: Any = None) -> None:
    """Raise CaptureError if this thread captures, and what it captures may touch memory of ``device``."""
    now = here() if active else None
    if now is not None and (device is None or now.device is device or now.device.queue is None):
        raise CaptureError(
            f"{what} cannot be captured: operations are deferred until wp.capture_launch, so there is nothing to read",
            hint=hint or "read it before the capture, or after the graph was launched",
        )
