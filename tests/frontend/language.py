"""The language as far as the frontend's tests need it: what lies above the frontend is stood in for.

Kernels of the tests write ``wp.…`` as users do; ``program`` parses one and ``run`` runs it on the oracle.
"""

from __future__ import annotations

import sys
import types as python_types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.base.errors import KernelGradientError, KernelTypeError, TreadleError
from treadle.builtins import registry
from treadle.codegen import oracle
from treadle.frontend.parse import Options, parse, parse_rule
from treadle.frontend.source import Source
from treadle.ir.node import Func
from treadle.ir.show import show
from treadle.ir.verify import verify
from treadle.ir.walk import UNDECIDED
from treadle.types import values
from treadle.types.annotations import type_of
from treadle.types.core import Array, Scalar, Struct, Type, View, array, view
from treadle.types.spelling import spell


class Word:
    """A builtin by its name."""

    def __init__(self, name: str):
        self.__name__ = self.__treadle_builtin__ = name

    def __call__(self, *args: Any) -> Any:
        raise AssertionError(f"{self.__name__} is not called in Python")


def static(value: Any) -> Any:
    return value


static.__treadle_static__ = True


class Adjoint:
    """Stands in for ``wp.adjoint``."""

    __treadle_adjoint__ = True


class Gradient:
    """Stands in for what ``wp.grad`` gives."""

    def __init__(self, f: Any):
        self.treadle_differentiated = f

    def __call__(self, *args: Any) -> Any:
        raise AssertionError("a gradient is not called in Python")


def grad(f: Any) -> Gradient:
    if not hasattr(f, "treadle_function") and not hasattr(f, "__treadle_builtin__"):
        raise KernelGradientError("no function")
    return Gradient(f)


grad.__treadle_grad__ = True


class UserFunction:
    """Stands in for ``wp.func``: parsed once for each list of argument types."""

    def __init__(self, function: Callable):
        self.source = Source(function)
        self.__name__ = function.__name__
        self.made: dict[tuple, Func] = {}

    def __call__(self, *args: Any) -> Any:
        return self.source.function(*args)

    @property
    def treadle_parameters(self) -> tuple:
        return self.source.parameters()

    def treadle_function(self, types: tuple, constants: tuple, gradient: int = 0) -> Func:
        wanted = []
        for p, declared, t, c in zip(
            self.source.parameters(), self.source.parameter_types(), types, constants, strict=True
        ):
            if isinstance(declared, Scalar) and declared is not t and not (c is not None and c.literal):
                raise KernelTypeError(
                    f"argument {p.name!r} of {self.__name__} must be {spell(declared)}, not {spell(t)}"
                )
            wanted.append(declared if isinstance(declared, Scalar) else t)
        key = (*wanted, *[c.value for c, t in zip(constants, wanted, strict=True) if t is None or t.name == "function"])
        if key not in self.made:
            self.made[key] = parse(self.source, wanted, Options(), "function", constants)
        return self.made[key]

    def treadle_rules(self, types: tuple, constants: tuple, gradient: int) -> dict[str, Any]:
        """What the test has put into ``rule``, a gradient function; "apart" where nothing is differentiated."""
        rule = getattr(self, "rule", None)
        if rule is None:
            return {}
        if not gradient:
            return {"apart": UNDECIDED}
        results = [y.type for y in self.treadle_function(types, constants).body.yields]
        return {"adjoint": parse_rule(Source(rule), types, results, Options(gradient=gradient - 1), constants)}


def struct(cls: type) -> type:
    """Stands in for ``wp.struct``."""
    names = {**vars(sys.modules[cls.__module__]), "wp": wp}
    fields = tuple((n, general(type_of(a, names))) for n, a in cls.__annotations__.items())
    cls.__treadle_type__ = Struct(f"tests.{cls.__name__}", fields)
    return cls


def general(t: Type) -> Type:
    return view(t.elem, t.ndim, (None,) * t.ndim) if isinstance(t, Array) else t


class Language(python_types.SimpleNamespace):
    """``wp``: value types by name, words for everything else."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in values.names():
            return getattr(values, name)
        if name in ("tid", "printf") or registry.exists(name):
            return Word(name)
        raise AttributeError(f"wp has no {name}")


def array_of(dtype: Any = Any, ndim: int = 1) -> Type:
    return array(type_of(dtype), ndim)


wp = Language(static=static, func=UserFunction, struct=struct, array=array_of, adjoint=Adjoint(), grad=grad,
              pi=3.14159265358979, __name__="wp")  # fmt: skip


def program(kernel: Callable, types: Sequence[Any], kind: str = "kernel", **options: Any) -> Func:
    """The checked program of ``kernel`` for arguments of ``types`` (types, or NumPy arrays of scalars)."""
    return verify(parse(Source(kernel), [as_type(t) for t in types], Options(**options), kind))


def text(kernel: Callable, types: Sequence[Any], kind: str = "kernel", **options: Any) -> str:
    """Its text."""
    return show(program(kernel, types, kind, **options))


def as_type(t: Any) -> Type:
    if isinstance(t, np.ndarray):
        return view(values.type_of_numpy(t.dtype), t.ndim)
    if isinstance(t, Type):
        return t
    return type_of(t)


def run(kernel: Callable, args: Sequence[Any], types: Sequence[Any] | None = None, dim: Any = 1, **options: Any):
    """Run ``kernel`` on the oracle; arrays change in place. Gives what it printed."""
    types = [a if isinstance(a, np.ndarray) else type(a) for a in args] if types is None else types
    return oracle.run(program(kernel, types, **options), list(args), dim).printed


def outputs(kernel: Callable, n: int = 8, dtype: Any = np.float32, dim: Any = 1, **options: Any) -> list:
    """The contents of the only argument, an array of ``n`` zeros, after running ``kernel``."""
    out = np.zeros(n, dtype)
    run(kernel, [out], dim=dim, **options)
    return out.tolist()


def error(kernel: Callable, types: Sequence[Any], kind: str = "kernel") -> TreadleError:
    """The error that ``kernel`` is rejected with."""
    try:
        program(kernel, types, kind)
    except TreadleError as found:
        return found
    raise AssertionError(f"{kernel.__name__} was accepted")


__all__ = ["View", "error", "outputs", "program", "run", "struct", "text", "wp"]
