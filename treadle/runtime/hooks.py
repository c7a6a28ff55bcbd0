"""What the package tells the runtime when it is imported: the runtime knows no compiler, and asks here for it."""

from __future__ import annotations

from collections.abc import Callable


def _nobody() -> None:
    """Nobody has said."""


install: Callable[[], None] = _nobody  # lets whoever writes native helpers say so, see runtime/native.py
