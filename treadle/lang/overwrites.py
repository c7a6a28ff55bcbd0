"""Warnings of writes to what a backward pass has yet to look at, where ``wp.config.verify_autograd_array_access`` asks.

Tapes keep what is overwritten, so gradients are right. The warnings tell what that keeps in memory, and where a program
for an implementation that keeps nothing would go wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..base.logs import log_warning, place_outside
from ..runtime.array import array
from ..types.spelling import spell
from .plan import Plan
from .recorder import Recorder


def warn_of_launch(recorders: Iterable[Recorder], plan: Plan, args: Sequence[Any]) -> None:
    """A launch with ``args`` is about to run while ``recorders`` watch."""
    for site in plan.writes:
        a = site.of(args)
        if a is not None:
            _warn(recorders, a, f"Array {site.name!r}", f"kernel {plan.kernel.key}")


def warn_of_write(recorders: Iterable[Recorder], dest: array, source: array | None) -> None:
    """``dest`` is about to be written from the host, or from ``source``."""
    what = f"An array of dtype {spell(dest.type.elem)} and shape {dest.shape}"
    _warn(recorders, dest, what, "the host" if source is None else "an array copy")


def _warn(recorders: Iterable[Recorder], a: array, what: str, by: str) -> None:
    if any([r.awaits(a) for r in recorders]):
        log_warning(
            f"{what} is being written to by {by} at {place_outside()}, but has already been read from in a previous "
            "launch whose backward pass is to come. The tape keeps what is overwritten for it."
        )
