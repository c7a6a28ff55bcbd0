"""PyTorch's tensors as arrays and arrays as tensors, over the same memory; dtypes, devices and streams of both."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from ..base.errors import ArrayError, LaunchTypeError
from ..runtime import capture
from ..runtime.adopt import adopt, remember
from ..runtime.array import array
from ..runtime.device import Device, get_device
from ..runtime.elements import Element, element, element_of
from ..runtime.fast import twin
from ..runtime.streams import Stream, get_stream
from ..types.core import SCALARS, Scalar, Struct
from ..types.spelling import spell
from .extras import torch

_NAMES = {"bool": "bool", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
          **{f"{kind}{bits}": f"{word}{bits}" for kind, word in (("i", "int"), ("u", "uint"))
             for bits in (8, 16, 32, 64)}}  # fmt: skip
_SIGNED = {"u16": "int16", "u32": "int32", "u64": "int64"}  # what PyTorch computes with where it hardly knows unsigned


@cache
def _elements() -> dict[Any, Element]:
    """The scalar elements by PyTorch's dtypes."""
    found = {getattr(torch(), _NAMES[t.name], None): element_of(t) for t in SCALARS}
    found.pop(None, None)
    return found


def dtype_to_torch(warp_dtype: Any) -> Any:
    """PyTorch's dtype for a scalar type; for unsigned integers of more than 8 bits the signed one of that size, with
    which PyTorch can compute.

    Raises:
        TypeError: it is no scalar type.
    """
    t = element(warp_dtype).type
    if not isinstance(t, Scalar):
        raise TypeError(f"PyTorch has no dtype for {spell(t)}")
    return getattr(torch(), _SIGNED.get(t.name) or _NAMES[t.name])


def dtype_from_torch(torch_dtype: Any) -> Any:
    """The scalar type for PyTorch's dtype.

    Raises:
        TypeError: there is none.
    """
    return _element_of(torch_dtype).cls


def _element_of(torch_dtype: Any) -> Element:
    try:
        return _elements()[torch_dtype]
    except KeyError:
        raise TypeError(f"no scalar type is like PyTorch's {torch_dtype}") from None


def device_to_torch(warp_device: Any) -> str:
    """PyTorch's name for a device."""
    return str(get_device(warp_device))


def device_from_torch(torch_device: Any) -> Device:
    """The device that PyTorch's device, or its name, means.

    Raises:
        ValueError: there is no such device here.
    """
    return get_device(str(torch_device))


def stream_from_torch(stream_or_device: Any = None) -> Stream:
    """The stream for one of PyTorch's, or for PyTorch's current one of a device; a CPU has one queue of work. Without
    an argument it is that of PyTorch's current GPU, or of the CPU where PyTorch has none."""
    where = getattr(stream_or_device, "device", stream_or_device)
    if where is None:
        where = f"cuda:{torch().cuda.current_device()}" if torch().cuda.is_available() else "cpu"
    device: Any = device_from_torch(where)
    if not device.is_cuda:
        return get_stream(device)
    given = hasattr(stream_or_device, "cuda_stream")
    return device.external_stream(stream_or_device.cuda_stream if given else _current(device))


def stream_to_torch(stream_or_device: Any = None) -> Any:
    """PyTorch's stream for a stream, or for the current one of a device."""
    device = get_device(getattr(stream_or_device, "device", stream_or_device))
    if not device.is_cuda:
        return torch().cpu.current_stream()
    stream = stream_or_device if isinstance(stream_or_device, Stream) else get_stream(device)
    return torch().cuda.ExternalStream(stream.cuda_stream, device=str(device))


def from_torch(t: Any, dtype: Any = None, requires_grad: bool | None = None, grad: Any = None,
               return_ctype: bool = False, retain_grad: bool = False) -> Any:  # fmt: skip
    """An array over the memory of a tensor, strided and transposed ones included.

    Args:
        t: the tensor; it is kept as long as the array.
        dtype: the element type; the tensor's scalar if left out. Of vectors and matrices the components are the last
            dimensions of the tensor.
        requires_grad: whether the array has a gradient; as the tensor if None. It is the memory of ``t.grad``, which
            is made, of zeros, where there is none.
        grad: a tensor or array that holds the gradient.
        return_ctype: give the facts as a C structure with ``data``, ``grad``, ``ndim``, ``shape``, ``strides``
            instead, which keeps nothing alive.
        retain_grad: whether a tape keeps the gradient of the array although it is no input.

    Raises:
        ArrayError, TypeError: the elements cannot be seen as ``dtype``.

    >>> import treadle as wp
    >>> t = torch().zeros(4, 3)
    >>> wp.from_torch(t, dtype=wp.vec3).fill_(2.0)
    >>> t.sum().item()
    24.0
    """
    try:
        like = _LIKE.get((dtype, t.dtype, t.shape, t.stride()))
    except (AttributeError, RuntimeError, TypeError):
        _refuse(t)
        raise
    usual = like is not None and t.is_cpu and not t.is_neg() and not t._is_view()
    made = _TWIN[0](like, t, t.data_ptr()) if usual else _from_torch_slowly(t, dtype)
    if grad is not None:
        made.grad = grad if isinstance(grad, array) else from_torch(grad, dtype, requires_grad=False)
    elif requires_grad or (requires_grad is None and t.requires_grad):
        if not t.is_leaf:
            raise ArrayError(
                "the tensor is a result of PyTorch, whose gradient it does not keep",
                hint="pass t.detach(), or requires_grad=False, or wrap the launch by wp.torch_function",
            )
        if t.grad is None:
            t.grad = torch().empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device).zero_()
        made.grad = from_torch(_gradient_like(t), dtype, requires_grad=False)
    if retain_grad:
        made.retain_grad = True
    return _c_array(made) if return_ctype else made


_LIKE: dict[Any, array] = {}  # arrays without memory, for all layouts that were met lately
_TWIN: list[Any] = []  # what makes arrays like those; filled by the first


def _refuse(t: Any) -> None:
    """Say of what is no tensor with strides why it cannot be an array."""
    if not isinstance(t, torch().Tensor):
        raise TypeError(f"wp.from_torch takes a tensor of PyTorch, not {type(t).__name__}")
    if t.layout is not torch().strided:
        raise ArrayError(f"the tensor's layout is {t.layout}; an array takes memory with strides",
                         hint="pass t.to_dense(), or its indices and its values")  # fmt: skip


def _from_torch_slowly(t: Any, dtype: Any) -> array:
    """The first array of its layout, and views of others."""
    _refuse(t)
    scalar, where = _element_of(t.dtype), get_device("cpu") if t.is_cpu else _home(t)
    if t.is_neg():
        t = t.resolve_neg()
    shape, size, strides = (*t.shape,), scalar.size, t.stride()
    made = adopt(t.data_ptr(), shape, tuple([n * size for n in strides]), scalar, dtype, t, where)
    if t.is_cpu and not t._is_view():
        remember(_LIKE, (dtype, t.dtype, shape, strides), made)
        _TWIN[:] = [twin()]
    if t._is_view():
        made._capacity = t.untyped_storage().nbytes() - t.storage_offset() * size
    return made


def _home(t: Any) -> Device:
    """The device of a tensor that does not lie on the CPU."""
    if not t.is_cuda:
        raise ArrayError(f"the tensor lies on {t.device}; arrays lie on the CPU or on GPUs of NVIDIA")
    device: Any = device_from_torch(t.device)
    device.follow(_current(device), device.stream.handle)
    return device


def _current(device: Any) -> int:
    """The handle of PyTorch's current stream of a GPU."""
    return torch().cuda.current_stream(device.ordinal).cuda_stream


def _gradient_like(t: Any) -> Any:
    """The gradient of ``t``; where its elements lie otherwise than those of ``t``, it is moved."""
    if t.grad.stride() != t.stride():
        t.grad = torch().empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device).copy_(t.grad)
    return t.grad


class _CArray(ctypes.Structure):
    """Facts of an array as C has them."""

    _fields_ = [
        ("data", ctypes.c_uint64), ("grad", ctypes.c_uint64), ("shape", ctypes.c_int64 * 4),
        ("strides", ctypes.c_int64 * 4), ("ndim", ctypes.c_int32),
    ]  # fmt: skip


def _c_array(a: array) -> _CArray:
    four = ctypes.c_int64 * 4
    grad = 0 if a.grad is None else a.grad._address
    return _CArray(a._address, grad, four(*a.shape), four(*a.strides), a.ndim)


def to_torch(a: array, requires_grad: bool | None = None) -> Any:
    """A tensor over the memory of an array. Components of vectors and matrices are its last dimensions.

    Args:
        a: the array, strided ones included; its memory lives as long as the tensor.
        requires_grad: whether the tensor has the array's gradient as ``grad``; as the array if None.

    Raises:
        ArrayError: an array of structs, or one with negative strides, which PyTorch does not know.

    >>> import treadle as wp
    >>> a = wp.zeros((2, 3), dtype=float)
    >>> wp.to_torch(a.transpose()).shape
    torch.Size([3, 2])
    """
    try:  # the usual one, quickly
        if a._grad is None and not requires_grad and not capture.active:
            rows = getattr(a, "_seen", None)
            if rows is None and a._memory is not None and a._element.plain and a.device.queue is None:
                rows = a._seen = a._raw()
            if rows is not None:
                return _FROM_NUMPY[0](rows)
    except (AttributeError, IndexError, TypeError, ValueError):
        pass  # what it is, is found out below
    made = _tensor(a)
    if requires_grad or (requires_grad is None and a._grad is not None):
        made.requires_grad = True
        if a._grad is not None:
            made.grad = _tensor(a._grad)
    return made


_FROM_NUMPY: list[Any] = []


def _loaded() -> Any:
    _FROM_NUMPY.append(torch().from_numpy)
    return _FROM_NUMPY[0]


def _tensor(a: array) -> Any:
    if a.device.is_cuda and not isinstance(a._element.type, Struct):
        return torch().from_dlpack(a)
    rows = a._rows()
    try:
        made = (_FROM_NUMPY[0] if _FROM_NUMPY else _loaded())(rows)
    except (TypeError, ValueError) as error:
        t = a._element.type
        if isinstance(t, Struct):
            raise ArrayError(f"PyTorch has no dtype for the struct {spell(t)}") from None
        raise ArrayError(f"PyTorch cannot share {a!r}: {error}") from None
    if a._element.halves:
        return made.view(torch().bfloat16)
    a._seen = rows
    return made


def adopted(value: Any, dtype: Any) -> array:
    """The array for a tensor that was passed to a launch, gradient included where the tensor has one. Later work of
    PyTorch's current stream begins after the launch."""
    try:
        made = from_torch(value, dtype, requires_grad=value.is_leaf and value.grad is not None)
    except ArrayError as error:
        raise LaunchTypeError(error.message) from None
    if value.is_cuda:
        made.device.lend(_current(made.device))
    return made
