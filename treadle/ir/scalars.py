"""Scalars on the host: how a value of each type is held as a NumPy scalar, exactly as the machine holds it.

A bfloat16 has no NumPy type; it is held as the float32 of the same value and rounded after every operation.
"""

from __future__ import annotations

import math

import numpy as np

from ..types.core import Scalar, b1, bf16, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from ..types.numbers import bf16_bits, bf16_values
from ..types.promotion import limits

__all__ = ["boxed", "converted", "dtype_of", "plain"]

_CLASSES: dict[Scalar, type[np.generic]] = {
    b1: np.bool_, i8: np.int8, i16: np.int16, i32: np.int32, i64: np.int64, u8: np.uint8, u16: np.uint16,
    u32: np.uint32, u64: np.uint64, f16: np.float16, bf16: np.float32, f32: np.float32, f64: np.float64,
}  # fmt: skip


def dtype_of(t: Scalar) -> type[np.generic]:
    """The class of NumPy scalars that hold values of ``t``."""
    return _CLASSES[t]


def boxed(value: bool | int | float | np.generic, t: Scalar) -> np.generic:
    """``value`` as a NumPy scalar of ``t``: rounded to the nearest float; it must fit if it is an integer.

    NumPy warns where a float becomes infinite; callers run under ``np.errstate``.
    """
    return np.float32(bf16_values(bf16_bits(value))) if t is bf16 else _CLASSES[t](value)


def plain(x: np.generic) -> bool | int | float:
    """The Python number with the value of ``x``, as a ``const`` keeps it."""
    return x.item()


def converted(x: np.generic, t: Scalar) -> np.generic:
    """What ``cast`` makes of ``x``, for every value.

    To bool: is it not zero. Integers wrap. A float to an integer: towards zero, then the nearest that the type holds;
    NaN becomes 0. To a float: to the nearest, ties to even.
    """
    if t is b1:
        return np.bool_(x != 0)
    if not t.is_int:
        return boxed(x, t)
    if isinstance(x, np.floating):
        if math.isnan(x):
            return dtype_of(t)(0)
        low, high = limits(t)
        return dtype_of(t)(low if x <= low else high if x >= high else int(x))
    wrapped = int(x) & (1 << t.bits) - 1
    return dtype_of(t)(wrapped - (1 << t.bits) if t.is_signed and wrapped >> t.bits - 1 else wrapped)
