"""Arrays of a GPU for other libraries: as CUDA's array interface, and in the order of their streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .gpu import Gpu

_LEGACY = 1  # what protocols call the stream 0, since 0 might mean none


def interface(a: Any) -> dict[str, Any]:
    """The array in the words of https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html, version 3."""
    e = a._element
    inner = e.inner_steps(a.component_stride) if e.inner else ()
    found: dict[str, Any] = {
        "version": 3, "shape": a.shape + e.inner, "typestr": e.dtype.str, "data": (a._address, False),
        "strides": None if a.is_contiguous else a.strides + inner, "stream": a.device.stream.handle or _LEGACY,
    }  # fmt: skip
    if e.dtype.fields is not None:
        found["descr"] = e.dtype.descr
    return found


def hand_over(device: Gpu, stream: Any) -> None:
    """Let work of ``stream``, as DLPack numbers them, begin after all work given to the current one: None and 1 are the
    legacy stream, -1 asks for nothing."""
    if stream == -1:
        return
    if stream in (0, 2):  # 0 is ambiguous, 2 is the stream of a thread that CUDA's runtime has
        device.stream.synchronize()
        return
    handle = 0 if stream in (None, _LEGACY) else int(stream)
    if handle != device.stream.handle:
        device.external_stream(handle).wait_stream(device.stream)


def number_of(device: Gpu) -> int:
    """What DLPack calls the current stream."""
    return device.stream.handle or _LEGACY
