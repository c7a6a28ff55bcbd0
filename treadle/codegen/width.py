"""How many threads a gang has: the processor's vector width, more where latency rules, one where order does."""

from __future__ import annotations

from ..ir.node import Func, Op
from ..ir.walk import ops_of
from ..types.core import Scalar
from .emit.control import weight

_LOOP_OPS, _KERNEL_OPS = 20, 150


def gang_width(func: Func, native: int, wide_registers: bool, serial: bool) -> int:
    """The gang width for ``func``. ``native``: lanes of a 32-bit vector; ``wide_registers``: there are 32 vector
    registers.

    Loops that are short chains of dependent arithmetic wait for results most of the time; several vectors a gang fill
    the gaps. It pays while their values fit the registers: two vectors with 16 registers, four with 32. Everything else
    loses by it. Large kernels in float64 take half the lanes: whole vectors of 64 bits, in code of half the size.
    """
    if serial or any(op.name == "print" for op in ops_of(func.body)):
        return 1
    if native == 1 or not _latency_bound(func):
        return max(native // 2, 2) if native > 2 and _large_and_double(func) else native
    factor = 4 if wide_registers else 2
    if any(isinstance(r.type, Scalar) and r.type.bits == 64 for op in ops_of(func.body) for r in op.results):
        factor //= 2  # these take twice the registers
    return min(native * factor, 64)


def _latency_bound(func: Func) -> bool:
    """Whether ``func`` is small and all its loops are short, pure and free of branches."""
    ops = [op for op in ops_of(func.body) if op.name != "const"]
    loops = [op for op in ops if op.name in ("for", "while")]
    return bool(loops) and len(ops) <= _KERNEL_OPS and all(_short(loop) for loop in loops)


def _large_and_double(func: Func) -> bool:
    """Whether ``func`` is too large for short loops and computes mostly in 64-bit floats."""
    floats = [r.type for op in ops_of(func.body) for r in op.results if isinstance(r.type, Scalar) and r.type.is_float]
    return len(floats) > _KERNEL_OPS and sum(t.bits == 64 for t in floats) > 0.5 * len(floats)


def _short(loop: Op) -> bool:
    total = weight(loop.regions[0])
    return total is not None and total <= _LOOP_OPS
