"""The part of a kernel that says how much it will add to its counters.

A kernel in the order *counted* uses results of its additions. What thread t sees is what stood there before the launch
and all that threads before t add; so the amounts of whole chunks of threads are summed first, chunk by chunk in any
order, and every chunk of the real run knows where its counters start. A counting pass is the kernel without its stores
and other updates, and without everything that only they need. It changes nothing, so it can be run again.
"""

from __future__ import annotations

from collections.abc import Collection

from ..ir import ops
from ..ir.node import Block, Func, Op, Value
from ..ir.walk import callees, ops_of, uses_of, with_body, with_ops, with_regions
from .dce import remove_dead

__all__ = ["counting_pass"]


def counting_pass(func: Func, counted: Collection[Op], known: Collection[Op]) -> Func | None:
    """What is left of the scalarized kernel ``func`` where only the amounts of the atomic ops ``counted`` matter.

    Results of the atomic ops ``known`` are at hand, those of all others are not. None where the amounts cannot be told
    apart from what is left out: a check looks at a result that is not known yet, memory is read that the thread may
    have written, a function that is called both writes to memory and decides on amounts, or lanes look at each other.
    """
    every = [op for f in (func, *callees(func)) for op in ops_of(f.body)]
    if any(op.name.startswith("lanes_") or ops.OPS[op.name].tape for op in every):
        return None
    cut = _Cut(func, counted, known)
    made = remove_dead(with_body(func, cut.block(func.body)))
    uses = uses_of(made.body)
    failed = cut.failed or any(v in uses for v in cut.unknown) or any(op in cut.late for op in ops_of(made.body))
    return None if failed else made


class _Cut:
    """One walk that leaves out what changes memory. ``unknown``: values that nothing may look at afterwards.
    ``changed``: the parameters whose memory the thread may have changed so far, None for any; ``late``: what reads it
    after that."""

    def __init__(self, func: Func, counted: Collection[Op], known: Collection[Op]):
        self.counted, self.known = set(counted), set(known)
        self.unknown: list[Value] = []
        self.failed = False
        self.writers = {f for f in callees(func) if any(_writes(op) for op in ops_of(f.body))}
        self.readers = {f for f in callees(func) if any(op.name == "load" for op in ops_of(f.body))}
        self.makers = {r: op for op in ops_of(func.body) for r in op.results}
        self.params = set(func.params)
        self.changed: set[Value | None] = set()
        self.late: set[Op] = set()

    def block(self, block: Block) -> Block:
        out: list[Op] = []
        for op in block.ops:
            self.look(op)
            if op.regions:
                op = with_regions(op, tuple([self.block(r) for r in op.regions]))
            if op.name == "call" and self.calls(op, self.writers):
                self.failed |= self.lasting(op.attrs["func"]) or any(_own(a) for a in op.args)
            elif op in self.counted:
                out.append(op)
                self.unknown.extend(op.results)
                continue
            elif op in self.known or not _writes(op) or _own(op.args[0]):
                out.append(op)
                continue
            self.unknown.extend(op.results)
            out.extend([Op("poison", (), (r,), span=op.span) for r in op.results])
        return with_ops(block, tuple(out))

    def look(self, op: Op) -> None:
        """Note what ``op`` changes, and whether it reads what was changed before. A loop comes back to its start."""
        if op.name in ("for", "while"):
            for inner in ops_of(op.regions[0]):
                self.note(inner)
        if op.name == "load" and not _own(op.args[0]):
            root = self.root(op.args[0])
            if self.changed and (root is None or root in self.changed or None in self.changed):
                self.late.add(op)
        elif op.name == "call" and self.changed and self.calls(op, self.readers):
            self.late.add(op)
        self.note(op)

    def note(self, op: Op) -> None:
        if op.name == "call":
            if self.calls(op, self.writers):
                self.changed.add(None)
        elif _writes(op) and op.args and not _own(op.args[0]):
            self.changed.add(self.root(op.args[0]))

    def root(self, v: Value) -> Value | None:
        """The parameter that the view ``v`` was cut out of; None if it may be anything."""
        while (maker := self.makers.get(v)) is not None and maker.name in ops.CUTS:
            v = maker.args[0]
        return v if v in self.params else None

    def calls(self, op: Op, some: set[Func]) -> bool:
        """Whether the call ``op`` comes to one of ``some``."""
        callee = op.attrs["func"]
        return callee in some or any(f in some for f in callees(callee))

    def lasting(self, func: Func) -> bool:
        """Whether a call of ``func`` may end a thread: then it cannot be left out."""
        return any(op.name == "check" for f in (func, *callees(func)) for op in ops_of(f.body))


def _writes(op: Op) -> bool:
    """Whether ``op`` itself changes what others may see, or shows it."""
    info = ops.OPS[op.name]
    return info.writes or info.orders


def _own(v: Value) -> bool:
    """Whether ``v`` is an array of the thread's own."""
    return getattr(v.type, "space", "") == "local"
