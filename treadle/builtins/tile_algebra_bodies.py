"""Factorisations and solutions of triangular systems on tiles, in the kernel language.

Element (i, j) of a triangular tile is its number i * down + j * right, so one body serves lower and upper triangles.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from .language import sqrt


@cache
def factor(n: int, down: int, right: int) -> Callable:
    """Cholesky–Banachiewicz (Golub and Van Loan, Matrix Computations, 4.2.5): the columns one after the other."""

    def cholesky(a, out):
        for j in range(n):
            s = a[j * (down + right)]
            for k in range(j):
                s -= out[j * down + k * right] * out[j * down + k * right]
            pivot = sqrt(s)
            out[j * (down + right)] = pivot
            for i in range(j + 1, n):
                s = a[i * down + j * right]
                for k in range(j):
                    s -= out[i * down + k * right] * out[j * down + k * right]
                out[i * down + j * right] = s / pivot
        return out

    return cholesky


@cache
def forward(n: int, columns: int, down: int, right: int) -> Callable:
    """The solution of L x = y for a lower triangle, in the place of y; ``columns`` right sides."""

    def solve(lower, y):
        for i in range(n):
            for c in range(columns):
                s = y[i * columns + c]
                for j in range(i):
                    s -= lower[i * down + j * right] * y[j * columns + c]
                y[i * columns + c] = s / lower[i * (down + right)]
        return y

    return solve


@cache
def backward(n: int, columns: int, down: int, right: int) -> Callable:
    """The solution of U x = y for an upper triangle, in the place of y; ``columns`` right sides."""

    def solve(upper, y):
        for r in range(n):
            i = n - 1 - r
            for c in range(columns):
                s = y[i * columns + c]
                for j in range(i + 1, n):
                    s -= upper[i * down + j * right] * y[j * columns + c]
                y[i * columns + c] = s / upper[i * (down + right)]
        return y

    return solve
