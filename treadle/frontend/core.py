"""The state of one translation, and the small tools that all its parts use."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, NoReturn

from ..base.errors import KernelAttributeError, KernelSyntaxError, KernelTypeError, TreadleError
from ..base.span import NOWHERE, Span
from ..builtins import registry
from ..ir.builder import Builder
from ..ir.node import Op, Value
from ..ir.ops import info
from ..types.core import Indexed, Scalar, Struct, Tuple, Type, View, any_layout, b1, i32, i64, tuple_of, u64
from ..types.layout import children
from ..types.spelling import spell
from . import constants
from .constants import Constant, Operand, describe
from .environment import Environment
from .facts import Facts
from .names import Manifest, Outside
from .references import Reference
from .source import Source

for _name in ("add", "sub", "div", "min", "max", "eq", "ne", "lt", "logical_not", "bitand", "bitor", "bitxor"):
    registry.primitive(_name)  # operations that the frontend makes itself must be known to the IR


@dataclass(frozen=True, slots=True)
class Options:
    """What the frontend must be told. ``max_unroll``: loops of at most so many known iterations are unrolled. ``grid``:
    dimensions of the launch; a kernel that asks for fewer indices gets the first ones, and threads share them.
    ``shared``: arrays that the kernel updates may lie over each other, so that every update must be one step.
    ``gradient``: how often the program will be differentiated; what has a rule for that stays a call that brings it
    along."""

    max_unroll: int = 16
    grid: int = 1
    shared: bool = False
    gradient: int = 0


class Core:
    """One function being translated for one list of argument types."""

    def __init__(self, source: Source, options: Any, kind: str, manifest: Manifest, builtin: bool = False):
        self.source, self.options, self.kind, self.builtin = source, options, kind, builtin
        self.tree = source.tree
        names, updating, tiles = source.updates()
        kept = source.references if kind == "function" and not builtin else frozenset()
        if tiles and kind == "function":
            kept = frozenset([p.name for p in source.parameters()])
        self.facts = Facts(self.tree, names, updating, tiles, kept)
        self.manifest = manifest
        self.outside = Outside(source, manifest)
        self.builder = Builder(source.span)
        self.env: Environment = {}
        self.shared: dict[str, bool] = {}  # parameters that are the caller's variables, with whether they have changed
        self.parted: dict[str, str] = {}  # variables that share elements with others, see ``aliases``
        self.errors: list[TreadleError] = []
        self.needed: dict[str, Span] = {}  # names of which a loop's body wanted the type too early, and where
        self.lent: list[tuple] = []  # variables that lie in memory while a call has their addresses, see ``calls``
        self.outer: dict[str, Constant] = {}  # what names from outside stand for, and dotted ones
        self.opposites: dict[Value, Value] = {}  # of which value each negation is the negation
        self.sizes: dict[Value, tuple[int, ...]] = {}  # the shapes of arrays of a thread's own
        self.ndim: int | None = None  # the grid rank asked for
        self.ruled = False  # whether functions with gradient or replay functions of the user work on arrays
        self.differentiated: dict[str, Value] | None = None  # in gradient functions, the arguments of the function
        self.returned: tuple[tuple[Type, ...], Span] | None = None  # types of the first return, and where
        self.weights: dict[ast.For, tuple[int, bool]] = {}  # see loops.py
        self.kept: dict[ast.expr, Reference] = {}  # arguments that calls may change: what they refer to
        self._spans: dict[ast.AST, Span] = {}

    # -- places and errors -------------------------------------------------------------------------------------------

    def span(self, node: ast.AST) -> Span:
        """Where ``node`` stands. The tree counts columns in bytes, a Span in characters."""
        found = self._spans.get(node)
        if found is None:
            file, line, end = self.source.file, node.lineno, node.end_col_offset
            if node.end_lineno != line:
                end = len(Span(file, line).text().encode())
            found = Span(file, line, node.col_offset, end)
            if not self.source.ascii:
                raw = found.text().encode()
                found = Span(file, line, len(raw[: node.col_offset].decode()), len(raw[:end].decode()))
            self._spans[node] = found
        return found

    def here(self, node: ast.AST) -> Builder:
        """The builder, its ops pointing at ``node``."""
        self.builder.span = self.span(node)
        return self.builder

    def fail(self, node: ast.AST, message: str, hint: str = "", kind: type[TreadleError] = KernelTypeError) -> NoReturn:
        raise kind(message, self.span(node), hint)

    def no_attribute(self, node: ast.Attribute, owner: str, hint: str = "") -> NoReturn:
        self.fail(node, f"`{node.attr}` is not an attribute of {owner}", hint, KernelAttributeError)

    def no_syntax(self, node: ast.AST, what: str, hint: str = "") -> NoReturn:
        raise KernelSyntaxError(f"{what} cannot be used in kernels", self.span(node), hint)

    def placed(self, error: TreadleError, node: ast.AST) -> TreadleError:
        """``error`` with the place of ``node``, if it has none of its own."""
        if error.span is not None and error.span is not NOWHERE:
            return error
        return type(error)(error.message, self.span(node), error.hint)

    # -- operands ----------------------------------------------------------------------------------------------------

    def value(self, x: Operand | None, node: ast.AST, t: Type | None = None) -> Value:
        """``x`` as a value of the program; a literal becomes a ``t`` if it can."""
        if isinstance(x, Value):
            return x
        if x is None:
            self.fail(node, "this call returns nothing", "give the function a return statement")
        try:
            return constants.materialize(self.here(node), x, t)
        except KernelTypeError as error:
            raise self.placed(error, node) from None

    def laid_out(self, v: Value, t: Type, node: ast.AST) -> Value:
        """``v`` as a ``t`` that leaves open what the type of ``v`` says of the strides of arrays."""
        if v.type is t:
            return v
        b = self.here(node)
        if isinstance(t, View):
            return b.one("slice", (v, b.i32(0), b.i32(1), b.one("shape", (v,), i32, axis=0)), t, axis=0)
        if isinstance(t, Struct | Tuple):
            parts = [self.laid_out(p, ft, node) for p, ft in zip(b.parts(v), children(t), strict=True)]
            return b.one("make", tuple(parts), t)
        return v

    def typed(self, x: Operand | None, t: Type, node: ast.AST, what: str) -> Value:
        """``x`` as a value of exactly type ``t``; ``what`` names the place that asks for it."""
        v = self.value(x, node, t)
        if v.type is not t and common_type(v.type, t) is t:
            v = self.laid_out(v, t, node)
        if v.type is not t:
            self.fail(node, f"{what} expects value of type {spell(t)}, got {spell(v.type)}", cast_hint(v.type, t))
        return v

    def truth(self, x: Operand | None, node: ast.AST) -> Value | bool:
        """``x`` as a condition: a bool of the program, or a Python bool where it is known."""
        if isinstance(x, Constant):
            if isinstance(x.type, Scalar) or isinstance(x.value, str):
                return bool(x.value)
            if x.type is None and not callable(x.value):
                return bool(x.value)
        if isinstance(x, Value):
            t = x.type
            if t is b1:
                return x
            b = self.here(node)
            if isinstance(t, Scalar):
                return b.one("ne", (x, b.const(0.0 if t.is_float else 0, t)), b1)
            if isinstance(t, View | Indexed):
                where = b.one("address", (b.extract(x, 0) if isinstance(t, Indexed) else x,), u64)
                return b.one("ne", (where, b.const(0, u64)), b1)
        shown = "nothing" if x is None else describe(x)
        self.fail(node, f"a condition must be a bool or a number, not {shown}")

    def negate(self, x: Value, node: ast.AST) -> Value:
        """``not x``."""
        found = self.opposites.get(x)
        if found is None:
            found = self.here(node).one("logical_not", (x,), b1)
        self.opposites[found] = x
        return found

    def index_type(self, x: Value, node: ast.AST) -> Value:
        """``x`` as an array index: int32 or int64."""
        t = x.type
        if not (isinstance(t, Scalar) and t.is_int):
            self.fail(
                node, f"an index must be an integer, not {spell(t)}", "write int(…)" if isinstance(t, Scalar) else ""
            )
        if t.bits == 64 or t is i32:
            return x
        return self.here(node).one("cast", (x,), i64 if t.bits == 32 else i32)


def common_type(s: Type | None, t: Type | None) -> Type | None:
    """The type that values of types ``s`` and ``t`` both fit, where they differ only in strides of arrays; or None."""
    if s is t:
        return s
    if isinstance(s, View) and isinstance(t, View) and s.ndim and s.space == t.space == "global":
        if (s.elem, s.ndim, s.planar) == (t.elem, t.ndim, t.planar):
            return any_layout(s)
    if isinstance(s, Indexed) and isinstance(t, Indexed):
        alike = [common_type(a, b) for a, b in zip(children(s), children(t), strict=False)]
        return any_layout(s) if s.axes == t.axes and None not in alike else None
    if isinstance(s, Struct) and isinstance(t, Struct) and s.key == t.key:
        fields = tuple((n, common_type(a, b)) for (n, a), b in zip(s.fields, children(t), strict=True))
        if None in [ft for _, ft in fields]:
            return None
        found = next((known for known in (s, t) if known.fields == fields), None)
        return found or _STRUCTS.setdefault((s.key, fields), Struct(s.key, fields))
    if isinstance(s, Tuple) and isinstance(t, Tuple) and len(s.items) == len(t.items):
        items = [common_type(a, b) for a, b in zip(s.items, t.items, strict=True)]
        return None if None in items else tuple_of(*items)
    return None


_STRUCTS: dict[tuple, Struct] = {}  # struct types whose arrays may lie in any way


def cast_hint(have: Type, want: Type) -> str:
    """How to convert, where both are scalars, or indexed arrays."""
    if isinstance(have, Indexed) and isinstance(want, Indexed) and (have.elem, have.ndim) == (want.elem, want.ndim):
        return "they differ in which dimensions have lists of indices; give the array a list for each of them"
    both = isinstance(have, Scalar) and isinstance(want, Scalar)
    return f"types are not mixed in silence; convert it, as in {spell(want)}(…)" if both else ""


def cheap(ops: list[Op], limit: int = 8) -> bool:
    """Whether ``ops`` are few, pure and harmless on any input: running them in vain then costs less than a branch."""
    if len(ops) > limit:
        return False
    return all(info(op.name).pure and info(op.name).safe and not op.regions for op in ops)
