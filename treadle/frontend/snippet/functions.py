"""Functions of C and of CUDA that the kernel language has no builtin for, as bodies in the kernel language."""

from __future__ import annotations

from collections.abc import Callable

from ...builtins.language import abs, bit_count, exp, log, max, min, pow, sqrt, where  # noqa: A004
from ...types.core import Scalar, u32, u64
from ...types.values import int32


def log1p(x):
    """log(1 + x) without losing small x: Kahan's correction of the rounded sum (Higham, Accuracy and Stability of
    Numerical Algorithms, problem 1.5)."""
    u = x + 1.0
    d = u - 1.0
    return where(d == 0.0, x, where(d == u, log(u), log(u) * (x / d)))


def expm1(x):
    """exp(x) - 1 without losing small x (Higham, section 1.14.1)."""
    u = exp(x)
    d = u - 1.0
    return where(d == 0.0, x, where((d == -1.0) | (d == u), d, d * (x / log(u))))


def exp2(x):
    return pow(type(x)(2.0), x)


def rsqrt(x):
    return 1.0 / sqrt(x)


def hypot(x, y):
    """The greater one is taken out, so that no square overflows."""
    a, b = max(abs(x), abs(y)), min(abs(x), abs(y))
    r = b / where(a == 0.0, type(a)(1.0), a)
    return where(b == a, a * sqrt(type(a)(2.0)), a * sqrt(1.0 + r * r))


def trailing_zeros(x):
    """How many zeros follow the last one: they alone stand below it in x & -x, less 1."""
    return int32(bit_count((x & (~x + type(x)(1))) - type(x)(1)))


def first_set(x):
    return where(x == type(x)(0), 0, trailing_zeros(x) + 1)


def leading_zeros_32(x):
    for k in range(5):
        x = x | (x >> type(x)(1 << k))
    return int32(bit_count(~x))


def leading_zeros_64(x):
    for k in range(6):
        x = x | (x >> type(x)(1 << k))
    return int32(bit_count(~x))


def reversed_32(x):
    """Halves, then quarters, … change places (Warren, Hacker's Delight, section 7-1)."""
    x = (x << type(x)(16)) | (x >> type(x)(16))
    x = ((x & type(x)(0x00FF00FF)) << type(x)(8)) | ((x >> type(x)(8)) & type(x)(0x00FF00FF))
    x = ((x & type(x)(0x0F0F0F0F)) << type(x)(4)) | ((x >> type(x)(4)) & type(x)(0x0F0F0F0F))
    x = ((x & type(x)(0x33333333)) << type(x)(2)) | ((x >> type(x)(2)) & type(x)(0x33333333))
    return ((x & type(x)(0x55555555)) << type(x)(1)) | ((x >> type(x)(1)) & type(x)(0x55555555))


BODIES: dict[str, Callable] = {"log1p": log1p, "expm1": expm1, "exp2": exp2, "rsqrt": rsqrt, "hypot": hypot}

BITS: dict[str, tuple[Callable, Scalar]] = {  # bodies, and the type of which their argument is
    "__builtin_ctz": (trailing_zeros, u32), "__builtin_ctzl": (trailing_zeros, u64),
    "__builtin_ctzll": (trailing_zeros, u64), "__ffs": (first_set, u32), "__ffsll": (first_set, u64),
    "__builtin_ffs": (first_set, u32), "__builtin_ffsll": (first_set, u64),
    "__clz": (leading_zeros_32, u32), "__clzll": (leading_zeros_64, u64), "__builtin_clz": (leading_zeros_32, u32),
    "__builtin_clzll": (leading_zeros_64, u64), "__brev": (reversed_32, u32),
}  # fmt: skip
