"""Minimax polynomials with coefficients that fit a machine format (Remez exchange on a dense grid, mpmath).

``fit(target, weight, interval, count, precision)`` finds the polynomial ``p`` of ``count`` coefficients that makes
the largest ``|weight(x) * (target(x) - p(x))|`` on the interval as small as possible, then rounds the coefficients
to ``precision`` bits one at a time, lowest power first, and refits the rest after each rounding, so that later
coefficients absorb the rounding of earlier ones (on an interval with 0 inside they are rounded together). Source of
the exchange: E. Ya. Remez, 1934, as told in J.-M. Muller, "Elementary Functions", chapter 3.

Needs mpmath; treadle itself does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mpmath import cos, fabs, frexp, ldexp, lu_solve, matrix, mpf, nint, pi

__all__ = ["Fit", "fit", "round_to"]

POINTS_PER_COEFFICIENT = 60
ROUNDS = 40


@dataclass(frozen=True)
class Fit:
    """Coefficients, lowest power first, and the largest weighted error seen on the grid."""

    coefficients: tuple[mpf, ...]
    error: mpf


def round_to(x: mpf, bits: int) -> mpf:
    """``x`` rounded to ``bits`` significant bits, ties to even (normal numbers only)."""
    if x == 0:
        return x
    _, exponent = frexp(x)
    return ldexp(nint(ldexp(x, bits - exponent)), exponent - bits)


def fit(
    target: Callable[[mpf], mpf],
    weight: Callable[[mpf], mpf],
    interval: tuple[float, float],
    count: int,
    precision: int,
) -> Fit:
    """Minimax fit of ``count`` coefficients (powers 0 to count - 1); see the head of this file."""
    lo, hi = mpf(interval[0]), mpf(interval[1])
    n = POINTS_PER_COEFFICIENT * (count + 1)
    grid = [(lo + hi) / 2 - (hi - lo) / 2 * cos(pi * k / n) for k in range(n + 1)]
    values = [target(x) for x in grid]
    weights = [weight(x) for x in grid]
    if lo < 0 < hi:  # without the lower powers the rest is no Haar space across 0: round all at once
        rounded = [round_to(c, precision) for c in _exchange(grid, values, weights, range(count))]
        residual = [v - _evaluate(rounded, range(count), x) for v, x in zip(values, grid)]
        return Fit(tuple(rounded), max(fabs(w * r) for w, r in zip(weights, residual)))
    rounded, residual = [], list(values)
    for power in range(count):
        free = _exchange(grid, residual, weights, range(power, count))
        rounded.append(round_to(free[0], precision))
        residual = [r - rounded[-1] * x**power for r, x in zip(residual, grid)]
    return Fit(tuple(rounded), max(fabs(w * r) for w, r in zip(weights, residual)))


def _exchange(grid: list[mpf], values: list[mpf], weights: list[mpf], powers: Sequence[int]) -> list[mpf]:
    """Remez exchange on the grid: the coefficients of the best polynomial over ``powers``."""
    m = len(powers) + 1
    last = len(grid) - 1
    nodes = [round(last * (k + 0.5) / m) for k in range(m)]
    best, least = [], mpf("inf")  # the exchange may circle around the optimum: keep the best it has met
    for _ in range(ROUNDS):
        a, b = matrix(m, m), matrix(m, 1)
        for row, node in enumerate(nodes):
            for column, power in enumerate(powers):
                a[row, column] = grid[node] ** power
            a[row, m - 1] = (-1) ** row / weights[node]
            b[row] = values[node]
        x = lu_solve(a, b)
        solution = [x[k] for k in range(m - 1)]
        errors = [w * (v - _evaluate(solution, powers, g)) for g, v, w in zip(grid, values, weights)]
        largest = max(fabs(e) for e in errors)
        if largest < least:
            best, least = solution, largest
        if largest <= fabs(x[m - 1]) * mpf("1.0005"):
            break
        nodes = _alternating_extrema(errors, m)
    return best


def _evaluate(coefficients: list[mpf], powers: Sequence[int], x: mpf) -> mpf:
    total = mpf(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total * x ** powers[0]


def _alternating_extrema(errors: list[mpf], m: int) -> list[int]:
    """Grid indices of ``m`` extrema of alternating sign that hold the largest one."""
    peaks: list[int] = []
    for k, e in enumerate(errors):
        if peaks and (errors[peaks[-1]] > 0) == (e > 0):
            if fabs(e) > fabs(errors[peaks[-1]]):
                peaks[-1] = k
        else:
            peaks.append(k)
    while len(peaks) > m:  # drop from the end with the smaller error
        peaks.pop(0 if fabs(errors[peaks[0]]) < fabs(errors[peaks[-1]]) else -1)
    if len(peaks) < m:
        raise ArithmeticError(f"the error has {len(peaks)} alternations, {m} are needed: fewer coefficients will do")
    return peaks
