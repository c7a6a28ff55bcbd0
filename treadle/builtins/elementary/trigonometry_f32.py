"""``sin``, ``cos`` and ``tan`` in float32.

The argument is reduced to a quarter turn, ``x = n pi/2 + r`` with ``|r| <= pi/4``. Up to ``REDUCTION_LIMIT`` this
takes three ``fma`` with the parts of ``pi/2`` (W. J. Cody and W. Waite, "Software Manual for the Elementary
Functions", 1980): ``n`` times the first part is subtracted without error, and ``fma`` does not round the other
products. Beyond it, where cancellation would eat the digits, the bits of ``2/pi`` that matter are multiplied by the
significand in integers (M. Payne and R. Hanek, "Radian reduction for trigonometric functions", 1983); that code
stands in an ``if`` and costs nothing where no lane needs it.

Signs are taken off first and put back last, so that -0.0 keeps its sign.
"""

from .dsl import abs, bitcast, float32, float64, fma, int64, rare, uint32, uint64, where
from .polynomials_f32 import cosine, sine, tangent

TWO_OVER_PI = float32(0.6366197466850281)
# pi/2 in three parts, each cut, not rounded
HALF_PI_1 = float32(1.570796251296997)
HALF_PI_2 = float32(7.549789415861596e-08)
HALF_PI_3 = float32(5.390302529957765e-15)
REDUCTION_LIMIT = float32(65536.0)
ROUNDER = float32(12582912.0)  # 1.5 * 2**23: adding it rounds to an integer and leaves that integer in the low bits
HALF_PI_BY_2_62 = float64(3.4061215800865545e-19)  # pi/2 / 2**62
INFINITY = float32(float("inf"))
SIGN = uint32(0x80000000)


def sin_f32(x: float32) -> float32:
    """Sine of ``x``."""
    r, q = reduce_f32(abs(x))
    z = r * r
    value = where((q & 1) == 0, sine_of(r, z), cosine_of(z))
    sign = (bitcast(x, uint32) ^ (q << 30)) & SIGN
    return bitcast(bitcast(value, uint32) ^ sign, float32)


def cos_f32(x: float32) -> float32:
    """Cosine of ``x``."""
    r, q = reduce_f32(abs(x))
    z = r * r
    value = where((q & 1) == 0, cosine_of(z), sine_of(r, z))
    sign = ((q + 1) << 30) & SIGN
    return bitcast(bitcast(value, uint32) ^ sign, float32)


def tan_f32(x: float32) -> float32:
    """Tangent of ``x``: the polynomial, or minus its reciprocal in odd quarter turns, with the tail that rounding
    leaves."""
    r, low, q = reduce_with_tail_f32(abs(x))
    z = r * r
    bend = fma(r * z, tangent(z), fma(low, z, low))  # low tan'(r), roughly
    t = r + bend
    tail = bend - (t - r)
    y = float32(-1.0) / t
    y = fma(y, fma(y, tail, fma(y, t, float32(1.0))), y)
    value = where((q & 1) == 0, t, y)
    return bitcast(bitcast(value, uint32) ^ (bitcast(x, uint32) & SIGN), float32)


def sine_of(r: float32, z: float32) -> float32:
    """Sine of the reduced angle ``r``, ``z = r*r``."""
    return fma(r * z, sine(z), r)


def cosine_of(z: float32) -> float32:
    """Cosine of the reduced angle whose square is ``z``."""
    return fma(z, fma(z, cosine(z), float32(-0.5)), float32(1.0))


def reduce_f32(a: float32) -> tuple[float32, uint32]:
    """``r`` and ``q`` with ``a = n pi/2 + r`` for ``a >= 0``; the low two bits of ``q`` are those of ``n``."""
    shifted = fma(a, TWO_OVER_PI, ROUNDER)
    n = shifted - ROUNDER
    q = bitcast(shifted, uint32)
    r = fma(n, -HALF_PI_3, fma(n, -HALF_PI_2, fma(n, -HALF_PI_1, a)))
    if not (a <= REDUCTION_LIMIT):
        r, low, q = reduce_large_f32(a)
    return r, q


def reduce_with_tail_f32(a: float32) -> tuple[float32, float32, uint32]:
    """``r``, ``low`` and ``q``: as ``reduce_f32``, and what the rounding of ``r`` has lost."""
    shifted = fma(a, TWO_OVER_PI, ROUNDER)
    n = shifted - ROUNDER
    q = bitcast(shifted, uint32)
    exact = fma(n, -HALF_PI_1, a)
    product = n * HALF_PI_2
    r = exact - product
    low = ((exact - r) - product) - fma(n, HALF_PI_2, -product)
    low = fma(n, -HALF_PI_3, low)
    if not (a <= REDUCTION_LIMIT):
        r, low, q = reduce_large_f32(a)
    return r, low, q


@rare
def reduce_large_f32(a: float32) -> tuple[float32, float32, uint32]:
    """``r``, ``low`` and ``q`` for any finite ``a >= 1``; NaN for infinity and NaN."""
    bits = bitcast(a, uint32)
    m = uint64((bits & 0x7FFFFF) | 0x800000)
    # a = m 2**s. Modulo 4, a 2/pi depends on the bits of 2/pi from the place 2**(1 - s) on; 96 of them are enough.
    # Places are counted here from the first bit of the table, which begins with a word of zeros.
    place = (bits >> 23) - 120
    shift = uint64(place & 31)
    w0, w1, w2, w3 = two_over_pi_words(place >> 5)
    high = (((w0 << 32) | w1) << shift) >> 32
    middle = (((w1 << 32) | w2) << shift) >> 32
    little = (((w2 << 32) | w3) << shift) >> 32
    turn = ((m * high) << 32) + m * middle + ((m * little) >> 32)  # the fraction of a whole turn, times 2**64
    q = (turn + 0x2000000000000000) >> 62
    angle = float64(bitcast(turn - (q << 62), int64)) * HALF_PI_BY_2_62
    r = float32(angle)
    low = float32(angle - float64(r))
    return where(a < INFINITY, r, a - a), low, uint32(q)


def two_over_pi_words(first: uint32) -> tuple[uint64, uint64, uint64, uint64]:
    """Four words of 32 bits of 2/pi from word ``first`` (0 to 4) on; word 0 is zero."""
    w0, w1, w2, w3 = uint64(0), uint64(0xA2F9836E), uint64(0x4E441529), uint64(0xFC2757D1)
    w4, w5, w6, w7 = uint64(0xF534DDC0), uint64(0xDB629599), uint64(0x3C439041), uint64(0xFE5163AB)
    four = (first & 4) != 0
    w0, w1, w2, w3 = where(four, w4, w0), where(four, w5, w1), where(four, w6, w2), where(four, w7, w3)
    two = (first & 2) != 0
    w0, w1, w2 = where(two, w2, w0), where(two, w3, w1), where(two, w4, w2)
    w3, w4 = where(two, w5, w3), where(two, w6, w4)
    one = (first & 1) != 0
    return where(one, w1, w0), where(one, w2, w1), where(one, w3, w2), where(one, w4, w3)
