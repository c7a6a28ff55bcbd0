"""``@wp.func``: functions that kernels call."""

from __future__ import annotations

import functools
import sys
from typing import Any

from ..base.errors import KernelTypeError
from ..frontend.source import EMPTY, Source
from ..types.core import Type
from .module import Module, module_of
from .struct import fits


class Function:
    """A user's function of the kernel language, with its overloads (same name, same module).

    Callable from kernels; called from Python it runs as Python, its builtins evaluated as kernels do.
    """

    def __init__(self, func: Any, key: str | None = None, module: Module | None = None, inline: bool | None = None,
                 namespace: dict[str, Any] | None = None):
        self.func = func
        self.key = key or func.__qualname__.rpartition(".<locals>.")[2]
        self.module = module
        self.inline = inline
        self.source = Source(func, namespace=namespace)
        self.overloads: list[Function] = [self]
        self._compiled: dict[Any, Any] = {}
        functools.update_wrapper(self, func)

    def __repr__(self) -> str:
        return f"<treadle function {self.key}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        chosen = self.overloads[-1] if len(self.overloads) == 1 else self._host_overload(args)
        return chosen.func(*args, **kwargs)

    def _host_overload(self, args: tuple) -> Function:
        from .host import argument

        return self.select([argument(a).type for a in args])

    def select(self, types: list[Type | None]) -> Function:
        """The overload whose annotations take arguments of ``types``; the latest declared wins."""
        for candidate in reversed(self.overloads):
            if candidate.accepts(types):
                return candidate
        if len(self.overloads) == 1:
            return self  # let the parser say what does not fit, naming the argument
        shown = ", ".join(str(t) for t in types)
        listed = "; ".join(f"{o.key}({', '.join(map(str, o.source.parameter_types()))})" for o in self.overloads)
        raise KernelTypeError(f"no overload of {self.key} takes ({shown})", hint=f"there are {listed}")

    def accepts(self, types: list[Type | None]) -> bool:
        declared = self.source.parameter_types()
        required = sum(p.default is EMPTY for p in self.source.parameters())
        if not required <= len(types) <= len(declared):
            return False
        return all(d is None or t is None or fits(t, d) for t, d in zip(types, declared, strict=False))


def func(f: Any = None, *, name: str | None = None, module: Module | str | None = None, inline: bool | None = None) -> Any:
    """Make ``f`` a function that kernels can call.

    Args:
        f: a Python function of the kernel language. Parameters without annotation, or annotated ``Any``, take any type.
        name: another name than the function's own.
        module: the module it belongs to (default: its Python module), or "unique".
        inline: whether to copy the body into callers; None lets the compiler decide.

    >>> import treadle as wp
    >>> @wp.func
    ... def square(x: float):
    ...     return x * x
    >>> square(3.0)
    9.0
    """
    frame = sys._getframe(1)

    def declare(fn: Any) -> Function:
        home = module_of(fn, module)
        made = Function(fn, name, home, inline, dict(frame.f_locals) if fn.__closure__ or "<locals>" in fn.__qualname__ else None)
        known = home.functions.get(made.key)
        nested = "<locals>" in fn.__qualname__
        if known is not None and not nested and known.source.parameter_types() != made.source.parameter_types():
            known.overloads.append(made)
            made.overloads = known.overloads
        else:
            home.functions[made.key] = made
        return made

    return declare if f is None else declare(f)
