"""Accesses to tiles: elements, parts, and the elements that a list of indices names; what tiles say of themselves."""

from __future__ import annotations

import ast
from math import prod

from ..builtins.tile_parts import gathered, placed, taken
from ..ir.node import Value
from ..types.core import Matrix, Scalar, Tile, Vector, b1, i32, tile
from ..types.spelling import spell
from .aliases import Aliasing
from .constants import Constant, Operand, describe
from .context import context_of
from .references import Given, Part, Reference, Several, Window
from .slicing import Slicing

Place = int | Value | slice


class Tiling(Slicing, Aliasing):
    """Translation of what is specific to tiles."""

    def _tile_attribute(self, t: Tile, name: str, node: ast.Attribute) -> Operand:
        """A fact of a tile; all are known."""
        if name == "shape":
            return tuple(Constant(n, i32, True) for n in t.shape)
        if name == "dtype":
            return Constant(t.item, None)
        if name not in ("ndim", "size"):
            self.no_attribute(node, spell(t), "it has shape, ndim, dtype, size")
        return Constant(len(t.shape) if name == "ndim" else prod(t.shape), i32, True)

    def _tile_part(self, base: Reference, t: Tile, items: list[ast.expr], node: ast.Subscript) -> Reference:
        """``t[i, j]`` an element, ``t[i, j, c]`` a component of one, ``t[i]`` and ``t[a:b]`` a tile of what is there.

        In bodies of builtins one index counts all elements, row by row.
        """
        shape = (prod(t.shape),) if self.builtin else t.shape
        if any(isinstance(i, ast.Slice) for i in items) or len(items) < len(shape):
            return self._window(base, t, items, node)
        given = [self._place(i, n, t, node) for i, n in zip(items, shape, strict=False)]
        if any(isinstance(k, Value) and isinstance(k.type, Tile) for k in given):
            return self._window(base, t, items, node)
        flat: int | Value = 0
        for k, n in zip(given, shape, strict=True):
            flat = self._sum(self._times(flat, n, node), k, node)
        if isinstance(t.item, Scalar):
            element: Reference = self._scalar_of(base, t, flat, node)
        else:
            first = self._times(flat, t.width, node)
            cells = [self._scalar_of(base, t, self._sum(first, k, node), node) for k in range(t.width)]
            element = Several(cells, t.item)
        rest = items[len(shape) :]
        if not rest:
            return element
        if isinstance(t.item, Matrix):
            return self._matrix_part(element, t.item, rest, node)
        if isinstance(t.item, Vector):
            return self._component(element, t.item, rest, node)
        self.fail(node, f"{spell(t)} takes {len(shape)} indices, here are {len(items)}")

    def _place(self, item: ast.expr, n: int, t: Tile, node: ast.Subscript) -> int | Value:
        """An index of a tile, below ``n``; or a tile of indices."""
        k = self.operand(item)
        if isinstance(k, Value) and isinstance(k.type, Tile):
            return k
        if isinstance(k, Constant):
            return self._static_index(k, n, item)
        index = self.index_type(self.value(k, item), item)
        if not self.builtin:
            self._demand_inside(index, n, t, node)
        return index if index.type is i32 else self.here(node).one("cast", (index,), i32)

    def _scalar_of(self, base: Reference, t: Tile, flat: int | Value, node: ast.AST) -> Reference:
        """Scalar number ``flat`` of a tile."""
        return self.part(base, flat, node) if isinstance(flat, int) else Part(base, t.elem, None, (flat,))

    def _sum(self, a: int | Value, k: int | Value, node: ast.AST) -> int | Value:
        if isinstance(a, int) and isinstance(k, int):
            return a + k
        if a == 0 or k == 0:
            return k if a == 0 else a
        b = self.here(node)
        return b.one("add", tuple(b.i32(x) if isinstance(x, int) else x for x in (a, k)), i32)

    def _times(self, a: int | Value, n: int, node: ast.AST) -> int | Value:
        if isinstance(a, int) or n == 1:
            return a * n if isinstance(a, int) else a
        b = self.here(node)
        return b.one("mul", (a, b.i32(n)), i32)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _window(self, base: Reference, t: Tile, items: list[ast.expr], node: ast.Subscript) -> Reference:
        """The part of a tile that ranges, indices and perhaps a list of indices leave."""
        if len(items) > len(t.shape):
            self.fail(node, f"{spell(t)} takes at most {len(t.shape)} indices, here are {len(items)}")
        given = [slice(None) if isinstance(i, ast.Slice) and i.lower is i.upper is i.step is None else
                 self._range_of(i, n) if isinstance(i, ast.Slice) else self._any_place(i, n)
                 for i, n in zip(items, t.shape, strict=False)]  # fmt: skip
        lists = [axis for axis, k in enumerate(given) if isinstance(k, Value) and isinstance(k.type, Tile)]
        if lists:
            return Given(self._listed(base, t, given, lists, node))
        first: int | Value = 0
        shape, steps = [], []
        for axis, n in enumerate(t.shape):
            step = prod(t.shape[axis + 1 :])
            k = given[axis] if axis < len(given) else slice(None)
            if isinstance(k, slice):
                chosen = range(n)[k]
                if not chosen:
                    self.fail(node, f"axis {axis} of this part of {spell(t)} is empty")
                shape.append(len(chosen))
                steps.append(step * chosen.step)
                k = chosen.start
            first = self._sum(first, self._times(k, step, node), node)
        at = self.here(node).i32(first) if isinstance(first, int) else first
        return Window(base, tile(t.item, tuple(shape)), tuple(steps), at)

    def _range_of(self, item: ast.Slice, n: int) -> slice:
        bounds = []
        for part in (item.lower, item.upper, item.step):
            x = Constant(None, None) if part is None else self.operand(part)
            if not isinstance(x, Constant) or not (x.value is None or isinstance(x.value, int)):
                self.fail(item, "the bounds of a slice of a tile must be constants", "give wp.tile_view an offset")
            bounds.append(x.value)
        if bounds[2] == 0:
            self.fail(item, "the step of a slice cannot be 0")
        return slice(*bounds)

    def _any_place(self, item: ast.expr, n: int) -> int | Value:
        """An index that may be negative at run time, or a tile of such."""
        k = self.operand(item)
        if isinstance(k, Constant):
            return self._static_index(k, n, item)
        v = self.value(k, item)
        if isinstance(v.type, Tile):
            return v
        index, b = self.index_type(v, item), self.here(item)
        index = index if index.type is i32 else b.one("cast", (index,), i32)
        behind = b.one("add", (index, b.i32(n)), i32)
        return b.one("select", (b.one("lt", (index, b.i32(0)), b1), behind, index), i32)

    def _listed(self, base: Reference, t: Tile, given: list[Place], lists: list[int], node: ast.Subscript) -> Value:
        """``t[listed, :]``: what a list of indices names along one axis."""
        (axis, *more), listed = lists, given[lists[0]]
        if more or any(k != slice(None) for i, k in enumerate(given) if i != axis):
            self.fail(node, "beside a tile of indices there can be only full slices, ':'")
        if len(listed.type.shape) != 1 or not (isinstance(listed.type.item, Scalar) and listed.type.item.is_int):
            self.fail(node, f"a list of indices must be a tile of integers of one dimension, not {spell(listed.type)}")
        source = self.value(self.read(base, node), node)
        return gathered(self.here(node), context_of(self.options.gradient), source, listed, axis)

    def read_window(self, ref: Window, node: ast.AST) -> Value:
        """A copy of a part of a tile."""
        return self.part_of(ref, self.value(self.read(ref.parent, node), node), node)

    def write_window(self, ref: Window, x: Operand, node: ast.AST) -> None:
        """Change a part of a tile to the tile ``x``."""
        v = self.value(x, node)
        if v.type is not ref.type:
            self.fail(node, f"the part is {spell(ref.type)}, it cannot become {describe(x)}")
        self.write(ref.parent, self.with_part(ref, self.value(self.read(ref.parent, node), node), v, node), node)

    def part_of(self, ref: Window, whole: Value, node: ast.AST) -> Value:
        """The part ``ref`` of ``whole``."""
        return taken(self.here(node), context_of(self.options.gradient), whole, ref.type, ref.steps, ref.first)

    def with_part(self, ref: Window, whole: Value, part: Value, node: ast.AST) -> Value:
        """``whole`` with its part ``ref`` changed to ``part``."""
        return placed(self.here(node), context_of(self.options.gradient), whole, part, ref.steps, ref.first)
