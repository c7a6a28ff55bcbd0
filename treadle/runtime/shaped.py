"""What arrays and indexed arrays say of themselves and give out alike."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

from ..types.numbers import bf16_values
from . import array_views as views
from .conversion import to_host
from .elements import Element
from .operators import Operators

__all__ = ["Shaped"]


class Shaped(Operators):
    """Elements in one to four dimensions. Who derives has a ``shape``, the element type's facts in ``_element``, and
    ``numpy()``, and ``_rows()``, which has bfloat16 as bits."""

    # These stand here, and all of an array's in its class, so that Python takes no two of the classes for layouts that
    # exclude each other. `_parts` are the arrays that an indexed one is made of, as native launchers read them.
    __slots__ = ("__dict__", "__weakref__", "_parts", "device", "shape", "type")
    shape: tuple[int, ...]
    family: type  # the class of this package that an array's class is or derives from
    _element: Element

    # Users may derive from these classes. The constructors take part in it as everywhere in Python: that of the derived
    # class decides what reaches this one. Views, copies and results of what is derived are arrays of the own classes.

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if Shaped in cls.__bases__:
            cls.family = cls
            return
        if "__new__" not in cls.__dict__:
            cls.__new__ = _untouched  # type: ignore[method-assign]
        cls.__class_getitem__ = classmethod(_no_annotation)  # type: ignore[assignment]
        cls.__treadle_builtin__ = ""  # kernels know the own classes

    def __init__(self, *args: Any, **kwargs: Any):
        own = self.family
        if own is type(self):
            return  # made by its __new__
        made = own(*args, **kwargs)
        if not isinstance(made, own):
            raise TypeError(f"a {type(self).__name__} needs elements: give data, or shape, or ptr and shape")
        self._become(made)

    def _become(self, made: Any) -> None:
        """Take over all that ``made``, an array of the own class, is."""
        for name in (*Shaped.__slots__[2:], *self.family.__slots__):
            if hasattr(made, name):
                setattr(self, name, getattr(made, name))
        self.__dict__.update(made.__dict__)

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
        """Whether GPUs reach the memory, which is the host's, by themselves."""
        return self.device.queue is None and getattr(getattr(self, "_memory", None), "pinned", False)

    def __len__(self) -> int:
        return self.shape[0]

    def __str__(self) -> str:
        return str(bf16_values(self._rows()) if self._element.halves else self.numpy())

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self.shape[0]))

    def list(self) -> builtins.list:
        """All elements in row-major order as Python numbers, host vectors or struct instances."""
        return to_host(self._rows(), self._element)


def _no_annotation(cls: type, item: Any) -> Any:
    raise TypeError(f"Subscript syntax not supported by {cls.__name__}: annotate wp.{cls.family.__name__}[…]")


def _untouched(cls: type, *args: Any, **kwargs: Any) -> Any:
    """``__new__`` of derived classes: an array that its constructor fills."""
    return object.__new__(cls)

