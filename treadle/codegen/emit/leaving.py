"""Gangs that meet what is unusual before they have changed anything: their threads run one by one instead.

An index out of memory may be negative and then counts from the end (``passes.ends``), by the extent of each array that
it is used for. Hardly any ever is. A full gang therefore looks at the signs of such indices once, when it first needs
one of them, and leaves if there is a negative one: the loop that runs the last few threads of a launch runs those of
the gang. Otherwise arrays of any extent have the index, and what is made of it, in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...ir.node import Func, Op, Value
from ...ir.ops import info
from ...ir.reach import counted
from ...ir.walk import ops_of
from ...types.core import i32
from .faults import func_fails
from .text import vector

if TYPE_CHECKING:
    from .emitter import Emitter
    from .memory import Access
    from .values import X

_HARMLESS = ("load", "local", "lanes_any", "lanes_max")  # of the ops that are not pure


@dataclass(slots=True)
class Leaving:
    """``label``: where a gang goes that leaves. ``indices``: what it looks at. ``first``: for each of them the select
    that counts it from the end and comes before anything is changed; ``selects``: all that count one of them.
    ``seen``: those that it has looked at."""

    label: str
    first: dict[Op, Value]
    selects: frozenset[Op]
    indices: frozenset[Value]
    seen: set[Value]

    def counts(self, e: Emitter, op: Op) -> bool:
        """Whether ``op`` counts an index that the gang looks at; then its result is the index."""
        if op not in self.selects:
            return False
        if op in self.first and op.args[2] not in self.seen:
            self._look(e, [i for i in self.first.values() if i in e.env and i not in self.seen])
        e.env[op.results[0]] = e.number(op.args[2])
        return True

    def _look(self, e: Emitter, indices: list[Value]) -> None:
        """Leave if one of ``indices`` is negative."""
        self.seen.update(indices)
        t, go, known, kind, signs = e.t, e.t.label("counts"), e.t.known, vector("i32", e.width), ""
        for i in indices:
            number = e.wide(e.number(i))
            signs = t.ins(f"or {kind} {signs}, {number}") if signs else number
        t.branch(e.any(t.ins(f"icmp slt {kind} {signs}, zeroinitializer")), self.label, go)
        t.start(go, known)

    def load(self, e: Emitter, element: Access) -> X:
        """An index that lies lane after lane. Addresses are made of its lanes one by one, which are loaded so too, two
        at once: before the vector, or LLVM would take them out of that."""
        start, singles = element.item_address(element.items[0]).start(element.view.data), []
        for lane in range(0, e.width, 2):
            at = e.t.ins(f"getelementptr i8, ptr {start}, i64 {4 * lane}") if lane else start
            two = e.t.ins(f"load i64, ptr {at}, align 4")
            low = e.t.ins(f"trunc i64 {two} to i32")
            singles += [e.t.ins(f"sext i32 {low} to i64"), e.t.ins(f"ashr i64 {two}, 32")]
        (x,) = element.load()
        e.singles[e.wide(x)] = singles
        return x


def leaving(e: Emitter, func: Func, label: str) -> Leaving | None:
    """What a full gang of ``func`` may leave by. None where none does: no index can be negative, or something was
    changed before, or drawn from counters; or gangs run along rows, where no loop takes threads one by one."""
    if e.unit.options.rows or e.unit.drawing or func_fails(e.unit, func):
        return None
    makers: dict[Value, Op] = {}
    first: dict[Value, Op] = {}
    for op in func.body.ops:
        if _changes(e, op):
            break
        makers.update(dict.fromkeys(op.results, op))
        index = counted(op, makers) if op.name == "select" else None
        if index is not None and index.type is i32 and e.lanes.steps[index] is None:
            first.setdefault(index, op)
    if not first:
        return None
    makers = {r: op for op in ops_of(func.body) for r in op.results}
    selects = [op for op in ops_of(func.body) if op.name == "select" and counted(op, makers) in first]
    return Leaving(label, {op: i for i, op in first.items()}, frozenset(selects), frozenset(first), set())


def _changes(e: Emitter, op: Op) -> bool:
    """Whether ``op`` may change memory, or what a gang that begins anew does not forget."""
    if op.name == "atomic":
        return e.unit.plans[op].how not in ("noted", "joined")
    return not (info(op.name).pure or op.name in _HARMLESS)
