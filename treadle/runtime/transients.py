"""Transient memory of a graph: what only serves it is left out, and what cannot be a chunk's scratch gets room."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..types.core import View
from ..types.layout import leaves
from .array import array, build
from .array_views import product
from .capture import Block, Call, Capture, Entry, Launch
from .device import get_device
from .elements import element
from .launch import Leaf

LINE = 64


def transient(now: Capture | None, shape: tuple[int, ...], dtype: Any, components: int, plane: int = 0) -> array:
    """An array of memory that is not there (:meth:`Capture.transient`), in planes of ``plane`` bytes: one for each of
    the ``components`` of an element, in each place of all dimensions but the first. A single thread has whole elements
    instead, so that the array lies as any other does.

    Without a capture it is only for launches that do not run.
    """
    made = element(dtype)
    if shape[0] == 1:
        components, plane = 1, made.size
    itemsize = made.size // components
    plane = plane or shape[0] * itemsize
    steps = [plane * components * product(shape[k + 1 :]) for k in range(1, len(shape))]
    address = LINE if now is None else now.transient(plane * max(product(shape[1:]) * components, 1), plane)
    gap = plane if components > 1 else made.component
    return build(made, shape, (itemsize, *steps), gap, address, None, 0, get_device())


class Transients:
    """The blocks of a graph that are declared transient, by address. ``zeros`` gives room for so many bytes: what keeps
    it, and its address; that of the host if left out."""

    def __init__(self, blocks: list[Block], zeros: Callable[[int], tuple[Any, int]] | None = None):
        self._zeros = zeros or _zeros
        self.blocks = sorted([b for b in blocks if b.plane], key=lambda block: block.address)
        self._starts = [b.address for b in self.blocks]
        self._room: dict[int, tuple[Any, int]] = {}  # by block's address: memory, and where it begins

    def at(self, address: int) -> Block | None:
        """The block that an address lies in."""
        k = bisect_right(self._starts, address) - 1
        return self.blocks[k] if k >= 0 and address < self._starts[k] + self.blocks[k].nbytes else None

    def real(self, address: int) -> int:
        """Where memory is that is said to lie at ``address``: its block gets room."""
        block = self.at(address)
        if block is None:
            return address
        if block.address not in self._room:
            self._room[block.address] = self._zeros(block.nbytes)
        return self._room[block.address][1] + address - block.address

    def settle(self, entries: Iterable[Entry]) -> None:
        """Let ``entries`` work on room for the transient memory that they name."""
        for entry in entries if self.blocks else ():
            if isinstance(entry, Launch):
                entry.packed = self._moved(entry.packed, [leaf.pointer for leaf, *_ in _accesses(entry.program)])
            elif isinstance(entry, Call):
                entry.words = self._moved(entry.words, entry.pointers)

    def _moved(self, content: bytes, pointers: Iterable[int]) -> bytes:
        changed = bytearray(content)
        for at in pointers:
            (address,) = struct.unpack_from("<Q", content, at)
            struct.pack_into("<Q", changed, at, self.real(address))
        return bytes(changed)

    def serving(self, entries: list[Entry]) -> list[Entry]:
        """The entries without launches that write to nothing but transient memory which nobody reads after them."""
        if not self.blocks:
            return entries
        read: set[int] = set()
        found = []
        for entry in reversed(entries):
            if isinstance(entry, Launch) and not entry.program.entry.meta["touched"]["unknown"]:
                reads, writes, visible = self._touches(entry)
                if not visible and writes.isdisjoint(read):
                    continue
                read |= reads
            elif isinstance(entry, Launch):
                read |= {b.address for b in self.blocks}
            found.append(entry)
        return found[::-1]

    def written(self, entries: list[Entry]) -> set[int]:
        """The addresses of the blocks that launches among ``entries`` write to."""
        return {address for e in entries if isinstance(e, Launch) for address in self._touches(e)[1]}

    def _touches(self, entry: Launch) -> tuple[set[int], set[int], bool]:
        """The blocks that a launch reads, those that it writes, and whether others see something of what it does."""
        meta = entry.program.entry.meta
        reads: set[int] = set()
        writes: set[int] = set()
        visible = bool(meta.get("prints") or meta.get("sites"))
        for leaf, read, written in _accesses(entry.program):
            (address,) = struct.unpack_from("<Q", entry.packed, leaf.pointer)
            block = self.at(address)
            if block is None:
                visible = visible or (written and address != 0)
                continue
            if read:
                reads.add(block.address)
            if written:
                writes.add(block.address)
        return reads, writes, visible


def _zeros(nbytes: int) -> tuple[Any, int]:
    memory = np.zeros(nbytes + LINE, np.uint8)
    return memory, memory.ctypes.data + -memory.ctypes.data % LINE


def _accesses(program: Any) -> list[tuple[Leaf, bool, bool]]:
    """The arrays of a program: whether it reads them, and whether it writes them; gradients are said to be both."""
    facts = {tuple(fact["path"]): fact for fact in program.entry.meta["touched"]["arrays"]}
    found = []
    for k, (t, offset) in enumerate(zip(program.signature, program.offsets, strict=True)):
        for leaf in leaves(t):
            if not isinstance(leaf.type, View):
                continue
            place, fact = Leaf(offset + leaf.offset, leaf.type), facts.get((k, *leaf.path))
            if fact is not None:
                found.append((place, bool(fact["loads"] or fact["added"]), bool(fact["stores"] or fact["added"])))
            found.append((place._replace(gradient=True), True, True))
    return found
