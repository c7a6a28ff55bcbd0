"""Which family an array, or an annotation of one, belongs to: dense arrays, indexed ones, those in buckets …"""

from __future__ import annotations

from typing import Any

from ..runtime.array import array
from ..runtime.fabric import fabricarray, indexedfabricarray
from ..runtime.indexed import indexedarray
from ..types.annotations import ArrayAnnotation, fixedarray

ARRAY_TYPE_REGULAR, ARRAY_TYPE_INDEXED, ARRAY_TYPE_FABRIC, ARRAY_TYPE_FABRIC_INDEXED = range(4)  # the field's numbers

_FAMILIES = (array, indexedarray, fabricarray, indexedfabricarray)  # by these numbers
array_types = (*_FAMILIES, fixedarray)


def concrete_array_type(x: Any) -> type:
    """The class of arrays that ``x``, an array or an annotation, belongs to; the type of anything else.

    >>> import treadle as wp
    >>> concrete_array_type(wp.array[float]) is wp.array
    True
    """
    if isinstance(x, ArrayAnnotation):
        return next(c for c in _FAMILIES if c.__name__ == x.family)
    if not isinstance(x, type):
        for family in array_types:
            if issubclass(type(x), family):
                return family
    return type(x)


def matches_array_class(x: Any, family: type) -> bool:
    """Whether ``x``, an array or an annotation, is of the class ``family``."""
    return concrete_array_type(x) is family


def array_type_id(x: Any) -> int:
    """The number of the family of an array or annotation.

    Raises:
        ValueError: ``x`` is none.
    """
    family = concrete_array_type(x)
    if family in _FAMILIES:
        return _FAMILIES.index(family)
    raise ValueError(f"{x!r} is no array and no annotation of one")
