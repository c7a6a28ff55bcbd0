"""Host data to rows of elements and back: lists, NumPy arrays, host vectors, struct instances."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.errors import ArrayError
from ..base.logs import log_warning
from ..types.core import Scalar, Struct
from ..types.numbers import bf16_bits, bf16_values, bits_of
from ..types.promotion import in_bits
from ..types.spelling import spell
from .array_views import product
from .elements import Element, element_of_numpy
from .packing import note_fixed, packer, pointers_of, unpacker


def from_data(data: Any, e: Element | None) -> tuple[np.ndarray, Element]:
    """``data`` as a NumPy array of shape ``(*shape, *e.inner)``, and the element: ``e``, or what the data suggests.

    Shares memory with ``data`` where no conversion is needed.

    Raises:
        TypeError: a scalar, or data that has no element type.
        ArrayError: data whose size does not fit whole elements.
    """
    if e is not None and isinstance(e.type, Struct):
        return _records(data, e), e
    if e is None:
        rows = np.asarray(data)
        _refuse_scalar(rows, data)
        return bits_of(rows), element_of_numpy(rows.dtype)
    rows = _numbers(data, e)
    _refuse_scalar(rows, data)
    return _group(rows, e), e


def _refuse_scalar(rows: np.ndarray, data: Any) -> None:
    if rows.ndim == 0:
        raise TypeError(f"the data of an array is a sequence or an array, not the scalar {data!r}")


def _numbers(data: Any, e: Element) -> np.ndarray:
    if data is None or (type(data) is list and len(data) == 1 and data[0] is None):  # NumPy takes it for NaN
        raise TypeError(f"data cannot become an array of {e.dtype}: None is no number")
    if e.halves:
        raw = bits_of(np.asarray(data))
        return raw if raw.dtype == np.uint16 else bf16_bits(raw)
    if isinstance(data, np.ndarray) and data.dtype.kind == "f" and e.dtype.kind in "iu":
        return _cut(data, e)
    try:
        return np.asarray(data, dtype=e.dtype)
    except TypeError as error:
        raise TypeError(f"data cannot become an array of {e.dtype}: {error}") from None
    except (ValueError, OverflowError) as error:
        raise ArrayError(f"data cannot become an array of {e.dtype}: {error}") from None


def _cut(data: np.ndarray, e: Element) -> np.ndarray:
    """Floats of NumPy as integers, as NumPy casts them; what no integer says is told once, to the caller."""
    try:
        with np.errstate(invalid="raise"):
            return data.astype(e.dtype)
    except FloatingPointError:
        log_warning(f"floats that {e.dtype} has no number for become what NumPy's cast makes of them", once=True)
        with np.errstate(invalid="ignore"):
            return data.astype(e.dtype)


def fill_rows(value: Any, e: Element) -> np.ndarray:
    """``value`` as every element of an array is set to it: a number for every component, or an element.

    Raises:
        ArrayError: an integer that does not fit the elements, a float for them that is none, or of other components.
    """
    if e.dtype.kind in "iu" and not e.halves and not isinstance(e.type, Struct):
        value = _integers(value, e)
    row = value_rows([value], e, broadcast=True)[0]
    try:
        if e.inner and row.ndim:
            np.broadcast_to(row, e.inner)
    except ValueError:
        raise ArrayError(f"data of shape {row.shape} cannot fill elements of type {spell(e.type)}") from None
    return row


def _integers(value: Any, e: Element) -> Any:
    """``value`` for elements of integers: whole numbers within their range, or of as many bits."""
    t = e.type if isinstance(e.type, Scalar) else e.type.elem
    if type(value) is int and in_bits(value, t) == value:
        return value
    given = np.asarray(value)
    if given.dtype.kind not in "fiu" or given.dtype == e.dtype:
        return value
    found = []
    for x in given.reshape(-1).tolist():
        if isinstance(x, float) and not x.is_integer():
            raise ArrayError(f"an array of {spell(t)} cannot be filled with {x!r}: it is not a whole number")
        found.append(in_bits(int(x), t))
        if found[-1] is None:
            raise ArrayError(f"an array of {spell(t)} cannot be filled with {x!r}: it does not fit")
    return np.array(found, e.dtype).reshape(given.shape)[()]


def _group(rows: np.ndarray, e: Element) -> np.ndarray:
    """``rows`` with the components of an element in its last dimensions."""
    inner = e.inner
    if not inner or rows.shape[-len(inner) :] == inner and rows.ndim > len(inner):
        return rows
    count = product(inner)
    if rows.ndim > 1 and rows.shape[-1] % count == 0:
        several = (rows.shape[-1] // count,) if rows.shape[-1] != count else ()
        return rows.reshape(rows.shape[:-1] + several + inner)
    if rows.size % count == 0 and (rows.ndim == 1 or rows.shape == inner):
        return rows.reshape((rows.size // count, *inner))
    if rows.ndim > 1 and rows.shape[-1] == 1:  # columns, as linear algebra has vectors
        return _group(rows[..., 0], e)
    raise ArrayError(f"data of shape {rows.shape} does not split into elements of shape {inner}")


def _records(data: Any, e: Element) -> np.ndarray:
    if isinstance(data, np.ndarray) and data.dtype.fields is not None:
        return data if data.dtype == e.dtype else data.astype(e.dtype)
    if isinstance(data, e.cls):
        raise TypeError(f"the data of an array is a sequence, not one {e.cls.__name__}")
    shape, items = _nested(data, e.cls)
    rows = np.zeros(len(items), e.dtype)
    put, buffer = packer(e.type), memoryview(rows.view(np.uint8).reshape(-1))
    for i, item in enumerate(items):
        put(buffer, i * e.size, item)
        if pointers_of(e.type):
            note_fixed(item, e.type)
    return rows.reshape(shape)


def _nested(data: Any, cls: type) -> tuple[tuple[int, ...], list]:
    """The shape of nested sequences of ``cls`` instances, and the instances in order."""
    items: list = list(data)
    shape: tuple[int, ...] = (len(items),)
    while items and not isinstance(items[0], cls):
        if not isinstance(items[0], list | tuple) or any(len(row) != len(items[0]) for row in items):
            raise TypeError(f"expected {cls.__name__} instances, got {type(items[0]).__name__}")
        shape, items = (*shape, len(items[0])), [item for row in items for item in row]
    for item in items:
        if not isinstance(item, cls):
            raise TypeError(f"expected {cls.__name__} instances, got {type(item).__name__}")
    return shape, items


def value_rows(value: Any, e: Element, broadcast: bool = False) -> np.ndarray:
    """``value`` ready to be stored in elements: components in the last dimensions, or a number that all share.

    ``broadcast`` asks for a list of one value: a number, or the components in any nesting.
    """
    if isinstance(e.type, Struct):
        if isinstance(value, e.cls):
            value = [value]
        if broadcast and isinstance(value[0], int | float) and value[0] == 0:
            return np.zeros(1, e.dtype)
        return _records(value, e)
    rows = _numbers(value, e)
    if broadcast and rows.size == product(e.inner) and e.inner:
        return rows.reshape((1, *e.inner))
    return rows


def to_host(rows: np.ndarray, e: Element) -> list:
    """The elements of ``rows`` as Python numbers, host vectors and matrices, or struct instances."""
    if isinstance(e.type, Struct):
        packed = np.ascontiguousarray(rows).reshape(-1)
        get, buffer = unpacker(e.type), memoryview(packed.view(np.uint8))
        return [get(buffer, i * e.size) for i in range(packed.size)]
    if e.halves:
        rows = bf16_values(rows)
    if not e.inner:
        return rows.reshape(-1).tolist()
    return [e.cls(*row) for row in rows.reshape(-1, product(e.inner)).tolist()]
