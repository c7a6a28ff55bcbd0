"""The names that elementary bodies are written with, and their meaning on NumPy scalars.

A body is a plain Python function in the kernel language. The compiler reads its text and resolves these names to its
own types and primitives; called from Python, a body runs on NumPy scalars with the same rounding, step by step,
``fma`` included. Arithmetic on floats must be compiled as written: a product that feeds a sum is fused only where
the body says ``fma``.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

__all__ = [
    "abs", "bitcast", "bool", "copysign", "float32", "float64", "floor", "fma", "int32", "int64", "max", "min", "rare",
    "rint", "sqrt", "trunc", "uint32", "uint64", "where",
]  # fmt: skip

float32, float64 = np.float32, np.float64
int32, int64, uint32, uint64 = np.int32, np.int64, np.uint32, np.uint64
bool = np.bool_

F = TypeVar("F", np.float32, np.float64)
T = TypeVar("T")

abs = abs
min = min
max = max


def rare(body: T) -> T:
    """Decorator: few arguments need this function. It stays a call, so that a kernel holds its code once."""
    body.__treadle_rare__ = True
    return body


def bitcast(x: np.generic, kind: type[T]) -> T:
    """The bits of ``x`` read as another type of the same size."""
    return x.view(kind)


def where(condition: np.bool_, a: T, b: T) -> T:
    """``a`` if the condition holds, else ``b``; both are evaluated."""
    return a if condition else b


def sqrt(x: F) -> F:
    """Square root, correctly rounded; NaN below zero."""
    return np.sqrt(x)


def floor(x: F) -> F:
    """Largest integer not above ``x``."""
    return np.floor(x)


def rint(x: F) -> F:
    """Nearest integer, ties to even."""
    return np.rint(x)


def trunc(x: F) -> F:
    """``x`` without its fraction."""
    return np.trunc(x)


def copysign(x: F, y: F) -> F:
    """``x`` with the sign of ``y``."""
    return np.copysign(x, y)


def fma(a: F, b: F, c: F) -> F:
    """``a*b + c``, rounded once."""
    from ..scalar import fused

    return fused(a, b, c)
