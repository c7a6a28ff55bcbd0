"""``void merge(ptr into, ptr from, i64 count)``: how private values are put together, one function an operation."""

from __future__ import annotations

from ...types.core import Scalar, bf16, f16, f32, f64
from .text import Code

LANES = 8
_FLOATS = {f16: "half", bf16: "bfloat", f32: "float", f64: "double"}
OPS = ("add", "min", "max", "and", "or", "xor")


def merge(op: str, t: Scalar, name: str) -> str:
    """LLVM text of the function ``name`` that applies ``op`` element by element: eight at a time, then the rest."""
    scalar = _FLOATS.get(t, f"i{t.bits}")
    c = Code(name, "void", [("ptr", "into"), ("ptr", "from"), ("i64", "count")])
    whole = c.op("and", "i64", "%count", -LANES)
    for lanes, start, stop in ((LANES, 0, whole), (1, whole, "%count")):
        word = f"<{lanes} x {scalar}>" if lanes > 1 else scalar
        with c.for_(stop, start, lanes) as i:
            offset = c.op("mul", "i64", i, t.size)
            into, source = c.at("%into", offset), c.at("%from", offset)
            a = c.value(f"load {word}, ptr {into}, align {t.size}")
            b = c.value(f"load {word}, ptr {source}, align {t.size}")
            c.line(f"store {word} {_apply(c, op, t, word, a, b)}, ptr {into}, align {t.size}")
    return c.text()


def _apply(c: Code, op: str, t: Scalar, word: str, a: str, b: str) -> str:
    if op == "add":
        return c.op("fadd" if t.is_float else "add", word, a, b)
    if op in ("and", "or", "xor"):
        return c.op(op, word, a, b)
    order = "lt" if op == "min" else "gt"
    better = c.op(f"fcmp o{order}" if t.is_float else f"icmp {'s' if t.is_signed else 'u'}{order}", word, b, a)
    mask = word.replace(word.split()[-1].rstrip(">"), "i1") if word.startswith("<") else "i1"
    return c.value(f"select {mask} {better}, {word} {b}, {word} {a}")
