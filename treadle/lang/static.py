"""Values fixed while compiling: ``wp.static`` and ``wp.constant``."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def static(expr: T) -> T:
    """Inside a kernel: evaluate ``expr`` in Python while compiling and use its value as a constant.

    ``expr`` may use globals, captured variables and the loop variables of unrolled loops. Called from Python it
    returns its argument.

    >>> import treadle as wp
    >>> wp.static(2 + 3)
    5
    """
    return expr


static.__treadle_static__ = True


def constant(x: T) -> T:
    """Mark ``x`` as a constant that kernels may read. Any number, vector or matrix at module level already is one.

    Args:
        x: An int, float, bool, or a value of a scalar, vector, matrix or quaternion type.

    Raises:
        TypeError: ``x`` is none of these.

    >>> import treadle as wp
    >>> wp.constant(17)
    17
    """
    if not is_constant(x):
        raise TypeError(f"wp.constant takes a number, vector, matrix or quaternion. Invalid constant type: {type(x)}")
    return x


def is_constant(x: Any) -> bool:
    """Whether kernels can read ``x`` as a constant."""
    return isinstance(x, bool | int | float) or hasattr(type(x), "__treadle_type__")
