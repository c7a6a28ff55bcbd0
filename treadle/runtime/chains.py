"""Chains: consecutive launches of a graph that may run chunk by chunk through all of them.

They have the same grid, and share memory that one of them writes only at the thread's own index: the same view of it,
on whose dimensions the grid stands in the same way. Then what a thread of one launch leaves, only the same thread of
the others finds, and it is still in the cache. Memory that was allocated in the capture, that nobody can see any more,
and that each thread writes before it reads it, need not be written to at all: a chunk's scratch does. So it is with
memory that is declared *transient*.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ..types.core import View
from ..types.layout import leaves
from ..types.records import MAX_AXES, SPREAD, SUMS
from .array_views import product
from .capture import Block, Call, Entry, Launch, every
from .launch import Leaf, bytes_of, folds
from .memory import span

merge: Callable[[Chain], Launch | None] | None = None  # what makes one kernel of a chain, if anybody can
MERGED = 50_000  # ns of work, as the compiler guesses, from which on that is worth compiling
MOST_MERGED = 16  # launches
WORTH = 1 << 18  # bytes that a chain works on, below which all of them stay in the cache anyway
CHUNK = 3 << 13  # bytes that a chunk works on: they lie in a first cache of 32 KB, and leave room
SCRATCH = 1 << 15  # bytes of scratch that a chunk has at most
BROAD = 1 << 17  # the same where transient memory makes a chain of whatever length: they lie in a second cache
FEWEST = 2  # gangs of such a chunk, of the narrowest that there are


class Use(NamedTuple):
    """An array that a launch touches: from where to where it lies; the dimensions on which the axes of the grid stand,
    None where threads meet in it; and what must be the same in other launches that touch it. ``at``: where its address
    stands among the arguments."""

    low: int
    high: int
    place: tuple[int, ...] | None
    written: bool
    view: tuple[int, tuple[int, ...], Any, bool]  # address, strides, element, whether in planes
    at: int
    fresh: bool  # each thread stores to its own element, and reads none before


class Patch(NamedTuple):
    """An address among arguments that a chunk's scratch takes the place of, see ``PATCH``. ``strides``: where strides
    stand that change with it, and what they are for a chunk of one thread."""

    at: int
    step: int
    offset: int
    strides: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True, eq=False)
class Chain:
    """Launches that run chunk by chunk; ``patches`` of each, and what all of them use. ``scratch``: bytes that a
    thread needs."""

    members: list[Launch]
    uses: list[list[Use]]
    chunk: int = 0
    scratch: int = 0
    patches: list[list[Patch]] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)  # that need no memory

    @property
    def work(self) -> float:
        """Nanoseconds, as the compiler guesses."""
        size = product(self.members[0].dims)
        return sum([size * m.program.entry.meta.get("weight", 1.0) for m in self.members])

    @property
    def mergeable(self) -> bool:
        """Whether one kernel in its place may be worth compiling."""
        few = len(self.members) <= MOST_MERGED and not self.bound
        return few and self.work >= MERGED and all(m.program.record["bounded"] for m in self.members)

    @property
    def bound(self) -> bool:
        """Whether there is memory that only chunks have."""
        return any(block.plane for block in self.blocks)

    def arguments(self, k: int) -> bytes:
        """The arguments of member number k, for a chunk."""
        content = bytearray(self.members[k].packed)
        for patch in self.patches[k]:
            for at, stride in patch.strides:
                struct.pack_into("<q", content, at, stride * self.chunk)
        return bytes(content)


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
    if entry.name == "fill":
        return [(into, into + entry.nbytes)]
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


class Fact(NamedTuple):
    """What the compiler says of an array of a program, see :class:`Use`."""

    leaf: Leaf
    place: tuple[int, ...] | None
    written: bool
    fresh: bool


_facts: WeakKeyDictionary[Any, tuple[Fact, ...] | None] = WeakKeyDictionary()  # by program


def facts_of(program: Any) -> tuple[Fact, ...] | None:
    """The arrays that a program touches; None where launches of it cannot be part of a chain."""
    if program not in _facts:
        _facts[program] = _facts_of(program)
    return _facts[program]


def _facts_of(program: Any) -> tuple[Fact, ...] | None:
    meta = program.entry.meta
    own, grid = meta.get("own"), meta.get("rank")
    if own is None or meta.get("sites") or meta.get("atomics") or meta.get("races") or not program.entry.address:
        return None
    touched = {tuple(fact["path"]): fact for fact in meta["touched"]["arrays"]}
    found = []
    for path, place, written in own:
        fact = touched.get(tuple(path))
        fresh = fact is not None and not fact["loads"] and fact["covers"] == [*range(grid)]
        found.append(Fact(program.leaf(path), None if place is None else tuple(place), written, fresh))
    return tuple(found)


def uses_of(entry: Launch) -> list[Use] | None:
    """What a launch touches; None where it cannot be part of a chain."""
    facts = facts_of(entry.program)
    if facts is None or entry.program.entry.meta.get("rank") != len(entry.dims):
        return None
    found = []
    for leaf, place, written, fresh in facts:
        if not struct.unpack_from("<Q", entry.packed, leaf.pointer)[0]:
            continue
        low, high = bytes_of(entry.packed, leaf)
        if place is not None and folds(entry.packed, leaf):
            place = None
        found.append(Use(low, high, place, written, _view(entry.packed, leaf), leaf.pointer, fresh))
    return found


def _view(packed: bytes, leaf: Leaf) -> tuple[int, tuple[int, ...], Any, bool]:
    """What two launches must agree in to touch the same element at the same index: address, strides, element."""
    t = leaf.view
    (address,) = struct.unpack_from("<Q", packed, leaf.pointer)
    strides = struct.unpack_from(f"<{t.ndim + 1}q", packed, leaf.offset + 16 + 8 * t.ndim)
    return address, strides, t.elem, t.planar


class _Group:
    """Launches that may be one chain, and what they use: each view once."""

    def __init__(self) -> None:
        self.members: list[Launch] = []
        self.uses: list[list[Use]] = []
        self.shares = False
        self._known: dict[tuple[Any, ...], Use] = {}

    def takes(self, entry: Launch, uses: list[Use]) -> bool:
        """Take a launch in, unless it must come after all of the group has run."""
        if self.members and not self._fits(entry, uses):
            return False
        for u in uses:
            key = u.view, u.place
            before = self._known.get(key)
            self._known[key] = u if before is None or u.written else before
        self.members.append(entry)
        self.uses.append(uses)
        return True

    def _fits(self, entry: Launch, uses: list[Use]) -> bool:
        first = self.members[0]
        if entry.dims != first.dims or entry.program.checked != first.program.checked:
            return False
        shares = False
        for u in uses:
            same = self._known.get((u.view, u.place))
            if same is not None:
                shares = True
                if (u.written or same.written) and u.place is None:
                    return False
            if same is not None and (same.written or not u.written):
                continue  # the others were compared with it
            for v in self._known.values():
                if v is not same and u.low < v.high and v.low < u.high:
                    shares = True
                    if u.written or v.written:
                        return False
        self.shares = self.shares or shares
        return True


def fit(members: list[Launch], uses: list[list[Use]]) -> bool:
    """Whether each thread may do what it does in all of ``members`` before another one begins."""
    group = _Group()
    return all(group.takes(member, each) for member, each in zip(members, uses, strict=True))


def chained(body: list[Entry], blocks: Blocks) -> Iterator[Entry | Chain]:
    """The entries of a body, launches that follow each other as chains where that pays."""
    group = _Group()
    for entry in body:
        if group.members and isinstance(entry, Call) and entry.name == "zero" and _apart(entry, group.uses):
            yield entry  # it may as well come before
            continue
        uses = uses_of(entry) if isinstance(entry, Launch) else None
        if uses is not None and group.takes(entry, uses):
            continue
        yield from _finished(group, blocks)
        group = _Group()
        if uses is None:
            yield entry
        else:
            group.takes(entry, uses)
    yield from _finished(group, blocks)


def _apart(zero: Call, uses: list[list[Use]]) -> bool:
    (low,) = struct.unpack_from("<Q", zero.words)
    return all(u.high <= low or low + zero.nbytes <= u.low for each in uses for u in each)


def _finished(group: _Group, blocks: Blocks) -> Iterator[Entry | Chain]:
    """A group as a chain where that pays, else its launches."""
    if not group.members:
        return
    chain = Chain(group.members, group.uses)
    _vanish(chain, blocks)
    size = product(chain.members[0].dims)
    if chain.bound:
        widths = [m.program.entry.meta.get("width", SUMS) for m in chain.members]
        grain, narrow = max(widths), min([w for w in widths if w > 1], default=1)
        least = max(BROAD // max(chain.scratch, 1), FEWEST * narrow)
        chain.chunk = max(least // grain, 1) * grain
    else:
        regions = {(u.low, u.high) for each in chain.uses for u in each}
        nbytes = sum([high - low for low, high in regions])
        if len(group.members) < 2 or not group.shares or nbytes < WORTH:
            yield from group.members
            return
        grain = max([SUMS, *[m.program.record["grain"] for m in chain.members]])
        most = min(CHUNK * size // nbytes, SCRATCH // chain.scratch if chain.scratch else size)
        chain.chunk = max(most // grain, 1) * grain
        if chain.scratch * chain.chunk > SCRATCH:
            chain.patches, chain.blocks, chain.scratch = [[] for _ in group.members], [], 0
    chain.chunk = min(chain.chunk, size)
    # Until now places in the scratch were counted for a chunk of one thread.
    chain.patches = [[p._replace(offset=p.offset * chain.chunk) for p in each] for each in chain.patches]
    yield chain


def _vanish(chain: Chain, blocks: Blocks) -> None:
    """Find the blocks that only this chain touches, each thread its own numbers, which it writes first; let a chunk's
    scratch take their place."""
    chain.patches = [[] for _ in chain.members]
    if len(chain.members[0].dims) != 1:
        return
    near: dict[int, tuple[Block, list[tuple[int, Use]]]] = {}
    for k, each in enumerate(chain.uses):
        for u in each:
            block = blocks.at(u.low)
            if block is not None:
                near.setdefault(id(block), (block, []))[1].append((k, u))
    for block, found in near.values():
        touching = [e for e in blocks.touching(block) if not (isinstance(e, Call) and e.name == "zero")]
        if not {id(e) for e in touching} <= {id(m) for m in chain.members}:
            continue
        if not all(_within(u, block) for _, u in found):
            continue
        places = _planes(found, block) if block.plane else _elements(found, block)
        if not places:
            continue
        step = places[0].step
        if not block.plane and sum([_addresses_in(m, block) for m in touching]) != len(found):
            continue
        for (k, _), patch in zip(found, places, strict=True):
            chain.patches[k].append(patch._replace(offset=chain.scratch + patch.offset))
        chain.blocks.append(block)
        chain.scratch += -(-(block.nbytes // block.plane * step if block.plane else step) // 8) * 8


def _within(u: Use, block: Block) -> bool:
    return block.address <= u.low and u.high <= block.address + block.nbytes


def _planes(found: list[tuple[int, Use]], block: Block) -> list[Patch]:
    """How each use of a transient block becomes one of planes as long as a chunk; none where one does not."""
    patches = []
    for _, u in found:
        address, strides, elem, planar = u.view
        step = elem.elem.size if planar else elem.size
        at = u.at + 16 + 8 * (len(strides) - 1)
        others = [(at + 8 * k, s) for k, s in enumerate(strides) if 0 < k < len(strides) - 1 + planar]
        places = [address - block.address, *[s for _, s in others]]
        if u.place != (0,) or strides[0] != step or any(place % block.plane for place in places):
            return []
        offset, *steps = [place // block.plane * step for place in places]
        patches.append(Patch(u.at, step, offset, tuple([(at, s) for (at, _), s in zip(others, steps, strict=True)])))
    return patches if len({p.step for p in patches}) == 1 else []


def _elements(found: list[tuple[int, Use]], block: Block) -> list[Patch]:
    """The same of a block that was allocated: all uses are dense and begin where it does, and its elements are written
    before they are read."""
    alone = sum([k == found[0][0] for k, _ in found]) == 1
    patches = []
    for _, u in found:
        address, strides, elem, planar = u.view
        if address != block.address or u.place != (0,) or len(strides) != 2 or strides[0] != elem.size or planar:
            return []
        patches.append(Patch(u.at, elem.size, 0))
    return patches if alone and found[0][1].fresh and len({p.step for p in patches}) == 1 else []


def _addresses_in(entry: Launch, block: Block) -> int:
    """How many arrays among the arguments lie in a block, gradients included."""
    return sum([block.address <= address < block.address + block.nbytes for address in addresses(entry)])
