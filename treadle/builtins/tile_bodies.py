"""Tiles in the kernel language: filling, reading and writing memory, rearranging.

One index of a tile counts its elements row by row. What is known while compiling comes by closure.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from .language import atomic_add, max  # noqa: A004


def fill(t, x):
    for k in range(t.size):
        t[k] = x
    return t


def count_up(t, start, step):
    for k in range(t.size):
        t[k] = start + t.dtype(k) * step
    return t


# -- memory: what lies outside of the array is zero when read, and dropped when written --------------------------------


def load_row(a, t, at, nothing, i):
    n = t.shape[-1]
    if i >= 0 and i + n <= a.shape[0]:
        for c in range(t.shape[-1]):
            t[at + c] = a[i + c]
    else:
        for c in range(t.shape[-1]):
            x = nothing
            if i + c >= 0 and i + c < a.shape[0]:
                x = a[i + c]
            t[at + c] = x
    return t


def clear(t, at, n, nothing):
    for c in range(n):
        t[at + c] = nothing
    return t


def load_plane(a, t, at, nothing, i, j):
    n = t.shape[-1]
    for r in range(t.shape[-2]):
        if i + r >= 0 and i + r < a.shape[0]:
            t = load_row(a[i + r], t, at + r * n, nothing, j)
        else:
            t = clear(t, at + r * n, n, nothing)
    return t


def load_box(a, t, at, nothing, i, j, k):
    n = t.shape[-1] * t.shape[-2]
    for r in range(t.shape[-3]):
        if i + r >= 0 and i + r < a.shape[0]:
            t = load_plane(a[i + r], t, at + r * n, nothing, j, k)
        else:
            t = clear(t, at + r * n, n, nothing)
    return t


def load_boxes(a, t, at, nothing, i, j, k, l):  # noqa: E741
    n = t.shape[-1] * t.shape[-2] * t.shape[-3]
    for r in range(t.shape[-4]):
        if i + r >= 0 and i + r < a.shape[0]:
            t = load_box(a[i + r], t, at + r * n, nothing, j, k, l)
        else:
            t = clear(t, at + r * n, n, nothing)
    return t


def store_row(a, t, at, i):
    n = t.shape[-1]
    if i >= 0 and i + n <= a.shape[0]:
        for c in range(t.shape[-1]):
            a[i + c] = t[at + c]
    else:
        for c in range(t.shape[-1]):
            if i + c >= 0 and i + c < a.shape[0]:
                a[i + c] = t[at + c]


def add_row(a, t, at, i):
    for c in range(t.shape[-1]):
        if i + c >= 0 and i + c < a.shape[0]:
            atomic_add(a, i + c, t[at + c])


@cache
def writer(row: Callable, rank: int) -> Callable:
    """What writes a tile of ``rank`` dimensions with ``row`` for its rows."""
    if rank == 1:
        return row
    inner = writer(row, rank - 1)
    if rank == 2:

        def plane(a, t, at, i, j):
            for r in range(t.shape[-2]):
                if i + r >= 0 and i + r < a.shape[0]:
                    inner(a[i + r], t, at + r * t.shape[-1], j)

        return plane
    if rank == 3:

        def box(a, t, at, i, j, k):
            for r in range(t.shape[-3]):
                if i + r >= 0 and i + r < a.shape[0]:
                    inner(a[i + r], t, at + r * t.shape[-1] * t.shape[-2], j, k)

        return box

    def boxes(a, t, at, i, j, k, l):  # noqa: E741
        for r in range(t.shape[-4]):
            if i + r >= 0 and i + r < a.shape[0]:
                inner(a[i + r], t, at + r * t.shape[-1] * t.shape[-2] * t.shape[-3], j, k, l)

    return boxes


LOADS = load_row, load_plane, load_box, load_boxes


# -- rearranging: element k of the result is element ``places[k]`` of the source, given as a loop nest -----------------


@cache
def mover(shape: tuple[int, ...], steps: tuple[int, ...]) -> Callable:
    """What fills a tile of ``shape`` (four numbers): element (i, j, k, l) is number first + i*s0 + … of the source."""
    n0, n1, n2, n3 = shape
    s0, s1, s2, s3 = steps

    def move(t, source, first):
        for i in range(n0):
            for j in range(n1):
                for k in range(n2):
                    for m in range(n3):
                        t[((i * n1 + j) * n2 + k) * n3 + m] = source[first + i * s0 + j * s1 + k * s2 + m * s3]
        return t

    return move


@cache
def placer(shape: tuple[int, ...], steps: tuple[int, ...]) -> Callable:
    """What puts a tile of ``shape`` (four numbers) into another, as :func:`mover` takes it out."""
    n0, n1, n2, n3 = shape
    s0, s1, s2, s3 = steps

    def place(t, source, first):
        for i in range(n0):
            for j in range(n1):
                for k in range(n2):
                    for m in range(n3):
                        t[first + i * s0 + j * s1 + k * s2 + m * s3] = source[((i * n1 + j) * n2 + k) * n3 + m]
        return t

    return place


def convert(t, source):
    for k in range(t.size):
        t[k] = t.dtype(source[k])
    return t


# -- one element after the other ---------------------------------------------------------------------------------------


@cache
def mapper(op: Callable, count: int) -> Callable:
    """What fills a tile with ``op`` of the elements of ``count`` others."""
    if count == 1:

        def one(t, a):
            for k in range(t.size):
                t[k] = op(a[k])
            return t

        return one
    if count == 2:

        def two(t, a, b):
            for k in range(t.size):
                t[k] = op(a[k], b[k])
            return t

        return two
    if count == 3:

        def three(t, a, b, c):
            for k in range(t.size):
                t[k] = op(a[k], b[k], c[k])
            return t

        return three

    def four(t, a, b, c, d):
        for k in range(t.size):
            t[k] = op(a[k], b[k], c[k], d[k])
        return t

    return four


@cache
def prober(op: Callable, count: int) -> Callable:
    """What gives ``op`` of the first elements, for its type."""

    def one(a):
        return op(a[0])

    def two(a, b):
        return op(a[0], b[0])

    def three(a, b, c):
        return op(a[0], b[0], c[0])

    def four(a, b, c, d):
        return op(a[0], b[0], c[0], d[0])

    return (one, two, three, four)[count - 1]


@cache
def reducer(op: Callable, outer: int, count: int, inner: int) -> Callable:
    """What joins, by ``op``, the ``count`` elements along the middle of a tile of outer × count × inner."""

    def reduce(t, a):
        for o in range(outer):
            for i in range(inner):
                x = a[o * count * inner + i]
                for k in range(1, count):
                    x = op(x, a[(o * count + k) * inner + i])
                t[o * inner + i] = x
        return t

    return reduce


@cache
def scanner(op: Callable, skip: int, nothing: float) -> Callable:
    """What joins, by ``op``, each element with all before it; with ``skip`` 1 those before it alone."""

    def inclusive(t, a):
        x = a[0]
        t[0] = x
        for k in range(1, t.size):
            x = op(x, a[k])
            t[k] = x
        return t

    def exclusive(t, a):
        x = t.dtype(nothing)
        for k in range(t.size):
            t[k] = x
            x = op(x, a[k])
        return t

    return exclusive if skip else inclusive


def least_place(a):
    best = a[0]
    place = int(0)  # noqa: UP018
    for k in range(1, a.size):
        if a[k] < best:
            best = a[k]
            place = k
    return place


def largest_place(a):
    best = a[0]
    place = int(0)  # noqa: UP018
    for k in range(1, a.size):
        if a[k] > best:
            best = a[k]
            place = k
    return place


def sort(keys, values):
    """Insertion: equal keys stay in order."""
    for k in range(1, keys.size):
        key = keys[k]
        value = values[k]
        at = k
        while at > 0 and keys[max(at - 1, 0)] > key:
            keys[at] = keys[at - 1]
            values[at] = values[at - 1]
            at = at - 1
        keys[at] = key
        values[at] = value
    return keys, values


# -- sums of products --------------------------------------------------------------------------------------------------


def dot(a, b):
    total = a[0] * b[0]
    for k in range(1, a.size):
        total += a[k] * b[k]
    return total


def axpy(alpha, source, t):
    for k in range(t.size):
        t[k] += alpha * source[k]
    return t


def scaled(t, x):
    for k in range(t.size):
        t[k] = t[k] * t.dtype(x)
    return t


def faded(t, x):
    """As scaled, but 0 makes zero of everything, of what is not a number too."""
    for k in range(t.size):
        y = t.dtype(0)
        if x != t.dtype(0):
            y = t[k] * x
        t[k] = y
    return t


def add_to_diagonal(t, d):
    for k in range(d.size):
        t[k * d.size + k] += d[k]
    return t
