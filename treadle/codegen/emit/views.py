"""Views in registers: where they come from and what is derived from them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...ir.node import Op
from ...types.core import Matrix, Scalar, View, b1, i32, i64, u64
from ...types.layout import leaves, offsets
from .address import Address, offset_of
from .scalar import Lower, cast
from .text import PTR, register, vector
from .values import ViewX, X

if TYPE_CHECKING:
    from .emitter import Emitter


def nothing(e: Emitter, t: View) -> ViewX:
    """A view that nobody looks at."""
    zero = e.fixed(i64, 0)
    null = X(PTR, "null", const=0)
    return ViewX(t, null, null, [zero] * t.ndim, [zero] * t.ndim, zero)


def parameter(e: Emitter, t: View, pointer: str, offset: int, path: str) -> ViewX:
    """The view packed at ``pointer + offset``."""

    def read(index: int, kind: Scalar) -> X:
        at = e.t.ins(f"getelementptr i8, ptr {pointer}, i64 {offset + 8 * index}")
        return e.uniform(kind, e.t.ins(f"load {register(kind)}, ptr {at}, align 8, !invariant.load !0"))

    n = t.ndim
    data, grad = read(0, PTR), read(1, PTR)
    shape = [read(2 + k, i64) for k in range(n)]
    strides = [read(2 + n + k, i64) if s is None else e.fixed(i64, s) for k, s in enumerate(t.strides)]
    component = read(2 + 2 * n, i64) if t.planar else e.fixed(i64, 0)
    return ViewX(t, data, grad, shape, strides, component, path=path)


def view_leaves(t: View) -> list[tuple[int, Scalar]]:
    """The numbers of a view as they lie in memory: byte offset and type."""
    return [(0, PTR), (8, PTR)] + [(16 + 8 * k, i64) for k in range(2 * t.ndim + 1)]


def from_numbers(e: Emitter, t: View, xs: list[X], path: str = "") -> ViewX:
    """A view from what was loaded at :func:`view_leaves`; strides that the type knows are constants."""
    made = ViewX(t, xs[0], xs[1], xs[2 : 2 + t.ndim], xs[2 + t.ndim : 2 + 2 * t.ndim], xs[-1], path=path)
    made.strides = [x if s is None else e.fixed(i64, s) for x, s in zip(made.strides, t.strides, strict=True)]
    return made


def choose(e: Emitter, c: X, a: ViewX, b: ViewX) -> ViewX:
    """``a`` where ``c``, else ``b``, number by number."""
    parts = []
    for x, y in zip(a.parts(), b.parts(), strict=True):
        if x is y or (x.text is not None and x.text == y.text):
            parts.append(x)
        elif c.step == 0 and x.step == 0 and y.step == 0:
            low = Lower(e, x.type, x.type, True)
            parts.append(e.uniform(x.type, low.select(c, x, y).text))
        else:
            parts.append(Lower(e, x.type, x.type, False).select(c, x, y))
    return a.rebuilt(parts)


def moved(e: Emitter, view: ViewX, t: View, at: Address, dropped: int) -> ViewX:
    """``view`` from another first element on, without its first ``dropped`` dimensions."""
    data, grad = at.pointer(view.data), view.grad
    if grad.text != "null":
        grad = at.pointer(view.grad)
    strides = [e.fixed(i64, s) if s is not None else x for s, x in zip(t.strides, view.strides[dropped:], strict=True)]
    return ViewX(t, data, grad, view.shape[dropped:], strides, view.component, view.base, view.path, owed=view.owed,
                 inside=view.inside)  # fmt: skip


def _subview(e: Emitter, op: Op) -> None:
    view = e.get(op.args[0])
    assert isinstance(view, ViewX)
    indices = [e.number(a) for a in op.args[1:]]
    first = op.attrs.get("axis", 0)
    last = first + len(indices)
    if first:
        at = offset_of(e, view, [e.fixed(i32, 0)] * first + indices)
        out = moved(e, view, view.type, at, 0)
        out.type = op.results[0].type
        out.shape, out.strides = view.shape[:first] + view.shape[last:], view.strides[:first] + view.strides[last:]
    else:
        out = moved(e, view, op.results[0].type, offset_of(e, view, indices), last)
    if e.unit.options.checked:
        out.owed += tuple(zip(indices, view.shape[first:last], strict=True))
    e.env[op.results[0]] = out


def _slice(e: Emitter, op: Op) -> None:
    view = e.get(op.args[0])
    assert isinstance(view, ViewX)
    start, step, length = (e.number(a) for a in op.args[1:])
    axis, t = op.attrs["axis"], op.results[0].type
    assert isinstance(t, View)
    zero = e.fixed(i32, 0)
    at = offset_of(e, view, [zero] * axis + [start])
    out = moved(e, view, view.type, at, 0)
    out.type = t
    out.shape, out.strides = list(view.shape), list(view.strides)
    out.shape[axis] = to_i64(e, length)
    stride = t.strides[axis]
    out.strides[axis] = e.fixed(i64, stride) if stride is not None else product(e, view.strides[axis], to_i64(e, step))
    e.env[op.results[0]] = out


def to_i64(e: Emitter, x: X) -> X:
    """An integer as an i64; a contiguous one as a vector, since its 32-bit form might wrap."""
    if x.const is not None:
        return e.fixed(i64, x.const)
    if x.type.bits == 64:
        return x
    scalar = x.step == 0 and x.text is not None
    made = cast(e, x, i64, scalar)
    return e.uniform(i64, made.text) if scalar else made


def product(e: Emitter, a: X, b: X) -> X:
    """The product of two i64 numbers."""
    if a.const is not None and b.const is not None:
        return e.fixed(i64, a.const * b.const)
    scalar = a.step == 0 and b.step == 0
    made = Lower(e, i64, i64, scalar).binary("mul", a, b)
    return e.uniform(i64, made.text) if scalar else made


def _field(e: Emitter, op: Op) -> None:
    view, index, t = e.get(op.args[0]), op.attrs["index"], op.results[0].type
    assert isinstance(view, ViewX) and isinstance(t, View)
    at, inside = Address(e), None
    if view.type.planar:
        first = next(k for k, leaf in enumerate(leaves(view.type.elem)) if leaf.path[0] == index)
        at.add_number(product(e, view.component, e.fixed(i64, first)))
    else:
        offset, (outer, size) = offsets(view.type.elem)[index], view.inside or (0, view.type.elem.size)
        at.add_constant(offset)
        inside = (outer + offset, size)
    made = moved(e, view, t, at, 0)
    made.inside = inside
    e.env[op.results[0]] = made


def _parts(e: Emitter, op: Op) -> None:
    """Components as new last dimensions: of a matrix two, of a vector one."""
    view, t = e.get(op.args[0]), op.results[0].type
    assert isinstance(view, ViewX) and isinstance(t, View)
    elem = view.type.elem
    sizes = [elem.rows, elem.cols] if isinstance(elem, Matrix) else [elem.n]
    unit = view.component if view.type.planar else e.fixed(i64, elem.elem.size)
    inner = [product(e, unit, e.fixed(i64, sizes[1])), unit] if len(sizes) == 2 else [unit]
    shape = [*view.shape, *[e.fixed(i64, n) for n in sizes]]
    strides = [*view.strides, *inner]
    strides = [e.fixed(i64, s) if s is not None else x for s, x in zip(t.strides, strides, strict=True)]
    e.env[op.results[0]] = ViewX(t, view.data, view.grad, shape, strides, e.fixed(i64, 0), view.base, view.path,
                                 owed=view.owed)  # fmt: skip


def _shape(e: Emitter, op: Op) -> None:
    view, result = e.get(op.args[0]), op.results[0]
    assert isinstance(view, ViewX)
    x = view.shape[op.attrs["axis"]]
    if x.const is not None:
        e.env[result] = e.fixed(result.type, x.const)
    else:
        e.settle(result, cast(e, x, result.type, x.step == 0))


def _address(e: Emitter, op: Op) -> None:
    view, result = e.get(op.args[0]), op.results[0]
    assert isinstance(view, ViewX)
    scalar = view.data.step == 0 and view.base is None
    source = PTR if view.base is None else i64
    x = view.data
    if view.base is not None:
        x = Address(e).finish_local(view)
        source = PTR
    kind, target = (register(source), "i64") if scalar else (vector(register(source), e.width), vector("i64", e.width))
    if e.width == 1:
        kind, target, scalar = register(source), "i64", True
    name = e.t.ins(f"ptrtoint {kind} {x.text if scalar else e.wide(x)} to {target}")
    e.settle(result, X(u64, name) if scalar else X(u64, None, name, None))


def _view_at(e: Emitter, op: Op) -> None:
    """``wp.array(ptr=…, shape=…)``: sizes, then perhaps strides; row-major otherwise."""
    t = op.results[0].type
    assert isinstance(t, View)
    numbers = [e.number(a) for a in op.args]
    scalar = all(x.step == 0 for x in numbers)
    kind = register(u64) if scalar else vector(register(u64), e.width)
    name = e.t.ins(f"inttoptr {kind} {numbers[0].text if scalar else e.wide(numbers[0])} to "
                   f"{'ptr' if scalar else vector('ptr', e.width)}")  # fmt: skip
    data = e.uniform(PTR, name) if scalar else X(PTR, None, name, None)
    shape = [to_i64(e, x) for x in numbers[1 : 1 + t.ndim]]
    strides = [to_i64(e, x) for x in numbers[1 + t.ndim :]]
    if not strides:
        step = e.fixed(i64, t.elem.size)
        for n in reversed(shape):
            strides.insert(0, step)
            step = product(e, step, n)
    strides = [e.fixed(i64, s) if s is not None else x for s, x in zip(t.strides, strides, strict=True)]
    e.env[op.results[0]] = ViewX(t, data, X(PTR, "null", const=0), shape, strides, e.fixed(i64, 0))


def _grad(e: Emitter, op: Op) -> None:
    """The gradient lies in memory as the data does."""
    view = e.get(op.args[0])
    assert isinstance(view, ViewX)
    null, path = X(PTR, "null", const=0), f"{view.path}.grad" if view.path else ""
    e.env[op.results[0]] = replace(view, data=view.grad, grad=null, path=path, kept=None)


def _has_grad(e: Emitter, op: Op) -> None:
    view, result = e.get(op.args[0]), op.results[0]
    assert isinstance(view, ViewX)
    scalar = e.lanes.steps[result] is not None
    e.settle(result, Lower(e, PTR, b1, scalar).icmp("ne", view.grad, X(PTR, "null", const=0)))


HANDLERS = {
    "subview": _subview, "slice": _slice, "field": _field, "parts": _parts, "shape": _shape, "address": _address,
    "view_at": _view_at, "grad": _grad, "has_grad": _has_grad,
}  # fmt: skip
