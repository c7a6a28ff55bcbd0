"""What tells functions and kernels from others that look alike: their code and all that it can reach, as text.

Unlike a manifest, which lists what a compile did look up, this is known where a function is declared, before anything
is parsed. So it names more than needed: every value that a name of the code could mean.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from typing import Any

from ..base.digest import digest
from ..base.errors import TreadleError
from ..frontend.source import EMPTY, Source
from ..types.core import Struct, Type
from .function import Function
from .kernel import Kernel
from .manifest import Unknown, result_text, shortened, types_text, value_text
from .module import Module

_OWN = __name__.partition(".")[0]


class Identity:
    """The digest of what functions are made of. Values whose content has no text stand there by their address; they are
    in ``kept``, which has to live as long as the digest is used. Structs are told apart even if they are alike, as
    types are. In the digest of a module, ``home``, they go by their fields and, if they are its own, by the name that
    they have in it, so that equal modules have equal digests.
    """

    def __init__(self, home: Module | None = None):
        self.home = home
        self.kept: list[Any] = []
        self._inside: list[Any] = []  # functions being described, outermost first: one may reach itself

    def of(self, source: Source) -> str:
        """The digest of one function: code, parameters, and the values that its names mean now."""
        if source.function in self._inside:
            return f"above {len(self._inside) - self._inside.index(source.function)}"
        self._inside.append(source.function)
        try:
            statics = [self.value(v) for v in source.statics.values()]
            reached = sorted(f"{name}={self.value(value)}" for name, value in _reached(source))
            code = _code_text(source.code) + source.content
            return digest(code, self._signature(source), repr(statics), *reached)
        finally:
            self._inside.pop()

    def function(self, f: Function) -> str:
        """The digest of a function of the kernel language: its overloads, how they are called, and their rules."""
        parts = []
        for o in f.overloads:
            rules = [self.of(rule.source) if rule is not None else "" for rule in (o.adjoint, o.replay)]
            parts.append(f"{self.of(o.source)} {o.inline} {rules}")
        return digest(*parts)

    def value(self, value: Any) -> str:
        """The text of a value, functions included."""
        if isinstance(value, Function):
            return self.function(value)
        if isinstance(value, types.FunctionType) and not hasattr(value, "__treadle_builtin__"):
            if (value.__module__ or "").partition(".")[0] != _OWN:
                return self.of(Source(value))
        if isinstance(value, tuple | list) and None not in value:  # a list with gaps is yet to be filled
            return f"{type(value).__name__}({','.join([self.value(v) for v in value])})"
        t = getattr(value, "__treadle_type__", None)
        if isinstance(value, type) and isinstance(t, Struct):
            return self._types([t])
        try:
            return shortened(self._told(value_text(value)))
        except Unknown:
            self.kept.append(value)
            return f"{type(value).__qualname__} at {id(value)}"

    def _types(self, found: list[Type]) -> str:
        return self._told(types_text(found))

    def _told(self, text: str) -> str:
        if self.home is None:
            return text
        return re.sub(r"#\d+(?=>)", "", text.replace(f"struct<{self.home.name}.", "struct<"))

    def _signature(self, source: Source) -> str:
        try:
            declared = self._types([t for t in source.parameter_types() if t is not None])
            declared += f" -> {self._told(result_text(source))}"
            unknown = [p.name for p, t in zip(source.parameters(), source.parameter_types(), strict=True) if t is None]
        except TreadleError:  # annotations that mean nothing: whoever compiles it is told
            declared, unknown = repr(sorted(source.annotations.items())), []
        defaults = [self.value(p.default) for p in source.parameters() if p.default is not EMPTY]
        return f"{declared} {unknown} {defaults}"


def _code_text(code: types.CodeType) -> str:
    """Instructions, constants and names, without the place in a file."""
    constants = [
        _code_text(c) if isinstance(c, types.CodeType) else f"{type(c).__name__} {c!r}" for c in code.co_consts
    ]
    return repr((code.co_code.hex(), constants, code.co_names, code.co_varnames, code.co_freevars, code.co_argcount,
                 code.co_kwonlyargcount))  # fmt: skip


def _reached(source: Source) -> Iterator[tuple[str, Any]]:
    """Names of the code and of code inside of it with their values, and what modules and namespaces among these have by
    such names, and what those have."""
    names = set(_names(source.code))
    found = [(name, where[name]) for name in names for where in _scopes(source, name)]
    while found:
        path, value = found.pop()
        yield path, value
        if _is_scope(value) and path.count(".") < _DEEPEST:
            found += [(f"{path}.{name}", vars(value)[name]) for name in names if name in vars(value)]


def _scopes(source: Source, name: str) -> list[dict[str, Any]]:
    """Where the name is found: in at most one place."""
    return [where for where in (source.closure, source.globals) if name in where][:1]


def _is_scope(value: Any) -> bool:
    """Whether code names what is in ``value``: a module of others, or a namespace."""
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0] != _OWN
    return type(value) is types.SimpleNamespace


_DEEPEST = 4  # dots in a path: modules may contain themselves


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    yield from code.co_freevars
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def kernel_digest(kernel: Kernel, identity: Identity) -> str:
    """Stands for a kernel: its name, what its function is, its own options, and the types it is bound to."""
    return digest(kernel.key, identity.of(kernel.source), repr(sorted(kernel.options.items())), repr(kernel.bound))


def module_digest(module: Module, options: dict[str, Any]) -> str:
    """Stands for a module: its kernels in any order, generic ones with their overloads; functions; and ``options``."""
    identity = Identity(module)
    kernels = []
    for kernel in module.kernels.values():
        overloads = sorted([types_text(types) for types in kernel.overloads]) if kernel.is_generic else []
        kernels.append(digest(kernel_digest(kernel, identity), *overloads))
    functions = sorted(identity.function(f) for f in module.functions.values())
    return digest(repr(sorted(options.items(), key=lambda item: item[0])), *sorted(kernels), *functions)
