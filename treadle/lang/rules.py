"""Gradients that the user writes: ``@wp.func_grad``, ``@wp.func_replay``, ``wp.adjoint``; and ``wp.grad(f)``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ..base.errors import KernelGradientError
from ..types.core import Type
from ..types.spelling import spell
from .function import Function, fits_call, forget_all, known_values
from .host import Builtin

if TYPE_CHECKING:
    from ..frontend.constants import Constant
    from ..ir.node import Func


def func_grad(forward: Any) -> Callable[[Callable], Callable]:
    """Give the function ``forward`` a gradient of your own; a decorator.

    The decorated function takes the arguments of ``forward``, then the adjoint of each of its results, all annotated
    alike. It returns nothing: it adds to ``wp.adjoint[x]`` for each argument ``x`` (of an array: to its gradient,
    ``wp.adjoint[a][i] += …``). Of an argument passed by reference ``wp.adjoint[x]`` is at first the adjoint of what the
    function left in it, and at last that of what it found there. The decorated function belongs to the overload of
    ``forward`` whose parameters have the same annotations; where these are ``Any`` it serves every type (beyond Warp).

    Returns: the decorated function, unchanged.

    Raises:
        KernelGradientError: ``forward`` is no function of the kernel language, or none of its overloads fits; that the
            adjoints do not fit the results is told when the gradient is compiled.

    >>> import treadle as wp
    >>> @wp.func
    ... def straight(x: float):
    ...     return wp.round(x)
    >>> @wp.func_grad(straight)
    ... def adj_straight(x: float, adj_ret: float):
    ...     wp.adjoint[x] += adj_ret
    """
    return _decorator(forward, "adjoint", sys._getframe(1).f_locals)


def func_replay(forward: Any) -> Callable[[Callable], Callable]:
    """Say what stands for the function ``forward`` while a gradient runs the program again; a decorator.

    Backward runs a kernel a second time to have its intermediate values. Where that must not repeat what ``forward``
    does to memory, such as counting up, the decorated function gives the same results in another way. It takes the
    same arguments, with the same annotations.

    Returns: the decorated function, unchanged.

    Raises:
        KernelGradientError: ``forward`` is no function of the kernel language, or none of its overloads fits; that the
            results differ in type is told when the gradient is compiled.

    >>> import treadle as wp
    >>> @wp.func
    ... def ticket(counter: wp.array(dtype=int), drawn: wp.array(dtype=int), tid: int):
    ...     number = wp.atomic_add(counter, 0, 1)
    ...     drawn[tid] = number
    ...     return number
    >>> @wp.func_replay(ticket)
    ... def ticket_again(counter: wp.array(dtype=int), drawn: wp.array(dtype=int), tid: int):
    ...     return drawn[tid]
    """
    return _decorator(forward, "replay", sys._getframe(1).f_locals)


def _decorator(forward: Any, role: str, names: dict[str, Any]) -> Callable[[Callable], Callable]:
    word = {"adjoint": "func_grad", "replay": "func_replay"}[role]
    if not isinstance(forward, Function):
        shown = getattr(forward, "__name__", None) or type(forward).__name__
        raise KernelGradientError(f"wp.{word} takes a function under @wp.func, not {shown}")

    def declare(fn: Callable) -> Callable:
        nested = "<locals>" in fn.__qualname__
        made = Function(fn, None, forward.module, None, dict(names) if nested else None)
        target = _overload_of(forward, made, role)
        known = getattr(target, role) is not None or any(k.overloads for k in forward.module.kernels.values())
        setattr(target, role, made)
        if known or target.programs:  # gradients of it may have been compiled with another rule, or none
            forget_all()
        return fn

    return declare


def _overload_of(forward: Function, made: Function, role: str) -> Function:
    """The overload of ``forward`` that ``made`` belongs to: the latest whose parameters have the same types."""
    given = made.source.parameter_types()
    for candidate in reversed(forward.overloads):
        declared = candidate.source.parameter_types()
        if given[: len(declared)] == declared and (role == "adjoint" or len(given) == len(declared)):
            return candidate
    listed = "; ".join(f"{o.key}({_list(o.source.parameter_types())})" for o in forward.overloads)
    what = "the arguments of the function, then the adjoints of its results" if role == "adjoint" else "the same"
    raise KernelGradientError(
        f"{made.key}({_list(given)}) fits no overload of {forward.key}",
        made.source.span,
        f"its parameters must be {what}; there is {listed}",
    )


def _list(types: Sequence[Type | None]) -> str:
    return ", ".join("Any" if t is None else spell(t) for t in types)


def programs(
    f: Function, types: tuple[Type | None, ...], known: tuple[Constant | None, ...], gradient: int
) -> dict[str, Func]:
    """The attributes that a call of the overload ``f`` has where it is to be differentiated, ``gradient`` times.

    Raises:
        KernelGradientError: the user's functions do not go with the results of ``f``.
    """
    func = f.treadle_function(types, known)
    results = tuple([y.type for y in func.body.yields])
    found = {}
    if f.adjoint is not None:
        found["adjoint"] = _adjoint_program(f, f.adjoint, types, known, func, gradient - 1)
    if f.replay is not None:
        replay = found["replay"] = f.replay.treadle_function(types, known)
        given = tuple([y.type for y in replay.body.yields])
        if given != results:
            _misfit(f.replay, f"returns ({_list(given)}), while {f.key} returns ({_list(results)})", "return the same")
    return found


def _adjoint_program(
    f: Function,
    rule: Function,
    types: tuple[Type | None, ...],
    known: tuple[Constant | None, ...],
    func: Func,
    gradient: int,
) -> Func:
    """The gradient function ``rule`` of ``f``, whose program is ``func``, as a program."""
    from ..frontend.parse import Options, parse_rule

    made, alters = tuple([y.type for y in func.body.yields]), func.facts.get("alters", ())
    results = made[: len(made) - len(alters)]  # behind them stand the new values of arguments passed by reference
    declared = rule.source.parameter_types()[len(types) :]
    if len(declared) != len(results) or not all(map(_takes, results, declared)):
        _misfit(
            rule,
            f"takes ({_list(declared)}) after the arguments of {f.key}, which returns ({_list(results)})",
            "take the adjoint of each result, of the result's type",
        )
    key = (types, known_values(types, known), gradient)
    found = rule.programs.get(key)
    if found is None:
        options = Options(gradient=gradient)
        found = parse_rule(rule.source, types, made, options, known, rule.manifest(), f"adjoint {f.key}", alters)
        rule.programs[key] = found
    return found


def _takes(result: Type, declared: Type | None) -> bool:
    return fits_call(result, declared, None)


def _misfit(rule: Function, message: str, hint: str) -> NoReturn:
    raise KernelGradientError(f"{rule.key} {message}", rule.source.span, hint)


class Gradient:
    """The derivative of a function, ``wp.grad(f)``; kernels and functions call it with the arguments of ``f``."""

    __slots__ = ("treadle_differentiated",)

    def __init__(self, f: Function | Builtin):
        self.treadle_differentiated = f

    def __repr__(self) -> str:
        return f"<gradient of {self.treadle_differentiated!r}>"

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise KernelGradientError("what wp.grad gives can only be called in kernels and functions")


def grad(f: Any) -> Gradient:
    """The derivative of the function ``f``, to be called in kernels with the arguments of ``f``.

    It gives one value for each argument that is not an array, of the argument's type: the derivative of the result by
    that argument (of the sum of the results, where there are several; zero for integers). One value stands alone,
    several are a tuple. Arrays are taken as given.

    Args:
        f: a function under ``@wp.func``, or a builtin such as ``wp.sin``.

    Raises:
        KernelGradientError: ``f`` is neither.

    >>> import treadle as wp
    >>> @wp.func
    ... def energy(x: float, k: float):
    ...     return 0.5 * k * x * x
    >>> @wp.kernel
    ... def force(x: wp.array(dtype=float), f: wp.array(dtype=float)):
    ...     i = wp.tid()
    ...     by_x, by_k = wp.grad(energy)(x[i], 3.0)
    ...     f[i] = -by_x
    """
    if not isinstance(f, Function) and not hasattr(f, "__treadle_builtin__"):
        raise KernelGradientError(f"wp.grad takes a function of the kernel language, not {type(f).__name__}")
    return Gradient(f)


grad.__treadle_grad__ = True


class _Adjoint:
    """``wp.adjoint``: in gradient functions ``wp.adjoint[x]`` is the adjoint of argument ``x``, to be added to."""

    __slots__ = ()
    __name__ = "adjoint"
    __treadle_adjoint__ = True

    def __repr__(self) -> str:
        return "<treadle adjoint>"

    def __getitem__(self, x: Any) -> NoReturn:
        raise KernelGradientError("wp.adjoint is there only in gradient functions", hint="see wp.func_grad")


adjoint = _Adjoint()
