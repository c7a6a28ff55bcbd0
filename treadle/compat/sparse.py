"""``warp._src.sparse``."""

from .answers import answers

__getattr__ = answers(__name__, {}, {}, (".sparse",))
