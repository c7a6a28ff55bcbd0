"""``warp._src.lang``."""

from .answers import answers

__getattr__ = answers(__name__, {}, {})
