"""Memory of other libraries as arrays: where its scalars lie, and what they are, becomes an array without a copy."""

from __future__ import annotations

from typing import Any

from ..base.errors import ArrayError
from ..types.core import Matrix, Scalar, Struct, Vector
from ..types.records import MAX_DIMS, READ_ONLY
from ..types.spelling import spell
from .array import array, build
from .device import Device, get_device
from .elements import Element, element


def adopt(address: int, shape: tuple[int, ...], strides: tuple[int, ...], scalar: Element, dtype: Any = None,
          owner: Any = None, device: Device | None = None, frozen: bool = False) -> array:  # fmt: skip
    """An array over the memory of another library.

    Args:
        address: of the first scalar.
        shape, strides: of the scalars; strides in bytes.
        scalar: the element type that the other library names.
        dtype: the element type to use: ``scalar`` if None, a scalar that lies alike in memory, or a vector or matrix
            whose components are the last dimensions, at whatever equal distances.
        owner: what keeps the memory alive.
        device: where it lies; the CPU if left out.
        frozen: whether the memory must not be changed.

    Raises:
        ArrayError: the scalars cannot be seen as ``dtype``, or there are too many dimensions.
    """
    e = scalar if dtype is None else element(dtype)
    own = e.type.elem if isinstance(e.type, Vector | Matrix) else e.type
    if isinstance(own, Struct) or not _alike(own, scalar.type):
        raise ArrayError(f"memory that holds {spell(scalar.type)} cannot be seen as {spell(e.type)}")
    component = e.component
    if e.inner:
        outer = len(shape) - len(e.inner)
        if outer < 0 or shape[outer:] != e.inner:
            raise ArrayError(
                f"an array of shape {shape} cannot be seen as {spell(e.type)}: its last dimensions must be {e.inner}"
            )
        if 0 not in shape:
            component = _component(e, strides[outer:])
        shape, strides = shape[:outer], strides[:outer]
    if not shape:
        shape, strides = (1,), (e.size,)
    if len(shape) > MAX_DIMS:
        raise ArrayError(f"an array has at most {MAX_DIMS} dimensions, not {len(shape)} as in shape {shape}")
    return build(e, shape, strides, component, address, None, 0, device or get_device("cpu"), owner, None,
                 READ_ONLY * frozen)  # fmt: skip


MOST = 1000  # layouts that are remembered of arrays of one library


def remember(layouts: dict[Any, array], key: Any, made: array) -> None:
    """Keep an array like ``made``, which lies on the CPU, but without memory, so that others can be made like it."""
    if len(layouts) >= MOST:
        layouts.clear()
    layouts[key] = build(made._element, made.shape, made.strides, made.component_stride, 0, None, 0, made.device, None,
                         made.type, READ_ONLY * made.read_only)  # fmt: skip


def _alike(t: Any, scalar: Any) -> bool:
    """Whether ``t`` lies in memory as ``scalar`` does, up to the meaning of the sign; a bool is a byte."""
    if t is scalar:
        return True
    whole = isinstance(t, Scalar) and not t.is_float and not scalar.is_float
    return whole and t.size == scalar.size


def _component(e: Element, steps: tuple[int, ...]) -> int:
    """How far apart in bytes the components of an element lie; an extent of 1 says nothing about it."""
    found = e.component
    if e.inner[-1] > 1:
        found = steps[-1]
    elif e.inner[0] > 1:
        found = steps[0]
    for extent, step, wanted in zip(e.inner, steps, e.inner_steps(found), strict=True):
        if extent > 1 and step != wanted:
            raise ArrayError(
                f"the components of {spell(e.type)} must lie at equal distances, row by row, not {steps} bytes apart"
            )
    return found


def dense_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Row-major strides in bytes, of any number of dimensions."""
    found, step = [itemsize] * len(shape), itemsize
    for axis in range(len(shape) - 1, -1, -1):
        found[axis] = step
        step *= shape[axis]
    return (*found,)
