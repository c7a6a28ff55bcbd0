"""Wide accesses: many scalars that lie side by side, under a mask or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .text import vector

if TYPE_CHECKING:
    from .emitter import Emitter


def indices(numbers) -> str:
    picks = [f"i32 {n}" for n in numbers]
    return f"<{len(picks)} x i32> <{', '.join(picks)}>"


def stretched(e: Emitter, mask: str, each: int, total: int) -> str:
    """Every lane of ``mask`` repeated ``each`` times, ``total`` lanes of it."""
    return e.t.ins(f"shufflevector {e.bits} {mask}, {e.bits} poison, {indices(k // each for k in range(total))}")


def short(kind: str) -> str:
    return {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}.get(kind, kind)


def wide_load(e: Emitter, kind: str, count: int, pointer: str, mask: str | None, align: int) -> str:
    many = vector(kind, count)
    if mask is None:
        return e.t.ins(f"load {many}, ptr {pointer}, align {align}")
    name = f"@llvm.masked.load.v{count}{short(kind)}.p0"
    bits = vector("i1", count)
    e.t.declare(f"declare {many} {name}(ptr, i32, {bits}, {many})")
    return e.t.ins(f"call {many} {name}(ptr {pointer}, i32 {align}, {bits} {mask}, {many} zeroinitializer)")


def wide_store(e: Emitter, kind: str, count: int, value: str, pointer: str, mask: str | None, align: int) -> None:
    """Store ``count`` scalars that lie side by side, those of ``mask`` only."""
    many = vector(kind, count)
    if mask is None:
        e.t.do(f"store {many} {value}, ptr {pointer}, align {align}")
        return
    name = f"@llvm.masked.store.v{count}{short(kind)}.p0"
    bits = vector("i1", count)
    e.t.declare(f"declare void {name}({many}, ptr, i32, {bits})")
    e.t.do(f"call void {name}({many} {value}, ptr {pointer}, i32 {align}, {bits} {mask})")


def where_full(e: Emitter, whole: Callable[[], None], part: Callable[[], None]) -> None:
    """Code for a mask that has every lane, and for one that has not: the mask is tested when the code runs.

    Without mask registers a masked store costs as much as a dozen plain ones or more, and most masks are full.
    """
    assert e.mask is not None
    test = e.full.get(e.mask)
    if test is None:
        bits = e.t.ins(f"bitcast {e.bits} {e.mask} to i{e.width}")
        test = e.t.ins(f"icmp eq i{e.width} {bits}, -1")
    full, rest, end = e.t.label("whole"), e.t.label("part"), e.t.label("stored")
    e.t.branch(test, full, rest)
    mask, before = e.mask, e.t.known
    e.t.start(full, before)
    e.mask = None
    whole()
    e.t.jump(end)
    e.t.start(rest, before)
    e.mask = mask
    part()
    e.t.jump(end)
    e.t.start(end, before)


def interleaved(e: Emitter, kind: str, columns: list[str]) -> str:
    """Lane 0 of every column, lane 1 of every column, …, as one long vector."""
    w, n = e.width, len(columns)
    parts, size = list(columns), w
    while len(parts) > 2:  # pairs side by side, until two vectors hold all
        many = vector(kind, size)
        if len(parts) % 2:
            parts.append("poison")
        picks = indices(range(2 * size))
        parts = [
            "poison" if a == "poison" else e.t.ins(f"shufflevector {many} {a}, {many} {b}, {picks}")
            for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
        size *= 2
    if len(parts) == 1:
        parts.append("poison")
    many = vector(kind, size)
    picks = indices((k % n) * w + k // n for k in range(n * w))
    return e.t.ins(f"shufflevector {many} {parts[0]}, {many} {parts[1]}, {picks}")
