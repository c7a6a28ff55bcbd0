"""``array1d`` to ``array4d``, ``indexedarray1d`` to ``indexedarray4d``: arrays of a fixed number of dimensions."""

from __future__ import annotations

from typing import Any

from ..base.logs import log_warning
from ..types.annotations import ArrayAnnotation
from .array import array
from .indexed import indexedarray


class OfDimensions:
    """Arrays and annotations of one kind and a fixed number of dimensions."""

    __slots__ = ("__name__", "kind", "ndim")

    def __init__(self, kind: type, ndim: int):
        self.kind, self.ndim, self.__name__ = kind, ndim, f"{kind.__name__}{ndim}d"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """An array as its class makes it, or the annotation where there is nothing to make one of. Data of other
        dimensions keep theirs, with a warning."""
        kwargs["ndim"] = self.ndim
        made = self.kind(*args, **kwargs)
        if isinstance(made, self.kind) and made.ndim != self.ndim:
            log_warning(f"wp.{self.__name__} was given {made.ndim}-dimensional data, and so is the array")
        return made

    def __getitem__(self, dtype: Any) -> Any:
        return ArrayAnnotation(dtype, self.ndim, self.kind.__name__)

    def __repr__(self) -> str:
        return f"<treadle {self.__name__}>"


array1d, array2d, array3d, array4d = (OfDimensions(array, n) for n in range(1, 5))
indexedarray1d, indexedarray2d, indexedarray3d, indexedarray4d = (OfDimensions(indexedarray, n) for n in range(1, 5))
