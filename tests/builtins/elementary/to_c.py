"""Elementary bodies as C: a small translator for tests, so that a C compiler can run them over millions of points.

It covers the subset that bodies are written in (assignments, ``if``, ``for range``, ``return``, tuples, calls among
bodies and of the names in ``dsl``), infers the types of locals from what is assigned to them, and refuses what would
not mean the same everywhere:

* operands of different types, except that a number in the text takes the type of its partner;
* a sum with a product that is used nowhere else, of which a compiler may make an ``fma`` or not: bodies write ``fma``.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType

import numpy as np

C_TYPES = {
    "float32": "float", "float64": "double", "int32": "int32_t", "int64": "int64_t", "uint32": "uint32_t",
    "uint64": "uint64_t", "bool": "int",
}  # fmt: skip
UNSIGNED = {"int32": "uint32", "int64": "uint64", "uint32": "uint32", "uint64": "uint64"}
FLOATS = ("float32", "float64")
SAME_SIZE = (("float32", "int32", "uint32"), ("float64", "int64", "uint64"))
HEAD = """#include <math.h>
#include <stdint.h>
#include <string.h>
"""
CAST = "static inline {c} bits_{to}_{of}({c_of} x) {{ {c} y; memcpy(&y, &x, sizeof y); return y; }}\n"
for _group in SAME_SIZE:
    for _to in _group:
        for _of in _group:
            HEAD += CAST.format(c=C_TYPES[_to], to=_to, c_of=C_TYPES[_of], of=_of)
MATH = {
    "abs": "fabs", "floor": "floor", "rint": "rint", "trunc": "trunc", "sqrt": "sqrt", "copysign": "copysign",
    "fma": "fma",
}  # fmt: skip
BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


class Refused(Exception):
    """A body uses what the subset does not have."""


@dataclass(frozen=True)
class Expr:
    """C text with a type.

    ``literal``: the number, if it may still take its partner's type; ``product``: it is ``a*b`` and used nowhere else.
    """

    code: str
    type: str
    literal: object = None
    product: bool = False


@dataclass
class Unit:
    """The functions translated so far, in the order C needs them."""

    done: dict[FunctionType, Function] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)

    def add(self, fn: FunctionType) -> Function:
        if fn not in self.done:
            translated = Function(self, fn)
            self.text.append(translated.translate())
            self.done[fn] = translated
        return self.done[fn]


def to_c(bodies: list[Callable]) -> str:
    """C source of the bodies and all they call; each is a function under its Python name."""
    unit = Unit()
    for body in bodies:
        unit.add(body)
    return HEAD + "\n".join(unit.text)


def constant(value: object, type_: str) -> str:
    if type_ in FLOATS:
        value = float(value)
        if value != value:
            return "((float)NAN)" if type_ == "float32" else "((double)NAN)"
        if value in (float("inf"), -float("inf")):
            return f"({'-' if value < 0 else ''}({C_TYPES[type_]})INFINITY)"
        return f"({value.hex()}{'f' if type_ == 'float32' else ''})"
    suffix = "u" if type_.startswith("u") else ""
    return f"(({C_TYPES[type_]}){int(value)}{suffix}{'ll' if type_.endswith('64') else ''})"


class Function:
    """One function: its signature, its locals, and the C text of its body."""

    def __init__(self, unit: Unit, fn: FunctionType):
        self.unit, self.fn = unit, fn
        source = textwrap.dedent(inspect.getsource(fn))
        self.tree = ast.parse(source).body[0]
        self.module = fn.__module__.rsplit(".", 1)[-1]
        self.name = f"{self.module}_{fn.__name__}"
        self.params = {a.arg: self.type_name(a.annotation) for a in self.tree.args.args}
        self.locals: dict[str, str] = {}
        self.products: set[str] = set()
        self.returns = self.return_types(self.tree.returns)
        self.product_results: set[int] = set()
        names = [n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        self.uses = {name: names.count(name) for name in names}
        self.temporaries = 0

    def refuse(self, node: ast.AST, why: str) -> Refused:
        return Refused(f"{self.fn.__module__}.{self.fn.__name__}, line {node.lineno}: {why}: {ast.unparse(node)}")

    def type_name(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Name) or node.id not in C_TYPES:
            raise self.refuse(node, "no type of the subset")
        return node.id

    def return_types(self, node: ast.expr) -> tuple[str, ...]:
        if isinstance(node, ast.Subscript):
            return tuple(self.type_name(e) for e in node.slice.elts)
        return (self.type_name(node),)

    @property
    def c_return(self) -> str:
        return C_TYPES[self.returns[0]] if len(self.returns) == 1 else f"struct {self.name}_result"

    def translate(self) -> str:
        body = self.block([s for s in self.tree.body if not _is_docstring(s)], "    ")
        head = ""
        if len(self.returns) > 1:
            fields = " ".join(f"{C_TYPES[t]} f{i};" for i, t in enumerate(self.returns))
            head = f"{self.c_return} {{ {fields} }};\n"
        params = ", ".join(f"{C_TYPES[t]} {n}" for n, t in self.params.items())
        declared = "".join(f"    {C_TYPES[t]} {n};\n" for n, t in self.locals.items())
        return f"{head}static inline {self.c_return} {self.name}({params}) {{\n{declared}{body}}}\n"

    # statements

    def block(self, statements: list[ast.stmt], pad: str) -> str:
        return "".join(self.statement(s, pad) for s in statements)

    def statement(self, s: ast.stmt, pad: str) -> str:
        match s:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                return f"{pad}{self.assign(s, name, self.expr(value))}\n"
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                return self.assign_all(s, [t.id for t in targets], [self.expr(v) for v in values], pad)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Call() as call):
                return self.assign_call(s, [t.id for t in targets], call, pad)
            case ast.If(test=test, body=body, orelse=orelse):
                other = f"{pad}}} else {{\n{self.block(orelse, pad + '    ')}" if orelse else ""
                then = self.block(body, pad + "    ")
                return f"{pad}if ({self.boolean(test)}) {{\n{then}{other}{pad}}}\n"
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=[count]), body=body):
                self.locals[name] = "int32"
                inner = self.block(body, pad + "    ")
                return f"{pad}for ({name} = 0; {name} < {self.expr(count).code}; {name}++) {{\n{inner}{pad}}}\n"
            case ast.Return(value=ast.Tuple(elts=values)):
                results = [self.typed(self.expr(v), t, v) for v, t in zip(values, self.returns, strict=True)]
                self.product_results |= {i for i, result in enumerate(results) if result.product}
                parts = ", ".join(result.code for result in results)
                return f"{pad}return ({self.c_return}){{{parts}}};\n"
            case ast.Return(value=value):
                result = self.typed(self.expr(value), self.returns[0], value)
                self.product_results |= {0} if result.product else set()
                return f"{pad}return {result.code};\n"
        raise self.refuse(s, "no statement of the subset")

    def assign(self, s: ast.stmt, name: str, value: Expr) -> str:
        known = self.params.get(name) or self.locals.setdefault(name, value.type)
        if known != value.type:
            raise self.refuse(s, f"{name} is {known}, not {value.type}")
        (self.products.add if value.product and self.uses.get(name) == 1 else self.products.discard)(name)
        return f"{name} = {value.code};"

    def assign_all(self, s: ast.stmt, names: list[str], values: list[Expr], pad: str) -> str:
        temporaries = []
        for value in values:
            self.temporaries += 1
            temporaries.append(f"t{self.temporaries}_")
        first = "".join(f"{C_TYPES[v.type]} {t} = {v.code}; " for t, v in zip(temporaries, values))
        second = " ".join(
            self.assign(s, n, Expr(t, v.type, None, v.product)) for n, t, v in zip(names, temporaries, values)
        )
        return f"{pad}{{ {first}{second} }}\n"

    def assign_call(self, s: ast.stmt, names: list[str], call: ast.Call, pad: str) -> str:
        callee = self.callee(call)
        value = self.call(call)
        results = [Expr(f"r_.f{i}", t, None, i in callee.product_results) for i, t in enumerate(callee.returns)]
        parts = " ".join(self.assign(s, n, r) for n, r in zip(names, results, strict=True))
        return f"{pad}{{ {callee.c_return} r_ = {value.code}; {parts} }}\n"

    # expressions

    def typed(self, e: Expr, want: str, node: ast.expr) -> Expr:
        if e.type == want:
            return e
        if e.literal is not None and (want in FLOATS or not isinstance(e.literal, float)):
            return Expr(constant(e.literal, want), want)
        raise self.refuse(node, f"{e.type} where {want} is wanted")

    def boolean(self, node: ast.expr) -> str:
        e = self.expr(node)
        if e.type != "bool":
            raise self.refuse(node, "no truth value")
        return e.code

    def expr(self, node: ast.expr) -> Expr:
        match node:
            case ast.Constant(value=bool() as value):
                return Expr(str(int(value)), "bool")
            case ast.Constant(value=int() as value):
                return Expr(constant(value, "int32"), "int32", value)
            case ast.Constant(value=float() as value):
                return Expr(constant(value, "float32"), "float32", value)
            case ast.Name(id=name):
                return self.name_of(node, name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                e = self.expr(operand)
                return Expr(f"(-{e.code})", e.type, None if e.literal is None else -e.literal, e.product)
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                e = self.expr(operand)
                return Expr(f"(~{e.code})", e.type)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Expr(f"(!{self.boolean(operand)})", "bool")
            case ast.BoolOp(op=op, values=values):
                return Expr(
                    f"({(' && ' if isinstance(op, ast.And) else ' || ').join(map(self.boolean, values))})", "bool"
                )
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                a, b = self.pair(node, left, right)
                return Expr(f"({a.code} {COMPARE[type(op)]} {b.code})", "bool")
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(node, left, op, right)
            case ast.Call():
                return self.call(node)
        raise self.refuse(node, "no expression of the subset")

    def name_of(self, node: ast.expr, name: str) -> Expr:
        if name in self.locals or name in self.params:
            return Expr(name, self.locals.get(name) or self.params[name], None, name in self.products)
        value = self.fn.__globals__.get(name)
        if isinstance(value, np.generic):
            return Expr(constant(value, value.dtype.name), value.dtype.name)
        raise self.refuse(node, "neither a local nor a typed constant")

    def pair(self, node: ast.expr, left: ast.expr, right: ast.expr) -> tuple[Expr, Expr]:
        a, b = self.expr(left), self.expr(right)
        if a.type != b.type:
            a, b = (self.typed(a, b.type, node), b) if a.literal is not None else (a, self.typed(b, a.type, node))
        return a, b

    def binary(self, node: ast.expr, left: ast.expr, op: ast.operator, right: ast.expr) -> Expr:
        a, b = self.pair(node, left, right)
        if isinstance(op, (ast.LShift, ast.RShift)):
            kind = C_TYPES[a.type]
            if isinstance(op, ast.RShift):
                return Expr(f"({a.code} >> {b.code})", a.type)
            return Expr(f"(({kind})(({C_TYPES[UNSIGNED[a.type]]}){a.code} << {b.code}))", a.type)
        if type(op) not in BINARY or (isinstance(op, ast.Div) and a.type not in FLOATS):
            raise self.refuse(node, "no operation of the subset")
        symbol = BINARY[type(op)]
        if a.type in FLOATS:
            if isinstance(op, (ast.Add, ast.Sub)) and a.product != b.product:
                raise self.refuse(node, "a product is added: write fma")
            return Expr(f"({a.code} {symbol} {b.code})", a.type, None, isinstance(op, ast.Mult))
        if symbol in "+-*":  # integers wrap
            unsigned = C_TYPES[UNSIGNED[a.type]]
            return Expr(f"(({C_TYPES[a.type]})(({unsigned}){a.code} {symbol} ({unsigned}){b.code}))", a.type)
        return Expr(f"({a.code} {symbol} {b.code})", a.type)

    def callee(self, node: ast.Call) -> Function:
        fn = self.fn.__globals__.get(node.func.id)
        if not isinstance(fn, FunctionType):
            raise self.refuse(node, "no function")
        return self.unit.add(fn)

    def call(self, node: ast.Call) -> Expr:
        name = node.func.id
        if name in C_TYPES:
            return self.cast(node, name)
        if name == "bitcast":
            value, to = self.expr(node.args[0]), self.type_name(node.args[1])
            return Expr(f"bits_{to}_{value.type}({value.code})", to)
        if name == "where":
            condition = self.boolean(node.args[0])
            a, b = self.pair(node, node.args[1], node.args[2])
            return Expr(f"({condition} ? {a.code} : {b.code})", a.type)
        args = [self.expr(a) for a in node.args]
        if name in MATH:
            kind = next((a.type for a in args if a.literal is None), "float32")
            args = [self.typed(a, kind, node) for a in args]
            if kind not in FLOATS:
                raise self.refuse(node, "a float is wanted")
            suffix = "f" if kind == "float32" else ""
            return Expr(f"{MATH[name]}{suffix}({', '.join(a.code for a in args)})", kind)
        callee = self.callee(node)
        args = [self.typed(a, t, node) for a, t in zip(args, callee.params.values(), strict=True)]
        return Expr(
            f"{callee.name}({', '.join(a.code for a in args)})", callee.returns[0], None, 0 in callee.product_results
        )

    def cast(self, node: ast.Call, to: str) -> Expr:
        (argument,) = node.args
        value = self.expr(argument)
        if value.literal is not None:
            return Expr(constant(value.literal, to), to)
        return Expr(f"(({C_TYPES[to]}){value.code})", to)


def _is_docstring(s: ast.stmt) -> bool:
    return isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str)
