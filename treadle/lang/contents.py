"""Contents of arrays and of memory put aside, and put back: at once, or by a graph where one is captured."""

from __future__ import annotations

from typing import Any

from ..runtime.array import allocate, array
from ..runtime.runs import move
from ..runtime.writes import put_value
from .slabs import room

__all__ = ["Aside", "copied", "put_value"]


def copied(a: array) -> array:
    """A row-major array of what ``a`` holds; ``put_value(a, made)`` puts that back."""
    made = allocate(a._element, a.shape, a.device, False)
    put_value(made, a)
    return made


class Aside:
    """The ``nbytes`` bytes that lay at ``address``, kept at ``at``."""

    __slots__ = ("address", "at", "nbytes", "slab")
    slab: Any

    def __init__(self, address: int, nbytes: int):
        self.address, self.nbytes = address, nbytes
        self.at, self.slab = room(nbytes, address)
        move(self.at, address, nbytes, self.slab)

    def put_back(self) -> None:
        """Write them there."""
        move(self.address, self.at, self.nbytes, self.slab)

    def __repr__(self) -> str:
        return f"<{self.nbytes} bytes of {self.address:#x}>"
