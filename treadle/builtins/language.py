"""The names that bodies of builtins are written with: ``from .language import dot, sqrt``.

Each is a word that the frontend resolves in the registry, whatever file defines it, so that files of bodies need not
import each other.
"""

from __future__ import annotations

from .registry import exists


class Word:
    """The name of a builtin inside a body."""

    __slots__ = ("__treadle_builtin__",)

    def __init__(self, name: str):
        self.__treadle_builtin__ = name

    def __repr__(self) -> str:
        return f"<word {self.__treadle_builtin__}>"


def __getattr__(name: str) -> Word:
    if not exists(name):
        raise AttributeError(f"there is no builtin {name!r}")
    word = globals()[name] = Word(name)
    return word
