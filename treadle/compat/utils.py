"""``warp._src.utils``."""

from .answers import answers

_ROOMS = {
    "lang.session": "check_p2p",
    "lang.mapping": "map_cache=KERNELS",
    "base.logs": "log_debug log_info log_warning log_error",
}  # fmt: skip

__getattr__ = answers(__name__, _ROOMS, {}, (".utils", ".types"))
