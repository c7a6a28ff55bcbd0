"""What is known while compiling is computed while compiling."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..builtins.registry import primitive
from ..ir.node import Func, Op, Value
from ..ir.ops import OPS, STRUCTURAL
from ..ir.scalars import boxed, converted, dtype_of, plain
from ..ir.walk import ops_of
from ..types.core import Scalar, b1
from .rewrite import Rewriter, Rule, rewrite

__all__ = ["fold", "folding"]


def fold(func: Func) -> Func:
    """Compute ops whose arguments are constants, by their meaning on the host; drop what changes no bit.

    An identity on floats is used only if it is exact for every value: ``x*1``, ``x-0``, ``x/8`` as ``x*0.125``;
    neither ``x*0`` (NaN, signs) nor ``x+0`` (-0.0). A NaN may become another NaN.
    """
    with np.errstate(all="ignore"):
        return rewrite(func, folding(func))


def folding(func: Func) -> dict[str, Rule]:
    """The rules of this pass, those for all primitives of ``func`` among them."""
    for name in {op.name for op in ops_of(func.body)} - _RULES.keys() - STRUCTURAL:
        if OPS[name].pure:
            _RULES[name] = _primitive(name)
    return _RULES


Identity = Callable[[Rewriter, Op, list[Any]], "Value | None"]


def _primitive(name: str) -> Rule:
    meaning, identity = primitive(name).part("ref"), _IDENTITIES.get(name)

    def rule(rw: Rewriter, op: Op) -> tuple[Value, ...] | None:
        t = op.results[0].type
        if t.__class__ is not Scalar:
            return None
        consts = rw.consts
        if consts.keys().isdisjoint(op.args):
            value = identity(rw, op, [None] * len(op.args)) if name in _WITHOUT_CONSTANTS else None
            return None if value is None else (value,)
        known = [consts.get(a) for a in op.args]
        if None not in known:
            value = meaning(*[boxed(k, a.type) for k, a in zip(known, op.args)])
            return (rw.const(plain(boxed(value, t)), t),)
        value = identity(rw, op, known) if identity is not None else None
        return None if value is None else (value,)

    return rule


def _cast(rw: Rewriter, op: Op) -> tuple[Value, ...] | None:
    (x,), t = op.args, op.result.type
    if x.type is t:
        return (x,)
    value = rw.consts.get(x)
    if value is None or not isinstance(t, Scalar):
        return None
    return (rw.const(plain(converted(boxed(value, x.type), t)), t),)


def _bitcast(rw: Rewriter, op: Op) -> tuple[Value, ...] | None:
    (x,), t = op.args, op.result.type
    if x.type is t:
        return (x,)
    value = rw.consts.get(x)
    if value is None or 16 in (x.type.bits, t.bits):  # NumPy holds a bfloat16 in more bits
        return None
    return (rw.const(plain(boxed(value, x.type).view(dtype_of(t))), t),)


_RULES: dict[str, Rule] = {"cast": _cast, "bitcast": _bitcast}  # those of primitives come as they are met

# Each identity below gives the value an op is sure to have, or None. ``known`` are its constant arguments.


def _add(rw: Rewriter, op: Op, known: list[Any]) -> Value | None:
    for k, other in ((known[0], op.args[1]), (known[1], op.args[0])):
        if k is not None and k == 0 and (type(k) is int or math.copysign(1.0, k) < 0):  # x + -0.0 is x for every x
            return other
    return None


def _sub(rw: Rewriter, op: Op, known: list[Any]) -> Value | None:
    a, b = op.args
    k = known[1]
    if k is not None and k == 0 and (type(k) is int or math.copysign(1.0, k) > 0):
        return a
    return rw.const(0, a.type) if a is b and a.type.is_int else None


def _mul(rw: Rewriter, op: Op, known: list[Any]) -> Value | None:
    for k, other in ((known[0], op.args[1]), (known[1], op.args[0])):
        if k is None or other.type is not op.result.type:
            continue
        if k == 1:
            return other
        if k == 0 and type(k) is int:
            return rw.const(0, other.type)
    return None


def _div(rw: Rewriter, op: Op, known: list[Any]) -> Value | None:
    a, k = op.args[0], known[1]
    if k is None or a.type is not op.result.type:
        return None
    if k == 1:
        return a
    if type(k) is not float or not math.isfinite(k) or math.frexp(k)[0] not in (0.5, -0.5):
        return None
    # Division by a power of two and multiplication by its inverse round the same number, if both are normal.
    smallest = {16: 2.0**-14, 32: 2.0**-126, 64: 2.0**-1022}[a.type.bits]
    if not smallest <= abs(k) <= 1 / smallest:
        return None
    return rw.emit("mul", (a, rw.const(1 / k, a.type)), a.type)


def _whole(rw: Rewriter, op: Op, known: list[Any]) -> Value | None:
    """``x // 1`` of integers."""
    return op.args[0] if type(known[1]) is int and known[1] == 1 else None


def _by_nothing(rw: Rewriter, op: Op, known: list[Any]) -> Value | None:
    return op.args[0] if known[1] == 0 else None


def _ones(t: Scalar) -> int | bool:
    return True if t is b1 else -1 if t.is_signed else (1 << t.bits) - 1


def _bits(neutral: Callable[[Scalar], Any], absorbing: Callable[[Scalar], Any]) -> Identity:
    """``and`` and ``or``: ``x . x`` is x; so is x with the neutral constant; the absorbing one wins."""

    def identity(rw: Rewriter, op: Op, known: list[Any]) -> Value | None:
        a, b = op.args
        if a is b:
            return a
        for k, other in ((known[0], b), (known[1], a)):
            if k is not None and k == neutral(a.type):
                return other
            if k is not None and k == absorbing(a.type):
                return rw.const(k, a.type)
        return None

    return identity


def _none(t: Scalar) -> int | bool:
    return False if t is b1 else 0


def _xor(rw: Rewriter, op: Op, known: list[Any]) -> Value | None:
    a, b = op.args
    if a is b:
        return rw.const(_none(a.type), a.type)
    return b if known[0] == 0 and known[0] is not None else a if known[1] == 0 and known[1] is not None else None


def _twice(rw: Rewriter, op: Op, known: list[Any]) -> Value | None:
    """An op that undoes itself."""
    maker = rw.defs.get(op.args[0])
    return maker.args[0] if maker is not None and maker.name == op.name else None


def _same(rw: Rewriter, op: Op, known: list[Any]) -> Value | None:
    return op.args[0] if op.args[0] is op.args[1] else None


def _reflexive(value: bool) -> Identity:
    """A comparison of an integer or bool with itself; and of a bool with a constant."""

    def identity(rw: Rewriter, op: Op, known: list[Any]) -> Value | None:
        a, b = op.args
        if not isinstance(a.type, Scalar) or a.type.is_float:
            return None
        if a is b:
            return rw.const(value, b1)
        if a.type is b1 and op.name in ("eq", "ne"):
            for k, other in ((known[0], b), (known[1], a)):
                if k is not None:
                    return other if k is (op.name == "eq") else rw.emit("logical_not", (other,), b1)
        return None

    return identity


_IDENTITIES: dict[str, Identity] = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "floordiv": _whole,
    "shl": _by_nothing, "shr": _by_nothing, "bitand": _bits(_ones, _none), "bitor": _bits(_none, _ones), "bitxor": _xor,
    "neg": _twice, "invert": _twice, "logical_not": _twice, "min": _same, "max": _same,
    "eq": _reflexive(True), "le": _reflexive(True), "ge": _reflexive(True),
    "ne": _reflexive(False), "lt": _reflexive(False), "gt": _reflexive(False),
}  # fmt: skip

_WITHOUT_CONSTANTS = frozenset(
    "sub bitand bitor bitxor neg invert logical_not min max eq le ge ne lt gt".split()
)  # their identities see what two arguments, or two ops, have in common
