"""The arguments of a call: ``*`` unpacked, names matched with parameters, defaults filled in."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from ..base.errors import KernelTypeError, KernelValueError
from ..ir.node import Value
from ..types.core import Indexed, Matrix, Tuple, Vector, View, i32, vector
from .constants import Constant, Operand, constant_of, describe
from .indexing import Indexing
from .names import near
from .source import EMPTY, Parameter


class Arguments(NamedTuple):
    """What a call was given. ``places``: per argument, positional ones first, where it stands."""

    args: list[Operand]
    kwargs: dict[str, Operand]
    places: list[ast.expr]


class Binding(Indexing):
    """Translation of arguments."""

    def arguments(self, node: ast.Call, lends: bool = False) -> Arguments:
        """The arguments of ``node`` in the order written; ``lends``: variables may be given by address."""
        args: list[Operand] = []
        places: list[ast.expr] = []
        for a in node.args:
            found = self._unpacked(a.value) if isinstance(a, ast.Starred) else (self._argument(a, lends),)
            args.extend(found)
            places.extend([a] * len(found))
        for k in node.keywords:
            if k.arg is None:
                self.no_syntax(node, "a '**' argument", "name each argument")
        kwargs = {k.arg: self._argument(k.value, lends) for k in node.keywords}
        return Arguments(args, kwargs, places + [k.value for k in node.keywords])

    def _argument(self, node: ast.expr, lends: bool) -> Operand:
        """One argument. Of one that the call may change it is kept what it refers to: indices are found once."""
        lent = self.lend(node) if lends and isinstance(node, ast.Call) else None
        if lent is not None:
            return lent
        if not isinstance(node, ast.Subscript | ast.Attribute) or node not in self.facts.updated:
            return self.operand(node)
        self.kept[node] = found = self.reference(node)
        return self.read(found, node)

    def altered(self, node: ast.expr, new: Value) -> None:
        """Let the variable, element or part that was passed as argument ``node`` be ``new``: a call changed it."""
        if isinstance(node, ast.Name) and node.id in self.env:
            before = self.env[node.id]
            self.bind(node.id, new, node)
            self.changed(node.id, before, node)
        elif isinstance(node, ast.Subscript | ast.Attribute):
            self.write(self.kept.pop(node, None) or self.reference(node), new, node)

    def _unpacked(self, node: ast.expr) -> tuple[Operand, ...]:
        """The parts that ``*node`` stands for."""
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            owner = self.operand(node.value)
            if isinstance(owner, Value) and isinstance(owner.type, View | Indexed):
                return self._unpacked_slice(owner, node.slice, node)
        return self.spread(self.operand(node), node)

    def spread(self, x: Operand, node: ast.expr) -> tuple[Operand, ...]:
        """The parts of a tuple or vector, the rows of a matrix."""
        if isinstance(x, tuple):
            return x
        if isinstance(x, Constant) and x.type is None and isinstance(x.value, tuple | list):
            return tuple(constant_of(v) for v in x.value)
        v = self.value(x, node)
        t, b = v.type, self.here(node)
        if isinstance(t, Vector | Tuple):
            return b.parts(v)
        if isinstance(t, Matrix):
            cells, row = b.parts(v), vector(t.cols, t.elem)
            return tuple(b.one("make", cells[r * t.cols : (r + 1) * t.cols], row) for r in range(t.rows))
        allowed = "vectors, matrices, tuples and slices of arrays"
        self.fail(node, f"Starred expressions are only supported for {allowed}, not for {describe(x)}")

    def _unpacked_slice(self, v: Value, cut: ast.Slice, node: ast.expr) -> tuple[Operand, ...]:
        """The elements (or rows) of an array in a range with constant bounds."""
        bounds = [self.operand(x) if x is not None else None for x in (cut.lower, cut.upper, cut.step)]
        if any(x is not None and not (isinstance(x, Constant) and isinstance(x.value, int)) for x in bounds):
            what = "Slice component must be a compile-time constant"
            self.fail(node, f"{what} where '*' unpacks an array: it says how many elements", kind=KernelValueError)
        start, stop, step = (None if x is None else x.value for x in bounds)
        if stop is None:
            what = "unpacking a slice of an array requires explicit upper bound, as lengths are not known here"
            self.fail(node, what, "write it out, as in *a[0:3]", KernelValueError)
        if stop < 0 or (start or 0) < 0:
            self.fail(node, "after '*' bounds cannot be negative for arrays, as lengths are not known here",
                      kind=KernelValueError)  # fmt: skip
        if step is not None and step < 1:
            self.fail(node, f"after '*' the step cannot be negative or zero: it is {step}", kind=KernelValueError)
        found = []
        for k in range(start or 0, stop, step or 1):
            at = self.here(node).const(k, i32)
            found.append(self.read(self.element(v, (at,)), node))
        return tuple(found)

    def bound(self, target: Any, given: Arguments, node: ast.expr) -> list[tuple[Operand, ast.AST]]:
        """Arguments in the order of the parameters, defaults filled in; for the latest overload that takes as many."""
        overloads = list(reversed(getattr(target, "overloads", None) or [target]))
        for candidate in overloads[:-1]:
            try:
                return self._bind(candidate.treadle_parameters, given, node)
            except KernelTypeError:
                continue
        return self._bind(overloads[-1].treadle_parameters, given, node)

    def _bind(self, params: tuple[Parameter, ...], given: Arguments, node: ast.expr) -> list[tuple[Operand, ast.AST]]:
        args, kwargs, places = given
        if len(args) > len(params):
            self.fail(node, f"{called(node)} takes {len(params)} arguments, here are {len(args)}")
        named = dict(zip(kwargs, zip(kwargs.values(), places[len(args) :], strict=True), strict=True))
        bound: list[tuple[Operand, ast.AST]] = list(zip(args, places, strict=False))
        for p in params[: len(args)]:
            if p.name in named:
                self.fail(node, f"argument {p.name!r} of {called(node)} is given twice")
        for p in params[len(args) :]:
            if p.name in named:
                bound.append(named.pop(p.name))
            elif p.default is not EMPTY:
                bound.append((constant_of(p.default), node))
            else:
                self.fail(node, f"argument {p.name!r} of {called(node)} is missing")
        if named:
            unknown = next(iter(named))
            self.fail(node, f"{called(node)} has no parameter {unknown!r}", near(unknown, [p.name for p in params]))
        return bound


def called(node: ast.expr) -> str:
    """What a call calls, as written."""
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)
