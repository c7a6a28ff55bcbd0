"""Which operand types go together: the rules for literals and for comparisons, in one place.

The language converts nothing in silence, with two exceptions.

* A **literal** (a number written in the kernel, or a Python number from outside it) takes the type its partners ask
  for: an int literal becomes any integer type that can hold it, or any float type; a float literal any float type; a
  truth value stays one. To an int32 or int64 a literal such as ``0x9E3779B9`` gives its bits. Alone, an int literal is
  an int32 (int64 or uint64 where int32 is too narrow), a float literal a float32.
* **Comparisons** of two scalars of different types compare in C's common type of the two.
"""

from __future__ import annotations

from .core import Scalar, Type, b1, f32, i32, i64, u32, u64


def literal_type(value: bool | int | float) -> Scalar:
    """The type of a literal that stands alone."""
    if isinstance(value, bool):
        return b1
    if isinstance(value, int):
        return next((t for t in (i32, i64, u64) if fits(value, t)), i64)
    return f32


def fits(value: int, t: Scalar) -> bool:
    """Whether the integer type ``t`` can hold ``value``."""
    low, high = limits(t)
    return low <= value <= high


def in_bits(value: int, t: Scalar) -> int | None:
    """The number of integer type ``t`` that has the bits of ``value``: itself if it fits, -1 for 0xFFFFFFFF as an int32
    and the other way round as a uint32; None where there are more bits than ``t`` has."""
    low, high = limits(t)
    if low <= value <= high:
        return value
    modulus = 1 << t.bits
    return (value - low) % modulus + low if -modulus // 2 <= value < modulus else None


def limits(t: Scalar) -> tuple[int, int]:
    """The smallest and largest value of an integer type."""
    if t.is_signed:
        return -(1 << t.bits - 1), (1 << t.bits - 1) - 1
    return 0, (1 << t.bits) - 1


def adapts(value: object, t: Type | None) -> bool:
    """Whether the literal ``value`` may stand where a ``t`` is wanted."""
    if not isinstance(t, Scalar):
        return False
    if isinstance(value, bool):
        return t is b1
    if isinstance(value, int):
        return t.is_float or (t.is_int and (fits(value, t) or (t in (i32, i64) and 0 <= value < 1 << t.bits)))
    return isinstance(value, float) and t.is_float


def common(a: Scalar, b: Scalar) -> Scalar:
    """C's common type of two scalars: floats win over integers, wide over narrow, unsigned over signed of one width."""
    if a is b:
        return a
    if a.is_float or b.is_float:
        if a.is_float and b.is_float:
            return max(a, b, key=lambda t: t.bits) if a.bits != b.bits else f32  # float16 with bfloat16
        return a if a.is_float else b
    a, b = (i32 if t.bits < 32 else t for t in (a, b))
    if a.bits != b.bits:
        return max(a, b, key=lambda t: t.bits)
    return a if a is b else {32: u32, 64: u64}[a.bits]


def working(t: Scalar) -> Scalar:
    """The type in which functions of ``t`` are computed: 16-bit floats work in float32."""
    return f32 if t.is_float and t.bits == 16 else t


__all__ = ["adapts", "common", "fits", "limits", "literal_type", "working"]
