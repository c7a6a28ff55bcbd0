"""What treadle says to its user: four levels, one logger that programs may replace, and a threshold in ``wp.config``.

A logger is anything with the methods ``debug``, ``info``, ``warning`` and ``error``; the basic one writes the first two
to standard output, gives warnings to Python's ``warnings`` and writes errors to standard error.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any, Protocol, runtime_checkable

from .config import config

LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR = 10, 20, 30, 40

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@runtime_checkable
class Logger(Protocol):
    """What a logger must have. Any object with these four methods is one; it need not inherit from this class."""

    def debug(self, message: str) -> None:
        """Say what only helps to find a fault."""

    def info(self, message: str) -> None:
        """Say what goes on."""

    def warning(self, message: str, category: type[Warning] | None = None, stacklevel: int = 1) -> None:
        """Say what is probably not meant; ``stacklevel`` as in :func:`warnings.warn`."""

    def error(self, message: str) -> None:
        """Say what went wrong."""


class LoggerBasic:
    """The logger used where the program sets none."""

    def debug(self, message: str) -> None:
        """Print ``message``."""
        print(message)

    def info(self, message: str) -> None:
        """Print ``message``."""
        print(message)

    def warning(self, message: str, category: type[Warning] | None = None, stacklevel: int = 1) -> None:
        """Give ``message`` to Python's warnings, so that the program's filters hold."""
        warnings.warn(message, category or UserWarning, stacklevel=stacklevel)

    def error(self, message: str) -> None:
        """Write ``message`` to standard error."""
        print(f"treadle error: {message}", file=sys.stderr)


_logger: Logger = LoggerBasic()
_said: set[tuple[type[Warning] | None, str]] = set()  # warnings that are given once a process


def get_logger() -> Logger:
    """The logger that receives what treadle says."""
    return _logger


def set_logger(logger: Logger | None) -> None:
    """Send what treadle says to ``logger``; None restores the basic one.

    Raises:
        TypeError: ``logger`` lacks one of the methods ``debug``, ``info``, ``warning`` and ``error``.

    >>> import treadle as wp
    >>> class Quiet:
    ...     def debug(self, message): ...
    ...     def info(self, message): ...
    ...     def warning(self, message, category=None, stacklevel=1): ...
    ...     def error(self, message): ...
    >>> with wp.ScopedLogger(Quiet()) as scope:
    ...     wp.get_logger() is scope.logger
    True
    """
    global _logger
    _logger = LoggerBasic() if logger is None else checked(logger)


def checked(logger: Any) -> Logger:
    """``logger``, if it is one."""
    if isinstance(logger, type) or not isinstance(logger, Logger):
        raise TypeError(f"a logger has the methods debug, info, warning and error; {type(logger).__name__} has not")
    return logger


class ScopedLogger:
    """``with wp.ScopedLogger(logger):`` sends what treadle says in a block to ``logger``; None means the basic one."""

    def __init__(self, logger: Logger | None):
        self.logger: Logger = LoggerBasic() if logger is None else checked(logger)

    def __enter__(self) -> ScopedLogger:
        self._saved = get_logger()
        set_logger(self.logger)
        return self

    def __exit__(self, *exc: object) -> None:
        global _logger
        _logger = self._saved


class ScopedLogLevel:
    """``with wp.ScopedLogLevel(wp.LOG_ERROR):`` sets ``wp.config.log_level`` for a block."""

    def __init__(self, log_level: int):
        self.log_level = log_level

    def __enter__(self) -> ScopedLogLevel:
        self._saved = config.log_level
        config.log_level = self.log_level
        return self

    def __exit__(self, *exc: object) -> None:
        config.log_level = self._saved


def log_debug(message: str) -> None:
    """Say ``message`` if ``wp.config.log_level`` is at most ``LOG_DEBUG``."""
    if config.log_level <= LOG_DEBUG:
        _logger.debug(message)


def log_info(message: str) -> None:
    """Say ``message`` if ``wp.config.log_level`` is at most ``LOG_INFO``."""
    if config.log_level <= LOG_INFO:
        _logger.info(message)


def log_progress(message: str) -> None:
    """Say that work goes on, as `log_info`, unless ``wp.config.quiet``; where the program has set no logger to standard
    error, since its standard output is its own."""
    if config.quiet or config.log_level > LOG_INFO:
        return
    if type(_logger) is LoggerBasic:
        print(message, file=sys.stderr, flush=True)
    else:
        _logger.info(message)


def log_warning(message: str, category: type[Warning] | None = None, stacklevel: int = 1, once: bool = False) -> None:
    """Warn of ``message`` if ``wp.config.log_level`` is at most ``LOG_WARNING``.

    Args:
        message: the text.
        category: the class of the warning; UserWarning where none is given.
        stacklevel: 1 names the line outside treadle that led here, 2 its caller, and so on.
        once: say the same to the same category only once a process; so it always is with deprecations.
    """
    if config.log_level > LOG_WARNING or (category, message) in _said:
        return
    if once or (category is not None and issubclass(category, DeprecationWarning)):
        _said.add((category, message))
    _logger.warning(message, category, stacklevel=stacklevel + _inside() + 2)


def _inside() -> int:
    """How many frames above :func:`log_warning` are treadle's own, so that a warning names the user's line."""
    frame, count = sys._getframe(2), 0
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, count = frame.f_back, count + 1
    return count


def place_outside() -> str:
    """The line outside treadle that led here, as ``file:line``."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def log_error(message: str) -> None:
    """Say that ``message`` went wrong, whatever the level."""
    _logger.error(message)
