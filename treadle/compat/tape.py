"""``warp._src.tape``."""

from .answers import answers

__getattr__ = answers(__name__, {}, {})
