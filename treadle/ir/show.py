"""A program as text: the debug view, the golden form, what ``ir.read`` reads back, and the cache key.

Equal programs give equal text: values are numbered in order, names of values and places in the source are left out,
attributes are sorted, floats are exact. The grammar, line by line::

    struct "key" (name: type, …)                        each user struct that a type mentions, inner ones first
    function @0 "name" (%0: type, …) fact=… {           functions called, each after those it calls; last the program,
                                                        which says ``kernel`` if it is one
      signature (type, …)                               only where it differs from the parameters' types
      names ("x", …)                                    only if there are some
      %1: type, %2: type = op %0, %0 attr=value …       results, arguments, attributes in alphabetical order
      op %1 {%3: type, …                                a region and its parameters
        …
        yield %3
      } {                                               the next region
        yield
      }
      yield %1, %2
    }

Attribute values: ``true false none``, ints, floats in C's hex (also ``inf -inf nan``), Python string literals,
``!type``, ``@n`` for function n, ``(a, b)`` for tuples, ``{"k": v}`` for dicts.
"""

from __future__ import annotations

from typing import Any

from ..types.core import Array, Bucket, Fixed, Indexed, Struct, Tuple, Type, View
from .node import Block, Func, Value
from .walk import callees

__all__ = ["show"]


def show(func: Func) -> str:
    """The text of ``func`` and of all functions it calls."""
    types = _Types()
    functions: dict[Func, str] = {}
    lines: list[str] = []
    for f in (*callees(func), func):
        _function(f, types, functions, lines)
        functions[f] = f"@{len(functions)}"
    return "\n".join([*types.declarations, *lines, ""])


class _Types(dict[Type, str]):
    """The text of each type; the first look at a struct also declares it."""

    def __init__(self):
        self.declarations: list[str] = []

    def __missing__(self, t: Type) -> str:
        inner: tuple[Type | None, ...] = ()
        match t:
            case Indexed() | Bucket():
                inner = tuple([ft for _, ft in t.fields])
            case Struct():
                fields = ", ".join([f"{name}: {self[ft]}" for name, ft in t.fields])
                self.declarations.append(f"struct {t.key!r} ({fields})")
            case View() | Array() | Fixed():
                inner = (t.elem,)
            case Tuple():
                inner = t.items
        for part in inner:
            if part is not None:
                self[part]
        self[t] = t.name
        return t.name


class _Numbers(dict[Value, str]):
    """The numbers given to values; one that nobody defined shows as ``%?``, so that broken programs print too."""

    def __missing__(self, v: Value) -> str:
        return "%?"


def _function(f: Func, types: _Types, functions: dict[Func, str], lines: list[str]) -> None:
    numbers = _Numbers()
    head = f'{f.kind} @{len(functions)} "{f.name}" ({_define(f.params, numbers, types)})'
    for key in sorted(f.facts):
        head += f" {key}={_attribute(f.facts[key], types, functions)}"
    lines.append(head + " {")
    if f.signature and f.signature != tuple([p.type for p in f.params]):
        lines.append(f"  signature ({', '.join([types[t] for t in f.signature])})")
    if f.names:
        lines.append(f"  names ({', '.join(map(repr, f.names))})")
    _block(f.body, "  ", numbers, types, functions, lines)
    lines.append("}")


def _define(values: tuple[Value, ...], numbers: _Numbers, types: _Types) -> str:
    if len(values) == 1:
        (v,) = values
        numbers[v] = n = f"%{len(numbers)}"
        return f"{n}: {types[v.type]}"
    return ", ".join([_define((v,), numbers, types) for v in values])


def _block(block: Block, indent: str, numbers: _Numbers, types: _Types, functions: dict[Func, str],
           lines: list[str]) -> None:
    for op in block.ops:
        results, args, attrs = op.results, op.args, op.attrs
        line = f"{indent}{_define(results, numbers, types)} = {op.name}" if results else indent + op.name
        if len(args) == 2:  # the most frequent case, spelt out: this function is on the way of every compile
            line = f"{line} {numbers[args[0]]}, {numbers[args[1]]}"
        elif args:
            line = f"{line} {', '.join([numbers[a] for a in args])}"
        if attrs:
            for key in sorted(attrs) if len(attrs) > 1 else attrs:
                line += f" {key}={_attribute(attrs[key], types, functions)}"
        if not op.regions:
            lines.append(line)
            continue
        for region in op.regions:
            lines.append(f"{line} {{{_define(region.params, numbers, types)}")
            _block(region, indent + "  ", numbers, types, functions, lines)
            line = indent + "}"
        lines.append(line)
    lines.append(f"{indent}yield {', '.join([numbers[y] for y in block.yields])}" if block.yields else f"{indent}yield")


_WORDS = {True: "true", False: "false", None: "none"}


def _attribute(value: Any, types: _Types, functions: dict[Func, str]) -> str:
    """The text of one attribute value; the exact class decides, so that 1, 1.0 and True differ."""
    kind = type(value)
    if kind is int or kind is str:
        return repr(value)
    if kind is float:
        return value.hex()
    if kind is bool or value is None:
        return _WORDS[value]
    if kind is Func:
        return functions[value]
    if isinstance(value, Type):
        return "!" + types[value]
    if kind is tuple or kind is list:
        return f"({', '.join([_attribute(v, types, functions) for v in value])})"
    if kind is dict:
        return f"{{{', '.join([f'{k!r}: {_attribute(value[k], types, functions)}' for k in sorted(value)])}}}"
    raise TypeError(f"attribute {value!r} of type {kind.__name__} has no text")
