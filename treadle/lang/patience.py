"""Compiling that takes long is said while it goes on: after some seconds, and again when it has taken twice as long."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..base.config import config
from ..base.logs import log_progress

PATIENCE = 5.0  # seconds before the first line


class _Clock:
    """How long this process has compiled, counted where no other thread of it already does."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.spent, self.kernels, self.due = 0.0, set[str](), PATIENCE
        self.depth, self.since = 0, 0.0
        self.timer: threading.Timer | None = None

    def begin(self, name: str) -> None:
        with self.lock:
            self.kernels.add(name)
            self.depth += 1
            if self.depth == 1:
                self.since = time.monotonic()
                self._wait(name, self.due - self.spent)

    def end(self) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                self.spent += time.monotonic() - self.since
                self.timer.cancel()

    def _wait(self, name: str, seconds: float) -> None:
        self.timer = threading.Timer(max(seconds, 0.0), self.say, [name])
        self.timer.daemon = True
        with suppress(RuntimeError):  # the program ends and starts no threads any more: nobody is told then
            self.timer.start()

    def say(self, name: str) -> None:
        with self.lock:
            if self.depth == 0 or threading.current_thread() is not self.timer:
                return
            seconds, count = self.spent + time.monotonic() - self.since, len(self.kernels)
            self.due = 2 * seconds
            self._wait(name, self.due - seconds)
        kept = f"; what is compiled is kept in {config.kernel_cache_dir}" if config.cache_kernels else ""
        log_progress(f"treadle: compiling {name}, {count} kernels in {seconds:.0f} s so far{kept}")


_clock = _Clock()


@contextmanager
def compiling(name: str) -> Iterator[None]:
    """In the block the kernel ``name`` is compiled, or waited for."""
    _clock.begin(name)
    try:
        yield
    finally:
        _clock.end()
