"""Settings of the whole process that several threads want for a while."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any


class Together:
    """A context manager around what needs a setting: the first thread in makes it, the last one out undoes it.

    Args:
        begin: makes the setting; returns what undoes it.
    """

    def __init__(self, begin: Callable[[], Callable[[], None]]):
        self._begin = begin
        self._lock = threading.Lock()
        self._inside: list[int] = []  # threads, each as often as it is in
        self._end: Callable[[], None] | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._end = self._begin()
            self._inside.append(threading.get_ident())

    def __exit__(self, *error: Any) -> None:
        with self._lock:
            self._inside.remove(threading.get_ident())
            self._undo()

    def _undo(self) -> None:
        if not self._inside and self._end is not None:
            end, self._end = self._end, None
            end()

    def _forked(self) -> None:
        """In a child process the other threads are gone, and whoever held the lock."""
        self._lock = threading.Lock()
        self._inside = [thread for thread in self._inside if thread == threading.get_ident()]
        self._undo()
