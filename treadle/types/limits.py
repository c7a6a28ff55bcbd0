"""What open annotations still ask for: ``wp.Float`` for a float, ``wp.types.vector(length=Any, dtype=int)`` for a
vector of ints."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from typing import Any

from .annotations import ArrayAnnotation, evaluated, type_of
from .core import ARITHMETIC, FLOATS, INTS, Indexed, Matrix, Tile, Type, Vector, View
from .tile_annotations import TileAnnotation


class Limit:
    """A test that the types of arguments must pass: ``limit(t)``. Equal ``facts`` make equal limits."""

    __slots__ = ("facts", "test")

    def __init__(self, test: Callable[[Type], bool], *facts: Any):
        self.test, self.facts = test, facts

    def __call__(self, t: Type) -> bool:
        return self.test(t)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Limit) and self.facts == other.facts

    def __hash__(self) -> int:
        return hash(self.facts)

    def __repr__(self) -> str:
        return f"Limit{self.facts}"


_KINDS = {"Int": INTS, "Float": FLOATS, "Scalar": ARITHMETIC}
_VARIABLES = {name: Limit(group.__contains__, name) for name, group in _KINDS.items()}  # by the names of type variables


def limit_of(annotation: Any, namespace: Mapping[str, Any] | None = None) -> Limit | None:
    """What an annotation that leaves the type open asks for; None if any type will do.

    >>> import treadle as wp
    >>> from .core import f32, i32
    >>> limit_of(wp.Float)(f32), limit_of(wp.Float)(i32), limit_of(Any)
    (True, False, None)
    """
    for _ in range(2):  # text may be postponed once more
        if isinstance(annotation, str):
            annotation = evaluated(annotation, namespace)
    if isinstance(annotation, typing.TypeVar):
        return _VARIABLES.get(annotation.__name__)
    if isinstance(annotation, OpenType):
        return annotation.limit
    if isinstance(annotation, ArrayAnnotation):
        return _array_limit(annotation, namespace)
    if isinstance(annotation, TileAnnotation) and annotation.__treadle_open__:
        return _tile_limit(annotation)
    return None


def _part_limit(part: Any, namespace: Mapping[str, Any] | None = None) -> Limit | None:
    """The limit of elements or components that ``part`` annotates; one type alone where it names that."""
    t = type_of(part, namespace)
    return limit_of(part, namespace) if t is None else Limit(lambda have: have is t, t)


def _array_limit(annotation: ArrayAnnotation, namespace: Mapping[str, Any] | None) -> Limit | None:
    elements, ndim = _part_limit(annotation.dtype, namespace), annotation.ndim
    if elements is None and ndim is not Any:
        return None  # the type of the annotation asks for all there is to ask

    def test(t: Type) -> bool:
        arrays = isinstance(t, View | Indexed) and (ndim is Any or t.ndim == ndim)
        return arrays and (elements is None or elements(t.elem))

    return Limit(test, annotation.family, ndim, elements)


def _tile_limit(annotation: TileAnnotation) -> Limit:
    elements, shape = _part_limit(annotation.dtype), annotation.shape

    def test(t: Type) -> bool:
        tiles = isinstance(t, Tile) and (shape is Any or t.shape == shape)
        return tiles and (elements is None or elements(t.item))

    return Limit(test, "tile", shape, elements)


class OpenType:
    """An annotation of vectors, matrices, quaternions or transforms that leaves their size or their scalar open.

    Args:
        kind: "matrix", or the tag of a :class:`~.core.Vector`.
        shape: its extents, ``Any`` where one is open.
        dtype: the annotation of the scalar.
    """

    __slots__ = ("dtype", "kind", "limit", "shape")
    __treadle_open__ = True

    def __init__(self, kind: str, shape: tuple[Any, ...], dtype: Any):
        self.kind, self.shape, self.dtype = kind, shape, dtype
        scalars = _part_limit(dtype)

        def test(t: Type) -> bool:
            if isinstance(t, Matrix):
                have, sizes = "matrix", (t.rows, t.cols)
            elif isinstance(t, Vector) and not isinstance(t, Tile):
                have, sizes = t.tag, (t.n,)
            else:
                return False
            fits = all(want is Any or want == n for want, n in zip(shape, sizes, strict=False))
            return have == kind and fits and (scalars is None or scalars(t.elem))

        self.limit = Limit(test, kind, shape, scalars)

    def __repr__(self) -> str:
        sizes = "" if not self.shape else f"length={self.shape[0]}, " if self.kind == "vec" else f"shape={self.shape}, "
        kind = {"vec": "vector", "quat": "quaternion", "transform": "transformation"}.get(self.kind, self.kind)
        text = f"{kind}({sizes}dtype={getattr(self.dtype, '__name__', self.dtype)})"
        return text.replace("typing.", "")
