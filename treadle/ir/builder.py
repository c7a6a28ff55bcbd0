"""Making ops without ceremony: a builder appends to one block and gives back the results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..base.span import NOWHERE, Span
from ..types.core import Scalar, Type, b1, i32
from ..types.layout import children
from .node import NO_ATTRS, Block, Op, Value


class Builder:
    """Collects the ops of one block. ``span`` is stamped on every op made."""

    __slots__ = ("ops", "span")

    def __init__(self, span: Span = NOWHERE):
        self.ops: list[Op] = []
        self.span = span

    @contextmanager
    def at(self, span: Span) -> Iterator[None]:
        """Ops made inside point at ``span``."""
        before, self.span = self.span, span
        try:
            yield
        finally:
            self.span = before

    def op(self, name: str, args: tuple[Value, ...] = (), types: tuple[Type, ...] = (), regions: tuple[Block, ...] = (),
           **attrs: Any) -> tuple[Value, ...]:
        """Append an op with fresh results of ``types``; give back the results."""
        results = tuple(Value(t) for t in types)
        self.ops.append(Op(name, tuple(args), results, attrs or NO_ATTRS, regions, self.span))
        return results

    def one(self, name: str, args: tuple[Value, ...], type: Type, **attrs: Any) -> Value:
        """Append an op with one result."""
        result = Value(type)
        self.ops.append(Op(name, args, (result,), attrs or NO_ATTRS, (), self.span))
        return result

    def const(self, value: bool | int | float | str, type: Scalar | Type) -> Value:
        """A constant of ``type``."""
        return self.one("const", (), type, value=value)

    def i32(self, value: int) -> Value:
        return self.const(value, i32)

    def true(self) -> Value:
        return self.const(True, b1)

    def extract(self, composite: Value, index: int) -> Value:
        """Part ``index`` of a composite."""
        return self.one("extract", (composite,), children(composite.type)[index], index=index)

    def parts(self, composite: Value) -> tuple[Value, ...]:
        """All direct parts of a composite."""
        return tuple(self.extract(composite, i) for i in range(len(children(composite.type))))

    def block(self, params: tuple[Value, ...] = (), yields: tuple[Value, ...] = ()) -> Block:
        """The collected ops as a block."""
        return Block(params, tuple(self.ops), yields)
