"""Arrays that got gradients after they were made: what cannot be right with them is refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.errors import KernelGradientError
from ..runtime.array import array
from .parts import span_of
from .reverse import arrays_of, written_by

__all__ = ["refuse_own_gradients", "refuse_two_gradients"]


def refuse_two_gradients(ops: list[Any], late: set[int]) -> None:
    """Raise if ``ops`` write to bytes of which two arrays have a gradient, each its own: neither would be right.
    ``late``: where there may be such, by the ids of memory."""
    graded = {a._desc: a for op in ops for a in arrays_of(op) if a._grad is not None and id(a._memory) in late}
    near: list[array] = []
    for a in sorted(graded.values(), key=span_of):
        near = [b for b in near if span_of(b)[1] > span_of(a)[0]]
        for b in near:
            apart = a._grad._address - a._address != b._grad._address - b._address
            if apart and np.shares_memory(a._raw(), b._raw()):
                written = [c._raw() for op in ops for c in written_by(op)]
                if any(np.shares_memory(c, a._raw()) and np.shares_memory(c, b._raw()) for c in written):
                    raise KernelGradientError(
                        f"{a!r} and {b!r} show the same memory, which is written, but each has a gradient of its own",
                        hint="make one a view of the other after that got its gradient",
                    )  # fmt: skip
        near.append(a)


def refuse_own_gradients(ops: list[Any], late: set[int]) -> None:
    """Raise if a launch reads a gradient as data, and a later one uses the array that it is the gradient of: going
    back, the later one's adjoint would change it before the earlier one's has looked."""
    reads: dict[int, array] = {}
    for op in ops:
        if type(op) is not tuple:
            continue
        plan, _, args = op
        used = [a for a in [site.of(args) for site in plan.floats if site.loads] if a is not None]
        for a in used:
            grad = reads.get(id(a._grad._memory)) if a._grad is not None else None
            if grad is not None and np.shares_memory(grad._raw(), a._grad._raw()):
                raise KernelGradientError(
                    f"kernel {plan.kernel.key} uses an array whose gradient an earlier launch on the tape has read: "
                    "the backward pass would change it first",
                    hint="record what reads the gradient on a tape of its own",
                )
        reads.update({id(a._memory): a for a in used if id(a._memory) in late})
