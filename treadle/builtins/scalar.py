"""Scalar functions with machine instructions of their own: primitives. Those made of others are in ``composed``."""

import math

import numpy as np

from ..types.core import b1, i32
from .operators import quiet
from .patterns import Float, Int, Num
from .registry import builtin


def of_the_chosen(b, first, result, adj):
    """The adjoint goes to ``first`` if that was chosen, which its being the result tells, else to the second."""
    chosen = b.eq(first, result)
    return [b.if_chosen(chosen, adj), b.select(chosen, b.const(0.0, adj.type), adj)]


def nearer_end(e, wins, loses, a, b):
    """``b`` where it ``wins`` against ``a`` or ``a`` is NaN, else ``a``; where one of them is a constant, with one
    comparison. Unless that is zero, whose sign counts, this is what processors have an instruction for."""
    if a.const is not None and a.const == a.const:
        return e.select(e.fcmp(wins, b, a), b, a)
    if b.const is not None and b.const == b.const:
        return e.select(e.fcmp(wins, a, b), a, b) if b.const else e.select(e.fcmp(loses, a, b), b, a)
    return e.select(e.fcmp("uno", a, a), b, e.select(e.fcmp(wins, b, a), b, a))


def without_slope(b, args, result, adj):
    """The adjoint of what is constant between its jumps, whose derivative counts as 0 at those too."""
    return [None] * len(args)


@builtin("scalar math")
class min:
    """The smaller of ``a`` and ``b``; the other one if one is NaN; ``a`` if they are equal. By component on vectors.

    The derivative is that of the one given back.

    >>> wp.min(2.0, 1.0)
    1.0
    """

    chooses = True

    def sig(a: Num, b: Num) -> Num: ...

    def ref(a, b):
        return b if b < a or a != a else a

    def lower(e, a, b):
        if not e.type.is_float:
            return e.select(e.icmp("slt" if e.type.is_signed else "ult", b, a), b, a)
        return nearer_end(e, "olt", "ugt", a, b)

    def adjoint(b, args, result, adj):
        return of_the_chosen(b, args[0], result, adj)


@builtin("scalar math")
class max:
    """The larger of ``a`` and ``b``; the other one if one is NaN; ``a`` if they are equal. By component on vectors.

    The derivative is that of the one given back.

    >>> wp.max(2.0, 1.0)
    2.0
    """

    chooses = True

    def sig(a: Num, b: Num) -> Num: ...

    def ref(a, b):
        return b if b > a or a != a else a

    def lower(e, a, b):
        if not e.type.is_float:
            return e.select(e.icmp("sgt" if e.type.is_signed else "ugt", b, a), b, a)
        return nearer_end(e, "ogt", "ult", a, b)

    def adjoint(b, args, result, adj):
        return of_the_chosen(b, args[0], result, adj)


@builtin("scalar math")
class abs:
    """The absolute value of ``x``, by component on vectors. That of the smallest integer is itself.

    The derivative at 0 is 0.

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

    def adjoint(b, args, result, adj):
        return [b.by_sign(args[0], adj)]


@builtin("scalar math")
class sqrt:
    """The square root of ``x``, correctly rounded; NaN for negative ``x``.

    The derivative at 0, where the slope is infinite, counts as 0; so it does below.

    >>> wp.sqrt(9.0)
    3.0
    """

    def sig(x: Float) -> Float: ...

    ref = staticmethod(quiet(np.sqrt))

    def lower(e, x):
        return e.intrinsic("llvm.sqrt", x)

    def adjoint(b, args, result, adj):
        some = b.gt(result, b.const(0.0, adj.type))
        return [b.div(b.scaled(adj, 0.5), b.select(some, result, b.const(math.inf, adj.type)))]


@builtin("scalar math")
class floor:
    """The largest whole number not above ``x``. Its derivative is 0.

    >>> wp.floor(-1.5)
    -2.0
    """

    def sig(x: Float) -> Float: ...

    ref = staticmethod(np.floor)

    def lower(e, x):
        return e.intrinsic("llvm.floor", x)

    adjoint = staticmethod(without_slope)


@builtin("scalar math")
class ceil:
    """The smallest whole number not below ``x``. Its derivative is 0.

    >>> wp.ceil(1.5)
    2.0
    """

    def sig(x: Float) -> Float: ...

    ref = staticmethod(np.ceil)

    def lower(e, x):
        return e.intrinsic("llvm.ceil", x)

    adjoint = staticmethod(without_slope)


@builtin("scalar math")
class trunc:
    """``x`` without its fraction, rounded towards zero. Its derivative is 0.

    >>> wp.trunc(-1.5)
    -1.0
    """

    def sig(x: Float) -> Float: ...

    ref = staticmethod(np.trunc)

    def lower(e, x):
        return e.intrinsic("llvm.trunc", x)

    adjoint = staticmethod(without_slope)


@builtin("scalar math")
class rint:
    """The whole number nearest to ``x``; of two equally near ones the even. Its derivative is 0.

    >>> wp.rint(2.5)
    2.0
    """

    def sig(x: Float) -> Float: ...

    ref = staticmethod(np.rint)

    def lower(e, x):
        return e.intrinsic("llvm.rint", x)

    adjoint = staticmethod(without_slope)


@builtin("scalar math")
class copysign:
    """``x`` with the sign of ``y``.

    The derivative for ``x`` is 1 or -1, also at the two zeros; that for ``y`` is 0.

    >>> wp.copysign(2.0, -1.0)
    -2.0
    """

    def sig(x: Float, y: Float) -> Float: ...

    ref = staticmethod(np.copysign)

    def lower(e, x, y):
        return e.intrinsic("llvm.copysign", x, y)

    def adjoint(b, args, result, adj):
        x, y = args
        one = b.const(1.0, x.type)
        alike = b.mul(b.copysign(one, x), b.copysign(one, y))
        return [b.select(b.lt(alike, b.const(0.0, x.type)), b.neg(adj), adj), None]


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

    def adjoint(b, args, result, adj):
        x, y, _ = args
        return [b.times(adj, y) if b.wants(0) else None, b.times(adj, x) if b.wants(1) else None, adj]


def fused(a, b, c):
    """``a * b + c`` of NumPy floats of one type, rounded once.

    float64 holds the product of shorter floats exactly. Its sum with ``c`` is rounded to float64 with the last bit odd
    where inexact, which a second rounding, to the shorter type, cannot mistake for a tie (S. Boldo, G. Melquiond,
    "Emulation of FMA and correctly rounded sums", 2008); D. Knuth's two-sum gives the error that says which way.
    """
    kind = type(a)
    if kind is np.float64:
        return kind(_fused_double(float(a), float(b), float(c)))
    x, y = float(a) * float(b), float(c)
    s = x + y
    if math.isfinite(s):
        back = s - x
        error = (x - (s - back)) + (y - back)
        if error and not int(math.frexp(s)[0] * 2.0**53) & 1:
            s = math.nextafter(s, math.inf if error > 0 else -math.inf)
    with np.errstate(all="ignore"):
        return kind(s)


def _fused_double(a: float, b: float, c: float) -> float:
    """``a * b + c`` of float64 rounded once: Python's own from 3.13 on, else by rational arithmetic."""
    if not (math.isfinite(a) and math.isfinite(b)) or a == 0 or b == 0:
        return a * b + c
    if not math.isfinite(c):  # the product is finite, even where float64 cannot hold it
        return c
    try:
        if hasattr(math, "fma"):
            return math.fma(a, b, c)
        from fractions import Fraction  # only the oracle and the folding of constants come here

        exact = Fraction(a) * Fraction(b) + Fraction(c)
        return float(exact) if exact else 0.0
    except OverflowError:
        return math.inf if (a < 0) == (b < 0) else -math.inf


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
