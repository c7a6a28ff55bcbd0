"""What the package tells the runtime when it is imported: the runtime knows no compiler, and asks here for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _nobody() -> None:
    """Nobody has said."""


def _cannot_move(dest: Any, src: Any, ordered: bool) -> None:
    """Copies through lists of indices in captures take a kernel."""
    raise NotImplementedError


install: Callable[[], None] = _nobody  # lets whoever writes native helpers say so, see runtime/native.py
# Copies all elements when the graph that is captured runs, one after the other if ``ordered``, see runtime/indexed.py.
move: Callable[[Any, Any, bool], None] = _cannot_move
