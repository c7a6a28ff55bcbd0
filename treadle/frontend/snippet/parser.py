"""Translation of snippets: as of kernels, with C's rules for types.

Operands of different types are converted to the one that C prefers; a value becomes of the type of what it is assigned
to, passed to or returned as.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

from ...base.errors import KernelNameError, KernelTypeError
from ...builtins import registry
from ...ir.indexed import extent
from ...ir.node import Value
from ...types.core import (
    Matrix,
    Scalar,
    Struct,
    Type,
    Vector,
    View,
    b1,
    f32,
    f64,
    i32,
    i64,
    u32,
    u64,
)
from ...types.spelling import spell
from ..calls import OWN
from ..constants import Constant, Operand, describe
from ..context import context_of, exact
from ..control import operand_type
from ..expressions import RULES, BareName
from ..names import near
from ..parse import Parser
from ..references import Reference
from ..source import EMPTY
from . import functions

_MATH = {"fabs": "abs", "fmin": "min", "fmax": "max", "fmod": "mod", "nearbyint": "rint", "__sinf": "sin",
         "__cosf": "cos", "__expf": "exp", "__logf": "log", "__powf": "pow", "popcount": "bit_count",
         "__builtin_popcount": "bit_count", "__builtin_popcountll": "bit_count", "__popc": "bit_count",
         "__popcll": "bit_count"}  # fmt: skip
_OF_FLOATS = frozenset(
    """sin cos tan asin acos atan atan2 sinh cosh tanh exp exp2 expm1 log log2 log10 log1p sqrt rsqrt
    cbrt pow fabs fmin fmax fmod hypot floor ceil trunc round rint nearbyint copysign fma erf erfc""".split()
)
_EXACT = {"__fadd_rn": "add", "__fsub_rn": "sub", "__fmul_rn": "mul", "__fdiv_rn": "div", "__fsqrt_rn": "sqrt",
          "__fmaf_rn": "fma", "__dadd_rn": "add", "__dsub_rn": "sub", "__dmul_rn": "mul", "__ddiv_rn": "div",
          "__dsqrt_rn": "sqrt", "__fma_rn": "fma"}  # fmt: skip
_BITS = {"__float_as_int": i32, "__float_as_uint": u32, "__int_as_float": f32, "__uint_as_float": f32,
         "__double_as_longlong": i64, "__longlong_as_double": f64}  # fmt: skip
_CONSTANTS = {
    "M_PI": (math.pi, f64), "M_E": (math.e, f64), "INFINITY": (math.inf, f32), "NAN": (math.nan, f32),
    "FLT_MAX": (3.4028234663852886e38, f32), "FLT_MIN": (1.1754943508222875e-38, f32),
    "FLT_EPSILON": (2.0**-23, f32), "DBL_MAX": (1.7976931348623157e308, f64), "DBL_MIN": (2.2250738585072014e-308, f64),
    "DBL_EPSILON": (2.0**-52, f64), "INT_MAX": (2**31 - 1, i32), "INT_MIN": (-(2**31), i32),
    "UINT_MAX": (2**32 - 1, u32), "INT32_MAX": (2**31 - 1, i32), "INT32_MIN": (-(2**31), i32),
    "UINT32_MAX": (2**32 - 1, u32), "INT64_MAX": (2**63 - 1, i64), "INT64_MIN": (-(2**63), i64),
    "UINT64_MAX": (2**64 - 1, u64),
}  # fmt: skip
PRINTF = OWN["printf"]
_SHIFTS = ("shl", "shr")


class _Adjoint:
    """What ``adj_x`` is part of."""

    __treadle_adjoint__ = True
    __name__ = "adjoint"


class SnippetParser(Parser):
    """One translation of one snippet."""

    def expression(self, node: ast.expr) -> Operand | None:
        rule = _RULES.get(type(node))
        return rule(self, node) if rule is not None else super().expression(node)

    # -- names ---------------------------------------------------------------------------------------------------------

    def _outside(self, node: ast.Name) -> Operand:
        word = node.id
        if word in _CONSTANTS:
            return Constant(*_CONSTANTS[word])
        if word == "$adjoint":
            return Constant(_Adjoint(), None)
        t = self.source.text_types.get(word)
        if t is not None:
            return Constant(t, None)
        if registry.exists(word):
            return Constant(BareName(word), None)
        close = near(word, [*self.env, *_OF_FLOATS])
        self.fail(node, f"the name {word!r} is not known in a snippet", close or
                  "snippets see their parameters, types and builtins", KernelNameError)  # fmt: skip

    def _subscript(self, node: ast.Subscript) -> Reference:
        """One index into an array of several dimensions counts all elements row by row, as memory has them in C; more
        than there are dimensions go on into the element."""
        base = self.reference(node.value)
        t = self.type_of(base)
        if not isinstance(t, View):
            return super()._subscript(node)
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(items) > t.ndim:
            first, rest = [_tuple(part, node) for part in (items[: t.ndim], items[t.ndim :])]
            element = ast.copy_location(ast.Subscript(node.value, first, ast.Load()), node)
            return super()._subscript(ast.copy_location(ast.Subscript(element, rest, node.ctx), node))
        if len(items) > 1 or t.ndim == 1 or t.space != "global":
            return super()._subscript(node)
        v = self.value(self.read(base, node), node)
        rest = self.value(self.operand(node.slice), node)
        at: list[Value] = []
        for axis in range(t.ndim - 1, 0, -1):
            n = extent(self.here(node), v, axis)
            at.insert(0, self.value(self.binary("mod", rest, n, node), node))
            rest = self.value(self.binary("div", rest, n, node), node)
        return self.element(v, (rest, *at))

    # -- types ---------------------------------------------------------------------------------------------------------

    def converted(self, x: Operand | None, t: Type | None, node: ast.AST) -> Operand:
        """``x`` as C converts it to ``t``, where both are numbers; a number fills a vector."""
        x = self.operand_of(x, node)
        have = operand_type(x)
        if have is t or not isinstance(t, Scalar) or not isinstance(have, Scalar):
            return x
        if isinstance(x, Constant):
            if t.is_int and isinstance(x.value, float) and not abs(x.value) < 2.0**63:
                self.fail(node, f"{x.value} does not fit into {spell(t)}")
            return self._cast(x, t, node)
        b = self.here(node)
        if t is b1:
            return b.one("ne", (x, b.const(0.0 if have.is_float else 0, have)), b1)
        return b.one("cast", (x,), t)

    def common(self, types: list[Type | None]) -> Scalar | None:
        """The type in which C computes with numbers of these types: the widest float, else the widest integer from
        int on, unsigned where the widest are not all signed."""
        scalars = [t for t in types if isinstance(t, Scalar)]
        floats = [t for t in scalars if t.is_float]
        if floats:
            return max(floats, key=lambda t: t.bits)
        bits = max([32, *[t.bits for t in scalars if t is not b1]])
        signed = all(t.kind != "u" for t in scalars if t.bits == bits and t is not b1)
        return {32: i32 if signed else u32, 64: i64 if signed else u64}[bits]

    def binary(self, name: str, left: Operand, right: Operand, node: ast.AST) -> Operand:
        s, t = operand_type(left), operand_type(right)
        if isinstance(s, Scalar) and isinstance(t, Scalar):
            if name in _SHIFTS:  # the amount has no say
                left = self.converted(left, self.common([s]), node)
                right = self.converted(right, operand_type(left), node)
            else:
                both = self.common([s, t])
                left, right = self.converted(left, both, node), self.converted(right, both, node)
        elif isinstance(s, Scalar) and isinstance(t, Vector | Matrix):
            left = self.converted(left, t.elem, node)
        elif isinstance(t, Scalar) and isinstance(s, Vector | Matrix):
            right = self.converted(right, s.elem, node)
        return super().binary(name, left, right, node)

    def _negative(self, node: ast.UnaryOp) -> Operand:
        if isinstance(node.op, ast.Not):
            return self.negation(self.truth(self.operand(node.operand), node.operand), node)
        x = self.operand(node.operand)
        t = operand_type(x)
        if isinstance(t, Scalar) and not t.is_float:
            x = self.converted(x, self.common([t]), node)
        name = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}[type(node.op)]
        if isinstance(x, Constant) and isinstance(x.type, Scalar):
            return self._cast(Constant({"neg": lambda v: -v, "pos": lambda v: v, "invert": lambda v: ~v}[name](x.value),
                                       x.type), x.type, node)  # fmt: skip
        return self.builtin_call(name, [x], {}, node, [node.operand])

    def _chosen_of(self, node: ast.IfExp) -> Operand:
        types = [self._typed_aside(side) for side in (node.body, node.orelse)]
        if all(isinstance(t, Scalar) for t in types) and types[0] is not types[1]:
            to = self.common(types)
            sides = [_Converted(side, to) for side in (node.body, node.orelse)]
            node = ast.copy_location(ast.IfExp(node.test, *sides), node)
        return RULES[ast.IfExp](self, node)

    def _typed_aside(self, node: ast.expr) -> Type | None:
        """The type of ``node``; nothing stays of translating it."""
        found, _ = self.aside(lambda: self.operand(node))
        return operand_type(found)

    def _converted_node(self, node: _Converted) -> Operand:
        return self.converted(self.operand(node.value), node.to, node.value)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _c_call(self, node: ast.Call) -> Operand | None:
        word = node.func.id
        own = _OWN.get(word) or (PRINTF if word == "printf" else None)
        if own is not None:
            return own(self, node)
        if word == "range":
            self.fail(node, "the name 'range' is not known in a snippet", kind=KernelNameError)
        args = [self.operand(a) for a in node.args]
        types = [operand_type(a) for a in args]
        if word in _EXACT:
            return self._exact(_EXACT[word], args, f64 if word.startswith(("__d", "__fma_")) else f32, node)
        if word in _BITS:
            return self._read_bits(_BITS[word], args, node)
        single = word[:-1] in _OF_FLOATS and word[-1] == "f"
        if single or word in _OF_FLOATS:
            wanted = self.common(types)
            to = f32 if single else wanted if wanted.is_float else f64
            if any(isinstance(t, Vector | Matrix) for t in types):
                to = None
            args = [self.converted(a, to, n) if to else a for a, n in zip(args, node.args, strict=True)]
            word = word[:-1] if single else word
        elif len({t for t in types if isinstance(t, Scalar)}) > 1 and not any(isinstance(t, View) for t in types):
            others = [t.elem for t in types if isinstance(t, Vector | Matrix)]
            to = others[0] if others else self.common(types)
            args = [self.converted(a, to, n) for a, n in zip(args, node.args, strict=True)]
        word = _MATH.get(word, word)
        if word in functions.BITS and len(args) == 1:
            body, t = functions.BITS[word]
            return self._library(body, [self.converted(args[0], t, node)], node)
        if word in functions.BODIES:
            return self._library(functions.BODIES[word], args, node)
        if not registry.exists(word):
            self.fail(node, f"the function {word!r} is not known in a snippet", near(word, [*_OF_FLOATS]) or
                      "snippets call builtins; other functions are called from Python", KernelNameError)  # fmt: skip
        return self.builtin_call(word, args, {}, node, list(node.args))

    def _library(self, body: Callable, args: list[Operand], node: ast.Call) -> Operand | None:
        given = [self.value(a, n) for a, n in zip(args, node.args, strict=True)]
        func = context_of(self.options.gradient).instantiate(body, [v.type for v in given])
        results = self.here(node).op("call", tuple(given), tuple(y.type for y in func.body.yields), func=func)
        return results[0] if results else None

    def _exact(self, name: str, args: list[Operand], t: Scalar, node: ast.Call) -> Operand:
        """An operation whose result is rounded: no later phase fuses the product with a sum."""
        given = [self.value(self.converted(a, t, node), node) for a in args]
        made = self.builtin_call(name, given, {}, node, list(node.args))
        if name == "mul":
            self.builder.ops[-1] = exact(self.builder.ops[-1])
        return made

    def _read_bits(self, t: Type, args: list[Operand], node: ast.Call) -> Operand | None:
        return self.builtin_call("cast", [args[0], Constant(t, None)], {}, node, [node.args[0]] * 2)

    def _type_named(self, node: ast.expr) -> Type:
        return self.source.text_types[node.id]

    def _make(self, node: ast.Call) -> Operand:
        t = self._type_named(node.args[0])
        args = [self.operand(a) for a in node.args[1:]]
        if isinstance(t, Scalar):
            if not args:
                return Constant(False if t is b1 else 0.0 if t.is_float else 0, t)
            have = operand_type(args[0])
            if len(args) > 1 or not isinstance(have, Scalar):
                self.fail(node, f"{spell(t)} cannot be made of {', '.join(map(describe, args))}")
            return self.converted(args[0], t, node)
        if len(args) == 1 and operand_type(args[0]) is t:
            return args[0]
        elem = getattr(t, "elem", None)
        args = [self.converted(a, elem, n) for a, n in zip(args, node.args[1:], strict=True)]
        given = [self.arg(a, n) for a, n in zip(args, node.args[1:], strict=True)]
        try:
            match = registry.constructor(t, given, {}, context_of(self.options.gradient))
        except KernelTypeError as error:
            raise self.placed(error, node) from None
        return self.emit(match, args, node, list(node.args[1:]))

    def _fit(self, node: ast.Call) -> Operand:
        """The value of the second argument in the type of the place that the first names."""
        return self.converted(self.operand(node.args[1]), self.type_of(self.reference(node.args[0])), node.args[1])

    def _element_fit(self, node: ast.Call) -> Operand:
        array = operand_type(self.operand(node.args[0]))
        return self.converted(self.operand(node.args[1]), getattr(array, "elem", None), node.args[1])

    def _result_of(self, node: ast.Call) -> Operand:
        declared = self.declared
        if isinstance(declared, Struct):
            self.fail(node, f"unsupported return type {spell(declared)}", "return a number, a vector or an array")
        x = self.operand(node.args[0])
        return self.converted(x, declared if isinstance(declared, Scalar) else None, node)

    def _results_of(self, node: ast.Call) -> Operand:
        """``return {x, y, z};``"""
        if not isinstance(self.declared, Vector | Matrix):
            shown = "nothing" if self.declared in (None, EMPTY) else spell(self.declared)
            self.fail(node, f"unsupported return type {shown} for a list of values")
        args = [self.converted(self.operand(a), self.declared.elem, a) for a in node.args]
        given = [self.arg(a, n) for a, n in zip(args, node.args, strict=True)]
        match = registry.constructor(self.declared, given, {}, context_of(self.options.gradient))
        return self.emit(match, args, node, list(node.args))

    def _array_of(self, node: ast.Call) -> Operand | None:
        shape, t = node.args[0].value, self._type_named(node.args[1])
        named = {"shape": Constant(shape if len(shape) > 1 else shape[0], None if len(shape) > 1 else i32),
                 "dtype": Constant(t, None)}  # fmt: skip
        return self.builtin_call("zeros", [], named, node, [node, node])

    def _number_of(self, node: ast.Call) -> Operand:
        t = self._type_named(node.args[0])
        return self._cast(Constant(node.args[1].value, t), t, node)

    def _bits_of(self, node: ast.Call) -> Operand | None:
        return self._read_bits(self._type_named(node.args[0]), [self.operand(node.args[1])], node)

    def _pointed(self, node: ast.Call) -> Operand | None:
        """What a pointer to the type leads to: an array itself, or memory at an address that is a number."""
        x = self.operand(node.args[1])
        if operand_type(x) not in (u64, i64):
            return x
        named = {"ptr": self.converted(x, u64, node), "shape": Constant(2**30, i32),
                 "dtype": Constant(self._type_named(node.args[0]), None)}  # fmt: skip
        return self.builtin_call("array", [], named, node, [node] * 3)

    def _copied(self, node: ast.Call) -> Operand | None:
        t = self.type_of(self.reference(node.args[0]))
        return self._read_bits(t, [self.operand(node.args[1])], node)


class _Converted(ast.expr):
    """``value`` in the type ``to``."""

    _fields = ("value",)

    def __init__(self, value: ast.expr, to: Type):
        super().__init__(value)
        self.to = to
        ast.copy_location(self, value)


def _tuple(items: list[ast.expr], node: ast.AST) -> ast.expr:
    return items[0] if len(items) == 1 else ast.copy_location(ast.Tuple(items, ast.Load()), node)


_OWN: dict[str, Callable[[SnippetParser, ast.Call], Operand | None]] = {
    "$make": SnippetParser._make, "$fit": SnippetParser._fit, "$element": SnippetParser._element_fit,
    "$result": SnippetParser._result_of, "$results": SnippetParser._results_of, "$array": SnippetParser._array_of,
    "$number": SnippetParser._number_of, "$bits": SnippetParser._bits_of, "$copied": SnippetParser._copied,
    "$pointed": SnippetParser._pointed,
}  # fmt: skip

_RULES: dict[type, Callable[[SnippetParser, Any], Operand | None]] = {
    ast.Call: SnippetParser._c_call, ast.UnaryOp: SnippetParser._negative, ast.IfExp: SnippetParser._chosen_of,
    _Converted: SnippetParser._converted_node,
}  # fmt: skip
