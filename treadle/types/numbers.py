"""Arithmetic of the language on Python numbers: what a scalar type can hold, and division as kernels define it."""

from __future__ import annotations

import ctypes
import math
import operator
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .core import Scalar, b1, bf16, f32, f64

BRAIN = "bfloat16"  # the name of the dtype that the package ml_dtypes adds to NumPy

_CODES = {"i": {8: "b", 16: "h", 32: "i", 64: "q"}, "u": {8: "B", 16: "H", 32: "I", 64: "Q"}, "f": {32: "f", 64: "d"}}


def code(t: Scalar) -> str:
    """The letter under which the module ``array`` keeps components of ``t``; 16-bit floats lie in float32."""
    if t is b1:
        return "B"
    return "f" if t.is_float and t.bits == 16 else _CODES[t.kind][t.bits]


def c_type(t: Scalar) -> type:
    """The type of :mod:`ctypes` that lies in memory as a ``t`` does; 16-bit floats as their bits.

    >>> c_type(f32)
    <class 'ctypes.c_float'>
    """
    if t is b1:
        return ctypes.c_bool
    if t.is_float:
        return {16: ctypes.c_uint16, 32: ctypes.c_float, 64: ctypes.c_double}[t.bits]
    return getattr(ctypes, f"c_{'' if t.is_signed else 'u'}int{t.bits}")


@cache
def rounder(t: Scalar) -> Callable[[Any], Any]:
    """A function that makes of a number the Python number a scalar of type ``t`` can hold."""
    if t is b1:
        return bool
    if t.is_int:
        mask, sign = (1 << t.bits) - 1, 1 << t.bits - 1 if t.is_signed else 0
        return lambda x: ((_whole(x) & mask) ^ sign) - sign
    if t is f64:
        return float
    if t is bf16:
        return lambda x: float(bf16_values(bf16_bits(float(x))))
    return _single if t is f32 else _half


def _single(x: Any) -> float:
    return ctypes.c_float(x if type(x) is float else float(x)).value  # as C converts: too large a number is infinity


def _half(x: Any) -> float:
    with np.errstate(over="ignore"):
        return float(np.float16(float(x)))


def _whole(x: Any) -> int:
    return operator.index(x) if not isinstance(x, float | np.floating) else int(x)


def seen_as(rows: np.ndarray) -> np.ndarray:
    """``rows`` of memory that holds bfloat16, as ``ml_dtypes`` has them where a program has imported it."""
    package = sys.modules.get("ml_dtypes")
    return rows.view(package.bfloat16) if package is not None and rows.dtype == np.uint16 else rows


def bits_of(rows: np.ndarray) -> np.ndarray:
    """``rows`` with a bfloat16 of ``ml_dtypes`` as its bits; any other as they are."""
    return rows.view(np.uint16) if rows.dtype.name == BRAIN else rows


def bf16_bits(values: Any) -> np.ndarray:
    """bfloat16 bits of ``values``: the upper half of a float32, rounded to nearest, ties to even; NaNs stay NaNs."""
    with np.errstate(all="ignore"):
        single = np.asarray(values, dtype=np.float32)
        bits = single.view(np.uint32)
        rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.where(np.isnan(single), quiet, rounded).astype(np.uint16)


def bf16_values(bits: Any) -> np.ndarray:
    """The float32 values of bfloat16 ``bits``."""
    return (bits_of(np.asarray(bits)).astype(np.uint32) << np.uint32(16)).view(np.float32)


@cache
def quotient(t: Scalar) -> Callable[[Any, Any], Any]:
    """Division on Python numbers: of floats as hardware does, of integers truncated and 0 for a zero divisor."""

    def whole(a: int, b: int) -> int:
        if b == 0:
            return 0
        q = abs(a) // abs(b)
        return q if (a < 0) == (b < 0) else -q

    def real(a: float, b: float) -> float:
        try:
            return a / b
        except ZeroDivisionError:
            if a == 0 or math.isnan(a):
                return math.nan
            return math.copysign(math.inf, a) * math.copysign(1.0, b)

    return real if t.is_float else whole


@cache
def remainder(t: Scalar) -> Callable[[Any, Any], Any]:
    """C's remainder, with the sign of the left side; 0 for an integer divided by 0, NaN for a float."""

    def whole(a: int, b: int) -> int:
        return 0 if b == 0 else int(math.copysign(1, a)) * (abs(a) % abs(b))

    def real(a: float, b: float) -> float:
        return math.nan if math.isinf(a) or b == 0 else math.fmod(a, b)

    return real if t.is_float else whole
