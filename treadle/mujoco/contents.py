"""What the host changes of arrays, wherever their memory is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import treadle as wp


@contextmanager
def contents(a: wp.array) -> Iterator[np.ndarray]:
    """What ``a`` holds, to be changed in the block: afterwards the array holds that. In memory of the host these are
    its elements themselves, elsewhere a copy that comes back."""
    found = a.numpy()
    yield found
    if found.ctypes.data != a.ptr:
        a.assign(found)
