"""``warp._src.torch``: arrays, types, devices and streams of PyTorch."""

from .answers import answers

_ROOMS = {
    "interop.torch_arrays": "to_torch from_torch dtype_to_torch dtype_from_torch device_to_torch device_from_torch "
                            "stream_to_torch stream_from_torch",
}  # fmt: skip

__getattr__ = answers(__name__, _ROOMS, {})
