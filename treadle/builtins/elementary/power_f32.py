"""``pow`` and ``cbrt`` in float32.

``pow`` is ``exp(y log(x))`` in float64, whose 53 bits leave enough after the factor ``y``; rounding to float32 at
the end also serves overflow and subnormal results. ``cbrt`` needs no division: it refines ``a**(-1/3)`` from a guess
on the exponent field.
"""

from .dsl import abs, bitcast, copysign, float32, float64, fma, int32, int64, rare, trunc, where
from .polynomials_f64 import exponential_short, log_remainder_short

ROOT_OF_HALF = int64(0x3FE6A09E667F3BCD)  # bits of sqrt(1/2)
FRACTION = int64(0x000FFFFFFFFFFFFF)
LN2 = float64(0.6931471805599453)
LOG2_E = float64(1.4426950408889634)
# 1.5 * 2**52: adding it rounds to an integer and leaves that integer in the low bits
ROUNDER = float64(6755399441055744.0)
END = float64(200.0)  # exp(200) is infinite and exp(-200) zero in float32, both normal in float64
ROUNDER_32 = float32(12582912.0)  # 1.5 * 2**23
# bits of 1.0 times 4/3, less what makes the error even, and what ROUNDER_32 leaves after the shift
GUESS = int32(-0x6B5D0574)
INFINITY = float32(float("inf"))
NAN = float32(float("nan"))
ZERO = float32(0.0)
HALF = float32(0.5)
ONE = float32(1.0)
THIRD = float32(0.3333333432674408)


def pow_f32(x: float32, y: float32) -> float32:
    """``x**y`` with the special cases of C99."""
    result = power_of_positive(abs(x), y)
    if not (x > ZERO and x < INFINITY and abs(y) < INFINITY):
        result = power_at_the_ends(x, y, result)
    return result


def power_of_positive(a: float32, y: float32) -> float32:
    """``a**y`` for finite ``a > 0`` and ``y``."""
    bits = bitcast(float64(a), int64) - ROOT_OF_HALF
    e = float64(int32(bits >> 52))
    f = bitcast((bits & FRACTION) + ROOT_OF_HALF, float64) - float64(1.0)
    s = f / (f + float64(2.0))
    z = s * s
    half_square = (f * float64(0.5)) * f
    log_m = f - fma(-s, fma(z, log_remainder_short(z), half_square), half_square)
    t = float64(y) * fma(e, LN2, log_m)
    t = where(t > END, END, t)
    t = where(t < -END, -END, t)
    shifted = fma(t, LOG2_E, ROUNDER)
    r = fma(shifted - ROUNDER, -LN2, t)
    u = fma(r * r, exponential_short(r), r)
    return float32(bitcast(bitcast(u + float64(1.0), int64) + (bitcast(shifted, int64) << 52), float64))


@rare
def power_at_the_ends(x: float32, y: float32, magnitude: float32) -> float32:
    """``x**y`` for zero, negative, infinite or NaN operands; ``magnitude`` is ``|x|**y`` where that is an ordinary
    number."""
    a = abs(x)
    grows = (a > ONE) == (y > ZERO)  # towards infinity, where either operand is at an end
    at_end = a == ZERO or a == INFINITY or abs(y) == INFINITY
    result = where(at_end, where(grows, INFINITY, ZERO), magnitude)
    whole = trunc(y) == y
    odd = whole and trunc(y * HALF) != y * HALF
    result = where(x < ZERO and a < INFINITY and abs(y) < INFINITY and not whole, NAN, result)
    result = where(odd and bitcast(x, int32) < 0, -result, result)
    result = where(a == ONE and abs(y) == INFINITY, ONE, result)
    result = where(x == x and y == y, result, x + y)
    return where(y == ZERO or x == ONE, ONE, result)


def cbrt_f32(x: float32) -> float32:
    """Cube root of ``x``."""
    a = abs(x)
    tiny = a < float32(1.1754943508222875e-38)
    scaled = where(tiny, a * float32(16777216.0), a)
    # v about scaled**(-1/3), to 4 %: a third of the bits, taken from a constant; then two steps of v (1 + e/3 + ...)
    # with e = 1 - scaled v**3
    v = bitcast(GUESS - (bitcast(fma(float32(bitcast(scaled, int32) >> 8), THIRD, ROUNDER_32), int32) << 8), float32)
    e = fma(-(scaled * v), v * v, ONE)
    v = fma(v * e, fma(e, fma(e, float32(0.17283950746059418), float32(0.2222222238779068)), THIRD), v)
    e = fma(-(scaled * v), v * v, ONE)
    v = fma(v * e, THIRD, v)
    t = (scaled * v) * v
    # one step of Newton's method on t**3 = scaled, the square kept in two parts
    square = t * t
    rest = fma(fma(t, t, -square), t, fma(square, t, -scaled))
    t = fma(-rest, (v * v) * THIRD, t)
    t = where(tiny, t * float32(0.00390625), t)
    t = where(a > ZERO and a < INFINITY, t, a)
    return copysign(t, x)
