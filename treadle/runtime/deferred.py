"""What array methods write while a graph is captured: the same assignments, as entries of the graph."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import CaptureError
from ..types.records import MAX_AXES, SPREAD
from .array_views import misfit
from .capture import Capture
from .conversion import value_rows
from .memory import span

if TYPE_CHECKING:
    from .array import array

_SPREAD = struct.Struct(f"<{len(SPREAD.at)}q")
CACHED = 1 << 14  # bytes of which twice as much lies in a first cache
Axis = tuple[int, int, int]  # extent, bytes from one to the next in what is written, and in what is read


def put_value(now: Capture, a: array, value: Any) -> None:
    """Store a sequence or another array in all elements of ``a``."""
    other = hasattr(value, "_address") and value._element.type is not a._element.type
    if other and not now.writes_down:
        value = value_rows(value, a._element)  # there by way of the host
    elif other:
        raise CaptureError(
            f"assigning {value!r} to {a!r} cannot be captured: their dtypes differ", hint="use wp.utils.array_cast"
        )
    target, held = a._raw(), hasattr(value, "_address") and _within_reach(now, a, value)
    if held:
        now.keep([value])
        source = value._raw()
    else:
        source = value._rows() if hasattr(value, "_address") else value_rows(value, a._element)
    if source.size == target.size and source.shape != target.shape:
        source = reshaped(source, target.shape) if held else source.reshape(target.shape)
    try:
        np.broadcast_to(source, target.shape)
    except ValueError:
        raise misfit(source.shape, a._element, a.shape) from None
    store(now, a, target, source, not held)


def _within_reach(now: Capture, a: array, value: Any) -> bool:
    """Whether what writes ``a`` can read ``value`` at the time it does: bytes side by side go between all GPUs, and
    graphs read pinned memory of the host."""
    if a.device.reaches(value) or (now.writes_down and now.device.queue is not None and value.pinned):
        return True
    return value.device.queue is not None and a.is_contiguous and value.is_contiguous


def put_rows(now: Capture, a: array, rows: np.ndarray) -> None:
    """Set all elements of ``a`` to what ``rows`` hold now."""
    store(now, a, a._raw(), rows, True)


def put_zeros(now: Capture, a: array, nbytes: int) -> None:
    """Set all elements to zero; ``nbytes`` of an array without gaps, else -1."""
    if nbytes < 0:
        store(now, a, a._raw(), np.zeros((), a._element.dtype), True)
    elif nbytes:
        now.keep([a])
        now.call("zero", (a._address, 0, nbytes), (0,), nbytes)


def shows_elements(a: array) -> bool:
    """Whether elements of ``a``, counted in row-major order, are a view of its memory."""
    return a.ndim == 1 or a.is_contiguous


def put_elements(now: Capture, dest: array, src: array, to: int, begin: int, count: int) -> None:
    """Copy ``count`` elements, counted in row-major order."""
    own = not _within_reach(now, dest, src)
    target, source = (
        reshaped(rows, (x.size, *x._element.inner))[first : first + count]
        for x, rows, first in ((dest, dest._raw(), to), (src, src._rows() if own else src._raw(), begin))
    )
    now.keep([src])
    store(now, dest, target, source, own)


def reshaped(rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """``rows`` over the same memory with another shape."""
    try:
        if _SAYS_COPY:
            return rows.reshape(shape, copy=False)
        seen = rows.view()  # NumPy shall copy nothing: the memory may be a GPU's
        seen.shape = shape
        return seen
    except (ValueError, AttributeError):
        raise CaptureError(
            f"a copy between arrays with gaps of shapes {rows.shape} and {shape} cannot be captured",
            hint="copy to a contiguous array first",
        ) from None


_SAYS_COPY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


def store(now: Capture, a: array, target: np.ndarray, source: np.ndarray, own: bool = False) -> None:
    """Let each replay do ``target[...] = source``; ``target`` shows elements of ``a``. ``own``: the source is what
    NumPy holds now, not memory whose content counts when the graph runs."""
    now.keep([a])
    if own and target.dtype != source.dtype:
        source = source.astype(target.dtype)  # a number: it was taken as the value it is
    if not target.size:
        return
    if own:
        if now.fill(target, source):
            return
        source = now.constant(source)
    source = np.broadcast_to(source, target.shape)
    low, high = _range(target)
    begin, end = _range(source)
    if begin < high and low < end:  # as if all was read before anything is written
        aside, kept = now.aside(target.nbytes)
        between = np.ndarray(target.shape, target.dtype, _at(aside, target.nbytes))
        now.hold(kept)
        _assign(now, between, source)
        source = between
    _assign(now, target, source)


def add(now: Capture, target: np.ndarray, source: np.ndarray) -> bool:
    """Let each replay do ``target += source``, of floats of one type and shape that do not lie over each other; whether
    there is a way to do so without a kernel."""
    if now.device.queue is not None or target.dtype != source.dtype or target.dtype.char not in "fd":
        return False
    run, axes = _joined(target, source)
    axes = axes or [(1, run, run)]
    now.call_with_table("sum", (target.dtype.itemsize, 0), _table(target, source, run, axes), (24, 32), target.nbytes)
    return True


def _at(address: int, nbytes: int) -> Any:
    import ctypes

    return (ctypes.c_char * nbytes).from_address(address)


def _address(rows: np.ndarray) -> int:
    return rows.__array_interface__["data"][0]


def _range(rows: np.ndarray) -> tuple[int, int]:
    low, high = span(rows.shape, rows.strides, rows.dtype.itemsize)
    return _address(rows) + low, _address(rows) + high


def _assign(now: Capture, target: np.ndarray, source: np.ndarray) -> None:
    run, axes = _joined(target, source)
    if not axes:
        now.move(_address(target), _address(source), run)
        return
    now.call_with_table("spread", (0, 0), _table(target, source, run, axes), (24, 32), target.nbytes)


def _table(target: np.ndarray, source: np.ndarray, run: int, axes: list[Axis]) -> bytes:
    """The record ``SPREAD``."""
    table = dict.fromkeys(SPREAD.at, 0)
    table.update(into=_address(target), source=_address(source), run=run, ndim=len(axes))
    for k, (extent, into, out) in enumerate(axes):
        table[f"extent{k}"], table[f"into_step{k}"], table[f"source_step{k}"] = extent, into, out
    return _SPREAD.pack(*table.values())


def _joined(target: np.ndarray, source: np.ndarray) -> tuple[int, list[Axis]]:
    """Bytes that lie side by side in both, and the axes over which they repeat, outer ones first. Of what a first cache
    holds the longest one is innermost, as its loop costs least, else the one along which the target lies closest."""
    run = target.dtype.itemsize
    axes: list[Axis] = []
    order = sorted(zip(target.shape, target.strides, source.strides, strict=True), key=lambda axis: -abs(axis[1]))
    for extent, into, out in order:
        if extent == 1:
            continue
        if axes and axes[-1][1:] == (into * extent, out * extent):
            axes[-1] = axes[-1][0] * extent, into, out
        else:
            axes.append((extent, into, out))
    if axes and axes[-1][1:] == (run, run):
        run *= axes.pop()[0]
    if len(axes) > 1 and target.nbytes <= CACHED:
        axes.append(axes.pop(max(range(len(axes)), key=lambda k: axes[k][0])))
    assert len(axes) <= MAX_AXES
    return run, axes
