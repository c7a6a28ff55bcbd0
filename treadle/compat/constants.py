"""``warp._src.constants``."""

from .answers import answers

__getattr__ = answers(__name__, {}, {})
