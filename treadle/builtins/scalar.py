"""Scalar functions with machine instructions of their own: primitives. Those made of others are in ``composed``."""

import math

import numpy as np

from ..types.core import b1, i32
from .operators import quiet
from .patterns import Float, Int, Num
from .registry import builtin


@builtin("scalar math")
class min:
    """The smaller of ``a`` and ``b``; the other one if one is NaN; ``a`` if they are equal. By component on vectors.

    >>> wp.min(2.0, 1.0)
    1.0
    """

    def sig(a: Num, b: Num) -> Num: ...

    def ref(a, b):
        return b if b < a or a != a else a

    def lower(e, a, b):
        if not e.type.is_float:
            return e.select(e.icmp("slt" if e.type.is_signed else "ult", b, a), b, a)
        smaller = e.select(e.fcmp("olt", b, a), b, a)
        return e.select(e.fcmp("uno", a, a), b, smaller)


@builtin("scalar math")
class max:
    """The larger of ``a`` and ``b``; the other one if one is NaN; ``a`` if they are equal. By component on vectors.

    >>> wp.max(2.0, 1.0)
    2.0
    """

    def sig(a: Num, b: Num) -> Num: ...

    def ref(a, b):
        return b if b > a or a != a else a

    def lower(e, a, b):
        if not e.type.is_float:
            return e.select(e.icmp("sgt" if e.type.is_signed else "ugt", b, a), b, a)
        larger = e.select(e.fcmp("ogt", b, a), b, a)
        return e.select(e.fcmp("uno", a, a), b, larger)


@builtin("scalar math")
class abs:
    """The absolute value of ``x``, by component on vectors. That of the smallest integer is itself.

    >>> wp.abs(-2.0)
    2.0
    """

    def sig(x: Num) -> Num: ...

    ref = staticmethod(quiet(np.abs))

    def lower(e, x):
        if e.type.is_float:
            return e.intrinsic("llvm.fabs", x)
        if not e.type.is_signed:
            return x
        nothing = e.const(0)
        return e.select(e.icmp("slt", x, nothing), e.binary("sub", nothing, x), x)


@builtin("scalar math")
class sqrt:
    """The square root of ``x``, correctly rounded; NaN for negative ``x``.

    >>> wp.sqrt(9.0)
    3.0
    """

    def sig(x: Float) -> Float: ...

    ref = staticmethod(quiet(np.sqrt))

    def lower(e, x):
        return e.intrinsic("llvm.sqrt", x)


@builtin("scalar math")
class floor:
    """The largest whole number not above ``x``.

    >>> wp.floor(-1.5)
    -2.0
    """

    def sig(x: Float) -> Float: ...

    ref = staticmethod(np.floor)

    def lower(e, x):
        return e.intrinsic("llvm.floor", x)


@builtin("scalar math")
class ceil:
    """The smallest whole number not below ``x``.

    >>> wp.ceil(1.5)
    2.0
    """

    def sig(x: Float) -> Float: ...

    ref = staticmethod(np.ceil)

    def lower(e, x):
        return e.intrinsic("llvm.ceil", x)


@builtin("scalar math")
class trunc:
    """``x`` without its fraction, rounded towards zero.

    >>> wp.trunc(-1.5)
    -1.0
    """

    def sig(x: Float) -> Float: ...

    ref = staticmethod(np.trunc)

    def lower(e, x):
        return e.intrinsic("llvm.trunc", x)


@builtin("scalar math")
class rint:
    """The whole number nearest to ``x``; of two equally near ones the even.

    >>> wp.rint(2.5)
    2.0
    """

    def sig(x: Float) -> Float: ...

    ref = staticmethod(np.rint)

    def lower(e, x):
        return e.intrinsic("llvm.rint", x)


@builtin("scalar math")
class copysign:
    """``x`` with the sign of ``y``.

    >>> wp.copysign(2.0, -1.0)
    -2.0
    """

    def sig(x: Float, y: Float) -> Float: ...

    ref = staticmethod(np.copysign)

    def lower(e, x, y):
        return e.intrinsic("llvm.copysign", x, y)


@builtin("scalar math")
class fma:
    """``a * b + c`` rounded once.

    >>> wp.fma(2.0, 3.0, 1.0)
    7.0
    """

    def sig(a: Float, b: Float, c: Float) -> Float: ...

    def ref(a, b, c):
        return fused(a, b, c)

    def lower(e, a, b, c):
        return e.intrinsic("llvm.fma", a, b, c)


def fused(a, b, c):
    """``a * b + c`` of NumPy floats of one type, rounded once, by exact rational arithmetic."""
    from fractions import Fraction  # only the oracle and the folding of constants come here

    kind = type(a)
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        with np.errstate(all="ignore"):
            return kind(np.float64(a) * np.float64(b) + np.float64(c)) if kind is not np.float64 else _infinite(a, b, c)
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        with np.errstate(all="ignore"):
            return kind(a * b + c) if a == 0 or b == 0 else kind(c - c) if c else kind(0)
    return rounded(exact, kind)


def _infinite(a, b, c):
    """``a * b + c`` of float64 where one of them is infinite or NaN: a product that is finite cannot matter."""
    product = a * b
    return product + c if not (np.isfinite(a) and np.isfinite(b)) else c


def rounded(exact, kind):
    """The Fraction ``exact`` as the nearest NumPy float of type ``kind``.

    Rounded to float64 with the last bit odd where inexact, which a second rounding to fewer bits cannot mistake for a
    tie (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
    """
    from fractions import Fraction

    try:
        near = float(exact)
    except OverflowError:
        return kind(math.inf if exact > 0 else -math.inf)
    if kind is np.float64 or math.isinf(near) or Fraction(near) == exact:
        with np.errstate(all="ignore"):
            return kind(near)
    bits = np.float64(near).view(np.int64)
    if bits & 1 == 0:
        near = math.nextafter(near, math.inf if exact > Fraction(near) else -math.inf)
    with np.errstate(all="ignore"):
        return kind(near)


@builtin("scalar math")
class isnan:
    """Whether ``x`` is NaN.

    >>> wp.isnan(1.0)
    False
    """

    def sig(x: Float) -> b1: ...

    ref = staticmethod(np.isnan)

    def lower(e, x):
        return e.fcmp("uno", x, x)


@builtin("scalar math")
class isinf:
    """Whether ``x`` is infinite.

    >>> wp.isinf(1.0)
    False
    """

    def sig(x: Float) -> b1: ...

    ref = staticmethod(np.isinf)

    def lower(e, x):
        return e.fcmp("oeq", e.intrinsic("llvm.fabs", x), e.const(math.inf))


@builtin("scalar math")
class isfinite:
    """Whether ``x`` is neither infinite nor NaN.

    >>> wp.isfinite(1.0)
    True
    """

    def sig(x: Float) -> b1: ...

    ref = staticmethod(np.isfinite)

    def lower(e, x):
        return e.fcmp("olt", e.intrinsic("llvm.fabs", x), e.const(math.inf))


@builtin("scalar math")
class popcount:
    """The number of bits set in ``x``, as an int32.

    >>> wp.bit_count(7)
    3
    """

    def sig(x: Int) -> i32: ...

    def ref(x):
        return np.int32((int(x) & ((1 << 8 * x.itemsize) - 1)).bit_count())

    def lower(e, x):
        return e.cast(e.intrinsic("llvm.ctpop", x), e.type, i32)
