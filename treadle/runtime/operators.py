"""Operators between arrays, and between arrays and values: ``a + b``, ``2.0 * a``, ``a -= b``, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def perform(name: str, arguments: tuple[Any, ...], out: Any) -> Any:
    """Apply the builtin ``name`` to the elements of ``arguments``; results go to ``out``, or to a new array. That takes
    a kernel, so the package puts another function in this one's place."""
    raise NotImplementedError(name)


def _both(name: str) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        return perform(name, (self, other), None)

    return operator


def _swapped(name: str) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        return perform(name, (other, self), None)

    return operator


def _in_place(name: str) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        return perform(name, (self, other), self)

    return operator


class Operators:
    """What arrays and indexed arrays do under Python's operators. Each makes a new array, in-place ones change theirs.

    Meanings are those of kernels: integers divide towards zero, types are not mixed.

    >>> import treadle as wp
    >>> a = wp.array([1.0, 2.0], dtype=float)
    >>> (10.0 - 2.0 * a).list()
    [8.0, 6.0]
    """

    __slots__ = ()

    __add__, __radd__, __iadd__ = _both("add"), _swapped("add"), _in_place("add")
    __sub__, __rsub__, __isub__ = _both("sub"), _swapped("sub"), _in_place("sub")
    __mul__, __rmul__, __imul__ = _both("mul"), _swapped("mul"), _in_place("mul")
    __truediv__, __rtruediv__, __itruediv__ = _both("div"), _swapped("div"), _in_place("div")
    __floordiv__, __rfloordiv__, __ifloordiv__ = _both("floordiv"), _swapped("floordiv"), _in_place("floordiv")
    __mod__, __rmod__, __imod__ = _both("mod"), _swapped("mod"), _in_place("mod")
    __pow__, __rpow__, __ipow__ = _both("pow"), _swapped("pow"), _in_place("pow")

    def __neg__(self) -> Any:
        return perform("neg", (self,), None)

    def __pos__(self) -> Any:
        return perform("pos", (self,), None)
