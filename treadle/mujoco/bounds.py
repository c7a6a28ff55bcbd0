"""When a simulation has lost a world: its state is no number any more, or beyond all bounds."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.constants import MAXVAL


@cache
def bounds(real: Any) -> SimpleNamespace:
    """``beyond``, a kernel function for one precision."""

    @wp.func
    def beyond(x: real):
        """1 if ``x`` is no number or too large, as MuJoCo counts it, else 0."""
        return wp.where(wp.abs(x) <= real(MAXVAL), 0, 1)

    return SimpleNamespace(beyond=beyond)
