"""How deep the functions that JAX calls lie in each other.

A function that JAX calls may call others, and wait for them, on whatever thread XLA runs these. So those take turns
among themselves, at a gate of their own depth, while the one around them keeps its turn. What JAX compiles inside a
function is therefore compiled apart from what it compiles outside.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from .extras import jax

_thread = threading.local()


def depth() -> int:
    """How many functions that JAX calls are around what this thread does now."""
    return getattr(_thread, "depth", 0)


@cache
def compiled_apart() -> Any:
    """What gives a context that JAX keys its compiled functions by; made before functions are called."""
    make = getattr(jax(), "make_user_context", None)
    if make is not None:
        return make(0)
    from jax.experimental.xla_metadata import set_xla_metadata  # an older JAX: a note on each operation

    return lambda depth: set_xla_metadata(treadle_depth=depth)


@contextmanager
def inside(level: int) -> Iterator[None]:
    """The block is the body of ``level`` functions that JAX calls."""
    before, _thread.depth = depth(), level
    try:
        with compiled_apart()(level):
            yield
    finally:
        _thread.depth = before
