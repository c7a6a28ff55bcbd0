"""``wp.optim``: optimisers that change arrays of parameters by their gradients.

They are written as users write: functions of the kernel language, applied to every element by :func:`treadle.map`. So
tapes see their steps. Linear solvers are not part of this release.
"""

from __future__ import annotations

from typing import Any

from ..absent import absent
from .adam import Adam
from .sgd import SGD

__all__ = ["SGD", "Adam"]


def __getattr__(name: str) -> Any:
    raise absent(__name__, name)
