"""The door of this room: a Python function and the types of its arguments in, a program out."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ..base.errors import KernelSyntaxError, KernelTypeError, ManyErrors, TreadleError
from ..ir.node import Func, Value
from ..types.core import STR, Fixed, FunctionType, Tile, Type, b1
from ..types.spelling import spell
from .constants import Constant
from .core import Options
from .environment import FLOW, RESULT, Variable
from .facts import NONE, Names
from .names import Manifest
from .source import EMPTY, Parameter, Source
from .statements import Statements
from .updates import settle_updates

__all__ = ["Options", "parse", "parse_builtin", "parse_rule"]

DEEPEST = 64  # calls inside calls; beyond, a function calls itself with ever new types

FRAMES = 10_000  # Python frames that the translation may nest: a long chain of elif or continue is deep

TILE_UNROLLED = 36  # scalars of a tile whose elements are handled one by one in straight code

USUAL = Options()

_running = threading.local()  # the functions being parsed by this thread, outermost first


def parse(
    source: Source,
    arg_types: Sequence[Type | None],
    options: Any = USUAL,
    kind: str = "kernel",
    constants: Sequence[Constant | None] = (),
    manifest: Manifest | None = None,
    name: str = "",
) -> Func:
    """The program of ``source`` for arguments of ``arg_types``.

    Args:
        source: the user's function.
        arg_types: one type for each parameter; for functions, types and texts (known while compiling) whatever the
            caller put there, with the object in ``constants``.
        options: has ``max_unroll`` and ``shared``, see :class:`Options`.
        kind: "kernel" or "function".
        constants: per parameter the :class:`Constant` given for it, or None. Only functions, types and texts are taken
            from here; numbers are arguments of the program.
        manifest: is filled with the outside names and the values found.
        name: the program's name, if it is not the function's own.

    Raises:
        TreadleError: the program is wrong; :class:`ManyErrors` if in several places.
    """
    found = Manifest() if manifest is None else manifest
    return _guarded(_parser(source)(source, options, kind, found), arg_types, constants, name)


def parse_rule(
    source: Source,
    arg_types: Sequence[Type | None],
    result_types: Sequence[Type],
    options: Any = USUAL,
    constants: Sequence[Constant | None] = (),
    manifest: Manifest | None = None,
    name: str = "",
    alters: Sequence[int] = (),
) -> Func:
    """The program of a gradient function, which takes the arguments of another function and its results' adjoints.

    Args:
        source: the user's gradient function.
        arg_types, constants: as for the function that it belongs to, see :func:`parse`.
        result_types: what that function gives back.
        alters: which arguments the last of its results are new values of.
        options: ``gradient`` says how often the gradient function itself will be differentiated.

    Returns: a function of the arguments, the results, and the adjoints of the results that have floats; it gives back
    the adjoints of the arguments that have floats.
    """
    found = Manifest() if manifest is None else manifest
    parser = _parser(source)(source, options, "function", found)
    return _guarded(parser, arg_types, constants, name, tuple(result_types), alters)


def parse_builtin(body: Callable, types: Sequence[Type], gradient: int = 0) -> Func:
    """The program of a builtin's body; plain names in it also reach the other builtins."""
    large = any(isinstance(t, Tile) and t.n > TILE_UNROLLED for t in types)
    options = Options(max_unroll=4, gradient=gradient) if large else Options(gradient=gradient)
    return _guarded(Parser(Source(body), options, "function", Manifest(), builtin=True), types, (), "")


def _parser(source: Source) -> type[Parser]:
    """What translates ``source``: snippets in C have a parser of their own."""
    return getattr(source, "parser", None) or Parser


def _guarded(
    parser: Parser,
    arg_types: Sequence[Type | None],
    constants: Sequence[Constant | None],
    name: str,
    result_types: tuple[Type, ...] | None = None,
    alters: Sequence[int] = (),
) -> Func:
    """Parse, unless the same function is being parsed already: then it calls itself."""
    stack = _running.__dict__.setdefault("stack", [])
    key = (parser.source.code, tuple(arg_types), parser.options.gradient)
    if key in stack or len(stack) > DEEPEST:
        raise KernelSyntaxError(f"{parser.source.name} calls itself", hint="kernels have no recursion; write a loop")
    stack.append(key)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, FRAMES))
    try:
        if result_types is not None:
            return parser.run_rule(arg_types, constants, result_types, name, alters)
        return parser.run(arg_types, constants, name)
    finally:
        sys.setrecursionlimit(before)
        stack.pop()


class Parser(Statements):
    """One translation of one function. See :class:`Core` for the state."""

    def run(self, arg_types: Sequence[Type | None], constants: Sequence[Constant | None], name: str) -> Func:
        """Translate the whole function."""
        params = self._parameters(arg_types, constants)
        self.declared = EMPTY if self.builtin else self._declared()
        if not self.builtin:
            references = self._references()
            self.shared = {p.name: False for p in params if isinstance(p.type, Tile) or p.name in references}
        seen = NONE if self.kind == "kernel" else frozenset([FLOW, *self.shared])
        flow = self.block(self.tree.body, seen)
        results = self._results(flow) if not self.errors else ()
        if self.errors:
            raise self._together()
        altered = [name for name, changed in self.shared.items() if changed]
        results = (*results, *[self.value(self.env[name].operand, self.tree) for name in altered])
        names = tuple(p.name for p in params)
        facts = {} if self.ndim is None else {"ndim": self.ndim}
        if self.ndim and self.kind == "kernel":
            facts["ndim"] = max(self.ndim, self.options.grid)
        if self.ruled:
            facts["ruled"] = True  # its adjoint may look at any array as the launch left it
        if altered:  # their last values follow the results, for the caller's variables
            order = [p.name for p in self.source.parameters()]
            facts["alters"] = tuple([order.index(name) for name in altered])
        if self.builtin:
            facts["builtin"] = True  # written to be inlined
        if getattr(self.source.function, "__treadle_rare__", False):
            facts["rare"] = True  # seldom runs: stays a call, so that its code stands once in a kernel
        func = Func(name or self.source.name, self.kind, params, self.builder.block((), results),
                    tuple(p.type for p in params), names, facts, self.source.span)  # fmt: skip
        return settle_updates(func) if self.kind == "kernel" and not self.options.shared else func

    def run_rule(
        self,
        arg_types: Sequence[Type | None],
        constants: Sequence[Constant | None],
        result_types: tuple[Type, ...],
        name: str,
        alters: Sequence[int],
    ) -> Func:
        """Translate a gradient function; see :func:`parse_rule`."""
        declared, n = self.source.parameters(), len(arg_types)
        arguments = self._received(declared[:n], arg_types, constants)
        results = tuple([Value(t) for t in result_types])
        altered = [declared[index].name for index in alters]
        adjoints = self.begin_rule(arguments, results, [p.name for p in declared[n:]], altered)
        self.declared = None
        self.block(self.tree.body)
        if self.errors:
            raise self._together()
        given_back = self.end_rule()
        params = (*arguments, *results, *adjoints)
        return Func(name or self.source.name, "function", params, self.builder.block((), given_back),
                    tuple([p.type for p in params]), (), {}, self.source.span)  # fmt: skip

    def _parameters(self, arg_types: Sequence[Type | None], constants: Sequence[Constant | None]) -> tuple[Value, ...]:
        """Bind the parameters; those that exist at run time become values."""
        declared = self.source.parameters()
        if len(arg_types) != len(declared):
            raise KernelTypeError(f"{self.source.name} takes {len(declared)} arguments, here are {len(arg_types)}",
                                  self.source.span)  # fmt: skip
        return self._received(declared, arg_types, constants)

    def _received(
        self, declared: Sequence[Parameter], arg_types: Sequence[Type | None], constants: Sequence[Constant | None]
    ) -> tuple[Value, ...]:
        params = []
        for i, (p, t) in enumerate(zip(declared, arg_types, strict=True)):
            known = constants[i] if i < len(constants) else None
            if t is None or t is STR or isinstance(t, FunctionType):
                self.env[p.name] = Variable(known, True, self.source.span)
                continue
            if isinstance(t, Fixed):
                raise KernelTypeError(f"parameter {p.name!r} cannot be {spell(t)}", self.source.span)
            params.append(Value(t, p.name))
            self.env[p.name] = Variable(params[-1], True, self.source.span)
        return tuple(params)

    def _declared(self) -> Any:
        """The declared result; a kernel must have none."""
        found = self.source.return_type()
        if self.kind == "kernel" and found not in (None, EMPTY):
            raise KernelTypeError(f"kernel {self.source.name} declares a return value; kernels return nothing",
                                  self.source.span, "write results to an array argument")  # fmt: skip
        return found

    def _references(self) -> Names:
        """The parameters that are the caller's variables; a kernel has no such caller."""
        found = self.source.references
        if found and self.kind == "kernel":
            raise KernelTypeError(f"kernel {self.source.name} takes {min(found)!r} by reference", self.source.span,
                                  "pass an array; its elements can be passed on to wp.ref parameters")  # fmt: skip
        return found

    def _results(self, flow: bool | Value) -> tuple[Value, ...]:
        """The values that the function yields."""
        returned = self.env.get(RESULT)
        if returned is None or self.returned is None:
            return ()
        node, b = self.tree.body[-1], self.here(self.tree.body[-1])
        if flow is not False:  # some path ends without return
            ok = b.const(False, b1) if flow is True else self.negate(flow, node)
            b.op("check", (ok,), kind="unassigned", message=f"{self.source.name} ended without returning a value")
        types, _ = self.returned
        x = returned.operand
        if isinstance(x, tuple):
            return tuple(self.value(p, node) for p in x)
        v = self.value(x, node)
        return self.here(node).parts(v) if len(types) > 1 else (v,)

    def _together(self) -> TreadleError:
        """All errors as one; each is told once."""
        unique = sorted({str(e): e for e in self.errors}.values(), key=lambda e: e.span.line if e.span else 0)
        return unique[0] if len(unique) == 1 else ManyErrors(unique)
