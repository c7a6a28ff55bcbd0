"""What the runtime is told of a kernel besides its code: where arrays stand among the parameters, and what a launch
checks, once, for all threads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..ir.node import Func


def places_of(func: Func, roots: Iterable[str]) -> list[list[int | str]]:
    """Where the arrays called ``roots`` stand among the parameters: number of the parameter, then of fields; "grad"
    behind them where the gradient is meant."""
    from ..ir.effects import data_of, leaf_paths
    from ..types.layout import leaves

    paths = leaf_paths(func)
    where = [[k, *leaf.path] for k, t in enumerate(func.signature) for leaf in leaves(t)]
    return [[*where[paths.index(data_of(root))], *(["grad"] if root != data_of(root) else [])] for root in roots]


def axes(func: Func) -> list[int]:
    """The dimensions of the grid in which the kernel asks for the thread's index."""
    from ..ir.walk import callees, ops_of

    asked = {op.attrs["axis"] for f in (func, *callees(func)) for op in ops_of(f.body) if op.name == "tid"}
    return sorted(asked)


def own_index(func: Func, effects: Any) -> list[dict[str, Any]]:
    """The accesses that a launch checks once, as the runtime reads them."""
    found = []
    where = places_of(func, [root for root, *_ in effects.unconditional])
    for (root, axis, kind, n), span, path in zip(effects.unconditional, effects.spans, where, strict=True):
        place = {"path": path, "axis": axis, "array": root, "file": span.file, "line": span.line,
                 "column": span.column, "end_column": span.end_column}
        rank = func.facts.get("ndim", 0)
        found.append({**place, "grid": n if rank > 1 else -1} if kind == "tid" else {**place, "index": n})
    return found


def own_places(func: Func, effects: Any) -> list[list[Any]] | None:
    """Of each array that a kernel touches, or of its gradient: where it stands, on which of its dimensions the axes of
    the grid stand, or None where threads meet in it, and whether it is written. No list where more than that matters:
    memory that no parameter leads to, an order of threads, output."""
    from ..ir.effects import UNKNOWN

    touched = {root: touch for root, touch in effects.roots.items() if not touch.private}
    if UNKNOWN in touched or effects.order != "free" or effects.prints:
        return None
    if any(touch.foreign for touch in touched.values()):
        return None
    found = []
    for path, touch in zip(places_of(func, touched), touched.values(), strict=True):
        place = [*next(iter(touch.places))] if touch.own else None
        found.append([path, place, touch.written or bool(touch.accumulated)])
    return found


def places(func: Func) -> str:
    """The places of all operations, which faults are reported at; part of the key, since the text leaves them out."""
    from ..ir.walk import callees, ops_of

    spans = {(op.span.file, op.span.line, op.span.column) for f in (*callees(func), func) for op in ops_of(f.body)}
    return repr(sorted(spans))
