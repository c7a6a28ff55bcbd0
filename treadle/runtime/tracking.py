"""Book of the memory that arrays take: how much, in which part of the program, by which line, and what still lives."""

from __future__ import annotations

import builtins
import linecache
import os
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TextIO

from ..base.forks import fresh_lock
from .allocators import observe
from .device import Device

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@dataclass
class _Entry:
    """A living block: its bytes, the device, the scope it was made in, the line that asked for it."""

    nbytes: int
    device: str
    scope: str
    file: str
    line: int
    function: str


@dataclass
class _Book:
    """What was allocated since the book was opened. Keys of the counters are devices, or scopes with devices."""

    live: dict[int, _Entry] = field(default_factory=dict)
    count: Counter = field(default_factory=Counter)
    nbytes: Counter = field(default_factory=Counter)
    current: Counter = field(default_factory=Counter)
    peak: Counter = field(default_factory=Counter)
    serial: int = 0


_lock = fresh_lock(globals(), threading.RLock)  # a finalizer may run while the book is written
_scopes = threading.local()
_book = _Book()
_open = 0  # how many trackers are active


def _note(device: Device, buffer: Any, nbytes: int) -> None:
    """A new block: the observer of the allocators."""
    path = "/".join(getattr(_scopes, "stack", ()))
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    code, where = frame.f_code, device.alias
    entry = _Entry(nbytes, where, path, code.co_filename, frame.f_lineno, code.co_name)
    with _lock:
        book = _book
        book.serial += 1
        number = book.serial
        book.live[number] = entry
        for key in (where, (path, where)):
            book.count[key] += 1
            book.nbytes[key] += nbytes
        book.current[where] += nbytes
        book.peak[where] = max(book.peak[where], book.current[where])
    weakref.finalize(buffer, _freed, book, number).atexit = False


def _freed(book: _Book, number: int) -> None:
    with _lock:
        entry = book.live.pop(number, None)
        if entry is not None:
            book.current[entry.device] -= entry.nbytes


def start() -> None:
    """Open the book, or go on with the open one."""
    global _open, _book
    with _lock:
        if _open == 0:
            _book = _Book()
            observe(_note)
        _open += 1


def stop() -> None:
    """End what :func:`start` began. The book can still be read."""
    global _open
    with _lock:
        _open -= 1
        if _open == 0:
            observe(None)


def report(sort: str = "size", max_items: int = 10) -> str:
    """The book as text; see :func:`print_memory_report`."""
    if sort not in ("size", "chronological"):
        raise ValueError(f"sort is 'size' or 'chronological', not {sort!r}")
    with _lock:
        book = _book
        entries = list(book.live.values())
        devices = sorted(key for key in book.count if isinstance(key, str))
        scopes = sorted(key for key in book.count if isinstance(key, tuple) and key[0])
        alive = Counter(e.device for e in entries)
        lines = ["Allocation Tracking Report"]
        for title, counts, sizes in (
            ("Total allocations:", book.count, book.nbytes),
            ("Peak usage:", None, book.peak),
            ("Live allocations:", alive, book.current),
        ):
            lines.append(f"  {title}")
            for name in devices:
                number = "" if counts is None else f"{counts[name]:>6} "
                lines.append(f"    {name:<8}{number}{_size(sizes[name])}")
        if scopes:
            lines.append("  By scope:")
            lines += [f"    {s} on {d}: {book.count[s, d]} allocations, {_size(book.nbytes[s, d])}" for s, d in scopes]
    if sort == "size":
        entries.sort(key=lambda e: -e.nbytes)
    if entries:
        how = "largest first" if sort == "size" else "oldest first"
        lines.append(f"  Living blocks, {how}, {min(max_items, len(entries))} of {len(entries)}:")
        lines += [f"    {_shown(e)}" for e in entries[:max_items]]
    return "\n".join(lines) + "\n"


def _shown(e: _Entry) -> str:
    text = linecache.getline(e.file, e.line).strip()
    return f"{_size(e.nbytes):>10} on {e.device}: {e.file}:{e.line} in {e.function}{f': {text}' if text else ''}"


def _size(nbytes: int) -> str:
    size = float(nbytes)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.2f} {unit}"
        size /= 1024
    return f"{size:.2f} GiB"


def print_memory_report(file: TextIO | None = None, sort: str = "size", max_items: int = 10) -> None:
    """Print which arrays live and how much memory was taken.

    Args:
        file: where to write; standard output if left out.
        sort: "size", the largest blocks first, or "chronological", the oldest first.
        max_items: at most so many blocks are listed.

    Raises:
        RuntimeError: nothing is tracked; set ``wp.config.track_memory`` before ``wp.init()``, or use a
            :class:`ScopedMemoryTracker`.
        ValueError: ``sort`` is neither.
    """
    if _open == 0:
        raise RuntimeError(
            "memory is not tracked: set wp.config.track_memory before wp.init(), or use wp.ScopedMemoryTracker"
        )
    builtins.print(report(sort, max_items), end="", file=file or sys.stdout)


class ScopedMemoryTracker:
    """``with wp.ScopedMemoryTracker("setup"):`` keeps book of the memory that arrays take in a block.

    Args:
        name: what allocations in the block are listed under; trackers in trackers give paths, ``setup/meshes``.
            Threads have paths of their own, the sums are of all threads.
        active: False makes it do nothing.
        print: whether a report is printed at the end.
        report_func: called with the report instead of printing it.

    >>> import treadle as wp
    >>> with wp.ScopedMemoryTracker("setup", print=False) as tracker:
    ...     a = wp.zeros(1000, dtype=float)
    >>> tracker.report()  # doctest: +ELLIPSIS
    Allocation Tracking Report
      Total allocations:
        cpu          1 3.91 KiB
    ...
    """

    def __init__(
        self,
        name: str = "root",
        active: bool = True,
        print: bool = True,
        report_func: Callable[[str], None] | None = None,
    ):
        self.name, self.active, self.print, self.report_func = name, active, print, report_func

    def __enter__(self) -> ScopedMemoryTracker:
        if self.active:
            start()
            if not hasattr(_scopes, "stack"):
                _scopes.stack = []
            _scopes.stack.append(self.name)
        return self

    def __exit__(self, *exc: object) -> None:
        if not self.active:
            return
        _scopes.stack.pop()
        stop()
        if self.report_func is not None:
            self.report_func(report())
        elif self.print:
            self.report()

    def report(self, file: TextIO | None = None, sort: str = "size", max_items: int = 10) -> None:
        """Print the book as it is now; the arguments are those of :func:`print_memory_report`."""
        if self.active:
            builtins.print(report(sort, max_items), end="", file=file or sys.stdout)

    def clear(self) -> None:
        """Open a new, empty book; the tracker stays active."""
        global _book
        with _lock:
            _book = _Book()
