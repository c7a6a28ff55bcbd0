"""Sums over arrays and along one of their axes."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import treadle as wp

from ..base.errors import ArrayError, CaptureError
from ..runtime.capture import recording
from ..types.core import Matrix, Type, Vector, bf16
from ..types.numbers import bf16_values
from ..types.values import class_of
from .arrays import same_device

MANY = 64  # lines from which on each is summed by one thread
PART = 64  # elements of a line that are added up before they are added to the rest


@cache
def _sum_kernel(elem: Type) -> wp.Kernel:
    dtype = class_of(elem)

    @wp.kernel(module="unique")
    def array_sum(values: wp.array(dtype=dtype), out: wp.array(dtype=dtype)):
        out[0] += values[wp.tid()]

    return array_sum


@cache
def _inner_kernel(elem: Type) -> wp.Kernel:
    dtype, scalar, product = class_of(elem), class_of(_scalar(elem)), _product(elem)

    @wp.kernel(module="unique")
    def array_inner(a: wp.array(dtype=dtype), b: wp.array(dtype=dtype), out: wp.array(dtype=scalar)):
        i = wp.tid()
        out[0] += product(a[i], b[i])

    return array_inner


@cache
def _sum_lines(elem: Type) -> wp.Kernel:
    dtype = class_of(elem)

    @wp.kernel(module="unique")
    def sum_lines(values: wp.array3d(dtype=dtype), out: wp.array3d(dtype=dtype)):
        i, k = wp.tid()
        total = dtype()
        for start in range(0, values.shape[1], PART):
            part = dtype()
            for j in range(start, wp.min(start + PART, values.shape[1])):
                part += values[i, j, k]
            total += part
        out[i, 0, k] = total

    return sum_lines


@cache
def _inner_lines(elem: Type) -> wp.Kernel:
    dtype, scalar, product = class_of(elem), class_of(_scalar(elem)), _product(elem)

    @wp.kernel(module="unique")
    def inner_lines(a: wp.array3d(dtype=dtype), b: wp.array3d(dtype=dtype), out: wp.array3d(dtype=scalar)):
        i, k = wp.tid()
        total = scalar()
        for start in range(0, a.shape[1], PART):
            part = scalar()
            for j in range(start, wp.min(start + PART, a.shape[1])):
                part += product(a[i, j, k], b[i, j, k])
            total += part
        out[i, 0, k] = total

    return inner_lines


def _scalar(elem: Type) -> Type:
    return elem.elem if isinstance(elem, Vector | Matrix) else elem


def _product(elem: Type) -> Any:
    return {Vector: wp.dot, Matrix: wp.ddot}.get(type(elem), wp.mul)


def array_sum(
    values: wp.array, out: wp.array | None = None, value_count: int | None = None, axis: int | None = None
) -> Any:
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
        ArrayError: a negative count, or an ``out`` that does not fit.

    Partial sums are combined in a fixed tree: the same bits every run, and an error as much smaller than that of adding
    one element after the other.

    >>> import treadle as wp
    >>> float(wp.utils.array_sum(wp.array([1.0, 2.0, 3.5], dtype=float)))
    6.5
    """
    elem = values.type.elem
    return _reduce("array_sum", [values], elem, (_sum_kernel, _sum_lines), out, value_count, axis)


def array_inner(
    a: wp.array, b: wp.array, out: wp.array | None = None, count: int | None = None, axis: int | None = None
) -> Any:
    """Inner product of ``a`` and ``b``, which have the same shape and dtype; arguments as for :func:`array_sum`.

    >>> import treadle as wp
    >>> float(wp.utils.array_inner(wp.array([1.0, 2.0], dtype=float), wp.array([3.0, 4.0], dtype=float)))
    11.0
    """
    same_device(a, b, "a and b lie on different devices")
    if a.shape != b.shape:
        raise ArrayError(f"array_inner() arguments must have the same shape, got {a.shape} and {b.shape}")
    if a.dtype is not b.dtype:
        raise ArrayError(f"A and b array data types do not match ({a.dtype.__name__} vs {b.dtype.__name__})")
    return _reduce("array_inner", [a, b], a.type.elem, (_inner_kernel, _inner_lines), out, count, axis)


def _reduce(
    name: str, arrays: list[wp.array], elem: Type, kernels: tuple[Any, Any], out: wp.array | None, count: int | None,
    axis: int | None,
) -> Any:  # fmt: skip
    """The sum over all elements of ``arrays`` by the first of ``kernels``, or along ``axis`` by either."""
    first, result_type = arrays[0], elem if name == "array_sum" else _scalar(elem)
    if count is not None and count < 0:
        raise ArrayError(f"{name}() needs a count that is not negative, not {count}")
    if axis is not None and not -first.ndim <= axis < first.ndim:
        raise IndexError(f"{name}() axis {axis} is out of bounds: the array has {first.ndim} dimensions")
    if out is None and axis is None and recording():
        raise CaptureError(f"{name}() gives a number to Python, which cannot be captured: it needs an explicit out",
                           hint="pass out=, an array of one element")  # fmt: skip
    of_all, of_lines = kernels
    if axis is None:
        result = _result(first, class_of(result_type), (1,), out)
        lines = [(a if a.ndim == 1 else a.contiguous().flatten())[:count] for a in arrays]
        result.zero_()
        wp.launch(of_all(elem), lines[0].size, inputs=[*lines, result], device=first.device)
    else:
        axis %= first.ndim
        before, after = prod(first.shape[:axis]), prod(first.shape[axis + 1 :])
        result = _result(first, class_of(result_type), (*first.shape[:axis], 1, *first.shape[axis + 1 :]), out)
        lines = [a.contiguous().reshape((before, a.shape[axis], after))[:, :count] for a in arrays]
        if before * after >= MANY:
            sums = result.reshape((before, 1, after))
            wp.launch(of_lines(elem), (before, after), inputs=[*lines, sums], device=first.device)
        else:
            result.zero_()
            sums = result.flatten()
            for i in range(before * after):
                line = [a[i // after, :, i % after] for a in lines]
                wp.launch(of_all(elem), line[0].size, inputs=[*line, sums[i : i + 1]], device=first.device)
    if out is not None or axis is not None:
        return result
    return bf16_values(result.numpy())[0] if _scalar(elem) is bf16 else result.numpy()[0]


def _result(values: wp.array, dtype: Any, shape: tuple[int, ...], out: wp.array | None) -> wp.array:
    """``out`` if it takes the sums, or an array that does."""
    if out is None:
        return wp.empty(shape, dtype=dtype, device=values.device)
    if out.device != values.device:
        raise ArrayError("out storage device should match values array")
    if out.dtype is not dtype:
        raise ArrayError(f"out array should have type {dtype.__name__}")
    if out.shape != shape:
        raise ArrayError(f"out array should have shape {shape}")
    return out
