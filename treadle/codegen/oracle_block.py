"""Blocks of threads in the oracle: threads of the system of which one runs at a time, until its next barrier.

What machine code would leave to chance is an error here: threads that end a block at different barriers, and memory
that one thread writes and another touches between two barriers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.errors import InternalError
from ..ir.node import Op

__all__ = ["SharedBlock"]

SEVERAL = -1  # in place of the number of a thread


class _Ended(BaseException):
    """Another thread failed."""


class SharedBlock:
    """``count`` threads that share arrays and barriers."""

    def __init__(self, count: int):
        self.count = count
        self.arrays: dict[Op, Any] = {}
        self._turns = [threading.Semaphore(0) for _ in range(count)]
        self._back = threading.Semaphore(0)
        self._at: list[Op | None] = [None] * count  # the barrier at which a thread waits; None: it has ended
        self._failed: BaseException | None = None
        self._given: list[list[Any]] = [[] for _ in range(count)]  # what each thread gave to shuffles, one by one
        self._touched: dict[int, tuple[int, str]] = {}  # who touched a byte since the last barrier, and how

    def run(self, work: Callable[[int], Any]) -> list[Any]:
        """Call ``work`` with the number of each thread; what each gave."""
        results: list[Any] = [None] * self.count

        def body(lane: int) -> None:
            self._turns[lane].acquire()
            try:
                with np.errstate(all="ignore"):
                    if self._failed is None:
                        results[lane] = work(lane)
            except _Ended:
                pass
            except BaseException as error:  # noqa: BLE001 - it is raised where the block was run
                self._failed = error
            self._at[lane] = None
            self._back.release()

        threads = [threading.Thread(target=body, args=(lane,), daemon=True) for lane in range(self.count)]
        for each in threads:
            each.start()
        running = [*range(self.count)]
        while running:
            for lane in running:
                self._turns[lane].release()
                self._back.acquire()
            running = [lane for lane in running if self._at[lane] is not None]
            if self._failed is None and len(set(self._at)) > 1:
                self._failed = InternalError("threads of a block came to different barriers")
            if not any([op is not None and op.name == "shuffle" for op in self._at]):
                self._touched.clear()
        for each in threads:
            each.join()
        if self._failed is not None:
            raise self._failed
        return results

    def wait(self, lane: int, op: Op) -> None:
        """The thread ``lane`` is at a barrier or shuffle."""
        self._at[lane] = op
        self._back.release()
        self._turns[lane].acquire()
        if self._failed is not None:
            raise _Ended

    def exchange(self, lane: int, op: Op, x: Any) -> Any:
        """``x`` of the thread whose number differs from ``lane`` in the bits that a shuffle names."""
        self._given[lane].append(x)
        turn = len(self._given[lane]) - 1
        self.wait(lane, op)
        return self._given[lane ^ op.attrs["by"]][turn]

    def touch(self, lane: int, address: int, nbytes: int, how: str, op: Op) -> None:
        """A thread is about to "load", "store" or do an "atomic" at some bytes.

        Raises:
            InternalError: another one did what does not go with that since the last barrier.
        """
        for byte in range(address, address + nbytes):
            other, before = self._touched.setdefault(byte, (lane, how))
            if other != lane:
                if not how == before != "store":
                    whose = "several threads" if other == SEVERAL else f"thread {other}"
                    raise InternalError(f"a {how} of thread {lane} meets a {before} of {whose}", op.span)
                self._touched[byte] = (SEVERAL, how)
            elif how == "store" or before == "load":
                self._touched[byte] = (lane, how)
