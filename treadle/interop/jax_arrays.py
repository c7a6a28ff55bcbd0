"""JAX's arrays as arrays and arrays as JAX's, over the same memory; dtypes and devices of both."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import treadle as wp

from ..base.errors import ArrayError
from ..runtime import capture
from ..runtime.adopt import MOST, adopt, remember
from ..runtime.array import array
from ..runtime.device import Device
from ..runtime.dlpack import from_dlpack
from ..runtime.elements import Element, element, element_of
from ..runtime.fast import twin
from ..types.core import SCALARS, Scalar, bf16
from ..types.numpy_types import numpy_dtype, type_of_numpy
from ..types.spelling import spell
from .extras import jax


def scalar_dtype(t: Scalar) -> np.dtype:
    """JAX's dtype for a scalar type, as NumPy has it."""
    return np.dtype(jax().numpy.bfloat16) if t is bf16 else numpy_dtype(t)


def dtype_to_jax(warp_dtype: Any) -> Any:
    """JAX's scalar class for a scalar type.

    Raises:
        TypeError: it is no scalar type.
    """
    t = element(warp_dtype).type
    if not isinstance(t, Scalar):
        raise TypeError(f"JAX has no dtype for {spell(t)}")
    return getattr(jax().numpy, scalar_dtype(t).name if t.kind != "b" else "bool_")


def dtype_from_jax(jax_dtype: Any) -> Any:
    """The scalar type for JAX's dtype.

    Raises:
        TypeError: there is none.
    """
    t = type_of_numpy(jax().numpy.dtype(jax_dtype))
    if t is None:
        raise TypeError(f"no scalar type is like JAX's {jax_dtype}")
    return element_of(t).cls


def current_device() -> Any:
    """The device of this process that JAX computes on where none is named."""
    found = jax().config.jax_default_device
    if found is None or isinstance(found, str):
        return jax().local_devices(backend=found)[0]
    return found


def first_gpu() -> Device:
    """The GPU that code for JAX's is made for: that which JAX computes on, or the first.

    Raises:
        DeviceError: there is none; the message says what is missing.
    """
    here = current_device()
    return device_from_jax(here) if here.platform in ("gpu", "cuda") else wp.get_cuda_device(0)


def device_to_jax(warp_device: Any = None) -> Any:
    """JAX's device of this process for a device.

    Raises:
        RuntimeError: JAX has none.
    """
    where = wp.get_device(warp_device)
    return _cuda_device(where) if where.is_cuda else jax().local_devices(backend="cpu")[0]


def _cuda_device(where: Device) -> Any:
    for each in jax().local_devices(backend="cuda"):
        if each.local_hardware_id == where.ordinal:
            return each
    raise RuntimeError(f"{where} is not available to JAX")


def device_from_jax(jax_device: Any) -> Device:
    """The device for one of JAX's. All CPU devices of JAX are the one CPU.

    Raises:
        RuntimeError: it belongs to another process, or there is no such device here.
    """
    if jax_device.platform == "cpu":
        return wp.get_device("cpu")
    if jax_device.platform not in ("gpu", "cuda"):
        raise RuntimeError(f"no device is like JAX's {jax_device}")
    if jax_device.process_index != jax().process_index():
        raise RuntimeError(f"JAX's {jax_device} belongs to process {jax_device.process_index}, not to this one")
    return wp.get_cuda_device(jax_device.local_hardware_id)


@cache
def _formats() -> dict[str, Element]:
    """Scalar elements by what Python's buffers call them."""
    found = {numpy_dtype(t).char: element_of(t) for t in SCALARS if t is not bf16}
    return {f"{order}{char}": e for char, e in found.items() for order in ("", "=")}


def from_jax(jax_array: Any, dtype: Any = None) -> array:
    """An array over the memory of a JAX array, which is kept as long as the array.

    JAX takes its arrays for values that nobody changes: an array made here is read-only (``array.read_only``).

    Args:
        jax_array: an array of one device.
        dtype: the element type; the array's scalar if left out. Of vectors and matrices the components are the last
            dimensions.

    Raises:
        ArrayError, TypeError: the elements cannot be seen as ``dtype``.

    >>> import treadle as wp
    >>> wp.from_jax(jax().numpy.ones((2, 3)), dtype=wp.vec3).list()
    [vec3f([1.0, 1.0, 1.0]), vec3f([1.0, 1.0, 1.0])]
    """
    try:  # the buffer keeps JAX from giving the memory to somebody else, also where a function may have it
        rows = memoryview(jax_array)
        of, kind, like, make = _LATEST[rows.shape]
        if rows.format != kind or dtype is not of or not rows.c_contiguous:
            like = _LIKE[dtype, rows.format, rows.shape, rows.c_contiguous]
            _LATEST[rows.shape] = dtype, rows.format, like, make
        return make(like, rows)
    except (TypeError, KeyError, BufferError, ValueError):
        return _from_jax_slowly(jax_array, dtype)


adopted = from_jax  # what a launch makes of an array of JAX

_LIKE: dict[Any, array] = {}  # arrays without memory, for all dense layouts that were met lately
# The latest of each shape, by dtype and format, and what makes arrays like it: to compare takes less than to look up.
_LATEST: dict[Any, tuple[Any, str, array, Any]] = {}


def _from_jax_slowly(jax_array: Any, dtype: Any) -> array:
    """The first array of its layout. By DLPack: bfloat16, which Python's buffers do not know, and what is no array of
    JAX."""
    try:
        rows = memoryview(jax_array)
        scalar, address = _formats()[rows.format], jax_array.unsafe_buffer_pointer()
    except (TypeError, KeyError, BufferError, ValueError, AttributeError):
        return _by_dlpack(jax_array, dtype)
    made = adopt(address, rows.shape, rows.strides, scalar, dtype, rows, frozen=rows.readonly)
    if rows.c_contiguous:
        remember(_LIKE, (dtype, rows.format, rows.shape, True), made)
        if len(_LATEST) >= MOST:
            _LATEST.clear()
        _LATEST[rows.shape] = dtype, rows.format, _LIKE[dtype, rows.format, rows.shape, True], twin()
    return made


def _by_dlpack(jax_array: Any, dtype: Any) -> array:
    if isinstance(jax_array, jax().core.Tracer):
        raise ArrayError(
            "inside a function that JAX traces an array has no memory yet",
            hint="launch through wp.jax_kernel or wp.jax_callable there",
        )
    if not isinstance(jax_array, jax().Array):
        raise TypeError(f"wp.from_jax takes an array of JAX, not {type(jax_array).__name__}")
    if len(jax_array.devices()) > 1:
        raise ArrayError("the array lies on several devices of JAX", hint="take one of its addressable_shards")
    return from_dlpack(jax_array, dtype)


def to_jax(warp_array: array) -> Any:
    """A JAX array over the memory of an array, which lives as long as the JAX array.

    Components of vectors and matrices are its last dimensions. What JAX cannot lay out so (strides with gaps, elements
    that do not begin at its alignment) it copies; 64-bit types become 32-bit ones unless ``jax_enable_x64`` is set.

    Raises:
        TypeError: it is no array of treadle.
        ArrayError: an array of structs.

    >>> import treadle as wp
    >>> to_jax(wp.zeros(2, dtype=wp.vec3)).shape
    (2, 3)
    """
    rows = None if capture.active else getattr(warp_array, "_seen", None)
    if rows is not None and rows.flags.carray:  # dense, and writeable
        return (_DLPACK[0] if _DLPACK else _loaded())(rows)
    e = getattr(warp_array, "_element", None)
    if e is None:
        raise TypeError(f"wp.to_jax takes an array of treadle, not {type(warp_array).__name__}")
    if warp_array.read_only:  # JAX changes nothing, but asks in words of DLPack that have none for it
        warp_array = warp_array._as_if_writeable()
    far = e.halves or warp_array.device.is_cuda
    rows = warp_array.contiguous() if far else np.ascontiguousarray(seen := warp_array._rows())
    try:
        made = (_DLPACK[0] if _DLPACK else _loaded())(rows)
    except (BufferError, ArrayError):
        raise ArrayError(f"JAX has no dtype for {spell(e.type)}") from None
    if not far and rows is seen:
        warp_array._seen = seen
    return made


_DLPACK: list[Any] = []


def _loaded() -> Any:
    _DLPACK.append(jax().dlpack.from_dlpack)
    return _DLPACK[0]
