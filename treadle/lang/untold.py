"""Graphs that ran while a tape recorded, of whose operations it was not told: what becomes of their results."""

from __future__ import annotations

from typing import Any

from ..base.errors import KernelGradientError
from ..runtime.ranges import Range, Ranges
from ..runtime.writes import gapless
from .host_writes import HostWrite, Kept
from .parts import span_of
from .undo import grid

HINT = "capture the graph inside the block of the tape, or the tape, forward and backward, inside the graph"


class Untold(Kept):
    """A run of ``graph``, which read and wrote these bytes. ``graded``: it reads what has a gradient, whether or not
    operations of the tape use that; ``why``: why nobody knows what it did."""

    __slots__ = ("graded", "read", "why", "written")

    def __init__(self, graph: Any, why: str):
        super().__init__()
        self.why = why
        self.read: list[Range] = graph.read()
        self.written: list[Range] = [span_of(a) for a in graph.written()]
        read = Ranges(self.read)
        self.graded = any([read.meets(low, high) for low, high in graph.capture.graded])

    def depends(self, *known: Ranges) -> bool:
        """Whether it reads what has a gradient, or any byte of ``known``."""
        return self.graded or any([ranges.meets(low, high) for ranges in known for low, high in self.read])


def refuse_untold(ops: list[Any], hidden: Any) -> None:
    """Raise if an operation by which something with a gradient depends on others reads what a graph made of others
    with a gradient: nobody knows how to go back through the graph. ``hidden``: says what has a gradient."""
    if not hidden.untold:
        return
    made: list[tuple[Ranges, Untold]] = []
    for op in ops:
        if isinstance(op, Untold):
            if op.depends(hidden.mine, hidden.ranges, hidden.untold):
                made.append((Ranges(op.written), op))
            continue
        reads, writes, whole = _flow(op)
        for ranges, graph in made:
            met = [a for a in reads if ranges.meets(*span_of(a))]
            if met and any(hidden.of(a) is not None for a in writes):
                what = f"kernel {op[0].kernel.key} reads" if type(op) is tuple else "a copy reads"
                raise KernelGradientError(
                    f"wp.capture_launch ran a graph while the tape recorded, which writes {met[0]!r}, and reads what has "
                    f"a gradient; {what} that then. But the graph {graph.why}, so the tape does not know its derivative",
                    hint=HINT,
                )  # fmt: skip
            for a in whole:
                ranges.cut(*span_of(a))


def _flow(op: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """The arrays of floats that an operation reads, those that it writes, and those of them that it writes in whole."""
    if type(op) is tuple:
        plan, dim, args = op
        if plan.detached:
            return [], [], []
        floats = [(site, a) for site, a in [(site, site.of(args)) for site in plan.floats] if a is not None]
        whole = [a for site, a in floats if site.covered(a, grid(dim)) and gapless(a) >= 0]
        return [a for site, a in floats if site.loads], [a for site, a in floats if site.writes], whole
    if not isinstance(op, HostWrite):
        return [], [], []
    whole = [op.dest] if gapless(op.dest) >= 0 and len(op.args) < 2 else []
    return ([] if op.source is None else [op.source]), [op.dest], whole
