"""``pow`` and ``cbrt`` in float64.

``pow`` is ``exp(y log(x))`` with the logarithm in two parts, good to about 66 bits, because ``y`` magnifies its
error up to 2**10 times. Products and sums carry their rounding errors along (T. J. Dekker, "A floating-point
technique for extending the available precision", 1971, with ``fma``). ``cbrt`` is that of ``power_f32``.
"""

from .dsl import abs, bitcast, copysign, float64, fma, int32, int64, rare, trunc, where
from .exponential_f64 import LN2, LN2_LOW, LOG2_E, ROUNDER, times_any_power_of_two
from .logarithm_f64 import significand
from .polynomials_f64 import exponential, log_series

LN2_SHORT = float64(0.6931471805598903)  # log(2) cut to 42 bits: times an exponent it is exact
LN2_SHORT_LOW = float64(5.497923018708371e-14)
TWO_THIRDS = float64(0.6666666666666666)
TWO_THIRDS_LOW = float64(3.700743415417188e-17)
END = float64(760.0)  # exp(760) is infinite, exp(-760) zero
GUESS = int64(0x553F09FC00000000)  # bits of 1 times 4/3, less what makes the error even
INFINITY = float64(float("inf"))
NAN = float64(float("nan"))
ZERO = float64(0.0)
HALF = float64(0.5)
ONE = float64(1.0)
TWO = float64(2.0)
THIRD = float64(0.3333333333333333)


def pow_f64(x: float64, y: float64) -> float64:
    """``x**y`` with the special cases of C99."""
    result = power_of_positive(abs(x), y)
    if not (x > ZERO and x < INFINITY and abs(y) < INFINITY):
        result = power_at_the_ends(x, y, result)
    return result


def power_of_positive(a: float64, y: float64) -> float64:
    """``a**y`` for finite ``a > 0`` and ``y``."""
    log_a, log_a_low = logarithm_in_two_parts(a)
    t = y * log_a
    t_low = fma(y, log_a_low, fma(y, log_a, -t))
    ordinary = abs(t) < END
    t = where(ordinary, t, where(t > ZERO, END, -END))
    t_low = where(ordinary, t_low, ZERO)
    shifted = fma(t, LOG2_E, ROUNDER)
    n = shifted - ROUNDER
    exact = fma(n, -LN2, t)
    r = fma(n, -LN2_LOW, exact)
    r_low = t_low + fma(n, -LN2_LOW, exact - r)
    u = fma(r * r, exponential(r), r)
    power = ONE + u
    power = power + fma(r_low, power, u - (power - ONE))
    return times_any_power_of_two(power, bitcast(shifted, int64))


def logarithm_in_two_parts(a: float64) -> tuple[float64, float64]:
    """``log(a)`` as a sum; ``log(1 + f) = 2 s + s**3 (2/3 + z p(z))`` with ``s = f/(2 + f)``, ``z = s*s``."""
    f, e = significand(a)
    d = f + TWO
    d_low = f - (d - TWO)
    r = ONE / d
    s = f * r
    s_low = fma(-s, d_low, fma(-s, d, f)) * r
    z = s * s
    z_low = fma(s + s, s_low, fma(s, s, -z))
    v = z * log_series(z)
    g = TWO_THIRDS + v
    g_low = (v - (g - TWO_THIRDS)) + TWO_THIRDS_LOW
    cube = s * z
    cube_low = fma(s_low, z, fma(s, z_low, fma(s, z, -cube)))
    t = cube * g
    t_low = fma(cube_low, g, fma(cube, g_low, fma(cube, g, -t)))
    twice = s + s
    high = twice + t
    low = fma(TWO, s_low, (t - (high - twice)) + t_low)
    exponent = e * LN2_SHORT
    total = exponent + high
    low = low + fma(e, LN2_SHORT_LOW, high - (total - exponent))
    result = total + low
    return result, low - (result - total)


@rare
def power_at_the_ends(x: float64, y: float64, magnitude: float64) -> float64:
    """``x**y`` for zero, negative, infinite or NaN operands; ``magnitude`` is ``|x|**y`` where that is an ordinary
    number."""
    a = abs(x)
    grows = (a > ONE) == (y > ZERO)  # towards infinity, where either operand is at an end
    at_end = a == ZERO or a == INFINITY or abs(y) == INFINITY
    result = where(at_end, where(grows, INFINITY, ZERO), magnitude)
    whole = trunc(y) == y
    odd = whole and trunc(y * HALF) != y * HALF
    result = where(x < ZERO and a < INFINITY and abs(y) < INFINITY and not whole, NAN, result)
    result = where(odd and bitcast(x, int64) < 0, -result, result)
    result = where(a == ONE and abs(y) == INFINITY, ONE, result)
    result = where(x == x and y == y, result, x + y)
    return where(y == ZERO or x == ONE, ONE, result)


def cbrt_f64(x: float64) -> float64:
    """Cube root of ``x``."""
    a = abs(x)
    tiny = a < float64(2.2250738585072014e-308)
    scaled = where(tiny, a * float64(18014398509481984.0), a)
    # v about scaled**(-1/3), to 4 %: a third of the high bits, taken from a constant
    third = fma(float64(int32(bitcast(scaled, int64) >> 32)), THIRD, ROUNDER)
    v = refined(scaled, refined(scaled, bitcast(GUESS - (bitcast(third, int64) << 32), float64)))
    t = (scaled * v) * v
    # one step of Newton's method on t**3 = scaled, the square kept in two parts
    square = t * t
    rest = fma(fma(t, t, -square), t, fma(square, t, -scaled))
    t = fma(-rest, (v * v) * THIRD, t)
    t = where(tiny, t * float64(3.814697265625e-06), t)
    t = where(a > ZERO and a < INFINITY, t, a)
    return copysign(t, x)


def refined(a: float64, v: float64) -> float64:
    """``v`` nearer to ``a**(-1/3)``: ``v (1 + e/3 + 2 e**2/9 + 14 e**3/81)`` with ``e = 1 - a v**3``; the error is
    of order 4."""
    e = fma(-(a * v), v * v, ONE)
    return fma(v * e, fma(e, fma(e, float64(0.1728395061728395), float64(0.2222222222222222)), THIRD), v)
