"""Short kernels that only pass through memory read several places of it at once.

A processor fetches ahead along each stream of addresses that it sees, and only so far: one stream does not fill the way
to memory. So a kernel that waits for memory alone has the threads of a chunk taken from a few places of the chunk in
turn, :data:`RUN` neighbours at a time. A sum of 1e7 floats is read 1.7 times as fast from four places as from one.

Which threads come when depends on nothing but the kernel and the chunk, so results have the same bits for every width
and number of workers. It is done where threads do not meet at all, except in sums that all threads share: thread t
changes partial result t modulo 64 there (see ``atomics``), and a run is 64 threads long.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...ir.effects import UNKNOWN, Effects, effects
from ...ir.node import Func, Op
from ...ir.walk import ops_of

if TYPE_CHECKING:
    from .atomics import Plan
    from .emitter import Emitter
    from .unit import Unit

RUN = 64  # neighbouring threads that are taken together: a multiple of every gang's width
PLACES = {1: 4, 2: 2}  # by how many arrays are streams already
LEAST = 4096  # threads of a chunk, from which on it is done
SHORT, MEMORY_SHARE = 100, 0.2  # ops of a kernel that waits for memory, at most, and how many of them are accesses
STOPS = ("call", "for", "while", "if")


def places(unit: Unit, func: Func) -> int:
    """From how many places the threads of a chunk are taken."""
    options, summing = unit.options, _sums(unit.plans)
    if unit.target.kind != "cpu" or options.rows or options.order != "free" or unit.taped:
        return 1
    if options.checked and not summing:  # where checks fail the first thread is told
        return 1
    told = func.facts.get("places") if summing else None  # sums have one order in all variants: with checks, tangents
    if told is None:
        return wanted(func, unit.plans)
    return told if told > 1 and not _meet(effects(func), unit.plans) else 1


def wanted(func: Func, plans: Mapping[Op, Plan]) -> int:
    """From how many places it would be worth while, for a kernel without checks and tangents."""
    ops = [op for op in ops_of(func.body) if op.name != "const"]
    accesses = sum([op.name in ("load", "store") for op in ops])
    if len(ops) > SHORT or accesses < MEMORY_SHARE * len(ops) or any([op.name in STOPS for op in ops]):
        return 1
    found = effects(func)
    if _meet(found, plans) or (_sums(plans) and func.facts.get("ndim", 0) > 1):  # gangs of some widths go along rows
        return 1
    return PLACES.get(sum([t.own for t in found.roots.values() if not t.private]), 1)


def _sums(plans: Mapping[Op, Plan]) -> bool:
    return any([one.how == "sum" for one in plans.values()])


def _meet(found: Effects, plans: Mapping[Op, Plan]) -> bool:
    """Whether threads may meet at some place, save in sums."""
    touched = {root: touch for root, touch in found.roots.items() if not touch.private}
    others = {site.root for site in found.sites if plans[site.op].how != "sum"}
    return UNKNOWN in touched or found.prints or any([
        not t.own and (t.written or t.accumulated and root in others) for root, t in touched.items()
    ])  # fmt: skip


def runs(e: Emitter, count: int, gangs) -> None:
    """``gangs(begin, end)`` for one run after the other: from ``count`` places of ``[%begin, %end)`` in turn, then what
    is left behind the last of them."""
    t = e.t
    size = t.ins("sub i64 %end, %begin")
    part = t.ins(f"and i64 {t.ins(f'udiv i64 {size}, {count}')}, {-RUN}")
    part = t.ins(f"select i1 {t.ins(f'icmp uge i64 {size}, {LEAST}')}, i64 {part}, i64 0")
    total = t.ins(f"mul i64 {part}, {count}")
    number = t.ins(f"udiv i64 {total}, {RUN}")
    rest = t.ins(f"add i64 %begin, {total}")
    loop, done, before = t.label("runs"), t.label("ran"), t.block
    t.jump(loop)
    t.start(loop)
    run, following = t.name(), t.name()
    phi = t.slot()
    place, block = t.ins(f"urem i64 {run}, {count}"), t.ins(f"udiv i64 {run}, {count}")
    offset = t.ins(f"add i64 {t.ins(f'mul i64 {place}, {part}')}, {t.ins(f'mul i64 {block}, {RUN}')}")
    first = t.ins(f"add i64 %begin, {offset}")
    inside = t.ins(f"icmp ult i64 {run}, {number}")
    begin = t.ins(f"select i1 {inside}, i64 {first}, i64 {rest}")
    end = t.ins(f"select i1 {inside}, i64 {t.ins(f'add i64 {first}, {RUN}')}, i64 %end")
    gangs(begin, end)
    t.do(f"{following} = add i64 {run}, 1")
    phi.append(f"  {run} = phi i64 [ 0, %{before} ], [ {following}, %{t.block} ]")
    t.branch(t.ins(f"icmp ule i64 {following}, {number}"), loop, done)
    t.start(done)
