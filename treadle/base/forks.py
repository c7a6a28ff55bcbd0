"""Locks of a module that a forked process may go on with: whoever held them is gone there."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any


def fresh_lock(names: dict[str, Any], make: Callable[[], Any] = threading.Lock, name: str = "_lock") -> Any:
    """A new lock, to be ``names[name]``, the ``globals()`` of a module; in a forked process another one stands there.

    >>> fresh_lock({}).locked()
    False
    """

    def renew() -> None:
        names[name] = make()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)
    return make()
