"""``sin``, ``cos`` and ``tan`` in float64; the method is that of ``trigonometry_f32``, the reduced angle kept in two
parts."""

from .dsl import abs, bitcast, float64, fma, int64, rare, uint64, where
from .polynomials_f64 import cosine, sine, tangent

TWO_OVER_PI = float64(0.6366197723675814)
# pi/2 in three parts, each cut, not rounded
HALF_PI_1 = float64(1.5707963267948966)
HALF_PI_2 = float64(6.123233995736765e-17)
HALF_PI_3 = float64(1.0828566739219139e-32)
REDUCTION_LIMIT = float64(134217728.0)  # 2**27
# 1.5 * 2**52: adding it rounds to an integer and leaves that integer in the low bits
ROUNDER = float64(6755399441055744.0)
INFINITY = float64(float("inf"))
ONE = float64(1.0)
SIGN = uint64(0x8000000000000000)
TWO_TO_MINUS_30 = float64(9.313225746154785e-10)
WORD = uint64(0xFFFFFFFF)


def sin_f64(x: float64) -> float64:
    """Sine of ``x``."""
    r, low, q = reduce_f64(abs(x))
    value = where((q & 1) == 0, sine_of(r, low), cosine_of(r, low))
    sign = (bitcast(x, uint64) ^ (q << 62)) & SIGN
    return bitcast(bitcast(value, uint64) ^ sign, float64)


def cos_f64(x: float64) -> float64:
    """Cosine of ``x``."""
    r, low, q = reduce_f64(abs(x))
    value = where((q & 1) == 0, cosine_of(r, low), sine_of(r, low))
    sign = ((q + 1) << 62) & SIGN
    return bitcast(bitcast(value, uint64) ^ sign, float64)


def tan_f64(x: float64) -> float64:
    """Tangent of ``x``: the polynomial, or minus its reciprocal in odd quarter turns, with the tail that rounding
    leaves."""
    r, low, q = reduce_f64(abs(x))
    z = r * r
    bend = fma(r * z, tangent(z), fma(low, z, low))  # low tan'(r), roughly
    t = r + bend
    tail = bend - (t - r)
    y = float64(-1.0) / t
    y = fma(y, fma(y, tail, fma(y, t, ONE)), y)
    value = where((q & 1) == 0, t, y)
    return bitcast(bitcast(value, uint64) ^ (bitcast(x, uint64) & SIGN), float64)


def sine_of(r: float64, low: float64) -> float64:
    """Sine of the reduced angle ``r + low``."""
    z = r * r
    return r + fma(r * z, sine(z), fma(low * z, float64(-0.5), low))


def cosine_of(r: float64, low: float64) -> float64:
    """Cosine of the reduced angle ``r + low``: what rounding takes from ``1 - r*r/2`` is given back with the small
    terms."""
    z = r * r
    top = fma(z, float64(-0.5), ONE)
    rest = fma(z, float64(-0.5), ONE - top)
    return top + fma(z * z, cosine(z), fma(-r, low, rest))


def reduce_f64(a: float64) -> tuple[float64, float64, uint64]:
    """``r``, ``low`` and ``q`` with ``a = n pi/2 + r + low`` for ``a >= 0``; the low two bits of ``q`` are those of
    ``n``."""
    shifted = fma(a, TWO_OVER_PI, ROUNDER)
    n = shifted - ROUNDER
    q = bitcast(shifted, uint64)
    exact = fma(n, -HALF_PI_1, a)
    product = n * HALF_PI_2
    first = exact - product
    part = first - exact  # what was subtracted in fact (D. E. Knuth's sum without error)
    rest = (exact - (first - part)) - (product + part)
    rest = fma(n, -HALF_PI_3, rest - fma(n, HALF_PI_2, -product))
    r = first + rest
    low = rest - (r - first)
    if not (a <= REDUCTION_LIMIT):
        r, low, q = reduce_large_f64(a)
    return r, low, q


@rare
def reduce_large_f64(a: float64) -> tuple[float64, float64, uint64]:
    """The same for any finite ``a > 2**27``; NaN for infinity and NaN."""
    bits = bitcast(a, uint64)
    m = (bits & 0x000FFFFFFFFFFFFF) | 0x0010000000000000
    m0, m1 = m & WORD, m >> 32
    # a = m 2**s. Modulo 4, a 2/pi depends on the bits of 2/pi from the place 2**(1 - s) on; 192 of them are enough.
    # Places are counted here from the first bit of the table, which begins with 27 zeros.
    place = (bits >> 52) - 1050
    w0, w1, w2, w3 = two_over_pi_words(place >> 6)
    shift = place & 63
    back = 63 - shift
    b0 = (w0 << shift) | ((w1 >> 1) >> back)
    b1 = (w1 << shift) | ((w2 >> 1) >> back)
    b2 = (w2 << shift) | ((w3 >> 1) >> back)
    a1, a2, a3, a4 = b0 & WORD, b1 >> 32, b1 & WORD, b2 >> 32
    # the fraction of a whole turn, times 2**128, in words of 32 bits, without carries from below
    p1, p2, p3 = m0 * a1, m0 * a2, m0 * a3
    c2 = (p3 & WORD) + m1 * a4 + ((m0 * a4) >> 32) + ((m1 * (b2 & WORD)) >> 32)
    c3 = (p3 >> 32) + (p2 & WORD) + m1 * a3 + (c2 >> 32)
    c4 = (p2 >> 32) + (p1 & WORD) + m1 * a2 + (c3 >> 32)
    c5 = (p1 >> 32) + m0 * (b0 >> 32) + m1 * a1 + (c4 >> 32)
    high = (c5 << 32) | (c4 & WORD)
    q = (high + 0x2000000000000000) >> 62
    r, low = quarter_turns(bitcast(high - (q << 62), int64), (c3 << 32) | (c2 & WORD))
    return where(a < INFINITY, r, a - a), low, q


def quarter_turns(high: int64, low: uint64) -> tuple[float64, float64]:
    """The angle of ``(high 2**64 + low) / 2**126`` quarter turns in two parts, whatever cancels at the top."""
    a = float64(high >> 32)
    b = float64(high & 0xFFFFFFFF) * float64(2.168404344971009e-19)  # 2**-62
    c = float64(bitcast(low >> 11, int64)) * float64(2.407412430484045e-35)  # 2**-115
    d = float64(bitcast(low & 2047, int64))
    ab = fma(a, TWO_TO_MINUS_30, b)
    top = ab + c
    rest = (c - (top - ab)) + (b - fma(-a, TWO_TO_MINUS_30, ab))
    rest = fma(d, float64(1.1754943508222875e-38), rest)  # 2**-126
    turns = top + rest
    turns_low = rest - (turns - top)
    r = turns * HALF_PI_1
    return r, fma(turns_low, HALF_PI_1, fma(turns, HALF_PI_2, fma(turns, HALF_PI_1, -r)))


def two_over_pi_words(first: uint64) -> tuple[uint64, uint64, uint64, uint64]:
    """Four words of 64 bits of ``2/pi / 2**27`` from word ``first`` (0 to 15) on."""
    w0, w1, w2 = uint64(0x000000145F306DC9), uint64(0xC882A53F84EAFA3E), uint64(0xA69BB81B6C52B327)
    w3, w4, w5 = uint64(0x8872083FCA2C757B), uint64(0xD778AC36E48DC748), uint64(0x49BA5C00C925DD41)
    w6, w7, w8 = uint64(0x3A32439FC3BD6396), uint64(0x2534E7DD1046BEA5), uint64(0xD768909D338E04D6)
    w9, w10, w11 = uint64(0x8BEFC827323AC730), uint64(0x6A673E93908BF177), uint64(0xBF250763FF12FFFB)
    w12, w13, w14 = uint64(0xC0B301FDE5E2316B), uint64(0x414DA3EDA6CFD9E4), uint64(0xF96136E9E8C7ECD3)
    w15, w16, w17 = uint64(0xCBFD45AEA4F758FD), uint64(0x7CBE2F67A0E73EF1), uint64(0x4A525D4D7F6BF623)
    w18 = uint64(0xF1ABA10AC06608DF)
    eight = (first & 8) != 0
    w0, w1, w2 = where(eight, w8, w0), where(eight, w9, w1), where(eight, w10, w2)
    w3, w4, w5 = where(eight, w11, w3), where(eight, w12, w4), where(eight, w13, w5)
    w6, w7, w8 = where(eight, w14, w6), where(eight, w15, w7), where(eight, w16, w8)
    w9, w10 = where(eight, w17, w9), where(eight, w18, w10)
    four = (first & 4) != 0
    w0, w1, w2, w3 = where(four, w4, w0), where(four, w5, w1), where(four, w6, w2), where(four, w7, w3)
    w4, w5, w6 = where(four, w8, w4), where(four, w9, w5), where(four, w10, w6)
    two = (first & 2) != 0
    w0, w1, w2 = where(two, w2, w0), where(two, w3, w1), where(two, w4, w2)
    w3, w4 = where(two, w5, w3), where(two, w6, w4)
    one = (first & 1) != 0
    w0, w1, w2, w3 = where(one, w1, w0), where(one, w2, w1), where(one, w3, w2), where(one, w4, w3)
    return w0, w1, w2, w3
