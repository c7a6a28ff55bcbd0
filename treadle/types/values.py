"""The values users touch: ``float32``, ``vec3``, ``mat33``, ``quat``, ``transform`` … as Python classes.

A class is made when it is first asked for, by name (``values.vec3d``), by shape (``vector_class(5, f32)``) or by type
(``class_of``); each type has one class, and each class names its type as ``__treadle_type__``. Components are kept
rounded to their scalar type, in a buffer that NumPy can read. Arithmetic rounds every step, integers wrap around.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from . import core
from .composite_values import (
    class_of,
    matrix_class,
    quaternion_class,
    register_class,
    transformation_class,
    vector_class,
)
from .core import Scalar, Type, f32
from .limits import OpenType
from .numpy_types import numpy_dtype, type_of_numpy
from .spelling import SCALAR_NAMES, SUFFIXES, spell

__all__ = [
    "OpenType", "class_of", "matrix", "matrix_class", "names", "numpy_dtype", "quaternion", "quaternion_class",
    "register_class", "transform_expand", "transformation", "transformation_class", "type_of_numpy", "vector",
    "vector_class",
]  # fmt: skip

# -- makers ------------------------------------------------------------------------------------------------------------


def _scalar_of(dtype: Any) -> Scalar | None:
    from .annotations import type_of

    t = type_of(dtype)
    if t is not None and not isinstance(t, Scalar):
        raise TypeError(f"components are scalars, not {spell(t)}")
    return t


def vector(length: Any, dtype: Any) -> Any:
    """The class of vectors of ``length`` scalars ``dtype``.

    Args:
        length: an int, not negative; ``Any`` in annotations of generic functions.
        dtype: a scalar type, ``float``, ``int`` or ``bool``; ``Any`` in annotations of generic functions.

    >>> vector(length=5, dtype=float)(1.0)[4]
    1.0
    """
    scalar = _scalar_of(dtype)
    if scalar is None or length is Any:
        return OpenType("vec", (length,), dtype)
    if not isinstance(length, int) or length < 0:
        raise TypeError(f"length must be an int, not {length!r}")
    return vector_class(length, scalar)


def matrix(shape: Any, dtype: Any) -> Any:
    """The class of matrices of ``shape`` (rows, columns) and scalars ``dtype``; both may be open, as in :func:`vector`.

    >>> matrix(shape=(2, 3), dtype=float)(1.0)[1, 2]
    1.0
    """
    scalar = _scalar_of(dtype)
    shape = (Any, Any) if shape is Any else tuple(shape)
    if len(shape) != 2:
        raise ValueError(f"a matrix has two dimensions, rows and columns, not {shape!r}")
    if scalar is None or Any in shape:
        return OpenType("matrix", shape, dtype)
    rows, cols = shape
    if not isinstance(rows, int) or not isinstance(cols, int) or rows < 0 or cols < 0:
        raise TypeError(f"shape must be two ints, not {shape!r}")
    return matrix_class(rows, cols, scalar)


def quaternion(dtype: Any = Any) -> Any:
    """The class of quaternions of ``dtype``.

    >>> quaternion(dtype=float)(0.0, 0.0, 0.0, 1.0).w
    1.0
    """
    scalar = _scalar_of(dtype)
    return OpenType("quat", (), dtype) if scalar is None else quaternion_class(scalar)


def transformation(dtype: Any = Any) -> Any:
    """The class of rigid transforms of ``dtype``.

    >>> transformation(dtype=float)().q.w
    1.0
    """
    scalar = _scalar_of(dtype)
    return OpenType("transform", (), dtype) if scalar is None else transformation_class(scalar)


def transform_expand(t: Any) -> Any:
    """Seven numbers, a position and then a rotation, as a rigid transform.

    >>> transform_expand([1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0]).p
    vec3f([1.0, 2.0, 3.0])
    """
    return transformation_class(f32)(*t[0:7])


for _maker in (vector, matrix, quaternion, transformation):
    _maker.__treadle_builtin__ = _maker.__name__  # type: ignore[attr-defined]  # called in a kernel, it makes a value


# -- names -------------------------------------------------------------------------------------------------------------


@cache
def names() -> dict[str, Type]:
    """Every named class, with its type: ``float32``, ``vec3``, ``vec3d``, ``mat33f``, ``quat``, ``spatial_matrix`` …"""
    found: dict[str, Type] = {name: t for t, name in SCALAR_NAMES.items()}
    found["handle"] = core.u64  # what meshes and other objects are known by in kernels
    suffixes = {**SUFFIXES, None: ""}
    for scalar, suffix in suffixes.items():
        elem = f32 if scalar is None else scalar
        found.update((f"vec{n}{suffix}", core.vector(n, elem)) for n in (2, 3, 4))
        if elem.is_float:
            found.update((f"mat{n}{n}{suffix}", core.matrix(n, n, elem)) for n in (2, 3, 4))
            found[f"quat{suffix}"] = core.quaternion(elem)
            found[f"transform{suffix}"] = core.transformation(elem)
            found[f"spatial_vector{suffix}"] = core.vector(6, elem)
            found[f"spatial_matrix{suffix}"] = core.matrix(6, 6, elem)
    return found


def __getattr__(name: str) -> Any:
    t = names().get(name)
    if t is None:
        raise AttributeError(f"module {__name__} has no attribute {name!r}")
    return class_of(t)
