"""How NumPy sees the types of the language."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from .core import SCALARS, Matrix, Scalar, Struct, Type, Vector, View, b1, bf16
from .numbers import BRAIN
from .spelling import spell


@cache
def numpy_dtype(t: Type) -> np.dtype:
    """How NumPy sees one value of ``t`` in memory; a bfloat16 as its bits, an array inside a struct as 8-byte words.

    >>> numpy_dtype(f32)
    dtype('float32')
    """
    if isinstance(t, Scalar):
        if t is b1:
            return np.dtype(np.bool_)
        return np.dtype(np.uint16) if t is bf16 else np.dtype(f"{t.kind}{t.bits // 8}")
    if isinstance(t, Vector):
        return np.dtype((numpy_dtype(t.elem), (t.n,)))
    if isinstance(t, Matrix):
        return np.dtype((numpy_dtype(t.elem), (t.rows, t.cols)))
    if isinstance(t, Struct):
        fields = {"names": list(t.index), "formats": [numpy_dtype(ft) for _, ft in t.fields],
                  "offsets": list(t.offsets), "itemsize": t.size}  # fmt: skip
        return np.dtype(fields)
    if isinstance(t, View):
        return np.dtype((np.uint64, (t.size // 8,)))
    raise TypeError(f"NumPy has no dtype for {spell(t)}")


def number_dtype(t: Scalar) -> np.dtype:
    """The dtype in which NumPy computes with numbers of type ``t``: float32 for a bfloat16.

    >>> number_dtype(bf16)
    dtype('float32')
    """
    return np.dtype(np.float32) if t is bf16 else numpy_dtype(t)


_OF_NUMPY = {numpy_dtype(t): t for t in SCALARS if t is not bf16}


def type_of_numpy(dtype: Any) -> Scalar | None:
    """The scalar type NumPy's ``dtype`` stands for, or None.

    >>> type_of_numpy(np.float32)
    f32
    """
    found = np.dtype(dtype)
    return bf16 if found.name == BRAIN else _OF_NUMPY.get(found.newbyteorder("="))
