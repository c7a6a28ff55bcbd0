"""Which arrays somebody has seen, and may have written to: every step asks whether they have changed."""

from __future__ import annotations

from typing import Any

import treadle as wp


class Shown:
    """Arrays by name, with what they held when they were looked at last.

    Attributes:
        some: whether there are any.
    """

    def __init__(self) -> None:
        self.some = False
        self._near: dict[str, tuple[Any, bytes]] = {}  # what NumPy sees of memory of the host, which costs nothing
        self._far: dict[str, tuple[wp.array, bytes]] = {}  # of other memory it would see a copy

    def note(self, name: str, array: wp.array) -> None:
        """Somebody sees ``array`` from now on, if not before."""
        if name not in self._near and name not in self._far:
            self.renew(name, array)

    def renew(self, name: str, array: wp.array) -> None:
        """Compare with what ``array`` holds now."""
        self.some, values = True, array.numpy()
        if values.ctypes.data == array.ptr or not values.size:
            self._near[name] = values, values.tobytes()
            self._far.pop(name, None)  # where an array on another device was before
        else:
            self._far[name] = array, values.tobytes()
            self._near.pop(name, None)

    def changed(self, far: bool) -> list[str]:
        """The names of those that hold something else; ``far``: look at memory, too, that must be copied for it."""
        found = [name for name, (values, content) in self._near.items() if values.tobytes() != content]
        if far:
            found += [name for name, (array, content) in self._far.items() if array.numpy().tobytes() != content]
        return found
