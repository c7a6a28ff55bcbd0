"""What the lowering of a scalar primitive writes with: the same calls make scalar or vector code."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from ...builtins.registry import primitive
from ...types.core import Scalar, b1, bf16, f16, f32, f64, i32
from .text import constant, memory, register, vector
from .values import X

if TYPE_CHECKING:
    from .emitter import Emitter


class Lower:
    """``type``: of the first operand; ``result_type``: of the result. ``scalar``: one value for the gang, else one a
    lane.

    float16 and bfloat16 are computed in float32 and rounded after each operation.
    """

    __slots__ = ("e", "result_type", "scalar", "type")

    def __init__(self, e: Emitter, type: Scalar, result_type: Scalar, scalar: bool):
        self.e, self.type, self.result_type, self.scalar = e, type, result_type, scalar

    def of(self, type: Scalar) -> Lower:
        """The same for operands of another type."""
        return Lower(self.e, type, self.result_type, self.scalar)

    def operand(self, x: X) -> str:
        return x.text if self.scalar else self.e.wide(x)

    def llvm(self, t: Scalar) -> str:
        return register(t) if self.scalar else vector(register(t), self.e.width)

    def _ins(self, t: Scalar, rhs: str) -> X:
        name = self.e.t.ins(rhs)
        return X(t, name) if self.scalar else X(t, None, name, None)

    # --- what records call

    def const(self, value: bool | int | float) -> X:
        """``value`` in the operand type."""
        return self.const_of(self.type, value)

    def const_of(self, type: Scalar, value: bool | int | float) -> X:
        return X(type, constant(value, type), const=value)

    def binary(self, opcode: str, a: X, b: X) -> X:
        """An LLVM binary instruction on operands of one type."""
        t = a.type
        if t is f16 or t is bf16:
            return self.cast(self.binary(opcode, self.cast(a, t, f32), self.cast(b, t, f32)), f32, t)
        return self._ins(t, f"{opcode} {self.llvm(t)} {self.operand(a)}, {self.operand(b)}")

    def unary(self, opcode: str, a: X) -> X:
        """``fneg``, the only one there is."""
        if a.type is bf16:
            return self._ins(
                bf16, f"xor {self.llvm(bf16)} {self.operand(a)}, {self.operand(self.const_of(bf16, -0.0))}"
            )
        return self._ins(a.type, f"{opcode} {self.llvm(a.type)} {self.operand(a)}")

    def icmp(self, predicate: str, a: X, b: X) -> X:
        return self._ins(b1, f"icmp {predicate} {self.llvm(a.type)} {self.operand(a)}, {self.operand(b)}")

    def fcmp(self, predicate: str, a: X, b: X) -> X:
        if a.type is f16 or a.type is bf16:
            return self.fcmp(predicate, self.cast(a, a.type, f32), self.cast(b, b.type, f32))
        return self._ins(b1, f"fcmp {predicate} {self.llvm(a.type)} {self.operand(a)}, {self.operand(b)}")

    def select(self, c: X, a: X, b: X) -> X:
        t, kind = a.type, self.llvm(a.type)
        return self._ins(
            t, f"select {self.llvm(b1)} {self.operand(c)}, {kind} {self.operand(a)}, {kind} {self.operand(b)}"
        )

    def intrinsic(self, name: str, *xs: X) -> X:
        """``name`` of LLVM on operands of one type, which is the type of its result too."""
        t = xs[0].type
        if t is f16 or t is bf16:
            return self.cast(self.intrinsic(name, *[self.cast(x, t, f32) for x in xs]), f32, t)
        kind = self.llvm(t)
        short = {"float": "f32", "double": "f64"}.get(register(t), register(t))
        full = f"@{name}.{short}" if self.scalar else f"@{name}.v{self.e.width}{short}"
        extra = ", i1 false" if name in _WITH_FLAG else ""
        self.e.t.declare(f"declare {kind} {full}({', '.join([kind] * len(xs))}{', i1' if extra else ''})")
        return self._ins(t, f"call {kind} {full}({', '.join(f'{kind} {self.operand(x)}' for x in xs)}{extra})")

    def bitcast(self, x: X, to: Scalar) -> X:
        """The bits of ``x`` as a value of ``to``, of the same size."""
        if register(x.type) == register(to):
            return self._renamed(x, to)
        return self._ins(to, f"bitcast {self.llvm(x.type)} {self.operand(x)} to {self.llvm(to)}")

    def cast(self, x: X, source: Scalar, to: Scalar) -> X:
        """``x`` converted; a float must fit the integer it becomes (see :meth:`saturate`)."""
        if source is to:
            return x
        if to is b1:
            zero = self.const_of(source, 0)
            return self.fcmp("une", x, zero) if source.is_float else self.icmp("ne", x, zero)
        if source is f16 or source is bf16 or to is f16 or to is bf16:
            return self._cast_short(x, source, to)
        if source.is_float and to.is_float:
            return self._conv("fpext" if to.bits > source.bits else "fptrunc", x, to)
        if source.is_float:
            return self._conv("fptosi" if to.is_signed else "fptoui", x, to)
        if to.is_float:
            return self._conv("sitofp" if source.is_signed else "uitofp", x, to)
        bits = 1 if source is b1 else source.bits
        if bits == to.bits:
            return self._renamed(x, to)
        return self._conv("trunc" if to.bits < bits else "sext" if source.is_signed else "zext", x, to)

    def saturate(self, x: X, to: Scalar) -> X:
        """A float as the nearest integer of type ``to`` towards zero; NaN is 0."""
        if x.type is f16 or x.type is bf16:
            x = self.cast(x, x.type, f32)
        sign = "s" if to.is_signed else "u"
        source, target = self.llvm(x.type), self.llvm(to)
        lanes = "" if self.scalar else f"v{self.e.width}"
        name = f"@llvm.fpto{sign}i.sat.{lanes}i{to.bits}.{lanes}f{x.type.bits}"
        self.e.t.declare(f"declare {target} {name}({source})")
        return self._ins(to, f"call {target} {name}({source} {self.operand(x)})")

    # --- conversions

    def _conv(self, opcode: str, x: X, to: Scalar) -> X:
        return self._ins(to, f"{opcode} {self.llvm(x.type)} {self.operand(x)} to {self.llvm(to)}")

    def _renamed(self, x: X, to: Scalar) -> X:
        if self.scalar:
            return X(to, x.text, const=x.const)
        return X(to, None, self.operand(x), None)

    def _cast_short(self, x: X, source: Scalar, to: Scalar) -> X:
        """Conversions from and to the 16-bit floats, by way of float32."""
        if source is f16:
            return self.cast(self._conv("fpext", x, f32), f32, to)
        if source is bf16:
            up = self._ins(i32, f"zext {self.llvm(bf16)} {self.operand(x)} to {self.llvm(i32)}")
            shifted = self.binary("shl", up, self.const_of(i32, 16))
            return self.cast(self.bitcast(shifted, f32), f32, to)
        if source is f64:
            x = self._to_odd(x)
        elif source is not f32:
            x = self._to_odd(self.cast(x, source, f64))
        if to is f16:
            return self._conv("fptrunc", x, f16)
        return self._to_bfloat(x)

    def _to_odd(self, x: X) -> X:
        """float64 to float32 "to odd": rounding that again to 16 bits gives what one rounding would (Boldo,
        Melquiond 2008)."""
        one, zero = self.const_of(i32, 1), self.const_of(i32, 0)
        near = self._conv("fptrunc", x, f32)
        back = self.intrinsic("llvm.fabs", self._conv("fpext", near, f64))
        size = self.intrinsic("llvm.fabs", x)
        bits = self.bitcast(near, i32)
        above = self.select(self.fcmp("ogt", back, size), one, zero)
        odd = self.binary("or", self.binary("sub", bits, above), one)
        return self.bitcast(self.select(self.fcmp("one", back, size), odd, bits), f32)

    def _to_bfloat(self, x: X) -> X:
        """float32 to bfloat16, ties to even; a NaN stays one."""
        bits = self.bitcast(x, i32)
        high = self.binary("lshr", bits, self.const_of(i32, 16))
        tie = self.binary("and", high, self.const_of(i32, 1))
        up = self.binary("add", self.binary("add", bits, self.const_of(i32, 0x7FFF)), tie)
        quiet = self.binary("or", high, self.const_of(i32, 0x40))
        short = self.select(self.fcmp("uno", x, x), quiet, self.binary("lshr", up, self.const_of(i32, 16)))
        return self._ins(bf16, f"trunc {self.llvm(i32)} {self.operand(short)} to {self.llvm(bf16)}")


_WITH_FLAG = ("llvm.ctlz", "llvm.cttz", "llvm.abs")


@cache
def lowering(name: str) -> Callable[..., X]:
    """How the primitive ``name`` is written: a function of a :class:`Lower` and the operands."""
    return primitive(name).part("lower")


def cast(e: Emitter, x: X, to: Scalar, scalar: bool) -> X:
    """``x`` as the IR's ``cast`` converts it."""
    low = Lower(e, x.type, to, scalar)
    if x.type.is_float and to.is_int:
        return low.saturate(x, to)
    return low.cast(x, x.type, to)


def from_memory(e: Emitter, name: str, t: Scalar, scalar: bool) -> X:
    """What was loaded as the memory type of ``t``, as a register value."""
    if t.kind == "b":
        kind = memory(t) if scalar else vector(memory(t), e.width)
        name = e.t.ins(f"icmp ne {kind} {name}, {'0' if scalar else 'zeroinitializer'}")
    return X(t, name) if scalar else X(t, None, name, None)


def to_memory(e: Emitter, x: X, scalar: bool) -> str:
    """The operand of ``x`` in the memory type."""
    text = x.text if scalar else e.wide(x)
    if x.type.kind == "b":
        source, target = ("i1", "i8") if scalar else (vector("i1", e.width), vector("i8", e.width))
        return e.t.ins(f"zext {source} {text} to {target}")
    return text
