"""Which passes run, in which order: the middle of the compiler on one screen."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.node import Func
from ..ir.verify import verify as check
from .asserts import drop_asserts
from .bounds import mark_bounded
from .cse import share_common
from .dce import remove_dead
from .ends import count_from_end
from .flatten import flatten_cheap
from .fma import form_fma
from .gradients import expand_gradients
from .hoist import hoist_unchanging
from .inline import inline_small, join_apart
from .large import place_large
from .promote import promote_arrays
from .room import demand_room
from .scalarize import scalarize
from .simplify import keep_views, settle
from .sink import sink_stores
from .whole import load_whole

__all__ = ["FINISH", "LOWER", "NORMALIZE", "PREPARE", "RELEASE", "Pass", "run"]

Pass = Callable[[Func], Func]

NORMALIZE: tuple[Pass, ...] = (
    expand_gradients, inline_small, count_from_end, settle, share_common, remove_dead,
)  # fmt: skip

# Between the two, in programs that are not checked.
RELEASE: tuple[Pass, ...] = (drop_asserts,)

# Products fuse with sums before constants are shared again, so that what is "used once" follows the source alone; and
# before functions with rules of their own are inlined, as they are not where the program is differentiated.
TAKE_APART: tuple[Pass, ...] = (place_large, scalarize, promote_arrays, form_fma)
TIDY: tuple[Pass, ...] = (settle, share_common)
ARRANGE: tuple[Pass, ...] = (sink_stores, flatten_cheap, hoist_unchanging, remove_dead, mark_bounded, demand_room)
LOWER: tuple[Pass, ...] = (*TAKE_APART, join_apart, *TIDY, *ARRANGE)

# Between NORMALIZE and differentiation: scalars only, and every rounding decided, so that a program that runs again
# computes the same bits. Then what is new becomes part of the rest.
PREPARE: tuple[Pass, ...] = (drop_asserts, *TAKE_APART, *TIDY, keep_views, remove_dead)
FINISH: tuple[Pass, ...] = (remove_dead, inline_small, promote_arrays, form_fma, *TIDY, load_whole, *ARRANGE)


def run(passes: tuple[Pass, ...], func: Func, verify: bool = False) -> Func:
    """``func`` after ``passes``; with ``verify`` each result is checked, which costs about as much as a pass."""
    scalar = False
    for p in passes:
        func = p(func)
        if verify:
            scalar = scalar or p is scalarize
            check(func, scalar)
    return func
