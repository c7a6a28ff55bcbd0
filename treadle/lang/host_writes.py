"""What a tape records besides launches: writes from the host, functions of the user, and writes it only has to undo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.errors import KernelGradientError
from ..runtime import capture, deferred, operators
from ..runtime.array import allocate, array
from ..runtime.copies import put_elements, read, write
from ..runtime.elements import element_of
from ..runtime.writes import put_rows, put_selected, put_zeros
from ..types.core import Indexed, Matrix, Struct, Type, Vector, View, bf16
from ..types.layout import has_floats
from ..types.numbers import bf16_bits, bf16_values, bits_of
from .contents import copied, put_value
from .parts import span_of

GradientOf = Callable[[array], "array | None"]


class Kept:
    """A write that is not part of what is differentiated: an unrecorded launch, a write after the recording. Its
    results are kept as ``contents`` where steps are replayed; it has no adjoint."""

    __slots__ = ("contents",)

    untold = False  # whether it may have done what nobody told, see lang/untold.py

    def __init__(self, written: list[array] | None = None):
        self.contents = [(a, copied(a)) for a in written or ()]

    @property
    def nbytes(self) -> int:
        return sum([content.nbytes for _, content in self.contents])

    def run(self) -> None:
        for a, content in self.contents:
            put_value(a, content)

    def arrays(self) -> list[array]:
        return [a for a, _ in self.contents]

    def backward(self, grad_of: GradientOf) -> None:
        pass


class HostWrite:
    """``perform(dest, *args)``: zeros, a value, or the elements of ``source``."""

    __slots__ = ("args", "dest", "perform", "source")

    def __init__(self, dest: array, perform: Callable[..., None], args: tuple, source: array | None):
        self.dest, self.perform, self.args, self.source = dest, perform, args, source

    @property
    def nbytes(self) -> int:
        """Bytes of the values that were written, and of the indices by which."""
        parts = [x for arg in self.args for x in (arg if type(arg) is tuple else (arg,))]
        return sum([x.nbytes for x in parts if isinstance(x, np.ndarray)])

    def run(self) -> None:
        self.perform(self.dest, *self.args)

    def arrays(self) -> list[array]:
        return [self.dest] if self.source is None else [self.source, self.dest]

    def backward(self, grad_of: GradientOf) -> None:
        """What was written takes over the gradient of the elements it went to."""
        grad = grad_of(self.dest)
        if grad is None:
            return
        into = None if self.source is None else grad_of(self.source)
        if self.perform is put_selected:
            self.selected(grad, into)
            return
        if self.perform is put_elements:
            _, to, begin, count = self.args
            part = elements(grad, to, count)
            source = None if into is None else elements(into, begin, count)
            if part is None or (into is not None and source is None):
                self.scattered(grad, into)
                return
            grad, into = part, source
        if into is None:
            put_zeros(grad)
            return
        (low, high), (begin, end) = span_of(grad), span_of(into)
        if begin < high and low < end:  # as if all was read before anything is written
            flow = copied(grad)
            put_zeros(grad)
            add_all(into, flow)
        else:
            add_all(into, grad)
            put_zeros(grad)

    def scattered(self, grad: array, into: array | None) -> None:
        """The same of a number of elements that strides forbid to show as an array."""
        _, to, begin, count = self.args
        if into is not None:
            flow = read(grad, to, count).copy()
            write(grad, to, np.zeros((), flow.dtype), count)
            rows = np.array(read(into, begin, count))
            add(rows, flow, into._element.type)
            write(into, begin, rows, count)
        else:
            write(grad, to, np.zeros((), grad._element.dtype), count)

    def selected(self, grad: array, into: array | None) -> None:
        """The same where indices say which elements were written, and which were read."""
        _, shape, to, at = self.args
        rows = grad.numpy()
        flow = rows[to].copy()
        if to is not Ellipsis:  # where an index stands there twice, what was written last remains
            outer = shape[: grad.ndim]
            numbers, last = np.arange(np.prod(outer)).reshape(outer), np.empty(grad.shape, np.int64)
            last[to] = numbers
            flow[last[to] != numbers] = np.zeros((), flow.dtype)
        rows[to] = np.zeros((), rows.dtype)
        give_back(grad, rows)
        if into is not None:
            there = into.numpy()
            add(there, flow.reshape(there[at].shape), into._element.type, at)
            give_back(into, there)


def give_back(a: array, rows: np.ndarray) -> None:
    """``rows``, what NumPy shows of ``a``, were changed: where they are a copy, that goes back."""
    if a.device.queue is not None:
        put_rows(a, rows)


class Function(Kept):
    """What the user's ``tape.record_func`` gave: ``call`` runs in the backward pass. Where steps are replayed the
    contents of ``touched`` are kept (``keep``)."""

    __slots__ = ("call", "touched")

    def __init__(self, call: Callable[[], Any], touched: list[array], keep: bool):
        super().__init__(touched if keep else None)
        self.call, self.touched = call, touched

    def arrays(self) -> list[array]:
        return self.touched

    def backward(self, grad_of: GradientOf) -> None:
        self.call()


def elements(a: array, first: int, count: int) -> array | None:
    """A view of ``count`` elements from number ``first`` on, in row-major order, where there is such a view."""
    if a.ndim == 1:
        return a._view((count,), a.strides, first * a.strides[0])
    return a._view((count,), (a._element.size,), first * a._element.size) if a.is_contiguous else None


def add_all(into: array, flow: array) -> None:
    """Add the gradient ``flow`` of a copy to that of its source, whose shape or element type may be another."""
    rows, given = into._raw(), flow._raw()
    if given.size != rows.size:
        raise KernelGradientError(f"a copy of shape {into.shape} to shape {flow.shape} has no gradient here",
                                  hint="copy between arrays of the same size")  # fmt: skip
    now = capture.sink(into.device) if capture.active or into.device.queue else None
    if now is not None:
        if flow.shape != into.shape or flow._element.type is not into._element.type:
            into, flow = into.flatten(), flow.contiguous().flatten()
            if flow._element.dtype == into._element.dtype:
                flow = flow.view(into.dtype)
            else:  # the copy converted its elements
                other, flow = flow, allocate(into._element, into.shape, into.device, False)
                flow.assign(other)
        now.keep([into, flow])
        if isinstance(into._element.type, Struct):
            for ours, theirs in zip(_fields(into), _fields(flow), strict=True):
                add_all(ours, theirs)
        elif not deferred.add(now, into._raw(), flow._raw()):
            operators.perform("add", (into, flow), into)
    else:
        add(rows, given.reshape(rows.shape), into._element.type)


def _fields(a: array) -> list[array]:
    """The floating-point fields of an array of structs, each as an array."""
    t = a._element.type
    return [
        a._view(a.shape, a.strides, offset, element_of(field_type), element_of(field_type).component)
        for (_, field_type), offset in zip(t.fields, t.offsets, strict=True)
        if not isinstance(field_type, View | Indexed) and has_floats(field_type)
    ]


def add(rows: np.ndarray, flow: np.ndarray, t: Type, at: Any = Ellipsis) -> None:
    """``rows[at] += flow`` in all floating-point parts of elements of type ``t``, as often as an index stands there."""
    if isinstance(t, Struct):
        for name, field_type in t.fields:
            if not isinstance(field_type, View | Indexed):
                add(rows[name], flow[name], field_type, at)
        return
    scalar = t.elem if isinstance(t, Vector | Matrix) else t
    if scalar is bf16:
        sums = bf16_values(rows)
        np.add.at(sums, at, bf16_values(flow))
        bits_of(rows)[...] = bf16_bits(sums)
    elif rows.dtype.kind == "f" and at is Ellipsis:
        rows += flow
    elif rows.dtype.kind == "f":
        np.add.at(rows, at, flow)
