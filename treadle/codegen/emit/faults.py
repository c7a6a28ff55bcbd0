"""Checks, prints and the stop flag: what a running kernel tells the host.

A lane that fails a check is *dead*: it takes no further part, and the gang ends its entry when it is through. ``alive``
is a register in memory with a bit a lane; masks are refreshed from it after whatever may contain a check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.node import Func, Op
from ...types.core import Scalar, b1, f64, i64
from ...types.records import LAUNCH
from . import buffer, lasting, views
from .scalar import Lower
from .text import register, vector
from .values import ViewX, X

if TYPE_CHECKING:
    from .emitter import Emitter
    from .unit import Unit

_SHOWN = 8  # values a fault record holds

_FAULT = """
define internal void @treadle_fault(ptr %launch, i64 %thread, i64 %site, ptr %values) noinline cold {
entry:
  %fp = getelementptr i8, ptr %launch, i64 FAULT
  %fault = load ptr, ptr %fp, align 8
  br label %wait
wait:
  %state = load atomic i64, ptr %fault acquire, align 8
  %locked = icmp eq i64 %state, 1
  br i1 %locked, label %wait, label %try
try:
  %pair = cmpxchg ptr %fault, i64 %state, i64 1 acquire monotonic
  %got = extractvalue { i64, i1 } %pair, 1
  br i1 %got, label %own, label %wait
own:
  %tp = getelementptr i8, ptr %fault, i64 8
  %other = load i64, ptr %tp, align 8
  %first = icmp eq i64 %state, 0
  %earlier = icmp ult i64 %thread, %other
  %better = or i1 %first, %earlier
  br i1 %better, label %write, label %done
write:
  store i64 %thread, ptr %tp, align 8
  %wp = getelementptr i8, ptr %fault, i64 16
  store i64 %site, ptr %wp, align 8
  %vp = getelementptr i8, ptr %fault, i64 24
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %vp, ptr align 8 %values, i64 64, i1 false)
  br label %done
done:
  store atomic i64 2, ptr %fault release, align 8
  ret void
}
""".replace("FAULT", str(LAUNCH["fault"]))


# --- who may fail -------------------------------------------------------------------------------------------------


_MAY_FAIL = frozenset(("check", "call", "load", "store", "atomic"))


def may_fail(unit: Unit, op: Op) -> bool:
    """Whether lanes may die in ``op``: it contains a check. In a program with a tape the whole gang ends there."""
    return _contains_check(unit, op) and not unit.taped


def _contains_check(unit: Unit, op: Op) -> bool:
    """Whether ``op`` may record a fault."""
    if op.name not in _MAY_FAIL and not op.regions:
        return False
    found = unit.failing.get(id(op))
    if found is None:
        found = unit.failing[id(op)] = _fails(unit, op)
    return found


def _fails(unit: Unit, op: Op) -> bool:
    if op.name == "check" or (unit.options.checked and op.name in ("load", "store", "atomic")):
        return True
    if op.name == "call":
        return any(_contains_check(unit, inner) for inner in op.attrs["func"].body.ops)
    return any(_contains_check(unit, inner) for region in op.regions for inner in region.ops)


def func_fails(unit: Unit, func: Func) -> bool:
    """Whether lanes may die in ``func``."""
    return any(may_fail(unit, op) for op in func.body.ops)


def func_stops(unit: Unit, func: Func) -> bool:
    """Whether ``func`` may end early: at a check, for want of memory, or because it polls the stop flag."""
    ends = any(_contains_check(unit, op) for op in func.body.ops) or unit.tapes(func)
    return ends or (unit.target.kind == "cpu" and (lasting.func_polls(func) or lasting.func_lasts(func)))


def refresh(e: Emitter, op: Op) -> None:
    """Take lanes that died inside ``op`` out of the current mask."""
    if e.width > 1 and may_fail(e.unit, op):
        drop_dead(e)


def drop_dead(e: Emitter) -> None:
    """Take dead lanes out of the current mask."""
    whole = e.t.ins(f"load i{e.width}, ptr {e.place['alive']}, align 8")
    e.mask = e.both(e.mask, e.t.ins(f"bitcast i{e.width} {whole} to {e.bits}"))
    e.some = False


# --- stop ---------------------------------------------------------------------------------------------------------


def poll(e: Emitter, op: Op) -> None:
    """End the kernel if the host asks for it."""
    if e.unit.target.kind == "cpu" and lasting.polls(op):
        go = e.t.label("go")
        ask(e, go)
        e.t.start(go, e.t.known)


def ask(e: Emitter, go: str) -> None:
    """End the kernel if the host asks for it, else go on at ``go``."""
    pointer = e.launch_field(LAUNCH["stop"])
    flag = e.t.ins(f"load atomic i32, ptr {pointer} monotonic, align 4")
    e.t.branch(e.t.ins(f"icmp eq i32 {flag}, 0"), go, e.abort())


# --- checks -------------------------------------------------------------------------------------------------------


def _check(e: Emitter, op: Op) -> None:
    shown = [e.number(a) for a in op.args[1:] if isinstance(a.type, Scalar)]
    site = e.unit.site(
        op, op.attrs["kind"], text=op.attrs.get("message", ""), types=[x.type.name for x in shown[:_SHOWN]]
    )
    demand(e, e.number(op.args[0]), site, shown)


def demand(e: Emitter, ok: X, site: int, shown: list[X]) -> None:
    """Record a fault where ``ok`` is false, and let those lanes go no further."""
    fail, go = e.t.label("fault"), e.t.label("fine")
    if e.width == 1:
        e.t.branch(ok.text, go, fail)
        before = e.t.known
        e.t.start(fail, before)
        _record(e, site, shown, None)
        e.t.jump(e.abort())
        e.t.start(go, before)
        return
    bad = e.without(e.mask, e.wide(ok))
    e.t.branch(e.any(bad), fail, go)
    before = e.t.known
    e.t.start(fail, before)
    kind = f"i{e.width}"
    whole = e.t.ins(f"bitcast {e.bits} {bad} to {kind}")
    e.t.declare(f"declare {kind} @llvm.cttz.{kind}({kind}, i1)")
    lane = e.t.ins(f"call {kind} @llvm.cttz.{kind}({kind} {whole}, i1 true)")
    if kind != "i64":
        lane = e.t.ins(f"zext {kind} {lane} to i64")
    _record(e, site, shown, lane)
    if e.unit.taped:
        e.t.jump(e.abort())
        e.t.start(go, before)
        return
    alive = e.t.ins(f"load {kind}, ptr {e.place['alive']}, align 8")
    left = e.t.ins(f"and {kind} {alive}, {e.t.ins(f'xor {kind} {whole}, -1')}")
    e.t.do(f"store {kind} {left}, ptr {e.place['alive']}, align 8")
    e.t.jump(go)
    e.t.start(go, before)
    e.mask, e.some = e.both(e.mask, e.wide(ok)), False


def _record(e: Emitter, site: int, shown: list[X], lane: str | None) -> None:
    """Call the recorder with what the failing lane shows. A lane that fails while gangs tally will do so again."""
    if e.unit.tallying is not None:
        return
    e.unit.helper(_FAULT)
    e.t.declare("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
    if "shown" not in e.place:
        e.place["shown"] = e.t.name()
        e.entry.append(f"  {e.place['shown']} = alloca [{_SHOWN} x i64], align 8")
    for k, x in enumerate(shown[:_SHOWN]):
        at = e.t.ins(f"getelementptr i8, ptr {e.place['shown']}, i64 {8 * k}")
        e.t.do(f"store i64 {raw(e, x, lane)}, ptr {at}, align 8")
    thread = e.place["thread"]
    if lane is not None:
        thread = e.t.ins(f"add i64 {thread}, {lane}")
    e.t.do(f"call void @treadle_fault(ptr {e.place['launch']}, i64 {thread}, i64 {site}, ptr {e.place['shown']})")


def raw(e: Emitter, x: X, lane: str | None) -> str:
    """The bits of ``x`` in one lane as an i64: integers extended by their sign, other bits by zeros."""
    kind = register(x.type)
    text = x.text
    if text is None or (x.step and lane is not None):
        text = e.t.ins(f"extractelement {vector(kind, e.width)} {e.wide(x)}, i64 {lane}")
    if x.type.is_float and kind != "i16":
        text = e.t.ins(f"bitcast {kind} {text} to i{x.type.bits}")
    bits = 1 if x.type is b1 else x.type.bits
    if bits == 64:
        return text
    return e.t.ins(f"{'sext' if x.type.is_signed else 'zext'} i{bits} {text} to i64")


def record(e: Emitter, site: int, shown: list[X]) -> None:
    """Record a fault of the only lane."""
    _record(e, site, shown, None)


def end(e: Emitter, site: int) -> None:
    """Record a fault of the gang, and end it."""
    _record(e, site, [], None)
    e.t.jump(e.abort())


def bounds(e: Emitter, op: Op, view: ViewX, indices: list[X]) -> None:
    """Demand that every index lies in the shape, those by which the view was cut out of an array too."""
    pairs = [*view.owed, *zip(indices, view.shape, strict=True)][-(_SHOWN // 2) :]
    indices, shape = [i for i, _ in pairs], [n for _, n in pairs]
    site = e.unit.site(op, "index", array=view.path or op.args[0].name, ndim=len(indices),
                       types=[x.type.name for x in indices] + ["i64"] * len(indices))  # fmt: skip
    scalar = all(x.step == 0 and x.text is not None for x in (*indices, *shape))
    low = Lower(e, i64, b1, scalar)
    ok: X | None = None
    for index, extent in zip(indices, shape, strict=True):
        long = views.to_i64(e, index) if scalar else low.cast(index, index.type, i64)
        fits = low.icmp("ult", long, extent)  # a negative index is a very large unsigned number
        ok = fits if ok is None else low.binary("and", ok, fits)
    if ok is None:
        return
    if scalar:
        ok = e.uniform(b1, ok.text)
    demand(e, ok, site, [*indices, *shape])


# --- printing -----------------------------------------------------------------------------------------------------


def _print(e: Emitter, op: Op) -> None:
    """Append a record to the log: the site, then the values, floats as f64. Kernels that print run one thread at a
    time."""
    parts = [e.number(a) for a in op.args if a in e.env]  # text known while compiling is no value
    site = e.unit.printing(op)
    at = buffer.append(e, e.launch_field(LAUNCH["log"]), 8 + 8 * len(parts))
    for k, text in enumerate([str(site), *[raw(e, _printable(e, x), None) for x in parts]]):
        to = e.t.ins(f"getelementptr i8, ptr {at}, i64 {8 * k}")
        e.t.do(f"store i64 {text}, ptr {to}, align 8")


def _printable(e: Emitter, x: X) -> X:
    return Lower(e, x.type, f64, True).cast(x, x.type, f64) if x.type.is_float else x


HANDLERS = {"check": _check, "print": _print}
