"""``exp``, ``sinh``, ``cosh`` and ``tanh`` in float32.

``exp(x) = 2**n (1 + u)`` with ``x = n log(2) + r`` and ``u = exp(r) - 1`` by a polynomial; ``2**n`` is applied by
adding ``n`` to the exponent field. Where the result or ``2**n`` is no normal number, ``exp`` takes an extra path
with two scale factors.
"""

from .dsl import abs, bitcast, copysign, float32, fma, int32, rare, where
from .polynomials_f32 import exponential, hyperbolic_sine, hyperbolic_tangent

LOG2_E = float32(1.4426950216293335)
LN2 = float32(0.6931471824645996)
LN2_LOW = float32(-1.9046542121259336e-09)
ROUNDER = float32(12582912.0)  # 1.5 * 2**23: adding it rounds to an integer and leaves that integer in the low bits
ROUNDER_BITS = int32(0x4B400000)
INFINITY = float32(float("inf"))
ONE = float32(1.0)
NORMAL_LIMIT = float32(87.0)  # up to here exp(x) and exp(-x) are normal numbers
HYPERBOLIC_LIMIT = float32(89.41598510742188)  # the largest x with a finite cosh(x)


def exp_f32(x: float32) -> float32:
    """``e**x``."""
    u, n = exponential_parts(x)
    y = times_power_of_two(ONE + u, n)
    if not (abs(x) <= NORMAL_LIMIT):
        y = exp_at_the_ends(x)
    return y


@rare
def exp_at_the_ends(x: float32) -> float32:
    """``e**x`` where it may be subnormal, zero, infinite or NaN."""
    c = where(x > float32(90.0), float32(90.0), x)
    c = where(c < float32(-105.0), float32(-105.0), c)
    u, n = exponential_parts(c)
    return where(x == x, times_any_power_of_two(ONE + u, n), x)


def exponential_parts(x: float32) -> tuple[float32, int32]:
    """``u`` and an integer whose low bits are ``n``: ``exp(x) = 2**n (1 + u)``."""
    shifted = fma(x, LOG2_E, ROUNDER)
    n = shifted - ROUNDER
    r = fma(n, -LN2_LOW, fma(n, -LN2, x))
    return fma(r * r, exponential(r), r), bitcast(shifted, int32)


def times_power_of_two(y: float32, n: int32) -> float32:
    """``y 2**n`` for normal ``y`` and result, ``n`` as ``exponential_parts`` gives it."""
    return bitcast(bitcast(y, int32) + (n << 23), float32)


def times_any_power_of_two(y: float32, n: int32) -> float32:
    """``y 2**n`` where the result may be subnormal or infinite."""
    n = n - ROUNDER_BITS
    half = n >> 1
    return y * bitcast((half + 127) << 23, float32) * bitcast((n - half + 127) << 23, float32)


def cosh_f32(x: float32) -> float32:
    """Hyperbolic cosine: ``h + 1/(4 h)`` with ``h = exp(|x|)/2``."""
    a = abs(x)
    u, n = exponential_parts(a)
    h = times_power_of_two(ONE + u, n - 1)
    return where(a <= HYPERBOLIC_LIMIT, h + float32(0.25) / h, a + INFINITY)


def sinh_f32(x: float32) -> float32:
    """Hyperbolic sine: ``h - 1/(4 h)`` with ``h = exp(|x|)/2``, a polynomial below 1."""
    a = abs(x)
    u, n = exponential_parts(a)
    h = times_power_of_two(ONE + u, n - 1)
    large = where(a <= HYPERBOLIC_LIMIT, h - float32(0.25) / h, a + INFINITY)
    z = a * a
    small = fma(a * z, hyperbolic_sine(z), a)
    return copysign(where(a > ONE, large, small), x)


def tanh_f32(x: float32) -> float32:
    """Hyperbolic tangent: ``1 - 2/(exp(2 |x|) + 1)``, a polynomial below 0.6."""
    a = abs(x)
    u, n = exponential_parts(where(a > float32(9.5), float32(19.0), a + a))
    large = ONE - float32(2.0) / (times_power_of_two(ONE + u, n) + ONE)
    z = a * a
    small = fma(a * z, hyperbolic_tangent(z), a)
    return copysign(where(a > float32(0.6), large, small), x)
