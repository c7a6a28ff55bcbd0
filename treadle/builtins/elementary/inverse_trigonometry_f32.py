"""``asin``, ``acos``, ``atan`` and ``atan2`` in float32.

``asin`` and ``acos`` use the polynomial for ``|x| <= 1/2`` and ``asin(x) = pi/2 - 2 asin(sqrt((1 - x)/2))`` above,
one evaluation for both. ``atan`` and ``atan2`` divide the smaller side by the larger. Multiples of ``pi/2`` are
added in two parts, the small one first.
"""

from .dsl import abs, bitcast, copysign, float32, fma, int32, sqrt, where
from .polynomials_f32 import arcsine, arctangent

HALF_PI = float32(1.5707963705062866)
HALF_PI_LOW = float32(-4.371138828673793e-08)
QUARTER_PI_LOW = float32(-2.1855694143368964e-08)
PI = float32(3.1415927410125732)
PI_LOW = float32(-8.742277657347586e-08)
ZERO = float32(0.0)
HALF = float32(0.5)
ONE = float32(1.0)
TWO = float32(2.0)
INFINITY = float32(float("inf"))


def asin_f32(x: float32) -> float32:
    """Arc sine of ``x``, which is taken as -1 or 1 if it lies beyond."""
    s, bend, far = arcsine_parts(abs(x))
    rest = fma(-TWO, s + (bend - QUARTER_PI_LOW), HALF_PI)
    return copysign(where(far, rest, s + bend), x)


def acos_f32(x: float32) -> float32:
    """Arc cosine of ``x``, which is taken as -1 or 1 if it lies beyond."""
    s, bend, far = arcsine_parts(abs(x))
    negative = x < ZERO
    # pi/2 - asin(x) near 0; 2 asin(s) for x > 1/2; pi - 2 asin(s) for x < -1/2
    base = where(far, where(negative, PI, ZERO), HALF_PI)
    base_low = where(far, where(negative, PI_LOW, ZERO), HALF_PI_LOW)
    factor = where(far, where(negative, -TWO, TWO), where(negative, ONE, -ONE))
    return fma(factor, s, base) + fma(factor, bend, base_low)


def arcsine_parts(a: float32) -> tuple[float32, float32, bool]:
    """``s``, ``bend`` and ``far`` for ``a >= 0``: ``asin(s) = s + bend`` with ``s = a``, or ``sqrt((1 - a)/2)`` if
    ``far``."""
    a = where(a > ONE, ONE, a)
    far = a > HALF
    z = where(far, fma(a, -HALF, HALF), a * a)
    s = where(far, sqrt(z), a)
    return s, (s * z) * arcsine(z), far


def atan_f32(x: float32) -> float32:
    """Arc tangent of ``x``."""
    a = abs(x)
    steep = a > ONE
    p = arctangent_of(where(steep, ONE, a) / where(steep, a, ONE))
    return copysign(where(steep, HALF_PI - (p - HALF_PI_LOW), p), x)


def atan2_f32(y: float32, x: float32) -> float32:
    """Angle of the point ``(x, y)``, from -pi to pi; signs of zero choose the side of the cut as in C99."""
    a, b = abs(x), abs(y)
    steep = b > a
    large, small = where(steep, b, a), where(steep, a, b)
    # 0/0 counts as 0/1, infinity/infinity as 1/1
    equal = small == INFINITY and large == INFINITY
    p = arctangent_of(where(equal, ONE, small) / where(equal, ONE, where(large == ZERO, ONE, large)))
    left = bitcast(x, int32) < 0
    base = where(steep, HALF_PI, where(left, PI, ZERO))
    base_low = where(steep, HALF_PI_LOW, where(left, PI_LOW, ZERO))
    turn = where(steep == left, p, -p)
    return copysign(base + (turn + base_low), y)


def arctangent_of(q: float32) -> float32:
    """Arc tangent of ``q`` from 0 to 1."""
    z = q * q
    return fma(q * z, arctangent(z), q)
