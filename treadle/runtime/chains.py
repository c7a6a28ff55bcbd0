"""Chains: consecutive launches of a graph that may run chunk by chunk through all of them.

They have the same grid, and share memory that one of them writes only at the thread's own index: the same view of it,
on whose dimensions the grid stands in the same way. Then what a thread of one launch leaves, only the same thread of
the others finds, and it is still in the cache. Memory that was allocated in the capture, that nobody can see any more,
and that each thread writes before it reads it, need not be written to at all: a chunk's scratch does.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..types.core import View
from ..types.layout import leaves
from ..types.records import ARGS_BYTES, CHUNK_SCRATCH, MAX_AXES, MOST_CHAINED, SPREAD, SUMS
from .array_views import product
from .capture import Block, Call, Entry, Launch, every
from .launch import Leaf, bytes_of, folds
from .memory import span

merge: Callable[[Chain], Launch | None] | None = None  # what makes one kernel of a chain, if anybody can
MERGED = 50_000  # ns of work, as the compiler guesses, from which on that is worth compiling
WORTH = 1 << 18  # bytes that a chain works on, below which all of them stay in the cache anyway
CHUNK = 3 << 13  # bytes that a chunk works on: they lie in a first cache of 32 KB, and leave room


class Use(NamedTuple):
    """An array that a launch touches: from where to where it lies; the dimensions on which the axes of the grid stand,
    None where threads meet in it; and what must be the same in other launches that touch it. ``at``: where its address
    stands among the arguments."""

    low: int
    high: int
    place: tuple[int, ...] | None
    written: bool
    view: Any
    at: int
    fresh: bool  # each thread stores to its own element, and reads none before


class Patch(NamedTuple):
    """An address among arguments that a chunk's scratch takes the place of, see ``PATCH``."""

    at: int
    step: int
    offset: int


@dataclass(slots=True, eq=False)
class Chain:
    """Launches that run chunk by chunk; ``patches`` of each, and what all of them use."""

    members: list[Launch]
    uses: list[list[Use]]
    chunk: int = 0
    patches: list[list[Patch]] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)  # that need no memory

    @property
    def work(self) -> float:
        """Nanoseconds, as the compiler guesses."""
        size = product(self.members[0].dims)
        return sum([size * m.program.entry.meta.get("weight", 1.0) for m in self.members])


class Blocks:
    """Memory that belongs to a graph and that nobody else can see: which block an address lies in, and which of
    ``entries`` name addresses in a block."""

    def __init__(self, blocks: list[Block], entries: list[Entry]):
        self._order = sorted(blocks, key=lambda block: block.address)
        self._starts = [block.address for block in self._order]
        self._touching: dict[int, dict[int, Entry]] = {id(block): {} for block in blocks}
        for entry in every(entries) if blocks else ():
            for address in addresses(entry):
                block = self.at(address)
                if block is not None:
                    self._touching[id(block)][id(entry)] = entry

    def at(self, address: int) -> Block | None:
        """The block with the byte at ``address``."""
        k = bisect_right(self._starts, address) - 1
        return self._order[k] if k >= 0 and address < self._starts[k] + self._order[k].nbytes else None

    def touching(self, block: Block) -> list[Entry]:
        """The entries that name an address in ``block``."""
        return [*self._touching[id(block)].values()]


def addresses(entry: Entry) -> list[int]:
    """The addresses that an entry names."""
    if isinstance(entry, Launch):
        return [struct.unpack_from("<Q", entry.packed, at)[0] for at in entry.program.pointers]
    if isinstance(entry, Call):
        return [struct.unpack_from("<Q", entry.words, at)[0] for at in entry.pointers]
    return [entry.condition]


def written_by(entry: Entry) -> list[tuple[int, int]]:
    """The bytes that an entry may write, from where to where."""
    if isinstance(entry, Launch):
        return _written_by_launch(entry)
    if not isinstance(entry, Call):
        return []
    into, second, third = struct.unpack_from("<3q", entry.words)
    if entry.name in ("zero", "move"):
        return [(into, into + third)]
    if entry.name == "exchange":
        return [(into, into + third), (second, second + third)]
    table = entry.words[24:]
    if entry.name in ("spread", "sum"):
        into, _, run, ndim, *axes = struct.unpack_from(f"<{len(SPREAD.at)}q", table)
        extents, steps = axes[:ndim], axes[MAX_AXES : MAX_AXES + ndim]
        low, high = span((*extents,), (*steps,), run)
        return [(into + low, into + high)]
    found = [] if entry.name == "keep" else [
        (at, at + (count - 1) * step + nbytes) for at, nbytes, count, step in struct.iter_unpack("<4q", table)
    ]  # fmt: skip
    return [*found, (third, third + entry.nbytes)]  # what is put aside, too


def _written_by_launch(entry: Launch) -> list[tuple[int, int]]:
    """The arrays that a launch writes; gradients all of them where the compiler says nothing of those, and everything
    where it may write to memory that no parameter leads to."""
    program, own = entry.program, entry.program.entry.meta.get("own")
    if own is not None:
        return [bytes_of(entry.packed, program.leaf(path)) for path, _, written in own if written]
    data = None if writes_elsewhere(entry) else program.written()
    every_leaf = [Leaf(offset + leaf.offset, leaf.type, gradient)
                  for k, (t, offset) in enumerate(zip(program.signature, program.offsets, strict=True))
                  for leaf in leaves(t) if isinstance(leaf.type, View) for gradient in (False, True)
                  if gradient or data is None or (k, *leaf.path) in data]  # fmt: skip
    there = [leaf for leaf in every_leaf if struct.unpack_from("<Q", entry.packed, leaf.pointer)[0]]
    return [bytes_of(entry.packed, leaf) for leaf in there]


def writes_elsewhere(entry: Entry) -> bool:
    """Whether an entry is a launch that may write to memory which no parameter leads to."""
    return isinstance(entry, Launch) and entry.program.entry.meta["touched"]["unknown"] == "written"


def uses_of(entry: Launch) -> list[Use] | None:
    """What a launch touches; None where it cannot be part of a chain."""
    program, meta = entry.program, entry.program.entry.meta
    own, grid = meta.get("own"), meta.get("rank")
    refused = meta.get("sites") or meta.get("atomics") or meta.get("races") or grid != len(entry.dims)
    if own is None or refused or len(entry.packed) > ARGS_BYTES // 4 or not program.entry.address:
        return None
    facts = {tuple(fact["path"]): fact for fact in meta["touched"]["arrays"]}
    found = []
    for path, place, written in own:
        leaf = program.leaf(path)
        if not struct.unpack_from("<Q", entry.packed, leaf.pointer)[0]:
            continue
        low, high = bytes_of(entry.packed, leaf)
        if place is not None and folds(entry.packed, leaf):
            place = None
        fact = facts.get(tuple(path))
        fresh = fact is not None and not fact["loads"] and fact["covers"] == [*range(len(entry.dims))]
        seen = _view(entry.packed, leaf)
        found.append(Use(low, high, None if place is None else tuple(place), written, seen, leaf.pointer, fresh))
    return found


def _view(packed: bytes, leaf: Leaf) -> tuple[Any, ...]:
    """What two launches must agree in to touch the same element at the same index: address, strides, element."""
    t = leaf.view
    (address,) = struct.unpack_from("<Q", packed, leaf.pointer)
    strides = struct.unpack_from(f"<{t.ndim + 1}q", packed, leaf.offset + 16 + 8 * t.ndim)
    return address, strides, t.elem, t.planar


def _goes_with(uses: list[Use], others: list[Use]) -> tuple[bool, bool]:
    """Whether two launches may be in one chain, and whether they share memory."""
    shares = False
    for u in uses:
        for v in others:
            if u.low < v.high and v.low < u.high:
                shares = True
                if (u.written or v.written) and (u.place is None or u.place != v.place or u.view != v.view):
                    return False, True
    return True, shares


def chained(body: list[Entry], blocks: Blocks) -> Iterator[Entry | Chain]:
    """The entries of a body, launches that follow each other as chains where that pays."""
    group: list[Launch] = []
    uses: list[list[Use]] = []
    shares = False
    for entry in body:
        if group and isinstance(entry, Call) and entry.name == "zero" and _apart(entry, uses):
            yield entry  # it may as well come before
            continue
        found = uses_of(entry) if isinstance(entry, Launch) else None
        joins = found is not None and bool(group) and len(group) < MOST_CHAINED and entry.dims == group[0].dims
        meets = False
        if joins and sum([len(m.packed) for m in (*group, entry)]) <= ARGS_BYTES:
            for others in uses:
                good, both = _goes_with(found, others)
                joins, meets = joins and good, meets or both
            joins = joins and entry.program.checked == group[0].program.checked
        if joins:
            group.append(entry)
            uses.append(found)
            shares = shares or meets
            continue
        yield from _finished(group, uses, shares, blocks)
        group, uses, shares = [], [], False
        if found is None:
            yield entry
        else:
            group, uses = [entry], [found]
    yield from _finished(group, uses, shares, blocks)


def _apart(zero: Call, uses: list[list[Use]]) -> bool:
    (low,) = struct.unpack_from("<Q", zero.words)
    return all(u.high <= low or low + zero.nbytes <= u.low for each in uses for u in each)


def _finished(group: list[Launch], uses: list[list[Use]], shares: bool, blocks: Blocks) -> Iterator[Entry | Chain]:
    """A group as a chain where that pays, else its launches."""
    regions = {(u.low, u.high) for each in uses for u in each}
    nbytes = sum([high - low for low, high in regions])
    if len(group) < 2 or not shares or nbytes < WORTH:
        yield from group
        return
    size = product(group[0].dims)
    grain = max([SUMS, *[m.program.record["grain"] for m in group]])
    chain = Chain(group, uses)
    steps = _vanish(chain, blocks)
    most = min(CHUNK * size // nbytes, CHUNK_SCRATCH // steps if steps else size)
    chain.chunk = max(most // grain, 1) * grain
    if steps * chain.chunk > CHUNK_SCRATCH:
        chain.patches, chain.blocks = [[] for _ in group], []
    # Until now places in the scratch were counted for a chunk of one thread.
    chain.patches = [[p._replace(offset=p.offset * chain.chunk) for p in each] for each in chain.patches]
    yield chain


def _vanish(chain: Chain, blocks: Blocks) -> int:
    """Find the blocks that only this chain touches, each thread its own element, which it writes first; let a chunk's
    scratch take their place. The bytes of scratch that a thread needs."""
    chain.patches = [[] for _ in chain.members]
    total = 0
    if len(chain.members[0].dims) != 1:
        return 0
    near = [blocks.at(u.low) for each in chain.uses for u in each]
    for block in {id(block): block for block in near if block is not None}.values():
        touching = [e for e in blocks.touching(block) if not (isinstance(e, Call) and e.name == "zero")]
        if any(e not in chain.members for e in touching):
            continue
        found = [(k, u) for k, each in enumerate(chain.uses) for u in each if _within(u, block)]
        step = _step(found, block)
        count = sum([_addresses_in(m, block) for m in chain.members])
        alone = sum([k == found[0][0] for k, _ in found]) == 1
        if step and found[0][1].fresh and count == len(found) and alone:
            for k, u in found:
                chain.patches[k].append(Patch(u.at, step, total))
            chain.blocks.append(block)
            total += step
    return total


def _within(u: Use, block: Block) -> bool:
    return block.address <= u.low and u.high <= block.address + block.nbytes


def _step(found: list[tuple[int, Use]], block: Block) -> int:
    """Bytes from an element to the next, if all uses are dense and begin where the block does; else 0."""
    steps = set()
    for _, u in found:
        address, strides, elem, planar = u.view
        if address != block.address or u.place != (0,) or len(strides) != 2 or strides[0] != elem.size or planar:
            return 0
        steps.add(elem.size)
    return steps.pop() if len(steps) == 1 else 0


def _addresses_in(entry: Launch, block: Block) -> int:
    """How many arrays among the arguments lie in a block, gradients included."""
    return sum([block.address <= address < block.address + block.nbytes for address in addresses(entry)])
