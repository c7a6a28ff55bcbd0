"""A block of hardware threads does the work of one thread of the launch: that of a kernel on tiles.

Meaning comes from the program of one thread, which the CPU runs as it is, a thread a lane; its adjoint is one as well.
Here that becomes a program for each thread of a block:

* loops whose rounds do not need each other, which is what most functions on tiles are made of, are *divided* among the
  threads; the arrays that they touch are the block's, in shared memory;
* loops that join their rounds by an associative operation are joined run by run, then by shuffles;
* what has effects elsewhere the first thread does, and tells the others what it found;
* everything else every thread computes for itself, so that all of them go the same way;
* barriers stand where a thread would meet what another one did since the last one, and nowhere else.

Sums and products are those of one thread, in its order, and so are their bits. ``lane``, ``barrier``, ``shuffle`` and
shared arrays are ops of the IR; the oracle runs them.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.node import Func, Op
from .footprint import Program, Unsuited
from .plan import make_plan
from .write import write

__all__ = ["share_block"]

FEW = 32  # threads that a GPU runs in step: fewer leave some of them idle


def share_block(func: Func, threads: int, commutes: Callable[[Op], bool] = lambda op: True) -> Func | None:
    """What each thread of a block does of the lowered program ``func``: of at most ``threads``, a power of two; the
    fact "threads" says how many. None where not even a few have enough to share. ``commutes``: whether an atomic may
    come in any order, whoever does it."""
    try:
        program = Program(func)
        least = min(threads, FEW)
        while threads >= least:
            made = make_plan(program, threads, commutes)
            if made is not None:
                return write(program, made, threads)
            threads //= 2
    except Unsuited:
        pass
    return None
