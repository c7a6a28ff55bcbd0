"""How a module of this room finds what it re-exports."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NoReturn


class Machinery:
    """A name of Warp's own machinery: it can be imported and passed on, and any use of it raises AttributeError."""

    __slots__ = ("_name", "_state")

    def __init__(self, name: str, state: str):
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_state", state)

    def _refuse(self) -> NoReturn:
        raise AttributeError(f"treadle has no {self._name!r}: {self._state}")

    def __repr__(self) -> str:
        return f"<{self._name} of Warp, absent in treadle>"

    def __getattr__(self, attribute: str) -> NoReturn:
        self._refuse()

    def __setattr__(self, attribute: str, value: Any) -> None:
        self._refuse()

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._refuse()


def answers(
    module: str, rooms: Mapping[str, str], machinery: Mapping[str, str], face: tuple[str, ...] = ()
) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module of this room.

    Args:
        module: its name.
        rooms: names by the module of treadle that has them; ``private=own`` where treadle calls it otherwise.
        machinery: names that only Warp's implementation gives a meaning, by why treadle has none.
        face: further modules whose public names this one has too; the package itself always is one.
    """
    homes: dict[str, tuple[str, str]] = {}
    for home, names in rooms.items():
        for entry in names.split():
            private, _, own = entry.partition("=")
            homes[private] = (home, own or private)
    absent = {name: state for state, names in machinery.items() for name in names.split()}

    def find(name: str) -> Any:
        if name in homes:
            home, own = homes[name]
            return getattr(importlib.import_module(f"treadle.{home}" if home else "treadle"), own)
        if name in absent:
            return Machinery(f"{module.replace('treadle.compat', 'warp._src')}.{name}", absent[name])
        if not name.startswith("_"):
            for public in (*face, ""):
                found = getattr(importlib.import_module(f"treadle{public}"), name, absent)
                if found is not absent:
                    return found
        raise AttributeError(f"treadle answers for no {name!r} of {module.replace('treadle.compat', 'warp._src')}")

    return find
