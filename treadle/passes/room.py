"""How much memory of its own a thread may have."""

from __future__ import annotations

from ..base.errors import KernelTypeError
from ..ir.node import Func
from ..ir.walk import callees, ops_of

__all__ = ["ROOM", "demand_room"]

ROOM = 128 * 1024  # bytes a thread: those of a gang of 32 lie side by side on a stack, which has 8 MiB


def demand_room(func: Func) -> Func:
    """``func`` as it is, if the arrays that its threads own fit on a stack.

    Raises:
        KernelTypeError: they do not; placed at the largest.
    """
    found = [op for f in (*callees(func), func) for op in ops_of(f.body) if op.name == "local"]
    total = sum(op.attrs["type"].size for op in found)
    if total > ROOM:
        raise KernelTypeError(
            f"arrays, vectors and matrices of a thread's own take {total} bytes here, at most {ROOM} are there",
            max(found, key=lambda op: op.attrs["type"].size).span,
            "pass an array with a row for each thread",
        )
    return func
