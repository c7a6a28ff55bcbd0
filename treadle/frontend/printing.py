"""``print`` and ``wp.printf`` inside kernels."""

from __future__ import annotations

import ast
import re

from ..ir.node import Value
from ..types.core import STR, Indexed, Matrix, Scalar, Struct, Tile, Tuple, Vector, b1, i32, i64, u64
from ..types.spelling import spell
from .arguments import Binding
from .constants import Constant, Operand


class Printing(Binding):
    """Translation of printing: a format as C has it, and the scalars it shows."""

    def _print(self, node: ast.Call) -> None:
        """Python's ``print``: parts separated by blanks, then a new line."""
        args, kwargs, places = self.arguments(node)
        options = {"sep": " ", "end": "\n"}
        for name, x in kwargs.items():
            if name not in options or not isinstance(x, Constant) or not isinstance(x.value, str):
                self.fail(node, f"print cannot take {name!r} in kernels", "sep and end may be constant strings")
            options[name] = x.value
        pieces, values = [], []
        for x, place in zip(args, places, strict=False):
            if isinstance(x, Constant) and isinstance(x.value, str):
                pieces.append(x.value.replace("%", "%%"))
                continue
            parts = self._printed(x, place)
            pieces.append(parts[0])
            values.extend(parts[1])
        text = options["sep"].replace("%", "%%").join(pieces) + options["end"].replace("%", "%%")
        self.here(node).op("print", tuple(values), format=text)

    def _printed(self, x: Operand, node: ast.expr) -> tuple[str, list[Value]]:
        """The format and the scalars that show ``x``."""
        v = self.value(x, node)
        t, b = v.type, self.here(node)
        if t is b1:
            return "%s", [b.one("select", (v, b.const("True", STR), b.const("False", STR)), STR)]
        if isinstance(t, Scalar):
            if t.is_float:
                return "%g", [v]
            wide = i64 if t.is_signed else u64
            narrow = t.bits < 32
            return (f"%{'ll' if t.bits > 32 else ''}{'d' if t.is_signed else 'u'}",
                    [b.one("cast", (v,), i32) if narrow else v if t.bits == 32 or t is wide else v])  # fmt: skip
        if isinstance(t, Tile):
            return self._tile(v, t, node)
        if isinstance(t, Matrix):
            parts = [self._printed(p, node) for p in b.parts(v)]
            rows = [" ".join(f for f, _ in parts[r * t.cols : (r + 1) * t.cols]) for r in range(t.rows)]
            return "\n".join(rows), [p for _, ps in parts for p in ps]
        if isinstance(t, Vector | Tuple):
            parts = [self._printed(p, node) for p in b.parts(v)]
            return " ".join(f for f, _ in parts), [p for _, ps in parts for p in ps]
        if isinstance(t, Struct) and not isinstance(t, Indexed):
            parts = [self._printed(p, node) for p in b.parts(v)]
            fields = ", ".join(f"{name}={f}" for name, (f, _) in zip(t.index, parts, strict=True))
            return f"{spell(t)}({fields})", [p for _, ps in parts for p in ps]
        return spell(t).replace("%", "%%"), []  # arrays: what they are, not what is in them

    def _tile(self, v: Value, t: Tile, node: ast.expr) -> tuple[str, list[Value]]:
        """A tile as NumPy shows arrays, with its shape."""
        parts = [self._printed(p, node) for p in self.here(node).parts(v)]
        cells = ["(" * (t.width > 1) + " ".join(f for f, _ in parts[k : k + t.width]) + ")" * (t.width > 1)
                 for k in range(0, t.n, t.width)]  # fmt: skip
        for depth, n in reversed(list(enumerate(t.shape))):
            between = " " if depth == len(t.shape) - 1 else "\n" * (len(t.shape) - 1 - depth) + " " * (depth + 1)
            cells = ["[" + between.join(cells[k : k + n]) + "]" for k in range(0, len(cells), n)]
        shape = ",".join(map(str, t.shape))
        return f"{cells[0]} = tile(shape=({shape}), storage=register)", [p for _, ps in parts for p in ps]

    def _printf(self, node: ast.Call) -> None:
        """C's ``printf``: the format is a constant."""
        args, kwargs, places = self.arguments(node)
        if kwargs or not args or not isinstance(args[0], Constant) or not isinstance(args[0].value, str):
            self.fail(node, "wp.printf takes a constant format first")
        values = [self.value(x, place) for x, place in zip(args[1:], places[1:], strict=True)]
        for v, place in zip(values, places[1:], strict=True):
            if not isinstance(v.type, Scalar) and v.type is not STR:
                self.fail(place, f"printf shows numbers and strings, not a {spell(v.type)}", "pass its parts")
        wanted = conversions(args[0].value)
        for code in wanted:
            if not code or code not in KNOWN:
                self.fail(
                    node, f"printf knows no conversion %{code}", f"it knows {', '.join(f'%{c}' for c in KNOWN)}, %%"
                )
        if len(wanted) != len(values):
            self.fail(node, f"the format has {len(wanted)} conversions, here are {len(values)} values")
        self.here(node).op("print", tuple(values), format=args[0].value)


_CONVERSION = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?(?:hh?|ll?|[Lzjt])?(.?)", re.DOTALL)
KNOWN = "diouxXcfFeEgGs"


def conversions(text: str) -> list[str]:
    """The letters of the conversions in a format of C, in order: one for each value that it consumes."""
    return [code for code in _CONVERSION.findall(text) if code != "%"]
