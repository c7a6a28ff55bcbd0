"""Numbers of a given type as Python objects: ``float32(0.1)``, ``int8(3)`` … with the arithmetic of their type."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..base.config import config
from .core import SCALARS, Scalar, b1, bf16, f32, i32
from .numbers import c_type, quotient, remainder, rounder
from .numpy_types import number_dtype, numpy_dtype
from .spelling import spell


class ScalarValue:
    """One number of a given type. ``value`` is it as a Python number."""

    __slots__ = ("value",)
    __treadle_type__: Scalar
    _round: Callable[[Any], Any]

    def __init__(self, x: Any = 0):
        self.value = type(self)._round(x.value if isinstance(x, ScalarValue) else x)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __bool__(self) -> bool:
        return self.value != 0

    def __index__(self) -> int:
        return operator.index(self.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __reduce__(self):
        return restored_scalar, (type(self).__treadle_type__.name, self.value)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.value, digits)

    def __trunc__(self) -> int:
        return math.trunc(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.value, dtype or number_dtype(type(self).__treadle_type__))


class IntegerValue(ScalarValue):
    """A whole number of a given width."""

    __slots__ = ()


class FloatValue(ScalarValue):
    """A float of a given width. One that was given as an int is shown as it was given: ``float16(-1)``."""

    __slots__ = ("_given",)

    def __init__(self, x: Any = 0.0):
        super().__init__(x)
        if type(x) is int and self.value == x:  # all digits of it are kept
            self._given = x

    def __str__(self) -> str:
        return str(getattr(self, "_given", self.value))


_NUMBERS = (float, int, np.number, np.bool_)


def number_in(x: Any, t: Scalar | None = None) -> Any:
    """The Python number in ``x``, or None; with ``t``, numbers that are of another type do not count."""
    if isinstance(x, ScalarValue):
        return x.value if t is None or type(x).__treadle_type__ is t else None
    return x if isinstance(x, _NUMBERS) else None


def shown(t: Scalar, number: Any) -> Any:
    """A ``number`` of type ``t`` that users ask a value or a builtin for.

    Python's own numbers stand for float32, int32 and bool. A number of any other type keeps its type, so that
    ``wp.sin(v[0])`` of a ``vec3d`` is computed in float64; ``wp.config.legacy_scalar_return_types`` gives Python's own.

    >>> from .core import f32, f64
    >>> shown(f32, 0.5), shown(f64, 0.5)
    (0.5, float64(0.5))
    """
    if t is b1:
        return bool(number)
    if t is f32 or t is i32 or config.legacy_scalar_return_types:
        return number
    c = scalar_class(t)
    made = object.__new__(c)
    made.value = number  # rounded already
    return made


def _scalar_operator(function: Callable, swapped: bool = False) -> Callable:
    def method(self: ScalarValue, other: Any) -> Any:
        if isinstance(other, ScalarValue) and type(other) is not type(self):
            raise TypeError(f"{type(self).__name__} and {type(other).__name__} are not mixed in silence")
        number = number_in(other)
        if number is None:
            return NotImplemented
        t = type(self).__treadle_type__
        if isinstance(number, float) and not t.is_float:
            raise TypeError(f"{type(self).__name__} and float are not mixed in silence")
        a, b = (number, self.value) if swapped else (self.value, number)
        return type(self)(function(t)(a, b))

    return method


def _scalar_comparison(function: Callable) -> Callable:
    def method(self: ScalarValue, other: Any) -> Any:
        number = number_in(other)
        return NotImplemented if number is None else bool(function(self.value, number))

    return method


def _always(function: Callable) -> Callable[[Scalar], Callable]:
    return lambda t: function


def _integer_only(function: Callable) -> Callable[[Scalar], Callable]:
    def choose(t: Scalar) -> Callable:
        if t.is_float:
            raise TypeError(f"{spell(t)} has no bits to combine")
        return function

    return choose


def _power(t: Scalar) -> Callable:
    if not t.is_float:
        raise TypeError(f"{spell(t)} has no '**'; convert it to a float")
    return operator.pow


_ARITHMETIC = {
    "add": _always(operator.add), "sub": _always(operator.sub), "mul": _always(operator.mul), "truediv": quotient,
    "mod": remainder, "floordiv": lambda t: lambda a, b: 0 if b == 0 and t.is_int else math.nan if b == 0 else a // b,
    "and": _integer_only(operator.and_), "or": _integer_only(operator.or_), "xor": _integer_only(operator.xor),
    "lshift": _integer_only(operator.lshift), "rshift": _integer_only(operator.rshift), "pow": _power,
}  # fmt: skip

for _name, _function in _ARITHMETIC.items():
    setattr(ScalarValue, f"__{_name}__", _scalar_operator(_function))
    setattr(ScalarValue, f"__r{_name}__", _scalar_operator(_function, swapped=True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(ScalarValue, f"__{_name}__", _scalar_comparison(getattr(operator, _name)))
for _name, _function in (("neg", operator.neg), ("pos", operator.pos), ("abs", abs), ("invert", operator.invert)):
    setattr(ScalarValue, f"__{_name}__", lambda self, f=_function: type(self)(f(self.value)))
ScalarValue.__hash__ = lambda self: hash(self.value)  # comparison set it aside


@cache
def scalar_class(t: Scalar) -> type:
    """The class of numbers of type ``t``."""
    members = {
        "__slots__": (), "__treadle_type__": t, "_round": staticmethod(rounder(t)), "__module__": "treadle",
        "__doc__": f"A number of type {spell(t)}.", "_type_": c_type(t), "_length_": 1,
    }  # fmt: skip
    if t is not bf16:  # so that NumPy takes the class for a dtype, as in np.zeros(3, dtype=wp.float32)
        members["dtype" if np.lib.NumpyVersion(np.__version__) < "2.4.0" else "__numpy_dtype__"] = numpy_dtype(t)
    base = FloatValue if t.is_float else IntegerValue if t.is_int else ScalarValue
    return type(spell(t), (base,), members)


def restored_scalar(name: str, value: Any) -> Any:
    """The number of type ``name`` that was pickled."""
    return scalar_class(next(t for t in SCALARS if t.name == name))(value)
