"""Builtins as Python sees them: ``wp.sin`` is a light object that kernels resolve and Python can call."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.errors import KernelTypeError
from ..types.core import Matrix, Type, b1, f32, i32
from ..types.layout import children, is_composite
from ..types.scalar_values import shown
from ..types.values import class_of


class Builtin:
    """A function of the kernel language. Called from Python it evaluates its definition exactly as kernels do."""

    __slots__ = ("__name__", "__treadle_builtin__")

    def __init__(self, name: str):
        self.__name__ = self.__treadle_builtin__ = name

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        from ..builtins import registry

        return registry.documentation(self.__name__)

    def __repr__(self) -> str:
        return f"<treadle builtin {self.__name__}>"

    def __reduce__(self):
        return Builtin, (self.__name__,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return evaluate(self.__name__, args, kwargs)


def argument(value: Any) -> Any:
    """How the registry sees a host value: its type, the value, and whether it adapts like a literal."""
    from ..builtins.registry import Arg

    if isinstance(value, bool | np.bool_):
        return Arg(b1, bool(value), False)
    if isinstance(value, int):
        return Arg(i32, value, True)
    if isinstance(value, float):
        return Arg(f32, value, True)
    if isinstance(value, str):
        from ..types.core import STR

        return Arg(STR, value, True)
    if isinstance(value, type | Type | tuple | list):  # a dtype, a shape
        return Arg(None, value)
    t = host_type(value)
    if t is not None:
        return Arg(t, value, False)
    if callable(value):
        return Arg(None, None, False, value)
    raise KernelTypeError(f"a builtin cannot take a {type(value).__name__}")


def host_type(value: Any) -> Type | None:
    """The language type of a host value (scalar and vector objects, structs, NumPy scalars), or None."""
    if hasattr(value, "treadle_type"):
        return value.treadle_type()
    t = getattr(type(value), "__treadle_type__", None)
    if t is None and isinstance(value, np.generic):
        from ..types.values import type_of_numpy

        return type_of_numpy(value.dtype)
    return t


def evaluate(name: str, args: tuple, kwargs: dict) -> Any:
    """Evaluate builtin ``name`` on host values through the oracle, the exact interpreter of the language."""
    from ..builtins import registry
    from ..codegen import oracle
    from ..frontend.context import CONTEXT
    from ..ir.builder import Builder
    from ..ir.node import Func, Value

    own = next(registry.records(name)).part("host")
    if own is not None:
        return own(*args, **kwargs)
    described = [argument(a) for a in args]
    named = {k: argument(v) for k, v in kwargs.items()}
    match = registry.resolve(name, described, named, CONTEXT)
    given = [*args, *kwargs.values()]
    params, values, passed, builder = [], [], [], Builder()
    for t, arg, value in zip(match.types, [*described, *named.values()], given, strict=False):
        if t is None or arg.type is None:
            values.append(None)
            continue
        params.append(Value(t))
        values.append(params[-1])
        passed.append(value)
    if match.known is not None:
        return match.known
    made = match.emit(builder, values)
    results = () if made is None else made if isinstance(made, tuple) else (made,)
    func = Func(name, "function", tuple(params), builder.block((), results), tuple(p.type for p in params))
    (out,) = oracle.run(func, passed).values
    given_back = tuple(plain(r, v.type) for r, v in zip(out, results, strict=True))
    for place, new in zip(match.updates, given_back[len(given_back) - len(match.updates) :], strict=True):
        if is_composite(described[place].type):  # Python's numbers cannot be changed in place
            given[place][:] = new
    given_back = given_back[: len(given_back) - len(match.updates)]
    return given_back if len(given_back) > 1 else given_back[0] if given_back else None


def plain(value: Any, t: Type) -> Any:
    """A result as Python users expect it: numbers as values show their components, vectors as host vectors."""
    if isinstance(t, Matrix):
        return class_of(t)(*[p for row in value for p in (row if isinstance(row, tuple) else (row,))])
    if is_composite(t):
        return class_of(t)(*[plain(part, p) for part, p in zip(value, children(t), strict=True)])
    return shown(t, float(value) if t.is_float else int(value))


__all__ = ["Builtin", "argument", "evaluate", "host_type", "plain"]
