"""Sums of floats whose order does not matter: an accumulator holds every sum of float32 or float64 exactly.

An accumulator is a row of 64-bit integers, the *limbs*: limb j counts multiples of 2^(32 j) times the smallest positive
float. A float has its digits in two neighbouring limbs (float64: three), 32 bits of them in each, so a limb overflows
after 2^31 additions at the earliest. Integer additions commute, and so the hardware may do them in any order. The word
behind the limbs notes what is not finite. This is Kulisch's long accumulator (Kulisch, Miranker: Computer Arithmetic in
Theory and Practice, 1981), with carries put off until the end (Neal: Fast exact summation using small and large
superaccumulators, 2015).

At the end each accumulator, with the old value added to it, is rounded once, to the nearest float, ties to even.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...types.core import Scalar, f32
from ..emit.text import register
from ..native.text import Code
from .parts import in_global
from .way import LIMBS

LOW = (1 << 32) - 1
POSITIVE, NEGATIVE, NAN = 1, 2, 4  # bits of the word for what is not finite
_ATOMIC = 'syncscope("device") monotonic, align 8'


@dataclass(frozen=True, slots=True)
class Format:
    """How a float lies in its bits. ``unit``: the exponent of the smallest positive one. ``parts``: limbs that the
    digits of one reach over."""

    type: Scalar
    digits: int
    bias: int
    parts: int

    @property
    def bits(self) -> str:
        return f"i{self.type.bits}"

    @property
    def exponents(self) -> int:
        return (1 << self.type.bits - 1 - self.digits) - 1

    @property
    def unit(self) -> int:
        return 1 - self.bias - self.digits


def format_of(t: Scalar) -> Format:
    """The format of float32 or float64."""
    return Format(t, 23, 127, 2) if t is f32 else Format(t, 52, 1023, 3)


def name_of(t: Scalar, what: str) -> str:
    """The name of the helper that does ``what``, add or round, for floats of type ``t``."""
    return f"@treadle_{what}_{t.name}"


def add(t: Scalar) -> str:
    """``void @treadle_add_T(ptr accumulator, T x)``."""
    f, limbs = format_of(t), LIMBS[t]
    c = Code(name_of(t, "add")[1:], "void", [("ptr", "at"), (register(t), "x")], "internal")
    bits = c.cast("bitcast", register(t), "%x", f.bits)
    negative = c.op("icmp slt", f.bits, bits, 0)
    exponent = c.op("and", f.bits, c.op("lshr", f.bits, bits, f.digits), f.exponents)
    fraction = c.op("and", f.bits, bits, (1 << f.digits) - 1)
    with c.if_(c.op("icmp eq", f.bits, exponent, f.exponents)):
        signed = c.select(negative, "i64", NEGATIVE, POSITIVE)
        flag = c.select(c.op("icmp ne", f.bits, fraction, 0), "i64", NAN, signed)
        c.line(f"atomicrmw or ptr addrspace(1) {in_global(c.value, c.at('%at', 8 * limbs))}, i64 {flag} {_ATOMIC}")
        c.ret()
    subnormal = c.op("icmp eq", f.bits, exponent, 0)
    whole = c.op("or", f.bits, fraction, c.select(subnormal, f.bits, 0, 1 << f.digits))
    # Digits times 2^place units; subnormal numbers have those of the smallest normal ones.
    place = c.select(subnormal, f.bits, 0, c.op("sub", f.bits, exponent, 1))
    limb, shift = c.op("lshr", f.bits, place, 5), c.op("and", f.bits, place, 31)
    wide = f"i{32 * f.parts}"
    moved = c.op("shl", wide, _resized(c, f.bits, whole, wide), _resized(c, f.bits, shift, wide))
    first = c.at("%at", c.op("shl", "i64", _resized(c, f.bits, limb, "i64"), 3))
    for k in range(f.parts):
        part = c.op("and", wide, c.op("lshr", wide, moved, 32 * k), LOW)
        part = _resized(c, wide, part, "i64")
        with c.if_(c.op("icmp ne", "i64", part, 0)):
            amount = c.select(negative, "i64", c.op("sub", "i64", 0, part), part)
            c.line(f"atomicrmw add ptr addrspace(1) {in_global(c.value, c.at(first, 8 * k))}, i64 {amount} {_ATOMIC}")
    return c.text()


def _resized(c: Code, source: str, x: str, to: str) -> str:
    a, b = int(source[1:]), int(to[1:])
    return x if a == b else c.cast("zext" if b > a else "trunc", source, x, to)


def round_(t: Scalar) -> str:
    """``void @treadle_round_T(ptr accumulator, ptr target)``: add what has been accumulated to ``*target``."""
    f, limbs = format_of(t), LIMBS[t]
    kind = register(t)
    c = Code(name_of(t, "round")[1:], "void", [("ptr", "at"), ("ptr", "target")], "internal")
    seen = c.var("i64", 0)
    with c.for_(limbs + 1) as j:
        seen.set(c.op("or", "i64", seen.get(), c.load("i64", "%at", c.op("shl", "i64", j, 3))))
    with c.if_(c.op("icmp eq", "i64", seen.get(), 0)):
        c.ret()
    old = c.value(f"load {kind}, ptr %target, align {t.size}")
    c.call("void", name_of(t, "add"), ("ptr", "%at"), (kind, old))
    flags = c.load("i64", "%at", 8 * limbs)
    with c.if_(c.op("icmp ne", "i64", flags, 0)):
        _store_special(c, t, flags)
        c.ret()
    negative, top = _carried(c, limbs)
    _store_rounded(c, f, limbs, negative, top)
    return c.text()


def _store_special(c: Code, t: Scalar, flags: str) -> None:
    kind, inf, nan = register(t), "0x7FF0000000000000", "0x7FF8000000000000"
    both = c.op("icmp eq", "i64", c.op("and", "i64", flags, POSITIVE | NEGATIVE), POSITIVE | NEGATIVE)
    none = c.op("or", "i1", both, c.op("icmp uge", "i64", flags, NAN))
    minus = c.op("icmp ne", "i64", c.op("and", "i64", flags, NEGATIVE), 0)
    signed = c.select(minus, kind, f"0xFFF{inf[5:]}", inf)
    c.line(f"store {kind} {c.select(none, kind, nan, signed)}, ptr %target, align {t.size}")


def _carried(c: Code, limbs: int) -> tuple[str, str]:
    """Make digits to the base 2^32 of the limbs, of the sum's amount; whether the sum is negative, and the digit above
    the last limb."""
    carry = c.var("i64", 0)
    with c.for_(limbs) as j:
        place = c.op("shl", "i64", j, 3)
        sum_ = c.op("add", "i64", c.load("i64", "%at", place), carry.get())
        c.store("i64", c.op("and", "i64", sum_, LOW), "%at", place)
        carry.set(c.op("ashr", "i64", sum_, 32))
    negative = c.op("icmp slt", "i64", carry.get(), 0)
    with c.if_(negative):  # two's complement
        more = c.var("i64", 1)
        with c.for_(limbs) as j:
            place = c.op("shl", "i64", j, 3)
            flipped = c.op("xor", "i64", c.load("i64", "%at", place), LOW)
            sum_ = c.op("add", "i64", flipped, more.get())
            c.store("i64", c.op("and", "i64", sum_, LOW), "%at", place)
            more.set(c.op("lshr", "i64", sum_, 32))
        carry.set(c.op("add", "i64", c.op("xor", "i64", carry.get(), -1), more.get()))
    return negative, carry.get()


def _store_rounded(c: Code, f: Format, limbs: int, negative: str, top: str) -> None:
    """The first three digits that are not zero give 64 bits; whether there is more below them goes into the last, which
    rounding does not keep but looks at."""
    kind = register(f.type)
    parts = [c.var("i64", 0) for _ in range(3)]
    rest, found, last = c.var("i64", 0), c.var("i64", 0), c.var("i64", 0)

    def take(digit: str, number: str) -> None:
        begun = c.op("icmp ne", "i64", c.op("or", "i64", found.get(), digit), 0)
        with c.if_(begun):
            for k, part in enumerate(parts):
                here = c.op("icmp eq", "i64", found.get(), k)
                part.set(c.select(here, "i64", digit, part.get()))
            beyond = c.op("icmp sge", "i64", found.get(), 3)
            rest.set(c.op("or", "i64", rest.get(), c.select(beyond, "i64", digit, 0)))
            last.set(c.select(c.op("icmp eq", "i64", found.get(), 0), "i64", number, last.get()))
            found.set(c.op("add", "i64", found.get(), 1))

    take(top, str(limbs))
    with c.for_(limbs) as j:
        number = c.op("sub", "i64", limbs - 1, j)
        take(c.load("i64", "%at", c.op("shl", "i64", number, 3)), number)
    with c.if_(c.op("icmp eq", "i64", found.get(), 0)):
        c.line(f"store {kind} 0.0, ptr %target, align {f.type.size}")
        c.ret()
    a, b, d = [part.get() for part in parts]
    zeros = c.op("sub", "i64", c.value(f"call i64 @llvm.ctlz.i64(i64 {a}, i1 true)"), 32)
    high = c.op("shl", "i64", c.op("or", "i64", c.op("shl", "i64", a, 32), b), zeros)
    low = c.op("shl", "i64", d, zeros)
    whole = c.op("or", "i64", high, c.op("lshr", "i64", low, 32))
    below = c.op("or", "i64", c.op("and", "i64", low, LOW), rest.get())
    whole = c.op("or", "i64", whole, c.cast("zext", "i1", c.op("icmp ne", "i64", below, 0), "i64"))
    # whole · 2^(32·(last - 1) - zeros) units; in float64, in two steps, as one power of two would not do for it.
    power = c.op("sub", "i64", c.op("shl", "i64", c.op("sub", "i64", last.get(), 1), 5), zeros)
    power = c.op("add", "i64", power, f.unit)
    x = c.cast("uitofp", "i64", whole, kind)
    x = x if kind == "double" else c.cast("fpext", kind, x, "double")
    half = c.op("ashr", "i64", power, 1)
    for step in (half, c.op("sub", "i64", power, half)):
        scale = c.cast("bitcast", "i64", c.op("shl", "i64", c.op("add", "i64", step, 1023), 52), "double")
        x = c.op("fmul", "double", x, scale)
    x = x if kind == "double" else c.cast("fptrunc", "double", x, kind)
    x = c.select(negative, kind, c.value(f"fneg {kind} {x}"), x)
    c.line(f"store {kind} {x}, ptr %target, align {f.type.size}")
