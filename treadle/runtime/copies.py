"""``copy`` and ``clone``: elements from one array to another, strided ones included."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..base.errors import ArrayError
from ..types.spelling import spell
from . import capture, deferred, watch
from .array import allocate, array
from .device import apart, get_device
from .indexed import indexedarray
from .shaped import Shaped
from .writes import assign, put_rows, put_value


def copy(dest: Any, src: Any, dest_offset: int = 0, src_offset: int = 0, count: int = 0, stream: Any = None) -> None:
    """Copy elements of ``src`` into ``dest``; either may be a strided view, and they may overlap.

    Args:
        dest: array, or indexed array, to write.
        src: array, or indexed array, to read; other data is converted first.
        dest_offset, src_offset: where to begin, in elements counted in row-major order.
        count: how many elements; 0 for all of ``src``.
        stream: the GPU's stream to copy in; on the CPU a copy is finished when it returns.

    Raises:
        ArrayError: the element types differ in size, an offset or the count reaches outside an array, or arrays with
            gaps differ in shape.

    >>> import treadle as wp
    >>> a, b = wp.zeros(4, dtype=int), wp.array([1, 2], dtype=int)
    >>> wp.copy(a[::2], b)
    >>> a.list()
    [1, 0, 2, 0]
    """
    if stream is not None and stream.device.queue is not None:
        with apart(stream.device, stream):
            copy(dest, src, dest_offset, src_offset, count)
        return
    dest_offset, src_offset, count = _counts(dest_offset, src_offset, count)
    if not isinstance(dest, Shaped):
        raise ArrayError(f"wp.copy writes to an array, not to {_shown(dest)}")
    if not isinstance(src, Shaped):
        if src is None:
            raise ArrayError("wp.copy reads an array, or what one can be made of, not None")
        src = array(src, dtype=dest.dtype, copy=False)
    if src._element.size != dest._element.size:
        raise ArrayError(
            "elements of different sizes cannot be copied: "
            f"destination dtype={spell(dest._element.type)}, source dtype={spell(src._element.type)}"
        )
    if not isinstance(dest, array) or not isinstance(src, array):
        _copy_indexed(dest, src, dest_offset, src_offset, count)
        return
    if src._element.type is not dest._element.type:
        src = src.view(dest.dtype)
    whole = count == dest_offset == src_offset == 0
    if whole and src.shape == dest.shape:
        _do(dest, put_value, (src,), src)
        return
    if whole and max(dest.ndim, src.ndim) > 1 and not (dest.is_contiguous and src.is_contiguous):
        raise ArrayError(f"arrays with gaps are copied as they are: destination shape={dest.shape}, "
                         f"source shape={src.shape}")  # fmt: skip
    count = count or src.size - src_offset
    _require_inside("source", src, src_offset, count)
    _require_inside("destination", dest, dest_offset, count)
    if count > 0:
        _do(dest, put_elements, (src, dest_offset, src_offset, count), src)


def _shown(x: Any) -> str:
    return "None" if x is None else f"a {type(x).__name__}"


def _counts(dest_offset: Any, src_offset: Any, count: Any) -> tuple[int, int, int]:
    """Offsets and count as ints."""
    try:
        found = operator.index(dest_offset), operator.index(src_offset), operator.index(count)
    except TypeError:
        given = f"{dest_offset!r}, {src_offset!r}, {count!r}"
        raise ArrayError(f"offsets and count must be integers, not {given}") from None
    for what, n in zip(("Destination offset", "Source offset", "The count"), found, strict=True):
        if n < 0:
            raise ArrayError(f"{what} must be non-negative, not {n}")
    return found


def _copy_indexed(dest: Any, src: Any, dest_offset: int, src_offset: int, count: int) -> None:
    """:func:`copy` where one of both is an indexed array, or lies in buckets."""
    if dest_offset or src_offset or (count > 0 and not count == dest.size == src.size):
        raise ArrayError("indexed or Fabric arrays are copied as a whole; offsets and count are for others")
    if dest.size != src.size:
        raise ArrayError(f"cannot copy {src.size} elements to {dest.size}: one of both is indexed or in buckets")
    if not isinstance(src, array | indexedarray):
        src = src.contiguous()
    if src._element.type is not dest._element.type:
        indexed = isinstance(src, indexedarray)
        src = src._with_data(src.data.view(dest.dtype)) if indexed else src.view(dest.dtype)
    dest.assign(src)


def _do(dest: array, perform: Any, args: tuple, src: array) -> None:
    """Run ``perform(dest, *args)``, with tapes looking on where there are some."""
    if dest.read_only:
        dest._refuse_writes()
    if watch.watchers:
        watch.write(dest, perform, args, src)
    else:
        perform(dest, *args)


def put_elements(dest: array, src: array, dest_offset: int, src_offset: int, count: int) -> None:
    """Copy ``count`` elements, counted in row-major order."""
    if (capture.active or dest.device.queue) and (now := capture.sink_between(dest, src)) is not None:
        if now.writes_down or deferred.shows_elements(dest) and deferred.shows_elements(src):
            deferred.put_elements(now, dest, src, dest_offset, src_offset, count)
            return
    write(dest, dest_offset, read(src, src_offset, count), count)


def _require_inside(which: str, a: array, offset: int, count: int) -> None:
    if offset + count > a.size:
        raise ArrayError(f"element {offset + count - 1} exceeds the {which} size of {a.size} elements")


def _rows(a: array) -> np.ndarray | None:
    """``a`` in one dimension, sharing its memory, or None where strides forbid it."""
    if a.ndim == 1:
        return a._rows()
    return a._rows().reshape(-1, *a._element.inner) if a.is_contiguous else None


def read(a: array, offset: int, count: int) -> np.ndarray:
    """``count`` elements of ``a`` from number ``offset`` on, in row-major order."""
    rows = _rows(a)
    if rows is not None:
        return rows[offset : offset + count]
    return a._rows()[np.unravel_index(np.arange(offset, offset + count), a.shape)]


def write(a: array, offset: int, values: np.ndarray, count: int) -> None:
    """Store ``values`` in ``count`` elements of ``a`` from number ``offset`` on, in row-major order."""
    if a.device.queue is not None:  # there by way of the host
        content = np.ascontiguousarray(a._rows())  # what has gaps cannot be seen in one dimension
        content.reshape(-1, *a._element.inner)[offset : offset + count] = values
        put_rows(a, content)
        return
    rows = _rows(a)
    if rows is not None:
        assign(rows[offset : offset + count], values)
    else:
        a._rows()[np.unravel_index(np.arange(offset, offset + count), a.shape)] = values


def clone(src: Any, device: Any = None, requires_grad: bool | None = None, pinned: bool | None = None,
          retain_grad: bool = False) -> array:  # fmt: skip
    """A row-major copy of ``src``.

    Args:
        src: array, or anything an array can be made from.
        device: where the copy lies; the device of ``src`` if left out.
        requires_grad: whether the copy keeps a gradient (of zeros); as ``src`` does if left out.
    """
    if not isinstance(src, Shaped):
        src = array(src, copy=False)
    where = src.device if device is None else get_device(device)
    graded = src.requires_grad if requires_grad is None else requires_grad
    made = allocate(src._element, src.shape, where, graded, pinned=src.pinned if pinned is None else pinned)
    if retain_grad:
        made.retain_grad = True
    made.assign(src)
    return made
