"""Updates of neighbours: the components of a vector that an atomic adds to are one row of memory.

``atomic_add`` of a vector is one update a component by the time code is written. Where they follow each other on one
element, a lane changes up to four of them at once: one pointer, one load, one sum, one store.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...ir.effects import Effects
from ...ir.node import Block, Func, Op, Value
from ...ir.walk import ops_of
from ...types.core import Scalar, f32, f64, i32, i64, u32, u64
from ...types.layout import offsets
from .lanewise import turned
from .scalar import to_memory
from .text import register, vector
from .values import X
from .wide import indices

if TYPE_CHECKING:
    from .atomics import Plan
    from .emitter import Emitter

LONGEST = 4  # scalars of a row
_KINDS = (f32, f64, i32, u32, i64, u64)
_PRIVATE = ("copy", "noted", "listed")


# --- what goes together -----------------------------------------------------------------------------------------------


def join(func: Func, plans: dict[Op, Plan]) -> None:
    """Note in ``plans`` which updates of ``func`` go together: the last of them is written for all, the others not."""
    makers = {r: op for op in ops_of(func.body) if op.name == "field" for r in op.results}
    for run in _runs(func.body, plans, makers):
        for row in _rows(run, makers):
            last = max(row, key=run.index)
            for op in row:
                plans[op].how = plans[op].how if op is last else "joined"
            plans[last].row = tuple(row)


def _runs(block: Block, plans: dict[Op, Plan], makers: dict[Value, Op]) -> Iterator[list[Op]]:
    """Updates of parts of one element, with no other update between them."""
    run: list[Op] = []
    for op in block.ops:
        for region in op.regions:
            yield from _runs(region, plans, makers)
        if op.name == "atomic":
            how = plans[op].how if op in plans else ""
            if not run or how != plans[run[0]].how or not _joins(op, run, makers):
                yield run
                run = []
            if run or (how in _PRIVATE and _joins(op, run, makers)):
                run.append(op)
        elif op.name == "call" or op.regions:
            yield run
            run = []
    yield run


def _joins(op: Op, run: list[Op], makers: dict[Value, Op]) -> bool:
    """Whether ``op`` sums into a part of the element that those of ``run`` sum into, and another part than theirs."""
    maker, t = makers.get(op.args[0]), op.results[0].type
    if maker is None or t not in _KINDS or op.attrs["op"] not in ("add", "sub") or maker.args[0].type.planar:
        return False
    if not run:
        return True
    first, others = run[0], [makers[other.args[0]] for other in run]
    same = op.args[1:-1] == first.args[1:-1] and op.attrs["op"] == first.attrs["op"] and t is first.results[0].type
    return same and maker.args[0] is others[0].args[0] and all(maker.attrs != other.attrs for other in others)


def _rows(run: list[Op], makers: dict[Value, Op]) -> Iterator[list[Op]]:
    """The updates of ``run`` whose places lie side by side, in that order."""
    if len(run) < 2:
        return
    places = offsets(makers[run[0].args[0]].args[0].type.elem)
    size = run[0].results[0].type.size
    place = {op: places[makers[op.args[0]].attrs["index"]] for op in run}
    made: list[list[Op]] = []
    for op in sorted(run, key=place.__getitem__):
        if made and place[op] == place[made[-1][-1]] + size and len(made[-1]) < LONGEST:
            made[-1].append(op)
        else:
            made.append([op])
    yield from [row for row in made if len(row) > 1]


def several(found: Effects, part: tuple[int, ...], root: str) -> int:
    """How many sites of ``root`` may meet at a part of its elements at places that vary."""
    sites = [s for s in found.sites if s.root == root and not s.uniform]
    return sum(s.part[: len(part)] == part[: len(s.part)] for s in sites)


# --- code -------------------------------------------------------------------------------------------------------------


def columns(e: Emitter, values: list[X]) -> list[str]:
    """Vectors that hold what each lane adds: one a component; or four of them with a lane's row in one piece, see
    :func:`row_offset`."""
    texts = [to_memory(e, x, False) for x in values]
    if not whole(e, len(values)):
        return texts
    return turned(e, register(values[0].type), texts + ["poison"] * (4 - len(texts)))


def whole(e: Emitter, count: int) -> bool:
    """Whether :func:`columns` has the ``count`` numbers of a lane side by side."""
    return count > 1 and e.width >= 4


def row_offset(e: Emitter, lane: int | str, size: int) -> int | str:
    """Where the row of ``lane`` lies in the four vectors, which hold lanes 0 4 8…, 1 5 9…, 2 6 10… and 3 7 11…"""
    if isinstance(lane, int):
        return (lane % 4 * e.width + lane // 4 * 4) * size
    which, place = e.t.ins(f"and i64 {lane}, 3"), e.t.ins(f"lshr i64 {lane}, 2")
    first, rest = e.t.ins(f"mul i64 {which}, {e.width * size}"), e.t.ins(f"mul i64 {place}, {4 * size}")
    return e.t.ins(f"add i64 {first}, {rest}")


def row_of(e: Emitter, four: list[str], lane: int, t, count: int) -> str:
    """The row of ``lane`` out of the four vectors."""
    many, first = vector(register(t), e.width), lane // 4 * 4
    picks = indices(range(first, first + count))
    return e.t.ins(f"shufflevector {many} {four[lane % 4]}, {many} poison, {picks}")


def load_row(e: Emitter, pointer: str, count: int, t: Scalar) -> str:
    """``count`` scalars at ``pointer``."""
    return e.t.ins(f"load {vector(register(t), count)}, ptr {pointer}, align {t.size}")


def change_row(e: Emitter, op: Op, pointer: str, row: str, count: int, old: str | None = None) -> str:
    """Add ``row`` to, or take it from, ``count`` scalars at ``pointer``, which are ``old`` if that is known; the
    result."""
    t = op.results[0].type
    kind = vector(register(t), count)
    before = load_row(e, pointer, count, t) if old is None else old
    new = e.t.ins(f"{'f' if t.is_float else ''}{op.attrs['op']} {kind} {before}, {row}")
    e.t.do(f"store {kind} {new}, ptr {pointer}, align {t.size}")
    return new
