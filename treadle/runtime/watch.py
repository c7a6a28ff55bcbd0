"""Where launches and array methods tell what they are about to write, for those who must know: tapes.

``watchers`` holds the tapes that watch memory. Who writes looks whether it is empty, and hands the work over if it is
not; a watcher saves what the write would destroy, lets it happen, and may record it. ``lang/tape.py`` says how.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

watchers: dict[int, weakref.ref] = {}  # by id; most programs have none
write: Callable[..., None]  # (array, perform, args, source): a write from the host
launch: Callable[..., Any]  # (kernel, native launcher, dim, inputs, outputs, record): a usual launch
run: Callable[..., None]  # (plan, dims, values, run, record): any other launch
replay: Callable[..., Any]  # (graph, run): a graph
tell: Callable[..., Any]  # (graph): a graph that is to run; whether that is done, because a tape must hear of each part


def watching() -> list[Any]:
    """The watchers that there are now. A list of the asker's own, made in one step: other threads may come and go while
    it is walked, and none of the rest is left out for that."""
    return [each for ref in [*watchers.values()] if (each := ref()) is not None]


def watch(watcher: Any) -> None:
    """Tell ``watcher`` of writes until it goes or :func:`leave` is called."""
    key = id(watcher)
    # It may go at any time, so no lock can be held for it.
    watchers.setdefault(key, weakref.ref(watcher, lambda _, watchers=watchers: watchers.pop(key, None)))


def leave(watcher: Any) -> bool:
    """Tell ``watcher`` no more; whether it was told until now."""
    return watchers.pop(id(watcher), None) is not None
