"""Arithmetic, comparison and bit operators: primitives on scalars, and by component on vectors and matrices.

Every operation is defined for every input and never traps, also on lanes that do not run:

* integers wrap around;
* ``x / 0``, ``x // 0`` and ``x % 0`` are 0 for integers, and the smallest integer divided by -1 is itself;
* ``/`` on integers truncates towards zero and ``%`` has the sign of the left side, as in C; ``//`` rounds down;
* a shift by a count outside 0 … bits-1 shifts everything out (``>>`` of a negative number leaves -1).
"""

import operator
from collections.abc import Callable

import numpy as np

from ..types.core import INTS, SCALARS, b1, f32, f64
from ..types.core import Scalar as ScalarType
from ..types.promotion import common
from .patterns import AnyScalar, Composite, Int, N, Num, Scalar, Var, Vec
from .registry import builtin

Bits = Var("Bits", (b1, *INTS), parts=True)  # what "and", "or" and "xor" take
IntBits = Var("Bits", INTS, parts=True)  # what shifts and "~" take
SameScalar = Var("Scalar", SCALARS)
Parts = Var("Parts", SCALARS, parts=True)


def quiet(function):
    """``function`` on NumPy scalars without warnings where integers overflow or floats become infinite or NaN."""

    def call(*xs):
        with np.errstate(all="ignore"):
            return function(*xs)

    return call


def is_float(x) -> bool:
    """Whether the NumPy scalar ``x`` is a float."""
    return x.dtype.kind not in "iub"


def wrapped(value: int, like):
    """A Python int as a NumPy integer of ``like``'s type, wrapped around."""
    bits = 8 * like.itemsize
    return np.array(value & ((1 << bits) - 1), dtype=f"u{like.itemsize}").view(like.dtype)[()]


# -- arithmetic --------------------------------------------------------------------------------------------------------


@builtin("operators")
class add:
    """The sum ``a + b``. Integers wrap around.

    >>> wp.add(2, 3)
    5
    """

    def sig(a: Num, b: Num) -> Num: ...

    ref = quiet(lambda a, b: a + b)

    def lower(e, a, b):
        return e.binary("fadd" if e.type.is_float else "add", a, b)

    def adjoint(b, args, result, adj):
        return [adj, adj]


@builtin("operators")
class sub:
    """The difference ``a - b``. Integers wrap around.

    >>> wp.sub(2, 3)
    -1
    """

    def sig(a: Num, b: Num) -> Num: ...

    ref = quiet(lambda a, b: a - b)

    def lower(e, a, b):
        return e.binary("fsub" if e.type.is_float else "sub", a, b)

    def adjoint(b, args, result, adj):
        return [adj, b.neg(adj) if b.wants(1) else None]


@builtin("operators")
class mul:
    """The product ``a * b``. Integers wrap around.

    >>> wp.mul(2.0, 3.0)
    6.0
    """

    def sig(a: Scalar, b: Scalar) -> Scalar: ...

    ref = quiet(lambda a, b: a * b)

    def lower(e, a, b):
        return e.binary("fmul" if e.type.is_float else "mul", a, b)

    def adjoint(b, args, result, adj):
        x, y = args
        return [b.times(adj, y) if b.wants(0) else None, b.times(adj, x) if b.wants(1) else None]


@builtin("operators")
class neg:
    """``-x``. Integers wrap around.

    >>> wp.neg(2.0)
    -2.0
    """

    def sig(x: Num) -> Num: ...

    ref = quiet(lambda x: -x)

    def lower(e, x):
        return e.unary("fneg", x) if e.type.is_float else e.binary("sub", e.const(0), x)

    def adjoint(b, args, result, adj):
        return [b.neg(adj)]


@builtin("operators")
class pos:
    """``+x``: the operand itself.

    >>> wp.pos(2.0)
    2.0
    """

    def sig(x: Num) -> Num: ...

    def emit(b, result, x):
        return x


# -- division ----------------------------------------------------------------------------------------------------------


def _truncated(a, b) -> int:
    """The quotient of two NumPy integers rounded towards zero, as a Python int; ``b`` is not zero."""
    quotient = abs(int(a)) // abs(int(b))
    return quotient if (a < 0) == (b < 0) else -quotient


def quotient(e, a, b, zero):
    """The truncated quotient of integers where the mask ``zero`` (``b == 0``) does not hold, ``a`` where it does.

    SIMD units divide floats, not integers, so up to 32 bits the way leads through a float that holds both operands
    exactly (float32 for 16 bits, float64 for 32). Rounding cannot lift the quotient over a whole number k: a true
    quotient below k is at least 1/b below, and its rounding error is less than a 2⁻²⁴/b (2⁻⁵³/b), which is smaller.
    64-bit division is the processor's own; so is division by a constant, which becomes a multiplication.
    The smallest integer by -1 would overflow: -a is divided by 1 there.
    """
    t: ScalarType = e.type
    if b.const is not None and b.const not in (0, -1):
        return e.binary("sdiv" if t.is_signed else "udiv", a, b)
    one = e.const(1)
    divisor = e.select(zero, one, b)
    if t.is_signed:
        minus = e.icmp("eq", b, e.const(-1))
        a = e.select(minus, e.binary("sub", e.const(0), a), a)
        divisor = e.select(minus, one, divisor)
    if t.bits == 64:
        return e.binary("sdiv" if t.is_signed else "udiv", a, divisor)
    wide = f64 if t.bits == 32 else f32
    ratio = e.of(wide).binary("fdiv", e.cast(a, t, wide), e.cast(divisor, t, wide))
    return e.cast(ratio, wide, t)


def remainder(e, a, b, zero):
    """``a - b * quotient``; ``a`` itself where ``b`` is zero."""
    return e.binary("sub", a, e.binary("mul", b, quotient(e, a, b, zero)))


@builtin("operators")
class div:
    """The quotient ``a / b``. Of integers: rounded towards zero; 0 if ``b`` is 0.

    The derivative is infinite where a float ``b`` is 0.

    >>> wp.div(7, 2)
    3
    """

    unbounded = True

    def sig(a: Scalar, b: Scalar) -> Scalar: ...

    @quiet
    def ref(a, b):
        if is_float(a):
            return a / b
        return wrapped(_truncated(a, b) if b != 0 else 0, a)

    def lower(e, a, b):
        if e.type.is_float:
            return e.binary("fdiv", a, b)
        zero = e.icmp("eq", b, e.const(0))
        return e.select(zero, e.const(0), quotient(e, a, b, zero))

    def adjoint(b, args, result, adj):
        share = b.over(adj, args[1])
        return [share, b.neg(b.times(share, result)) if b.wants(1) else None]


@builtin("operators")
class mod:
    """The remainder ``a - b * (a / b)`` with the sign of ``a``, as in C; 0 if ``b`` is 0.

    >>> wp.mod(-7, 2)
    -1
    """

    def sig(a: Int, b: Int) -> Int: ...

    @quiet
    def ref(a, b):
        return wrapped(int(a) - int(b) * _truncated(a, b) if b != 0 else 0, a)

    def lower(e, a, b):
        zero = e.icmp("eq", b, e.const(0))
        return e.select(zero, e.const(0), remainder(e, a, b, zero))


@builtin("operators")
class floordiv:
    """The quotient ``a // b`` rounded down; 0 if ``b`` is 0.

    >>> wp.floordiv(-7, 2)
    -4
    """

    def sig(a: Int, b: Int) -> Int: ...

    @quiet
    def ref(a, b):
        return wrapped(int(a) // int(b) if b != 0 else 0, a)

    def lower(e, a, b):
        nothing = e.const(0)
        zero = e.icmp("eq", b, nothing)
        q = quotient(e, a, b, zero)
        if e.type.is_signed:  # one less where the remainder is not zero and has not the sign of the divisor
            r = e.binary("sub", a, e.binary("mul", b, q))
            differs = e.icmp("slt", e.binary("xor", r, b), nothing)
            less = e.select(e.icmp("ne", r, nothing), e.binary("sub", q, e.const(1)), q)
            q = e.select(differs, less, q)
        return e.select(zero, nothing, q)


# -- comparison --------------------------------------------------------------------------------------------------------


def _comparison(name: str, symbol: str, meaning: Callable) -> None:
    """Register a comparison of scalars of one type, of scalars of two types, and (``==``, ``!=``) of composites."""

    def lower(e, a, b):
        if e.type.is_float:
            return e.fcmp("une" if name == "ne" else f"o{name}", a, b)
        signed = "" if name in ("eq", "ne") else "s" if e.type.is_signed else "u"
        return e.icmp(signed + name, a, b)

    def sig(a: SameScalar, b: SameScalar) -> b1: ...

    def mixed(a: AnyScalar, b: AnyScalar) -> b1: ...

    def emit_mixed(b, result, x, y):
        wide = common(x.type, y.type)
        return b.one(name, tuple(v if v.type is wide else b.one("cast", (v,), wide) for v in (x, y)), b1)

    def parts(a: Parts, b: Parts) -> b1: ...

    def emit_parts(b, result, x, y):
        """All components equal, or not."""
        join = "bitand" if name == "eq" else "bitor"
        found = [b.one(name, pair, b1) for pair in zip(b.parts(x), b.parts(y), strict=True)]
        out = found[0] if found else b.const(name == "eq", b1)
        for one in found[1:]:
            out = b.one(join, (out, one), b1)
        return out

    doc = f"Whether ``a {symbol} b``. Scalars of different types compare in their common type, as in C."
    builtin("operators", name)(_definition(name, doc, sig=sig, ref=staticmethod(meaning), lower=lower))
    builtin("operators", name)(_definition(name, doc, sig=mixed, emit=emit_mixed))
    if name in ("eq", "ne"):
        builtin("operators", name)(_definition(name, doc, sig=parts, emit=emit_parts))


def _definition(name: str, doc: str, **members) -> type:
    return type(name, (), {"__doc__": doc, "__module__": __name__, **members})


_comparison("eq", "==", operator.eq)
_comparison("ne", "!=", operator.ne)
_comparison("lt", "<", operator.lt)
_comparison("le", "<=", operator.le)
_comparison("gt", ">", operator.gt)
_comparison("ge", ">=", operator.ge)


@builtin("operators")
class logical_not:
    """Whether ``x`` is false or zero.

    >>> wp.unot(True)
    False
    """

    def sig(x: AnyScalar) -> b1: ...

    def ref(x):
        return not x

    def lower(e, x):
        return e.fcmp("oeq", x, e.const(0.0)) if e.type.is_float else e.icmp("eq", x, e.const(0))


# -- bits --------------------------------------------------------------------------------------------------------------


@builtin("operators")
class bitand:
    """``a & b``, bit by bit; of truth values: both.

    >>> wp.bit_and(6, 3)
    2
    """

    def sig(a: Bits, b: Bits) -> Bits: ...

    ref = staticmethod(lambda a, b: a & b)

    def lower(e, a, b):
        return e.binary("and", a, b)


@builtin("operators")
class bitor:
    """``a | b``, bit by bit; of truth values: at least one.

    >>> wp.bit_or(6, 3)
    7
    """

    def sig(a: Bits, b: Bits) -> Bits: ...

    ref = staticmethod(lambda a, b: a | b)

    def lower(e, a, b):
        return e.binary("or", a, b)


@builtin("operators")
class bitxor:
    """``a ^ b``, bit by bit; of truth values: exactly one.

    >>> wp.bit_xor(6, 3)
    5
    """

    def sig(a: Bits, b: Bits) -> Bits: ...

    ref = staticmethod(lambda a, b: a ^ b)

    def lower(e, a, b):
        return e.binary("xor", a, b)


@builtin("operators")
class invert:
    """``~x``: every bit flipped.

    >>> wp.invert(5)
    -6
    """

    def sig(x: IntBits) -> IntBits: ...

    ref = staticmethod(lambda x: ~x)

    def lower(e, x):
        return e.binary("xor", x, e.const(-1))


def _outside(e, count):
    """The mask of shift counts outside 0 … bits-1 (a negative one is a large unsigned one)."""
    return e.icmp("uge", count, e.const(e.type.bits))


@builtin("operators")
class shl:
    """``a << b``: bits moved up; 0 for a count outside 0 … bits-1.

    >>> wp.lshift(3, 2)
    12
    """

    def sig(a: IntBits, b: IntBits) -> IntBits: ...

    def ref(a, b):
        return wrapped(int(a) << int(b) if 0 <= b < 8 * a.itemsize else 0, a)

    def lower(e, a, b):
        far, nothing = _outside(e, b), e.const(0)
        return e.select(far, nothing, e.binary("shl", a, e.select(far, nothing, b)))


@builtin("operators")
class shr:
    """``a >> b``: bits moved down, copies of the sign moved in; 0 or -1 for a count outside 0 … bits-1.

    >>> wp.rshift(-8, 1)
    -4
    """

    def sig(a: IntBits, b: IntBits) -> IntBits: ...

    def ref(a, b):
        bits = 8 * a.itemsize
        return type(a)(int(a) >> (int(b) if 0 <= b < bits else bits))

    def lower(e, a, b):
        far = _outside(e, b)
        if e.type.is_signed:
            return e.binary("ashr", a, e.select(far, e.const(e.type.bits - 1), b))
        return e.select(far, e.const(0), e.binary("lshr", a, e.select(far, e.const(0), b)))


# -- a scalar with a composite -----------------------------------------------------------------------------------------


def spread(b, scalar, like):
    """``scalar`` in every component of a composite of type ``like``."""
    return b.one("make", (scalar,) * like.n, like)


def _with_scalar(name: str, symbol: str, example: str) -> None:
    """Register ``composite symbol scalar`` and ``scalar symbol composite``."""

    def scalar_right(a: Composite(Scalar), b: Scalar) -> Composite(Scalar): ...

    def scalar_left(a: Scalar, b: Composite(Scalar)) -> Composite(Scalar): ...

    def emit(b, result, x, y):
        x, y = (v if v.type is result else spread(b, v, result) for v in (x, y))
        return b.one(name, (x, y), result)

    doc = f"""``a {symbol} b`` for each component of one side and the scalar on the other.

    {example}
    """
    builtin("operators", name)(_definition(name, doc, sig=scalar_right, emit=emit))
    builtin("operators", name)(_definition(name, doc, sig=scalar_left, emit=emit))


_with_scalar("mul", "*", ">>> wp.mul(wp.vec2(1.0, 2.0), 2.0)\n    vec2f([2.0, 4.0])")
_with_scalar("div", "/", ">>> wp.div(wp.vec2(1.0, 2.0), 2.0)\n    vec2f([0.5, 1.0])")


@builtin("operators", "mod")
class mod_components:
    """The remainder of each pair of components.

    >>> wp.mod(wp.vec2i(7, -7), wp.vec2i(2, 2))
    vec2i([1, -1])
    """

    def sig(a: Vec(N, Int), b: Vec(N, Int)) -> Vec(N, Int): ...

    def emit(b, result, x, y):
        return b.one("mod", (x, y), result)
