"""Element by element conversion of arrays to another type."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import treadle as wp

from ..base.errors import ArrayError
from ..types.core import Scalar
from ..types.inquiry import type_scalar_type
from .arrays import same_device


@cache
def _cast_kernel(dtype: Any) -> wp.Kernel:
    @wp.kernel(module="unique")
    def array_cast(source: wp.array(dtype=Any), target: wp.array(dtype=dtype)):
        i = wp.tid()
        target[i] = dtype(source[i])

    return array_cast


def array_cast(in_array: wp.array, out_array: wp.array, count: int | None = None) -> None:
    """Convert the elements of ``in_array`` to the dtype of ``out_array``.

    Args:
        in_array: scalars, or vectors and matrices of scalars.
        out_array: as many of another type. Where ranks, or the shapes of elements, differ, scalars are converted in the
            order in which they lie in memory.
        count: how many elements of ``in_array``; default all. For arrays of one dimension.

    Raises:
        ArrayError: devices that differ, shapes that do not fit, a count larger than an array, or a count for arrays
            of several dimensions.

    Tapes record it: gradients of ``out_array`` come back to ``in_array`` where both are floats.

    >>> import treadle as wp
    >>> whole, numbers = wp.array([1, 2, 3], dtype=int), wp.zeros(3, dtype=float)
    >>> wp.utils.array_cast(whole, numbers)
    >>> numbers.list()
    [1.0, 2.0, 3.0]
    """
    same_device(in_array, out_array, "Array storage devices do not match")
    if in_array.dtype is out_array.dtype:
        wp.copy(out_array, in_array, count=0 if count is None else count)
        return
    alike = in_array.ndim == out_array.ndim and _inner(in_array) == _inner(out_array)
    if alike and in_array.ndim > 1:
        if in_array.shape != out_array.shape:
            raise ArrayError(f"Array shapes do not match ({in_array.shape} vs {out_array.shape})")
        if count is not None and count != in_array.size:
            raise ArrayError("count must be left out for arrays of several dimensions: all elements are converted")
    each = prod(_inner(in_array))
    n = (in_array.size if count is None else count) * each
    source, target = _scalars(in_array), _scalars(out_array)
    if n > min(source.size, target.size):
        sizes = f"the input size ({source.size}) or output size ({target.size})"
        raise ArrayError(f"array_cast() counts scalars: Cast count ({n}) exceeds {sizes}")
    if n:
        wp.launch(_cast_kernel(target.dtype), n, inputs=[source], outputs=[target], device=in_array.device)
    if not out_array.is_contiguous:
        wp.copy(out_array, target.reshape((*out_array.shape, *_inner(out_array))).view(out_array.dtype))


def _inner(a: wp.array) -> tuple[int, ...]:
    """The shape of an element: () for scalars."""
    elem = a.type.elem
    return () if isinstance(elem, Scalar) else tuple(a.dtype._shape_)


def _scalars(a: wp.array) -> wp.array:
    """The scalars of ``a`` one after the other; of a copy if it has gaps."""
    dense = a if a.is_contiguous else wp.clone(a).contiguous()
    return dense.view(type_scalar_type(a.dtype)).flatten()
