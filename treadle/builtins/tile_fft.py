"""Discrete Fourier transforms of tiles of complex numbers, along their last dimension."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod, tau

from ..ir.builder import Builder
from ..ir.node import Value
from ..types.core import f32, f64, vector
from ..types.spelling import spell
from .language import cos, sin
from .patterns import Any
from .registry import Mismatch
from .tile_terms import Given, Plan, blank, call, planned


def times(a, b):
    c = a
    c[0] = a[0] * b[0] - a[1] * b[1]
    c[1] = a[0] * b[1] + a[1] * b[0]
    return c


def turned(a, angle):
    b = a
    b[0] = cos(angle)
    b[1] = sin(angle)
    return times(a, b)


@cache
def stage(rows: int, n: int, radix: int, before: int, sign: int) -> Callable:
    """One step of Stockham's transform, which needs no reordering (Van Loan, Computational Frameworks for the Fast
    Fourier Transform, 1.7). ``before`` is the product of the radices so far. With m = n / before / radix it takes
    x[q + before (p + m k)] for k < radix to y[q + before (radix p + j)]: their transform, turned by p j / (m radix)."""
    left = n // before
    m = left // radix
    step, inner = sign * tau / left, sign * tau / radix

    def advance(y, x):
        for row in range(rows):
            for p in range(m):
                for j in range(radix):
                    angle = y.dtype.dtype(step) * y.dtype.dtype(p * j)
                    for q in range(before):
                        total = x[row * n + q + before * p]
                        for k in range(1, radix):
                            part = x[row * n + q + before * (p + m * k)]
                            if radix == 2:
                                total += part * y.dtype.dtype(1 - 2 * (j % 2))
                            else:
                                total += turned(part, y.dtype.dtype(inner) * y.dtype.dtype((k * j) % radix))
                        y[row * n + q + before * (radix * p + j)] = turned(total, angle)
        return y

    return advance


def radices(n: int) -> list[int]:
    """The prime factors of ``n``, least first."""
    found, p = [], 2
    while n > 1:
        while n % p == 0:
            found.append(p)
            n //= p
        p += 1
    return found


def _transformed(sign: int):
    def plan(given: Given) -> Plan:
        t = given.tile("inout")
        if t.item not in (vector(2, f32), vector(2, f64)):
            raise Mismatch(f"a Fourier transform is of a tile of vec2f or vec2d, not {spell(t)}")
        n, rows = t.shape[-1], prod(t.shape[:-1])

        def emit(b: Builder, v: dict[str, Value]) -> Value:
            x, spare, before = v["inout"], blank(b, t), 1
            for radix in radices(n):  # two arrays take turns
                x, spare = call(b, given.context, stage(rows, n, radix, before, sign), spare, x), x
                before *= radix
            return x

        return Plan(None, {"inout": t}, emit)

    return plan


@planned
class tile_fft:
    """Change each row along the last dimension of a tile of complex numbers (vec2: real and imaginary part) to its
    discrete Fourier transform, sums of x[n] exp(-2πi k n / N), as ``numpy.fft.fft`` has it.

    Quick for lengths with small prime factors.
    """

    updates = ("inout",)

    def sig(inout: Any): ...

    plan = staticmethod(_transformed(-1))


@planned
class tile_ifft:
    """As :func:`tile_fft` with exp(+2πi k n / N); there and back multiplies by N."""

    updates = ("inout",)

    def sig(inout: Any): ...

    plan = staticmethod(_transformed(1))
