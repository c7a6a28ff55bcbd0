"""Arrays of a GPU for other libraries: as CUDA's array interface, and in the order of their streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.errors import ArrayError, DeviceError
from ..adopt import adopt, dense_strides
from ..device import device_at
from ..elements import element
from . import devices

if TYPE_CHECKING:
    from ..array import array
    from .gpu import Gpu

_LEGACY = 1  # what protocols call the stream 0, since 0 might mean none


def interface(a: Any) -> dict[str, Any]:
    """The array in the words of https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html, version 3."""
    e = a._element
    inner = e.inner_steps(a.component_stride) if e.inner else ()
    found: dict[str, Any] = {
        "version": 3, "shape": a.shape + e.inner, "typestr": e.dtype.str, "data": (a._address, a.read_only),
        "strides": None if a.is_contiguous else a.strides + inner, "stream": a.device.stream.handle or _LEGACY,
    }  # fmt: skip
    if e.dtype.fields is not None:
        found["descr"] = e.dtype.descr
    return found


def from_interface(facts: dict[str, Any], dtype: Any, owner: Any) -> array:
    """An array over the memory that another library's array interface tells of; work of ours comes after its own.

    Raises:
        ArrayError: it has a mask, or its elements cannot be seen as ``dtype``.
        DeviceError: the memory is none of a GPU that is here.
    """
    if facts.get("mask") is not None:
        raise ArrayError("an array with a mask cannot be taken over: its masked elements have no meaning")
    scalar = element(np.dtype(facts["typestr"]).type)
    shape, address = tuple(facts["shape"]), int(facts["data"][0])
    strides = facts.get("strides") or dense_strides(shape, scalar.size)
    known = devices()
    device = device_at(address) if 0 not in shape else known[0] if known else None
    if device is None:
        raise DeviceError(f"the memory at {address:#x} is none of a GPU that is here")
    stream = facts.get("stream")
    if stream is not None:
        handle = 0 if stream == _LEGACY else int(stream)
        device.follow(handle, device.stream.handle)  # type: ignore[attr-defined]
        device.lend(handle)  # type: ignore[attr-defined]
    return adopt(address, shape, tuple(strides), scalar, dtype, owner, device, bool(facts["data"][1]))


def hand_over(device: Gpu, stream: Any) -> None:
    """Let work of ``stream``, as DLPack numbers them, begin after all work given to the current one: None and 1 are the
    legacy stream, -1 asks for nothing."""
    if stream == -1:
        return
    if stream in (0, 2):  # 0 is ambiguous, 2 is the stream of a thread that CUDA's runtime has
        device.stream.synchronize()
        return
    device.follow(device.stream.handle, 0 if stream in (None, _LEGACY) else int(stream))


def number_of(device: Gpu) -> int:
    """What DLPack calls the current stream."""
    return device.stream.handle or _LEGACY
