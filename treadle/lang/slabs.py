"""Where tapes keep what they save: memory that is handed on from tape to tape.

Memory fresh from the system costs more to touch for the first time than a copy into it. So pieces are cut from slabs,
and a slab whose pieces have all gone is kept for the next one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.forks import fresh_lock
from ..runtime import capture
from ..runtime.device import far

__all__ = ["Slab", "room"]

SLAB = 1 << 20  # bytes of a slab; larger pieces have one of their own
KEPT = 256 << 20  # bytes of idle slabs that are not given back to the system
LINE = 64

_idle: dict[int, list[np.ndarray]] = {}  # by size


class Slab:
    """Memory from which pieces are cut, from address ``at`` up to ``end``. It lives as long as any of them."""

    __slots__ = ("at", "end", "memory")

    def __init__(self, size: int):
        try:
            self.memory = _idle[size].pop()  # one step: other threads take slabs too
        except (KeyError, IndexError):  # there is no idle one
            self.memory = np.empty(size + LINE, np.uint8)
        self.at = -(-self.memory.ctypes.data // LINE) * LINE
        self.end = self.at + size

    def __del__(self, idle: dict[int, list[np.ndarray]] = _idle) -> None:
        memory = getattr(self, "memory", None)
        if memory is None or LINE is None or KEPT is None:  # there was none to be had; Python ends, the module is gone
            return
        size = len(memory) - LINE
        if sum([len(each) * kind for kind, each in idle.items()]) + size <= KEPT:
            idle.setdefault(size, []).append(memory)


_slab: Slab | None = None  # the one that pieces are cut from now
_lock = fresh_lock(globals())


def room(nbytes: int, beside: int = 0) -> tuple[int, Any]:
    """The address of ``nbytes`` bytes that nobody else uses while what comes with it, a slab, is held; on the device
    that has the memory at ``beside``. In a capture they are the graph's, each call of which has its own."""
    global _slab
    now = capture.sink_at(beside) if capture.active or far else None
    if now is not None:
        return now.aside(nbytes)
    size = -(-nbytes // LINE) * LINE
    if size > SLAB:
        own = Slab(size)
        return own.at, own
    with _lock:
        slab = _slab
        if slab is None or slab.at + size > slab.end:
            slab = _slab = Slab(SLAB)
        at = slab.at
        slab.at = at + size
    return at, slab
