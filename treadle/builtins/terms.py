"""Formulas over IR values, for builtins whose number of operations depends on a type: ``Term`` has Python's operators.

``total(x * y for x, y in zip(a, b))`` appends the operations of a dot product.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.builder import Builder
from ..ir.node import Value
from ..types.core import Type


class Term:
    """A scalar value together with the builder that its operations are appended to."""

    __slots__ = ("b", "value")

    def __init__(self, b: Builder, value: Value):
        self.b, self.value = b, value

    def _with(self, name: str, *others: Term) -> Term:
        return Term(self.b, self.b.one(name, (self.value, *(o.value for o in others)), self.value.type))

    def __add__(self, other: Term) -> Term:
        return self._with("add", other)

    def __sub__(self, other: Term) -> Term:
        return self._with("sub", other)

    def __mul__(self, other: Term) -> Term:
        return self._with("mul", other)

    def __neg__(self) -> Term:
        return self._with("neg")


def terms(b: Builder, composite: Value) -> list[Term]:
    """The components of a vector or matrix."""
    return [Term(b, part) for part in b.parts(composite)]


def rows(b: Builder, m: Value) -> list[list[Term]]:
    """The components of a matrix, row by row."""
    flat, cols = terms(b, m), m.type.cols
    return [flat[i : i + cols] for i in range(0, len(flat), cols)]


def columns(b: Builder, m: Value) -> list[list[Term]]:
    """The components of a matrix, column by column."""
    return [list(column) for column in zip(*rows(b, m), strict=True)]


def total(items: Iterable[Term]) -> Term:
    """The sum of one or more terms, from left to right."""
    items = iter(items)
    out = next(items)
    for item in items:
        out = out + item
    return out


def dot(a: Iterable[Term], b: Iterable[Term]) -> Term:
    """The sum of products."""
    return total(x * y for x, y in zip(a, b, strict=True))


def make(b: Builder, t: Type, items: Iterable[Term]) -> Value:
    """A composite of type ``t`` from its components."""
    return b.one("make", tuple(item.value for item in items), t)
