"""What arrays and indexed arrays say of themselves and give out alike."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

from . import array_views as views
from .conversion import to_host
from .elements import Element
from .operators import Operators

__all__ = ["Shaped"]


class Shaped(Operators):
    """Elements in one to four dimensions. Who derives has a ``shape``, the element type's facts in ``_element``, and
    ``numpy()``."""

    __slots__ = ()
    shape: tuple[int, ...]
    _element: Element

    @property
    def dtype(self) -> Any:
        """The element type as users name it."""
        return self._element.cls

    @property
    def ndim(self) -> int:
        """How many dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements."""
        return views.product(self.shape)

    @property
    def pinned(self) -> bool:
        """Whether the memory is page-locked for transfers; host memory of the CPU never is."""
        return False

    def __len__(self) -> int:
        return self.shape[0]

    def __str__(self) -> str:
        return str(self.numpy())

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self.shape[0]))

    def list(self) -> builtins.list:
        """All elements in row-major order as Python numbers, host vectors or struct instances."""
        return to_host(self.numpy(), self._element)
