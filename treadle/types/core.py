"""The types of the language: small immutable objects, one object per type, compared by identity.

Every constructor below is memoised, so ``vector(3, f32) is vector(3, f32)``. A type knows its size in memory, its
alignment, and its *leaves*: the scalars (and views) it is made of, in memory order.
"""

from __future__ import annotations

from functools import cache
from math import prod

__all__ = [
    "ARITHMETIC", "FLOATS", "INTS", "SCALARS", "STR", "VOID", "Array", "Bucket", "Bucketed", "Fixed", "FunctionType",
    "Indexed", "Matrix", "Scalar", "Struct", "Tile", "TileStack", "Tuple", "Type", "Vector", "View", "any_layout",
    "array", "b1", "bf16", "bucket", "bucketed", "f16", "f32", "f64", "family_of", "fixed", "i16", "i32", "i64", "i8",
    "indexed", "matrix", "quaternion", "tile", "tile_stack", "transformation", "tuple_of", "u16", "u32", "u64", "u8",
    "vector", "view",
]  # fmt: skip


class Type:
    """Base of all types. ``name`` is the text of the type in IR and messages."""

    __slots__ = ("align", "name", "size")
    name: str
    size: int  # bytes in memory
    align: int

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self):
        raise TypeError(f"type {self.name} cannot be pickled; write its name")


class Scalar(Type):
    """A number or truth value. ``kind``: "b" bool, "i" signed, "u" unsigned, "f" float; ``bits``: its width."""

    __slots__ = ("bits", "kind")

    def __init__(self, name: str, kind: str, bits: int):
        self.name, self.kind, self.bits = name, kind, bits
        self.size = self.align = max(bits // 8, 1)

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_int(self) -> bool:
        return self.kind in "iu"

    @property
    def is_signed(self) -> bool:
        return self.kind == "i"


b1 = Scalar("bool", "b", 8)  # one byte in memory, a bit in registers
i8, i16, i32, i64 = (Scalar(f"i{n}", "i", n) for n in (8, 16, 32, 64))
u8, u16, u32, u64 = (Scalar(f"u{n}", "u", n) for n in (8, 16, 32, 64))
f16, f32, f64 = (Scalar(f"f{n}", "f", n) for n in (16, 32, 64))
bf16 = Scalar("bf16", "f", 16)

INTS = (i8, u8, i16, u16, i32, u32, i64, u64)
FLOATS = (f16, bf16, f32, f64)
ARITHMETIC = (*INTS, *FLOATS)
SCALARS = (b1, *ARITHMETIC)


class _Void(Type):
    __slots__ = ()

    def __init__(self):
        self.name, self.size, self.align = "void", 0, 1


class _Str(Type):
    """Text known while compiling: a message, a format, a key. Never a run-time value."""

    __slots__ = ()

    def __init__(self):
        self.name, self.size, self.align = "str", 0, 1


VOID, STR = _Void(), _Str()


class Vector(Type):
    """``n`` scalars with arithmetic by component. ``tag``: "vec", "quat" (x, y, z, w) or "transform" (p, q)."""

    __slots__ = ("elem", "n", "tag")

    def __init__(self, n: int, elem: Scalar, tag: str):
        self.n, self.elem, self.tag = n, elem, tag
        self.name = f"vec<{n},{elem.name}>" if tag == "vec" else f"{tag}<{elem.name}>"
        self.size, self.align = n * elem.size, elem.size


class Matrix(Type):
    """``rows`` × ``cols`` scalars, row by row."""

    __slots__ = ("cols", "elem", "rows")

    def __init__(self, rows: int, cols: int, elem: Scalar):
        self.rows, self.cols, self.elem = rows, cols, elem
        self.name = f"mat<{rows},{cols},{elem.name}>"
        self.size, self.align = rows * cols * elem.size, elem.size

    @property
    def n(self) -> int:
        return self.rows * self.cols


@cache
def vector(n: int, elem: Scalar) -> Vector:
    """The type of ``n``-vectors of ``elem``."""
    return Vector(n, elem, "vec")


@cache
def quaternion(elem: Scalar) -> Vector:
    """Quaternions (x, y, z, w) of ``elem``."""
    return Vector(4, elem, "quat")


@cache
def transformation(elem: Scalar) -> Vector:
    """Rigid transforms: position (3) then rotation (x, y, z, w)."""
    return Vector(7, elem, "transform")


@cache
def matrix(rows: int, cols: int, elem: Scalar) -> Matrix:
    """The type of ``rows`` × ``cols`` matrices of ``elem``."""
    return Matrix(rows, cols, elem)


class Tile(Vector):
    """A tile: ``shape`` elements of type ``item`` that a block of threads owns, row by row; a value like any other.

    To arithmetic and to memory it is a vector of its ``n`` scalars ``elem``, with the tag "tile".
    """

    __slots__ = ("item", "shape")

    def __init__(self, item: Type, shape: tuple[int, ...]):
        self.item, self.shape = item, shape
        inner = item if isinstance(item, Scalar) else item.elem
        super().__init__(prod(shape) * (1 if isinstance(item, Scalar) else item.n), inner, "tile")
        self.name = f"tile<{item.name},({','.join(map(str, shape))})>"

    @property
    def width(self) -> int:
        """The scalars of an element."""
        return 1 if isinstance(self.item, Scalar) else self.item.n


class TileStack(Tile):
    """A stack of a block: ``capacity`` elements, and behind them one whose first scalar says how many there are."""

    __slots__ = ()

    def __init__(self, item: Type, capacity: int):
        super().__init__(item, (capacity + 1,))
        self.name = f"stack<{item.name},{capacity}>"

    @property
    def capacity(self) -> int:
        return self.shape[0] - 1


@cache
def tile_stack(item: Type, capacity: int) -> TileStack:
    """The type of stacks of elements as tiles have them."""
    return TileStack(item, capacity)


@cache
def tile(item: Type, shape: tuple[int, ...]) -> Tile:
    """The type of tiles of ``shape`` whose elements are scalars, vectors, quaternions, transforms or matrices."""
    return Tile(item, shape)


class Struct(Type):
    """A user's ``@wp.struct``. ``fields``: (name, type) in order of declaration; ``offsets``: bytes, C rules.

    Two declarations are two types, even with equal fields; ``key`` tells them apart in text.
    """

    __slots__ = ("fields", "index", "key", "offsets")

    def __init__(self, key: str, fields: tuple[tuple[str, Type], ...]):
        self.key, self.fields = key, fields
        self.name = f"struct<{key}>"
        self.index = {name: i for i, (name, _) in enumerate(fields)}
        offset, align, offsets = 0, 1, []
        for _, t in fields:
            offset = -(-offset // t.align) * t.align
            offsets.append(offset)
            offset, align = offset + t.size, max(align, t.align)
        self.offsets = tuple(offsets)
        self.align, self.size = align, max(-(-offset // align) * align, 1)


class View(Type):
    """Access to memory: a pointer, a shape and strides (bytes). The type of array parameters.

    ``strides``: per dimension the byte stride if the type fixes it, else None (then it is a run-time value).
    Row-major dense arrays fix the last one to the element's size. ``planar``: the components of an element are a
    run-time ``component stride`` apart instead of lying side by side. ``space``: "global", or "local" for a thread's
    own arrays, which a gang keeps as ``[element][lane]``.
    In memory (parameters, structs): data, grad, shape[ndim], strides[ndim], component stride; 8 bytes each.
    """

    __slots__ = ("elem", "ndim", "planar", "space", "strides")

    def __init__(self, elem: Type, ndim: int, strides: tuple[int | None, ...], planar: bool, space: str):
        self.elem, self.ndim, self.strides, self.planar, self.space = elem, ndim, strides, planar, space
        marks = ",".join("?" if s is None else str(s) for s in strides)
        self.name = (
            f"{'local' if space == 'local' else 'view'}<{elem.name},{ndim},({marks}){',planar' if planar else ''}>"
        )
        self.size, self.align = 8 * (3 + 2 * ndim), 8


@cache
def _view(elem: Type, ndim: int, strides: tuple[int | None, ...], planar: bool, space: str) -> View:
    return View(elem, ndim, strides, planar, space)


def view(
    elem: Type, ndim: int, strides: tuple[int | None, ...] | None = None, planar: bool = False, space: str = "global"
) -> View:
    """The view type; without ``strides`` a row-major dense one."""
    if strides is None:
        strides = (None,) * (ndim - 1) + (elem.size,) if ndim else ()
    return _view(elem, ndim, tuple(strides), planar, space)


class Indexed(Struct):
    """An array with dimensions that are reached through lists of indices: ``a[i, j]`` is ``data[indices[0][i], j]``.

    A composite of views: that of ``data``, and for each such dimension one of its int32 indices, so that everything
    known of structs with arrays holds of it. ``axes``: for each dimension the number of the part that lists its
    indices, or 0 where it has no list.
    """

    __slots__ = ("axes", "data")

    def __init__(self, data: View, indices: tuple[View | None, ...]):
        listed = [(axis, t) for axis, t in enumerate(indices) if t is not None]
        super().__init__("", (("data", data), *[(f"indices[{axis}]", t) for axis, t in listed]))
        self.data, place = data, {axis: k for k, (axis, _) in enumerate(listed, 1)}
        self.axes = tuple([place.get(axis, 0) for axis in range(data.ndim)])
        self.name = self.key = f"indexed<{data.name},{','.join('-' if t is None else t.name for t in indices)}>"

    @property
    def elem(self) -> Type:
        return self.data.elem

    @property
    def ndim(self) -> int:
        return self.data.ndim

    @property
    def family(self) -> str:
        return "indexedarray"

    def indices(self, axis: int) -> View | None:
        """The type of the indices of dimension ``axis``; None where it has no list."""
        return self.fields[self.axes[axis]][1] if self.axes[axis] else None


@cache
def indexed(data: View, indices: tuple[View | None, ...]) -> Indexed:
    """The type of an array ``data`` with a view of int32, or None, for each of its dimensions."""
    return Indexed(data, indices)


class Bucket(Struct):
    """What is known of one bucket of a :class:`Bucketed` array: the array of its elements or, where it is ``nested``,
    the arrays of addresses and lengths of theirs."""

    __slots__ = ()

    def __init__(self, elem: Type, nested: bool):
        words = (("addresses", view(u64, 1)), ("lengths", view(u64, 1)))
        super().__init__("", words if nested else (("data", view(elem, 1)),))
        self.name = self.key = f"bucket<{elem.name}{',nested' if nested else ''}>"


@cache
def bucket(elem: Type, nested: bool) -> Bucket:
    """The type of buckets of ``elem``, or of arrays of them."""
    return Bucket(elem, nested)


class Bucketed(Indexed):
    """An array whose elements lie in several buckets of memory, one bucket after the other.

    ``ends[k]`` says how many elements the buckets up to number k have together, ``total`` is that of all. With two
    dimensions each element is an array of its own. Where the array is ``listed``, its own indices are places in a list
    of indices into it.
    """

    __slots__ = ("_elem", "_ndim", "listed")

    def __init__(self, elem: Type, ndim: int, listed: bool):
        parts = [("buckets", view(bucket(elem, ndim == 2), 1)), ("ends", view(i32, 1)), ("total", i32)]
        Struct.__init__(self, "", (*parts, *[("indices[0]", view(i32, 1, (None,)))] * listed))
        self._elem, self._ndim, self.listed = elem, ndim, listed
        self.axes = (len(parts) * listed, 0)[:ndim]
        self.name = self.key = f"bucketed<{elem.name},{ndim}{',listed' if listed else ''}>"

    @property
    def elem(self) -> Type:
        return self._elem

    @property
    def ndim(self) -> int:
        return self._ndim

    @property
    def nested(self) -> bool:
        """Whether the elements are arrays."""
        return self._ndim == 2

    @property
    def family(self) -> str:
        return "indexedfabricarray" if self.listed else "fabricarray"


@cache
def _bucketed(elem: Type, ndim: int, listed: bool) -> Bucketed:
    return Bucketed(elem, ndim, listed)


def bucketed(elem: Type, ndim: int = 1, listed: bool = False) -> Bucketed:
    """The type of arrays of ``elem`` in buckets; with 2 dimensions, of arrays of such arrays."""
    return _bucketed(elem, ndim, listed)


def family_of(t: View | Indexed) -> str:
    """What users call arrays of type ``t``: ``array``, ``indexedarray`` …"""
    return t.family if isinstance(t, Indexed) else "array"


def any_layout(t: View | Indexed) -> View | Indexed:
    """The type of arrays such as ``t`` whose strides are known only at run time."""
    if isinstance(t, Bucketed):
        return t
    if isinstance(t, Indexed):
        parts = [t.indices(axis) for axis in range(t.ndim)]
        return indexed(any_layout(t.data), tuple([p and any_layout(p) for p in parts]))
    return view(t.elem, t.ndim, (None,) * t.ndim, t.planar, t.space)


class Array(Type):
    """What an annotation such as ``wp.array(dtype=float)`` says before an argument gives its layout.

    ``elem`` None stands for ``dtype=Any``. A parameter of this type is *matched* by every :class:`View` or
    :class:`Indexed` of the same ``family``, element and dimensions; it never types a value.
    """

    __slots__ = ("elem", "family", "ndim")

    def __init__(self, elem: Type | None, ndim: int, family: str):
        self.elem, self.ndim, self.family = elem, ndim, family
        self.name = f"{family}<{elem.name if elem else 'any'},{ndim}>"
        self.size, self.align = 8 * (3 + 2 * ndim), 8

    @property
    def indexed(self) -> bool:
        """Whether arrays of the family are reached through other arrays."""
        return self.family != "array"


@cache
def _array(elem: Type | None, ndim: int, family: str) -> Array:
    return Array(elem, ndim, family)


def array(elem: Type | None, ndim: int = 1, family: str = "array") -> Array:
    """The pattern of all arrays of a family with ``elem`` and ``ndim`` dimensions."""
    return _array(elem, ndim, family)


class Fixed(Type):
    """A thread's own array of ``shape``, ``wp.zeros(shape=3, dtype=float)`` inside a kernel; a value in structs."""

    __slots__ = ("elem", "shape")

    def __init__(self, elem: Type, shape: tuple[int, ...]):
        self.elem, self.shape = elem, shape
        self.name = f"fixed<{elem.name},({','.join(map(str, shape))})>"
        self.size, self.align = prod(shape) * elem.size, elem.align


@cache
def fixed(elem: Type, shape: tuple[int, ...]) -> Fixed:
    """The type of a thread's own array."""
    return Fixed(elem, shape)


class Tuple(Type):
    """Several values returned by a function, or written ``a, b``."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Type, ...]):
        self.items = items
        self.name = f"({', '.join(t.name for t in items)})"
        self.size, self.align = sum(t.size for t in items), max((t.align for t in items), default=1)


@cache
def tuple_of(*items: Type) -> Tuple:
    """The type of a tuple of ``items``."""
    return Tuple(items)


class FunctionType(Type):
    """A function passed as an argument; known while compiling."""

    __slots__ = ()

    def __init__(self):
        self.name, self.size, self.align = "function", 0, 1
