"""Memory, backwards: a load adds to the gradient of what it read, a store takes the gradient of what it wrote."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...base.errors import KernelGradientError
from ...ir.node import Op, Value
from ...ir.ops import CUTS
from ...ir.walk import is_float
from ...types.core import Type, b1, view
from ...types.layout import children, leaves
from .facts import UNKNOWN

if TYPE_CHECKING:
    from .reverse import Reverser

__all__ = ["gradient", "make_shadow", "reverse_atomic", "reverse_load", "reverse_store"]


def gradient(r: Reverser, v: Value) -> Value:
    """The view of the gradient of what ``v`` shows."""
    found = r.known("views", v)
    if found is None:
        maker = r.facts.makers.get(v)
        match maker.name if maker is not None else "parameter":
            case "parameter" | "load":
                found = r.b.one("grad", (r.now(v),), v.type)
            case "subview" | "slice" | "field" | "parts":
                args = (gradient(r, maker.args[0]), *r.all_now(maker.args[1:]))
                found = r.b.one(maker.name, args, v.type, **maker.attrs)
            case _:
                raise KernelGradientError(
                    "the derivative through an array that is chosen or made while the program runs is not known",
                    maker.span, "index one array instead",
                )  # fmt: skip
        r.scopes[-1].views[v] = found
    return found


def make_shadow(r: Reverser, op: Op) -> None:
    """The gradient of an array of the thread's own: another one, zeroed."""
    if r.facts.watched(op.result):
        shadow = Value(op.result.type)
        r.b.ops.append(Op("local", (), (shadow,), {"type": op.attrs["type"]}, (), op.span))
        r.scopes[-1].views[op.result] = shadow


def has_gradient(r: Reverser, v: Value) -> Value:
    """Whether the array that memory gave or an ``if`` chose, and ``v`` shows a part of, has a gradient."""
    while (maker := r.facts.makers.get(v)) is not None and maker.name in CUTS:
        v = maker.args[0]
    chosen = r.known("there", v)
    if chosen is not None:
        return chosen
    if maker is None or maker.name != "load":
        gradient(r, v)  # complains
    return r.b.one("has_grad", (r.now(v),), b1)


def where_known(r: Reverser, v: Value, write: Callable[[], None]) -> None:
    """``write`` code for the gradient of ``v``; where only the running program knows whether there is one, it asks."""
    if r.facts.root[v] != UNKNOWN:
        return write()
    there = has_gradient(r, v)
    with r.scope():
        write()
        region = r.b.block()
    with r.scope():
        nothing = r.b.block()
    r.b.op("if", (there,), (), (region, nothing))


def reverse_load(r: Reverser, op: Op) -> None:
    adjoints = [r.take(v) for v in op.results]
    v = op.args[0]
    if not r.facts.watched(v) or all(a is None for a in adjoints):
        return

    def write() -> None:
        g, at = gradient(r, v), r.all_now(op.args[1:])
        if r.facts.private(v) or r.facts.root[v] in r.own:
            old = r.b.op("load", (g, *at), tuple([x.type for x in op.results]))
            new = [x if a is None else r.b.one("add", (x, a), x.type) for x, a in zip(old, adjoints)]
            r.b.op("store", (g, *at, *new))
            return
        apart = {} if r.facts.moves(v) else {"apart": True}
        for k, a in enumerate(adjoints):
            if a is not None:
                r.b.one("atomic", (leaf(r, g, k), *at, a), a.type, op="add", **apart)

    where_known(r, v, write)


def leaf(r: Reverser, v: Value, number: int) -> Value:
    """The view of one scalar of each element of ``v``."""
    t = v.type
    for index in leaves(t.elem)[number].path:
        t = view(children(t.elem)[index], t.ndim, t.strides, space=t.space)
        v = r.b.one("field", (v,), t, index=index)
    return v


def reverse_store(r: Reverser, op: Op) -> None:
    """What was stored gets the gradient of the element; what the element held before gets none of it."""
    v, ndim = op.args[0], op.args[0].type.ndim
    if not r.facts.watched(v):
        return
    at, values = op.args[1 : 1 + ndim], op.args[1 + ndim :]
    if not any(map(is_float, values)):
        return
    types = tuple([x.type for x in values])
    wanted = [x for x in values if r.is_active(x)]
    sums = tuple([x.type for x in wanted])
    got: list[Value] = []

    def write() -> None:
        g, where = gradient(r, v), r.all_now(at)
        old = r.b.op("load", (g, *where), types)
        r.b.op("store", (g, *where, *[r.zero(x.type) if is_float(x) else x for x in old]))
        got.extend([o for o, x in zip(old, values) if r.is_active(x)])

    if r.facts.root[v] != UNKNOWN:
        write()
        for x, a in zip(wanted, got):
            r.add(x, a)
        return
    _store_somewhere(r, v, write, got, wanted, sums)


def _store_somewhere(r: Reverser, v: Value, write: Callable[[], None], got: list[Value], wanted: list[Value],
                     types: tuple[Type, ...]) -> None:  # fmt: skip
    """The same through a view that memory gave, which may have no gradient."""
    there = has_gradient(r, v)
    with r.scope():
        write()
        region = r.b.block((), tuple(got))
    with r.scope():
        nothing = r.b.block((), tuple([r.zero(t) for t in types]))
    for x, a in zip(wanted, r.b.op("if", (there,), types, (region, nothing))):
        r.add(x, a)


def reverse_atomic(r: Reverser, op: Op) -> None:
    """``add`` and ``sub`` hand the gradient of the element on; ``min`` and ``max`` do if the value is what stands there
    at the end, and take it away from all others. A used result has no derivative."""
    kind, v, ndim = op.attrs["op"], op.args[0], op.args[0].type.ndim
    at, values = op.args[1 : 1 + ndim], op.args[1 + ndim :]
    if r.take(op.result) is not None:
        raise KernelGradientError(
            f"the result of atomic_{kind} is the element as some thread left it; it has no derivative", op.span,
            "read the array in another launch",
        )  # fmt: skip
    if not r.facts.watched(v) or not any(map(is_float, values)):
        return
    if kind in ("exch", "cas"):
        raise KernelGradientError(f"atomic_{kind} on an array that has a gradient has no derivative", op.span)
    (x,) = values
    if kind in ("add", "sub"):
        if r.is_active(x):
            _hand_on(r, v, at, x, kind == "sub")
        return
    if kind in ("min", "max"):
        _find_winner(r, op, v, at, x)


def _hand_on(r: Reverser, v: Value, at: tuple[Value, ...], x: Value, negative: bool) -> None:
    got: list[Value] = []

    def write() -> None:
        a = r.b.op("load", (gradient(r, v), *r.all_now(at)), (x.type,))[0]
        got.append(r.b.one("neg", (a,), x.type) if negative else a)

    if r.facts.root[v] == UNKNOWN:
        _store_somewhere(r, v, write, got, [x], (x.type,))
        return
    write()
    r.add(x, got[0])


def _find_winner(r: Reverser, op: Op, v: Value, at: tuple[Value, ...], x: Value) -> None:
    """The array holds what it held after the launch; the first thread whose value is that takes the gradient."""
    root = r.facts.root[v]
    if r.facts.private(v) or r.facts.changes(root) or root == UNKNOWN:
        raise KernelGradientError(
            f"an array that atomic_{op.attrs['op']} changes and the kernel also reads has no derivative", op.span,
            "read it in another launch",
        )  # fmt: skip
    r.winners.add(root)
    where = r.all_now(at)
    (final,) = r.b.op("load", (r.now(v), *where), (x.type,))
    won = r.b.one("eq", (final, r.now(x)), b1)
    with r.scope():
        zero = r.zero(x.type)
        taken = r.b.one("atomic", (gradient(r, v), *where, zero), x.type, op="exch")
        region = r.b.block((), (taken,))
    with r.scope():
        nothing = r.b.block((), (r.zero(x.type),))
    (a,) = r.b.op("if", (won,), (x.type,), (region, nothing))
    r.add(x, a)

