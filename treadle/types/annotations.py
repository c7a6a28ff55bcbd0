"""What annotations mean: every spelling of a type in a kernel's signature or a struct's fields (:func:`type_of`)."""

from __future__ import annotations

import collections.abc
import math
import types
import typing
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base.errors import KernelTypeError
from .core import SCALARS, STR, Array, Indexed, Matrix, Scalar, Type, Vector, View, array, b1, f32, fixed, i32, tuple_of
from .records import MAX_DIMS
from .spelling import SCALAR_NAMES, literal_size, spell


class ArrayAnnotation:
    """An array of ``dtype`` with ``ndim`` dimensions: what ``wp.array(dtype=float)`` and ``wp.array2d[wp.vec3]`` say.

    ``family``: the kind of array, as the class is called that makes one, such as ``indexedarray``.
    """

    __slots__ = ("dtype", "family", "ndim")

    def __init__(self, dtype: Any, ndim: Any = 1, family: str = "array"):
        if isinstance(dtype, tuple):
            raise TypeError(f"an array annotation has a single type parameter, that of the elements, not {dtype}")
        self.dtype, self.ndim, self.family = _as_class(dtype), ndim, family

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrayAnnotation) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def __or__(self, other: Any) -> Any:
        return typing.Union[self, other]  # noqa: UP007, the operator is what is defined here

    def __ror__(self, other: Any) -> Any:
        return typing.Union[other, self]  # noqa: UP007

    def _facts(self) -> tuple[Any, Any, str]:
        return self.dtype, self.ndim, self.family

    @property
    def type(self) -> Array:
        """The array type meant."""
        return type_of(self)  # type: ignore[return-value]

    def __repr__(self) -> str:
        """As it is written: ``wp.array2d[wp.vec3f]``, ``wp.indexedarray[wp.float32, Literal[3]]``."""
        dtype = "Any" if self.dtype is Any else getattr(self.dtype, "__name__", repr(self.dtype))
        t = getattr(self.dtype, "__treadle_type__", None)
        if isinstance(t, Scalar | Vector | Matrix) and dtype.isidentifier():
            dtype = f"wp.{dtype}"
        if self.ndim is Any:
            return f"wp.{self.family}[{dtype}, Any]"
        if self.ndim == 1 or self.family == "array":
            return f"wp.{self.family}{f'{self.ndim}d' if self.ndim != 1 else ''}[{dtype}]"
        return f"wp.{self.family}[{dtype}, Literal[{self.ndim}]]"


def _as_class(dtype: Any) -> Any:
    """``float`` and its like, and NumPy's classes, as the classes of this language; anything else as it is."""
    t = _PYTHON.get(dtype) if isinstance(dtype, type) else None
    if t is None and isinstance(dtype, type) and issubclass(dtype, np.generic):
        t = _of_class(dtype)
    if not isinstance(t, Scalar):
        return dtype
    from .scalar_values import scalar_class

    return scalar_class(t)


def subscripted(item: Any, ndim: int = 1, family: str = "array") -> ArrayAnnotation:
    """What ``wp.array[item]`` annotates: a dtype, and maybe the dimensions as ``Literal[2]``, 2 or ``Any``.

    Raises:
        TypeError: it is neither.
        ValueError: there are no arrays of so many dimensions.
    """
    if not isinstance(item, tuple):
        return ArrayAnnotation(item, ndim, family)
    if len(item) != 2:
        raise TypeError(f"wp.{family}[…] takes an element type and the number of dimensions, not {list(item)}")
    dtype, dims = item
    if dims is not Any:
        dims = literal_size(dims)
        if dims > MAX_DIMS:
            raise ValueError(f"the number of dimensions, ndim must be between 1 and {MAX_DIMS}: it is {dims}")
    return ArrayAnnotation(dtype, dims, family)


class fixedarray:
    """An array of a thread's own, as ``wp.zeros(shape=3, dtype=float)`` makes it in kernels; for annotations only.

    Args:
        dtype: its element type.
        shape: an int or up to four; left out, any array of one dimension is meant.

    >>> import treadle as wp
    >>> @wp.func
    ... def powers(x: float) -> wp.fixedarray(dtype=float, shape=3):
    ...     p = wp.zeros(shape=3, dtype=float)
    ...     p[0], p[1], p[2] = 1.0, x, x * x
    ...     return p
    """

    __treadle_builtin__ = "fixedarray"
    __slots__ = ("dtype", "ndim", "shape", "size")

    def __init__(self, dtype: Any = Any, shape: int | tuple[int, ...] | list[int] | None = None):
        self.dtype = dtype
        self.shape = (0,) if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
        self.ndim, self.size = len(self.shape), math.prod(self.shape)
        if not 1 <= self.ndim <= 4 or (shape is not None and min(self.shape) < 1):
            raise KernelTypeError(f"the shape of a fixed array is a positive int or up to four, not {shape}")

    @property
    def type(self) -> Type:
        """The type meant: of exactly this shape, or the pattern of all arrays where none was given.

        Raises:
            KernelTypeError: it is of a class derived from this one, which kernels would know nothing of.
        """
        if type(self) is not fixedarray:
            raise KernelTypeError(
                f"{type(self).__name__}: a fixedarray subclass instance as an annotation says no more than one of "
                "wp.fixedarray", hint="annotate with wp.fixedarray(dtype=…, shape=…)",
            )  # fmt: skip
        elem = type_of(self.dtype)
        return fixed(elem, self.shape) if self.size and elem is not None else array(elem, self.ndim)

    __treadle_type__ = type

    def __repr__(self) -> str:
        return f"fixedarray(dtype={getattr(self.dtype, '__name__', repr(self.dtype))}, shape={self.shape})"


class Reference:
    """What ``wp.ref[dtype]`` annotates: a parameter that stands for the caller's variable or element."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: Any):
        self.dtype = dtype

    @property
    def value_type(self) -> Any:
        """The annotation of the value, as ``dtype``."""
        return self.dtype

    @property
    def __treadle_type__(self) -> Type | None:
        return type_of(self.dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash((Reference, self.dtype))

    def __repr__(self) -> str:
        return f"wp.ref[{getattr(self.dtype, '__name__', repr(self.dtype))}]"


class ref:
    """A parameter of a function that the caller passes by reference: what the function assigns to it, the caller has.

    The argument is a variable, an element of an array, a component or a field. It is read before the call and written
    after it, also when the program is differentiated (*beyond Warp*). Kernels take no references.

    >>> import treadle as wp
    >>> @wp.func
    ... def swap(a: wp.ref[float], b: wp.ref[float]):
    ...     a, b = b, a
    >>> @wp.kernel
    ... def turn(x: wp.array(dtype=float)):
    ...     swap(x[0], x[1])
    >>> x = wp.array([1.0, 2.0], dtype=float)
    >>> wp.launch(turn, dim=1, inputs=[x])
    >>> print(x)
    [2. 1.]
    """

    def __class_getitem__(cls, dtype: Any) -> Reference:
        return Reference(dtype)


_PYTHON: dict[Any, Type] = {bool: b1, int: i32, float: f32, str: STR}
_NUMPY: dict[str, Type] = {SCALAR_NAMES[t]: t for t in SCALARS}
_OPEN = (typing.Any, typing.Callable, collections.abc.Callable)  # what any value, or any function, may stand for


def type_of(annotation: Any, namespace: Mapping[str, Any] | None = None) -> Type | None:
    """The type that ``annotation`` means; None where it leaves the type open (``Any``, a type variable, ``Callable``).

    Args:
        annotation: a type of the language or its host class, ``float``, ``int``, ``bool``, a struct class, an array
            annotation, ``tuple[…]``, a NumPy scalar class, or the text of any of these.
        namespace: the names that text may use.

    Raises:
        KernelTypeError: the annotation means no type.
        KernelNameError: text with a name that is not in ``namespace``.

    >>> type_of(float), type_of(tuple[int, bool])
    (f32, (i32, bool))
    """
    for _ in range(2):  # text may be postponed once more
        if isinstance(annotation, str):
            annotation = evaluated(annotation, namespace)
    if isinstance(annotation, ArrayAnnotation):
        if annotation.ndim is Any:
            return None
        if annotation.ndim not in range(1, MAX_DIMS + 1):
            raise KernelTypeError(f"an array has 1 to {MAX_DIMS} dimensions, not {annotation.ndim}")
        return array(type_of(annotation.dtype, namespace), annotation.ndim, annotation.family)
    if isinstance(annotation, type):
        found = _of_class(annotation)
        if found is not None:
            return found
    if isinstance(annotation, Type):
        return annotation
    if _hashable(annotation) and annotation in _OPEN:
        return None
    if isinstance(annotation, Reference):
        return type_of(annotation.dtype, namespace)
    found = getattr(annotation, "__treadle_type__", None)
    if isinstance(found, Type):
        return found
    if getattr(annotation, "__treadle_open__", False) or isinstance(annotation, typing.TypeVar):
        return None
    origin = typing.get_origin(annotation)
    if origin is tuple and Ellipsis in typing.get_args(annotation):
        return None  # any number of items
    if origin is tuple:
        items = [type_of(item, namespace) for item in typing.get_args(annotation)]
        return None if None in items else tuple_of(*items)
    if origin in _OPEN:
        return None
    if origin in (typing.Union, types.UnionType):
        what = "Union type annotations are only supported at Python scope: in kernels a value has one type"
        raise KernelTypeError(what, hint="annotate it with Any, or write an overload for each type")
    if isinstance(annotation, np.dtype) and annotation.name in _NUMPY:
        return _NUMPY[annotation.name]
    raise KernelTypeError(f"{_shown(annotation)} is no type of the kernel language", hint=_hint(annotation))


def _of_class(c: type) -> Type | None:
    found = _PYTHON.get(c) or getattr(c, "__treadle_type__", None)
    if isinstance(found, Type):
        return found
    return _NUMPY.get(np.dtype(c).name) if issubclass(c, np.generic) else None


def evaluated(text: str, namespace: Mapping[str, Any] | None) -> Any:
    """The value of the annotation ``text``, a Python expression."""
    from ..base.errors import KernelNameError

    try:
        return eval(text, {**(namespace or {})})  # the user's own annotation, as Python would evaluate it
    except NameError as error:
        raise KernelNameError(f"annotation {text!r}: {error}") from None
    except SyntaxError:
        raise KernelTypeError(f"annotation {text!r} is no Python expression") from None
    except Exception as error:  # whatever the user's expression raises
        raise KernelTypeError(f"annotation {text!r}: {type(error).__name__}: {error}") from error


def _hashable(x: Any) -> bool:
    return getattr(type(x), "__hash__", None) is not None and not isinstance(x, tuple)


def _shown(annotation: Any) -> str:
    return getattr(annotation, "__qualname__", None) or repr(annotation)


def _hint(annotation: Any) -> str:
    if isinstance(annotation, type) and hasattr(annotation, "__class_getitem__"):
        return "an array needs its element type, as in wp.array(dtype=float)"
    if isinstance(getattr(annotation, "type", None), View | Indexed):
        return "an array is a value, no annotation; write wp.array(dtype=…)"
    if annotation is None:
        return "a parameter needs a type; None is none"
    if isinstance(annotation, bool | int | float):
        return f"write its type, {spell(_PYTHON[type(annotation)])}"
    if isinstance(annotation, type):
        return f"is {annotation.__name__} meant to be a @wp.struct?"
    return ""


__all__ = ["ArrayAnnotation", "Reference", "evaluated", "fixedarray", "ref", "subscripted", "type_of"]
