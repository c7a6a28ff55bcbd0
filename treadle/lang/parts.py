"""Which bytes a box of indices holds of an array."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from ..runtime.array import array
from ..runtime.memory import span
from ..runtime.runs import Runs, runs

Box = tuple[tuple[int, int], ...]  # for each dimension from and up to (not taken)
Part = tuple[int, int, "Runs | None"]  # bytes from and up to; where in them, if the elements do not lie side by side

MOST_ROWS = 1 << 16  # of a table of runs; beyond, all bytes between the first and the last element count as held


def span_of(a: array) -> tuple[int, int]:
    """The addresses from which and up to which ``a`` lies."""
    e = a._element
    if a.component_stride == e.component or not e.inner:
        low, high = span(a.shape, a.strides, e.size)
    else:
        low, high = span(a.shape + e.inner, a.strides + e.inner_steps(a.component_stride), e.component)
    return a._address + low, a._address + high


def whole(a: array) -> Part:
    """All of ``a``."""
    low, high = span_of(a)
    return low, high, None if a.is_contiguous else _runs(a, a._address, a.shape)


def part(a: array, box: Box) -> Part:
    """The elements of ``a`` in ``box``, which lies inside it."""
    shape = tuple([high - low for low, high in box])
    first = a._address + sum([low * stride for (low, _), stride in zip(box, a.strides, strict=True)])
    e = a._element
    if a.component_stride == e.component or not e.inner:
        low, high = span(shape, a.strides, e.size)
    else:
        low, high = span(shape + e.inner, a.strides + e.inner_steps(a.component_stride), e.component)
    return first + low, first + high, _runs(a, first, shape)


def _runs(a: array, first: int, shape: tuple[int, ...]) -> Runs | None:
    """Where elements of ``a``, from the one at ``first`` on, lie; None where that is everywhere from the first to the
    last, or nearly so."""
    e = a._element
    axes, size = [*zip(shape, a.strides, strict=True)], e.size
    if a.component_stride != e.component and e.inner:
        axes += zip(e.inner, e.inner_steps(a.component_stride), strict=True)
        size = e.component
    if prod(sorted([extent for extent, _ in axes])[:-1]) > MOST_ROWS:
        return None
    found = runs(first, axes, size)
    return None if found is None or found.alone else found


def joined(boxes: Iterable[Box]) -> list[Box]:
    """The same elements in fewer boxes: those that touch along one dimension become one."""
    left, done = sorted({*boxes}), False
    while not done:
        before, left, done = left, [], True
        for box in before:
            both = _both(left[-1], box) if left else None
            if both is None:
                left.append(box)
            else:
                left[-1], done = both, False
        left.sort()
    return left


def _both(one: Box, other: Box) -> Box | None:
    """The box that holds two and nothing else, if there is one."""
    apart = [axis for axis, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    if len(apart) != 1:
        return one if not apart else None
    (axis,) = apart
    (low, high), (begin, end) = one[axis], other[axis]
    if max(low, begin) > min(high, end):
        return None
    return (*one[:axis], (min(low, begin), max(high, end)), *one[axis + 1 :])
