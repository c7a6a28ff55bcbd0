"""The entry of a kernel: its parameters, the loop over gangs, and each thread's place in the grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.node import Func
from ...ir.walk import ops_of
from ...passes.lanes import analyse
from ...types.core import Scalar, Struct, View, f64, i32, i64
from ...types.layout import children, leaves, pack
from ...types.records import LAUNCH
from . import counted, faults, held, streams, tape, views
from .leaving import leaving
from .scalar import Lower, from_memory
from .text import Text, memory
from .values import ViewX, X

if TYPE_CHECKING:
    from .emitter import Emitter
    from .unit import Unit

# A body is written twice, once for full gangs and once with a mask for the rest of a row, if it has at most this many
# ops and is ruled by memory: masked accesses are what it costs to write it once.
TWICE, MEMORY_SHARE = 400, 0.04


def with_known_strides(e: Emitter, view: ViewX) -> ViewX:
    """``view`` with the strides that its type fixes as constants."""
    view.strides = [x if s is None else e.fixed(i64, s) for x, s in zip(view.strides, view.type.strides, strict=True)]
    return view


def parameters(e: Emitter, func: Func, pointer: str) -> None:
    """Bind the kernel's parameters, one per leaf of the signature, to what is packed at ``pointer``."""
    starts, _ = pack(func.signature)
    params = iter(func.params)
    for k, (t, start) in enumerate(zip(func.signature, starts, strict=True)):
        name = func.names[k] if k < len(func.names) else f"argument {k}"
        for leaf in leaves(t):
            p, offset = next(params), start + leaf.offset
            if isinstance(leaf.type, View):
                path = ".".join([name, *_path(t, leaf.path)])
                e.env[p] = views.parameter(e, leaf.type, pointer, offset, path)
            else:
                assert isinstance(leaf.type, Scalar)
                at = e.t.ins(f"getelementptr i8, ptr {pointer}, i64 {offset}")
                got = e.t.ins(f"load {memory(leaf.type)}, ptr {at}, align {leaf.type.size}, !invariant.load !0")
                x = from_memory(e, got, leaf.type, True)
                x.home = e.t.slot() if e.width > 1 else None
                e.env[p] = x


def _path(t, path: tuple[int, ...]) -> list[str]:
    """Field names on the way to a leaf."""
    names = []
    for i in path:
        names.append(t.fields[i][0] if isinstance(t, Struct) else str(i))
        t = children(t)[i]
    return names


def axes(e: Emitter, ndim: int, thread: str, row: str | None = None, column: str | None = None) -> list[X]:
    """``tid`` on each grid axis, from the linear index of lane 0, or from its ``row`` (all axes but the last) and
    ``column``."""
    single = e.width == 1
    if e.unit.options.alone:  # known numbers, so that nothing is added to an address for them
        return [e.fixed(i32, 0)] * max(ndim, 1)
    if ndim <= 1:
        return [_axis(e, thread, 0 if single else 1)]
    numbers: list[str] = [""] * ndim
    rest = thread
    if row is not None and column is not None:
        rest, numbers[-1] = row, column
    for axis in range(ndim - (1 if row is None else 2), 0, -1):
        size = e.launch_word(LAUNCH[f"dim{axis}"])
        above = e.t.ins(f"udiv i64 {rest}, {size}")
        numbers[axis] = e.t.ins(f"sub i64 {rest}, {e.t.ins(f'mul i64 {above}, {size}')}")
        rest = above
    numbers[0] = rest
    if single or e.unit.options.rows:
        return [_axis(e, n, 0 if single or axis < ndim - 1 else 1) for axis, n in enumerate(numbers)]
    return _carried(e, ndim, [e.t.ins(f"trunc i64 {n} to i32") for n in numbers])


def _axis(e: Emitter, number: str, step: int) -> X:
    """A grid axis as an i32; addresses are computed from the i64 it comes from."""
    short = e.t.ins(f"trunc i64 {number} to i32")
    e.longs[short] = number
    return e.uniform(i32, short, step)


def _carried(e: Emitter, ndim: int, first: list[str]) -> list[X]:
    """Grid axes of lanes that run over the ends of rows: from the last axis on, what exceeds it is carried to the
    next."""
    low = Lower(e, i32, i32, False)
    out: list[X] = [e.fixed(i32, 0)] * ndim
    carry: X | None = None
    for axis in range(ndim - 1, -1, -1):
        x = e.uniform(i32, first[axis], 1 if carry is None else 0)
        total = x if carry is None else low.binary("add", x, carry)
        if axis == 0:
            out[0] = total
            break
        extent = e.launch_word(LAUNCH[f"dim{axis}"])
        size = e.uniform(i32, e.t.ins(f"trunc i64 {extent} to i32"))
        # Exact in float64: both are below 2³², and a quotient that is no whole number is at least 2⁻³² away from one.
        ratio = Lower(e, f64, f64, False).binary(
            "fdiv", low._conv("uitofp", total, f64), low._conv("uitofp", size, f64)
        )
        carry = low._conv("fptoui", ratio, i32)
        out[axis] = low.binary("sub", total, low.binary("mul", carry, size))
    return out


def write_kernel(unit: Unit, func: Func) -> str:
    """The text of the entry."""
    from .emitter import Emitter

    text = Text(unit.needs)
    e = Emitter(unit, unit.lanes(func), text)
    e.place = {"launch": "%launch", "priv": "%priv"}
    text.start("entry")
    e.entry = text.slot()
    parameters(e, func, "%args")
    e.after_parameters = text.slot()
    if any(op.name == "call" for op in ops_of(func.body)) or faults.func_fails(unit, func):
        e.place["alive"] = "%alive"
        e.entry.append(f"  %alive = alloca i{e.width}, align 8")
    tape.create(e)
    if unit.options.rows and func.facts.get("ndim", 0) > 1:
        _rows(e, func)
    else:
        places = streams.places(unit, func)
        if places > 1:
            streams.runs(e, places, lambda begin, end: _gangs(e, func, begin, end, lambda t: (t, None, None)))
        else:
            _gangs(e, func, "%begin", "%end", lambda t: (t, None, None))
        _release(e)
        text.do("ret i32 0")
    if e.abort_label is not None:
        text.start(e.abort_label)
        _release(e)
        text.do("ret i32 1")
    params = "ptr noalias readonly %args, ptr %launch, i64 %begin, i64 %end, ptr %priv"
    head = f"define i32 @{unit.symbol}({params}) #0"
    return f"{head} {{\n{text.text()}\n}}\n"


def _release(e: Emitter) -> None:
    """Give back memory that grew."""
    held.free_list(e)
    tape.release(e)


def _rows(e: Emitter, func: Func) -> None:
    """The piece of each row of the grid that lies in ``[begin, end)``, gang by gang."""
    t, ndim = e.t, func.facts["ndim"]
    row_start, row, done = t.label("row"), t.label("inrow"), t.label("done")
    length = e.launch_word(LAUNCH[f"dim{ndim - 1}"])
    before = t.block
    t.jump(row_start)
    t.start(row_start)
    place, following = t.name(), t.name()
    phi = t.slot()
    t.branch(t.ins(f"icmp ult i64 {place}, %end"), row, done)
    t.start(row)
    number = t.ins(f"udiv i64 {place}, {length}")
    first = t.ins(f"mul i64 {number}, {length}")
    column = t.ins(f"sub i64 {place}, {first}")
    left = t.ins(f"sub i64 %end, {first}")
    t.declare("declare i64 @llvm.umin.i64(i64, i64)")
    limit = t.ins(f"call i64 @llvm.umin.i64(i64 {left}, i64 {length})")
    _gangs(e, func, column, limit, lambda c: (t.ins(f"add i64 {first}, {c}"), number, c))
    t.do(f"{following} = add i64 {first}, {limit}")
    phi.append(f"  {place} = phi i64 [ %begin, %{before} ], [ {following}, %{t.block} ]")
    t.jump(row_start)
    t.start(done)
    _release(e)
    t.do("ret i32 0")


def _gangs(e: Emitter, func: Func, begin: str, end: str, place_of) -> None:
    """Gangs from ``begin`` to ``end``: full ones, then the rest under a mask."""
    t, w = e.t, e.width
    loop, gang, rest, last, done = (t.label(h) for h in ("gangs", "gang", "rest", "lastgang", "alldone"))
    if w == 1 or not written_twice(func):
        _one_loop(e, func, begin, end, place_of, loop, gang, done)
        return
    before = t.block
    t.jump(loop)
    t.start(loop)
    place, following = t.name(), t.name()
    phi = t.slot()
    t.do(f"{following} = add i64 {place}, {w}")
    t.branch(t.ins(f"icmp ule i64 {following}, {end}"), gang, rest)
    t.start(gang)
    e.leaving = leaving(e, func, t.label("leave"))
    _gang(e, func, place_of(place), None)
    left, e.leaving = e.leaving, None
    phi.append(f"  {place} = phi i64 [ {begin}, %{before} ], [ {following}, %{t.block} ]")
    t.jump(loop)
    t.start(rest)
    if e.unit.options.rows:
        t.branch(t.ins(f"icmp ult i64 {place}, {end}"), last, done)
        t.start(last)
        _gang(e, func, place_of(place), _lanes_below(e, place, end))
        t.jump(done)
        t.start(done)
    elif left is None:
        _one_by_one(e, func, place, end, place_of, done)
    else:  # the same loop serves gangs that were left, and comes back
        t.branch(t.ins(f"icmp ult i64 {place}, {end}"), last, done)
        t.start(left.label)
        t.jump(last)
        t.start(last)
        limit = t.ins(f"phi i64 [ {end}, %{rest} ], [ {following}, %{left.label} ]")
        _one_by_one(e, func, place, limit, place_of, t.label("back"))
        phi[-1] += f", [ {limit}, %{t.block} ]"
        t.jump(loop)
        t.start(done)


def _one_by_one(e: Emitter, func: Func, begin: str, end: str, place_of, done: str) -> None:
    """The last few threads of a launch as gangs of one: that is done once, and is half as much to compile as a
    masked gang."""
    lanes, width = e.lanes, e.width
    e.lanes, e.width = analyse(func, width=1), 1
    _one_loop(e, func, begin, end, place_of, e.t.label("ones"), e.t.label("one"), done)
    e.lanes, e.width = lanes, width


def _one_loop(e: Emitter, func: Func, begin: str, end: str, place_of, loop: str, gang: str, done: str) -> None:
    """One body for all gangs, masked unless all of them are full."""
    t = e.t
    before = t.block
    t.jump(loop)
    t.start(loop)
    place, following = t.name(), t.name()
    phi = t.slot()
    t.branch(t.ins(f"icmp ult i64 {place}, {end}"), gang, done)
    t.start(gang)
    full = e.width == 1 or e.unit.options.full
    _gang(e, func, place_of(place), None if full else _lanes_below(e, place, end))
    t.do(f"{following} = add i64 {place}, {e.width}")
    phi.append(f"  {place} = phi i64 [ {begin}, %{before} ], [ {following}, %{t.block} ]")
    t.jump(loop)
    t.start(done)


def _lanes_below(e: Emitter, place: str, end: str) -> str:
    """The lanes whose thread comes before ``end``."""
    left = e.t.ins(f"sub i64 {end}, {place}")
    e.t.declare("declare i64 @llvm.umin.i64(i64, i64)")
    short = e.t.ins(f"trunc i64 {e.t.ins(f'call i64 @llvm.umin.i64(i64 {left}, i64 {e.width})')} to i32")
    mask = e.t.ins(f"icmp ult <{e.width} x i32> {e.ramp('i32', 1)}, {e.wide(e.uniform(i32, short))}")
    e.full[mask] = e.t.ins(f"icmp uge i64 {left}, {e.width}")
    return mask


def _gang(e: Emitter, func: Func, where: tuple[str, str | None, str | None], mask: str | None) -> None:
    """The body for one gang. ``where``: the thread in lane 0, and its row and column in the grid if gangs run along
    rows."""
    env, place = dict(e.env), dict(e.place)
    e.place["thread"] = where[0]
    e.mask, e.some, e.valid, e.known_true = mask, True, {}, set()
    ndim = func.facts.get("ndim", 0)
    if any(op.name == "tid" for op in ops_of(func.body)):
        e.axes = axes(e, ndim, *where)
    fails = faults.func_fails(e.unit, func)
    if "alive" in e.place:
        e.t.do(f"store i{e.width} -1, ptr %alive, align 8")
    counted.begin_gang(e)
    held.begin_gang(e)
    tape.begin_gang(e)
    e.block(func.body)
    held.end_gang(e)
    if fails and e.width > 1:
        alive = e.t.ins(f"load i{e.width}, ptr %alive, align 8")
        go = e.t.label("alive")
        e.t.branch(e.t.ins(f"icmp eq i{e.width} {alive}, -1"), go, e.abort())
        e.t.start(go)
    place.update(
        (key, text) for key, text in e.place.items() if key not in ("thread", *place)
    )  # made at the function's top
    e.env, e.place = env, place


def written_twice(func: Func) -> bool:
    """Whether a full-mask copy of the body pays: it is small, and memory accesses make up enough of it.

    Other kernels are compiled for the grids that they get: for full gangs alone, or with masks for any."""
    total = accesses = 0
    for op in ops_of(func.body):
        if op.name == "call":
            return False
        total += op.name != "const"
        accesses += (len(op.results) + max(0, len(op.args) - 2)) * (op.name in ("load", "store"))
    return total <= TWICE and accesses >= MEMORY_SHARE * total
