"""Functions that stayed functions: written once for a gang, called with the mask of the lanes that call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.node import Func, Op, Value
from ...ir.walk import ops_of
from ...types.core import View, i64
from . import faults, kernel
from .merge import part_steps
from .text import PTR, Text, register, vector
from .values import ViewX, X

if TYPE_CHECKING:
    from .emitter import Emitter
    from .unit import Unit


def _numbers(step: int | None | str, thing: X | ViewX) -> list[tuple[int | None, X]]:
    """The numbers of a value, each with the lane step by which it travels."""
    if isinstance(thing, X):
        return [(0 if step == 0 else None, thing)]
    return list(zip(part_steps(step, len(thing.parts())), thing.parts(), strict=True))


def _call(e: Emitter, op: Op) -> None:
    func: Func = op.attrs["func"]
    lanes = e.unit.lanes[id(func)]
    arguments: list[str] = []
    for p, a in zip(func.params, op.args, strict=True):
        thing = e.get(a)
        for step, x in _numbers(lanes.steps[p], thing):
            kind = register(x.type)
            arguments.append(f"{kind} {x.text}" if step == 0 else f"{vector(kind, e.width)} {e.wide(x)}")
        if isinstance(thing, ViewX) and thing.base is not None:
            arguments.append(f"ptr {thing.base}")
    if e.width > 1:
        arguments.append(f"{e.bits} {e.mask_text()}")
    arguments.append(f"ptr {e.place['launch']}, i64 {e.place['thread']}, ptr {e.place['alive']}, ptr {e.place['priv']}")
    if e.unit.tapes(func):
        arguments.append(f"ptr {e.place['tape']}")
    kinds = [k for y in func.body.yields for k in _result_kinds(e, y.type)]
    shape = "{ " + ", ".join(kinds) + " }" if kinds else "void"
    call = f"call {shape} {e.unit.names[id(func)]}({', '.join(arguments)})"
    if kinds:
        packed = e.t.ins(call)
        names = iter([e.t.ins(f"extractvalue {shape} {packed}, {k}") for k in range(len(kinds))])
        for r in op.results:
            e.env[r] = _received(e, r, names)
    else:
        e.t.do(call)
    if faults.func_stops(e.unit, func):
        _resume(e, func)


def _resume(e: Emitter, func: Func) -> None:
    """After a call that may have ended early: end too if no lane lives, else go on with those that do."""
    kind = f"i{e.width}"
    alive = e.t.ins(f"load {kind}, ptr {e.place['alive']}, align 8")
    go = e.t.label("back")
    e.t.branch(e.t.ins(f"icmp ne {kind} {alive}, 0"), go, e.abort())
    e.t.start(go, e.t.known)
    if e.width > 1 and faults.func_fails(e.unit, func):
        faults.drop_dead(e)


def _result_kinds(e: Emitter, t) -> list[str]:
    if isinstance(t, View):
        return [register(k) if e.width == 1 else vector(register(k), e.width) for k in _view_kinds(t)]
    return [register(t) if e.width == 1 else vector(register(t), e.width)]


def _view_kinds(t: View) -> list:
    return [PTR if t.space != "local" else i64, PTR] + [i64] * (2 * t.ndim + 1)


def _received(e: Emitter, value: Value, names) -> X | ViewX:
    """A result of a call: uniform with width 1, else varying."""

    def one(t) -> X:
        return e.uniform(t, next(names)) if e.width == 1 else X(t, None, next(names), None)

    if not isinstance(value.type, View):
        return one(value.type)
    t = value.type
    numbers = [one(k) for k in _view_kinds(t)]
    return ViewX(t, numbers[0], numbers[1], numbers[2 : 2 + t.ndim], numbers[2 + t.ndim : -1], numbers[-1])


def write_function(unit: Unit, func: Func) -> str:
    """The text of a gang function."""
    from .emitter import Emitter

    lanes = unit.lanes[id(func)]
    text = Text(unit.needs)
    e = Emitter(unit, lanes, text)
    params: list[str] = []
    text.start("entry")
    e.entry = text.slot()
    home = e.after_parameters = text.slot()

    def take(t, step: int | None) -> X:
        name = text.name()
        if step == 0 or e.width == 1:
            params.append(f"{register(t)} {name}")
            x = X(t, name)
            x.home = home
            return x
        params.append(f"{vector(register(t), e.width)} {name}")
        return X(t, None, name, None)

    for k, p in enumerate(func.params):
        if isinstance(p.type, View):
            kinds = _view_kinds(p.type)
            numbers = [take(t, s) for t, s in zip(kinds, part_steps(lanes.steps[p], len(kinds)), strict=True)]
            base = None
            if p.type.space == "local":
                base = text.name()
                params.append(f"ptr {base}")
            n = p.type.ndim
            view = ViewX(p.type, numbers[0], numbers[1], numbers[2 : 2 + n], numbers[2 + n : -1], numbers[-1], base)
            view.path = func.names[k] if k < len(func.names) else p.name
            e.env[p] = kernel.with_known_strides(e, view)
        else:
            e.env[p] = take(p.type, 0 if lanes.steps[p] == 0 else None)
    if e.width > 1:
        params.append(f"{e.bits} %mask")
        e.mask = "%mask"
    e.some = not faults.func_fails(unit, unit.kernel)
    params.append("ptr %launch, i64 %thread, ptr %alive, ptr %priv")
    e.place = {"launch": "%launch", "thread": "%thread", "alive": "%alive", "priv": "%priv"}
    if unit.tapes(func):
        params.append("ptr %tape")
        e.place["tape"] = "%tape"
    if any(op.name == "tid" for op in ops_of(func.body)):
        e.axes = kernel.axes(e, unit.kernel.facts.get("ndim", 0), "%thread")
    e.block(func.body)
    results: list[str] = []
    for y in func.body.yields:
        thing = e.get(y)
        for x in [thing] if isinstance(thing, X) else thing.parts():
            kind = register(x.type)
            results.append(f"{kind} {x.text}" if e.width == 1 else f"{vector(kind, e.width)} {e.wide(x)}")
    shape = (
        "{ " + ", ".join(k for y in func.body.yields for k in _result_kinds(e, y.type)) + " }" if results else "void"
    )
    packed = "zeroinitializer" if results else ""
    for k, r in enumerate(results):
        packed = text.ins(f"insertvalue {shape} {packed}, {r}, {k}")
    text.do(f"ret {shape} {packed}".rstrip())
    if e.abort_label is not None:
        text.start(e.abort_label)
        text.do(f"store i{e.width} 0, ptr %alive, align 8")
        text.do(f"ret {shape} {'zeroinitializer' if results else ''}".rstrip())
    name = unit.names[id(func)]
    return f"define internal {shape} {name}({', '.join(params)}) #0 {{\n{text.text()}\n}}\n"


HANDLERS = {"call": _call}
