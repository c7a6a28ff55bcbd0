"""What the builtins may ask of the frontend: programs made from bodies in the kernel language."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir.node import Func
from ..types.core import Type


class Context:
    """Parses the bodies of builtins, once per list of types in a process."""

    def __init__(self):
        self._made: dict[tuple[Callable, tuple[Type, ...]], Func] = {}

    def instantiate(self, body: Callable, types: Sequence[Type]) -> Func:
        """The program of ``body``, a Python function in the kernel language, for arguments of ``types``."""
        key = (body, tuple(types))
        func = self._made.get(key)
        if func is None:
            from .parse import parse_builtin

            func = self._made[key] = parse_builtin(body, types)
        return func


CONTEXT = Context()
