"""Pieces of memory that are put aside, put back, and exchanged with what was put aside: many of them in one call.

What is put aside lies side by side. A table says where in memory it belongs: rows of ``types/records.RUNS``, each some
equally long runs of bytes at equal distances.
"""

from __future__ import annotations

from collections.abc import Callable

from ...types.records import RUNS
from .text import Code

BLOCK = 64  # bytes that are exchanged at a time


def pieces() -> str:
    """LLVM text of ``@treadle_exchange(here, there, nbytes)``, and of ``@treadle_keep``, ``@treadle_put`` and
    ``@treadle_swap``, each with ``(rows, count, aside)``."""
    return (
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
        + _exchange()
        + _each("treadle_keep", lambda c, here, aside, nbytes: _copy(c, aside, here, nbytes))
        + _each("treadle_put", lambda c, here, aside, nbytes: _copy(c, here, aside, nbytes))
        + _each("treadle_swap", _swap)
    )


def _copy(c: Code, into: str, source: str, nbytes: str) -> None:
    c.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {into}, ptr {source}, i64 {nbytes}, i1 false)")


def _swap(c: Code, here: str, aside: str, nbytes: str) -> None:
    c.call("void", "@treadle_exchange", ("ptr", here), ("ptr", aside), ("i64", nbytes))


def _each(name: str, do: Callable[[Code, str, str, str], None]) -> str:
    """The function ``name``, which runs ``do`` for each run of bytes and its place aside."""
    c = Code(name, "void", [("ptr", "rows"), ("i64", "count"), ("ptr", "aside")])
    aside = c.var("ptr", "%aside")
    with c.for_("%count") as i:
        row = c.at("%rows", c.op("mul", "i64", i, RUNS.size))
        first, nbytes, step = c.load("ptr", row, RUNS["at"]), c.load("i64", row, RUNS["nbytes"]), RUNS["step"]
        stride = c.load("i64", row, step)
        with c.for_(c.load("i64", row, RUNS["count"])) as k:
            place = aside.get()
            do(c, c.at(first, c.op("mul", "i64", k, stride)), place, nbytes)
            aside.set(c.at(place, nbytes))
    return c.text()


def _exchange() -> str:
    c = Code("treadle_exchange", "void", [("ptr", "here"), ("ptr", "there"), ("i64", "nbytes")])
    whole = c.op("and", "i64", "%nbytes", -BLOCK)
    for word, start, stop, step in ((f"<{BLOCK // 8} x i64>", 0, whole, BLOCK), ("i8", whole, "%nbytes", 1)):
        with c.for_(stop, start, step) as i:
            here, there = c.at("%here", i), c.at("%there", i)
            a, b = (c.value(f"load {word}, ptr {place}, align 1") for place in (here, there))
            c.line(f"store {word} {b}, ptr {here}, align 1")
            c.line(f"store {word} {a}, ptr {there}, align 1")
    return c.text()
