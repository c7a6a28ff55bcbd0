"""Atomic updates, with the same bits for every gang width and every number of workers.

How a site is written follows from where it updates and what is done with its result:

* at the thread's own index (or in its own array): an ordinary read and write, a vector at a time;
* *sum*: an address that all threads share; 64 partial results by thread index modulo 64 in private memory;
* *copy*: addresses that vary; lane after lane on a private copy of the array. Where rounding makes the order matter and
  a thread has several updates, they are held until the gang's end and applied thread by thread;
* *copy* with *slots*: in loops, where a gang's lanes meet at one element after the other: see ``slots.py``;
* *counted*: results of integer additions are used; on the chunk's copy of the counters, which holds what threads of
  earlier chunks leave there. A counting pass has summed that up: the same kernel without what counting needs not;
* *serial*: results are used; on the array itself, in a kernel that runs in thread order.

Where a counter has one address, the last two are a prefix sum over the gang; else lane comes after lane.

Private memory is laid out and merged by the launch driver, which reads ``meta["atomics"]``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...ir.effects import UNKNOWN, Counter, Effects, Site, data_of, effects, leaf_paths
from ...ir.node import Func, Op
from ...ir.walk import callees, ops_of
from ...passes.counting import counting_pass
from ...types.core import Scalar, i64
from ...types.layout import leaves
from ...types.records import SLOTS, SUMS, SUMS_AT
from . import counted, held, memory, rows, slots
from .scalar import Lower, from_memory, lowering, to_memory
from .text import memory as memory_type
from .text import register, vector
from .values import ViewX, X

if TYPE_CHECKING:
    from .emitter import Emitter

_COMMUTES = {"add", "sub", "min", "max", "and", "or", "xor"}


@dataclass(slots=True)
class Plan:
    """How one site is written. ``item``: its number in ``meta["atomics"]``; ``param``: the kernel parameter it
    updates, or whose gradient if ``grad``."""

    how: str  # own, sum, copy, noted, listed, counted, drawn, serial; or joined: written with another
    item: int = -1
    param: int = -1
    grad: bool = False
    number: int = 0  # among the held sites
    slots: int = -1  # the number of the item with a slot for each thread, if its array has one
    sure: bool = False  # it runs whenever the kernel does
    row: tuple[Op, ...] = ()  # all updates that it is written for, in the order of their places
    round: int = 0  # in which it is counted
    counter: int = 0  # of a drawn one: the number of what it draws from, and its type
    type: Scalar = i64


@dataclass(frozen=True, slots=True)
class Part:
    """A counting pass: the kernel without what it does not need, and its gang width."""

    func: Func
    width: int


@dataclass(slots=True)
class Planned:
    """``order``: the one that a kernel can really run in. ``plans``: one for each atomic op. ``items``: private
    targets. ``counting``: the counting pass of each round. ``apart``: pairs of arrays that must lie apart where those
    run. ``draws``: gangs tally before they run. ``alone``: a gang has one thread. ``lanewise``: updates of counters
    that serve lane after lane."""

    order: str
    plans: dict[Op, Plan] = field(default_factory=dict)
    items: list[dict] = field(default_factory=list)
    counting: list[Func] = field(default_factory=list)
    apart: list[tuple[list[int], list[int]]] = field(default_factory=list)
    draws: bool = False
    alone: bool = False
    lanewise: set[Op] = field(default_factory=set)

    @property
    def widest(self) -> int:
        """Lanes of a gang, at most: those that update slots have one each."""
        return SLOTS if any(item["kind"] == "slots" for item in self.items) else 64

    @property
    def drawing(self) -> tuple[Func, ...]:
        """The passes in which a gang tallies."""
        return tuple(self.counting) if self.draws else ()


def plan(func: Func, order: str, relaxed: bool = False) -> Planned:
    """How the atomic ops of ``func`` are written, which says in what order it can really run. ``relaxed``: floats are
    added up as integers are, so that none need be held."""
    if not any(op.name == "atomic" for f in (func, *callees(func)) for op in ops_of(f.body)):
        return Planned(order)
    found = effects(func)
    made = Planned(order)
    if order == "free" and not _can_be_private(func, found):
        made.order = "ordered"
    if order == "counted":
        made.counting = _counting(func, found)
        if not made.counting and not found.single:
            made.order = "ordered"
    made.draws = bool(made.counting) and not found.single and _can_draw(found, made.counting)
    made.alone = made.order == "ordered" or (order == "counted" and not found.single and not made.draws)
    _plan_sites(func, found, made, relaxed)
    if made.counting:
        made.apart = _apart(func, found, made.counting)
    return made


def _plan_sites(func: Func, found: Effects, made: Planned, relaxed: bool) -> None:
    plans, rounds = made.plans, {k: r for r, numbers in enumerate(found.rounds) for k in numbers}
    always = set(func.body.ops)
    shared: dict[tuple[str, str], int] = {}
    counters: dict[Counter, int] = {}
    waiting: list[Plan] = []
    for k, site in enumerate(found.sites):
        if found.roots[site.root].own:
            plans[site.op] = Plan("own")
        elif made.counting and k in rounds:
            plans[site.op] = one = _counted_plan(func, site, rounds[k], made.items, shared)
            if not site.uniform:
                made.lanewise.add(site.op)
            if made.draws:
                one.how, one.counter = "drawn", counters.setdefault(found.counter(site), len(counters))
        elif made.order == "free" or made.counting:
            plans[site.op] = one = _private_plan(func, site, found, made.items, shared)
            if relaxed and one.how == "noted":
                one.how = "copy"
            if one.how == "noted":
                one.number, one.sure = len(waiting), site.op in always
                waiting.append(one)
        else:
            plans[site.op] = Plan("serial")
    if any(s.loop and plans[s.op].how == "noted" for s in found.sites):
        for one in waiting:
            one.how = "listed"
    if made.order == "free":
        slots.choose(func, found, plans, made.items)
    rows.join(func, plans)


def _counting(func: Func, found: Effects) -> list[Func]:
    """The counting pass of each round; none where the kernel has to run in thread order: a pass writes nothing, so what
    it reads must not be what other threads write."""
    unknown = found.roots.get(UNKNOWN)
    if not _can_be_private(func, found) or (unknown is not None and (unknown.written or unknown.accumulated)):
        return []
    passes: list[Func] = []
    known: list[Op] = []
    for numbers in found.rounds:
        ops = [found.sites[k].op for k in numbers]
        made = counting_pass(func, ops, known)
        if made is None or not all(found.roots[root].own for root in _changed(found) & _shown(made)):
            return []
        passes.append(made)
        known += ops
    return passes


def _can_draw(found: Effects, passes: list[Func]) -> bool:
    """Whether gangs can tally: the place of every counter is known, and nothing is called on the way."""
    placed = all(found.counter(found.sites[k])[1] is not None for numbers in found.rounds for k in numbers)
    return placed and not any(op.name == "call" for f in passes for op in ops_of(f.body))


def _apart(func: Func, found: Effects, passes: list[Func]) -> list[tuple[list[int], list[int]]]:
    """Pairs of arrays that must lie apart: what a counting pass reads and what the kernel changes, counters and
    all that the kernel touches."""
    shown, changed = set().union(*map(_shown, passes)), _changed(found)
    touched = {root for root, t in found.roots.items() if not t.private and root != UNKNOWN}
    counters = {found.sites[k].root for numbers in found.rounds for k in numbers}
    pairs = {(a, b) for a in shown for b in changed} | {(a, b) for a in counters for b in touched}
    return [(_path(func, a), _path(func, b)) for a, b in sorted(pairs) if a != b]


def _shown(func: Func) -> set[str]:
    """The arrays that ``func`` reads."""
    return {root for root, touch in effects(func).roots.items() if touch.read and not touch.private}


def _changed(found: Effects) -> set[str]:
    """The arrays that are written or updated."""
    return {root for root, t in found.roots.items() if not t.private and (t.written or t.accumulated)}


def _can_be_private(func: Func, found: Effects) -> bool:
    """Whether every foreign update goes to a known array of one type of scalars, from the kernel itself."""
    own = {op for op in ops_of(func.body)}
    foreign = [s for s in found.sites if not found.roots[s.root].own]
    types = {(s.root, s.type) for s in foreign}
    alone = len(types) == len({root for root, _ in types})
    return alone and all(s.root != UNKNOWN and s.op in own and s.kind in _COMMUTES for s in foreign)


def _path(func: Func, root: str) -> list[int]:
    """Where the array ``root`` stands among the parameters: the parameter's number, then of fields; "grad" of a
    gradient."""
    paths = [[k, *leaf.path] for k, t in enumerate(func.signature) for leaf in leaves(t)]
    path = paths[_param(func, root)]
    return path if root == data_of(root) else [*path, "grad"]


def _param(func: Func, root: str) -> int:
    """The number of the kernel parameter that ``root`` belongs to."""
    return leaf_paths(func).index(data_of(root))


def _counted_plan(func: Func, site: Site, number: int, items: list[dict], shared: dict[tuple[str, str], int]) -> Plan:
    key = site.root, f"count{number}"
    if key not in shared:
        fact = {"op": "count", "scalar": site.type.name, "path": _path(func, site.root)}
        items.append({"kind": "count", "round": number, **fact})
        shared[key] = len(items) - 1
    return Plan("counted", shared[key], _param(func, site.root), round=number, type=site.type)


def _private_plan(
    func: Func, site: Site, found: Effects, items: list[dict], shared: dict[tuple[str, str], int]
) -> Plan:
    param, grad = _param(func, site.root), site.root != data_of(site.root)
    kind = "add" if site.kind == "sub" else site.kind
    fact = {"op": kind, "scalar": site.type.name, "path": _path(func, site.root)}
    if site.uniform:
        items.append({"kind": "sum", **fact})
        return Plan("sum", len(items) - 1, param, grad)
    if (site.root, kind) not in shared:
        items.append({"kind": "copy", **fact})
        shared[site.root, kind] = len(items) - 1
    several = site.loop or rows.several(found, site.part, site.root) > 1
    return Plan("noted" if site.type.is_float and several else "copy", shared[site.root, kind], param, grad)


# --- sites -----------------------------------------------------------------------------------------------------------


def _atomic(e: Emitter, op: Op) -> None:
    chosen = e.unit.plans.get(op, Plan("serial"))
    if chosen.how == "joined":
        e.env[op.results[0]] = e.zero(op.results[0])
    elif chosen.row and e.width > 1:
        _row(e, chosen)
    else:
        for each in chosen.row or (op,):
            _write(e, each, chosen)


def _write(e: Emitter, op: Op, chosen: Plan) -> None:
    element, view = memory.access(e, op)
    values = [e.number(a) for a in op.args[1 + view.type.ndim :]]
    how = "own" if view.base is not None else chosen.how
    if chosen.slots >= 0 and how != "own":
        slots.write(e, (op,), element, values, chosen, lambda: _HOW[how](e, op, element, values, chosen))
    else:
        _HOW[how](e, op, element, values, chosen)


def update(low: Lower, kind: str, old: X, values: list[X]) -> X:
    """What ``kind`` makes of ``old``."""
    x, t = values[0], old.type
    if kind in ("add", "sub"):
        return low.binary(("f" if t.is_float else "") + kind, old, x)
    if kind in ("and", "or", "xor"):
        return low.binary(kind, old, x)
    if kind == "exch":
        return x
    if kind == "cas":
        same = low.fcmp("oeq", old, x) if t.is_float else low.icmp("eq", old, x)
        return low.select(same, values[1], old)
    return lowering(kind)(low, old, x)  # min and max


def _own(e: Emitter, op: Op, element: memory.Access, values: list[X], plan: Plan) -> None:
    """Nobody else comes here: read, change, write."""
    (old,) = element.load()
    element.store([update(Lower(e, old.type, old.type, e.width == 1), op.attrs["op"], old, values)])
    e.settle(op.results[0], old)


def lane_values(e: Emitter, x: X, lane: int) -> X:
    if x.step == 0 and x.text is not None:
        return x
    kind = vector(register(x.type), e.width)
    return X(x.type, e.t.ins(f"extractelement {kind} {e.wide(x)}, i64 {lane}"))


def change(e: Emitter, op: Op, t: Scalar, pointer: str, values: list[X]) -> X:
    """Read, change and write one scalar; the old value."""
    old = from_memory(e, e.t.ins(f"load {memory_type(t)}, ptr {pointer}, align {t.size}"), t, True)
    new = update(Lower(e, t, t, True), op.attrs["op"], old, values)
    e.t.do(f"store {memory_type(t)} {to_memory(e, new, True)}, ptr {pointer}, align {t.size}")
    return old


def _serial(e: Emitter, op: Op, element: memory.Access, values: list[X], plan: Plan) -> None:
    """Lane after lane, as if threads came one after the other."""
    result, t = op.results[0], element.items[0].type
    if e.width > 1 and element.shape == "uniform" and t.is_int and op.attrs["op"] in ("add", "sub"):
        counted.scan(e, op, element, values[0])
        return
    if e.width == 1:
        pointer = (
            element.at.start(element.view.data) if element.view.base is None else element.at.local_start(element.view)
        )
        old = change(e, op, t, pointer, values)
        e.settle(result, old)
        return
    used = e.lanes.uses.get(result, 0) > 0
    kind, olds = vector(register(t), e.width), "poison"
    pointers = element.pointers(element.at)
    for lane, pointer in enumerate(pointers.each_changed(t.size) if t.is_int else pointers.each(t.size)):
        old = change(e, op, t, pointer, [lane_values(e, x, lane) for x in values])
        if used:
            olds = e.t.ins(f"insertelement {kind} {olds}, {register(t)} {old.text}, i64 {lane}")
    e.env[result] = X(t, None, olds, None) if used else e.zero(result)


def _shift(e: Emitter, plan: Plan) -> X:
    """Bytes from the array to the private copy."""
    func = e.unit.kernel
    view = e.env[func.params[plan.param]]
    assert isinstance(view, ViewX)
    copy = e.private(plan.item)
    key = f"shift{plan.item}"
    if key not in e.place:
        here = e.t.into(e.after_parameters, f"ptrtoint ptr {copy} to i64")
        data = view.grad if plan.grad else view.data
        there = e.t.into(e.after_parameters, f"ptrtoint ptr {data.text} to i64")
        e.place[key] = e.t.into(e.after_parameters, f"sub i64 {here}, {there}")
    return X(i64, e.place[key])


def _copy(e: Emitter, op: Op, element: memory.Access, values: list[X], plan: Plan) -> None:
    element.at.scalars.append(_shift(e, plan).text)
    _serial(e, op, element, values, plan)


def _drawn(e: Emitter, op: Op, element: memory.Access, values: list[X], plan: Plan) -> None:
    """A counter of several sites; in the pass that counts it, its sites just add."""
    if e.width == 1 or plan.round >= len(e.unit.drawing):
        _copy(e, op, element, values, plan)
        return
    element.at.scalars.append(_shift(e, plan).text)
    counted.draw(e, op, element, values[0], plan)


def _sum(e: Emitter, op: Op, element: memory.Access, values: list[X], plan: Plan) -> None:
    """Thread t changes partial result t modulo 64 of a target that all threads share."""
    t, w = element.items[0].type, e.width
    base = e.private(plan.item)
    end = None
    if w > 1 and not e.some and e.mask is not None:
        go, end = e.t.label("sum"), e.t.label("summed")
        e.t.branch(e.any(e.mask), go, end)
        e.t.start(go)
    e.t.do(f"store ptr {element.at.start(element.view.data)}, ptr {base}, align 8")
    place = e.t.ins(f"and i64 {e.place['thread']}, {SUMS - 1}")
    if w == 1:
        change(e, op, t, _partial(e, base, place, t), values)
    elif not e.unit.options.rows:
        _wide_sum(e, op, base, place, t, values)
    else:  # gangs along rows may begin anywhere: those that run over the end of the partial results go lane by lane
        fits, wide, lanes, done = (
            e.t.ins(f"icmp ule i64 {place}, {SUMS - w}"),
            *(e.t.label(h) for h in ("wide", "lanes", "sums")),
        )
        for x in values:
            e.wide(x)
        e.t.branch(fits, wide, lanes)
        e.t.start(wide)
        _wide_sum(e, op, base, place, t, values)
        e.t.jump(done)
        e.t.start(lanes)
        _lane_sums(e, op, base, place, t, values)
        e.t.jump(done)
        e.t.start(done)
    if end is not None:
        e.t.jump(end)
        e.t.start(end)
    e.env[op.results[0]] = e.zero(op.results[0])


def _partial(e: Emitter, base: str, place: str, t: Scalar) -> str:
    offset = e.t.ins(f"add i64 {e.t.ins(f'mul i64 {place}, {t.size}')}, {SUMS_AT}")
    return e.t.ins(f"getelementptr i8, ptr {base}, i64 {offset}")


def _wide_sum(e: Emitter, op: Op, base: str, place: str, t: Scalar, values: list[X]) -> None:
    """A gang's partial results lie side by side."""
    kind, pointer = vector(memory_type(t), e.width), _partial(e, base, place, t)
    old = from_memory(e, e.t.ins(f"load {kind}, ptr {pointer}, align {t.size}"), t, False)
    new = update(Lower(e, t, t, False), op.attrs["op"], old, values)
    if e.mask is not None:
        new = e.blend(e.mask, new, old)
    e.t.do(f"store {kind} {to_memory(e, new, False)}, ptr {pointer}, align {t.size}")


def _lane_sums(e: Emitter, op: Op, base: str, place: str, t: Scalar, values: list[X]) -> None:
    for lane in range(e.width):
        after = e.t.ins(f"and i64 {e.t.ins(f'add i64 {place}, {lane}')}, {SUMS - 1}")
        pointer = _partial(e, base, after, t)
        if e.mask is not None:
            runs = e.t.ins(f"extractelement {e.bits} {e.mask}, i64 {lane}")
            pointer = e.t.ins(f"select i1 {runs}, ptr {pointer}, ptr {e.dummy(t.size)}")
        change(e, op, t, pointer, [lane_values(e, x, lane) for x in values])


def _held(e: Emitter, op: Op, element: memory.Access, values: list[X], plan: Plan) -> None:
    """A copy whose order matters: the gang's end does it."""
    if e.width == 1:  # threads come one after the other anyway
        _copy(e, op, element, values, plan)
    else:
        _hold(e, (op,), element, values, plan)


def _hold(e: Emitter, ops: tuple[Op, ...], element: memory.Access, values: list[X], plan: Plan) -> None:
    element.at.scalars.append(_shift(e, plan).text)
    (held.note if plan.how == "noted" else held.append)(e, ops, element.pointers(element.at), values, plan)
    for op in ops:
        e.env[op.results[0]] = e.zero(op.results[0])


def _row(e: Emitter, plan: Plan) -> None:
    """Components of an element at once."""
    ops = plan.row
    element, _ = memory.access(e, ops[0])
    values = [e.number(op.args[-1]) for op in ops]
    if plan.slots >= 0:
        slots.write(e, ops, element, values, plan, lambda: _row_copy(e, element, values, plan))
    else:
        _row_copy(e, element, values, plan)


def _row_copy(e: Emitter, element: memory.Access, values: list[X], plan: Plan) -> None:
    ops, t = plan.row, plan.row[0].results[0].type
    if plan.how != "copy":
        _hold(e, ops, element, values, plan)
        return
    if not rows.whole(e, len(ops)):
        for op, x in zip(ops, values, strict=True):
            _copy(e, op, memory.access(e, op)[0], [x], plan)
        return
    element.at.scalars.append(_shift(e, plan).text)
    four = rows.columns(e, values)
    for lane, pointer in enumerate(element.pointers(element.at).each(len(ops) * t.size)):
        rows.change_row(e, ops[0], pointer, rows.row_of(e, four, lane, t, len(ops)), len(ops))
    for op in ops:
        e.env[op.results[0]] = e.zero(op.results[0])


_HOW = {
    "own": _own, "sum": _sum, "copy": _copy, "counted": _copy, "drawn": _drawn, "noted": _held, "listed": _held,
    "serial": _serial,
}  # fmt: skip
HANDLERS = {"atomic": _atomic}
