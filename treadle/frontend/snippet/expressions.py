"""Python expressions for the expressions of a snippet, and what names and pointers in it stand for."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable
from typing import Any, NoReturn

from ...base.span import Span
from . import spellings
from .text import BITS, MAKE, Text, beyond

OPERATORS = {"+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "%": ast.Mod, "&": ast.BitAnd, "|": ast.BitOr,
             "^": ast.BitXor, "<<": ast.LShift, ">>": ast.RShift}  # fmt: skip
_COMPARISONS = {"==": ast.Eq, "!=": ast.NotEq, "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE}
_UNARY = {"-": ast.USub, "+": ast.UAdd, "~": ast.Invert, "!": ast.Not}
_TRANSPARENT = ("data", "c")  # fields by which C++ reaches the elements of arrays, vectors and matrices
_ATOMICS = {"atomicAdd": "atomic_add", "atomicSub": "atomic_sub", "atomicMin": "atomic_min", "atomicMax": "atomic_max",
            "atomicAnd": "atomic_and", "atomicOr": "atomic_or", "atomicXor": "atomic_xor", "atomicExch": "atomic_exch",
            "atomicCAS": "atomic_cas"}  # fmt: skip


def placed(node: Any, line: int, length: int = 1) -> Any:
    """``node``, and all in it that has no place yet, in ``line``."""
    for inner in ast.walk(node):
        if "lineno" in inner._attributes and not hasattr(inner, "lineno"):
            inner.lineno = inner.end_lineno = line
            inner.col_offset, inner.end_col_offset = 0, length
    return node


def name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def call(text: str, *args: ast.expr) -> ast.Call:
    return ast.Call(name(text), list(args), [])


def number(value: int | float) -> ast.expr:
    return ast.Constant(value)


class Expressions:
    """Translation of the expressions of one snippet.

    ``scopes``: what C's variables stand for, innermost last. ``pointers``: of variables that are pointers the array,
    and how far they point into it. ``out``: the statements so far of the block being translated.
    """

    def __init__(self, text: Text, parameters: list[str], file: str):
        self.types, self.references, self.file = text.types, text.references, file
        self.parameters = parameters
        self.scopes: list[dict[str, ast.expr]] = [{p: name(p) for p in parameters}]
        self.pointers: dict[str, tuple[ast.expr, ast.expr | None]] = {}  # array and offset, by the variable in Python
        self.known: dict[str, int] = {}  # values of constants, which may be lengths of arrays
        self.taken = {*parameters, "range"}
        self.steps: list[Callable[[], list[ast.stmt]]] = []  # what ``continue`` does first, of each loop around
        self.out: list[ast.stmt] = []

    # -- places --------------------------------------------------------------------------------------------------------

    def line(self, node: Any) -> int:
        coord = getattr(node, "coord", None)
        return max(1, coord.line - 1) if coord is not None else 1

    def refuse(self, node: Any, what: str, hint: str = "") -> NoReturn:
        beyond(self.file, self.line(node), what, hint)

    def emit(self, s: ast.stmt, node: Any) -> None:
        line = self.line(node)
        self.out.append(placed(s, line, max(1, len(Span(self.file, line).text().rstrip()))))

    # -- names and types -----------------------------------------------------------------------------------------------

    def declare(self, word: str) -> str:
        """A Python variable for the C variable ``word`` of the innermost scope."""
        made = self._fresh(word)
        self.scopes[-1][word] = name(made)
        return made

    def _fresh(self, word: str) -> str:
        made, n = (word + "_" if keyword.iskeyword(word) else word), 1
        while made in self.taken:
            n += 1
            made = f"{word}_{n}"
        self.taken.add(made)
        return made

    def _name(self, node: Any) -> ast.expr:
        for scope in reversed(self.scopes):
            if node.name in scope:
                return scope[node.name]
        if node.name.startswith("adj_") and node.name[4:] in self.parameters:
            return ast.Subscript(name("$adjoint"), name(node.name[4:]), ast.Load())
        return name(node.name)

    def _words(self, node: Any) -> str:
        if type(node).__name__ == "PtrDecl":
            self.refuse(node, "this pointer")
        inner = node.type if type(node).__name__ == "TypeDecl" else node
        words = getattr(inner, "names", None)
        if words is None:
            self.refuse(node, "this type")
        return " ".join(words)

    def _spelled(self, node: Any) -> str:
        """The name of a declared type."""
        words = self._words(node)
        if words not in self.types and words != spellings.AUTO:
            self.refuse(node, f"the type {words}")
        return words

    def _declared_type(self, node: Any) -> Any:
        """A declared type; None for ``auto``."""
        if type(node).__name__ != "TypeDecl":
            return None
        return self.types.get(self._spelled(node))

    def _scalar_name(self, t: Any) -> str:
        return next(word for word, known in self.types.items() if known is t)

    def _value(self, node: Any) -> int | None:
        """The value of an integer expression of literals and constants."""
        try:
            tree = ast.Expression(self.expression(node))
            code = compile(ast.fix_missing_locations(tree), self.file, "eval")
            return int(eval(code, {"__builtins__": {}, **self.known}))
        except (NameError, SyntaxError, TypeError, ValueError):
            return None

    # -- pointers ------------------------------------------------------------------------------------------------------

    def _place(self, node: Any, whole: Any) -> tuple[ast.expr, ast.expr | None]:
        """The array that a pointer leads into, and where: ``&a[i]``, ``a.data + i``, ``a``, ``address(a, i)``;
        of a cast integer, ``(float *)n``, the memory there."""
        kind = type(node).__name__
        if kind == "Cast" or self._calls_bits(node):
            inner = node.expr if kind == "Cast" else node.args.exprs[0]
            if type(inner).__name__ not in ("ID", "StructRef") or getattr(inner, "name", "") in self.pointers:
                return self._place(inner, whole)
            t = self._spelled(node.to_type.type.type) if kind == "Cast" else node.name.name[len(BITS) :]
            return call("$pointed", name(t), self.expression(inner)), None
        if kind == "UnaryOp" and node.op == "&" and type(node.expr).__name__ == "ArrayRef":
            array, first = self._place(node.expr.name, whole)
            at = self.expression(node.expr.subscript)
            return array, at if first is None else ast.BinOp(first, ast.Add(), at)
        if kind == "BinaryOp" and node.op == "+":
            array, first = self._place(node.left, whole)
            at = self.expression(node.right)
            return array, at if first is None else ast.BinOp(first, ast.Add(), at)
        if kind == "ID":
            found = self._name(node)
            if isinstance(found, ast.Name) and found.id in self.pointers:
                return self.pointers[found.id]
            return found, None
        if kind == "StructRef":
            return self.expression(node), None
        if kind == "FuncCall" and getattr(node.name, "name", "") in ("address", "index"):
            array, *at = map(self.expression, node.args.exprs)
            return array, at[0] if len(at) == 1 else ast.Tuple(at, ast.Load())
        self.refuse(whole, "this pointer", "index the array itself, as in a[i]")

    def _steady(self, x: ast.expr, node: Any) -> ast.expr:
        """``x`` with its indices as they are now."""
        if isinstance(x, ast.Subscript):
            items = x.slice.elts if isinstance(x.slice, ast.Tuple) else [x.slice]
            kept = [self._steady_value(i, node) for i in items]
            at = kept[0] if len(kept) == 1 else ast.Tuple(kept, ast.Load())
            return ast.Subscript(self._steady(x.value, node), at, x.ctx)
        if isinstance(x, ast.Attribute):
            return ast.Attribute(self._steady(x.value, node), x.attr, x.ctx)
        return x if isinstance(x, ast.Name) else self._steady_value(x, node)

    def _steady_value(self, x: ast.expr, node: Any) -> ast.expr:
        if isinstance(x, ast.Constant):
            return x
        kept = self._fresh("at")
        self.emit(ast.Assign([ast.Name(kept, ast.Store())], x), node)
        return name(kept)

    # -- expressions ---------------------------------------------------------------------------------------------------

    def expression(self, node: Any) -> ast.expr:
        rule = _EXPRESSIONS.get(type(node).__name__)
        if rule is None:
            self.refuse(node, f"the expression '{type(node).__name__}'")
        made = rule(self, node)
        line = self.line(node)
        return placed(made, line, max(1, len(Span(self.file, line).text().rstrip())))

    def _literal(self, node: Any) -> ast.expr:
        text, kind = node.value, node.type
        if kind == "string":
            return ast.Constant(ast.literal_eval(text))
        if kind == "char":
            return number(ord(ast.literal_eval(text)))
        if "float" in kind or "double" in kind:
            word = "float" if text[-1] in "fF" else "double"
            return call("$number", name(word), number(float(text.rstrip("fFlL"))))
        digits, suffix = text.rstrip("uUlL"), text[len(text.rstrip("uUlL")) :].lower()
        value = int(digits, 8) if len(digits) > 1 and digits[0] == "0" and digits.isdigit() else int(digits, 0)
        unsigned, plain = "u" in suffix, digits[0] != "0" or digits == "0"
        if not suffix and value < 2**31:
            return number(value)
        wide = "l" in suffix or value >= (2**32 if unsigned or not plain else 2**31)
        unsigned |= not plain and value >= (2**63 if wide else 2**31)
        return call("$number", name(f"{'u' if unsigned else ''}int{64 if wide else 32}"), number(value))

    def _variable(self, node: Any) -> ast.expr:
        if node.name in ("true", "false"):
            return ast.Constant(node.name == "true")
        found = self._name(node)
        if isinstance(found, ast.Name) and found.id in self.pointers:
            array, offset = self.pointers[found.id]
            return array if offset is None else self.refuse(node, "a pointer as a value", "index it")
        return found

    def _binary(self, node: Any) -> ast.expr:
        left, right = self.expression(node.left), self.expression(node.right)
        if node.op in _COMPARISONS:
            return ast.Compare(left, [_COMPARISONS[node.op]()], [right])
        if node.op in ("&&", "||"):
            return ast.BoolOp(ast.And() if node.op == "&&" else ast.Or(), [left, right])
        return ast.BinOp(left, OPERATORS[node.op](), right)

    def _unary(self, node: Any) -> ast.expr:
        if node.op in _UNARY:
            return ast.UnaryOp(_UNARY[node.op](), self.expression(node.expr))
        if node.op == "*":
            return self._dereferenced(node.expr, node)
        if node.op == "sizeof":
            named = type(node.expr).__name__ == "Typename"
            t = self._declared_type(node.expr.type) if named else None
            return number(t.size) if t is not None else self.refuse(node, "sizeof of an expression")
        if node.op.strip("p") in ("++", "--"):
            self.refuse(node, f"'{node.op.strip('p')}' inside of an expression", "write it on a line of its own")
        self.refuse(node, "the address of this", "use a[i] itself")

    def _dereferenced(self, node: Any, whole: Any) -> ast.expr:
        """``*p``; in ``*(T*)&x`` the bits of x as a T."""
        if type(node).__name__ == "Cast" and getattr(node.expr, "op", "") == "&":
            if type(node.expr.expr).__name__ != "ArrayRef":
                t = name(self._spelled(node.to_type.type.type))
                return call("$bits", t, self.expression(node.expr.expr))
        word = getattr(getattr(node, "name", None), "name", "")
        if word.startswith(BITS):
            inner = node.args.exprs[0]
            return call("$bits", name(word[len(BITS) :]), self.expression(getattr(inner, "expr", inner)))
        array, at = self._place(node, whole)
        return ast.Subscript(array, at if at is not None else number(0), ast.Load())

    def _ternary(self, node: Any) -> ast.expr:
        return ast.IfExp(self.expression(node.cond), self.expression(node.iftrue), self.expression(node.iffalse))

    def _cast(self, node: Any) -> ast.expr:
        return self._converted(self._spelled(node.to_type.type), node.expr)

    def _converted(self, word: str, node: Any) -> ast.expr:
        """``(T)x``; the address of an array where a 64-bit integer is made of a pointer."""
        if type(node).__name__ == "StructRef" and node.field.name == "data" and self.types[word].name in ("u64", "i64"):
            return call("$make", name(word), ast.Attribute(self.expression(node.name), "ptr", ast.Load()))
        return call("$make", name(word), self.expression(node))

    def _element(self, node: Any) -> ast.expr:
        """``a[i]``, ``a[i][j]``; for a pointer the element so far behind its place."""
        at = self.expression(node.subscript)
        base, kind = node.name, type(node.name).__name__
        found = self._name(base) if kind == "ID" else None
        if kind == "Cast" or self._calls_bits(base) or isinstance(found, ast.Name) and found.id in self.pointers:
            array, offset = self._place(base, node)
            return ast.Subscript(array, at if offset is None else ast.BinOp(offset, ast.Add(), at), ast.Load())
        if kind == "ArrayRef":
            inner = self.expression(base)
            items = inner.slice.elts if isinstance(inner.slice, ast.Tuple) else [inner.slice]
            return ast.Subscript(inner.value, ast.Tuple([*items, at], ast.Load()), ast.Load())
        return ast.Subscript(self.expression(base), at, ast.Load())

    def _calls_bits(self, node: Any) -> bool:
        """Whether ``node`` was a ``reinterpret_cast`` to a reference or a pointer."""
        return type(node).__name__ == "FuncCall" and getattr(node.name, "name", "").startswith(BITS)

    def _member(self, node: Any) -> ast.expr:
        field, base = node.field.name, node.name
        if field == "dims" and type(base).__name__ == "StructRef" and base.field.name == "shape":  # a.shape.dims[k]
            return self.expression(base)
        owner = self.expression(base)
        return owner if field in _TRANSPARENT else ast.Attribute(owner, field, ast.Load())

    def _called(self, node: Any) -> ast.expr:
        word, given = getattr(node.name, "name", None), list(node.args.exprs) if node.args is not None else []
        if word is None:
            field = getattr(node.name, "field", None)
            self.refuse(node, f"the method {field.name}" if field is not None else "this call")
        if word.startswith(MAKE):
            word = word[len(MAKE) :]
            if len(given) == 1:
                return self._converted(word, given[0])
            return call("$make", name(word), *map(self.expression, given))
        if word.startswith(BITS):
            return call("$bits", name(word[len(BITS) :]), *map(self.expression, given))
        if word in _ATOMICS:
            array, at = self._place(given[0], node)
            return call(_ATOMICS[word], array, at if at is not None else number(0),
                        *[call("$element", array, self.expression(x)) for x in given[1:]])  # fmt: skip
        if word in ("load", "address", "index") and given:
            return self._dereferenced(given[0] if word == "load" else node, node)
        if word == "memcpy":
            self.refuse(node, "memcpy inside of an expression")
        return call(word, *map(self.expression, given))


_EXPRESSIONS: dict[str, Callable[[Expressions, Any], ast.expr]] = {
    "Constant": Expressions._literal, "ID": Expressions._variable, "BinaryOp": Expressions._binary,
    "UnaryOp": Expressions._unary, "TernaryOp": Expressions._ternary, "Cast": Expressions._cast,
    "ArrayRef": Expressions._element, "StructRef": Expressions._member, "FuncCall": Expressions._called,
}  # fmt: skip
