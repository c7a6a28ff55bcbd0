"""``erf``, ``erfc`` and their inverses in float64.

``erf`` is a polynomial up to 7/8 and ``1 - erfc(x)`` above. ``erfc`` in the tail is ``exp(-a*a)`` times a smooth
quotient, everything that rounding loses carried along, because the exponential would magnify it. The inverses are
functions of ``w = -log((1 - x)(1 + x))``, near 0 and in the tail.
"""

from .dsl import abs, copysign, float64, fma, int64, sqrt, where
from .exponential_f64 import exponential_parts, times_any_power_of_two, times_power_of_two
from .logarithm_f64 import log_f64
from .polynomials_f64 import (
    error_function,
    inverse_erf_far_a,
    inverse_erf_far_b,
    inverse_erf_far_c,
    inverse_erf_near,
    scaled_erfc,
)

ZERO = float64(0.0)
HALF = float64(0.5)
ONE = float64(1.0)
TWO = float64(2.0)
INFINITY = float64(float("inf"))
NEAR = float64(0.875)
SMALL = float64(0.6875)
PIVOT = float64(3.5)
QUOTIENT = float64(1.08705558926226)  # the quotient at the pivot, which ``scaled_erfc`` leaves out
SLOPE = float64(0.886226925452758)  # erfinv(x)/x at 0, which ``inverse_erf_near`` leaves out
# erfinv/s at the middle of three ranges of 1/s, which the polynomials ``inverse_erf_far`` leave out
CENTER_A, VALUE_A = float64(0.388671875), float64(0.935178325884296)
CENTER_B, VALUE_B = float64(0.1943359375), float64(0.971122436772559)
CENTER_C, VALUE_C = float64(0.0738525390625), float64(0.993211471433174)


def erf_f64(x: float64) -> float64:
    """Error function of ``x``."""
    a = abs(x)
    near = fma(a, error_function(a * a), a)
    y, n = erfc_tail(where(a > float64(6.0), float64(6.0), a))
    far = ONE - times_power_of_two(y, n)
    return copysign(where(a > NEAR, far, near), x)


def erfc_f64(x: float64) -> float64:
    """Complementary error function, ``1 - erf(x)`` without its cancellation."""
    a = abs(x)
    rest = ONE - x
    near = rest + fma(-x, error_function(x * x), (ONE - rest) - x)
    y, n = erfc_tail(where(a > float64(27.375), float64(27.375), a))
    tail = times_any_power_of_two(y, n)
    return where(a > SMALL, where(x < ZERO, TWO - tail, tail), near)


def erfc_tail(a: float64) -> tuple[float64, int64]:
    """``y`` and ``n`` with ``erfc(a) = 2**n y`` for ``a >= 11/16``.

    ``exp(-a*a) (c + p(t)) / (a + k)`` with ``t = (a - k)/(a + k)``; each factor keeps its tail.
    """
    square = a * a
    square_low = fma(a, a, -square)
    u, n = exponential_parts(-square)
    power = ONE + u
    power_low = fma(-square_low, power, u - (power - ONE))
    d = a + PIVOT
    part = d - a
    d_low = (a - (d - part)) + (PIVOT - part)
    r = ONE / d
    over = a - PIVOT
    part = over - a
    over_low = (a - (over - part)) - (PIVOT + part)
    t = over * r
    t_low = (fma(-t, d, over) + fma(-t, d_low, over_low)) * r
    v = scaled_erfc(t)
    quotient = QUOTIENT + v
    slope = fma(fma(float64(-1.6), t, float64(1.6)), t, float64(-0.94))  # of the quotient, to two digits
    quotient_low = fma(slope, t_low, v - (quotient - QUOTIENT))
    w = quotient * r
    w_low = (fma(-w, d, quotient) + fma(-w, d_low, quotient_low)) * r
    return fma(w, power, fma(w, power_low, w_low * power)), n


def erfinv_f64(x: float64) -> float64:
    """Inverse error function: ``y`` with ``erf(y) = x``; NaN beyond -1 and 1."""
    w = -log_f64(fma(-x, x, ONE))
    y = copysign(fma(x, SLOPE, x * inverse_erf_near(w)), x)
    if w > float64(4.0):
        y = copysign(inverse_erf_tail(w), x)
    return y


def erfcinv_f64(x: float64) -> float64:
    """Inverse complementary error function: ``y`` with ``erfc(y) = x``; NaN outside 0 to 2."""
    u = ONE - x
    small = where(x > ONE, TWO - x, x)
    w = -log_f64(where(small < HALF, small * (TWO - small), fma(-u, u, ONE)))
    bend = inverse_erf_near(w)
    u_low = (ONE - u) - x
    y = fma(u, SLOPE, fma(u, bend, u_low * (SLOPE + bend)))
    if w > float64(4.0):
        y = copysign(inverse_erf_tail(w), u)
    return y


def inverse_erf_tail(w: float64) -> float64:
    """The inverse error function as a function of ``w = -log((1 - x)(1 + x)) >= 4``."""
    s = sqrt(w)
    v = ONE / s
    value, bend = VALUE_A, inverse_erf_far_a(v - CENTER_A)
    if s > float64(3.6):
        value, bend = VALUE_B, inverse_erf_far_b(v - CENTER_B)
        if s > float64(9.0):
            value, bend = VALUE_C, inverse_erf_far_c(v - CENTER_C)
    s_low = fma(-s, s, w) * (HALF * v)
    y = fma(s, value, fma(s, bend, s_low))
    return where(w < INFINITY, y, w)
