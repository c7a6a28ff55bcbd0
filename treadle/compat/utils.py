"""``warp._src.utils``."""

from .answers import answers

_ROOMS = {
    "lang.session": "check_p2p",
    "base.logs": "log_debug log_info log_warning log_error",
}  # fmt: skip

_MACHINERY = {"what wp.map makes is kept with the functions it is made of": "map_cache"}

__getattr__ = answers(__name__, _ROOMS, _MACHINERY, (".utils", ".types"))
