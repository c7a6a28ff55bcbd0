"""The text of ``ir.show`` back into a program: for tests that write IR by hand and for golden files."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from ..base.errors import InternalError
from ..types import core
from ..types.core import Struct, Type
from .node import NO_ATTRS, Block, Func, Op, Value

__all__ = ["read", "read_type"]

# strings · %values · names (ops, attributes, functions) · numbers, hex floats among them · punctuation
_TOKEN = re.compile(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[%@]?\w+(?:\.[0-9a-f]\w*(?:[+-]\d+)?)?|[^\s\w])""")
_SCALARS = {t.name: t for t in core.SCALARS}


def read(text: str, structs: dict[str, Struct] | None = None) -> Func:
    """The program that ``show`` printed as ``text``: its last function.

    ``structs`` gives existing struct types by key; others are made from their declarations. Raises
    :class:`InternalError` with the line's number where the text is no program.
    """
    return _Reader(text, dict(structs or {})).program()


def read_type(text: str, structs: dict[str, Struct] | None = None) -> Type:
    """The type that ``text`` names."""
    reader = _Reader(text, dict(structs or {}))
    reader.next_line()
    return reader.type()


class _Reader:
    """A cursor over lines, and over the tokens of the current one."""

    def __init__(self, text: str, structs: dict[str, Struct]):
        self.lines = [(i, line) for i, line in enumerate(text.splitlines(), 1) if line.strip()]
        self.at = 0
        self.structs = structs
        self.functions: list[Func] = []
        self.values: dict[str, Value] = {}
        self.tokens: list[str] = []

    # ---- tokens

    def next_line(self) -> None:
        if self.at == len(self.lines):
            raise InternalError("the text ends inside a program")
        self.tokens = _TOKEN.findall(self.lines[self.at][1])[::-1]
        self.at += 1

    def peek(self) -> str:
        return self.tokens[-1] if self.tokens else ""

    def take(self, wanted: str = "") -> str:
        token = self.tokens.pop() if self.tokens else ""
        if wanted and token != wanted:
            self.fail(f"{wanted!r} was expected, not {token!r}")
        return token

    def took(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.tokens.pop()
        return True

    def fail(self, message: str) -> None:
        number, line = self.lines[self.at - 1]
        raise InternalError(f"line {number}, {line.strip()!r}: {message}")

    def listed(self, item: Callable[[], Any], end: str = "") -> list[Any]:
        """``item()`` as often as stands before ``end`` (or the line's end), separated by commas; takes ``end`` too."""
        out = []
        while self.tokens and self.peek() != end:
            out.append(item())
            if not self.took(","):
                break
        if end:
            self.take(end)
        elif self.tokens:
            self.fail(f"what is {self.peek()!r}?")
        return out

    # ---- types and attributes

    def type(self) -> Type:
        word = self.take()
        if word in _SCALARS:
            return _SCALARS[word]
        if word == "(":
            return core.tuple_of(*self.listed(self.type, ")"))
        if word in ("str", "void"):
            return {"str": core.STR, "void": core.VOID}[word]
        self.take("<")
        if word == "struct":
            t: Type = self.structs[self._balanced()]
        elif word in ("vec", "mat"):
            sizes = []
            while self.peek().isdigit():
                sizes.append(int(self.take()))
                self.take(",")
            t = (core.vector if word == "vec" else core.matrix)(*sizes, self.type())
        elif word in ("quat", "transform"):
            t = (core.quaternion if word == "quat" else core.transformation)(self.type())
        elif word in ("view", "local"):
            t = self._view("global" if word == "view" else "local")
        elif word == "indexed":
            t = self._indexed()
        elif word in ("bucket", "bucketed"):
            t = self._buckets(word)
        elif word in ("array", "indexedarray", "fabricarray", "indexedfabricarray"):
            elem = None if self.took("any") else self.type()
            self.take(",")
            t = core.array(elem, int(self.take()), word)
        elif word == "stack":
            elem = self.type()
            self.take(",")
            t = core.tile_stack(elem, int(self.take()))
        elif word in ("fixed", "tile"):
            elem = self.type()
            self.take(",")
            self.take("(")
            t = (core.fixed if word == "fixed" else core.tile)(elem, tuple(self.listed(lambda: int(self.take()), ")")))
        else:
            self.fail(f"no such type: {word}")
        if word != "struct":
            self.take(">")
        return t

    def _view(self, space: str) -> Type:
        elem = self.type()
        self.take(",")
        ndim = int(self.take())
        self.take(",")
        self.take("(")
        strides = tuple(self.listed(self._stride, ")"))
        return core.view(elem, ndim, strides, planar=self.took(",") and self.take("planar") != "", space=space)

    def _indexed(self) -> Type:
        data, indices = self.type(), []
        while self.took(","):
            indices.append(None if self.took("-") else self.type())
        return core.indexed(data, tuple(indices))

    def _buckets(self, word: str) -> Type:
        elem = self.type()
        if word == "bucket":
            return core.bucket(elem, self.took(",") and self.take("nested") != "")
        self.take(",")
        ndim = int(self.take())
        return core.bucketed(elem, ndim, self.took(",") and self.take("listed") != "")

    def _stride(self) -> int | None:
        if self.took("?"):
            return None
        return -int(self.take()) if self.took("-") else int(self.take())

    def _balanced(self) -> str:
        """The text up to the ``>`` that closes an open ``<``, and past it."""
        depth, out = 1, []
        while True:
            token = self.take() or self.fail("a '>' is missing")
            depth += {"<": 1, ">": -1}.get(token, 0)
            if not depth:
                return "".join(out)
            out.append(token)

    def attribute(self) -> Any:
        token = self.take()
        if token in ("true", "false", "none"):
            return {"true": True, "false": False, "none": None}[token]
        if token[0] in "'\"":
            return ast.literal_eval(token)
        if token == "!":
            return self.type()
        if token[0] == "@":
            return self.functions[int(token[1:])]
        if token == "(":
            return tuple(self.listed(self.attribute, ")"))
        if token == "{":
            return dict(self.listed(self._pair, "}"))
        if token == "-":
            return -self.attribute()
        if token in ("inf", "nan") or token.startswith("0x"):
            return float.fromhex(token)
        return float(token) if "." in token else int(token)

    def _pair(self) -> tuple[str, Any]:
        key = ast.literal_eval(self.take())
        self.take(":")
        return key, self.attribute()

    # ---- functions

    def program(self) -> Func:
        while self.at < len(self.lines):
            self.next_line()
            word = self.take()
            if word == "struct":
                self._struct()
            else:
                self.functions.append(self._function(word))
        if not self.functions:
            raise InternalError("the text holds no function")
        return self.functions[-1]

    def _struct(self) -> None:
        key = ast.literal_eval(self.take())
        self.take("(")
        fields = tuple(self.listed(self._struct_field, ")"))
        self.structs.setdefault(key, Struct(key, fields))

    def _struct_field(self) -> tuple[str, Type]:
        name = self.take()
        self.take(":")
        return name, self.type()

    def _function(self, kind: str) -> Func:
        self.take()  # its number: functions stand in order
        name = ast.literal_eval(self.take())
        self.values = {}
        self.take("(")
        params = tuple(self.listed(self.define, ")"))
        facts, names = {}, ()
        while not self.took("{"):
            facts.update([self._named()])
        signature = tuple(p.type for p in params)
        self.next_line()
        if self.took("signature"):
            self.take("(")
            signature = tuple(self.listed(self.type, ")"))
            self.next_line()
        if self.took("names"):
            self.take("(")
            names = tuple(self.listed(lambda: ast.literal_eval(self.take()), ")"))
            self.next_line()
        return Func(name, kind, params, self.block(()), signature, names, facts)

    def _named(self) -> tuple[str, Any]:
        name = self.take()
        self.take("=")
        return name, self.attribute()

    def define(self) -> Value:
        number = self.take()
        self.take(":")
        v = self.values[number] = Value(self.type())
        return v

    def value(self) -> Value:
        number = self.take()
        return self.values.get(number) or self.fail(f"{number} is not defined")

    def block(self, params: tuple[Value, ...]) -> Block:
        """The ops from the current line to the yield, and the line with the closing brace, which is left current."""
        ops = []
        while not self.took("yield"):
            ops.append(self.op())
            self.next_line()
        yields = tuple(self.listed(self.value))
        self.next_line()
        self.take("}")
        return Block(params, tuple(ops), yields)

    def op(self) -> Op:
        results: list[tuple[str, Value]] = []
        while self.peek().startswith("%"):  # results are readable only after the regions
            number = self.take()
            self.take(":")
            results.append((number, Value(self.type())))
            if not self.took(","):
                self.take("=")
        name = self.take()
        args = []
        while self.peek().startswith("%"):
            args.append(self.value())
            self.took(",")
        attrs = {}
        while self.tokens and self.peek() != "{":
            attrs.update([self._named()])
        regions = []
        while self.took("{"):
            params = tuple(self.listed(self.define))
            self.next_line()
            regions.append(self.block(params))
        self.values.update(results)
        return Op(name, tuple(args), tuple(v for _, v in results), attrs or NO_ATTRS, tuple(regions))
