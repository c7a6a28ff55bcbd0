"""What accesses refer to: something that can be read, and perhaps written."""

from __future__ import annotations

import ast

from ..ir.node import Value
from ..types.core import Matrix, Tile, Type
from .constants import Operand


class Reference:
    """Something that can be read, and perhaps written."""

    __slots__ = ()


class Given(Reference):
    """The value of an expression; it cannot be written."""

    __slots__ = ("operand",)

    def __init__(self, operand: Operand):
        self.operand = operand


class Local(Reference):
    """A variable."""

    __slots__ = ("name", "node")

    def __init__(self, name: str, node: ast.Name):
        self.name, self.node = name, node


class Memory(Reference):
    """An element of a view, or a part of one; a view of fewer dimensions while indices are missing."""

    __slots__ = ("indices", "view")

    def __init__(self, view: Value, indices: tuple[Value, ...]):
        self.view, self.indices = view, indices

    @property
    def complete(self) -> bool:
        return len(self.indices) == self.view.type.ndim


class Part(Reference):
    """Part number ``index`` of another reference, or the component at run-time ``indices``."""

    __slots__ = ("index", "indices", "parent", "type")

    def __init__(self, parent: Reference, type: Type, index: int | None, indices: tuple[Value, ...] = ()):
        self.parent, self.type, self.index, self.indices = parent, type, index, indices


class Several(Reference):
    """References read and written together as one vector or matrix. ``row``: of which matrix it is which row."""

    __slots__ = ("parts", "row", "type")

    def __init__(self, parts: list[Reference], type: Type, row: tuple[Reference, Matrix, int | Value] | None = None):
        self.parts, self.type, self.row = parts, type, row


class Window(Reference):
    """A part of a tile: element (i, j …) of it is element ``first`` + i * steps[0] + … of ``parent``."""

    __slots__ = ("first", "parent", "steps", "type")

    def __init__(self, parent: Reference, type: Tile, steps: tuple[int, ...], first: Value):
        self.parent, self.type, self.steps, self.first = parent, type, steps, first
