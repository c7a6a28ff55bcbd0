"""``@wp.func_native``: functions whose body is written in C."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..base.errors import KernelTypeError
from ..frontend.snippet.source import SnippetSource
from ..runtime.shaped import Shaped
from .function import Function, register
from .host import argument, plain
from .module import module_of


class NativeFunction(Function):
    """A function whose body is a snippet in C. It is compiled like every other: into gangs, caches and gradients."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate it from Python, on values; arrays need a kernel."""
        from ..codegen import oracle

        names = [p.name for p in self.source.parameters()]
        named = {**self.source.defaults, **kwargs}
        given = [*args, *[named[n] for n in names[len(args) :] if n in named]]
        types = [None if isinstance(x, Shaped) else argument(x).type for x in given]
        if len(given) != len(names) or None in types:
            raise KernelTypeError(f"{self.key} takes {', '.join(names)}; outside of kernels numbers, vectors and such")
        func = self.treadle_function(types)
        outcome = oracle.run(func, given)
        (out,) = outcome.values
        print(outcome.printed, end="")
        made = tuple([plain(x, y.type) for x, y in zip(out, func.body.yields, strict=True)])
        return made if len(made) > 1 else made[0] if made else None


def func_native(
    snippet: str, adj_snippet: str | None = None, replay_snippet: str | None = None
) -> Callable[[Callable], NativeFunction]:
    """Give a function a body in C; a decorator.

    The decorated function says the name, the annotated parameters and, if there is a result, its type. The snippet sees
    the parameters and Warp's builtins (with or without ``wp::``). It may have what a function on numbers, vectors and
    arrays needs: declarations, expressions, assignments, ``if``, ``switch``, ``for``, ``while``, ``do``, ``return``,
    local arrays, pointers that stand for a place in an array, the usual functions of C and CUDA (``sqrtf``,
    ``atomicAdd``, ``__builtin_ctz`` …), casts, and directives; no macro of compilers is defined, so code under
    ``#if defined(__CUDA_ARCH__)`` goes away. It becomes the program that Python would give, so it runs in gangs and,
    without an ``adj_snippet``, is differentiated (beyond Warp). Numbers are converted as in C.

    Args:
        snippet: the body.
        adj_snippet: the body of its gradient: it adds to ``adj_x`` for each parameter ``x`` (of an array: to elements
            of its gradient) what ``adj_ret``, or gradients of arrays, tell.
        replay_snippet: what stands for it while a gradient runs the program again.

    Raises:
        ModuleNotFoundError: pycparser is not installed: ``pip install 'treadle[native]'``; told when it is compiled.
        KernelSyntaxError: C beyond this; told when it is compiled, with the line of the snippet.

    >>> import treadle as wp
    >>> @wp.func_native("float s = x * x; return s + 1.0f;", "adj_x += 2.0f * x * adj_ret;")
    ... def square_plus_one(x: float) -> float: ...
    >>> square_plus_one(3.0)
    10.0
    """
    around = sys._getframe(1).f_locals

    def declare(fn: Callable) -> NativeFunction:
        nested = "<locals>" in fn.__qualname__
        home, names = module_of(fn, None), dict(around) if nested else None
        made = NativeFunction(fn, None, home, None, names, SnippetSource(fn, snippet, names))
        if adj_snippet is not None:
            rule = SnippetSource(fn, adj_snippet, names, adjoint=True)
            made.adjoint = Function(fn, f"adj_{made.key}", home, None, names, rule)
        if replay_snippet is not None:
            again = SnippetSource(fn, replay_snippet, names)
            made.replay = Function(fn, f"replay_{made.key}", home, None, names, again)
        return register(made, around)

    return declare
