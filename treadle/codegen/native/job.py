"""What the tasks of one launch share, and how native code reads it and the rows of private targets."""

from __future__ import annotations

from ...types.records import ATOMIC, ATOMIC_KINDS, PROGRAM, Record, words
from .text import Code

# What the tasks of one launch share; lies on the launcher's stack. `counted`: whether counters are copies; `pass`: the
# round that is being counted, or `rounds` in the real run; `single`: whether threads run one by one; `slotted`: whether
# slots take the place of copies; `piece`: threads of a chunk that run between two looks at the stop flag.
JOB: Record = words(
    "entry args launch chunk size program private stride copies counted pass rounds single slotted piece"
)


def job_field(c: Code, name: str, t: str = "i64") -> str:
    return c.load(t, "%job", JOB[name])


def items_of(c: Code, program: str) -> tuple[str, str]:
    return c.load("i64", program, PROGRAM["natomics"]), c.load("ptr", program, PROGRAM["atomics"])


def round64(c: Code, n: str) -> str:
    return c.op("and", "i64", c.op("add", "i64", n, 63), -64)


def item_at(c: Code, items: str, j: str) -> str:
    return c.at(items, c.op("mul", "i64", j, ATOMIC.size))


def kind_is(c: Code, item: str, kind: str) -> str:
    return c.op("icmp eq", "i64", c.load("i64", item, ATOMIC["kind"]), ATOMIC_KINDS[kind])


def view_parts(c: Code, item: str, view: str) -> tuple[str, str, str]:
    """Addresses of the shape and of the strides of a view in the arguments, and its component stride."""
    ndim = c.load("i64", item, ATOMIC["ndim"])
    shape = c.at(view, 16)
    strides = c.at(shape, c.op("mul", "i64", ndim, 8))
    return shape, strides, c.load("i64", strides, c.op("mul", "i64", ndim, 8))
