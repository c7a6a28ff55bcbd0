"""What an entry for a GPU knows besides what every program does."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...ir.node import Op
from ..emit.unit import Unit
from .way import Way


@dataclass(slots=True)
class ThreadUnit(Unit):
    """``way``: how atomics run; ``tape_items``: the items of scratch that hold stack and log, and what they needed.
    ``together``: a block works on one thread of the launch; ``shared``: where its arrays lie, in shared memory or an
    item of scratch."""

    way: Way = field(default_factory=lambda: Way("free"))
    tape_items: dict[str, int] = field(default_factory=dict)
    together: bool = False
    shared: dict[Op, tuple[int | None, int]] = field(default_factory=dict)
