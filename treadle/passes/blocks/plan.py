"""Who does what of a program that the threads of a block share: all of them, each a part, or the first one alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...ir.node import Block, Op, Value
from ...ir.walk import ops_of
from ...types.core import View
from .folding import Fold, fold_of
from .footprint import UNKNOWN, Footprint, Program, Root, Site, Unsuited, site_of
from .independent import Divider, Part

LEAST = 32  # rounds of a divided loop, at least in one, for which a block is worth it
SLOWER = 8  # times that a program is slower whose tiles every thread has for itself, in memory that is not shared
FOLDING = 8  # rounds of a loop for which joining what the threads found is counted
UNKNOWN_ROUNDS = 16  # of a loop, at a guess


@dataclass(slots=True)
class Plan:
    """``parts``: loops that are divided, with those right inside others; ``tops``: the outer ones. ``folds``: loops
    that join all their rounds. ``joint``: branches and loops that all threads go through together, as there are such
    loops in them. ``alone``: what the first thread does. ``shared``: arrays that the block has once. What is in none of
    them every thread does for itself."""

    parts: dict[Op, Part] = field(default_factory=dict)
    tops: set[Op] = field(default_factory=set)
    folds: dict[Op, Fold] = field(default_factory=dict)
    joint: set[Op] = field(default_factory=set)
    alone: set[Op] = field(default_factory=set)
    shared: set[Value] = field(default_factory=set)


def make_plan(program: Program, threads: int, commutes: Callable[[Op], bool]) -> Plan | None:
    """The plan for a program; None where it does not pay.

    Raises:
        Unsuited: the threads of a block cannot share it.
    """
    divider, kept, sites = Divider(program, threads, commutes), set(), set()
    hot = _changed(program)
    while True:
        made = Plan()
        _divide(program.func.body, divider, kept, made)
        if not any([_weight(made, op) >= LEAST for op in made.tops]):
            return None
        for op in made.tops:
            made.shared |= _outside(program, op, program.of(op).reads | program.of(op).writes)
        count = -1
        while count != len(made.shared):
            count = len(made.shared)
            made.alone.clear()
            _classify(program, program.func.body, made, hot, sites)
        if not _torn(program, made, kept, sites):
            break
    whole, own = _cost(program.func.body, divider, made)
    return made if own * threads <= SLOWER * whole else None


def _changed(program: Program) -> set[Root]:
    """Memory of others that the program changes, or that may lie over it."""
    hot: set[Root] = set()
    for op in program.func.body.ops:
        hot |= {root for root in program.of(op).writes if not program.own(root)}
    if UNKNOWN in hot:
        hot |= {root for op in program.func.body.ops for root in program.of(op).reads if not program.own(root)}
    elif hot:
        hot.add(UNKNOWN)
    return hot


def _divide(block: Block, divider: Divider, kept: set[Op], made: Plan) -> bool:
    """Find the loops that can be divided, save those ``kept`` whole; whether there are any."""
    found = False
    for op in block.ops:
        if not op.regions:
            continue
        parts = {} if op in kept else divider.divide(op)
        if parts:
            made.parts.update(parts)
            made.tops.add(op)
            found = True
        elif (fold := fold_of(op, divider.program, divider)) is not None:
            made.folds[op] = fold
            found = True
        elif any([_divide(region, divider, kept, made) for region in op.regions]):
            made.joint.add(op)
            found = True
    return found


def _weight(made: Plan, top: Op) -> int:
    inner = [made.parts[op] for op in ops_of(top.regions[0]) if op in made.parts]
    widths = [made.parts[top].rounds or LEAST, max([p.rounds or LEAST for p in inner], default=1)]
    return widths[0] * widths[1]


def _outside(program: Program, op: Op, roots: set[Root]) -> set[Value]:
    """Arrays of the thread's own, made before ``op``, among ``roots``."""
    inside = {r for region in op.regions for one in ops_of(region) for r in one.results}
    return {root[0] for root in roots if program.own(root) and root[0] not in inside}  # type: ignore[misc]


def _classify(program: Program, block: Block, made: Plan, hot: set[Root], sites: set[Site]) -> None:
    for op in block.ops:
        if op in made.tops or op in made.folds or op.name == "local":
            continue
        if op in made.joint:
            for region in op.regions:
                _classify(program, region, made, hot, sites)
            continue
        touched = program.of(op)
        if not _by_one(program, touched, made, hot) and not touched.sites & sites:
            continue
        if any([isinstance(r.type, View) for r in op.results]):
            raise Unsuited
        made.alone.add(op)
        made.shared |= _outside(program, op, touched.writes)


def _by_one(program: Program, touched: Footprint, made: Plan, hot: set[Root]) -> bool:
    """Whether it must be done once, or gives what others may change meanwhile."""
    return touched.alone or bool(touched.reads & hot) or any([
        root[0] in made.shared or not program.own(root) for root in touched.writes
    ])  # fmt: skip


def _torn(program: Program, made: Plan, kept: set[Op], sites: set[Site]) -> bool:
    """What a thread puts on its tape it must take from there itself. Whether that is not so somewhere, as the loops
    around are divided in another way: then these are ``kept`` whole, or what works on these ``sites`` is left to the
    first thread.

    Raises:
        Unsuited: neither helps.
    """
    places: dict[Site, list[tuple[Op, tuple]]] = {}
    for op in ops_of(program.func.body):
        if (site := site_of(op)) is not None:
            places.setdefault(site, []).append((op, _way_to(program, made, op)))
    torn = {site: ops for site, ops in places.items() if len({way for _, way in ops}) > 1 or None in ops[0][1]}
    found = {o for ops in torn.values() for op, _ in ops for o in program.around[op] if o in made.tops}
    if torn and not found and torn.keys() <= sites:
        raise Unsuited
    kept.update(found)
    if not found:
        sites.update(torn)
    return bool(torn)


def _way_to(program: Program, made: Plan, op: Op) -> tuple:
    """Which thread comes to ``op``: how loops are divided, from the first one on that is, or that the first thread does
    it. A program and the way back through it have the same loops. None in it: nobody knows the rounds."""
    around = (*program.around[op], op)
    if any([o in made.alone for o in around]):
        return ("alone",)
    loops = [o for o in around if o.name in ("for", "while")]
    first = next((k for k, o in enumerate(loops) if o in made.parts), len(loops))
    parts = [made.parts.get(o, "whole") for o in loops[first:]]
    return tuple([None if isinstance(p, Part) and p.rounds is None else p for p in parts])


def _cost(block: Block, divider: Divider, made: Plan) -> tuple[int, int]:
    """Roughly the ops that one thread would execute, and those that each thread of the block does."""
    whole = own = 0
    for op in block.ops:
        inside = [_cost(region, divider, made) for region in op.regions]
        rounds = 1
        if op.name in ("for", "while"):
            rounds = (divider.rounds(op) if op.name == "for" else None) or UNKNOWN_ROUNDS
        whole += 1 + rounds * sum([a for a, _ in inside])
        share = rounds
        if op in made.parts:
            share = -(-rounds // made.parts[op].width)
        elif op in made.folds:
            share = -(-rounds // divider.threads) + FOLDING
        own += 1 + share * sum([b for _, b in inside])
    return whole, own
