"""Functions that make arrays: ``zeros``, ``ones``, ``full``, ``empty`` and their ``_like`` forms, ``from_numpy``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.logs import log_warning
from ..types.core import Matrix, Scalar, Vector, b1, f32, i32
from .array import allocate, allocate_with, array
from .array_views import forward, normal_shape
from .device import get_device
from .elements import Element, element, element_of, element_of_numpy
from .shaped import Shaped


def _shape(shape: Any, more: dict[str, Any]) -> tuple[int, ...]:
    """The shape given, under its old name ``n`` as well."""
    if shape is None:
        shape = more.pop("n", None)
    if more and more.keys() != {"strides"}:
        raise TypeError(f"unknown argument {next(k for k in more if k != 'strides')!r}")
    if type(shape) is int and shape >= 0:
        return (shape,)
    if shape is None:
        raise TypeError("a shape is needed")
    return normal_shape(shape)


def empty(shape: Any = None, dtype: Any = float, device: Any = None, requires_grad: bool = False, pinned: bool = False,
          retain_grad: bool = False, **kwargs: Any) -> array:  # fmt: skip
    """An array whose memory is left as it is.

    Args:
        shape: an int or up to four ints.
        dtype: element type.
        device: where it lies; the current device if left out.
        requires_grad: whether a gradient (of zeros) is kept.
        pinned: whether GPUs shall reach the memory, which is the host's, by themselves: copies to and from them need
            not wait then.
        retain_grad: whether a tape keeps its gradient although it is no input.
        strides: bytes from one element to the next in each dimension; row-major if left out.

    >>> import treadle as wp
    >>> wp.empty((2, 3), dtype=wp.vec3).shape
    (2, 3)
    """
    return _made(_shape(shape, kwargs), dtype, device, requires_grad, retain_grad, False, kwargs, pinned)


def zeros(shape: Any = None, dtype: Any = float, device: Any = None, requires_grad: bool = False, pinned: bool = False,
          retain_grad: bool = False, **kwargs: Any) -> array:  # fmt: skip
    """An array of zeros; arguments as for :func:`empty`. Large ones cost memory only where they are written.

    >>> import treadle as wp
    >>> wp.zeros(3, dtype=int).numpy().tolist()
    [0, 0, 0]
    """
    return _made(_shape(shape, kwargs), dtype, device, requires_grad, retain_grad, True, kwargs, pinned)


# In a kernel the names mean the builtins: an array of the thread's own.
zeros.__treadle_builtin__ = "zeros"
empty.__treadle_builtin__ = "empty"


def _made(shape: tuple[int, ...], dtype: Any, device: Any, requires_grad: bool, retain_grad: bool, zeroed: bool,
          more: dict[str, Any], pinned: bool = False) -> array:  # fmt: skip
    if more:
        steps = forward(more["strides"])
        made = allocate_with(element(dtype), shape, get_device(device), steps, zeroed=zeroed, pinned=pinned)
        made.requires_grad = requires_grad
    else:
        made = allocate(element(dtype), shape, get_device(device), requires_grad, zeroed, pinned)
    if retain_grad:
        made.retain_grad = True
    return made


def full(shape: Any = None, value: Any = 0, dtype: Any = None, device: Any = None, requires_grad: bool = False,
         pinned: bool = False, retain_grad: bool = False, **kwargs: Any) -> array:  # fmt: skip
    """An array whose elements are all ``value``; without ``dtype`` the type of ``value`` decides.

    Raises:
        TypeError: ``value`` has no element type of its own and ``dtype`` is left out.

    >>> import treadle as wp
    >>> wp.full(2, 1.5).numpy().tolist()
    [1.5, 1.5]
    """
    e = _element_of_value(value) if dtype is None else element(dtype)
    made = _made(_shape(shape, kwargs), e.cls, device, requires_grad, retain_grad, False, kwargs, pinned)
    made.fill_(value)
    return made


def _element_of_value(value: Any) -> Element:
    if isinstance(value, np.generic):
        return element_of_numpy(value.dtype)
    if isinstance(value, bool):
        return element_of(b1)
    if isinstance(value, int):
        return element_of(i32)
    if isinstance(value, float):
        return element_of(f32)
    t = getattr(type(value), "__treadle_type__", None)
    if t is not None:
        return element_of(t)
    return _element_of_rows(np.asarray(value))


def _element_of_rows(rows: np.ndarray) -> Element:
    """The vector or matrix type of a sequence of numbers, as NumPy types them."""
    from ..types import core

    scalar = element_of_numpy(rows.dtype).type
    assert isinstance(scalar, Scalar)
    if rows.ndim == 1:
        return element_of(core.vector(len(rows), scalar))
    if rows.ndim == 2:
        return element_of(core.matrix(*rows.shape, scalar))
    raise TypeError(f"values of shape {rows.shape} are no element; pass dtype=")


def ones(shape: Any = None, dtype: Any = float, device: Any = None, requires_grad: bool = False, pinned: bool = False,
         retain_grad: bool = False, **kwargs: Any) -> array:  # fmt: skip
    """An array of ones, in every component; arguments as for :func:`empty`."""
    return full(shape, 1, dtype, device, requires_grad, pinned, retain_grad, **kwargs)


def _like(src: Any, device: Any, requires_grad: bool | None, retain_grad: bool, zeroed: bool,
          pinned: bool | None = None) -> array:  # fmt: skip
    if not isinstance(src, Shaped):
        src = array(src, copy=False)
    where = src.device if device is None else get_device(device)
    made = allocate(
        src._element, src.shape, where, src.requires_grad if requires_grad is None else requires_grad, zeroed,
        src.pinned if pinned is None else pinned,
    )  # fmt: skip
    if retain_grad:
        made.retain_grad = True
    return made


def empty_like(src: Any, device: Any = None, requires_grad: bool | None = None, pinned: bool | None = None,
               retain_grad: bool = False) -> array:  # fmt: skip
    """A row-major array with the shape and type of ``src``, its memory left as it is."""
    return _like(src, device, requires_grad, retain_grad, False, pinned)


def zeros_like(src: Any, device: Any = None, requires_grad: bool | None = None, pinned: bool | None = None,
               retain_grad: bool = False) -> array:  # fmt: skip
    """An array of zeros with the shape and type of ``src``."""
    return _like(src, device, requires_grad, retain_grad, True, pinned)


def full_like(src: Any, value: Any, device: Any = None, requires_grad: bool | None = None, pinned: bool | None = None,
              retain_grad: bool = False) -> array:  # fmt: skip
    """An array with the shape and type of ``src`` whose elements are all ``value``."""
    made = _like(src, device, requires_grad, retain_grad, False, pinned)
    made.fill_(value)
    return made


def ones_like(src: Any, device: Any = None, requires_grad: bool | None = None, pinned: bool | None = None,
              retain_grad: bool = False) -> array:  # fmt: skip
    """An array of ones with the shape and type of ``src``."""
    return full_like(src, 1, device, requires_grad, pinned, retain_grad)


def from_numpy(arr: np.ndarray, dtype: Any = None, shape: Any = None, device: Any = None,
               requires_grad: bool = False) -> array:  # fmt: skip
    """An array with a copy of ``arr``.

    Without ``dtype`` a two-dimensional array becomes one of vectors, a three-dimensional one of matrices.
    """
    if dtype is None:
        e = element_of_numpy(arr.dtype)
        scalar = e.type
        assert isinstance(scalar, Scalar)
        from ..types import core

        if arr.ndim == 2:
            e = element_of(core.vector(arr.shape[1], scalar))
        elif arr.ndim == 3:
            e = element_of(core.matrix(arr.shape[1], arr.shape[2], scalar))
        dtype = e.cls
    return array(arr, dtype=dtype, shape=shape, device=device, requires_grad=requires_grad)


def from_ptr(ptr: int, length: int, dtype: Any = None, shape: Any = None, device: Any = None) -> array:
    """An array over memory at an address; the same as ``wp.array(ptr=…)``, which is the newer way.

    Args:
        ptr: the address.
        length: how many elements there are; where ``shape`` is given it decides.
        dtype: the element type.
        shape: an int or up to four.

    Raises:
        TypeError: no ``dtype``.
    """
    log_warning("wp.from_ptr is the older way; write wp.array(ptr=…, shape=…, dtype=…)", DeprecationWarning)
    if dtype is None:
        raise TypeError("wp.from_ptr needs a dtype")
    return array(ptr=ptr, dtype=dtype, shape=length if shape is None else shape, device=device)


def dtype_to_numpy(dtype: Any) -> Any:
    """NumPy's scalar type for a scalar type of the language.

    >>> import treadle as wp
    >>> wp.dtype_to_numpy(wp.float32)
    <class 'numpy.float32'>
    """
    e = element(dtype)
    return e.dtype.type if isinstance(e.type, Scalar | Vector | Matrix) else e.dtype


def dtype_from_numpy(dtype: Any) -> Any:
    """The scalar type of the language for NumPy's ``dtype``; TypeError where there is none."""
    return element_of_numpy(np.dtype(dtype)).cls
