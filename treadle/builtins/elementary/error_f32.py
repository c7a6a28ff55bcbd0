"""``erf``, ``erfc`` and their inverses in float32.

``erf`` is a polynomial up to 7/8 and ``1 - exp(-p(x))`` above. ``erfc`` in the tail is ``exp(-a*a)`` times a smooth
quotient, everything that rounding loses carried along, because the exponential would magnify it. The inverses are
functions of ``w = -log((1 - x)(1 + x))``, near 0 and in the tail.
"""

from .dsl import abs, copysign, float32, fma, int32, sqrt, where
from .exponential_f32 import exponential_parts, times_any_power_of_two, times_power_of_two
from .logarithm_f32 import log_f32
from .polynomials_f32 import error_function, inverse_erf_far, inverse_erf_near, minus_log_erfc, scaled_erfc

ZERO = float32(0.0)
HALF = float32(0.5)
ONE = float32(1.0)
TWO = float32(2.0)
INFINITY = float32(float("inf"))
NEAR = float32(0.875)
SMALL = float32(0.6875)
PIVOT = float32(2.5)
QUOTIENT = float32(1.0540318489074707)  # the quotient at the pivot, which ``scaled_erfc`` leaves out
SLOPE = float32(0.8862269520759583)  # erfinv(x)/x at 0, which ``inverse_erf_near`` leaves out
FAR_CENTER = float32(0.298828125)
FAR_VALUE = float32(0.950519323348999)  # erfinv/s at 1/s = FAR_CENTER, which ``inverse_erf_far`` leaves out


def erf_f32(x: float32) -> float32:
    """Error function of ``x``."""
    a = abs(x)
    near = fma(a, error_function(a * a), a)
    u, n = exponential_parts(-minus_log_erfc(where(a > float32(4.0), float32(4.0), a)))
    far = ONE - times_power_of_two(ONE + u, n)
    return copysign(where(a > NEAR, far, near), x)


def erfc_f32(x: float32) -> float32:
    """Complementary error function, ``1 - erf(x)`` without its cancellation."""
    a = abs(x)
    rest = ONE - x
    near = rest + fma(-x, error_function(x * x), (ONE - rest) - x)
    y, n = erfc_tail(where(a > float32(10.25), float32(10.25), a))
    tail = times_any_power_of_two(y, n)
    return where(a > SMALL, where(x < ZERO, TWO - tail, tail), near)


def erfc_tail(a: float32) -> tuple[float32, int32]:
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
    t = over * r
    t_low = fma(-t, d_low, fma(-t, d, over)) * r
    v = scaled_erfc(t)
    quotient = QUOTIENT + v
    slope = fma(fma(float32(-0.45), t, ONE), t, float32(-0.8))  # of the quotient, to two digits
    quotient_low = fma(slope, t_low, v - (quotient - QUOTIENT))
    w = quotient * r
    w_low = (fma(-w, d, quotient) + fma(-w, d_low, quotient_low)) * r
    return fma(w, power, fma(w, power_low, w_low * power)), n


def erfinv_f32(x: float32) -> float32:
    """Inverse error function: ``y`` with ``erf(y) = x``; NaN beyond -1 and 1."""
    w = -log_f32(fma(-x, x, ONE))
    y = copysign(fma(x, SLOPE, x * inverse_erf_near(w)), x)
    if w > float32(4.0):
        y = copysign(inverse_erf_tail(w), x)
    return y


def erfcinv_f32(x: float32) -> float32:
    """Inverse complementary error function: ``y`` with ``erfc(y) = x``; NaN outside 0 to 2."""
    u = ONE - x
    small = where(x > ONE, TWO - x, x)
    w = -log_f32(where(small < HALF, small * (TWO - small), fma(-u, u, ONE)))
    bend = inverse_erf_near(w)
    u_low = (ONE - u) - x
    y = fma(u, SLOPE, fma(u, bend, u_low * (SLOPE + bend)))
    if w > float32(4.0):
        y = copysign(inverse_erf_tail(w), u)
    return y


def inverse_erf_tail(w: float32) -> float32:
    """The inverse error function as a function of ``w = -log((1 - x)(1 + x)) >= 4``."""
    s = sqrt(w)
    v = ONE / s
    s_low = fma(-s, s, w) * (HALF * v)
    y = fma(s, FAR_VALUE, fma(s, inverse_erf_far(v - FAR_CENTER), s_low))
    return where(w < INFINITY, y, w)
