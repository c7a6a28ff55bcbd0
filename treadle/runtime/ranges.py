"""Sets of bytes as disjoint ranges of addresses, sorted, touching ones joined."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

Range = tuple[int, int]  # from, up to (not taken)


class Ranges:
    """A set of bytes. All questions cost a binary search."""

    __slots__ = ("highs", "lows")

    def __init__(self, ranges: Iterator[Range] | list[Range] | tuple[Range, ...] = ()):
        self.lows: list[int] = []
        self.highs: list[int] = []
        for low, high in ranges:
            self.add(low, high)

    def __bool__(self) -> bool:
        return bool(self.lows)

    def __iter__(self) -> Iterator[Range]:
        return zip(self.lows, self.highs, strict=True)

    def __len__(self) -> int:
        """How many ranges."""
        return len(self.lows)

    @property
    def nbytes(self) -> int:
        """How many bytes."""
        return sum(self.highs) - sum(self.lows)

    def meets(self, low: int, high: int) -> bool:
        """Whether a byte of ``[low, high)`` is in the set."""
        highs = self.highs
        i = bisect_right(highs, low)
        return i < len(highs) and self.lows[i] < high

    def holds(self, low: int, high: int) -> bool:
        """Whether all bytes of ``[low, high)`` are in the set."""
        i = bisect_right(self.lows, low) - 1
        return i >= 0 and high <= self.highs[i]

    def around(self, address: int) -> Range | None:
        """The range that holds the byte at ``address``."""
        i = bisect_right(self.lows, address) - 1
        return (self.lows[i], self.highs[i]) if i >= 0 and address < self.highs[i] else None

    def within(self, low: int, high: int) -> list[Range]:
        """The parts of ``[low, high)`` that are in the set, in order."""
        lows, highs = self.lows, self.highs
        i, found = bisect_right(highs, low), []
        while i < len(lows) and lows[i] < high:
            found.append((max(lows[i], low), min(highs[i], high)))
            i += 1
        return found

    def outside(self, low: int, high: int) -> list[Range]:
        """The parts of ``[low, high)`` that are not in the set, in order."""
        found, at = [], low
        for begin, end in self.within(low, high):
            if at < begin:
                found.append((at, begin))
            at = end
        if at < high:
            found.append((at, high))
        return found

    def add(self, low: int, high: int) -> None:
        """Put ``[low, high)`` in."""
        if low >= high:
            return
        lows, highs = self.lows, self.highs
        i, j = bisect_left(highs, low), bisect_right(lows, high)
        if i < j:
            low, high = min(low, lows[i]), max(high, highs[j - 1])
        lows[i:j], highs[i:j] = [low], [high]

    def cut(self, low: int, high: int) -> None:
        """Take ``[low, high)`` out."""
        if low >= high:
            return
        lows, highs = self.lows, self.highs
        i, j = bisect_right(highs, low), bisect_left(lows, high)
        if i >= j:
            return
        kept = []
        if lows[i] < low:
            kept.append((lows[i], low))
        if highs[j - 1] > high:
            kept.append((high, highs[j - 1]))
        lows[i:j], highs[i:j] = [a for a, _ in kept], [b for _, b in kept]

    def copy(self) -> Ranges:
        """The same set, to be changed by itself."""
        made = Ranges()
        made.lows, made.highs = [*self.lows], [*self.highs]
        return made
