"""What a program is compiled for. A value, so that it can stand in a cache key."""

from __future__ import annotations

from typing import NamedTuple


class Target(NamedTuple):
    """``kind`` is "cpu" or "nvptx"; ``width`` the gang width W (1 for nvptx).

    ``triple``, ``cpu`` and ``features`` are LLVM's words for the processor.
    """

    kind: str
    triple: str
    cpu: str
    features: str = ""
    width: int = 1

    def key(self) -> str:
        """The text that stands for this target in cache keys."""
        return f"{self.kind}|{self.triple}|{self.cpu}|{self.features}|w{self.width}"
