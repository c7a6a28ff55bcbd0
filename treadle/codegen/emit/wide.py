"""Wide accesses: many scalars that lie side by side, under a mask or not."""

from __future__ import annotations

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
    many = vector(kind, count)
    plain = f"store {many} {value}, ptr {pointer}, align {align}"
    if mask is None:
        e.t.do(plain)
        return
    end = None
    if mask in e.full and not e.unit.target.mask_registers:  # where a masked store costs more than a dozen plain ones
        whole, part, end = e.t.label("whole"), e.t.label("part"), e.t.label("stored")
        e.t.branch(e.full[mask], whole, part)
        e.t.start(whole)
        e.t.do(plain)
        e.t.jump(end)
        e.t.start(part)
    name = f"@llvm.masked.store.v{count}{short(kind)}.p0"
    bits = vector("i1", count)
    e.t.declare(f"declare void {name}({many}, ptr, i32, {bits})")
    e.t.do(f"call void {name}({many} {value}, ptr {pointer}, i32 {align}, {bits} {mask})")
    if end is not None:
        e.t.jump(end)
        e.t.start(end)


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
