"""A user's Python function as the frontend sees it: its syntax tree, where it stands, and what its names can reach."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections import ChainMap
from collections.abc import Callable, Mapping
from functools import cached_property
from types import FunctionType, ModuleType, NoneType
from typing import Any, NamedTuple

from ..base.errors import KernelSyntaxError, TreadleError
from ..base.span import Span
from ..builtins.names import UPDATING
from ..types.annotations import Reference, evaluated, fixedarray, type_of
from ..types.core import Array, Type
from ..types.limits import Limit, limit_of
from .lambdas import function_of, lambdas_of
from .statics import settled

EMPTY = inspect.Parameter.empty


class Parameter(NamedTuple):
    """A parameter as written: ``annotation`` an object or text (``EMPTY`` if there is none), ``default`` likewise."""

    name: str
    annotation: Any
    default: Any


class Source:
    """A Python function, read lazily: making a Source costs little. Its file is what it was then, also where it is
    edited before the function is first compiled.

    ``namespace`` gives further names (the local variables of the enclosing function), for annotations that are text.
    """

    def __init__(self, function: FunctionType, namespace: Mapping[str, Any] | None = None):
        function = inspect.unwrap(function)
        if not isinstance(function, FunctionType):
            raise KernelSyntaxError(f"{function!r} is no Python function", hint="decorate a function made with def")
        self.function = function
        self.code = function.__code__
        self.name = function.__name__
        self.qualname = function.__qualname__
        self.file = self.code.co_filename
        self.namespace = dict(namespace or {})
        self.content = ""  # what it consists of beside its code
        self._file_lines = _current_lines(self)
        self.statics: dict[ast.Call, Any] = {}  # calls of ``wp.static`` that were evaluated, in the order written
        self.ascii = True  # whether columns in bytes are columns in characters; told by ``tree``

    def __repr__(self) -> str:
        return f"<source of {self.qualname} at {self.file}:{self.code.co_firstlineno}>"

    @property
    def globals(self) -> dict[str, Any]:
        """The module-level names of the function."""
        return self.function.__globals__

    @property
    def closure(self) -> dict[str, Any]:
        """The captured variables that have a value now; read anew each time, as Python does."""
        found = {}
        for name, cell in zip(self.code.co_freevars, self.function.__closure__ or (), strict=True):
            try:
                found[name] = cell.cell_contents
            except ValueError:  # not assigned yet; a name error tells if it is read
                continue
        return found

    @cached_property
    def tree(self) -> ast.FunctionDef:
        """The syntax tree, with the line numbers of the file.

        Raises:
            KernelSyntaxError: the source cannot be found, or several lambdas of one line cannot be told apart.
        """
        return lambda_tree(self) if self.name == "<lambda>" else _parse(self)

    @property
    def span(self) -> Span:
        """The line of the ``def``."""
        return Span(self.file, self.tree.lineno, self.tree.col_offset, self.tree.col_offset + 4 + len(self.tree.name))

    @cached_property
    def references(self) -> frozenset[str]:
        """The parameters that stand for the caller's variables: annotated with ``wp.ref``."""
        return frozenset([p.name for p in self.parameters() if isinstance(self._noted(p, "ref"), Reference)])

    @cached_property
    def callables(self) -> frozenset[str]:
        """The parameters that are functions: annotated with ``wp.Function``."""
        notes = {p.name: self._noted(p, "Function") for p in self.parameters()}
        return frozenset([name for name, note in notes.items() if hasattr(note, "__treadle_callable__")])

    def _noted(self, p: Parameter, word: str) -> Any:
        """The annotation of ``p``; one that is text is evaluated if ``word`` is in it."""
        if isinstance(p.annotation, str) and word in p.annotation:
            return self._declared(p.annotation, self.names(), "a parameter", evaluated)
        return p.annotation

    def declare(self) -> None:
        """Evaluate the ``wp.static`` expressions that can be evaluated where the function is declared.

        Raises:
            KernelTypeError: a parameter is annotated with a value that is no type.
        """
        self.statics = settled(self)
        for name, annotation in self.annotations.items():
            if not isinstance(annotation, str) and name != "return":
                self._declared(annotation, self.names(), f"parameter {name!r}")

    def updates(self) -> tuple[frozenset[str], dict[str, tuple[int | str, ...]], bool]:
        """The function's own variables, the names by which it may call what changes arguments (which), and whether it
        works on tiles."""
        code, captured = self.code, self.closure if self.code.co_freevars else {}
        called = {name: UPDATING[name] for name in code.co_names if name in UPDATING}
        names = (*code.co_names, *code.co_freevars)
        reached = [captured.get(name, self.globals.get(name)) for name in names]
        modules = [x for x in reached if isinstance(x, ModuleType | type)]
        for name, found in zip(names, reached, strict=True):
            for x in [vars(m).get(name) for m in modules] if found is None else [found]:
                word = getattr(x, "__treadle_builtin__", None)
                if word in UPDATING:
                    called[name] = UPDATING[word]
                elif getattr(x, "treadle_references", ()):
                    called[name] = (*called.get(name, ()), *x.treadle_references)
        tiles = any([name.startswith("tile_") for name in (*code.co_names, *code.co_freevars)])
        tiles = tiles or any(["tile" in repr(note) for note in self.annotations.values()])
        return frozenset([*code.co_varnames, *code.co_cellvars]), called, tiles

    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters in order.

        Raises:
            KernelSyntaxError: the function takes ``*args`` or ``**kwargs``.
        """
        names, notes = self._declarations
        defaults = self.defaults
        return tuple([Parameter(n, notes.get(n, EMPTY), defaults.get(n, EMPTY)) for n in names])

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The defaults of parameters by name. A program may change them; what is compiled afterwards sees that."""
        names, fn = self._declarations[0], self.function
        given, n = fn.__defaults__ or (), self.code.co_argcount
        return {**(fn.__kwdefaults__ or {}), **dict(zip(names[n - len(given) : n], given, strict=True))}

    @cached_property
    def _declarations(self) -> tuple[tuple[str, ...], dict[str, Any]]:
        """The names of the parameters, and the annotations."""
        code = self.code
        if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            raise KernelSyntaxError(f"{self.name} takes *args or **kwargs; name each parameter", self._first_line())
        return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], self.annotations

    @cached_property
    def annotations(self) -> dict[str, Any]:
        """The annotations of parameters and of "return", as objects or text.

        Where evaluating one fails (a class named before its definition) all are given as text.
        """
        try:
            return dict(self.function.__annotations__)
        except NameError:  # Python 3.14 evaluates annotations when they are asked for
            from annotationlib import Format, get_annotations

            return dict(get_annotations(self.function, format=Format.STRING))

    def parameter_types(self) -> list[Type | None]:
        """The declared type of each parameter; None where there is no annotation or it is ``Any``. Found once."""
        return list(self._parameter_types)

    @cached_property
    def _parameter_types(self) -> tuple[Type | None, ...]:
        names = self.names()
        return tuple([self._declared(p.annotation, names, f"parameter {p.name!r}") for p in self.parameters()])

    @cached_property
    def limits(self) -> tuple[Limit | None, ...]:
        """For each parameter whose type is open, the test that an argument's type must pass; None where any will do."""
        names, declared = self.names(), self._parameter_types
        notes = [p.annotation for p in self.parameters()]
        return tuple([limit_of(note, names) if t is None or isinstance(t, Array) else None
                      for note, t in zip(notes, declared, strict=True)])  # fmt: skip

    def return_type(self) -> Any:
        """The declared type of the result, a tuple of types for several; None for ``None``, ``EMPTY`` if undeclared."""
        annotation, names = self._result(), self.names()
        if annotation is EMPTY:
            return EMPTY
        if annotation in (None, "None", NoneType):
            return None
        if getattr(annotation, "__origin__", None) is tuple and Ellipsis not in annotation.__args__:
            return tuple(self._declared(a, names, "the result") for a in annotation.__args__)
        found = self._declared(annotation, names, "the result")
        return EMPTY if found is None else found

    def gives_own_arrays(self) -> bool:
        """Whether the result is declared to be an array of the function's own, or to have some."""
        declared = self._result()
        return any(isinstance(each, fixedarray) for each in (declared, *getattr(declared, "__args__", ())))

    def _result(self) -> Any:
        """What annotates the result."""
        annotation = self.annotations.get("return", EMPTY)
        if isinstance(annotation, str) and annotation != "None":
            return self._declared(annotation, self.names(), "the result", evaluated)
        return annotation

    def _declared(self, annotation: Any, names: Mapping[str, Any], what: str, read: Callable | None = None) -> Any:
        """:meth:`type_of`, or ``read``, of an annotation of the signature; an error names the function and ``what``."""
        try:
            return (read or _type_of)(annotation, names)
        except TreadleError as error:
            raise type(error)(f"{what} of {self.name}: {error.message}", self.span, error.hint) from None

    def type_of(self, annotation: Any) -> Type | None:
        """The type that ``annotation`` means; None for none and for ``Any``."""
        return _type_of(annotation, self.names())

    def names(self) -> Mapping[str, Any]:
        """Every name an annotation of the function can mean."""
        return ChainMap(self.closure, self.namespace, self.globals)

    def _first_line(self) -> Span:
        return Span(self.file, self.code.co_firstlineno)


def _type_of(annotation: Any, names: Mapping[str, Any]) -> Type | None:
    if isinstance(annotation, str):
        if annotation[:1] in ("'", '"'):  # text that was postponed as well
            annotation = ast.literal_eval(annotation)
        if annotation == "Any":
            return None
    return None if annotation is EMPTY or annotation is Any else type_of(annotation, names)


def _parse(source: Source) -> ast.FunctionDef:
    """The tree of the function's own lines. They start at its first decorator and end where the indentation does.

    Reading only these lines keeps the cost proportional to the function, not to its file.
    """
    lines, first = _lines(source), source.code.co_firstlineno - 1
    where = Span(source.file, source.code.co_firstlineno)
    indent = len(lines[first]) - len(lines[first].lstrip())
    # Empty lines put the tree at its place in the file; an indented function is put under an ``if``.
    before = "\n" * (first - 1) + "if 1:\n" if indent else "\n" * first
    problem: SyntaxError | None = None
    for end in _ends(lines, first, indent, source):
        text = "".join(lines[first:end])
        try:
            tree = ast.parse(before + text)
        except SyntaxError as error:
            problem = error
            continue
        found = tree.body[0].body[0] if indent else tree.body[0]
        if isinstance(found, ast.FunctionDef):
            source.ascii = text.isascii()
            return found
    raise KernelSyntaxError(f"the source of {source.name} cannot be read: {problem}", where)


def lambda_tree(source: Source) -> ast.FunctionDef:
    """The tree of a lambda, as that of a function which returns its expression."""
    text = "".join(_lines(source))
    found = lambdas_of(source.file, text, source.code)
    where = Span(source.file, source.code.co_firstlineno)
    if not found:
        raise KernelSyntaxError("the source of a lambda cannot be found", where, "write it as a def")
    if len({ast.dump(node) for node in found}) > 1:
        raise KernelSyntaxError("several lambdas of this line look alike", where, "give each a line of its own")
    source.ascii = text.isascii()
    return function_of(found[0])


def _current_lines(source: Source) -> list[str]:
    """The lines that the function's file has now; the functions of a file share the list."""
    linecache.checkcache(source.file)
    return linecache.getlines(source.file, source.globals)


def _lines(source: Source) -> list[str]:
    """The lines of the function's file, up to the function at least."""
    lines = source._file_lines
    if source.code.co_firstlineno > len(lines):  # text that linecache was told of later
        lines = _current_lines(source)
    if source.code.co_firstlineno > len(lines):
        raise KernelSyntaxError(
            f"the source of {source.name} cannot be found",
            Span(source.file, source.code.co_firstlineno),
            "define it in a file, a notebook cell, or text that is known to linecache",
        )
    return lines


def _ends(lines: list[str], first: int, indent: int, source: Source):
    """Line numbers after which the function may end: first line that is not deeper than it, then later ones.

    Text inside brackets or strings may be less indented, so the first guess can be wrong; it then does not parse.
    """
    start = _last_code_line(source.code)
    for i in range(max(start, first + 1), len(lines)):
        line = lines[i]
        body = line.lstrip()
        if body and not body.startswith("#") and len(line) - len(body) <= indent:
            yield i
    yield len(lines)


def _last_code_line(code: Any) -> int:
    last = max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
    nested: list[Callable] = [c for c in code.co_consts if hasattr(c, "co_lines")]
    return max([last, *[_last_code_line(c) for c in nested]])
