"""``warp._src.autograd``."""

from .answers import answers

__getattr__ = answers(__name__, {}, {}, (".autograd",))
