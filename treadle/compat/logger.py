"""``warp._src.logger``."""

from .answers import answers

_ROOMS = {
    "base.logs": "LOG_DEBUG LOG_INFO LOG_WARNING LOG_ERROR Logger LoggerBasic get_logger set_logger log_debug log_info "
                 "log_warning log_error _warnings_seen=_said _validate_logger=checked",
}  # fmt: skip

__getattr__ = answers(__name__, _ROOMS, {})
