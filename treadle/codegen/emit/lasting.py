"""Loops that may last: ``for`` loops whose rounds a launch's arguments count, or large numbers.

They count rounds down, and ask for the stop flag after each block of them, so that Ctrl-C ends them: an instruction a
round, for which a processor has room, and nothing else for a loop of few rounds. Loops with loops inside ask in each
round anyhow (:func:`polls`). Counts of 32 bits that were read from memory are taken for those of small tables, and
extents of arrays and of the grid for what a launch gets done.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...ir.node import Func, Op, Value
from ...ir.walk import callees, once, ops_of
from ...types.core import Scalar, View
from ...types.layout import leaves, pack

if TYPE_CHECKING:
    from .unit import Unit

BLOCK = 1 << 20  # rounds after which a loop asks
_READS = ("load", "atomic", "pop", "recall")
_LOOPS = ("for", "while")


def polls(op: Op) -> bool:
    """Whether ``op`` is a loop that asks for the stop flag in each round: one without a known end, or one with loops
    inside, for the rounds of nested loops multiply."""
    if op.name == "while" and not op.attrs.get("bounded"):
        return True
    return op.name in _LOOPS and any(_loops(inner) for region in op.regions for inner in ops_of(region))


def _loops(op: Op) -> bool:
    """Whether ``op`` is a loop or calls a function with one."""
    return op.name in _LOOPS or (op.name == "call" and any(_loops(inner) for inner in ops_of(op.attrs["func"].body)))


def func_polls(func: Func) -> bool:
    """Whether ``func``, or what it calls, polls the stop flag."""
    return any(polls(op) or (op.name == "call" and func_polls(op.attrs["func"])) for op in ops_of(func.body))


@once
def lasting(func: Func) -> dict[Op, frozenset[Value] | None]:
    """The loops of ``func`` that may last, each with the parameters that count its rounds; None where they may be many
    whatever the parameters are."""
    made: dict[Value, Op] = {}
    for op in ops_of(func.body):
        made.update(dict.fromkeys(op.results, op))
        for region in op.regions:
            made.update(dict.fromkeys(region.params, op))
    found = {}
    for op in ops_of(func.body):
        if op.name != "for" or op.args[0].type.bits < 32 or polls(op):
            continue
        counting = _counting(op, made)
        if counting is None or counting:
            found[op] = counting
    return found


def _counting(loop: Op, made: dict[Value, Op]) -> frozenset[Value] | None:
    """The integer parameters on which the loop's rounds depend, or None."""
    bounds = [made.get(a) for a in loop.args[:3]]
    if all(op is not None and op.name == "const" for op in bounds):
        start, stop, step = (op.attrs["value"] for op in bounds if op is not None)
        return None if step and len(range(start, stop, step)) > BLOCK else frozenset()
    reached = list(_reached(loop.args[:3], made))
    if any(v in made and made[v].name in _READS and v.type.bits > 32 for v in reached):
        return None
    return frozenset([v for v in reached if v not in made])


def _reached(values: tuple[Value, ...], made: dict[Value, Op]) -> Iterator[Value]:
    """The numbers that ``values`` are computed from: parameters, what was read, and all on the way."""
    seen: set[Value] = set()
    left = [*values]
    while left:
        v = left.pop()
        if v in seen or not isinstance(v.type, Scalar) or not v.type.is_int:
            continue
        seen.add(v)
        yield v
        op = made.get(v)
        if op is not None and op.name not in _READS:
            left += op.args
            for region in op.regions:
                left += region.yields


@once
def counts(func: Func) -> frozenset[Value] | None:
    """The parameters that count rounds of loops that may last, in ``func`` and in what it calls; None where some loop
    may last whatever they are."""
    sets = [*lasting(func).values()]
    made = {r: op for op in ops_of(func.body) for r in op.results}
    for op in ops_of(func.body):
        if op.name == "call":
            inner: Func = op.attrs["func"]
            counting = counts(inner)
            given = dict(zip(inner.params, op.args, strict=True))
            sets.append(counting and frozenset(
                [v for v in _reached(tuple([given[p] for p in counting]), made) if v not in made]
            ))  # fmt: skip
    return None if None in sets else frozenset().union(*[s for s in sets if s is not None])


def func_lasts(func: Func) -> bool:
    """Whether ``func``, or what it calls, has loops that may last."""
    return any(lasting(f) for f in (func, *callees(func)))


def loops(unit: Unit) -> frozenset[Op]:
    """Those of a program: none on a GPU, which nobody can ask to stop."""
    if unit.target.kind != "cpu":
        return frozenset()
    return frozenset([op for k in (unit.kernel, *unit.drawing) for f in (k, *callees(k)) for op in lasting(f)])


def places(kernel: Func) -> list[list[int]] | None:
    """Where the packed arguments hold the integers that count rounds: offset and size of each. None: some loop may last
    whatever they are."""
    counting = counts(kernel)
    if counting is None:
        return None
    starts, _ = pack(kernel.signature)
    params, found = iter(kernel.params), []
    for t, start in zip(kernel.signature, starts, strict=True):
        for leaf in leaves(t):
            p = next(params)
            if p in counting and not isinstance(leaf.type, View) and leaf.type.size >= 4:
                found.append([start + leaf.offset, leaf.type.size])
    return found
