"""Updates with a slot for each thread: float sums in loops, at an address that all lanes of a gang share.

Round after round such a loop adds one number a lane to one element, the next round to another: gradients of ``x[j]``
in a loop over j. Private memory has 16 slots for each scalar of the target, one for each thread index modulo 16, so
that a gang loads, adds and stores a vector; and nobody needs to hold updates, as lanes never meet. All other sites of
the same array use slots too, lane by lane. In a slot additions come in thread order, whatever the gang's width is.

Slots cost memory: whether they are used is for the launch to say (see ``native/slots.py``), by sizes. Where they are
not, the site is written as if there were none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...ir.effects import Effects, Site
from ...ir.node import Block, Func, Op, Value
from ...passes.lanes import analyse
from ...types.core import Scalar, View
from ...types.records import SLOTS
from . import memory
from .lanewise import each_pointer
from .scalar import Lower, from_memory, to_memory
from .text import memory as memory_type
from .text import vector
from .values import ViewX, X

if TYPE_CHECKING:
    from .atomics import Plan
    from .emitter import Emitter

ROUNDS = 32  # assumed of loops that do not say
MOST = 1 << 20  # rounds of all loops around a site, at most
_HELD = ("copy", "noted", "listed")


# --- which arrays have slots ------------------------------------------------------------------------------------------


def choose(func: Func, found: Effects, plans: dict[Op, Plan], items: list[dict]) -> None:
    """Give slots to arrays with a site that is in a loop and at one address a gang, as an item of ``items`` each.

    This must not depend on the gang's width, nor on whether gangs lie along rows: it asks what holds in any case.
    """
    held = [s for s in found.sites if plans[s.op].how in _HELD and s.kind in ("add", "sub") and s.type.is_float]
    looped = [s for s in held if s.loop]
    if not looped:
        return
    steps, rounds = analyse(func).steps, _rounds_of(func)
    for root in dict.fromkeys([s.root for s in looped if _meets(s, steps)]):
        mine = [s for s in held if s.root == root]
        copy = items[plans[mine[0].op].item]
        copy["rounds"] = min(sum([rounds[s.op] for s in mine]), MOST)
        items.append({**copy, "kind": "slots"})
        for s in mine:
            plans[s.op].slots = len(items) - 1


def _meets(site: Site, steps: dict[Value, int | None | str]) -> bool:
    """Whether the lanes of a gang update one element."""
    view, *rest = site.op.args
    return steps[view] == 0 and all([steps[i] == 0 for i in rest[: view.type.ndim]])


def _rounds_of(func: Func) -> dict[Op, int]:
    """How often a thread is assumed to come to each update: as constants say, ``ROUNDS`` times as often if some loop
    around it does not."""
    known: dict[Value, object] = {}
    found: dict[Op, int] = {}

    def visit(block: Block, factor: int, unknown: bool) -> None:
        for op in block.ops:
            if op.name == "const":
                known[op.result] = op.attrs["value"]
            elif op.name == "atomic":
                found[op] = min(factor * (ROUNDS if unknown else 1), MOST)
            rounds = _rounds(op, known) if op.name in ("for", "while") else 1
            for region in op.regions:
                visit(region, factor * (rounds or 1), unknown or rounds is None)

    visit(func.body, 1, False)
    return found


def _rounds(loop: Op, known: dict[Value, object]) -> int | None:
    """The rounds of a loop; None if only the run can tell."""
    bounds = [known.get(a) for a in loop.args[:3]] if loop.name == "for" else [None]
    return max(len(range(*bounds)), 1) if None not in bounds and bounds[2] else None


# --- code -------------------------------------------------------------------------------------------------------------


def write(e: Emitter, ops: tuple[Op, ...], element: memory.Access, values: list[X], plan: Plan,
          otherwise: Callable[[], None]) -> None:  # fmt: skip
    """Add ``values`` to the components ``ops`` of ``element``, which lie side by side: to slots if this launch has
    some, else as ``otherwise`` does."""
    base, at = e.private(plan.slots), element.at.copy()
    if e.width > 1:  # what both ways need is made before they part
        for x in (*values, element.view.data):
            e.wide(x)
    known, (yes, no, end) = e.t.known, [e.t.label(h) for h in ("slots", "noslots", "added")]
    e.t.branch(e.t.ins(f"icmp ne ptr {base}, null"), yes, no)
    e.t.start(yes, known)
    if e.width > 1 and element.shape == "uniform":
        _gang(e, ops, at.start(element.view.data), values, plan, known)
    elif e.width > 1:
        _lanes(e, ops, at.pointers(element.view.data), values, plan)
    else:
        _one(e, ops, at.start(element.view.data), values, plan)
    e.t.jump(end)
    e.t.start(no, known)
    otherwise()
    e.t.jump(end)
    e.t.start(end, known)
    for op in ops:
        e.env[op.results[0]] = e.zero(op.results[0])


def _data(e: Emitter, plan: Plan) -> str:
    """The address of the target's data, or gradient, as an i64."""
    key = f"number{plan.slots}"
    if key not in e.place:
        view = e.env[e.unit.kernel.params[plan.param]]
        assert isinstance(view, ViewX) and isinstance(view.type, View)
        data = view.grad if plan.grad else view.data
        e.place[key] = e.t.into(e.after_parameters, f"ptrtoint ptr {data.text} to i64")
    return e.place[key]


def _slots_of(e: Emitter, pointer: str, plan: Plan) -> str:
    """The slots of the scalar at ``pointer``."""
    number = e.t.ins(f"ptrtoint ptr {pointer} to i64")
    offset = e.t.ins(f"mul i64 {e.t.ins(f'sub i64 {number}, {_data(e, plan)}')}, {SLOTS}")
    return e.t.ins(f"getelementptr i8, ptr {e.private(plan.slots)}, i64 {offset}")


def _slot(e: Emitter, t: Scalar) -> tuple[str, str]:
    """The number of lane 0's slot, and where that begins."""
    number = e.t.ins(f"and i64 {e.place['thread']}, {SLOTS - 1}")
    return number, e.t.ins(f"mul i64 {number}, {t.size}")


def _next(e: Emitter, pointer: str, k: int, t: Scalar) -> str:
    """The slot that component ``k`` has, where ``pointer`` is that of the first."""
    return e.t.ins(f"getelementptr i8, ptr {pointer}, i64 {k * SLOTS * t.size}") if k else pointer


def _one(e: Emitter, ops: tuple[Op, ...], pointer: str, values: list[X], plan: Plan) -> None:
    from .atomics import change

    t = values[0].type
    slot = e.t.ins(f"getelementptr i8, ptr {_slots_of(e, pointer, plan)}, i64 {_slot(e, t)[1]}")
    for k, (op, x) in enumerate(zip(ops, values, strict=True)):
        change(e, op, t, _next(e, slot, k, t), [x])


def _gang(e: Emitter, ops: tuple[Op, ...], pointer: str, values: list[X], plan: Plan, known: dict[str, str]) -> None:
    """All lanes at one element: their slots lie side by side."""
    t, w, done = values[0].type, e.width, e.t.label("wide")
    if not e.some and e.mask is not None:
        go = e.t.label("some")
        e.t.branch(e.any(e.mask), go, done)
        e.t.start(go, e.t.known)
    slots, (number, offset) = _slots_of(e, pointer, plan), _slot(e, t)
    first = e.t.ins(f"getelementptr i8, ptr {slots}, i64 {offset}")
    if e.unit.options.rows:  # gangs along rows may begin anywhere: those that run over the last slot go lane by lane
        fits, lanes = (e.t.label(h) for h in ("fits", "over"))
        e.t.branch(e.t.ins(f"icmp ule i64 {number}, {SLOTS - w}"), fits, lanes)
        before = e.t.known
        e.t.start(lanes, before)
        _lanes(e, ops, e.t.ins(f"insertelement {vector('ptr', w)} poison, ptr {pointer}, i64 0"), values, plan, True)
        e.t.jump(done)
        e.t.start(fits, before)
    for k, (op, x) in enumerate(zip(ops, values, strict=True)):
        _wide(e, op, _next(e, first, k, t), x)
    e.t.jump(done)
    e.t.start(done, known)


def _wide(e: Emitter, op: Op, pointer: str, x: X) -> None:
    from .atomics import update

    t = x.type
    kind = vector(memory_type(t), e.width)
    old = from_memory(e, e.t.ins(f"load {kind}, ptr {pointer}, align {t.size}"), t, False)
    new = update(Lower(e, t, t, False), op.attrs["op"], old, [x])
    if e.mask is not None:
        new = e.blend(e.mask, new, old)
    e.t.do(f"store {kind} {to_memory(e, new, False)}, ptr {pointer}, align {t.size}")


def _lanes(e: Emitter, ops: tuple[Op, ...], pointers: str, values: list[X], plan: Plan, same: bool = False) -> None:
    """Each lane at an element of its own; at that of lane 0 if ``same``."""
    from .atomics import change, lane_values

    t, kind, many = values[0].type, vector("i64", e.width), vector("ptr", e.width)
    if same:
        pointers = e.t.ins(f"shufflevector {many} {pointers}, {many} poison, <{e.width} x i32> zeroinitializer")

    def spread(text: str) -> str:
        return e.spread(e.t.slot(), "i64", text, 0)

    numbers = e.t.ins(f"sub {kind} {e.t.ins(f'ptrtoint {many} {pointers} to {kind}')}, {spread(_data(e, plan))}")
    thread = e.t.ins(f"add {kind} {spread(e.place['thread'])}, {e.ramp('i64', 1)}")
    own = e.t.ins(f"mul {kind} {e.t.ins(f'and {kind} {thread}, splat (i64 {SLOTS - 1})')}, splat (i64 {t.size})")
    offsets = e.t.ins(f"add {kind} {e.t.ins(f'mul {kind} {numbers}, splat (i64 {SLOTS})')}, {own}")
    slots = e.t.ins(f"getelementptr i8, ptr {e.private(plan.slots)}, {kind} {offsets}")
    for lane, slot in enumerate(each_pointer(e, slots, SLOTS * len(ops) * t.size)):
        for k, (op, x) in enumerate(zip(ops, values, strict=True)):
            change(e, op, t, _next(e, slot, k, t), [lane_values(e, x, lane)])
