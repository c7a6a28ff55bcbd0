"""Components that are computed alike stay side by side, as they lie in memory.

A window of elements is taken apart when it is loaded, one vector a component, and put together when it is stored; for
``v[i] + g * dt`` these shuffles cost more than the arithmetic. Where each component of what is stored was made by the
same operations, from elements loaded whole, values of the gang, or one number for all components, the operations run
once on the whole window instead. Every scalar goes through the same roundings, so bits do not change; what was written
for the single components goes as dead code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .scalar import Lower, lowering
from .text import Text, constant, register, vector
from .values import X
from .wide import indices, interleaved

if TYPE_CHECKING:
    from .emitter import Emitter

ALIKE = frozenset(("add", "sub", "mul", "fma", "neg"))  # what is followed; cheap enough to be computed again
_MOST = 6  # operations followed for one store: more would cost more than shuffles where the components are needed too


class Part(NamedTuple):
    """Where a component comes from: number ``at`` of ``count`` in the window ``whole``."""

    whole: str
    at: int
    count: int


class _Long:
    """The emitter as :class:`Lower` sees it, with all components of all lanes for lanes."""

    def __init__(self, text: Text, width: int):
        self.t, self.width = text, width

    def wide(self, x: X) -> str:
        assert x.wide is not None
        return x.wide


def together(e: Emitter, columns: list[X]) -> str | None:
    """The window whose components are ``columns``, without taking anything apart; None where that cannot be."""
    if register(columns[0].type) not in ("float", "double") or not _alike(columns, [_MOST]):
        return None
    return _window(e, columns, {}).wide


def _operation(columns: list[X]) -> str | None:
    """The operation that made all of ``columns``, if it is one of :data:`ALIKE`."""
    names = {x.made[0] if isinstance(x.made, tuple) and not isinstance(x.made, Part) else None for x in columns}
    return names.pop() if len(names) == 1 else None


def _whole(columns: list[X]) -> str | None:
    """The window that was taken apart into ``columns``."""
    first = columns[0].made
    if isinstance(first, Part) and all(x.made == (first.whole, k, len(columns)) for k, x in enumerate(columns)):
        return first.whole
    return None


def _settled(columns: list[X]) -> bool:
    """Whether nothing has to be followed further: one window, values of the gang, or one number for all."""
    uniform = all(x.text is not None and x.step == 0 for x in columns)
    return uniform or _whole(columns) is not None or all(x is columns[0] for x in columns)


def _arguments(columns: list[X]) -> list[list[X]]:
    """Of the operation that made ``columns``: per argument, what it was for each of them."""
    return [list(xs) for xs in zip(*[x.made[1] for x in columns], strict=True)]


def _alike(columns: list[X], left: list[int]) -> bool:
    """Whether ``columns`` were computed alike; ``left`` counts down the operations that may be followed."""
    if _settled(columns):
        return True
    left[0] -= 1
    if left[0] < 0 or _operation(columns) is None:
        return False
    return all(_alike(xs, left) for xs in _arguments(columns))


def _window(e: Emitter, columns: list[X], made: dict[tuple, X]) -> X:
    """The components side by side, lane after lane; ``made``: what this store has already."""
    key = tuple([id(x) for x in columns])
    if key not in made:
        t = columns[0].type
        if _settled(columns):
            made[key] = X(t, None, _leaf(e, columns), None)
        else:
            xs = [_window(e, argument, made) for argument in _arguments(columns)]
            low = Lower(_Long(e.t, e.width * len(columns)), t, t, False)
            made[key] = lowering(_operation(columns))(low, *xs)
    return made[key]


def _leaf(e: Emitter, columns: list[X]) -> str:
    t, n = columns[0].type, len(columns)
    kind = register(t)
    whole = _whole(columns)
    if whole is not None:
        return whole
    if all(x.const is not None for x in columns):
        one = [f"{kind} {constant(x.const, t)}" for x in columns]
        return f"<{', '.join(one * e.width)}>"
    if all(x is columns[0] for x in columns):
        lanes, spread = vector(kind, e.width), indices(k // n for k in range(n * e.width))
        return e.t.ins(f"shufflevector {lanes} {e.wide(columns[0])}, {lanes} poison, {spread}")
    return interleaved(e, kind, [e.wide(x) for x in columns])
