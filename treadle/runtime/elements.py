"""What an array needs to know about its element type: the language type, the class users see, and NumPy's words."""

from __future__ import annotations

import typing
from typing import Any

import numpy as np

from ..types.annotations import type_of
from ..types.core import Indexed, Matrix, Scalar, Struct, Type, Vector, View, bf16, view
from ..types.values import class_of, numpy_dtype, type_of_numpy


class Element:
    """One element type of arrays.

    ``type``: the language type; ``cls``: the class users name it by, perhaps derived from that of the type, so that
    elements are compared by their types; ``dtype``: NumPy's scalar or record type; ``inner``: the dimensions its
    components add to a NumPy view, ``(3,)`` for vec3; ``component``: bytes from one component to the next inside a
    dense element.
    """

    __slots__ = (
        "cls", "component", "dense", "dtype", "halves", "inner", "inner_strides", "plain", "size", "type", "views",
    )  # fmt: skip

    def __init__(self, t: Type, cls: Any):
        self.type, self.cls, self.size = t, cls, t.size
        scalar = t.elem if isinstance(t, Vector | Matrix) else t
        self.dtype = numpy_dtype(scalar)
        self.component = scalar.size
        self.inner: tuple[int, ...] = ()
        if isinstance(t, Vector):
            self.inner = (t.n,)
        elif isinstance(t, Matrix):
            self.inner = (t.rows, t.cols)
        self.inner_strides = self.inner_steps(self.component)
        self.halves = scalar is bf16  # whether memory holds bfloat16, which NumPy does not know
        self.plain = isinstance(t, Scalar) and not self.halves  # whether NumPy's values are what Python users expect
        self.views: dict[tuple, View] = {}
        self.dense = (None, *(view(t, n) for n in (1, 2, 3, 4)))  # row-major view types by rank

    def inner_steps(self, component: int) -> tuple[int, ...]:
        """Byte strides of the component dimensions where components are ``component`` bytes apart."""
        if len(self.inner) == 2:
            return (self.inner[1] * component, component)
        return (component,) * len(self.inner)

    @property
    def count(self) -> int:
        """Scalars of an element that NumPy sees as dimensions; 1 for scalars and structs."""
        return self.size // self.dtype.itemsize

    def view(self, strides: tuple[int, ...], component: int) -> View:
        """The view type of an array of this element: its *layout class*, so that kernels are specialised few times.

        A stride is part of the type only where the last dimension is dense (row-major), or else the first one
        (column-major, and worlds-innermost planes). Planar arrays have a component stride other than the dense one.
        """
        planar = component != self.component and self.inner != ()
        size = self.component if planar else self.size
        last, first = strides[-1] == size, strides[0] == size
        key = (len(strides), last, first, planar)
        found = self.views.get(key)
        if found is None:
            static: list[int | None] = [None] * len(strides)
            if last:
                static[-1] = size
            elif first:
                static[0] = size
            found = self.views[key] = view(self.type, len(strides), tuple(static), planar)
        return found


_BY_SPELLING: dict[Any, Element] = {}
_BY_TYPE: dict[Type, Element] = {}


def element(dtype: Any) -> Element:
    """The element that ``dtype`` names: a scalar, vector, matrix or struct class, ``float``, ``int`` or ``bool``.

    Raises:
        TypeError: ``dtype`` names no type that arrays can hold.
    """
    try:
        return _BY_SPELLING[dtype]
    except KeyError:
        pass
    except TypeError:
        raise TypeError(f"dtype must be a type, not {dtype!r}") from None
    if dtype is typing.Any:
        raise TypeError("a dtype is needed: dtype=Any is an annotation, no element type")
    t = dtype if isinstance(dtype, Type) else type_of(dtype)
    if not isinstance(t, Scalar | Vector | Matrix | Struct) or isinstance(t, Indexed):
        raise TypeError(f"arrays cannot hold elements of type {t}")
    found = element_of(t)
    if isinstance(t, Vector | Matrix) and isinstance(dtype, type) and issubclass(dtype, found.cls):
        found = found if dtype is found.cls else Element(t, dtype)  # a derived class keeps its name
    _BY_SPELLING[dtype] = found
    return found


def element_of(t: Type) -> Element:
    """The element of language type ``t``."""
    found = _BY_TYPE.get(t)
    if found is None:
        found = _BY_TYPE[t] = Element(t, class_of(t))
    return found


def element_of_numpy(dtype: np.dtype) -> Element:
    """The scalar element with NumPy's ``dtype``; TypeError where there is none."""
    t = type_of_numpy(dtype)
    if t is None:
        raise TypeError(f"no element type has NumPy's dtype {dtype}; pass dtype=")
    return element_of(t)
