"""Builtins as Python sees them: ``wp.sin`` is a light object that kernels resolve and Python can call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import KernelTypeError
from ..builtins.names import PUBLIC
from ..types.core import STR, Matrix, Scalar, Type, b1, f32
from ..types.layout import children, is_composite
from ..types.promotion import in_bits, literal_type
from ..types.scalar_values import shown
from ..types.values import class_of

if TYPE_CHECKING:  # the registry is loaded when a builtin is called
    from ..builtins.registry import Arg, Match


class Builtin:
    """A function of the kernel language. Called from Python it evaluates its definition exactly as kernels do."""

    __slots__ = ("__name__", "__treadle_builtin__", "_calls", "_ready")

    def __init__(self, name: str):
        self.__name__ = self.__treadle_builtin__ = name
        self._ready: dict[tuple[type, ...], Callable[..., Any]] = {}  # by the classes of the arguments
        self._calls: dict[tuple[type, ...], int] = {}  # how often it was called with these, until it is compiled

    @property
    def key(self) -> str:
        """Its name."""
        return self.__name__

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        from ..builtins import registry

        return registry.documentation(self.__name__)

    def __repr__(self) -> str:
        return f"<treadle builtin {self.__name__}>"

    def __reduce__(self):
        return Builtin, (self.__name__,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            ready = self._ready.get(tuple(map(type, args)))
            if ready is not None:
                return ready(*args)
        return self._evaluate(*args, **kwargs)

    def _evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Call by the oracle, and compile what is called often."""
        from .direct import OFTEN

        name, classes = self.__name__, tuple(map(type, args))
        calls = self._calls[classes] = self._calls.get(classes, 0) + 1
        if calls == OFTEN and not kwargs:
            made = compiled(name, args, self._evaluate)
            if made is not None:
                self._ready[classes] = made
        return evaluate(name, args, kwargs)


class _All(Mapping[str, Builtin]):
    """Every builtin by its name."""

    def __getitem__(self, name: str) -> Builtin:
        if name not in PUBLIC:
            raise KeyError(name)
        return Builtin(name)

    def __iter__(self) -> Iterator[str]:
        return iter(PUBLIC)

    def __len__(self) -> int:
        return len(PUBLIC)


builtin_functions = _All()


def argument(value: Any) -> Any:
    """How the registry sees a host value: its type, the value, and whether it adapts like a literal."""
    from ..builtins.registry import Arg

    if isinstance(value, bool | np.bool_):
        return Arg(b1, bool(value), False)
    if isinstance(value, np.generic):  # also np.float64, which is a float
        return Arg(host_type(value), value, False)
    if isinstance(value, int):
        return Arg(literal_type(value), value, True)
    if isinstance(value, float):
        return Arg(f32, value, True)
    if isinstance(value, str):
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


def compiled(name: str, args: tuple, slow: Callable[..., Any]) -> Callable[..., Any] | None:
    """A function that calls builtin ``name`` for arguments of the classes of ``args``; None where more than the classes
    decides what the call means."""
    from ..builtins import registry
    from .direct import direct

    if next(registry.records(name)).part("host") is not None:
        return None
    match = chosen(name, [argument(a) for a in args], {})
    return None if None in match.types else direct(match, name, tuple(map(type, args)), slow)


def chosen(name: str, args: list[Arg], kwargs: dict[str, Arg]) -> Match:
    """What builtin ``name`` means for arguments from Python. Numbers are no constants there, so that ``pow(x, 2.0)`` is
    what it is for any exponent; but they adapt to others, as literals do."""
    from ..builtins import registry
    from ..frontend.context import CONTEXT

    def typed(a: Arg) -> Arg:
        return registry.Arg(a.type) if isinstance(a.type, Scalar) else a

    try:
        return registry.resolve(name, [typed(a) for a in args], {k: typed(a) for k, a in kwargs.items()}, CONTEXT)
    except KernelTypeError:
        return registry.resolve(name, args, kwargs, CONTEXT)


def evaluate(name: str, args: tuple, kwargs: dict) -> Any:
    """Evaluate builtin ``name`` on host values through the oracle, the exact interpreter of the language."""
    from ..builtins import registry
    from ..codegen import oracle
    from ..ir.builder import Builder
    from ..ir.node import Func, Value

    own = next(registry.records(name)).part("host")
    if own is not None:
        return own(*args, **kwargs)
    kwargs = {k: v for k, v in kwargs.items() if v is not None}  # what None stands for is what is left out
    described = [argument(a) for a in args]
    named = {k: argument(v) for k, v in kwargs.items()}
    given = [*args, *kwargs.values()]
    try:
        match = chosen(name, described, named)
    except KernelTypeError as error:
        classes = ", ".join([type(value).__name__ for value in given])
        raise KernelTypeError(f"{error}\nin this call from Python: {name}({classes})") from None
    params, values, passed, builder = [], [], [], Builder()
    for t, arg, value in zip(match.types, [*described, *named.values()], given, strict=False):
        if t is None or arg.type is None:
            values.append(None)
            continue
        params.append(Value(t))
        values.append(params[-1])
        passed.append(in_bits(value, t) if type(value) is int and isinstance(t, Scalar) and t.is_int else value)
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


__all__ = ["Builtin", "argument", "builtin_functions", "evaluate", "host_type", "plain"]
