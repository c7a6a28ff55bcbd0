"""A snippet as a source: the signature of a Python function, the body of a text in C."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Mapping
from functools import cached_property
from types import FunctionType
from typing import Any

from ...base.digest import digest
from ...base.span import Span
from ...builtins.names import UPDATING
from ..source import EMPTY, Parameter, Source
from .text import Text, rewrite
from .tree import statements


class SnippetSource(Source):
    """The C text ``snippet`` with the parameters that ``function`` declares.

    ``adjoint``: it is the snippet for the gradient of ``function``, which also takes ``adj_ret``, the adjoint of the
    result. Names inside mean parameters and builtins only. Errors show the lines of the snippet.
    """

    def __init__(
        self, function: FunctionType, snippet: str, namespace: Mapping[str, Any] | None = None, adjoint: bool = False
    ):
        super().__init__(function, namespace)
        self.snippet = self.content = snippet
        self.adjoint = adjoint
        self.file = f"<snippet of {self.qualname} {digest(snippet)[:12]}>"  # tells it from others, to every cache
        lines = snippet.splitlines(keepends=True) or [""]
        linecache.cache[self.file] = (len(snippet), None, lines, self.file)

    @cached_property
    def text(self) -> Text:
        """The snippet as C."""
        return rewrite(self.snippet, self.file)

    @property
    def text_types(self) -> dict[str, Any]:
        """What names of types mean in it."""
        return self.text.types

    @property
    def parser(self) -> type:
        """What translates it."""
        from .parser import SnippetParser

        return SnippetParser

    @cached_property
    def tree(self) -> ast.FunctionDef:
        names = [p.name for p in self.parameters()]
        body = statements(self.text, names, self.file)
        arguments = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
        made = ast.FunctionDef(self.name, arguments, body, [], None, None)
        made.lineno = made.end_lineno = 1
        made.col_offset = made.end_col_offset = 0
        return made

    @property
    def span(self) -> Span:
        return Span(self.file, 1)

    @property
    def globals(self) -> dict[str, Any]:
        return {}

    @property
    def closure(self) -> dict[str, Any]:
        return {}

    def names(self) -> Mapping[str, Any]:
        """What annotations can mean: they stand in Python."""
        return {**self.function.__globals__, **self.namespace, **super().closure}

    def parameters(self) -> tuple[Parameter, ...]:
        declared = super().parameters()
        result = self.annotations.get("return")
        if not self.adjoint or result is None or result == "None":
            return declared
        return (*declared, Parameter("adj_ret", result, EMPTY))

    def updates(self) -> tuple[frozenset[str], dict[str, tuple[int | str, ...]], bool]:
        found = {n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name)}
        called = {name: UPDATING[name] for name in found if name in UPDATING}
        return frozenset([p.name for p in self.parameters()]) | (found - called.keys()), called, False
