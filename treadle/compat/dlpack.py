"""``warp._src.dlpack``: arrays by DLPack."""

from .answers import answers

_ROOMS = {"runtime.dlpack": "to_dlpack from_dlpack _from_dlpack=from_dlpack"}

__getattr__ = answers(__name__, _ROOMS, {})
