"""``wp.utils``: reductions over whole arrays, written with the same kernels users write."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..runtime.array import array
from ..runtime.construct import zeros
from ..types.core import Matrix, Type, Vector, bf16
from ..types.numbers import bf16_values
from ..types.values import class_of
from .kernel import Kernel, kernel
from .launch import launch


@cache
def _sum_kernel(elem: Type) -> Kernel:
    dtype = class_of(elem)

    @kernel(module="unique")
    def array_sum(values: array(dtype=dtype), out: array(dtype=dtype)):
        out[0] += values[from_builtin.tid()]

    return array_sum


@cache
def _inner_kernel(elem: Type) -> Kernel:
    dtype, scalar = class_of(elem), class_of(elem.elem if isinstance(elem, Vector | Matrix) else elem)
    product = {Vector: from_builtin.dot, Matrix: from_builtin.ddot}.get(type(elem), from_builtin.mul)

    @kernel(module="unique")
    def array_inner(a: array(dtype=dtype), b: array(dtype=dtype), out: array(dtype=scalar)):
        i = from_builtin.tid()
        out[0] += product(a[i], b[i])

    return array_inner


class _Builtins:
    """Builtins by attribute, as ``wp.sin`` outside this package."""

    def __getattr__(self, name: str) -> Any:
        from ..builtins.registry import exists
        from .host import Builtin

        if not exists(name):
            raise AttributeError(name)
        made = Builtin(name)
        setattr(self, name, made)
        return made


from_builtin = _Builtins()


def _lines(values: array, axis: int | None, count: int | None, name: str) -> tuple[list[array], tuple[int, ...]]:
    """One-dimensional views to reduce, and the shape of the result."""
    if axis is None:
        flat = values.flatten() if values.ndim > 1 else values
        return [flat if count is None else flat[:count]], ()
    if not -values.ndim <= axis < values.ndim:
        raise IndexError(f"{name}() axis {axis} is out of bounds: the array has {values.ndim} dimensions")
    axis %= values.ndim
    outer = (*values.shape[:axis], 1, *values.shape[axis + 1 :])
    taken = slice(0, values.shape[axis] if count is None else count)
    lines = [values[(*index[:axis], taken, *index[axis + 1 :])] for index in np.ndindex(*outer)]
    return lines, outer


def _reduce(run: Any, lines: list, outer: tuple[int, ...], out: array | None, elem: Type, device: Any) -> Any:
    dtype = class_of(elem)
    shape = outer or (1,)
    if out is None:
        result = zeros(shape, dtype=dtype, device=device)
    else:
        if out.dtype is not dtype or tuple(out.shape) != shape:
            raise ValueError(
                f"out must have dtype {dtype.__name__} and shape {shape}, not {out.dtype.__name__} and {out.shape}"
            )
        result = out
        result.zero_()
    cells = result.flatten()
    for i, line in enumerate(lines):
        run(line, cells[i : i + 1])
    if out is not None:
        return out
    if outer:
        return result
    bits = bf16 in (elem, getattr(elem, "elem", None))  # which NumPy does not know as numbers
    return bf16_values(result.numpy())[0] if bits else result.numpy()[0]


def array_sum(values: array, out: array | None = None, value_count: int | None = None, axis: int | None = None) -> Any:
    """Sum of the elements of ``values``.

    Args:
        values: array of scalars, vectors or matrices.
        out: array of shape (1,), or as that of ``values`` with an extent of 1 along ``axis``; the sums are stored there
            and it is returned.
        value_count: take only so many elements (along ``axis``).
        axis: sum along this axis; default all elements.

    Returns: the sum as NumPy has it, an array where ``axis`` is given, or ``out``.

    Raises:
        IndexError: ``values`` has no such axis.
        ValueError: a negative count, or an ``out`` that does not fit.

    Thousands of partial sums are combined in a fixed tree: the same bits every run, and an error as much smaller than
    that of adding one element after the other.

    >>> import treadle as wp
    >>> float(wp.utils.array_sum(wp.array([1.0, 2.0, 3.5], dtype=float)))
    6.5
    """
    elem = values.type.elem
    if value_count is not None and value_count < 0:
        raise ValueError(f"value_count must not be negative, not {value_count}")
    lines, outer = _lines(values, axis, value_count, "array_sum")

    def run(line: array, cell: array) -> None:
        launch(_sum_kernel(elem), dim=line.shape[0], inputs=[line, cell])

    return _reduce(run, lines, outer, out, elem, values.device)


def array_inner(a: array, b: array, out: array | None = None, count: int | None = None, axis: int | None = None) -> Any:
    """Inner product of ``a`` and ``b``, which have the same shape and dtype; arguments as for :func:`array_sum`.

    >>> import treadle as wp
    >>> float(wp.utils.array_inner(wp.array([1.0, 2.0], dtype=float), wp.array([3.0, 4.0], dtype=float)))
    11.0
    """
    if a.shape != b.shape or a.dtype is not b.dtype:
        raise ValueError(
            f"array_inner needs equal shapes and dtypes, not {a.shape} {a.dtype.__name__} and "
            f"{b.shape} {b.dtype.__name__}"
        )
    elem = a.type.elem
    left, outer = _lines(a, axis, count, "array_inner")
    right, _ = _lines(b, axis, count, "array_inner")
    pairs = list(zip(left, right, strict=True))

    def run(pair: tuple[array, array], cell: array) -> None:
        launch(_inner_kernel(elem), dim=pair[0].shape[0], inputs=[pair[0], pair[1], cell])

    return _reduce(run, pairs, outer, out, elem.elem if isinstance(elem, Vector | Matrix) else elem, a.device)
