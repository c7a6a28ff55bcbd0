"""Entries of a graph that nobody needs: all that they write is overwritten, or forgotten, before anybody reads it.

A backward pass that was captured with its forward pass runs the last steps forward only to undo them, and steps
everything forward again at its end. Where just the gradients are wanted, as by JAX, going through the entries from the
last to the first finds what to leave out.
"""

from __future__ import annotations

import struct
import weakref
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from ..types.core import View
from ..types.layout import leaves
from ..types.records import MAX_AXES, SPREAD
from .capture import Call, Entry, Launch, every
from .chains import writes_elsewhere, written_by
from .launch import Leaf
from .memory import span
from .ranges import Range, Ranges
from .runs import runs

MOST_RUNS = 4096  # of one entry; more are not looked at


def needed(entries: list[Entry], dead: Ranges) -> tuple[list[Entry], Ranges]:
    """The entries without those whose results are not needed, and bytes whose content from before nobody reads.

    Args:
        dead: bytes that nobody reads after the last entry.
    """
    dead, found = dead.copy(), []
    for entry in reversed(entries):
        kept = _kept(entry, dead)
        if kept is None:
            continue
        found.append(kept)
        for low, high in _overwritten(kept):
            dead.add(low, high)
        reads = _read_by(kept)
        if reads is None:
            dead = Ranges()
            continue
        for low, high in reads:
            dead.cut(low, high)
    return found[::-1], dead


def settled(entries: list[Entry]) -> list[Entry]:
    """The entries with less to do: sums onto zeros are copies, and what was kept need not be put back where nobody has
    written since."""
    zeros, kept, found = Ranges(), {}, []
    for entry in entries:
        if not isinstance(entry, Launch | Call) or writes_elsewhere(entry):
            zeros, kept = Ranges(), {}
            found.append(entry)
            continue
        if isinstance(entry, Call) and entry.name == "put" and _table(entry) in kept:
            continue
        if isinstance(entry, Call) and entry.name == "sum" and _holds(zeros, _summed(entry)):
            entry = Call("spread", entry.words, entry.pointers, entry.own, entry.nbytes)
        found.append(entry)
        written = Ranges(written_by(entry))
        kept = {table: r for table, r in kept.items() if not any(written.meets(*each) for each in r)}
        for low, high in written:
            zeros.cut(low, high)
        if isinstance(entry, Call) and entry.name == "zero":
            for low, high in written:
                zeros.add(low, high)
        elif isinstance(entry, Call) and entry.name == "keep":
            kept[_table(entry)] = [*_rows(entry), *written]
    return found


def _table(entry: Call) -> bytes:
    """What bytes an entry keeps or puts back, and where it keeps them."""
    return entry.words[16:]


def _summed(entry: Call) -> list[Range]:
    """The bytes to which a sum adds."""
    into, _, run, extents, steps, _ = _spread(entry)
    return _runs(into, extents, steps, run) or [_reach(into, extents, steps, run)]


def _kept(entry: Entry, dead: Ranges) -> Entry | None:
    """What remains of an entry of whose results these bytes are dead: of an exchange perhaps a copy."""
    if isinstance(entry, Launch):
        meta = entry.program.entry.meta
        if meta.get("prints") or meta.get("sites") or meta["touched"]["unknown"] == "written":
            return entry  # it says something, or writes nobody knows where
    elif not isinstance(entry, Call):
        return entry
    elif entry.name in ("swap", "exchange"):
        return _half(entry, dead)
    return None if _holds(dead, written_by(entry)) else entry


def _holds(dead: Ranges, ranges: Iterable[Range]) -> bool:
    return all(low >= high or dead.holds(low, high) for low, high in ranges)


def _half(entry: Call, dead: Ranges) -> Call | None:
    """An exchange where one side, or both, are not needed."""
    first, second, third = struct.unpack_from("<3q", entry.words)
    if entry.name == "exchange":
        here, there = [(first, first + third)], [(second, second + third)]
    else:
        here, there = [*_rows(entry)], [(third, third + entry.nbytes)]
    memory, aside = _holds(dead, here), _holds(dead, there)
    if memory and aside:
        return None
    if not memory and not aside:
        return entry
    if entry.name == "exchange":
        into, source = (first, second) if aside else (second, first)
        return Call("move", struct.pack("<3q", into, source, third), entry.pointers, (), entry.nbytes)
    return Call("put" if aside else "keep", entry.words, entry.pointers, entry.own, entry.nbytes)


def _rows(entry: Call) -> Iterator[Range]:
    """The runs of bytes in a table of them; what lies between many of one row is taken for one run."""
    for at, nbytes, count, step in struct.iter_unpack("<4q", entry.words[24:]):
        if count > MOST_RUNS:
            yield at, at + (count - 1) * step + nbytes
        else:
            yield from ((at + k * step, at + k * step + nbytes) for k in range(count))


def _overwritten(entry: Entry) -> list[Range]:
    """Bytes that an entry certainly writes, whatever they were."""
    if not isinstance(entry, Call):
        return []
    into, _, third = struct.unpack_from("<3q", entry.words)
    if entry.name in ("zero", "move"):
        return [(into, into + third)]
    if entry.name == "keep":
        return [(third, third + entry.nbytes)]
    if entry.name == "put":
        few = all(count <= MOST_RUNS for _, _, count, _ in struct.iter_unpack("<4q", entry.words[24:]))
        return [*_rows(entry)] if few else []
    if entry.name != "spread":
        return []
    into, _, run, extents, steps, _ = _spread(entry)
    return _runs(into, extents, steps, run) or []


def _runs(address: int, extents: Sequence[int], steps: Sequence[int], size: int) -> list[Range] | None:
    """Where elements of ``size`` bytes lie, without the gaps between them; None where that is not told shortly."""
    found = runs(address, zip(extents, steps, strict=True), size)
    if found is None or sum([count for _, _, count, _ in found.rows]) > MOST_RUNS:
        return None
    return [(at + k * step, at + k * step + nbytes) for at, nbytes, count, step in found.rows for k in range(count)]


def _spread(entry: Call) -> tuple[int, int, int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Where a copy with gaps goes, where it comes from, bytes of a run, extents, and steps of both."""
    into, source, run, ndim, *axes = struct.unpack_from(f"<{len(SPREAD.at)}q", entry.words, 24)
    extents, to, of = (tuple(axes[k * MAX_AXES :][:ndim]) for k in range(3))
    return into, source, run, extents, to, of


def _read_by(entry: Entry) -> list[Range] | None:
    """Bytes that an entry may read; None where that is not known."""
    if isinstance(entry, Launch):
        return _read_by_launch(entry)
    if not isinstance(entry, Call):
        found = [(entry.condition, entry.condition + 4)]
        for each in every([entry]):
            reads = _read_by(each) if each is not entry else []
            if reads is None:
                return None
            found += reads
        return found
    into, second, third = struct.unpack_from("<3q", entry.words)
    if entry.name == "zero":
        return []
    if entry.name == "move":
        return [(second, second + third)]
    if entry.name == "exchange":
        return [(into, into + third), (second, second + third)]
    if entry.name in ("spread", "sum"):
        into, source, run, extents, to, of = _spread(entry)
        places = [(source, of)] if entry.name == "spread" else [(source, of), (into, to)]
        return [r for at, steps in places for r in _runs(at, extents, steps, run) or [_reach(at, extents, steps, run)]]
    memory = [*_rows(entry)] if entry.name != "put" else []
    return [*memory, *[(third, third + entry.nbytes)][: entry.name != "keep"]]


def read_by_name(entry: Entry) -> list[Range]:
    """Bytes that an entry may read; where it may read more, by addresses in memory, all arrays that it is given."""
    found = _read_by(entry)
    if found is not None or not isinstance(entry, Launch):
        return found or []
    program = entry.program
    views = [(offset + leaf.offset, leaf.type) for t, offset in zip(program.signature, program.offsets, strict=True)
             for leaf in leaves(t) if isinstance(leaf.type, View)]  # fmt: skip
    return [r for at, view in views for r in _bytes_of(entry.packed[at : at + 24 + 16 * view.ndim], view, False)]


def _reach(address: int, extents: Sequence[int], steps: Sequence[int], size: int) -> Range:
    low, high = span((*extents,), (*steps,), size)
    return address + low, address + high


def _read_by_launch(entry: Launch) -> list[Range] | None:
    """The arrays that a launch reads, and all gradients."""
    found = _leaves.get(entry.program)
    if found is None:
        found = _leaves[entry.program] = _leaves_read(entry.program)
    if entry.program.entry.meta["touched"]["unknown"]:
        return None
    return [r for leaf, nbytes in found for r in _bytes_of(entry.packed[leaf.offset : leaf.offset + nbytes],
                                                           leaf.view, leaf.gradient)]  # fmt: skip


_leaves: weakref.WeakKeyDictionary[Any, list[tuple[Leaf, int]]] = weakref.WeakKeyDictionary()  # of programs


def _leaves_read(program: Any) -> list[tuple[Leaf, int]]:
    """The arrays that launches of a program read, and all gradients; how many bytes describe each."""
    facts = {tuple(fact["path"]): fact for fact in program.entry.meta["touched"]["arrays"]}
    found = []
    for k, (t, offset) in enumerate(zip(program.signature, program.offsets, strict=True)):
        for leaf in leaves(t):
            if not isinstance(leaf.type, View):
                continue
            fact = facts.get((k, *leaf.path))
            nbytes = 24 + 16 * leaf.type.ndim
            if fact is not None and (fact["loads"] or fact["added"]):
                found.append((Leaf(offset + leaf.offset, leaf.type), nbytes))
            found.append((Leaf(offset + leaf.offset, leaf.type, True), nbytes))
    return found


@lru_cache(1 << 12)
def _bytes_of(described: bytes, view: View, gradient: bool) -> tuple[Range, ...]:
    """Where an array lies, or its gradient, without its gaps if that is told shortly."""
    data, grad, *rest = struct.unpack_from(f"<QQ{2 * view.ndim + 1}q", described)
    address = grad if gradient else data
    if not address:
        return ()
    extents, steps, size = rest[: view.ndim], rest[view.ndim : -1], view.elem.size
    if view.planar:
        extents, steps, size = [*extents, view.elem.n], [*steps, rest[-1]], view.elem.elem.size
    return (*(_runs(address, extents, steps, size) or [_reach(address, extents, steps, size)]),)
