"""Bodies of branches and loops, and what tapes recorded while they were captured.

A tape hears of a body once, when it is captured; the graph runs it as often as a condition says. So what it recorded
there has no adjoint in any other place: a backward pass that is not in the same body raises, if it would need one.
"""

from __future__ import annotations

from typing import NamedTuple

from ..base.errors import KernelGradientError


class Body(NamedTuple):
    """Operations ``first`` to ``end`` of a log belong to a body, of the call ``what`` in the line ``place``."""

    first: int
    end: int
    what: str
    place: str


def refuse_bodies(found: tuple[Body, ...], active: list[bool], saved: set[int]) -> None:
    """Raise if the way back leads through one of the bodies.

    Args:
        active: whether each operation has an adjoint.
        saved: the numbers of operations before which memory was saved that is put back for adjoints.
    """
    for first, end, what, place in found:
        restores = any(first <= k < end for k in saved) and any(active[:end])
        if restores or any(active[first:end]):
            raise KernelGradientError(
                f"the tape cannot go back through the body of {what} at {place}: it recorded it once, while the graph "
                "that is captured runs it as often as the condition says",
                hint="record and go back within the body, or choose by wp.where and go a fixed number of rounds",
            )
