"""DLPack: arrays for other libraries and from them, without a copy. Its C structures are read here and written by
NumPy.

A *capsule* is a Python object around a ``DLManagedTensor`` (https://dmlc.github.io/dlpack/latest/c_api.html). Whoever
takes the tensor out renames the capsule, and calls the tensor's deleter when its memory is no longer needed.
"""

from __future__ import annotations

import ctypes
import struct
import weakref
from functools import cache
from typing import Any

from ..base.errors import ArrayError
from ..types.core import SCALARS, Scalar, Struct, bf16
from ..types.spelling import spell
from .adopt import adopt, dense_strides
from .array import array
from .device import Device, exchanged
from .elements import Element, element_of

CPU = 1  # kDLCPU
HOSTS = frozenset({CPU, 3, 11, 13})  # and host memory that a GPU sees: kDLCUDAHost, kDLROCMHost, kDLCUDAManaged
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}  # DLDataTypeCode
_BRAIN = 4  # of bfloat16
_TENSOR = struct.Struct("<QiiiBBHQQQ")  # data, device and its number, ndim, code, bits, lanes, shape, strides, offset
_TYPE, _PLACE = 20, 8  # where code and bits stand, and where the device does
_DELETER, _VERSIONED_DELETER, _VERSIONED_TENSOR = 56, 16, 32
_FLAGS, _READ_ONLY = 24, 1  # where flags stand in a tensor of a version, and DLPACK_FLAG_BITMASK_READ_ONLY
_USED = {b"dltensor": b"used_dltensor", b"dltensor_versioned": b"used_dltensor_versioned"}


def _code(t: Scalar) -> tuple[int, int]:
    """Code and bits of a scalar type in DLPack's words."""
    return _BRAIN if t is bf16 else _CODES[t.kind], t.bits


_ELEMENTS = {_code(t): element_of(t) for t in SCALARS}


@cache
def _capsules() -> tuple[Any, Any, Any]:
    """CPython's functions on capsules: the name of one, the pointer in it, and giving it a name."""
    api = ctypes.pythonapi
    name, pointer, rename = api.PyCapsule_GetName, api.PyCapsule_GetPointer, api.PyCapsule_SetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return name, pointer, rename


# From arrays -----------------------------------------------------------------------------------------------------


def to_dlpack(wp_array: array) -> Any:
    """A DLPack capsule that shares the memory of an array. Components of vectors and matrices are its last dimensions.
    That of a read-only array says so, by the version of DLPack that can (1.0).

    Raises:
        ArrayError: an array of structs, or strides that are no multiples of the scalar's size.

    >>> import treadle as wp
    >>> a = wp.zeros(4, dtype=wp.vec3)
    >>> wp.from_dlpack(wp.to_dlpack(a)).shape
    (4, 3)
    """
    return export(wp_array, max_version=(1, 0) if wp_array.read_only else None)


def export(a: array, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: Any = None,
           copy: bool | None = None) -> Any:  # fmt: skip
    """What ``array.__dlpack__`` gives; the arguments are those of Python's array API.

    Raises:
        TypeError: a stream, where the array lies on a CPU, which has none that others know.
        BufferError: the tensor is wanted on another device; the CPU gets a copy, where that is allowed.
        ArrayError: as for :func:`to_dlpack`.
    """
    where, own = a.device, a.__dlpack_device__()
    wanted = own if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
    away = wanted != own and not (wanted[0] == own[0] == CPU)
    if away and (wanted[0] != CPU or copy is False):
        raise BufferError(f"the array lies on {where}, not on DLPack's device {wanted}")
    if not away:
        where.hand_over(stream)
    if isinstance(a._element.type, Struct):
        raise ArrayError(f"DLPack has no type for the struct {spell(a._element.type)}")
    there = where.queue is not None and not away
    if there and copy:
        a = a.__deepcopy__({})
    rows = a._raw() if there else a._rows().copy() if copy else a._rows()
    if there and a.read_only:
        rows.flags.writeable = False
    options = {} if max_version is None or max_version[0] < 1 else {"max_version": max_version}
    try:
        made = _written(rows, options)
    except BufferError as error:
        hint = "ask for max_version=(1, 0), or share a copy: wp.clone(a)" if a.read_only else ""
        raise ArrayError(f"DLPack cannot describe {a!r}: {error}", hint=hint) from None
    if a._element.halves:
        _declare(made, _TYPE, "BB", *_code(bf16))
    if there:
        _declare(made, _PLACE, "ii", *own)
    return made


def _written(rows: Any, options: dict[str, Any]) -> Any:
    """NumPy's capsule; an older NumPy, which knows no versions of it, gives its only one."""
    try:
        return rows.__dlpack__(**options)
    except TypeError:
        return rows.__dlpack__()


def _declare(capsule: Any, field: int, kinds: str, *values: int) -> None:
    """Let the tensor in ``capsule`` be something else: other scalars, or memory of another device. NumPy has written
    it, which knows neither."""
    name, pointer, _ = _capsules()
    kind = name(capsule)
    at = pointer(capsule, kind) + (_VERSIONED_TENSOR if kind == b"dltensor_versioned" else 0) + field
    packed = struct.pack(f"<{kinds}", *values)
    ctypes.memmove(at, packed, len(packed))


# To arrays -------------------------------------------------------------------------------------------------------


class _Taken:
    """A tensor that was taken out of its capsule; its deleter is called when this goes."""

    __slots__ = ("__weakref__",)

    def __init__(self, tensor: int, deleter: int):
        if deleter:
            weakref.finalize(self, ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(deleter), tensor).atexit = False


def from_dlpack(source: Any, dtype: Any = None, hint: Any = None) -> array:
    """An array that shares the memory of a DLPack capsule, or of an object that gives one.

    Args:
        source: an array of PyTorch, JAX, NumPy and so on, or a capsule.
        dtype: the element type; the tensor's scalar if left out. Of vectors and matrices the components are the last
            dimensions of the tensor.
        hint: accepted for compatibility.

    Raises:
        TypeError: no capsule comes of it, or the memory is of a kind of device that is not known.
        ValueError: that device is not here.
        ArrayError: the tensor holds something else than ``dtype``.

    >>> import numpy as np
    >>> import treadle as wp
    >>> rows = np.zeros((2, 3), dtype=np.float32)
    >>> wp.from_dlpack(rows, dtype=wp.vec3).fill_(1.0)
    >>> rows.tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    capsule = source
    if hasattr(source, "__dlpack__"):
        where = _device(*source.__dlpack_device__()) if hasattr(source, "__dlpack_device__") else None
        number = None if where is None else where.stream_number()
        capsule = _given(source, {} if number is None else {"stream": number})
    name, pointer, rename = _capsules()
    kind = name(capsule) if type(capsule).__name__ == "PyCapsule" else None
    if kind not in _USED:
        what = type(capsule).__name__ if kind is None else f"one that was used before ({kind.decode()})"
        raise TypeError(f"Expected a valid DLPack capsule, got {what}")
    managed = pointer(capsule, kind)
    versioned = kind == b"dltensor_versioned"
    found = _read(managed + (_VERSIONED_TENSOR if versioned else 0))
    (deleter,) = struct.unpack("<Q", ctypes.string_at(managed + (_VERSIONED_DELETER if versioned else _DELETER), 8))
    flags = int.from_bytes(ctypes.string_at(managed + _FLAGS, 8), "little") if versioned else 0
    rename(capsule, _USED[kind])
    *facts, where = found
    return adopt(*facts, dtype, _Taken(managed, deleter), where, bool(flags & _READ_ONLY))


def _given(source: Any, options: dict[str, Any]) -> Any:
    """The capsule of an object: of a version that tells whether the memory may be changed, where that is known."""
    try:
        return source.__dlpack__(max_version=(1, 0), **options)
    except TypeError:
        return source.__dlpack__(**options)


def _device(kind: int, number: int) -> Device | None:
    """The device that DLPack's words mean; None: the host."""
    if kind in HOSTS:
        return None
    found = exchanged(int(kind), int(number))
    if found is None:
        raise TypeError(f"Unsupported source device for DLPack: device_type={int(kind)}, device_id={number}")
    return found


def _read(at: int) -> tuple[int, tuple[int, ...], tuple[int, ...], Element, Device | None]:
    """Address, shape, strides in bytes, scalar element and device of the tensor at an address."""
    data, device, number, ndim, code, bits, lanes, shape_at, strides_at, offset = _TENSOR.unpack(
        ctypes.string_at(at, _TENSOR.size)
    )
    where = _device(device, number)
    scalar = _ELEMENTS.get((code, bits)) if lanes == 1 else None
    if scalar is None:
        raise ArrayError(f"no scalar type is like DLPack's of code {code} with {bits} bits and {lanes} lanes")
    shape = _numbers(shape_at, ndim)
    if strides_at:
        strides = tuple([n * scalar.size for n in _numbers(strides_at, ndim)])
    else:
        strides = dense_strides(shape, scalar.size)
    return (data or 0) + offset, shape, strides, scalar, where


def _numbers(at: int, count: int) -> tuple[int, ...]:
    return struct.unpack(f"<{count}q", ctypes.string_at(at, 8 * count))


__all__ = ["CPU", "HOSTS", "export", "from_dlpack", "to_dlpack"]
