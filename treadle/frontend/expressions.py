"""Expressions: from a syntax node to an operand (a value of the program, a constant, or a tuple of operands)."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import Any

from ..base.errors import KernelTypeError, TreadleError, UnassignedError
from ..builtins import registry
from ..builtins.registry import Arg, Match
from ..ir.builder import Builder
from ..ir.node import Value
from ..types import values
from ..types.core import STR, Scalar, Struct, Type, b1
from ..types.promotion import adapts
from .constants import FALSE, TRUE, Constant, Operand, adapted, constant_of, describe, fold, plain
from .context import context_of
from .control import Control, operand_type
from .core import cheap
from .environment import Broken, Cascade, TypeNeeded, Variable
from .facts import root_name
from .names import MISSING

OPERATORS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Mod: "mod", ast.FloorDiv: "floordiv",
    ast.Pow: "pow", ast.BitAnd: "bitand", ast.BitOr: "bitor", ast.BitXor: "bitxor", ast.LShift: "shl",
    ast.RShift: "shr", ast.MatMult: "matmul", ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le",
    ast.Gt: "gt", ast.GtE: "ge", ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert",
}  # fmt: skip

HINTS = {
    "JoinedStr": "use print(a, b) or wp.printf(\"%d\", a)",
    "List": "use a vector such as wp.vec3(…), or wp.zeros(shape=n, dtype=…) for a thread's own array",
    "Dict": "pass arrays, or look the value up with wp.static(table[key])",
    "Set": "pass arrays", "Lambda": "write a function and decorate it with @wp.func",
    "ListComp": "write a loop", "DictComp": "write a loop", "SetComp": "write a loop", "GeneratorExp": "write a loop",
    "NamedExpr": "assign on a line of its own",
    "Starred": "name each argument", "Yield": "write the values to an array", "YieldFrom": "write to an array",
}  # fmt: skip
NAMES = {"JoinedStr": "an f-string", "List": "a list", "Dict": "a dict", "Set": "a set", "Lambda": "a lambda",
         "ListComp": "a comprehension", "DictComp": "a comprehension", "SetComp": "a comprehension",
         "GeneratorExp": "a comprehension", "NamedExpr": "':='", "Starred": "a starred argument"}  # fmt: skip


class Expressions(Control):
    """Translation of expressions other than accesses and calls."""

    def expression(self, node: ast.expr) -> Operand | None:
        """The operand ``node`` stands for; None for a call that returns nothing."""
        rule = RULES.get(type(node))
        if rule is None:
            name = type(node).__name__
            self.no_syntax(node, NAMES.get(name, f"the expression '{name}'"), HINTS.get(name, ""))
        return rule(self, node)

    def operand(self, node: ast.expr) -> Operand:
        """As :meth:`expression`, where something must be there."""
        return self.operand_of(self.expression(node), node)

    def operand_of(self, x: Operand | None, node: ast.AST) -> Operand:
        """``x``, which must be there."""
        if x is None:
            self.fail(node, "this call returns nothing", "give the function a return statement")
        return x

    # -- names and constants -------------------------------------------------------------------------------------------

    def _constant(self, node: ast.Constant) -> Operand:
        value = node.value
        if value is None or isinstance(value, bool | int | float | str):
            return constant_of(value)
        self.no_syntax(node, f"a literal of type {type(value).__name__}")

    def variable(self, node: ast.Name) -> Operand:
        name = node.id
        v = self.env.get(name)
        if v is None:
            if name in self.facts.locals:
                self.fail(node, f"variable {name!r} is read before anything is assigned to it",
                          "assign it before this line on every path", UnassignedError)  # fmt: skip
            return self._outside(node)
        if type(v) is Broken:
            raise Cascade
        x = v.operand
        if isinstance(x, Value) and x.type is None:
            raise TypeNeeded(name, self.span(node))
        if v.defined is not True:
            self._check_assigned(name, v, node)
        return x

    def _check_assigned(self, name: str, v: Variable, node: ast.Name) -> None:
        """Emit the test that some path has assigned ``name``; behind it that is known."""
        b = self.here(node)
        ok = b.const(False, b1) if v.defined is FALSE else self.value(v.defined, node)
        b.op(
            "check",
            (ok,),
            kind="unassigned",
            message=f"variable {name!r} is read where nothing has been assigned to it",
        )
        self.env[name] = Variable(v.operand, True, v.span)

    def _outside(self, node: ast.Name) -> Operand:
        """A name that the function does not assign."""
        found = self.outer.get(node.id)
        if found is None:
            named = self.named(node.id)
            try:
                found = self.outer[node.id] = constant_of(self.outside.name(node.id) if named is MISSING else named)
            except TreadleError as error:
                raise self.placed(error, node) from None
        return found

    def named(self, name: str) -> Any:
        """The object that a name means which the function does not assign: one from outside, or the language's own."""
        if name not in self.outside.globals and name not in self.outside.closure:
            if registry.exists(name) and (self.builtin or not hasattr(builtins, name)):
                return BareName(name)
            if name in values.names():
                return values.names()[name]
        return self.outside.find(name)

    def _tuple(self, node: ast.Tuple) -> Operand:
        return tuple(self.operand(e) for e in node.elts)

    # -- operators -----------------------------------------------------------------------------------------------------

    def _binary(self, node: ast.BinOp) -> Operand:
        return self.operator(node.op, self.operand(node.left), self.operand(node.right), node)

    def operator(self, op: ast.operator, left: Operand, right: Operand, node: ast.AST) -> Operand:
        """``left op right``."""
        return self.binary(OPERATORS[type(op)], left, right, node)

    def binary(self, name: str, left: Operand, right: Operand, node: ast.AST) -> Operand:
        """The operator called ``name``, folded where both sides are known and that is worth knowing."""
        if isinstance(left, tuple) or isinstance(right, tuple):
            self.fail(node, f"several values at once cannot be an operand: {describe(left)} and {describe(right)}")
        own = self.overload_of(name, [left, right])
        if own is not None:
            return self.call_overload(own, [left, right], node)
        if isinstance(left, Constant) and isinstance(right, Constant):
            made = fold(name, left, right)
            if made is not None:
                return made
            if name in ("eq", "ne") and not (isinstance(left.type, Type) and isinstance(right.type, Type)
                                             and left.type is not STR):  # fmt: skip
                return constant_of((left.value == right.value) is (name == "eq"))
        elif name == "pow":  # a constant exponent matters
            return self.builtin_call(name, [left, right], {}, node, [node, node])
        elif isinstance(left, Constant):
            if left.literal and adapts(left.value, right.type):
                left = self.value(left, node, right.type)
        elif (
            isinstance(right, Constant) and right.literal and isinstance(left, Value) and adapts(right.value, left.type)
        ):
            right = self.value(right, node, left.type)
        return self.builtin_call(name, [left, right], {}, node, [node, node])

    def _unary(self, node: ast.UnaryOp) -> Operand:
        x = self.operand(node.operand)
        if isinstance(node.op, ast.Not):
            return self.negation(self.truth(x, node.operand), node)
        name = OPERATORS[type(node.op)]
        if isinstance(x, Constant) and isinstance(x.type, Scalar) and x.type is not b1:
            if name == "pos":
                return x
            if name == "neg" and (x.literal or x.type.is_int):
                return constant_of(-x.value) if x.literal else Constant(plain(-x.value, x.type), x.type)
            if name == "invert" and x.type.is_int:
                return constant_of(~x.value) if x.literal else Constant(plain(~x.value, x.type), x.type)
        own = self.overload_of(name, [x]) if isinstance(x, Value) and isinstance(x.type, Struct) else None
        if own is not None:
            return self.call_overload(own, [x], node)
        return self.builtin_call(name, [x], {}, node, [node.operand])

    def negation(self, x: Value | bool, node: ast.AST) -> Operand:
        """``not x``."""
        if isinstance(x, bool):
            return FALSE if x else TRUE
        return self.negate(x, node)

    def _compare(self, node: ast.Compare) -> Operand:
        left = self.operand(node.left)
        links = list(zip(node.ops, node.comparators, strict=True))

        def link(i: int, left: Operand) -> Operand:
            op, right_node = links[i]
            if type(op) not in OPERATORS:
                self._odd_comparison(op, node)
            right = self.operand(right_node)
            if len(links) > 1 and (operand_type(left) is b1) != (operand_type(right) is b1):
                self.fail(node, "a chain of comparisons compares a truth value with a number",
                          "put parentheses around the comparison that is meant: (a == b) == c")  # fmt: skip
            made = self.binary(OPERATORS[type(op)], left, right, node)
            if i + 1 == len(links):
                return made
            return self.both(self.truth(made, node), lambda: self.truth(link(i + 1, right), node), True, node)

        return link(0, left)

    def _odd_comparison(self, op: ast.cmpop, node: ast.Compare) -> None:
        word = {"Is": "is", "IsNot": "is not", "In": "in", "NotIn": "not in"}[type(op).__name__]
        hint = "compare with ==" if "is" in word else "write a loop"
        self.no_syntax(node, f"'{word}'", hint)

    # -- conditions ----------------------------------------------------------------------------------------------------

    def _bool(self, node: ast.BoolOp) -> Operand:
        conjunction = isinstance(node.op, ast.And)

        def rest(i: int) -> Value | bool:
            made = self.truth(self.operand(node.values[i]), node.values[i])
            if i + 1 == len(node.values):
                return made
            x = self.both(made, lambda: rest(i + 1), conjunction, node)
            return x.value if isinstance(x, Constant) else x

        x = rest(0)
        return x if isinstance(x, Value) else TRUE if x else FALSE

    def both(self, left: Value | bool, right: Callable[[], Value | bool], conjunction: bool, node: ast.AST) -> Operand:
        """``left and right`` or ``left or right``: the right side runs only where the left does not decide.

        Where the right side is cheap and harmless it is computed anyway, which costs less than a branch.
        """
        if isinstance(left, bool):
            if left is not conjunction:
                return TRUE if left else FALSE
            made = right()
            return made if isinstance(made, Value) else TRUE if made else FALSE
        made, ops = self.aside(right)
        b = self.here(node)
        if isinstance(made, bool) and not ops:
            return left if made is conjunction else TRUE if made else FALSE
        if cheap(ops):
            b.ops.extend(ops)
            if isinstance(made, bool):
                made = b.const(made, b1)
            return b.one("bitand" if conjunction else "bitor", (left, made), b1)
        inner, other = Builder(b.span), Builder(b.span)
        inner.ops = ops
        taken = inner.block((), (made if isinstance(made, Value) else inner.const(made, b1),))
        skipped = other.block((), (other.const(not conjunction, b1),))
        return b.op("if", (left,), (b1,), (taken, skipped) if conjunction else (skipped, taken))[0]

    def _choice(self, node: ast.IfExp) -> Operand:
        """``a if test else b``; both sides are computed if they are cheap and harmless."""
        test = self.truth(self.operand(node.test), node.test)
        if isinstance(test, bool):
            return self.operand(node.body if test else node.orelse)
        x, xs = self.aside(lambda: self.operand(node.body))
        y, ys = self.aside(lambda: self.operand(node.orelse))
        if isinstance(x, Constant) and x.same(y):
            return x
        s, t = operand_type(x), operand_type(y)
        if s is not t:
            x, y = (adapted(x, t) if isinstance(x, Constant) else x), (adapted(y, s) if isinstance(y, Constant) else y)
            s, t = operand_type(x), operand_type(y)
        if s is None or s is not t:
            self.fail(node, f"the two sides of a conditional expression differ: {describe(x)} and {describe(y)}",
                      "convert one of them")  # fmt: skip
        b, blocks = self.here(node), []
        if isinstance(s, Scalar) and cheap(xs, 4) and cheap(ys, 4):
            b.ops.extend(xs)
            b.ops.extend(ys)
            return b.one("select", (test, self.value(x, node), self.value(y, node)), s)
        for side, ops in ((x, xs), (y, ys)):
            self.builder = Builder(b.span)
            self.builder.ops = ops
            value = self.value(side, node)
            blocks.append(self.builder.block((), (value,)))
            self.builder = b
        return self.here(node).op("if", (test,), (s,), (blocks[0], blocks[1]))[0]

    # -- the registry --------------------------------------------------------------------------------------------------

    def arg(self, x: Operand | None, node: ast.AST) -> Arg:
        """``x`` as the registry sees it."""
        if isinstance(x, Value):
            return Arg(x.type)
        if isinstance(x, Constant):
            if x.type is None:
                named = x.value
                return (
                    Arg(None, None, False, named)
                    if callable(named) and not isinstance(named, type)
                    else Arg(None, named)
                )
            return Arg(x.type, x.value, x.literal or x.type is STR)
        if isinstance(x, tuple):
            if all(isinstance(p, Constant) for p in x):
                return Arg(None, tuple(p.value for p in x))
            return Arg(operand_type(x))
        self.fail(node, "this call returns nothing", "give the function a return statement")

    def resolve(self, name: str, args: list[Arg], kwargs: dict[str, Arg], node: ast.AST) -> Match:
        """The builtin for these arguments, its errors placed at ``node``."""
        try:
            return registry.resolve(name, args, kwargs, context_of(self.options.gradient))
        except TreadleError as error:
            raise self.placed(error, node) from None

    def builtin_call(
        self, name: str, args: list[Operand], kwargs: dict[str, Operand], node: ast.AST, nodes: list[ast.AST]
    ) -> Operand | None:
        """Call builtin ``name``; ``nodes`` are the arguments' places."""
        # Where nothing but types decides, it is chosen once.
        if not kwargs and name != "block_dim" and all([type(x) is Value for x in args]):
            key = (name, self.options.gradient, *[x.type for x in args])
            match = MATCHES.get(key)
            if match is None:
                match = MATCHES[key] = self.resolve(name, [Arg(x.type) for x in args], {}, node)
            return self.emit(match, args, node, nodes)
        given = [self.arg(x, n) for x, n in zip([*args, *kwargs.values()], nodes, strict=True)]
        match = self.resolve(name, given[: len(args)], dict(zip(kwargs, given[len(args) :], strict=True)), node)
        return self.emit(match, [*args, *kwargs.values()], node, nodes)

    def emit(self, match: Match, given: list[Operand], node: ast.AST, nodes: list[ast.AST]) -> Operand | None:
        """Append the code of ``match`` for the arguments ``given``."""
        if match.known is not None:
            return Constant(match.known, match.result)  # type: ignore[arg-type]
        values = [None if t is None else self.value(x, n, t) for x, t, n in zip(given, match.types, nodes, strict=True)]
        try:
            made = match.emit(self.here(node), values)
        except TreadleError as error:
            raise self.placed(error, node) from None
        last = self.builder.ops[-1] if self.builder.ops else None
        if last is not None and last.name == "local" and last.results == (made,):
            self.sizes[made] = last.attrs["type"].shape
        return self._updated(match, made, nodes) if match.updates else made

    def _updated(self, match: Match, made: Operand, nodes: list[ast.AST]) -> Operand | None:
        """The result of a call that also gives new values to variables among its arguments."""
        parts = made if isinstance(made, tuple) else (made,)
        count = len(parts) - len(match.updates)
        for place, new in zip(match.updates, parts[count:], strict=True):
            target = nodes[place]
            if root_name(target) in self.env:  # else a temporary value, of which nobody sees the change
                if target not in self.facts.updated:
                    self.fail(target, f"{match.name} changes its argument", "call it by its own name")
                self.altered(target, new)
        return parts[:count] if count > 1 else parts[0] if count else None


class BareName:
    """A builtin reached by its bare name inside the body of another one."""

    __slots__ = ("__name__", "__treadle_builtin__")

    def __init__(self, name: str):
        self.__name__ = self.__treadle_builtin__ = name

    def __call__(self) -> None:
        raise KernelTypeError(f"{self.__name__} can only be called in a kernel")


MATCHES: dict[tuple, Match] = {}  # builtins chosen before, by name and the types of run-time arguments

RULES: dict[type[ast.expr], Callable[[Expressions, ast.expr], Operand | None]] = {
    ast.Constant: Expressions._constant, ast.Name: Expressions.variable, ast.Tuple: Expressions._tuple,
    ast.BinOp: Expressions._binary, ast.UnaryOp: Expressions._unary, ast.Compare: Expressions._compare,
    ast.BoolOp: Expressions._bool, ast.IfExp: Expressions._choice,
}  # fmt: skip
