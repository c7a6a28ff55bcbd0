"""What an entry for a GPU knows besides what every program does."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..emit.unit import Unit
from .way import Way


@dataclass(slots=True)
class ThreadUnit(Unit):
    """``way``: how atomics run; ``tapes_at``: the items of scratch that hold stack and log, and what they needed."""

    way: Way = field(default_factory=lambda: Way("free"))
    tape_items: dict[str, int] = field(default_factory=dict)
