"""What the host reads and changes of arrays, wherever their memory is, and whatever is being captured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import treadle as wp
from treadle.lang.graph import capture_pause, capture_resume
from treadle.runtime import capture


@contextmanager
def contents(a: wp.array) -> Iterator[np.ndarray]:
    """What ``a`` holds, to be changed in the block: afterwards the array holds that. In memory of the host these are
    its elements themselves, elsewhere a copy that comes back."""
    found = a.numpy()
    yield found
    if found.ctypes.data != a.ptr:
        a.assign(found)


@contextmanager
def outside_of_captures() -> Iterator[None]:
    """What is allocated in the block belongs to no graph."""
    paused = capture_pause() if capture.recording() else None
    try:
        yield
    finally:
        if paused is not None:
            capture_resume(paused)
