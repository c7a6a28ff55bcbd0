"""Compiling ahead: launches that only say what they will need, so that several cores can work on it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..runtime import capture
from .natives import install

_running = threading.local()


@contextmanager
def ahead() -> Iterator[None]:
    """Launches of this thread in the block do not run: their kernels are translated, while another thread compiles
    them, and all are ready when the block ends. Everything else in it, copies for instance, is done as ever.

    What is launched must not depend on results of launches before. Errors of kernels are raised as launches raise them.

    >>> import treadle as wp
    >>> from treadle.lang.ahead import ahead
    >>> @wp.kernel
    ... def count(n: wp.array(dtype=int)):
    ...     wp.atomic_add(n, 0, 1)
    >>> n = wp.zeros(1, dtype=int)
    >>> with ahead():
    ...     wp.launch(count, dim=8, inputs=[n])
    >>> n.list()
    [0]
    """
    install()
    outer, _running.variants = asked(), []
    try:
        with capture.declining():
            yield
        for variant in _running.variants:
            variant.program  # noqa: B018  is loaded when it is asked for
    finally:
        _running.variants = outer


def asked() -> list[Any] | None:
    """Where a launch of this thread leaves the variant that it needs, in place of running it; None where it runs."""
    return getattr(_running, "variants", None)
