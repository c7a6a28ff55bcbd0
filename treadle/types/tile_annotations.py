"""Tiles and stacks as parameters of functions: ``wp.tile[float, 4, 4]``, ``wp.tile_stack(capacity=8, dtype=int)``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.errors import KernelTypeError
from .annotations import type_of
from .composite_values import class_of
from .core import Matrix, Scalar, Tile, Type, Vector
from .core import tile as tile_of
from .core import tile_stack as stack_of
from .spelling import literal_size

MAX_RANK = 4


class TileAnnotation:
    """A tile of ``dtype``; of any shape, or any elements, where these are ``Any``.

    ``storage`` says where the field's compilers keep tiles; here the compiler decides for each.
    """

    __slots__ = ("__treadle_open__", "__treadle_type__", "dtype", "shape")
    storage = "register"

    def __init__(self, dtype: Any, shape: Sequence[Any] | int = Any):
        item = type_of(dtype)
        if item is not None and (not isinstance(item, Scalar | Vector | Matrix) or isinstance(item, Tile)):
            raise KernelTypeError(f"a tile holds scalars, vectors or matrices, not {dtype!r}")
        self.dtype, self.shape = Any if item is None else class_of(item), Any
        if shape is not Any:
            sizes = tuple(shape) if isinstance(shape, Sequence) else (shape,)
            if not 1 <= len(sizes) <= MAX_RANK:
                raise KernelTypeError(f"a tile has one to {MAX_RANK} dimensions, not {len(sizes)}")
            self.shape = tuple([literal_size(n) for n in sizes])
        self.__treadle_open__ = item is None or self.shape is Any
        self.__treadle_type__: Type | None = None if self.__treadle_open__ else tile_of(item, self.shape)

    def __repr__(self) -> str:
        shape = "" if self.shape is Any else "".join(f", {n}" for n in self.shape)
        return f"wp.tile[{getattr(self.dtype, '__name__', 'Any')}{shape}]"


def tile_spelt(item: Any) -> TileAnnotation:
    """What ``wp.tile[item]`` annotates: a dtype, and maybe its extents, as ints, ``Literal`` or in a tuple."""
    if item == ():
        raise TypeError("wp.tile[…] requires at least a dtype, the type of the elements; its extents follow")
    dtype, *shape = item if isinstance(item, tuple) else (item,)
    if not shape:
        return TileAnnotation(dtype)
    return TileAnnotation(dtype, shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape)


class StackAnnotation:
    """A stack of at most ``capacity`` elements."""

    __slots__ = ("__treadle_type__",)

    def __init__(self, capacity: int, dtype: Any):
        if not isinstance(capacity, int) or capacity < 1:
            raise KernelTypeError(f"the capacity of a stack is a positive number, not {capacity!r}")
        self.__treadle_type__ = stack_of(TileAnnotation(dtype, capacity).__treadle_type__.item, capacity)

    def __repr__(self) -> str:
        return f"<{self.__treadle_type__}, a tile_stack>"
