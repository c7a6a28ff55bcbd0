"""Types by kind, as the classes users write, and NumPy's dtypes for them: ``scalar_types``, ``np_dtype_to_warp_type`` …

Each name is made when it is first asked for, because classes are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .core import ARITHMETIC, FLOATS, INTS, Matrix, Type, Vector, b1, bf16, f16, i8, i16, u8, u16, u64
from .scalar_values import FloatValue, IntegerValue, ScalarValue
from .values import class_of, names, numpy_dtype

__all__ = ["GROUPS"]


def _classes(types: tuple[Type, ...]) -> tuple[type, ...]:
    return tuple([class_of(t) for t in types])


def _composites() -> tuple[type, ...]:
    found = dict.fromkeys(t for t in names().values() if isinstance(t, Vector | Matrix))
    return _classes(tuple(found))


def _of_numpy() -> dict[Any, type]:
    """By NumPy's scalar class and by its dtype."""
    classes = {numpy_dtype(t): class_of(t) for t in (b1, *ARITHMETIC) if t is not bf16}
    return {**{dtype.type: c for dtype, c in classes.items()}, **classes}


def _to_numpy() -> dict[type, Any]:
    found: dict[type, Any] = {class_of(t): numpy_dtype(t).type for t in (b1, *ARITHMETIC)}
    return {**found, int: np.int32, float: np.float32, bool: np.bool_}


_MAKERS: dict[str, Callable[[], Any]] = {
    "int_types": lambda: _classes(INTS),
    "float_types": lambda: _classes(FLOATS),
    "scalar_types": lambda: _classes(ARITHMETIC),
    "scalar_and_bool_types": lambda: _classes((*ARITHMETIC, b1)),
    "native_scalar_types": lambda: _classes(tuple([t for t in ARITHMETIC if t not in (f16, bf16)])),
    "value_types": lambda: (int, float, bool, *_classes((*ARITHMETIC, b1))),
    "vector_types": _composites,
    "non_atomic_types": lambda: _classes((i8, u8, i16, u16)),  # no atomic operation is written for them
    "np_dtype_to_warp_type": _of_numpy,
    "warp_type_to_np_dtype": _to_numpy,
    "handle": lambda: class_of(u64),  # of a mesh, a tree, a volume
    "scalar_base": lambda: ScalarValue,
    "int_base": lambda: IntegerValue,
    "float_base": lambda: FloatValue,
}
GROUPS = frozenset(_MAKERS)


@cache
def __getattr__(name: str) -> Any:
    if name not in _MAKERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _MAKERS[name]()
