"""What the methods of arrays do that write, as functions that a tape can run again."""

from __future__ import annotations

from ctypes import memmove, memset
from typing import TYPE_CHECKING, Any

import numpy as np

from . import array_views as views
from . import capture, deferred
from .conversion import value_rows

if TYPE_CHECKING:
    from .array import array


def gapless(a: array) -> int:
    """The bytes of an array that lies without gaps, else -1. One dimension, the usual case, is looked at first."""
    e = a._element
    if len(a.shape) == 1 and a.strides[0] == e.size and a.component_stride == e.component:
        return a.shape[0] * e.size
    return a.nbytes if a.is_contiguous else -1


def assign(target: np.ndarray, source: np.ndarray) -> None:
    """``target[...] = source``, as if all was read before anything is written; of one dimension with different steps
    over the same memory NumPy copies one element after the other."""
    target[...] = source.copy() if np.may_share_memory(target, source) else source


def put_value(a: array, value: Any) -> None:
    """Store a sequence or another array in all elements of ``a``.

    Raises:
        ArrayError: ``a`` must not be changed, or has another shape.
    """
    if a.read_only:
        a._refuse_writes()
    if (capture.active or a.device.queue) and (now := capture.sink_between(a, value)) is not None:
        deferred.put_value(now, a, value)
        return
    e = a._element
    alike = getattr(getattr(value, "_element", None), "type", None) is e.type
    if alike and value.shape == a.shape and hasattr(value, "strides"):
        nbytes = gapless(a)
        if nbytes > 0 and gapless(value) > 0 and value.device.queue is None:
            memmove(a._address, value._address, nbytes)
        else:
            assign(a._rows(), value._rows())
        return
    rows = value_rows(value, e)
    target = a._rows()
    if rows.size == target.size and rows.shape != target.shape:
        rows = rows.reshape(target.shape)
    try:
        target[...] = rows
    except ValueError:
        raise views.misfit(rows.shape, e, a.shape) from None


def put_selected(a: array, values: Any, shape: tuple[int, ...], to: Any, at: Any) -> None:
    """Store the elements ``at`` of the array ``values``, or rows as NumPy has them, in the elements ``to`` of ``a``.

    Those have ``shape``, components included. ``to`` and ``at`` are what selects them from NumPy's views.
    """
    rows = values if isinstance(values, np.ndarray) else values._rows()[at]
    if a.device.queue is not None:  # there by way of the host
        content = a._rows()
        content[to] = rows.reshape(shape) if rows.size == views.product(shape) else rows
        put_rows(a, content)
        return
    if rows.shape != shape and rows.size == views.product(shape):
        rows = rows.reshape(shape)
    target = a._rows()
    try:
        target[to] = rows.copy() if np.may_share_memory(rows, target) else rows
    except ValueError:
        raise views.misfit(rows.shape, a._element, shape[: len(shape) - len(a._element.inner)]) from None


def put_rows(a: array, rows: np.ndarray) -> None:
    """Set every element of ``a`` to ``rows``, a value as NumPy has it."""
    if (capture.active or a.device.queue) and (now := capture.sink(a.device)) is not None:
        deferred.put_rows(now, a, rows)
    else:
        a._rows()[...] = rows


LARGE = 1 << 20  # bytes that are cleared while other threads of Python run


def clear(address: int, nbytes: int) -> None:
    """Clear memory; native code takes this function's place once there is some (``fast.py``)."""
    memset(address, 0, nbytes)


def put_zeros(a: array) -> None:
    """Set all bytes of all elements of ``a`` to zero."""
    nbytes = gapless(a)
    if (capture.active or a.device.queue) and (now := capture.sink(a.device)) is not None:
        deferred.put_zeros(now, a, nbytes)
    elif nbytes > LARGE:
        memset(a._address, 0, nbytes)
    elif nbytes > 0:
        clear(a._address, nbytes)
    elif a._element.dtype.fields is None:
        a._rows()[...] = 0
    else:
        a._rows()[...] = np.zeros((), a._element.dtype)
