"""``@wp.func``: functions that kernels call."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from ..base.errors import KernelTypeError
from ..builtins import blocks
from ..frontend.names import Manifest
from ..frontend.source import EMPTY, Parameter, Source
from ..runtime.shaped import Shaped
from ..types.core import Array, Indexed, Matrix, Scalar, Struct, Tuple, Type, Vector, View
from ..types.layout import leaves
from ..types.limits import Limit
from ..types.promotion import adapts, literal_type
from ..types.spelling import spell
from .module import Module, module_of
from .struct import fits

if TYPE_CHECKING:  # the compiler's rooms are loaded when something is compiled
    from ..frontend.constants import Constant
    from ..ir.node import Func

FUNCTIONS: weakref.WeakSet[Function] = weakref.WeakSet()  # all alive


def forget_all() -> None:
    """A name means another function now, as when a notebook cell runs again: what may call it compiles anew."""
    from .kernel import KERNELS

    for made in (*KERNELS, *FUNCTIONS):
        made.forget()


class Function:
    """A user's function of the kernel language, with its overloads (same name, same module).

    Callable from kernels; called from Python it runs as Python, its builtins evaluated as kernels do.
    """

    __treadle_open__ = __treadle_callable__ = True  # as the annotation of a parameter: any function, builtins too

    def __init__(
        self,
        func: Any,
        key: str | None = None,
        module: Module | None = None,
        inline: bool | None = None,
        namespace: dict[str, Any] | None = None,
        source: Source | None = None,
    ):
        self.func = func
        self.key = key or func.__qualname__.rpartition(".<locals>.")[2]
        self.module = module
        self.inline = inline
        self.source = Source(func, namespace=namespace) if source is None else source
        if source is None:
            self.source.declare()
        self.overloads: list[Function] = [self]
        self.adjoint: Function | None = None  # what the user wrote for its gradient, see rules.py
        self.replay: Function | None = None
        self.programs: dict[tuple, Func] = {}
        self._manifest = Manifest()
        self._host: dict[tuple, Function] = {}  # overloads that calls from Python took, by types
        functools.update_wrapper(self, func)
        FUNCTIONS.add(self)

    def __repr__(self) -> str:
        return f"<treadle function {self.key}>"

    @property
    def defaults(self) -> dict[str, Any]:
        """The defaults of its parameters, for calls in kernels; kernels compiled after a change see it."""
        return self.source.defaults

    @defaults.setter
    def defaults(self, defaults: dict[str, Any]) -> None:
        self.source.defaults = defaults

    @property
    def treadle_parameters(self) -> tuple[Parameter, ...]:
        """The parameters, as callers bind arguments to them."""
        return self.source.parameters()

    @property
    def treadle_references(self) -> tuple[int | str, ...]:
        """The parameters that stand for the caller's variables: their positions and names, by turns."""
        places = {p.name: k for o in self.overloads for k, p in enumerate(o.treadle_parameters)}
        names = [p.name for o in self.overloads for p in o.treadle_parameters if p.name in o.source.references]
        return tuple([part for name in dict.fromkeys(names) for part in (places[name], name)])

    def treadle_function(
        self, types: Sequence[Type | None], constants: Sequence[Constant | None] = (), gradient: int = 0
    ) -> Func:
        """The program of this function for arguments of ``types``; ``constants`` holds those known while compiling.
        ``gradient``: how often it will be differentiated.

        Raises:
            KernelTypeError: an argument that does not fit its annotation, or an error in the body.
        """
        chosen, wanted, known = self.chosen(types, constants)
        depth = gradient if chosen.adjoint is None else 0  # nobody looks into what has a gradient function
        key = (wanted, known_values(wanted, known), depth)
        func = chosen.programs.get(key)
        if func is None:
            func = chosen.programs[key] = chosen._parsed(wanted, known, depth)
        return func

    def chosen(
        self, types: Sequence[Type | None], constants: Sequence[Constant | None]
    ) -> tuple[Function, tuple[Type | None, ...], tuple[Constant | None, ...]]:
        """The overload for a call, the types of its parameters, and the arguments known while compiling."""
        known = tuple(constants) or (None,) * len(types)
        found = self if len(self.overloads) == 1 else self.select(types, known)
        return found, found.settle(types, known), known

    def treadle_rules(
        self, types: Sequence[Type | None], constants: Sequence[Constant | None], gradient: int
    ) -> dict[str, Any]:
        """What the user wrote for the gradient of a call: its gradient function as "adjoint", its "replay" function. If
        no gradient is asked for, that the call is "apart" where there are such."""
        from ..ir.walk import UNDECIDED
        from .rules import programs

        chosen, wanted, known = self.chosen(types, constants)
        if not (chosen.adjoint or chosen.replay):
            return {}
        return programs(chosen, wanted, known, gradient) if gradient else {"apart": UNDECIDED}

    def _parsed(self, types: tuple[Type | None, ...], known: Sequence[Constant | None], gradient: int) -> Func:
        from dataclasses import replace

        from ..frontend.parse import Options, parse

        options = Options(gradient=gradient)
        func = parse(self.source, types, options, "function", known, self._manifest, self.key)
        facts = {} if self.inline is None else {"inline": self.inline}
        if (self.adjoint or self.replay) and any(isinstance(leaf.type, View) for t in types if t for leaf in leaves(t)):
            facts["ruled"] = True
        return replace(func, facts={**func.facts, **facts}) if facts else func

    def forget(self) -> None:
        """Drop the programs made so far; they may hold functions that have been defined anew."""
        self.programs.clear()
        self._host.clear()
        self._manifest = Manifest()

    def manifest(self) -> Manifest:
        """The outside names that the programs made so far depend on."""
        return self._manifest

    def settle(self, types: Sequence[Type | None], known: Sequence[Constant | None]) -> tuple[Type | None, ...]:
        """The parameter types for a call: the annotation where a literal takes it, else the argument's own type."""
        found = []
        for p, declared, limit, t, c in zip(
            self.source.parameters(), self.source.parameter_types(), self.source.limits, types, known, strict=True
        ):
            if not fits_call(t, declared, c) or not _passes(t, limit):
                wanted = spell(declared) if declared is not None else str(p.annotation).replace("~", "wp.")
                raise KernelTypeError(
                    f"argument {p.name!r} of {self.key} must be {wanted}, not {spell(t)}",
                    hint=_cast_hint(declared, t),
                )
            found.append(declared if isinstance(declared, Scalar) else t)
        return tuple(found)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        chosen = None if kwargs else self._host.get(tuple(map(type, args)))
        return (chosen or self._found(args, kwargs)).func(*args, **kwargs)

    def _found(self, args: tuple, kwargs: dict[str, Any]) -> Function:
        """The overload for a call from Python. Classes of values, of whole numbers how wide they are, and types of
        arrays tell it the next time."""
        kinds = [x.type if isinstance(x, Shaped) else literal_type(x) if type(x) is int else type(x)
                 for x in (*args, *kwargs.values())]  # fmt: skip
        key = (*kinds[: len(args)], *zip(kwargs, kinds[len(args) :]))
        chosen = self._host.get(key)
        if chosen is None:
            chosen = self._host_overload(args, kwargs)
            if all([isinstance(k, Type) or k in _NUMBERS or hasattr(k, "__treadle_type__") for k in kinds]):
                self._host[key] = chosen
        return chosen

    def _host_overload(self, args: tuple, kwargs: dict[str, Any]) -> Function:
        """The overload for a call from Python, whose parameters have exactly the types of the arguments."""
        for candidate in self._in_order():
            params = candidate.source.parameters()
            names = [p.name for p in params]
            given = dict(zip(names, args))
            if len(given) == len(args) and not given.keys() & kwargs.keys() and kwargs.keys() <= set(names):
                given.update(kwargs)
                if all([candidate._takes(p.name, given[p.name]) if p.name in given else p.default is not EMPTY
                        for p in params]):  # fmt: skip
                    return candidate
        shown = args if not kwargs else (*args, *kwargs.values())
        raise KernelTypeError(f"Error calling function {self.key!r}, no overload found for arguments {shown}")

    def _takes(self, name: str, value: Any) -> bool:
        """Whether parameter ``name`` may be ``value`` in a call from Python."""
        if name in self.source.callables:
            return isinstance(value, Function) or hasattr(value, "__treadle_builtin__")
        place = [p.name for p in self.source.parameters()].index(name)
        declared = self.source.parameter_types()[place]
        limit = self.source.limits[place]
        if declared is None and limit is None:
            return True
        from .host import argument

        try:
            t = getattr(value, "type", None) if isinstance(declared, Array | Indexed) else argument(value).type
        except KernelTypeError:
            return False
        return isinstance(t, Type) and (declared is None or fits(t, declared)) and _passes(t, limit)

    def get_overload(self, arg_types: Sequence[Any], kwarg_types: dict[str, Any] | None = None) -> Function:
        """The overload for arguments of these types, given as annotations.

        Raises:
            KernelTypeError: there is none.
        """
        names = [p.name for p in self.source.parameters()]
        notes = [*arg_types, *[(kwarg_types or {})[n] for n in names if n in (kwarg_types or {})]]
        return self.select([self.source.type_of(note) for note in notes])

    def _in_order(self) -> list[Function]:
        """The overloads as calls try them: the fewer parameters take any type the earlier, the latest first."""
        return sorted(reversed(self.overloads), key=_openness)

    def select(self, types: Sequence[Type | None], known: Sequence[Constant | None] = ()) -> Function:
        """The overload whose annotations take arguments of ``types``: exactly, or else with literals adapted."""
        constants = known or (None,) * len(types)
        ordered = self._in_order()
        for literals in ((None,) * len(types), constants):
            for candidate in ordered:
                if candidate.accepts(types, literals):
                    return candidate
        if len(self.overloads) == 1:
            return self  # let the parser say what does not fit, naming the argument
        shown = ", ".join(str(t) for t in types)
        listed = "; ".join(f"{o.key}({', '.join(map(str, o.source.parameter_types()))})" for o in self.overloads)
        raise KernelTypeError(f"no overload of {self.key} takes ({shown})", hint=f"there are {listed}")

    def accepts(self, types: Sequence[Type | None], known: Sequence[Constant | None]) -> bool:
        """Whether the annotations take arguments of ``types``."""
        declared = self.source.parameter_types()
        required = sum(p.default is EMPTY for p in self.source.parameters())
        if not required <= len(types) <= len(declared):
            return False
        told = zip(types, declared, self.source.limits, known, strict=False)
        return all(fits_call(t, d, c) and _passes(t, limit) for t, d, limit, c in told)


_NUMBERS = (bool, float)


def _openness(f: Function) -> tuple[int, int]:
    """How many parameters of ``f`` take arguments of any type, and how many of some types."""
    types, limits = f.source.parameter_types(), f.source.limits
    some = [t is None or (isinstance(t, Array) and t.elem is None) for t in types]
    return sum([t is None and limit is None for t, limit in zip(types, limits)]), sum(some)


def _passes(t: Type | None, limit: Limit | None) -> bool:
    """Whether arguments of type ``t`` are what an open annotation asks for; what has no type passes."""
    return limit is None or t is None or limit(t)


_AT_RUN_TIME = (Scalar, Vector, Matrix, Struct, View, Tuple)


def known_values(types: Sequence[Type | None], known: Sequence[Constant | None]) -> tuple[Any, ...]:
    """The functions, types and texts among the arguments, None for the others, and the threads of a block: with the
    types they name a program."""
    values = [
        c.value if c is not None and not isinstance(t, _AT_RUN_TIME) else None
        for c, t in zip(known, types, strict=True)
    ]  # fmt: skip
    return (*values, blocks.SIZE.get())


def fits_call(t: Type | None, declared: Type | None, known: Constant | None) -> bool:
    """Whether an argument of type ``t``, perhaps a literal, may stand where ``declared`` is annotated."""
    if declared is None or t is None or fits(t, declared):
        return True
    return known is not None and known.literal and adapts(known.value, declared)


def _cast_hint(declared: Type | None, t: Type | None) -> str:
    both = isinstance(declared, Scalar) and isinstance(t, Scalar)
    return f"cast it: {spell(declared)}(…)" if both else ""


P, R = ParamSpec("P"), TypeVar("R")


@overload
def func(f: Callable[P, R]) -> Callable[P, R]: ...


@overload
def func(
    f: None = None, *, name: str | None = None, module: Module | str | None = None, inline: bool | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def func(
    f: Any = None, *, name: str | None = None, module: Module | str | None = None, inline: bool | None = None
) -> Any:
    """Make ``f`` a function that kernels can call.

    Args:
        f: a Python function of the kernel language. Parameters without annotation, or annotated ``Any``, take any type.
        name: another name than the function's own.
        module: the module it belongs to (default: its Python module), or "unique".
        inline: whether to copy the body into callers; None lets the compiler decide.

    Functions of one name in one scope are overloads: calls choose by the types of the arguments.

    Raises:
        KernelTypeError: ``inline`` is neither a bool nor None.

    >>> import treadle as wp
    >>> @wp.func
    ... def square(x: float):
    ...     return x * x
    >>> square(3.0)
    9.0
    """
    if inline is not None and not isinstance(inline, bool):
        raise KernelTypeError(f"inline must be a bool or None, not {type(inline).__name__}")
    around = sys._getframe(1).f_locals  # not the frame, which would keep its callers

    def declare(fn: Any) -> Function:
        names = dict(around) if "<locals>" in fn.__qualname__ else None
        return register(Function(fn, name, module_of(fn, module), inline, names), around)

    return declare if f is None else declare(f)


def register(made: Function, around: dict[str, Any]) -> Function:
    """Note ``made`` in its module, as an overload where there is a function of its name in the same scope, whose names
    are ``around``; gives it back."""
    if hasattr(made.source.annotations.get("return"), "__treadle_type__"):
        made.source.return_type()  # says what is wrong with it, as with those of parameters
    nested = "<locals>" in made.func.__qualname__
    known = around.get(made.func.__name__) if nested else made.module.functions.get(made.key)
    if isinstance(known, Function) and known.key == made.key:
        _join(made, known)
        if not nested or _captured(known):
            forget_all()
    made.module.functions[made.key] = made
    return made


def _join(made: Function, known: Function) -> None:
    """Let ``made`` be an overload beside those of ``known``, defined earlier under its name in the same scope. One with
    the same parameters it takes the place of, for whoever means ``made``; who holds ``known`` goes on with the old."""
    asked = made.source.parameter_types(), made.source.limits
    alike = [o for o in known.overloads if (o.source.parameter_types(), o.source.limits) == asked]
    if any(_by_reference(o) != _by_reference(made) for o in alike):
        what = f"two functions {made.key} that differ only by wp.ref: a call could mean either"
        raise KernelTypeError(what, made.source.span, "give one of them another name")
    others = [o for o in known.overloads if o not in alike]
    if len(others) == len(known.overloads):
        known.overloads.append(made)
        made.overloads = known.overloads
    else:
        made.overloads = [*others, made]
    for o in made.overloads:
        o._host.clear()


def _by_reference(f: Function) -> list[bool]:
    """Which parameters stand for the caller's variables."""
    return [p.name in f.source.references for p in f.treadle_parameters]


def _captured(f: Function) -> bool:
    """Whether kernels or functions reach ``f`` through a variable of the scope around them."""
    from .kernel import KERNELS

    known = [x.source for x in (*KERNELS, *FUNCTIONS) if x.source.code.co_freevars]
    return any([value is f for source in known for value in source.closure.values()])
