"""What a tape records besides launches: writes from the host, functions of the user, and writes it only has to undo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.errors import KernelGradientError
from ..runtime.array import array
from ..runtime.copies import put_elements, read, write
from ..runtime.writes import put_selected
from ..types.core import Indexed, Matrix, Struct, Type, Vector, View, bf16
from ..types.numbers import bf16_bits, bf16_values, bits_of

GradientOf = Callable[[array], "array | None"]


class Kept:
    """A write that is not part of what is differentiated: an unrecorded launch, a write after the recording. Its
    results are kept as ``contents`` where steps are replayed; it has no adjoint."""

    __slots__ = ("contents",)

    def __init__(self, written: list[array] | None = None):
        self.contents = [(a, a.numpy().copy()) for a in written or ()]

    @property
    def nbytes(self) -> int:
        return sum([rows.nbytes for _, rows in self.contents])

    def run(self) -> None:
        for a, rows in self.contents:
            a.numpy()[...] = rows

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
        """Bytes of the values that were written."""
        return sum([x.nbytes for x in self.args if isinstance(x, np.ndarray)])

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
            if into is not None:
                flow = read(grad, to, count).copy()
                write(grad, to, np.zeros((), flow.dtype), count)
                rows = np.array(read(into, begin, count))
                add(rows, flow, into._element.type)
                write(into, begin, rows, count)
            else:
                write(grad, to, np.zeros((), grad._element.dtype), count)
            return
        rows = grad.numpy()
        flow = rows.copy() if into is not None else None
        rows[...] = np.zeros((), rows.dtype)
        if into is not None and flow is not None:
            add_all(into, flow)

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
        if into is not None:
            there = into.numpy()
            add(there, flow.reshape(there[at].shape), into._element.type, at)


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


def add_all(into: array, flow: np.ndarray) -> None:
    """Add the gradient ``flow`` of a copy to that of its source, whose shape or element type may be another."""
    rows = into.numpy()
    if flow.shape != rows.shape:
        if flow.size != rows.size:
            raise KernelGradientError(f"a copy of shape {rows.shape} to shape {flow.shape} has no gradient here",
                                      hint="copy between arrays of the same size")  # fmt: skip
        flow = flow.reshape(rows.shape)
    add(rows, flow, into._element.type)


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
