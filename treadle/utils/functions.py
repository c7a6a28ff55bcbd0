"""Functions of the kernel language from plain Python functions."""

from __future__ import annotations

from collections.abc import Callable

import treadle as wp

from ..lang.manifest import code_digest


def create_warp_function(func: Callable) -> tuple[wp.Function, wp.Module]:
    """A function that kernels can call, made of a Python function or lambda, and the module of its own that it is in.

    Its name is made of its code, so it is the same in every process.

    >>> import treadle as wp
    >>> square, module = wp.utils.create_warp_function(lambda x: x * x)
    >>> square(3.0)
    9.0
    """
    module = wp.Module(f"{func.__module__}.{func.__qualname__}")
    made = wp.Function(func, module=module)
    made.key = f"func_{code_digest(made.source)[:16]}"
    module.functions[made.key] = made
    return made, module
