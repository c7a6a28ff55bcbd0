"""Derivatives in the language: ``wp.adjoint[x]`` in gradient functions, and ``wp.grad(f)(x)`` anywhere.

The gradient function of ``f`` takes the arguments of ``f`` and the adjoints of its results. For each argument that has
floats there is a variable that begins at zero, is called ``wp.adjoint[x]``, and is what the gradient function gives
back. The adjoint of an array is memory: ``wp.adjoint[a]`` is the array's gradient itself.
"""

from __future__ import annotations

import ast

from ..base.errors import KernelGradientError, TreadleError
from ..builtins import registry
from ..ir.builder import Builder
from ..ir.node import Func, Value
from ..types.core import Indexed, Scalar, View, b1
from ..types.layout import has_floats
from ..types.spelling import spell
from .arguments import Arguments, called
from .constants import Constant, Operand
from .context import context_of
from .environment import ADJOINT, Variable
from .indexing import Given, Memory, Reference
from .printing import Printing

NO_RULE = "decorate the function with @wp.func_grad(f), where f is the function it belongs to"


class Gradients(Printing):
    """Translation of what concerns derivatives."""

    # -- wp.adjoint ----------------------------------------------------------------------------------------------------

    def begin_rule(
        self, arguments: tuple[Value, ...], results: tuple[Value, ...], names: list[str], altered: list[str]
    ) -> list[Value]:
        """Bind the variables for the adjoints of ``arguments``, all zero, and the parameters called ``names``, which
        take the adjoints of ``results``; gives back those of the latter that the rule is called with. The last results
        are what the function left in the arguments ``altered``, whose adjoints begin as theirs."""
        span, taken = self.source.span, []
        self.differentiated = {p.name: p for p in arguments}
        for p in arguments:
            if has_floats(p.type):
                self.env[ADJOINT + p.name] = Variable(zero(self.builder, p), True, span)
        for made, name in zip(results, names, strict=False):
            if has_floats(made.type):
                adjoint = Value(made.type, name)
                taken.append(adjoint)
            elif isinstance(made.type, View | Indexed):
                adjoint = gradient(self.builder, made)
            else:
                adjoint = zero(self.builder, made)
            self.env[name] = Variable(adjoint, True, span)
        for made, name in zip(results[len(names) :], altered, strict=True):
            if has_floats(made.type):
                taken.append(Value(made.type, name))
                self.env[ADJOINT + name] = Variable(taken[-1], True, span)
        return taken

    def end_rule(self) -> tuple[Value, ...]:
        """What the rule gives back: the adjoints of the arguments that have floats."""
        names = [ADJOINT + name for name in self.differentiated]
        return tuple([self.value(self.env[n].operand, self.tree) for n in names if n in self.env])

    def adjoint(self, items: list[ast.expr], node: ast.Subscript) -> Reference:
        """What ``wp.adjoint[x]`` refers to, where ``x`` is an argument or a part of one."""
        if self.differentiated is None:
            self.fail(node, "wp.adjoint is there only in gradient functions", NO_RULE, KernelGradientError)
        place, steps = items[0], 0
        while isinstance(place, ast.Attribute | ast.Subscript):
            place, steps = place.value, steps + 1
        argument = self.differentiated.get(place.id) if isinstance(place, ast.Name) else None
        if len(items) > 1 or argument is None:
            self.fail(node, f"wp.adjoint takes an argument of the function or a part of one, not {_written(items)}",
                      f"the arguments are {', '.join(self.differentiated)}", KernelGradientError)  # fmt: skip
        given = self.reference(items[0])
        if isinstance(argument.type, View | Indexed) and steps or isinstance(given, Memory):
            self.fail(node, f"wp.adjoint takes whole arrays, not {_written(items)}",
                      f"index the adjoint: wp.adjoint[{_array(items[0])}][…]", KernelGradientError)  # fmt: skip
        t = argument.type if not steps else self.type_of(given)
        if isinstance(t, View | Indexed):
            whole = argument if not steps else self.value(self.read(given, node), node)
            return Given(gradient(self.here(node), whole))
        if ADJOINT + argument.name not in self.env:
            what = f"argument {argument.name!r} is {spell(argument.type)}, which has no derivative"
            self.fail(node, what, kind=KernelGradientError)
        return self.reference(_renamed(items[0], ADJOINT + argument.name))

    # -- wp.grad -------------------------------------------------------------------------------------------------------

    def gradient_of(self, maker: object, node: ast.Call) -> Constant:
        """``wp.grad(f)``: ``maker`` is ``wp.grad`` itself."""
        f = self.operand(node.args[0]) if len(node.args) == 1 and not node.keywords else None
        if not isinstance(f, Constant) or f.type is not None:
            self.fail(node, "wp.grad takes one function", kind=KernelGradientError)
        try:
            return Constant(maker(f.value), None)
        except KernelGradientError as error:
            raise self.placed(error, node) from None

    def call_gradient(self, f: object, node: ast.Call) -> Operand:
        """``wp.grad(f)(…)``: the derivative of the sum of the results by each argument; zero by integers."""
        given = self.arguments(node)
        depth = self.options.gradient + 1
        if hasattr(f, "treadle_function"):
            func, values, rules = self.instance(f, given, node, depth)
            func = _caller(func, rules) if rules else func
        else:
            func, values = self._builtin_program(f.__treadle_builtin__, given, node)
        floats = [v for v in values if has_floats(v.type)]
        if not floats or not any(has_floats(y.type) for y in func.body.yields):
            which = "argument" if not floats else "result"
            self.fail(node, f"{called(node)}: there is no {which} that is a float", kind=KernelGradientError)
        b = self.here(node)
        made = iter(b.op("call", values, tuple([v.type for v in floats]), func=func, gradient=depth))
        entries = [v for v in values if not isinstance(v.type, View | Indexed)]
        parts = tuple([next(made) if has_floats(v.type) else zero(b, v) for v in entries])
        return parts if len(parts) > 1 else parts[0]

    def _builtin_program(self, name: str, given: Arguments, node: ast.Call) -> tuple[Func, tuple[Value, ...]]:
        """A function that is the builtin ``name`` for these arguments, and their values."""
        kwargs, places = given.kwargs, given.places
        args = [self._number(x, given, node) for x in given.args]
        shown = [self.arg(x, place) for x, place in zip([*args, *kwargs.values()], places, strict=True)]
        named, context = dict(zip(kwargs, shown[len(args) :], strict=True)), context_of(self.options.gradient + 1)
        try:
            match = registry.resolve(name, shown[: len(args)], named, context)
        except TreadleError as error:
            raise self.placed(error, node) from None
        if match.known is not None or match.updates:
            self.fail(node, f"{name} has no derivative", kind=KernelGradientError)
        values, inner = [], Builder(self.span(node))
        for x, t, place in zip([*args, *kwargs.values()], match.types, places, strict=True):
            v = None if t is None else self.value(x, place, t)
            values.append(registry.fitted(self.here(node), v, t))
        params = [None if v is None else Value(v.type) for v in values]
        made = match.emit(inner, params)
        results = made if isinstance(made, tuple) else () if made is None else (made,)
        kept = tuple([p for p in params if p is not None])
        func = Func(name, "function", kept, inner.block((), results), tuple([p.type for p in kept]))
        return func, tuple([v for v in values if v is not None])

    def _number(self, x: Operand, given: Arguments, node: ast.AST) -> Operand:
        """``x``; a number that is known as a value of the program, since there is a derivative by it."""
        if not isinstance(x, Constant) or not isinstance(x.type, Scalar):
            return x
        types = [v.type for v in given.args if isinstance(v, Value)]
        return self.value(x, node, next((getattr(t, "elem", t) for t in types), None))


def gradient(b: Builder, v: Value) -> Value:
    """The gradient of an array as an array; of an indexed one, that of its data at the same places."""
    if isinstance(v.type, Indexed):
        data, *indices = b.parts(v)
        return b.one("make", (gradient(b, data), *indices), v.type)
    return b.one("grad", (v,), v.type)


def zero(b: Builder, like: Value) -> Value:
    """A value of the type of ``like`` that is zero everywhere. Its arrays are those of ``like``: they have no zero."""
    t = like.type
    if isinstance(t, View):
        return like
    if isinstance(t, Scalar):
        return b.const(False if t is b1 else 0.0 if t.is_float else 0, t)
    return b.one("make", tuple([zero(b, part) for part in b.parts(like)]), t)


def _caller(func: Func, rules: dict[str, Func]) -> Func:
    """A function that only calls ``func``, which has gradient or replay functions of its own."""
    b = Builder(func.span)
    params = tuple([Value(p.type, p.name) for p in func.params])
    results = b.op("call", params, tuple([y.type for y in func.body.yields]), func=func, **rules)
    return Func(func.name, "function", params, b.block((), results), func.signature, func.names, {}, func.span)


def _renamed(node: ast.expr, name: str) -> ast.expr:
    """``node``, an access, with another variable at its left end."""
    if isinstance(node, ast.Name):
        return ast.copy_location(ast.Name(name, node.ctx), node)
    inner = _renamed(node.value, name)
    if isinstance(node, ast.Attribute):
        return ast.copy_location(ast.Attribute(inner, node.attr, node.ctx), node)
    return ast.copy_location(ast.Subscript(inner, node.slice, node.ctx), node)


def _written(items: list[ast.expr]) -> str:
    return ", ".join(ast.unparse(i) for i in items)


def _array(node: ast.expr) -> str:
    """The array at the left end of an access, as written."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return ast.unparse(node)
