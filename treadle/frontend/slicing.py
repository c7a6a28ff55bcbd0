"""Views of parts of arrays: ``a[i]``, ``a[1:n, :, k]``, and views of one array type brought to a common layout."""

from __future__ import annotations

import ast

from ..base.errors import KernelValueError
from ..ir.indexed import extent, listed, narrowed, remade
from ..ir.node import Value
from ..types.core import Indexed, View, b1, i32, view
from .constants import Constant
from .expressions import Expressions


class Slicing(Expressions):
    """Translation of indices and ranges into arrays."""

    def index(self, item: ast.expr, v: Value | None, axis: int) -> Value:
        """A run-time index; a known negative one counts from the end of ``axis`` of ``v``."""
        k = self.operand(item)
        if isinstance(k, Constant) and v in self.sizes:
            self._static_index(k, self.sizes[v][axis], item)
        if isinstance(k, Constant) and v is not None and isinstance(k.value, int) and k.value < 0:
            b = self.here(item)
            return b.one("add", (extent(b, v, axis), b.i32(k.value)), i32)
        return self.index_type(self.value(k, item), item)

    def slices(self, v: Value, items: list[ast.expr], node: ast.Subscript) -> Value:
        """``v[a:b, i, :]``: ranges keep a dimension, integers take it away."""
        ndim = v.type.ndim
        if len(items) > ndim:
            self.fail(node, f"an array of {ndim} dimensions takes at most as many indices, here are {len(items)}")
        axis = 0
        for item in items:
            if isinstance(item, ast.Slice):
                v = self._ranged(v, axis, item)
                axis += 1
            elif isinstance(v.type, Indexed):
                at = self.index(item, v, axis)
                v = narrowed(self.here(item), v, axis, at)
            else:
                at, t = self.index(item, v, axis), v.type
                strides = (*t.strides[:axis], *t.strides[axis + 1 :])
                left = view(t.elem, t.ndim - 1, strides, t.planar, t.space)
                v = self.here(item).op("subview", (v, at), (left,), **({"axis": axis} if axis else {}))[0]
        return v

    def _ranged(self, v: Value, axis: int, item: ast.Slice) -> Value:
        """One range along ``axis`` of an array or, where that is indexed, along the list of its indices."""
        if not isinstance(v.type, Indexed):
            return self._slice(v, axis, item)
        b = self.here(item)
        data, places = b.extract(v, 0), [listed(b, v, k) for k in range(v.type.ndim)]
        if places[axis] is None:
            data = self._slice(data, axis, item)
        else:
            places[axis] = self._slice(places[axis], 0, item)
        return remade(self.here(item), data, places)

    def _slice(self, v: Value, axis: int, item: ast.Slice) -> Value:
        """One range along ``axis``, by Python's rules: bounds clipped, negative ones counted from the end."""
        if item.lower is None and item.upper is None and item.step is None:
            return v
        step = self.operand(item.step) if item.step is not None else Constant(1, i32, True)
        if not isinstance(step, Constant):
            return self._slice_by(v, axis, item, self._whole(self.value(step, item), item))
        if not isinstance(step.value, int):
            self.fail(item, "the step of a slice must be an integer other than 0")
        if step.value == 0:
            self.fail(item, "Slice step cannot be zero", kind=KernelValueError)
        b, k = self.here(item), step.value
        length = b.one("shape", (v,), i32, axis=axis)
        low, high = (b.i32(0), length) if k > 0 else (b.i32(-1), b.one("sub", (length, b.i32(1)), i32))
        start = self._bound(item.lower, low if k > 0 else high, length, low, high)
        stop = self._bound(item.upper, high if k > 0 else low, length, low, high)
        b = self.here(item)
        first, last = (start, stop) if k > 0 else (stop, start)
        span = b.one("sub", (last, first), i32)
        if abs(k) != 1:  # ceil((last - first) / |step|)
            rounded = b.one("add", (span, b.i32(abs(k) - 1)), i32)
            span = b.one("div", (rounded, b.i32(abs(k))), i32)
        count = b.one("max", (span, b.i32(0)), i32)
        return self._cut(v, axis, start, b.i32(k), count, item, k == 1)

    def _slice_by(self, v: Value, axis: int, item: ast.Slice, step: Value) -> Value:
        """A range whose step is known only at run time; then so is the end at which it starts."""
        b = self.here(item)
        zero, one = b.i32(0), b.i32(1)
        b.op("check", (b.one("ne", (step, zero), b1),), kind="assert", message="slice step cannot be zero")
        up = b.one("lt", (zero, step), b1)
        length = b.one("shape", (v,), i32, axis=axis)
        end = b.one("sub", (length, one), i32)
        low, high = b.one("select", (up, zero, b.i32(-1)), i32), b.one("select", (up, length, end), i32)
        start = self._bound(item.lower, b.one("select", (up, low, high), i32), length, low, high)
        stop = self._bound(item.upper, b.one("select", (up, high, low), i32), length, low, high)
        b = self.here(item)
        # (stop - start + step - sign(step)) / step, divided towards zero
        span = b.one("add", (b.one("sub", (stop, start), i32), step), i32)
        span = b.one("sub", (span, b.one("select", (up, one, b.i32(-1)), i32)), i32)
        count = b.one("max", (b.one("div", (span, step), i32), zero), i32)
        return self._cut(v, axis, start, step, count, item, False)

    def _cut(self, v: Value, axis: int, start: Value, step: Value, count: Value, item: ast.AST, dense: bool) -> Value:
        t: View = v.type
        strides = t.strides if dense else (*t.strides[:axis], None, *t.strides[axis + 1 :])
        made = view(t.elem, t.ndim, strides, t.planar, t.space)
        return self.here(item).one("slice", (v, start, step, count), made, axis=axis)

    def _bound(self, item: ast.expr | None, default: Value, length: Value, low: Value, high: Value) -> Value:
        """A bound of a range, between ``low`` and ``high``."""
        if item is None:
            return default
        x = self.operand(item)
        b = self.here(item)
        if isinstance(x, Constant) and isinstance(x.value, int):
            at = b.one("add", (length, b.i32(x.value)), i32) if x.value < 0 else b.i32(x.value)
        else:
            at = self._whole(self.value(x, item), item)
            negative = b.one("lt", (at, b.i32(0)), b1)
            at = b.one("select", (negative, b.one("add", (at, length), i32), at), i32)
        return b.one("min", (b.one("max", (at, low), i32), high), i32)

    def _whole(self, x: Value, item: ast.AST) -> Value:
        """An integer as an int32."""
        x = self.index_type(x, item)
        return x if x.type is i32 else self.here(item).one("cast", (x,), i32)


def below(t: View, n: int) -> View:
    """The view that is left when the first ``n`` dimensions of ``t`` are fixed."""
    return view(t.elem, t.ndim - n, t.strides[n:], t.planar, t.space)
