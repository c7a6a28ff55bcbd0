"""How many threads a gang has: the processor's vector width, more where latency rules, one where order does."""

from __future__ import annotations

from ..ir.node import Func, Op, Value
from ..ir.walk import callees, captured, ops_of
from ..passes.lanes import Lanes, analyse
from ..types.core import Scalar
from .emit.control import weight

_LOOP_OPS, _KERNEL_OPS = 20, 150
_TEMPORARIES = 4  # registers that a loop's arithmetic needs besides the values it keeps


def gang_width(func: Func, native: int, registers: int, serial: bool) -> int:
    """The gang width for ``func``. ``native``: lanes of a 32-bit vector; ``registers``: how many of them there are.

    Loops that are short chains of dependent arithmetic wait for results most of the time; several vectors a gang fill
    the gaps. It pays while the values that a loop keeps fit the registers. Everything else loses by it. Large kernels
    in float64 take half the lanes: whole vectors of 64 bits, in code of half the size.
    """
    if serial or any(op.name == "print" for f in (func, *callees(func)) for op in ops_of(f.body)):
        return 1
    if native == 1:
        return native
    if native > 2 and _large_and_double(func):
        return native // 2
    kept, factor = _kept_by_short_loops(func), 1
    most = 2 if any(op.name == "push" for op in ops_of(func.body)) else 4  # what is pushed has to be written
    while kept and factor < most and 2 * factor * kept + _TEMPORARIES <= registers:
        factor *= 2
    return min(native * factor, 64)


def _kept_by_short_loops(func: Func) -> int:
    """The largest number of vectors that a loop of ``func`` keeps; 0 unless ``func`` is small and all its loops are
    short and free of branches, and pure but for what an adjoint program pushes there and takes back."""
    ops = [op for op in ops_of(func.body) if op.name != "const"]
    loops = [op for op in ops if op.name in ("for", "while")]
    if not loops or len(ops) > _KERNEL_OPS or not all(_short(loop) for loop in loops):
        return 0
    lanes = analyse(func)
    constants = {r for op in ops_of(func.body) if op.name == "const" for r in op.results}
    return max(_vectors(loop, lanes, constants) for loop in loops)


def _large_and_double(func: Func) -> bool:
    """Whether ``func`` is too large for short loops and computes mostly in 64-bit floats."""
    floats = [r.type for op in ops_of(func.body) for r in op.results if isinstance(r.type, Scalar) and r.type.is_float]
    return len(floats) > _KERNEL_OPS and sum(t.bits == 64 for t in floats) > 0.5 * len(floats)


def _short(loop: Op) -> bool:
    total = weight(loop.regions[0], taped=True)
    return total is not None and total <= _LOOP_OPS


def _vectors(loop: Op, lanes: Lanes, constants: set[Value]) -> int:
    """What ``loop`` carries and what it reads from outside, and its mask; 64-bit values, and views at least, take two
    registers."""
    inside = loop.regions[0].params[1 if loop.name == "for" else 0 :]
    values = {p for p in inside if lanes.steps[p] is None}
    values |= {r for p, r in zip(inside, loop.results) if lanes.steps[p] is not None and lanes.steps[r] is None}
    outside = [v for v in captured(loop) if isinstance(v.type, Scalar) and v not in constants]
    values |= {v for v in outside if lanes.steps[v] is None or v.type.is_float}
    return 1 + sum(1 if isinstance(v.type, Scalar) and v.type.bits < 64 else 2 for v in values)
