"""Type stubs: what type checkers and editors read instead of names that treadle resolves when they are first used.

They are made from the registry of builtins, the types and the sources of the host functions: into the wheel when it is
built, and by ``python -m treadle stubs`` beside the sources of an editable install. None is kept in the tree.
"""

from __future__ import annotations

import ast
import builtins
import copy
import dataclasses
import enum
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import stub_language as language
from .base.config import ACCEPTED, SETTINGS
from .builtins.names import ALIASES, PUBLIC
from .types import inquiry, values

PACKAGE = __package__ or "treadle"
HEAD = '''"""Made by ``python -m treadle stubs``; changes are lost."""

import builtins
import dataclasses
import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NoReturn, TypeAlias, overload as _overload

import numpy as np
from typing_extensions import ParamSpec, Self, TypeVar, TypeVarTuple, Unpack
'''
_FROM_HEAD = {
    "Annotated", "Any", "Callable", "Generic", "Iterable", "Iterator", "Literal", "Mapping", "NoReturn", "Path",
    "PathLike", "Self", "Sequence",
}  # fmt: skip
_MODULES_IN_HEAD = {"builtins", "dataclasses", "enum", "np"}
_UNSAID = {  # of no use to a checker
    "__class_getitem__", "__hash__", "__init_subclass__", "__reduce__", "__repr__", "__slots__", "__str__",
    "__subclasshook__",
}  # fmt: skip

# What sources do not say: members and functions whose types hang on their arguments.
_DECORATORS = """
@_overload
def {name}(f: {takes}, /) -> {gives}: ...
@_overload
def {name}({keywords}) -> Callable[[{takes}], {gives}]: ...
"""
_ARRAY = '''
class {name}(_Elements[_E], Generic[_E, _N]):
    dtype: builtins.type[_E]
    @_overload
    def __getitem__(self: {name}[_E, Literal[1]], key: builtins.int) -> _E: ...
    @_overload
    def __getitem__(self: {name}[_E, Literal[2]], key: builtins.tuple[builtins.int, builtins.int]) -> _E: ...
    @_overload
    def __getitem__(self: {name}[_E, Literal[3]],
                    key: builtins.tuple[builtins.int, builtins.int, builtins.int]) -> _E: ...
    @_overload
    def __getitem__(self: {name}[_E, Literal[4]],
                    key: builtins.tuple[builtins.int, builtins.int, builtins.int, builtins.int]) -> _E: ...
    @_overload
    def __getitem__(self: {name}[_E, Literal[2]], key: builtins.int) -> {name}[_E, Literal[1]]: ...
    @_overload
    def __getitem__(self: {name}[_E, Literal[3]], key: builtins.int) -> {name}[_E, Literal[2]]: ...
    @_overload
    def __getitem__(self, key: builtins.slice) -> {name}[_E, _N]: ...
    @_overload
    def __getitem__(self, key: Any) -> Any: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
'''
_FUNCTION = """
class Function(Generic[_P, _R]):
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
"""
_TILE = """
class tile(Generic[_T, Unpack[_Sizes]]):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getattr__(self, name: builtins.str) -> Any: ...
    def __getitem__(self, key: Any) -> Any: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
""" + "".join(f"    def __{each}__(self, other: Any, /) -> Any: ...\n"
              for each in "add radd sub rsub mul rmul matmul truediv rtruediv".split())
_REFERENCE = "ref: TypeAlias = Annotated[_T, 'a variable of the caller']\n"
_GIVEN = {  # instead of what the source says
    "Function": _FUNCTION,
    "ref": _REFERENCE,
    "tile": _TILE,
    "fixedarray": "class fixedarray(_Elements[_E], Generic[_E, _N]):\n"
                  "    def __init__(self, dtype: builtins.type[_E] = ..., shape: Any = ...) -> None: ...\n"
                  "    def __getitem__(self, key: Any) -> Any: ...\n"
                  "    def __setitem__(self, key: Any, value: Any) -> None: ...\n",
    **{name: _ARRAY.format(name=name) for name in ("array", "indexedarray", "fabricarray", "indexedfabricarray")},
}  # fmt: skip
_EXTENDED = {"Function", "array", "indexedarray", "fabricarray", "indexedfabricarray"}  # other members from the source
_DECORATED = {
    "kernel": ("Callable[..., Any]", "Kernel"),
    "func": ("Callable[_P, _R]", "Function[_P, _R]"),
    "struct": ("builtins.type[_T]", "builtins.type[_T]"),
}
_RETURNED = {  # the decorators that take arguments first
    "func_native": "Callable[[Callable[_P, _R]], Function[_P, _R]]",
    "func_grad": "Callable[[_T], _T]",
    "func_replay": "Callable[[_T], _T]",
}
_OPEN = ("Int", "Float", "Scalar", "adjoint")  # stand for any type, or for what no checker can follow


def write(folder: Path) -> list[Path]:
    """Write all stubs into ``folder``, where the package lies. Returns the files."""
    written = []
    for path, text in texts().items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        written.append(target)
    return written


def texts() -> dict[str, str]:
    """The text of each stub by its path in the package."""
    return {
        "__init__.pyi": _face(),
        "types/__init__.pyi": _types(),
        "utils/__init__.pyi": _module("utils"),
        "optim/__init__.pyi": _module("optim"),
        "autograd.pyi": _module("autograd"),
        "config.pyi": _settings(),
    }


# -- the modules -------------------------------------------------------------------------------------------------------


def _face() -> str:
    face = importlib.import_module(PACKAGE)
    source = _Source({*face._HOME_OF, *values.names()})
    parts = [HEAD, *(f"from . import {name} as {name}" for name in sorted(_modules(face))), language.VARIABLES]
    parts += ["__version__: builtins.str", *(f"{name}: TypeAlias = Any" for name in _OPEN)]
    parts += [f"{name}: TypeAlias = builtins.{name}" for name in face._PYTHON]
    parts += [f"{name}: builtins.float" for name in face._CONSTANTS]
    parts.append(language.values_text())
    parts += [source.declaration(name, getattr(face, name)) for name in face._HOME_OF if name not in (*_OPEN, "handle")]
    parts += [f"{name} = {meant}" for name, meant in face._ERRORS.items()]
    declared = {*face._HOME_OF, *values.names(), *_OPEN}
    aliases = {name: meant for name, meant in ALIASES.items() if meant in PUBLIC}
    parts += [language.builtin_text(name) for name in PUBLIC if name not in {*declared, *aliases}]
    parts += [f"{name} = {meant}" for name, meant in aliases.items() if name in PUBLIC and name not in declared]
    return "\n".join(parts) + "\n"


def _modules(face: Any) -> set[str]:
    """The public modules that the face leads to."""
    return {"config", *(name for name, home in face._MODULES.items() if name == home)}  # not the names of old programs


def _types() -> str:
    makers = ("vector", "matrix", "quaternion", "transformation")
    source = _Source({*values.names()})
    parts = [HEAD, *(f"from .. import {name} as {name}" for name in values.names())]
    parts += [source.declaration(name, getattr(values, name)) for name in makers]
    parts += [source.declaration(name, function) for name, function in inquiry.FUNCTIONS.items()]
    return "\n".join(parts) + "\n"


def _module(name: str) -> str:
    """The stub of a module of which all names stand in its ``__all__``."""
    module = importlib.import_module(f"{PACKAGE}.{name}")
    face = importlib.import_module(PACKAGE)
    outer = {*face._HOME_OF, *values.names()} - set(module.__all__)
    source = _Source({*outer, *module.__all__})
    parts = [source.declaration(each, getattr(module, each)) for each in module.__all__]
    up = ".." if hasattr(module, "__path__") else "."
    imports = [f"from {up} import {each} as {each}" for each in sorted(source.used & outer)]
    lazy = [f"def {each}(*args: Any, **kwargs: Any) -> Any: ..." for each in getattr(module, "_DRAWN_BY", ())]
    return "\n".join([HEAD, *imports, language.VARIABLES, *parts, *lazy]) + "\n"


def _settings() -> str:
    shown = {**SETTINGS, **{name: value for group in ACCEPTED.values() for name, value in group.items()}}
    kinds = {name: type(value) for name, value in shown.items()}
    enums = {kind for kind in kinds.values() if issubclass(kind, enum.Enum)}
    source = _Source(set())
    parts = [source.declaration(kind.__name__, kind) for kind in sorted(enums, key=lambda kind: kind.__name__)]
    for name, kind in kinds.items():
        said = kind.__name__ if kind in enums else "Any" if shown[name] is None else f"builtins.{kind.__name__}"
        parts.append(f"{name}: {said}")
    return "\n".join([HEAD, *parts]) + "\n"


# -- declarations from sources -----------------------------------------------------------------------------------------


class _Source:
    """Declarations made from the sources of functions and classes. ``known``: names that annotations may use."""

    def __init__(self, known: set[str]):
        self.known = known
        self.used: set[str] = set()  # those that they did use
        self._of: dict[Any, str] = {}  # classes that were declared, by which name
        self._array = "array[Any, Any]"  # what the annotation `array` says here

    def declaration(self, name: str, thing: Any) -> str:
        """The declaration of ``thing`` under ``name``."""
        if isinstance(thing, type):
            if thing in self._of:
                return f"{name} = {self._of[thing]}"
            self._of[thing] = name
            return self._class(name, thing)
        if name in _GIVEN:
            return _GIVEN[name]
        if inspect.isfunction(thing):
            return self._function(name, thing)
        family, number = name.rstrip("d").rstrip("1234"), name.rstrip("d")[-1:]
        if family in _GIVEN and number.isdigit():
            return f"{name}: TypeAlias = {family}[_E, Literal[{number}]]"
        return f"{name}: {'builtins.' + type(thing).__name__ if isinstance(thing, int | float | str) else 'Any'}"

    def _function(self, name: str, function: Any) -> str:
        node = _parsed(function)
        if not isinstance(node, ast.FunctionDef):
            return f"def {name}(*args: Any, **kwargs: Any) -> Any: ..."
        if name in _DECORATED:
            keywords = ast.unparse(self._arguments(node.args)).partition(", ")[2]
            takes, gives = _DECORATED[name]
            return _DECORATORS.format(name=name, takes=takes, gives=gives, keywords=_by_keyword(keywords))
        return self._def(node, name, _RETURNED.get(name))

    def _class(self, name: str, c: type) -> str:
        if issubclass(c, enum.Enum):
            chosen = [f"    {each.name} = {each.value!r}" for each in c]
            return "\n".join([f"class {name}(enum.{_base_of_enum(c)}):", *chosen]) + "\n"
        given = _GIVEN.get(name)
        if given is not None and name not in _EXTENDED:
            return given
        members: dict[str, str] = {}
        self._array = f"{name}[_E, Any]" if name in _GIVEN else "array[Any, Any]"
        bases = [b for b in c.__mro__[1:] if b in self._of or (b.__module__ == "builtins" and b is not object)][:1]
        inherited = set(bases[0].__mro__) if bases else {object}
        for origin in reversed([x for x in c.__mro__ if x not in inherited and x.__module__.startswith(PACKAGE)]):
            members.update(self._members(_parsed(origin), origin))
        self._array = "array[Any, Any]"
        said = [self._of[b] if b in self._of else f"builtins.{b.__name__}" for b in bases]
        head = given or f"class {name}{'(' + ', '.join(said) + ')' if said else ''}:\n"
        if dataclasses.is_dataclass(c):
            head = "@dataclasses.dataclass\n" + head
        written = set(language.declared(given)) if given else set()
        if "__new__" in members:
            written.add("__init__")
        lines = [text for key, text in members.items() if key.partition(" ")[0] not in written]
        return head + textwrap.indent("\n".join(lines or ([] if given else ["..."])), "    ") + "\n"

    def _members(self, node: ast.AST | None, c: type) -> Iterator[tuple[str, str]]:
        """The members of a class by name: those that its body declares, then those that its methods assign."""
        body = node.body if isinstance(node, ast.ClassDef) else []
        declared: set[str] = set()
        for each in body:
            if isinstance(each, ast.FunctionDef) and each.name == "__new__" and c.__name__ in _GIVEN:
                yield each.name, self._new(each, c.__name__)
            elif isinstance(each, ast.FunctionDef) and _public(each.name):
                mark = next((d.attr for d in each.decorator_list if isinstance(d, ast.Attribute)), "")
                yield f"{each.name} {mark}".strip(), self._def(each, each.name)
                declared.add(each.name)
            elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and _public(each.target.id):
                default = " = ..." if each.value is not None and dataclasses.is_dataclass(c) else ""
                yield each.target.id, f"{each.target.id}: {self._said(each.annotation)}{default}"
                declared.add(each.target.id)
            elif isinstance(each, ast.Assign):
                names = [t.id for t in each.targets if isinstance(t, ast.Name)]
                for name in names:
                    if _public(name):
                        yield name, f"{name}: Any"
                        declared.add(name)
        for name in sorted(_assigned(body) - declared):
            yield name, f"{name}: Any"
        made = {name for name, x in vars(c).items() if inspect.isfunction(x) and _public(name)} - declared - {"__new__"}
        for name in sorted(made):  # by a loop in the body, as operators are
            yield name, f"def {name}(self, *args: Any) -> {'None' if name == '__init__' else 'Any'}: ..."

    def _new(self, node: ast.FunctionDef, name: str) -> str:
        """How an array is made: its elements are of the dtype asked for."""
        for each in node.args.args:
            if each.arg == "dtype":
                each.annotation = _expression("builtins.type[_E]")
        return self._def(node, "__new__", f"{name}[_E, Any]")

    def _def(self, node: ast.FunctionDef, name: str, returns: str | None = None) -> str:
        kinds = {"property", "classmethod", "staticmethod", "contextmanager"}
        given = {a.arg: a for a in node.args.args}
        if _is_array(node.returns) and ("dtype" in given or next(iter(given), "") == "src"):
            said, element = ("dtype", "builtins.type[{}]") if "dtype" in given else ("src", "_Elements[{}]")
            variable = "_T" if "self" in given else "_E"  # elements are of the type asked for, or as they were
            given[said].annotation = _expression(element.format(variable))
            returns = f"array[{variable}, Any]"
        marks = [ast.unparse(d) for d in node.decorator_list]
        kept = [m for m in marks if m in kinds - {"contextmanager"} or m.endswith(".setter")]
        kept = ["property" if m.endswith("cached_property") else m for m in kept]
        result = "None" if name == "__init__" else returns or (self._said(node.returns) if node.returns else "Any")
        decorators = "".join(f"@{'builtins.' if m in kinds else ''}{m}\n" for m in kept)
        return f"{decorators}def {name}({ast.unparse(self._arguments(node.args))}) -> {result}: ..."

    def _arguments(self, given: ast.arguments) -> ast.arguments:
        def said(arg: ast.arg | None) -> ast.arg | None:
            if arg is None or arg.annotation is None:
                return arg
            return ast.arg(arg.arg, _expression(self._said(arg.annotation)))

        def all_said(args: list[ast.arg]) -> list[ast.arg]:
            return [x for x in map(said, args) if x is not None]

        some = ast.Constant(...)
        return ast.arguments(
            posonlyargs=all_said(given.posonlyargs), args=all_said(given.args), vararg=said(given.vararg),
            kwonlyargs=all_said(given.kwonlyargs), kwarg=said(given.kwarg), defaults=[some for _ in given.defaults],
            kw_defaults=[None if d is None else some for d in given.kw_defaults],
        )  # fmt: skip

    def _said(self, annotation: ast.expr) -> str:
        """An annotation in terms of what the stub knows; Any for the rest."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            annotation = _expression(annotation.value)
        return ast.unparse(_Names(self).visit(copy.deepcopy(annotation)))


class _Names(ast.NodeTransformer):
    """Rewrites the names of an annotation."""

    def __init__(self, source: _Source):
        self.source = source

    def visit_Name(self, node: ast.Name) -> ast.expr:
        source = self.source
        if node.id == "array" and node.id in source.known:
            source.used.add("array")
            return _expression(source._array)
        if node.id in _FROM_HEAD or node.id in ("_E", "_N"):
            return node
        if hasattr(builtins, node.id):
            return ast.Attribute(ast.Name("builtins"), node.id)
        if node.id in source.known and node.id not in _OPEN:
            source.used.add(node.id)
            return node
        return ast.Name("_T" if node.id == "T" else "Any")

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id == "wp":
            return self.visit(ast.Name(node.attr))
        return node if isinstance(node.value, ast.Name) and node.value.id in _MODULES_IN_HEAD else ast.Name("Any")

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        value = self.visit(node.value)
        if isinstance(value, ast.Name) and value.id in ("Any", "Literal"):
            return value if value.id == "Any" else node
        return ast.Subscript(value, self.visit(node.slice))

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return _expression(self.source._said(node)) if isinstance(node.value, str) else node


def _parsed(thing: Any) -> ast.AST | None:
    """The syntax tree of a function or a class; None where it has no source of its own."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
    except (OSError, TypeError, IndentationError):
        return None


def _by_keyword(arguments: str) -> str:
    return arguments if arguments.startswith("*") else f"*, {arguments}"


def _is_array(annotation: ast.expr | None) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id == "array"


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _public(name: str) -> bool:
    dunder = name.startswith("__") and name.endswith("__") and "treadle" not in name
    return not name.startswith("_") or (dunder and name not in _UNSAID)


def _assigned(body: list[ast.stmt]) -> set[str]:
    """The public attributes that the methods of a class assign."""
    found = set()
    for method in body:
        for node in ast.walk(method):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _public(node.attr):
                if ast.unparse(node.value) == "self":
                    found.add(node.attr)
    return found


def _base_of_enum(c: type) -> str:
    return next(x.__name__ for x in c.__mro__ if x.__module__ == "enum")
