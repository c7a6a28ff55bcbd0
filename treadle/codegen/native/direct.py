"""A kernel of one thread as a plain C function: how Python calls builtins that have become machine code."""

from __future__ import annotations

from ...types.core import Scalar, Type, View
from ...types.layout import pack
from ...types.records import LAUNCH
from .text import Code

SYMBOL = "treadle_direct"


def direct(signature: tuple[Type, ...], kernel: str) -> str:
    """LLVM text of ``@treadle_direct``, which runs one thread of ``@kernel``.

    ``signature``: that of the kernel; its views, of one element each, are for results and come last. The function takes
    numbers as C does, addresses of composites, and one address for each result. Where the only result is a number it
    returns that instead.
    """
    results = [t.elem for t in signature if isinstance(t, View)]
    values = signature[: len(signature) - len(results)]
    back = results[0] if len(results) == 1 and isinstance(results[0], Scalar) else None
    words = [f"{_stored(t)} {_extension(t)}" if isinstance(t, Scalar) else "ptr" for t in values]
    params = [(word, f"a{k}") for k, word in enumerate(words)]
    params += [] if back else [("ptr", f"r{k}") for k in range(len(results))]
    c = Code(SYMBOL, "void" if back is None else _stored(back), params, _extension(back))
    starts, size = pack(signature)
    args, launch, stop = c.stack(size), c.stack(LAUNCH.size), c.stack(8)
    c.store("i64", 0, stop)
    c.store("ptr", stop, launch, LAUNCH["stop"])
    for k, (t, start) in enumerate(zip(values, starts, strict=False)):
        if isinstance(t, Scalar):
            c.store(_stored(t), f"%a{k}", args, start)
        else:
            c.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {c.at(args, start)}, ptr %a{k}, i64 {t.size}, i1 false)")
    kept = c.stack(back.size) if back else ""
    for k, start in enumerate(starts[len(values) :]):
        c.store("ptr", kept or f"%r{k}", args, start)
    c.call("i32", f"@{kernel}", ("ptr", args), ("ptr", launch), ("i64", 0), ("i64", 1), ("ptr", "null"))
    c.ret(None if back is None else c.load(_stored(back), kept))
    return "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n" + c.text()


def _stored(t: Scalar) -> str:
    """``t`` as LLVM writes what lies in memory."""
    return {"f": {32: "float", 64: "double"}}.get(t.kind, {}).get(t.bits, f"i{t.bits}")


def _extension(t: Scalar | None) -> str:
    """What C asks of parameters and results that are short integers: they fill a register."""
    return "" if t is None or t.is_float or t.bits >= 32 else "signext" if t.is_signed else "zeroext"


__all__ = ["SYMBOL", "direct"]
