"""Where launches and array methods tell what they are about to write, for those who must know: tapes.

``watchers`` holds the tapes that watch memory. Who writes looks whether it is empty, and hands the work over if it is
not; a watcher saves what the write would destroy, lets it happen, and may record it. ``lang/tape.py`` says how.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

watchers: list[weakref.ref] = []  # most programs have none
write: Callable[..., None]  # (array, perform, args, source): a write from the host
launch: Callable[..., Any]  # (kernel, native launcher, dim, inputs, outputs, record): a usual launch
run: Callable[..., None]  # (plan, dims, values, run, record): any other launch
replay: Callable[..., Any]  # (graph, run): a graph
tell: Callable[..., Any]  # (graph): a graph that is to run; whether that is done, because a tape must hear of each part


def watch(watcher: Any) -> None:
    """Tell ``watcher`` of writes until it goes or :func:`leave` is called."""
    if not any(each() is watcher for each in watchers):
        watchers.append(weakref.ref(watcher, watchers.remove))


def leave(watcher: Any) -> bool:
    """Tell ``watcher`` no more; whether it was told until now."""
    found = [each for each in watchers if each() is watcher]
    for each in found:
        with suppress(ValueError):  # another thread was faster
            watchers.remove(each)
    return bool(found)
