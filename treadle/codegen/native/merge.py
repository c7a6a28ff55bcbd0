"""``void merge(ptr into, ptr from, i64 count)``: how private values are put together, one function an operation.

The operation ``count`` adds too, and leaves in ``from`` what was in ``into``: done chunk after chunk, what each of them
counted becomes what it starts from.
"""

from __future__ import annotations

from ...types.core import Scalar, bf16, f16, f32, f64
from ...types.records import SLOTS
from .text import Code

LANES = 8
_FLOATS = {f16: "half", bf16: "i16", f32: "float", f64: "double"}  # not every processor knows bfloat16: its bits
OPS = ("add", "min", "max", "and", "or", "xor", "count")


def merge(op: str, t: Scalar, name: str) -> str:
    """LLVM text of the function ``name`` that applies ``op`` element by element: eight at a time, then the rest."""
    scalar = _FLOATS.get(t, f"i{t.bits}")
    c = Code(name, "void", [("ptr", "into"), ("ptr", "from"), ("i64", "count")])
    whole = c.op("and", "i64", "%count", -LANES)
    for lanes, start, stop in ((LANES, 0, whole), (1, whole, "%count")):
        word = _many(scalar, lanes)
        with c.for_(stop, start, lanes) as i:
            offset = c.op("mul", "i64", i, t.size)
            into, source = c.at("%into", offset), c.at("%from", offset)
            a = c.value(f"load {word}, ptr {into}, align {t.size}")
            b = c.value(f"load {word}, ptr {source}, align {t.size}")
            value = _apply_bf16(c, op, lanes, a, b) if t is bf16 else _apply(c, op, t, word, a, b)
            c.line(f"store {word} {value}, ptr {into}, align {t.size}")
            if op == "count":
                c.line(f"store {word} {a}, ptr {source}, align {t.size}")
    return c.text()


def fold(t: Scalar, name: str) -> str:
    """LLVM text of ``void name(ptr into, ptr slots, i64 count)``: of each of ``count`` scalars, add up the slots by
    halves (i and i + 8, 4, 2, 1), and add that to the scalar."""
    scalar = _FLOATS[t]
    c = Code(name, "void", [("ptr", "into"), ("ptr", "slots"), ("i64", "count")])

    def added(lanes: int, a: str, b: str) -> str:
        return _apply_bf16(c, "add", lanes, a, b) if t is bf16 else _apply(c, "add", t, _many(scalar, lanes), a, b)

    with c.for_("%count") as i:
        at = c.at("%slots", c.op("mul", "i64", i, SLOTS * t.size))
        whole, half = c.value(f"load <{SLOTS} x {scalar}>, ptr {at}, align {t.size}"), SLOTS // 2
        while half:
            kind = f"<{2 * half} x {scalar}>"
            if half > 1:
                low, high = (
                    c.value(f"shufflevector {kind} {whole}, {kind} poison, <{half} x i32> <{picks}>")
                    for picks in (_counted(0, half), _counted(half, 2 * half))
                )
            else:
                low, high = (c.value(f"extractelement {kind} {whole}, i64 {k}") for k in (0, 1))
            whole = added(half, low, high)
            half //= 2
        into = c.at("%into", c.op("mul", "i64", i, t.size))
        old = c.value(f"load {scalar}, ptr {into}, align {t.size}")
        c.line(f"store {scalar} {added(1, old, whole)}, ptr {into}, align {t.size}")
    return c.text()


def _counted(first: int, end: int) -> str:
    return ", ".join([f"i32 {k}" for k in range(first, end)])


def _many(kind: str, lanes: int) -> str:
    return f"<{lanes} x {kind}>" if lanes > 1 else kind


def _apply_bf16(c: Code, op: str, lanes: int, a: str, b: str) -> str:
    """The operation on float32, of which a bfloat16 is the upper half; a sum is rounded to it, ties to even."""
    short, bits, single = (_many(kind, lanes) for kind in ("i16", "i32", "float"))

    def number(value: int) -> str:
        return f"splat (i32 {value})" if lanes > 1 else str(value)

    def widened(x: str) -> str:
        return c.cast("bitcast", bits, c.op("shl", bits, c.cast("zext", short, x, bits), number(16)), single)

    x = _apply(c, op, f32, single, widened(a), widened(b))
    made = c.cast("bitcast", single, x, bits)
    high = c.op("lshr", bits, made, number(16))
    up = c.op("add", bits, c.op("add", bits, made, number(0x7FFF)), c.op("and", bits, high, number(1)))
    nan = c.op("fcmp uno", single, x, x)
    rounded, quiet = c.op("lshr", bits, up, number(16)), c.op("or", bits, high, number(0x40))
    whole = c.value(f"select {_many('i1', lanes)} {nan}, {bits} {quiet}, {bits} {rounded}")
    return c.cast("trunc", bits, whole, short)


def _apply(c: Code, op: str, t: Scalar, word: str, a: str, b: str) -> str:
    if op in ("add", "count"):
        return c.op("fadd" if t.is_float else "add", word, a, b)
    if op in ("and", "or", "xor"):
        return c.op(op, word, a, b)
    order = "lt" if op == "min" else "gt"
    better = c.op(f"fcmp o{order}" if t.is_float else f"icmp {'s' if t.is_signed else 'u'}{order}", word, b, a)
    mask = word.replace(word.split()[-1].rstrip(">"), "i1") if word.startswith("<") else "i1"
    return c.value(f"select {mask} {better}, {word} {b}, {word} {a}")
