"""The bytes of a value read as a value of another type."""

from __future__ import annotations

from ..ir.builder import Builder
from ..ir.node import Value
from ..types.core import Scalar, Type, b1, u8, u16, u32, u64
from ..types.layout import children, leaves

UNSIGNED = {8: u8, 16: u16, 32: u32, 64: u64}


def reinterpreted(b: Builder, a: Value, t: Type) -> Value:
    """The bytes of ``a`` as a value of type ``t``: both hold nothing but numbers."""
    pieces = [(leaf.offset, _part(b, a, leaf.path)) for leaf in leaves(a.type)]
    found = iter([_read(b, pieces, leaf.offset, leaf.type) for leaf in leaves(t)])

    def assembled(t: Type) -> Value:
        return next(found) if isinstance(t, Scalar) else b.one("make", tuple([assembled(p) for p in children(t)]), t)

    return assembled(t)


def _part(b: Builder, a: Value, path: tuple[int, ...]) -> Value:
    for index in path:
        a = b.extract(a, index)
    return a


def _read(b: Builder, pieces: list[tuple[int, Value]], offset: int, t: Scalar) -> Value:
    """The number of type ``t`` at byte ``offset`` of what ``pieces`` make up; bytes between them are zero."""
    for at, v in pieces:
        if at == offset and v.type.bits == t.bits and b1 not in (t, v.type):
            return v if v.type is t else b.one("bitcast", (v,), t)
    whole, made = UNSIGNED[t.bits], None
    for at, v in pieces:
        if at >= offset + t.size or at + v.type.size <= offset:
            continue
        raw = UNSIGNED[v.type.bits]
        bits = b.one("cast" if v.type is b1 else "bitcast", (v,), raw) if v.type is not raw else v
        shift = 8 * (at - offset)
        if shift < 0:
            bits = b.one("shr", (bits, b.const(-shift, raw)), raw)
        if raw is not whole:
            bits = b.one("cast", (bits,), whole)
        if shift > 0:
            bits = b.one("shl", (bits, b.const(shift, whole)), whole)
        made = bits if made is None else b.one("bitor", (made, bits), whole)
    made = b.const(0, whole) if made is None else made
    if t is b1:
        return b.one("ne", (made, b.const(0, whole)), b1)
    return made if t is whole else b.one("bitcast", (made,), t)
