"""``log``, ``log2`` and ``log10`` in float32.

``x = 2**e (1 + f)`` with ``1 + f`` between the square roots of 1/2 and 2, so that ``e = 0`` on both sides of 1 and
nothing cancels. A polynomial gives the logarithm of ``1 + f``. Subnormal numbers, zero, negative numbers, infinity
and NaN take an extra path that only chooses other ``f`` and ``e``.
"""

from .dsl import bitcast, float32, fma, int32, uint32, where
from .polynomials_f32 import binary_logarithm, decimal_logarithm, logarithm

ROOT_OF_HALF = int32(0x3F3504F3)  # bits of sqrt(1/2)
LN2 = float32(0.6931471228599548)  # cut, so that both parts are positive: infinities must not cancel
LN2_LOW = float32(5.769998878690785e-08)
LOG2_E = float32(1.4426950216293335)
LOG2_E_LOW = float32(1.925963033500011e-08)
LOG10_E = float32(0.4342944920063019)
LOG10_E_LOW = float32(-1.0103049952192578e-08)
LOG10_2 = float32(0.3010299801826477)
LOG10_2_LOW = float32(1.5481333548450493e-08)
INFINITY = float32(float("inf"))
NAN = float32(float("nan"))
ZERO = float32(0.0)


def log_f32(x: float32) -> float32:
    """Natural logarithm of ``x``."""
    f, e = significand(x)
    bend = (f * f) * logarithm(f)
    return fma(e, LN2, f + fma(e, LN2_LOW, bend))


def log2_f32(x: float32) -> float32:
    """Binary logarithm of ``x``; exact for powers of two."""
    f, e = significand(x)
    bend = (f * f) * binary_logarithm(f)
    return e + fma(f, LOG2_E, fma(f, LOG2_E_LOW, bend))


def log10_f32(x: float32) -> float32:
    """Decimal logarithm of ``x``."""
    f, e = significand(x)
    bend = fma(f, LOG10_E_LOW, (f * f) * decimal_logarithm(f))
    return fma(e, LOG10_2, fma(f, LOG10_E, fma(e, LOG10_2_LOW, bend)))


def significand(x: float32) -> tuple[float32, float32]:
    """``f`` and ``e`` with ``x = 2**e (1 + f)``."""
    f, e = split(x)
    if bitcast(x, uint32) - 0x00800000 >= 0x7F000000:  # anything but a positive normal number
        f, e = split(x * float32(33554432.0))
        e = where(x == ZERO, -INFINITY, e - float32(25.0))
        e = where(x == INFINITY, INFINITY, e)
        f = where(x == ZERO or x == INFINITY, ZERO, f)
        f = where(x >= ZERO, f, NAN)
    return f, e


def split(x: float32) -> tuple[float32, float32]:
    """``f`` and ``e`` for a positive normal ``x``."""
    bits = bitcast(x, int32) - ROOT_OF_HALF
    m = bitcast((bits & 0x7FFFFF) + ROOT_OF_HALF, float32)
    return m - float32(1.0), float32(bits >> 23)
