"""Builtins, one record each, and the choice among those of one name.

A record is a class under ``@builtin("group")``, named like the function, of one of three kinds:

* a **primitive** has ``sig``, ``ref`` (its meaning, on NumPy scalars) and ``lower`` (machine code through the emitter);
  it stands in the IR as an op under its own name. One that makes floats of floats has ``adjoint``, see ``adjoint.py``;
* a **body** is a function in the kernel language, called like a user's; where its derivative is not to be taken from
  the body itself, it has ``adjoint`` (and for forward mode ``tangent``), functions in the kernel language too;
* a **special** has ``sig`` and ``emit``, which appends IR by hand, and may have ``result``, a rule that computes the
  result type where the signature cannot say it; or it has ``match``, which does all of it.

``host`` says what a call from Python does, where that is not to evaluate the definition.
``updates`` names parameters whose variable the call changes (``randf(state)`` moves ``state`` on); their new values
follow the result in what the body returns or ``emit`` gives.

Records of one name are overloads and are tried in order. A file is imported when a name in it is first asked for.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any as Object

from ..base.errors import InternalError, KernelNameError, KernelTypeError, TreadleError
from ..ir.builder import Builder
from ..ir.node import Value
from ..ir.ops import PURE, OpInfo, declare
from ..types.core import Scalar, Type, Vector
from ..types.promotion import adapts
from ..types.spelling import spell
from .names import ALIASES, MODULES
from .patterns import Known, Pattern

Result = Type | tuple[Type, ...] | None
EMPTY = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Arg:
    """An argument as a call shows it.

    ``type`` of its value, None where it has none (a dtype, a function). ``value`` where it is known while compiling;
    ``literal`` if that value is a number which takes the type it is asked for. ``function``: a function passed.
    """

    type: Type | None
    value: Object = None
    literal: bool = False
    function: Object = None

    def show(self) -> str:
        if self.type is not None:
            return spell(self.type)
        name = getattr(self.value if self.function is None else self.function, "__name__", None)
        return name or repr(self.value)


@dataclass(frozen=True, slots=True)
class Match:
    """A record (or constructor) chosen for some arguments.

    ``types``: per argument, positional ones first, then keywords in the order given: the type its value must have, None
    where no value is passed. ``emit`` takes the values in that order and appends IR. ``updates``: the arguments, by
    position, whose variables get new values; ``emit`` gives these after the result, all in one tuple.
    ``known``: the result where it is known while compiling (a length); None if it is not.
    """

    name: str
    types: list[Type | None]
    result: Result
    emitter: Callable[..., Object]
    updates: tuple[int, ...] = ()
    known: Object = None

    def emit(self, builder: Builder, values: list[Value | None]) -> Object:
        """Append the code of the call; its value, a tuple of values, or None (and the updates, see above)."""
        ready = [fitted(builder, v, t) for v, t in zip(values, self.types, strict=True)]
        return self.emitter(builder, ready)


def fitted(builder: Builder, value: Value | None, want: Type | None) -> Value | None:
    """``value`` converted to the scalar type ``want`` where it has another."""
    if value is None or want is None or value.type is want:
        return value
    if isinstance(want, Scalar) and isinstance(value.type, Scalar):
        return builder.one("cast", (value,), want)
    return value


class Mismatch(Exception):
    """Raised by a ``result`` rule: these arguments do not fit, and why."""

    def __init__(self, reason: str, hint: str = ""):
        self.reason, self.hint = reason, hint
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter: its name, its pattern, a default, and whether it takes all that follow."""

    name: str
    pattern: Pattern | Type
    default: Object = EMPTY
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """Parameters and the pattern of the result (``EMPTY`` where a rule or the body says it)."""

    params: tuple[Param, ...]
    result: Object = EMPTY

    @classmethod
    def of(cls, function: Callable) -> Signature:
        """Read off the annotations of ``function``."""
        found = inspect.signature(function)
        params = tuple(
            Param(p.name, p.annotation, p.default, p.kind is p.VAR_POSITIONAL) for p in found.parameters.values()
        )
        return cls(params, found.return_annotation)

    def show(self, name: str) -> str:
        shown = []
        for p in self.params:
            mark = "*" if p.variadic else ""
            default = "" if p.default is EMPTY else f" = {p.default!r}"
            shown.append(f"{mark}{p.name}: {_show_pattern(p.pattern)}{default}")
        return f"{name}({', '.join(shown)})"


def _show_pattern(p: Pattern | Type) -> str:
    return spell(p) if isinstance(p, Type) else str(p)


@dataclass(frozen=True, slots=True)
class Deferred:
    """A body in a file that is imported when the body is first needed."""

    module: str
    name: str

    def load(self) -> Callable:
        return getattr(importlib.import_module(self.module), self.name)


def rule(name: str) -> Deferred:
    """The function of that name in ``derivatives``."""
    return Deferred(f"{__package__}.derivatives", name)


@dataclass(frozen=True)
class Record:
    """One builtin, or one overload of it."""

    name: str
    group: str
    doc: str
    definition: type

    @property
    def __treadle_builtin__(self) -> str:
        return self.name

    @cached_property
    def kind(self) -> str:
        """ "primitive", "body" or "special"."""
        parts = vars(self.definition)
        return "primitive" if "lower" in parts else "body" if "body" in parts else "special"

    @cached_property
    def signature(self) -> Signature:
        given = self.part("sig")
        if isinstance(given, Signature):
            return given
        found = Signature.of(given or self.part("body"))
        if self.kind == "body":  # patterns mean something here only; a body is translated for given types
            self.part("body").__annotations__ = {}
        return found

    @cached_property
    def by_type(self) -> bool:
        """Whether the types of arguments decide all: the record asks for no value known while compiling."""
        return self.part("match") is None and not any(isinstance(p.pattern, Known) for p in self.signature.params)

    def part(self, name: str) -> Object:
        """A part of the definition (``ref``, ``lower``, ``body``, ``emit``, ``result`` …), or None."""
        found = vars(self.definition).get(name)
        return found.load() if isinstance(found, Deferred) else found

    def has(self, name: str) -> bool:
        """Whether the definition has the part ``name``, which is not loaded for that."""
        return name in vars(self.definition)

    # -- matching ----------------------------------------------------------------------------------------------------

    def match(self, args: list[Arg], kwargs: dict[str, Arg], context: Object) -> Match:
        """This record for these arguments; raises :class:`Mismatch` where they do not fit."""
        whole = self.part("match")
        if whole is not None:
            return whole(args, kwargs, context)
        slots = self._slots(args, kwargs)
        bound: dict[str, Object] = {}
        types: dict[tuple[int, int], Type | None] = {}
        order = [(_rank(arg), i, j) for i, arguments in enumerate(slots) for j, (arg, _) in enumerate(arguments)]
        for _, i, j in sorted(order):  # what has a type binds variables first; then float, int and bool literals
            types[i, j] = _fit(self.signature.params[i], slots[i][j][0], bound)
        result = self._result(slots, types, bound, context)
        given = self._given_types(slots, types, len(args) + len(kwargs))
        emit = self._emitter(slots, types, result, context)
        return Match(self.name, given, result, emit, self._updates(slots), self._known(slots, types))

    def _slots(self, args: list[Arg], kwargs: dict[str, Arg]) -> list[list[tuple[Arg, int]]]:
        """Per parameter its arguments, each with its position among those given (-1 for a default)."""
        params, slots, taken = self.signature.params, [], 0
        synonyms = self.part("synonyms")  # further names of parameters
        if synonyms:
            kwargs = {synonyms.get(name, name): arg for name, arg in kwargs.items()}
        where = {name: len(args) + k for k, name in enumerate(kwargs)}
        unknown = kwargs.keys() - {p.name for p in params}
        if unknown:
            raise Mismatch(f"there is no parameter {min(unknown)!r}")
        for p in params:
            if p.variadic:
                slots.append([(args[k], k) for k in range(taken, len(args))])
                taken = len(args)
            elif p.name in kwargs:
                slots.append([(kwargs[p.name], where[p.name])])
            elif taken < len(args):
                slots.append([(args[taken], taken)])
                taken += 1
            elif p.default is not EMPTY:
                slots.append([(default_arg(p.default), -1)])
            else:
                raise Mismatch(f"argument {p.name!r} is missing")
        if taken < len(args):
            raise Mismatch(f"{len(args)} arguments are too many")
        return slots

    def _given_types(self, slots: list, types: dict, count: int) -> list[Type | None]:
        given: list[Type | None] = [None] * count
        for i, arguments in enumerate(slots):
            for j, (_, position) in enumerate(arguments):
                if position >= 0:
                    given[position] = types[i, j]
        return given

    def _result(self, slots: list, types: dict, bound: dict, context: Object) -> Result:
        rule = self.part("result")
        if rule is not None:
            return rule(*self._shown(slots, types))
        result = self.signature.result
        if result is EMPTY and self.kind == "body":
            func = context.instantiate(self.part("body"), [types[i, 0] for i in range(len(slots))])
            made = tuple(v.type for v in func.body.yields)
            made = made[: len(made) - len(self.part("updates") or ())]
            return made if len(made) > 1 else made[0] if made else None
        return _build(result, bound)

    def _shown(self, slots: list, types: dict) -> list[Arg]:
        """The arguments as rules see them: with the types they have been given."""
        return [
            Arg(types[i, j], a.value, a.literal, a.function)
            for i, arguments in enumerate(slots)
            for j, (a, _) in enumerate(arguments)
        ]

    def _updates(self, slots: list) -> tuple[int, ...]:
        names = self.part("updates") or ()
        return tuple(slots[i][0][1] for i, p in enumerate(self.signature.params) if p.name in names)

    def _known(self, slots: list, types: dict) -> Object:
        rule = self.part("known")
        return None if rule is None else rule(*self._shown(slots, types))

    def _emitter(self, slots: list, types: dict, result: Result, context: Object) -> Callable:
        """A function of (builder, values in the order given) that appends the code."""
        kind, name = self.kind, self.name
        definition = self.part("emit")
        known = [p.pattern for p in self.signature.params]

        def emit(builder: Builder, given: list[Value | None]) -> Object:
            values: list[Object] = []
            for i, arguments in enumerate(slots):
                for j, (arg, position) in enumerate(arguments):
                    if isinstance(known[i], Known):
                        values.append(arg.value if arg.function is None else arg.function)
                    elif position < 0:
                        values.append(builder.const(arg.value, types[i, j]))
                    else:
                        values.append(given[position])
            if kind == "primitive":
                return builder.one(name, tuple(values), result)
            if kind == "body":
                attrs = context.call(self, [v.type for v in values])
                made = builder.op("call", tuple(values), tuple(v.type for v in attrs["func"].body.yields), **attrs)
                return made if len(made) > 1 else made[0] if made else None
            return definition(builder, result, *values)

        return emit


def default_arg(value: Object) -> Arg:
    """A parameter's default as an argument."""
    return Arg(None, value, isinstance(value, bool | int | float))


def _rank(arg: Arg) -> int:
    if not arg.literal:
        return 0
    return 3 if isinstance(arg.value, bool) else 2 if isinstance(arg.value, int) else 1


def _fit(param: Param, arg: Arg, bound: dict) -> Type | None:
    """The type the argument's value must have to stand for the parameter."""
    p = param.pattern
    if isinstance(p, Known):
        if arg.value is None and arg.function is None:
            usual = f"argument {param.name!r} must be {p.what} known while compiling, not a {arg.show()}"
            raise Mismatch(p.otherwise or usual)
        return None
    if arg.literal and isinstance(arg.value, bool | int | float):
        taken = p.literal(arg.value, bound) if isinstance(p, Pattern) else p if adapts(arg.value, p) else None
        if taken is not None:
            return taken
    elif (p.match(arg.type, bound) if isinstance(p, Pattern) else p is arg.type) and arg.type is not None:
        return arg.type
    raise Mismatch(*_complain(param, arg, bound))


def _complain(param: Param, arg: Arg, bound: dict) -> tuple[str, str]:
    p, shown = param.pattern, repr(arg.value) if arg.literal else arg.show()
    already = bound.get(getattr(p, "name", ""))
    if isinstance(already, Type):
        wanted = spell(already)
        convertible = isinstance(already, Scalar) and isinstance(arg.type, Scalar)
        hint = f"write {wanted}(…) to convert it" if convertible else ""
        unlike = f": {p.unlike}" if getattr(p, "unlike", "") else ""
        return f"argument {param.name!r} must be {wanted} like the other, not {shown}{unlike}", hint
    choices = getattr(p, "choices", None)
    if choices is not None:
        hint = f"allowed: {choices()}"
        if getattr(p, "allowed", None) and all(t.is_float for t in p.allowed) and isinstance(arg.type, Scalar):
            hint += "; write float32(…)"
        return f"argument {param.name!r} cannot be {shown}", hint
    return f"argument {param.name!r} must be {_show_pattern(p)}, not {shown}", ""


def _build(result: Object, bound: dict) -> Result:
    if result is None or isinstance(result, Type):
        return result
    if isinstance(result, tuple):
        return tuple(_build(r, bound) for r in result)
    if isinstance(result, Pattern):
        return result.build(bound)
    raise InternalError(f"a signature says no result: {result!r}")


# -- the registry ------------------------------------------------------------------------------------------------------

RECORDS: dict[str, list[Record]] = {}
_found: dict[tuple[str, str], tuple[Record, ...]] = {}  # the records of a name in a file that was imported
_matches: dict[tuple, Match] = {}  # what was resolved before, for arguments that are described by types and numbers


def builtin(group: str, name: str | None = None, info: OpInfo = PURE) -> Callable[[type], Record]:
    """Register the class below as a record of ``group``; ``name`` where it cannot be the class's own."""

    def register(definition: type) -> Record:
        record = Record(name or definition.__name__, group, inspect.cleandoc(definition.__doc__ or ""), definition)
        RECORDS.setdefault(record.name, []).append(record)
        if record.kind == "primitive":
            declare(record.name, info)
        return record

    return register


def exists(name: str) -> bool:
    """Whether there is a builtin of that name."""
    return name in MODULES or name in ALIASES


def records(name: str) -> Iterator[Record]:
    """The overloads of ``name`` in order, importing the files they are in one after the other."""
    name = ALIASES.get(name, name)
    if name not in MODULES:
        raise KernelNameError(f"there is no builtin {name!r}", hint=_near(name))
    for module in MODULES[name]:
        found = _found.get((name, module))
        if found is None:
            home = f"{__package__}.{module}"
            importlib.import_module(home)
            found = tuple(r for r in RECORDS.get(name, ()) if r.definition.__module__ == home)
            _found[name, module] = found
        yield from found


@cache
def primitive(name: str) -> Record:
    """The primitive behind the IR op ``name``."""
    for record in records(name):
        if record.kind == "primitive":
            return record
    raise InternalError(f"{name} is no primitive")


def resolve(name: str, args: list[Arg], kwargs: dict[str, Arg], context: Object) -> Match:
    """The record of ``name`` that takes these arguments.

    Raises:
        KernelNameError: there is no such builtin.
        KernelTypeError: none takes them; the message names argument, types and candidates.
    """
    key = _key(name, args, context) if not kwargs else None
    match = _matches.get(key) if key is not None else None
    if match is not None:
        return match
    failures: list[tuple[Record, Mismatch]] = []
    by_type = True
    for record in records(name):
        by_type = by_type and record.by_type
        try:
            match = record.match(args, kwargs, context)
        except Mismatch as failure:
            failures.append((record, failure.with_traceback(None)))  # which would keep the parser, and what it made
            continue
        if by_type and key is not None:
            _matches[key] = match
        return match
    raise _no_match(name, args, kwargs, failures)


def _key(name: str, args: list[Arg], context: Object) -> tuple | None:
    """What decides the match of records that look at types alone: types, and the literals, which adapt."""
    seen: list[Object] = [name, id(context)]
    for a in args:
        if a.type is None or a.function is not None:
            return None
        if not a.literal:
            seen.append(a.type)
        elif isinstance(a.value, float):
            seen.append("float")
        else:
            seen.append((type(a.value), a.value))
    return tuple(seen)


def as_written(body: Callable) -> bool:
    """Whether the arithmetic of ``body`` must not be fused: elementary functions say ``fma`` where they want it."""
    return body.__globals__.get("__package__") == f"{__package__}.elementary"


def constructor(type: Type, args: list[Arg], kwargs: dict[str, Arg], context: Object) -> Match:
    """The constructor of ``type`` for these arguments: casts, vectors, matrices, quaternions, transforms."""
    from .constructors import construct

    return construct(type, args, kwargs, context)


def documentation(name: str) -> str:
    """The docstring of a builtin, each overload under its signature."""
    parts = [f"{r.signature.show(name)}\n\n{r.doc}" for r in records(name)]
    return "\n\n".join(parts)


SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "floordiv": "//", "pow": "**", "matmul": "@",
    "bitand": "&", "bitor": "|", "bitxor": "^", "shl": "<<", "shr": ">>", "invert": "~", "neg": "-", "pos": "+",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "logical_not": "not",
}  # fmt: skip


def _no_match(name: str, args: list[Arg], kwargs: dict[str, Arg], failures: list) -> TreadleError:
    """The error that says why no record of ``name`` fits."""
    shown = [a.show() for a in args] + [f"{k}={a.show()}" for k, a in kwargs.items()]
    symbol = SYMBOLS.get(name)
    if symbol is not None:
        return KernelTypeError(f"{symbol!r} cannot take {' and '.join(shown)}", hint=_operand_hint(name, args))
    none = f"Couldn't find function overload for {name!r}"
    if len(failures) == 1:
        _, failure = failures[0]
        return KernelTypeError(f"{none}: {failure.reason}", hint=failure.hint)
    candidates = "; ".join(dict.fromkeys(r.signature.show(name) for r, _ in failures))
    reasons = {f.reason: f.hint for _, f in failures}
    why = f": {next(iter(reasons))}" if len(reasons) == 1 else ""
    return KernelTypeError(f"{none} that takes ({', '.join(shown)}){why}", hint=f"candidates: {candidates}")


def _operand_hint(name: str, args: list[Arg]) -> str:
    if name in ("mul", "div") and len(args) == 2 and args[0].type is args[1].type and isinstance(args[0].type, Vector):
        return "cw_mul and cw_div go by component; dot and cross are the other products"
    scalars = [a for a in args if isinstance(a.type, Scalar)]
    if len(args) == 2 and len(scalars) == 2 and args[0].type is not args[1].type:
        typed = next((a for a in args if not a.literal), args[0])
        return f"types are not mixed in silence; convert one side, as in {spell(typed.type)}(…)"
    return ""


def _near(name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, [*MODULES, *ALIASES], 3)
    return f"did you mean {' or '.join(close)}?" if close else ""


__all__ = [
    "Arg", "Match", "Mismatch", "Param", "Record", "Signature", "builtin", "constructor", "documentation", "exists",
    "primitive", "records", "resolve", "rule",
]  # fmt: skip
