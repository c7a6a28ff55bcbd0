"""``exp``, ``sinh``, ``cosh`` and ``tanh`` in float64; the formulas are those of ``exponential_f32``."""

from .dsl import abs, bitcast, copysign, float64, fma, int64, rare, where
from .polynomials_f64 import exponential, hyperbolic_sine, hyperbolic_tangent

LOG2_E = float64(1.4426950408889634)
LN2 = float64(0.6931471805599453)
LN2_LOW = float64(2.3190468138462996e-17)
# 1.5 * 2**52: adding it rounds to an integer and leaves that integer in the low bits
ROUNDER = float64(6755399441055744.0)
ROUNDER_BITS = int64(0x4338000000000000)
INFINITY = float64(float("inf"))
ONE = float64(1.0)
NORMAL_LIMIT = float64(708.0)  # up to here exp(x) and exp(-x) are normal numbers
HYPERBOLIC_LIMIT = float64(710.4758600739439)  # the largest x with a finite cosh(x)


def exp_f64(x: float64) -> float64:
    """``e**x``."""
    u, n = exponential_parts(x)
    y = times_power_of_two(ONE + u, n)
    if not (abs(x) <= NORMAL_LIMIT):
        y = exp_at_the_ends(x)
    return y


@rare
def exp_at_the_ends(x: float64) -> float64:
    """``e**x`` where it may be subnormal, zero, infinite or NaN."""
    c = where(x > float64(710.0), float64(710.0), x)
    c = where(c < float64(-746.0), float64(-746.0), c)
    u, n = exponential_parts(c)
    return where(x == x, times_any_power_of_two(ONE + u, n), x)


def exponential_parts(x: float64) -> tuple[float64, int64]:
    """``u`` and an integer whose low bits are ``n``: ``exp(x) = 2**n (1 + u)``."""
    shifted = fma(x, LOG2_E, ROUNDER)
    n = shifted - ROUNDER
    r = fma(n, -LN2_LOW, fma(n, -LN2, x))
    return fma(r * r, exponential(r), r), bitcast(shifted, int64)


def times_power_of_two(y: float64, n: int64) -> float64:
    """``y 2**n`` for normal ``y`` and result, ``n`` as ``exponential_parts`` gives it."""
    return bitcast(bitcast(y, int64) + (n << 52), float64)


def times_any_power_of_two(y: float64, n: int64) -> float64:
    """``y 2**n`` where the result may be subnormal or infinite."""
    n = n - ROUNDER_BITS
    half = n >> 1
    return y * bitcast((half + 1023) << 52, float64) * bitcast((n - half + 1023) << 52, float64)


def cosh_f64(x: float64) -> float64:
    """Hyperbolic cosine: ``h + 1/(4 h)`` with ``h = exp(|x|)/2``."""
    a = abs(x)
    u, n = exponential_parts(a)
    h = times_power_of_two(ONE + u, n - 1)
    return where(a <= HYPERBOLIC_LIMIT, h + float64(0.25) / h, a + INFINITY)


def sinh_f64(x: float64) -> float64:
    """Hyperbolic sine: ``h - 1/(4 h)`` with ``h = exp(|x|)/2``, a polynomial below 1."""
    a = abs(x)
    u, n = exponential_parts(a)
    h = times_power_of_two(ONE + u, n - 1)
    large = where(a <= HYPERBOLIC_LIMIT, h - float64(0.25) / h, a + INFINITY)
    z = a * a
    small = fma(a * z, hyperbolic_sine(z), a)
    return copysign(where(a > ONE, large, small), x)


def tanh_f64(x: float64) -> float64:
    """Hyperbolic tangent: ``1 - 2/(exp(2 |x|) + 1)``, a polynomial below 0.6."""
    a = abs(x)
    u, n = exponential_parts(where(a > float64(20.0), float64(40.0), a + a))
    large = ONE - float64(2.0) / (times_power_of_two(ONE + u, n) + ONE)
    z = a * a
    small = fma(a * z, hyperbolic_tangent(z), a)
    return copysign(where(a > float64(0.6), large, small), x)
