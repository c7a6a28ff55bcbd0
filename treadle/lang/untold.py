"""What a tape cannot follow: graphs that ran while it recorded, of whose operations it was not told, and launches that
find arrays in memory, as those of Fabric. Who depends on what they made is refused."""

from __future__ import annotations

from typing import Any

from ..base.errors import KernelGradientError
from ..runtime.array import array
from ..runtime.ranges import Range, Ranges
from ..runtime.writes import gapless
from ..types.layout import has_floats
from .host_writes import HostWrite, Kept
from .parts import span_of
from .undo import grid

INSTEAD = "pass an array to the kernel, and copy it from or to the Fabric array"
HINT = "capture the graph inside the block of the tape, or the tape, forward and backward, inside the graph"


class Untold(Kept):
    """A run of ``graph``, which read and wrote these bytes. ``graded``: it reads what has a gradient, whether or not
    operations of the tape use that; ``why``: why nobody knows what it did."""

    __slots__ = ("graded", "read", "why", "written")

    untold = True

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
    """Raise if an operation by which something with a gradient depends on others reads what was made of others with a
    gradient in a way that nobody knows: by a graph, or by a launch that wrote through memory; or if a launch finds in
    memory what has a gradient of which it is not told. ``hidden``: says what has a gradient."""
    made: list[tuple[Ranges, Any]] = []
    for op in ops:
        if isinstance(op, Untold):
            if op.depends(hidden.mine, hidden.ranges, hidden.untold):
                made.append((Ranges(op.written), op))
            continue
        reads, writes, whole = _flow(op)
        held = _held(op)
        if (made or held) and any([hidden.of(a) is not None for a in writes]):
            for ranges, maker in made:
                for a in (*reads, *held):
                    if ranges.meets(*span_of(a)):
                        _refuse(a, maker, op)
            for a in held:
                if a._grad is None and hidden.knows(a):
                    _refuse(a, None, op)
        for ranges, _ in made:
            for a in whole:
                ranges.cut(*span_of(a))
        if type(op) is tuple and op[0].unseen and any([hidden.depends(a) for a in (*reads, *held)]):
            made.append((Ranges([span_of(a) for a in held if a._grad is None]), op))


def refuse_unseen_writes(ops: list[Any], hidden: Any) -> None:
    """Raise if a launch may write to what has a gradient by an array in memory that has none, as those in buckets: its
    adjoint could not tell what becomes of that gradient."""
    for plan, _, args in [op for op in ops if type(op) is tuple and op[0].unseen]:
        if any(a._grad is None and hidden.knows(a) for a in plan.held(args)):
            raise KernelGradientError(
                f"kernel {plan.kernel.key} writes through memory, as a Fabric array does, to an array that has a "
                "gradient: what becomes of that is not known",
                hint="pass that array itself, or launch with record_tape=False",
            )  # fmt: skip


def refuse_nameless(plan: Any, args: Any) -> None:
    """Raise if a launch that stores to arrays in memory what it reads again, and derivatives with it, may do so to one
    without a gradient: they would be lost there."""
    for a in plan.held(args):
        if a._grad is None and not a.read_only and has_floats(a.type.elem):
            raise KernelGradientError(
                f"kernel {plan.kernel.key} reads again what it stores to arrays in memory, such as those in an array "
                f"of structs, and derivatives pass through; but {a!r} there has no gradient",
                hint="make it with requires_grad=True",
            )  # fmt: skip


def _refuse(a: array, maker: Any, reader: Any) -> None:
    """Raise since ``reader`` reads ``a``, which ``maker`` made; None: it found ``a`` in memory."""
    what = f"kernel {reader[0].kernel.key} reads" if type(reader) is tuple else "a copy reads"
    if isinstance(maker, Untold):
        raise KernelGradientError(
            f"wp.capture_launch ran a graph while the tape recorded, which reads what has a gradient and writes {a!r}; "
            f"{what} that then. But the graph {maker.why}, so the tape does not know its derivative", hint=HINT,
        )  # fmt: skip
    if maker is not None:
        raise KernelGradientError(
            f"kernel {maker[0].kernel.key} writes what depends on something with a gradient through memory, as a "
            f"Fabric array does, to {a!r}; {what} that then, and what becomes of the gradient is not known",
            hint=INSTEAD,
        )
    raise KernelGradientError(
        f"{what} {a!r} through memory, as a Fabric array does; that depends on something with a gradient, and what "
        "becomes of the gradient is not known", hint=INSTEAD,
    )  # fmt: skip


def _held(op: Any) -> list[array]:
    """The arrays of floats that a launch finds in memory."""
    if type(op) is not tuple or not op[0].holders or op[0].detached:
        return []
    return [a for a in op[0].held(op[2]) if has_floats(a.type.elem)]


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
