"""Bringing values of several paths, or of two sets of lanes, together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.errors import InternalError
from ...ir.node import Value
from ...passes.lanes import BASE
from .text import register, vector
from .values import ViewX, X

if TYPE_CHECKING:
    from .emitter import Emitter

Thing = X | ViewX
Edge = tuple[str, Thing]


def part_steps(step: int | None | str, count: int) -> list[int | None]:
    """The lane steps of the numbers of a view with lane step ``step``."""
    if step == BASE:
        return [None, None] + [0] * (count - 2)
    return [0 if step == 0 else None] * count


def merge(e: Emitter, value: Value, edges: list[Edge]) -> Thing:
    """The value that comes over one of ``edges`` (block, what it is there) into the block just begun."""
    return merge_all(e, [(value, edges)])[0]


def merge_all(e: Emitter, values: list[tuple[Value, list[Edge]]]) -> list[Thing]:
    """:func:`merge` of several values, sealed where they come from; all phis come first."""
    pending: list[X] = []
    out: list[Thing] = []
    for value, edges in values:
        step = e.lanes.steps[value]
        first = edges[0][1]
        if all(thing is first for _, thing in edges):
            out.append(first)
        elif isinstance(first, X):
            out.append(_phi(e, step, [(b, x) for b, x in edges], pending))
        else:
            out.append(_merge_views(e, step, edges, pending))
    home = e.t.slot()
    for x in pending:
        x.home = home
    return [e.unsealed(thing) for thing in out]


def _merge_views(e: Emitter, step: int | None | str, edges: list[Edge], pending: list[X]) -> ViewX:
    views = [v for _, v in edges if isinstance(v, ViewX)]
    if len({v.base for v in views}) > 1:
        raise InternalError("two different arrays of a thread meet in one name")
    columns = zip(*[v.parts() for v in views], strict=True)
    steps = part_steps(step, len(views[0].parts()))
    parts = [
        xs[0] if all(x is xs[0] for x in xs) or all(x.text is not None and x.text == xs[0].text for x in xs)
        else _phi(e, s, [(b, x) for (b, _), x in zip(edges, xs, strict=True)], pending)
        for s, xs in zip(steps, columns, strict=True)
    ]  # fmt: skip
    return views[0].rebuilt(parts)


def _phi(e: Emitter, step: int | None | str, edges: list[tuple[str, X]], pending: list[X]) -> X:
    t = edges[0][1].type
    name = e.t.name()
    e.t.lines.append(f"  {name} = {phi_text(e, step, edges)}")
    if step is None:
        return X(t, None, name, None)
    x = X(t, name, None, step if isinstance(step, int) else 0)
    pending.append(x)
    return x


def phi_text(e: Emitter, step: int | None | str, edges: list[tuple[str, X]]) -> str:
    """The right side of a phi: of scalar operands, or of vectors if ``step`` is None."""
    kind = register(edges[0][1].type)
    if step is None:
        return f"phi {vector(kind, e.width)} " + ", ".join(f"[ {e.wide(x)}, %{b} ]" for b, x in edges)
    return f"phi {kind} " + ", ".join(f"[ {x.text}, %{b} ]" for b, x in edges)


def keeps(a: Thing, b: Thing, since: int) -> bool:
    """Whether ``a`` was blended with ``b`` when there were ``since`` names or more."""
    return a.kept is not None and a.kept[0] is b and a.kept[1] >= since


def blend(e: Emitter, condition: str, a: Thing, b: Thing, since: int = 0) -> Thing:
    """``a`` in the lanes of ``condition``, ``b`` elsewhere; no code where they are the same or ``a`` keeps ``b`` there.

    ``since``: how many names there were when the lanes of ``condition`` began to run alone. What was blended earlier
    keeps ``b`` outside of more lanes than these.
    """
    if a is b or keeps(a, b, since):
        return a
    if isinstance(a, ViewX):
        assert isinstance(b, ViewX)
        if a.base != b.base:
            raise InternalError("two different arrays of a thread meet in one name")
        return a.rebuilt([blend(e, condition, x, y, since) for x, y in zip(a.parts(), b.parts(), strict=True)])
    assert isinstance(b, X)
    if a.text is not None and a.text == b.text and a.step == b.step:
        return a
    made = e.blend(condition, a, b)
    made.kept = b, e.t.count
    return made
