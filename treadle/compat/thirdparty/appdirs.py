"""``warp._src.thirdparty.appdirs``."""

from ..answers import answers

_ROOMS = {"base.folders": "user_cache_dir"}

__getattr__ = answers(__name__, _ROOMS, {})
