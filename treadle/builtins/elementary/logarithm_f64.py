"""``log``, ``log2`` and ``log10`` in float64.

``x = 2**e (1 + f)`` as in float32. ``log(1 + f) = f - (h - s (h + z p(z)))`` with ``h = f*f/2``, ``s = f/(2 + f)``,
``z = s*s``: the polynomial adds to what is already nearly right (P. T. P. Tang, "Table-driven implementation of the
logarithm function", 1990, in the form without a table). The other bases multiply the sum of two parts by the sum of
two parts.
"""

from .dsl import bitcast, float64, fma, int32, int64, uint64, where
from .polynomials_f64 import log_remainder

ROOT_OF_HALF = int64(0x3FE6A09E667F3BCD)  # bits of sqrt(1/2)
FRACTION = int64(0x000FFFFFFFFFFFFF)
LN2 = float64(0.6931471805599453)
LN2_LOW = float64(2.3190468138462996e-17)
LOG2_E = float64(1.4426950408889634)
LOG2_E_LOW = float64(2.0355273740931033e-17)
LOG10_E = float64(0.4342944819032518)
LOG10_E_LOW = float64(1.098319650216765e-17)
LOG10_2 = float64(0.30102999566398114)  # cut, so that both parts are positive: infinities must not cancel
LOG10_2_LOW = float64(5.270742310347266e-17)
INFINITY = float64(float("inf"))
NAN = float64(float("nan"))
ZERO = float64(0.0)


def log_f64(x: float64) -> float64:
    """Natural logarithm of ``x``."""
    f, e = significand(x)
    h, s, bend = logarithm_parts(f)
    return fma(e, LN2, f + fma(e, LN2_LOW, fma(s, bend, -h)))


def log2_f64(x: float64) -> float64:
    """Binary logarithm of ``x``; exact for powers of two."""
    f, e = significand(x)
    high, low = logarithm_sum(f)
    return e + fma(high, LOG2_E, fma(high, LOG2_E_LOW, low * LOG2_E))


def log10_f64(x: float64) -> float64:
    """Decimal logarithm of ``x``."""
    f, e = significand(x)
    high, low = logarithm_sum(f)
    rest = fma(low, LOG10_E, fma(high, LOG10_E_LOW, e * LOG10_2_LOW))
    return fma(e, LOG10_2, fma(high, LOG10_E, rest))


def logarithm_sum(f: float64) -> tuple[float64, float64]:
    """``log(1 + f)`` as the sum of two numbers, the second much smaller than the first."""
    h, s, bend = logarithm_parts(f)
    high = f - h
    return high, fma(s, bend, (f - high) - h)


def logarithm_parts(f: float64) -> tuple[float64, float64, float64]:
    """``h``, ``s`` and ``b`` with ``log(1 + f) = f - (h - s b)``."""
    h = (f * float64(0.5)) * f
    s = f / (f + float64(2.0))
    z = s * s
    return h, s, fma(z, log_remainder(z), h)


def significand(x: float64) -> tuple[float64, float64]:
    """``f`` and ``e`` with ``x = 2**e (1 + f)``."""
    f, e = split(x)
    if bitcast(x, uint64) - 0x0010000000000000 >= 0x7FE0000000000000:  # anything but a positive normal number
        f, e = split(x * float64(18014398509481984.0))
        e = where(x == ZERO, -INFINITY, e - float64(54.0))
        e = where(x == INFINITY, INFINITY, e)
        f = where(x == ZERO or x == INFINITY, ZERO, f)
        f = where(x >= ZERO, f, NAN)
    return f, e


def split(x: float64) -> tuple[float64, float64]:
    """``f`` and ``e`` for a positive normal ``x``."""
    bits = bitcast(x, int64) - ROOT_OF_HALF
    m = bitcast((bits & FRACTION) + ROOT_OF_HALF, float64)
    return m - float64(1.0), float64(int32(bits >> 52))
