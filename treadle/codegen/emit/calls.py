"""Functions that stayed functions: written once for a gang, called with the mask of the lanes that call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...ir.node import Func, Op, Value
from ...ir.walk import ops_of
from ...passes.lanes import Step
from ...types.core import Type, View, i64
from . import faults, kernel
from .merge import part_steps
from .text import PTR, Text, register, vector
from .values import ViewX, X

if TYPE_CHECKING:
    from .emitter import Emitter
    from .gangs import Form
    from .unit import Unit


def _operands(e: Emitter, step: Step, thing: X | ViewX) -> list[str]:
    """The numbers of a value of lane step ``step``, as they travel."""
    numbers = [(step, thing)] if isinstance(thing, X) else zip(part_steps(step, len(thing.parts())), thing.parts())
    return [
        f"{vector(register(x.type), e.width)} {e.wide(x)}" if s is None else f"{register(x.type)} {x.text}"
        for s, x in numbers
    ]  # fmt: skip


def _kinds(e: Emitter, func: Func, steps: tuple[Step, ...]) -> list[str]:
    """The LLVM types of the numbers of which the results of ``func`` consist."""
    kinds = []
    for y, step in zip(func.body.yields, steps, strict=True):
        parts = _view_kinds(y.type) if isinstance(y.type, View) else [y.type]
        for t, s in zip(parts, _part_steps(y.type, step), strict=True):
            kinds.append(vector(register(t), e.width) if s is None else register(t))
    return kinds


def _part_steps(t: Type, step: Step) -> list[Step]:
    return part_steps(step, len(_view_kinds(t))) if isinstance(t, View) else [step]


def _shape(kinds: list[str]) -> str:
    return "{ " + ", ".join(kinds) + " }" if kinds else "void"


def _call(e: Emitter, op: Op) -> None:
    func: Func = op.attrs["func"]
    form, whole, name = e.unit.called(op, e.lanes, e.mask is None)
    arguments: list[str] = []
    for p, a in zip(func.params, op.args, strict=True):
        thing = e.get(a)
        arguments += _operands(e, form.lanes.steps[p], thing)
        if isinstance(thing, ViewX) and thing.base is not None:
            arguments.append(f"ptr {thing.base}")
    if not whole:
        arguments.append(f"{e.bits} {e.mask_text()}")
    arguments.append(f"ptr {e.place['launch']}, i64 {e.place['thread']}, ptr {e.place['alive']}, ptr {e.place['priv']}")
    if e.unit.tapes(func):
        arguments.append(f"ptr {e.place['tape']}")
    kinds = _kinds(e, func, form.results)
    shape = _shape(kinds)
    call = f"call {shape} {name}({', '.join(arguments)})"
    if kinds:
        packed = e.t.ins(call)
        names = iter([e.t.ins(f"extractvalue {shape} {packed}, {k}") for k in range(len(kinds))])
        for r, step in zip(op.results, form.results, strict=True):
            e.env[r] = _received(e, r, step, names)
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


def _view_kinds(t: View) -> list:
    return [PTR if t.space != "local" else i64, PTR] + [i64] * (2 * t.ndim + 1)


def _received(e: Emitter, value: Value, step: Step, names: Iterator[str]) -> X | ViewX:
    """A result of a call, of lane step ``step``."""
    t = value.type

    def one(kind, s: Step) -> X:
        return X(kind, None, next(names), None) if s is None else e.uniform(kind, next(names), s)

    if not isinstance(t, View):
        return one(t, step)
    numbers = [one(k, s) for k, s in zip(_view_kinds(t), _part_steps(t, step), strict=True)]
    return ViewX(t, numbers[0], numbers[1], numbers[2 : 2 + t.ndim], numbers[2 + t.ndim : -1], numbers[-1])


def write_functions(unit: Unit) -> list[str]:
    """The texts of all functions that are called, and of those that these call."""
    written: list[str] = []
    while len(written) < len(unit.asked):
        written.append(_function(unit, *unit.asked[len(written)]))
    return written


def _function(unit: Unit, form: Form, whole: bool) -> str:
    """The text of a gang function; ``whole``: for all lanes."""
    from .emitter import Emitter

    func, lanes = form.func, form.lanes
    text = Text(unit.needs)
    e = Emitter(unit, lanes, text)
    text.start("entry")
    e.entry = text.slot()
    params = _parameters(e, func)
    if not whole:
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
    for y, step in zip(func.body.yields, form.results, strict=True):
        results += _operands(e, step, e.get(y))
    shape = _shape(_kinds(e, func, form.results))
    packed = "zeroinitializer" if results else ""
    for k, r in enumerate(results):
        packed = text.ins(f"insertvalue {shape} {packed}, {r}, {k}")
    text.do(f"ret {shape} {packed}".rstrip())
    if e.abort_label is not None:
        text.start(e.abort_label)
        text.do(f"store i{e.width} 0, ptr %alive, align 8")
        text.do(f"ret {shape} {'zeroinitializer' if results else ''}".rstrip())
    return f"define internal {shape} {form.names[whole]}({', '.join(params)}) #0 {{\n{text.text()}\n}}\n"


def _parameters(e: Emitter, func: Func) -> list[str]:
    """Bind the parameters of ``func``; what they are in LLVM's words."""
    params: list[str] = []
    home = e.after_parameters = e.t.slot()
    steps = e.lanes.steps

    def take(t, step: Step) -> X:
        name = e.t.name()
        if step is None:
            params.append(f"{vector(register(t), e.width)} {name}")
            return X(t, None, name, None)
        params.append(f"{register(t)} {name}")
        x = X(t, name, None, step)
        x.home = home
        return x

    for k, p in enumerate(func.params):
        if not isinstance(p.type, View):
            e.env[p] = x = take(p.type, steps[p])
            if p in e.lanes.exact and x.text is not None:
                e.longs[x.text] = e.t.into(home, f"sext i32 {x.text} to i64")
            continue
        kinds = _view_kinds(p.type)
        numbers = [take(t, s) for t, s in zip(kinds, part_steps(steps[p], len(kinds)), strict=True)]
        base = None
        if p.type.space == "local":
            base = e.t.name()
            params.append(f"ptr {base}")
        n = p.type.ndim
        view = ViewX(p.type, numbers[0], numbers[1], numbers[2 : 2 + n], numbers[2 + n : -1], numbers[-1], base)
        view.path = func.names[k] if k < len(func.names) else p.name
        e.env[p] = kernel.with_known_strides(e, view)
    return params


HANDLERS = {"call": _call}
