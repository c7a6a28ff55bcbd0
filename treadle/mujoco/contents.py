"""What the host reads and changes of arrays, wherever their memory is, and whatever is being captured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import treadle as wp
from treadle.lang.graph import capture_pause, capture_resume
from treadle.runtime import capture
from treadle.runtime.foreign import NEAR, shared, shows_memory


@contextmanager
def contents(a: wp.array) -> Iterator[np.ndarray]:
    """What ``a`` holds, to be changed in the block: afterwards the array holds that. In memory of the host these are
    its elements themselves, elsewhere a copy that comes back."""
    found = a.numpy()
    yield found
    if found.ctypes.data != a.ptr:
        a.assign(found)


def seen(values: Any) -> wp.array:
    """An array of any library as one of ours, over the same memory wherever that is; numbers of other kinds are
    copied."""
    if isinstance(values, wp.array):
        return values
    if hasattr(values, NEAR) or not shows_memory(values):
        return wp.array(np.asarray(values), copy=False, device="cpu")
    return shared(values)


def brought_to(device: Any, values: Any) -> wp.array:
    """An array of any library as one that ``device`` can read: over the same memory, or where that is too far a copy of
    what it holds now."""
    found = seen(values)
    return found if device.reaches(found) else wp.array(found, device=device)


@contextmanager
def outside_of_captures() -> Iterator[None]:
    """What is allocated in the block belongs to no graph."""
    paused = capture_pause() if capture.recording() else None
    try:
        yield
    finally:
        if paused is not None:
            capture_resume(paused)
