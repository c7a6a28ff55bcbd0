"""``asin``, ``acos``, ``atan`` and ``atan2`` in float64.

``asin`` and ``acos`` use the polynomial for ``|x| <= 1/2`` and ``asin(x) = pi/2 - 2 asin(sqrt((1 - x)/2))`` above,
one evaluation for both. ``atan`` and ``atan2`` divide once, for an angle of at most ``atan(1/2)``.
"""

from .dsl import abs, bitcast, copysign, float64, fma, int64, sqrt, where
from .polynomials_f64 import arcsine, arctangent

HALF_PI = float64(1.5707963267948966)
HALF_PI_LOW = float64(6.123233995736766e-17)
QUARTER_PI = float64(0.7853981633974483)
QUARTER_PI_LOW = float64(3.061616997868383e-17)
PI = float64(3.141592653589793)
PI_LOW = float64(1.2246467991473532e-16)
ZERO = float64(0.0)
HALF = float64(0.5)
ONE = float64(1.0)
TWO = float64(2.0)
INFINITY = float64(float("inf"))


def asin_f64(x: float64) -> float64:
    """Arc sine of ``x``, which is taken as -1 or 1 if it lies beyond."""
    s, bend, far = arcsine_parts(abs(x))
    rest = fma(-TWO, s + (bend - QUARTER_PI_LOW), HALF_PI)
    return copysign(where(far, rest, s + bend), x)


def acos_f64(x: float64) -> float64:
    """Arc cosine of ``x``, which is taken as -1 or 1 if it lies beyond."""
    s, bend, far = arcsine_parts(abs(x))
    negative = x < ZERO
    # pi/2 - asin(x) near 0; 2 asin(s) for x > 1/2; pi - 2 asin(s) for x < -1/2
    base = where(far, where(negative, PI, ZERO), HALF_PI)
    base_low = where(far, where(negative, PI_LOW, ZERO), HALF_PI_LOW)
    factor = where(far, where(negative, -TWO, TWO), where(negative, ONE, -ONE))
    return fma(factor, s, base) + fma(factor, bend, base_low)


def arcsine_parts(a: float64) -> tuple[float64, float64, bool]:
    """``s``, ``bend`` and ``far`` for ``a >= 0``: ``asin(s) = s + bend`` with ``s = a``, or ``sqrt((1 - a)/2)`` if
    ``far``."""
    a = where(a > ONE, ONE, a)
    far = a > HALF
    z = where(far, fma(a, -HALF, HALF), a * a)
    s = where(far, sqrt(z), a)
    return s, (s * z) * arcsine(z), far


def atan_f64(x: float64) -> float64:
    """Arc tangent of ``x``."""
    a = abs(x)
    steep = a > ONE
    return copysign(octant_angle(where(steep, ONE, a), where(steep, a, ONE), steep, False), x)


def atan2_f64(y: float64, x: float64) -> float64:
    """Angle of the point ``(x, y)``, from -pi to pi; signs of zero choose the side of the cut as in C99."""
    a, b = abs(x), abs(y)
    steep = b > a
    large, small = where(steep, b, a), where(steep, a, b)
    # 0/0 counts as 0/1, infinity/infinity as 1/1
    equal = small == INFINITY and large == INFINITY
    shrink = where(large > float64(1e300), float64(0.0625), ONE)  # so that large + small is finite
    large = where(equal, ONE, where(large == ZERO, ONE, large * shrink))
    small = where(equal, ONE, small * shrink)
    return copysign(octant_angle(small, large, steep, bitcast(x, int64) < 0), y)


def octant_angle(small: float64, large: float64, steep: bool, left: bool) -> float64:
    """Angle of ``(large, small)``, ``0 <= small <= large``, from there mirrored at 45 degrees if ``steep``, at 90 if
    ``left``.

    ``atan(small/large)`` is ``pi/4 + atan((small - large)/(small + large))`` for a ratio above 1/2; all multiples of
    ``pi/4`` are counted together and added in two parts, the small one first.
    """
    middle = small > HALF * large
    t = where(middle, small - large, small) / where(middle, small + large, large)
    count = where(middle, ONE, ZERO)
    count = where(steep, TWO - count, count)
    count = where(left, float64(4.0) - count, count)
    t = where(steep == left, t, -t)
    z = t * t
    base = count * QUARTER_PI
    base_low = fma(count, QUARTER_PI_LOW, fma(count, QUARTER_PI, -base))
    return base + (t + fma(t * z, arctangent(z), base_low))
