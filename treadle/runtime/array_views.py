"""Shapes and strides: what indexing, reshaping and transposing do to them. Pure functions on tuples of ints and on
element types."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ..base.errors import ArrayError, StridesError
from ..types.records import MAX_DIMS
from ..types.spelling import spell
from .elements import Element


def normal_shape(shape: Any) -> tuple[int, ...]:
    """``shape`` as a tuple of 1 to 4 ints from 0 on.

    Raises:
        TypeError: not an int or a sequence of ints.
        ArrayError: a negative extent, or no or too many dimensions.
    """
    if type(shape) is int:
        found: tuple[int, ...] = (shape,)
    else:
        try:
            found = (operator.index(shape),) if not hasattr(shape, "__len__") else tuple(map(operator.index, shape))
        except TypeError:
            raise TypeError(f"a shape is an int or a sequence of ints, not {shape!r}") from None
    if not 1 <= len(found) <= MAX_DIMS:
        raise ArrayError(f"arrays have 1 to {MAX_DIMS} dimensions, not {len(found)} as in shape {found}")
    for axis, extent in enumerate(found):
        if extent < 0:
            raise ArrayError(f"Array shapes must be non-negative: {extent} in dimension {axis}")
    return found


def forward(strides: Any) -> Any:
    """``strides`` for memory that is yet to be had.

    Raises:
        StridesError: one of them is negative.
    """
    if strides is not None and any(s < 0 for s in strides):
        raise StridesError(f"Negative strides, here {tuple(strides)}, are those of views",
                           hint="allocate the array with positive ones and take a[::-1]")  # fmt: skip
    return strides


def checked_strides(strides: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """``strides`` as ints.

    Raises:
        ArrayError: there are more or fewer than dimensions.
    """
    steps = tuple(int(s) for s in strides)
    if len(steps) != len(shape):
        counts = f"expected {len(shape)} strides, got {len(steps)}"
        raise ArrayError(f"Invalid number of strides, {counts}: one for each dimension")
    return steps


def product(shape: Sequence[int]) -> int:
    """How many elements ``shape`` has."""
    count = 1
    for extent in shape:
        count *= extent
    return count


def dense_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """The byte strides of a row-major array."""
    if len(shape) == 1:
        return (itemsize,)
    strides, step = [], itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def misfit(rows: tuple[int, ...], e: Element, shape: tuple[int, ...]) -> ArrayError:
    """What is wrong where NumPy's ``rows`` are to be stored in an array of ``shape``, and do not fit."""
    outer = len(rows) - len(e.inner)
    given = rows[:outer] if rows[max(outer, 0) :] == e.inner else rows
    return ArrayError(f"data of shape {given} cannot be assigned to an array of shape {shape}")


def is_dense(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Whether the array is row-major without gaps. Dimensions of extent 1 have no say; empty arrays are dense."""
    step = itemsize
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != step:
            return 0 in shape
        step *= extent
    return True


def index(shape: tuple[int, ...], strides: tuple[int, ...], key: Any) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Shape, strides and byte offset of ``a[key]``: an int removes its dimension, a slice keeps it.

    Raises:
        IndexError: an index outside its dimension, or more indices than dimensions.
        TypeError: an index that is neither an int, a slice nor an ellipsis.
    """
    if type(key) is int and -shape[0] <= key < shape[0]:
        return shape[1:], strides[1:], (key + shape[0] if key < 0 else key) * strides[0]
    keys = key if type(key) is tuple else (key,)
    if any(k is Ellipsis for k in keys):
        keys = _spread(keys, len(shape))
    if len(keys) > len(shape):
        raise IndexError(f"{len(keys)} indices for an array of {len(shape)} dimensions")
    new_shape, new_strides, offset = [], [], 0
    for axis, k in enumerate(keys):
        extent, stride = shape[axis], strides[axis]
        if type(k) is slice:
            start, stop, step = k.indices(extent)
            length = len(range(start, stop, step))
            new_shape.append(length)
            new_strides.append(stride * step)
            offset += start * stride if length else 0
            continue
        if not hasattr(k, "__index__"):
            raise TypeError(f"an array index is an int or a slice, not {type(k).__name__}")
        at = operator.index(k)
        if not -extent <= at < extent:
            raise IndexError(f"index {at} is outside dimension {axis} of extent {extent}")
        offset += (at + extent if at < 0 else at) * stride
    return (*new_shape, *shape[len(keys) :]), (*new_strides, *strides[len(keys) :]), offset


def spread(keys: tuple, ndim: int) -> tuple:
    """``keys`` with one for each dimension: full slices for an ellipsis, and where keys are left out."""
    keys = _spread(keys, ndim) if any(k is Ellipsis for k in keys) else keys
    if len(keys) > ndim:
        raise IndexError(f"{len(keys)} indices for an array of {ndim} dimensions")
    return (*keys, *[slice(None)] * (ndim - len(keys)))


def _spread(keys: tuple, ndim: int) -> tuple:
    """``keys`` with its one ellipsis replaced by as many full slices as there are dimensions left."""
    at = next(i for i, k in enumerate(keys) if k is Ellipsis)
    if any(k is Ellipsis for k in keys[at + 1 :]):
        raise IndexError("an index can have one ellipsis only")
    return (*keys[:at], *[slice(None)] * (ndim - len(keys) + 1), *keys[at + 1 :])


def reshape(old: tuple[int, ...], shape: Any) -> tuple[int, ...]:
    """The shape that ``shape`` asks for, its one -1 resolved from the size of shape ``old``.

    Raises:
        ArrayError: the sizes do not agree, or there is more than one -1.
    """
    wanted = list(shape) if not hasattr(shape, "__index__") else [shape]
    wanted = [operator.index(extent) for extent in wanted]
    size = product(old)
    unknown = [i for i, extent in enumerate(wanted) if extent == -1]
    if len(unknown) > 1:
        raise ArrayError(f"a shape can have one unknown extent (-1), not {len(unknown)}")
    if unknown:
        rest = product([extent for extent in wanted if extent != -1])
        if rest > 0 and size % rest:
            given = f"cannot reshape array of shape {old} (size {size}) into shape {tuple(wanted)}"
            raise ArrayError(f"{given}: {size} elements are not divisible by {rest}")
        wanted[unknown[0]] = size // rest if rest else 0
    found = normal_shape(wanted)
    if product(found) != size:
        given = tuple(shape) if unknown else found
        wanted = f"into shape {given} (size {product(found)})"
        raise ArrayError(f"cannot reshape array of shape {old} (size {size}) {wanted}")
    return found


def reinterpreted(
    own: Element, e: Element, shape: tuple[int, ...], strides: tuple[int, ...], component: int
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Shape, strides and component stride of an array of ``own`` that is read as one of ``e``.

    Raises:
        TypeError: the types do not fit each other.
    """
    if e.size == own.size:
        return shape, strides, e.component
    if own.inner and e.size == own.component and not e.inner:
        return normal_shape(shape + own.inner), strides + own.inner_steps(component), e.component
    outer = len(shape) - len(e.inner)
    if e.inner and own.size == e.component and shape[outer:] == e.inner and outer >= 0:
        if strides[outer:] == e.inner_strides:
            return shape[:outer] or (1,), strides[:outer] or (e.size,), e.component
    if e.inner and own.size == e.component:
        inner = e.inner if len(e.inner) > 1 else e.inner[0]
        places = f"{len(e.inner)} dimensions" if len(e.inner) > 1 else "dimension"
        what = f"an array of shape {shape} cannot be viewed as {spell(e.type)}: "
        if shape[max(outer, 0) :] == e.inner:
            raise TypeError(f"{what}its last {places} must lie without gaps in row-major order")
        raise TypeError(f"{what}its last {places} must be {inner}, the components of an element")
    source, target, own_size, size = "source dtype", "target dtype", own.size, e.size
    if own.inner and not e.inner:
        source, own_size = f"source scalar dtype {spell(own.type.elem)}", own.component
    elif e.inner and not own.inner:
        target, size = f"target scalar dtype {spell(e.type.elem)}", e.component
    raise TypeError(
        f"elements of dtype {spell(own.type)} cannot be viewed as {spell(e.type)}: the {source} has {own_size} "
        f"bytes, the {target} {size}"
    )
