"""What a tape will ask for: the adjoint of a kernel whose first launch it records is translated while another thread
compiles the kernel, and compiled while the program goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base.errors import TreadleError
from .plan import Plan
from .reverse import apart

if TYPE_CHECKING:
    from .compile import Overload, Variant
    from .kernel import Kernel

__all__ = ["foresee"]


def foresee(kernel: Kernel, overload: Overload, variant: Variant, dims: tuple[int, ...], values: Sequence[Any]) -> None:
    """Begin with the adjoint of a launch of ``variant``, which is not compiled yet, if it is plain which one that is.
    What is wrong with it is said by the backward pass that asks for it."""
    plan = Plan(kernel, overload, variant.meta)
    active = _active(plan, values)
    if active and plan.differentiates() and not plan.detached:
        try:
            overload.adjoint(dims, active)
        except TreadleError:
            return


def _active(plan: Plan, args: Sequence[Any]) -> tuple[str, ...]:
    """The arrays with gradients, as a backward pass will find them (`reverse.Pass.choose`); none where that cannot be
    told yet, as arrays lie over each other or some may get hidden gradients."""
    arrays = [(site, a) for site, a in [(site, site.of(args)) for site in plan.sites] if a is not None]
    floats = [(site, a) for site, a in arrays if site.floats]
    written = [a for site, a in floats if site.writes]
    unclear = plan.holders or not written or any([a._grad is None for a in written])
    if unclear or not apart([a for _, a in arrays]):
        return ()
    return tuple([site.name for site, a in floats if a._grad is not None])
