"""Scalar functions made of others, as bodies in the kernel language."""

import math

from ..types.core import bf16, f16
from ..types.values import float32
from .language import abs, copysign, floor, fma, max, min, mod, trunc, where
from .patterns import Float, N, Scalar, Var, Vec
from .registry import builtin, rule

RADIAN = math.pi / 180.0  # a degree, in radians
DEGREE = 180.0 / math.pi  # a radian, in degrees
STRIDE = 2.0**22  # how far one step of the float remainder goes; a quotient below it is exact in float32

Short = Var("Short", (f16, bf16))


@builtin("scalar math")
class clamp:
    """``x`` limited to ``low`` … ``high``; ``high`` if they cross, ``low`` for NaN.

    The derivative is that of the one given back; of ``x`` where it is equal to a limit.

    >>> wp.clamp(5.0, 0.0, 1.0)
    1.0
    """

    def body(x: Scalar, low: Scalar, high: Scalar) -> Scalar:
        return min(max(x, low), high)


@builtin("scalar math")
class sign:
    """-1 below zero, else 1 (also for zero and NaN).

    >>> wp.sign(-2.0)
    -1.0
    """

    def body(x: Scalar) -> Scalar:
        return where(x < 0, type(x)(-1), type(x)(1))


@builtin("scalar math")
class step:
    """1 below zero, else 0.

    >>> wp.step(-2.0)
    1.0
    """

    def body(x: Scalar) -> Scalar:
        return where(x < 0, type(x)(1), type(x)(0))


@builtin("scalar math")
class nonzero:
    """0 for zero, else 1.

    >>> wp.nonzero(-2.0)
    1.0
    """

    def body(x: Scalar) -> Scalar:
        return where(x == 0, type(x)(0), type(x)(1))


@builtin("scalar math")
class round:
    """The whole number nearest to ``x``; of two equally near ones the one farther from zero.

    >>> wp.round(2.5)
    3.0
    """

    def body(x: Float) -> Float:
        whole = trunc(x)
        return where(abs(x - whole) >= 0.5, whole + copysign(1.0, x), whole)


@builtin("scalar math")
class frac:
    """``x`` less its whole part, with the sign of ``x``.

    >>> wp.frac(-2.5)
    -0.5
    """

    def body(x: Float) -> Float:
        return x - trunc(x)


@builtin("scalar math")
class degrees:
    """An angle in radians as degrees.

    >>> wp.degrees(0.0)
    0.0
    """

    def body(x: Float) -> Float:
        return x * DEGREE


@builtin("scalar math")
class radians:
    """An angle in degrees as radians.

    >>> wp.radians(0.0)
    0.0
    """

    def body(x: Float) -> Float:
        return x * RADIAN


@builtin("utility")
class lerp:
    """``a (1 - t) + b t``: from ``a`` at t = 0 to ``b`` at t = 1.

    >>> wp.lerp(1.0, 3.0, 0.5)
    2.0
    """

    def body(a: Float, b: Float, t: Float) -> Float:
        return a * (1.0 - t) + b * t


@builtin("utility")
class smoothstep:
    """A smooth ramp from 0 at ``a`` to 1 at ``b``: Hermite's cubic ``3t² - 2t³``.

    >>> wp.smoothstep(0.0, 2.0, 1.0)
    0.5
    """

    def body(a: Float, b: Float, x: Float) -> Float:
        t = clamp((x - a) / (b - a), 0.0, 1.0)
        return t * t * (3.0 - 2.0 * t)


@builtin("operators", "floordiv")
class floordiv_float:
    """The quotient rounded down: ``floor(a / b)``.

    >>> wp.floordiv(-7.5, 2.0)
    -4.0
    """

    def body(a: Float, b: Float) -> Float:
        return floor(a / b)


@builtin("operators", "mod")
class mod_short:
    """The remainder of 16-bit floats, found in float32, which holds it exactly.

    >>> wp.mod(wp.float16(7.5), wp.float16(2.0))
    float16(1.5)
    """

    def body(a: Short, b: Short) -> Short:
        return type(a)(mod(float32(a), float32(b)))


@builtin("operators", "mod")
class mod_float:
    """The remainder of division towards zero, with the sign of ``a``, exact as C's ``fmod``; NaN if ``b`` is 0.

    Long division by ``|b|`` times powers of 2²²: each quotient is a small whole number, so that the remainder, a
    multiple of the divisor's last place, is exact with one rounding. A quotient that was rounded up is taken back.

    The derivative for ``b`` is less the whole quotient; the jumps have none.

    >>> wp.mod(-7.5, 2.0)
    -1.5
    """

    adjoint = rule("of_mod")

    def body(a: Float, b: Float) -> Float:
        r = abs(a)
        d = abs(b)
        if not (r < math.inf and d > 0.0):
            return (a * b) / (a * b)
        big = d
        while big * STRIDE <= r:
            big = big * STRIDE
        while big >= d and r >= d:
            r = fma(-trunc(r / big), big, r)
            r = where(r < 0.0, r + big, r)
            big = big / STRIDE
        return copysign(r, a)


@builtin("operators", "mod")
class mod_vectors:
    """The remainder of each pair of components.

    >>> wp.mod(wp.vec2(7.5, -7.5), wp.vec2(2.0, 2.0))
    vec2f([1.5, -1.5])
    """

    def body(a: Vec(N, Float), b: Vec(N, Float)) -> Vec(N, Float):
        for i in range(len(a)):
            a[i] = mod(a[i], b[i])
        return a
