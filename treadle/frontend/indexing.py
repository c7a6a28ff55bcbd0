"""Accesses: elements of arrays, views, slices, components, fields; reading and writing them.

An access such as ``b[i].pos.x`` becomes a *reference* first. In memory it is the address of exactly what is meant,
never of the whole element: a view of that part and its indices. In a local variable it is a path of parts.
"""

from __future__ import annotations

import ast
from enum import Enum
from typing import Any

from ..base.errors import KernelAttributeError, KernelIndexError, KernelTypeError, TreadleError
from ..ir.indexed import extent, extents, located
from ..ir.node import Value
from ..types.core import (
    Bucketed,
    Indexed,
    Matrix,
    Scalar,
    Struct,
    Tile,
    Tuple,
    Type,
    Vector,
    View,
    b1,
    family_of,
    i32,
    matrix,
    quaternion,
    u64,
    vector,
    view,
)
from ..types.layout import children
from ..types.spelling import FAMILIES, spell
from .constants import Constant, Operand, constant_of, describe, parts_of
from .control import operand_type
from .environment import ADJOINT, Broken
from .expressions import RULES
from .references import Given, Local, Memory, Part, Reference, Several, Window
from .slicing import below
from .tiles import Tiling

COMPONENTS = {"x": 0, "y": 1, "z": 2, "w": 3}
SLOT = "Composite slot assignment"  # what is being done, where a value for a part or a component does not fit


class Indexing(Tiling):
    """Translation of subscripts and attributes."""

    def _access(self, node: ast.Subscript | ast.Attribute) -> Operand:
        return self.read(self.reference(node), node)

    def reference(self, node: ast.expr) -> Reference:
        """What ``node`` refers to."""
        if isinstance(node, ast.Name):
            v = self.env.get(node.id)
            if v is None or type(v) is Broken or isinstance(v.operand, Value) and isinstance(v.operand.type, View):
                return Given(self.operand(node))
            return Local(node.id, node)
        if isinstance(node, ast.Attribute):
            return self._attribute(self.reference(node.value), node)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        return Given(self.operand(node))

    # -- types and values of references ------------------------------------------------------------------------------

    def type_of(self, ref: Reference) -> Type | None:
        """The type of what ``ref`` refers to."""
        match ref:
            case Given():
                return operand_type(ref.operand)
            case Local():
                return operand_type(self.variable(ref.node))
            case Memory():
                return ref.view.type.elem if ref.complete else below(ref.view.type, len(ref.indices))
            case Part() | Several() | Window():
                return ref.type
        raise TypeError(ref)

    def read(self, ref: Reference, node: ast.AST) -> Operand:
        """The value ``ref`` has at this moment."""
        match ref:
            case Given():
                return ref.operand
            case Local():
                return self.variable(ref.node)
            case Memory():
                b, t = self.here(node), self.type_of(ref)
                return b.one("load" if ref.complete else "subview", (ref.view, *ref.indices), t)
            case Part():
                parent = self.read(ref.parent, node)
                if isinstance(parent, Constant) and ref.index is not None:
                    return parts_of(parent)[ref.index]
                whole = self.value(parent, node)
                if ref.index is not None:
                    return self.here(node).extract(whole, ref.index)
                return self.here(node).one("pick", (whole, *ref.indices), ref.type)
            case Several():
                values = tuple(self.value(self.read(p, node), node) for p in ref.parts)
                return self.here(node).one("make", values, ref.type)
            case Window():
                return self.read_window(ref, node)
        raise TypeError(ref)

    def write(self, ref: Reference, x: Operand, node: ast.AST) -> None:
        """Store ``x`` where ``ref`` refers to."""
        match ref:
            case Local():
                if ref.name.startswith(ADJOINT):
                    x = self.typed(x, self.type_of(ref), node, f"wp.adjoint[{ref.name[len(ADJOINT):]}]")
                before = self.env.get(ref.name)
                self.bind(ref.name, x, node)
                self.changed(ref.name, before, node)
            case Memory() if ref.complete:
                what = SLOT if isinstance(node, ast.Attribute) else "the element"
                v = self.typed(x, ref.view.type.elem, node, what)
                self.here(node).op("store", (ref.view, *ref.indices, v))
            case Part():
                whole = self.value(self.read(ref.parent, node), node)
                if ref.index is not None:
                    v = self.typed(x, ref.type, node, SLOT)
                    made = self.here(node).one("insert", (whole, v), whole.type, index=ref.index)
                else:
                    v = self.typed(x, ref.type, node, SLOT)
                    made = self.here(node).one("put", (whole, v, *ref.indices), whole.type)
                self.write(ref.parent, made, node)
            case Several():
                if isinstance(operand_type(x), Scalar):
                    values: tuple[Operand, ...] = (x,) * len(ref.parts)
                else:
                    values = self.here(node).parts(self.typed(x, ref.type, node, SLOT))
                for part, value in zip(ref.parts, values, strict=True):
                    self.write(part, value, node)
            case Window():
                self.write_window(ref, x, node)
            case Memory():
                self.fail(
                    node, f"{ref.view.type.ndim} indices are needed to store an element, here are {len(ref.indices)}"
                )
            case Given() if isinstance(operand_type(ref.operand), Indexed):
                self.fail(node, "to store an element of an indexed array each of its dimensions needs an index")
            case _:
                self.fail(node, "only variables, array elements and their parts can be assigned")

    # -- attributes ----------------------------------------------------------------------------------------------------

    def _attribute(self, base: Reference, node: ast.Attribute) -> Reference:
        """The attribute of ``base`` that ``node`` names."""
        name = node.attr
        if isinstance(base, Given) and isinstance(base.operand, Constant) and base.operand.type is None:
            return Given(self._outer_attribute(base.operand.value, node))
        if isinstance(base, Local):
            x = self.variable(base.node)
            if isinstance(x, Constant) and x.type is None:
                return Given(self._outer_attribute(x.value, node))
        t = self.type_of(base)
        if isinstance(t, View | Indexed):
            return Given(self._view_attribute(self.read(base, node), name, node))
        if isinstance(t, Struct):
            if name not in t.index:
                what = f"it has the fields {', '.join(t.index)}" if t.index else "it has no fields"
                missing = f"`{name}` is not an attribute of {ast.unparse(node.value)!r} ({t.key})"
                self.fail(node, f"{what}; {missing}", kind=KernelAttributeError)
            return self.part(base, t.index[name], node)
        if isinstance(t, Tile):
            return Given(self._tile_attribute(t, name, node))
        if isinstance(t, Vector):
            return self._vector_attribute(base, t, name, node)
        if isinstance(t, Matrix) and name in ("dtype", "shape"):
            sizes = (Constant(t.rows, i32), Constant(t.cols, i32))
            return Given(Constant(t.elem, None) if name == "dtype" else sizes)
        x = self.read(base, node)
        if isinstance(x, Constant) and isinstance(x.value, Enum) and name in ("name", "value"):
            return Given(constant_of(getattr(x.value, name)))
        self.no_attribute(node, describe(x))

    def _outer_attribute(self, owner: Any, node: ast.Attribute) -> Operand:
        if isinstance(owner, Type):
            if node.attr == "dtype" and isinstance(owner, Vector | Matrix | View | Indexed):
                return Constant(owner.elem, None)
            self.no_attribute(node, f"the type {spell(owner)}")
        path = dotted(node, self.env)
        found = self.outer.get(path)
        if found is None:
            try:
                found = constant_of(self.outside.attribute(owner, node.attr, path))
            except TreadleError as error:
                raise self.placed(error, node) from None
            if path:
                self.outer[path] = found
        return found

    def _view_attribute(self, v: Value, name: str, node: ast.Attribute) -> Operand:
        t: View | Indexed = v.type
        b = self.here(node)
        if name == "shape":
            return extents(b, v)
        if name == "ndim":
            return Constant(t.ndim, i32)
        if name == "dtype":
            return Constant(t.elem, None)
        if name == "ptr" and isinstance(t, View):
            return b.one("address", (v,), u64)
        if name == "size":
            total, *more = extents(b, v)
            for length in more:
                total = self.binary("mul", total, length, node)
            return total
        names = ["shape", "ndim", "dtype", "size", *(["ptr"] if isinstance(t, View) else [])]
        word = FAMILIES[family_of(t)]
        owner = f"{'an' if word[0] in 'ai' else 'a'} {word} in kernels"
        self.no_attribute(node, owner, f"it has {', '.join(names)}")

    def _vector_attribute(self, base: Reference, t: Vector, name: str, node: ast.Attribute) -> Reference:
        if t.tag == "transform":
            if name in ("p", "q"):
                first, n, kind = (0, 3, vector(3, t.elem)) if name == "p" else (3, 4, quaternion(t.elem))
                return Several([self.part(base, first + k, node) for k in range(n)], kind)
            names = ["p", "q"]
        else:
            k = COMPONENTS.get(name)
            if k is not None and k < t.n:
                return self.part(base, k, node)
            names = list(COMPONENTS)[: t.n]
        if name in ("dtype", "length"):
            return Given(Constant(t.elem, None) if name == "dtype" else Constant(t.n, i32))
        hint = f"it has {', '.join(names)}" if t.n <= 4 or t.tag != "vec" else "use an index"
        self.no_attribute(node, spell(t), hint)

    def part(self, base: Reference, index: int, node: ast.AST) -> Reference:
        """Part number ``index`` of what ``base`` refers to."""
        if isinstance(base, Several):
            return base.parts[index]
        if not isinstance(base, Memory):
            t = self.type_of(base)
            return Part(base, children(t)[index], index)
        t = base.view.type
        part = children(t.elem)[index]
        found = view(part, t.ndim, t.strides, t.planar and not isinstance(part, Scalar), t.space)
        inner = self.here(node).one("field", (base.view,), found, index=index)
        if isinstance(part, View):  # an array in a struct in an array: read the view, then go on with it
            return Given(self.here(node).one("load", (inner, *base.indices), part))
        return Memory(inner, base.indices)

    # -- subscripts ----------------------------------------------------------------------------------------------------

    def _subscript(self, node: ast.Subscript) -> Reference:
        if isinstance(node.value, ast.Attribute):
            owner = self.reference(node.value.value)
            if node.value.attr == "shape" and isinstance(self.type_of(owner), View | Indexed):
                return Given(self._shape_item(self.value(self.read(owner, node), node), node))
            base = self._attribute(owner, node.value)
        else:
            base = self.reference(node.value)
        items = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(base, Given | Local):
            x = base.operand if isinstance(base, Given) else self.variable(base.node)
            if isinstance(x, tuple):
                return Given(self._item(x, items, node))
            if isinstance(x, Constant) and x.type is None:
                if getattr(x.value, "__treadle_adjoint__", False):
                    return self.adjoint(items, node)
                return Given(self._outer_item(x.value, items, node))
        t = self.type_of(base)
        if isinstance(base, Memory) and not base.complete and not any(isinstance(i, ast.Slice) for i in items):
            return self._element(base.view, base.indices, items, node)
        if isinstance(t, View | Indexed):
            v = self.value(self.read(base, node), node)
            if any(isinstance(i, ast.Slice) for i in items):
                if isinstance(t, Bucketed):
                    self.fail(node, f"{FAMILIES[t.family]}s cannot be cut in kernels", "index them element by element")
                return Given(self.slices(v, items, node))
            return self._element(v, (), items, node)
        if isinstance(t, Tile):
            return self._tile_part(base, t, items, node)
        if isinstance(t, Vector):
            return self._component(base, t, items, node)
        if isinstance(t, Matrix):
            return self._matrix_part(base, t, items, node)
        if isinstance(t, Tuple):
            return Given(self._item(self.here(node).parts(self.value(self.read(base, node), node)), items, node))
        self.fail(node, f"{describe(self.read(base, node))} cannot be indexed")

    def _shape_item(self, owner: Value, node: ast.Subscript) -> Operand:
        """``a.shape[k]``: for a known ``k`` without the other lengths."""
        ndim = owner.type.ndim
        k = self.operand(node.slice)
        if not isinstance(k, Constant):
            return self._chosen(self._view_attribute(owner, "shape", node.value), k, node)
        if k.value in range(ndim, 4):  # in the field a shape has four numbers
            return Constant(0, i32)
        return extent(self.here(node), owner, self._static_index(k, ndim, node))

    def _static_index(self, k: Constant, n: int, node: ast.AST) -> int:
        """A known index into ``n`` parts, counted from the end if negative."""
        if not isinstance(k.value, int) or isinstance(k.value, bool):
            self.fail(node, f"an index must be an integer, not {describe(k)}")
        if not -n <= k.value < n:
            self.fail(node, f"index {k.value} is outside of {n} part{'s' * (n != 1)}", kind=KernelIndexError)
        return k.value % n

    def _item(self, x: tuple[Operand, ...], items: list[ast.expr], node: ast.Subscript) -> Operand:
        """An item of several values."""
        if len(items) != 1 or isinstance(items[0], ast.Slice):
            self.fail(node, "several values take one index")
        k = self.operand(items[0])
        return x[self._static_index(k, len(x), node)] if isinstance(k, Constant) else self._chosen(x, k, node)

    def _chosen(self, x: tuple[Operand, ...], k: Operand, node: ast.Subscript) -> Operand:
        """The item of ``x`` at a run-time index; all are of one type."""
        at, t = self.index_type(self.value(k, node), node), operand_type(x[0])
        if not isinstance(t, Scalar) or any(operand_type(p) is not t for p in x):
            self.fail(node, "the index into values of several types must be a constant")
        b, found = self.here(node), self.value(x[0], node)
        for i, p in enumerate(x[1:], 1):
            found = b.one("select", (b.one("eq", (at, b.const(i, at.type)), b1), self.value(p, node), found), t)
        return found

    def _outer_item(self, owner: Any, items: list[ast.expr], node: ast.Subscript) -> Operand:
        """An item of a Python container known while compiling."""
        if isinstance(getattr(owner, "type", None), View | Indexed):
            self.fail(node, "an array from outside cannot be read in kernels: its elements may change",
                      "pass it as an argument")  # fmt: skip
        given = [self.operand(i) if not isinstance(i, ast.Slice) else None for i in items]
        if not all(isinstance(k, Constant) for k in given) or not hasattr(type(owner), "__getitem__"):
            self.fail(node, f"{describe(Constant(owner, None))} cannot be indexed in kernels",
                      "pass an array, or use wp.static(table[key])")  # fmt: skip
        key = given[0].value if len(given) == 1 else tuple(k.value for k in given)
        try:
            return constant_of(owner[key])
        except (LookupError, TypeError) as error:
            kind = KernelIndexError if isinstance(error, IndexError) else KernelTypeError
            self.fail(node, f"{type(error).__name__}: {error}", kind=kind)

    def element(self, v: Value, indices: tuple[Value, ...]) -> Reference:
        """What ``v[indices]`` refers to."""
        view, at = located(self.builder, v, indices)
        return Memory(view, at) if at else Given(view)

    def _element(self, v: Value, before: tuple[Value, ...], items: list[ast.expr], node: ast.Subscript) -> Reference:
        """``v[items]``: an element, or a view of fewer dimensions."""
        t: View | Indexed = v.type
        missing = t.ndim - len(before)
        if isinstance(t, Bucketed) and t.nested:
            row = self.element(v, (self.index(items[0], v, 0),))
            return self._element(row.operand, (), items[1:], node) if len(items) > 1 else row
        if isinstance(t, Indexed) and len(items) < missing:
            return Given(self.slices(v, items, node))
        if len(items) > missing:
            self.fail(
                node,
                f"Incorrect number of indices specified for array indexing: {len(before) + len(items)}, the array has "
                f"{t.ndim} dimension{'s' * (t.ndim > 1)}",
                "write a component by itself, as in a[i][k]" if isinstance(t.elem, Vector | Matrix) else "",
            )
        indices = (*before, *[self.index(i, v, len(before) + k) for k, i in enumerate(items)])
        self.here(node)
        return self.element(v, indices)

    # -- components ----------------------------------------------------------------------------------------------------

    def _component(self, base: Reference, t: Vector, items: list[ast.expr], node: ast.Subscript) -> Reference:
        if len(items) != 1:
            self.fail(node, f"{spell(t)} takes one index, here are {len(items)}")
        if isinstance(items[0], ast.Slice):
            chosen = self._static_range(items[0], t.n)
            return Several([self.part(base, k, node) for k in chosen], vector(len(chosen), t.elem))
        k = self.operand(items[0])
        if isinstance(k, Constant):
            return self.part(base, self._static_index(k, t.n, items[0]), node)
        return self._at_run_time(base, t, (self.index_type(self.value(k, items[0]), items[0]),), node)

    def _at_run_time(self, base: Reference, t: Vector | Matrix, indices: tuple[Value, ...], node: ast.AST) -> Reference:
        """The component of a vector or matrix at indices of the program."""
        if isinstance(base, Several) and base.row is not None:
            owner, whole, r = base.row
            return self._cell(owner, whole, r, indices[0], node)
        if isinstance(base, Memory):
            v = base.view.type
            size = t.elem.size
            inner = (size,) if isinstance(t, Vector) else (t.cols * size, size)
            inner = (None,) * len(inner) if v.planar else inner
            found = view(t.elem, v.ndim + len(inner), (*v.strides, *inner), False, v.space)
            return Memory(self.here(node).one("parts", (base.view,), found), (*base.indices, *indices))
        if not self.builtin:
            for index, n in zip(indices, (t.n,) if isinstance(t, Vector) else (t.rows, t.cols), strict=True):
                self._demand_inside(index, n, t, node)
        return Part(base, t.elem, None, indices)

    def _demand_inside(self, index: Value, n: int, t: Vector | Matrix, node: ast.AST) -> None:
        """In checked programs: the index of a component is one of ``n``."""
        b = self.here(node)
        ok = b.one("lt", (index, b.const(n, index.type)), b1)
        if index.type.is_signed:
            ok = b.one("bitand", (ok, b.one("ge", (index, b.const(0, index.type)), b1)), b1)
        b.op("check", (ok, index), kind="component", message=spell(t), optional=True)

    def _static_range(self, item: ast.Slice, n: int) -> range:
        bounds = [
            self.operand(b) if b is not None else Constant(None, None) for b in (item.lower, item.upper, item.step)
        ]
        if not all(isinstance(b, Constant) for b in bounds):
            self.fail(item, "the bounds of a slice of a vector or matrix must be constants")
        return range(n)[slice(*[b.value for b in bounds])]

    def _matrix_part(self, base: Reference, t: Matrix, items: list[ast.expr], node: ast.Subscript) -> Reference:
        """``m[i]`` a row, ``m[i, j]`` a component, ``m[a:b, j]`` a part of a column, ``m[a:b, c:d]`` a block."""
        if len(items) > 2:
            self.fail(node, f"{spell(t)} takes two indices, here are {len(items)}")
        picks: list[range | Value] = []
        for item, n in zip(items, (t.rows, t.cols), strict=False):
            if isinstance(item, ast.Slice):
                picks.append(self._static_range(item, n))
                continue
            k = self.operand(item)
            if isinstance(k, Constant):
                at = self._static_index(k, n, item)
                picks.append(range(at, at + 1))
            else:
                picks.append(self.index_type(self.value(k, item), item))
        if len(picks) == 1:
            picks.append(range(t.cols))
            kept = [isinstance(items[0], ast.Slice), True]
        else:
            kept = [isinstance(i, ast.Slice) for i in items]
        refs = [self._cell(base, t, r, c, node) for r in _each(picks[0]) for c in _each(picks[1])]
        if not any(kept):
            return refs[0]
        if kept == [False, True] and len(items) == 1:
            return Several(refs, vector(t.cols, t.elem), (base, t, next(iter(_each(picks[0])))))
        shape = [len(p) for p, keep in zip(picks, kept, strict=True) if keep]
        if len(shape) == 1:
            return Several(refs, vector(shape[0], t.elem))
        rows, cols = shape if all(shape) else (0, 0)  # what has no components has no shape either, as in Warp
        return Several(refs, matrix(rows, cols, t.elem))

    def _cell(self, base: Reference, t: Matrix, r: int | Value, c: int | Value, node: ast.AST) -> Reference:
        if isinstance(r, int) and isinstance(c, int):
            return self.part(base, r * t.cols + c, node)
        b = self.here(node)
        at = tuple(b.i32(k) if isinstance(k, int) else k for k in (r, c))
        return self._at_run_time(base, t, at, node)


def _each(pick: range | Value) -> list[int] | list[Value]:
    return [pick] if isinstance(pick, Value) else list(pick)


def dotted(node: ast.expr, env: dict) -> str:
    """``a.b.c`` as text if it starts at an outside name; empty if not."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id in env:
        return ""
    return ".".join([node.id, *reversed(names)])


RULES[ast.Attribute] = Indexing._access
RULES[ast.Subscript] = Indexing._access
