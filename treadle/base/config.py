"""Settings, and the one place where environment variables are read.

Users reach this object as ``wp.config``; unknown names raise, so a misspelt setting is not lost in silence.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

VERSION = "0.1.0"  # the only place where it stands
LANGUAGE_LEVEL = "1.19.0"  # the release of Warp whose language this one speaks; programs parse it

_WATCHERS: dict[str, list[Callable[[Any], Any]]] = {}


def _environment(name: str, convert: type = str):
    """The value of environment variable ``name`` converted, or None where it is unset or empty."""
    text = os.environ.get(name, "")
    if not text:
        return None
    try:
        return convert(text)
    except ValueError:
        raise ValueError(f"environment variable {name} must be {convert.__name__}, not {text!r}") from None


def _default_cache_dir() -> str:
    base = os.environ.get("TREADLE_CACHE_DIR") or os.environ.get("TREADLE_CACHE_PATH")
    if base:
        return base
    root = os.environ.get("XDG_CACHE_HOME") or (os.environ.get("LOCALAPPDATA") if os.name == "nt" else None)
    return os.path.join(root, "treadle") if root else os.path.join(os.path.expanduser("~"), ".cache", "treadle")


class Config:
    """Global settings. Assign an attribute to change one, as in ``wp.config.mode = "debug"``.

    mode: "release" or "debug"; debug checks every index and assertion.
    gang_width: logical threads a SIMD gang (1, 2, 4, 8, 16, 32 or 64); None lets the processor decide.
    workers: worker threads of the CPU, the launching one included; None takes every core.
    kernel_cache_dir, cache_kernels: folder of compiled kernels, and whether they are kept there.
    compile_workers: processes that compile kernels loaded together; None takes every core.
    max_unroll: loops of at most so many known rounds are unrolled.
    print_launches, verbose, quiet: what is said on standard output.
    verify_autograd_array_access: tapes keep a checksum of what each launch reads; the backward pass raises where an
        array was changed since in a way that the tape could not see.

    The other settings are the field's; they are accepted so that programs run unchanged, and change nothing here.

    Raises:
        AttributeError: there is no such setting.
        ValueError: the value, perhaps from an environment variable, is not one the setting takes.
    """

    _defaults = {
        "mode": "release",
        "quiet": False,
        "verbose": False,
        "log_level": 20,
        "verify_fp": False,
        "print_launches": False,
        "enable_backward": True,
        "max_unroll": 16,
        "cache_kernels": True,
        "kernel_cache_dir": None,
        "gang_width": None,
        "workers": None,
        "compile_workers": None,
        "enable_cpu_blocks": False,
        "enable_vector_component_overwrites": False,
        "lineinfo": False,
        "verify_autograd_array_access": False,
        "enable_graph_capture_module_load_by_default": True,
        "version": LANGUAGE_LEVEL,
    }

    def __init__(self):
        values = dict(self._defaults)
        values["kernel_cache_dir"] = _default_cache_dir()
        values["gang_width"] = _environment("TREADLE_GANG_WIDTH", int)
        values["workers"] = _environment("TREADLE_WORKERS", int)
        values["mode"] = _environment("TREADLE_MODE") or values["mode"]
        for name, check in _CHECKS.items():
            check(values[name])
        self.__dict__.update(values)

    def __setattr__(self, name: str, value) -> None:
        if name not in self._defaults:
            raise AttributeError(f"wp.config has no setting {name!r}; it has {', '.join(sorted(self._defaults))}")
        check = _CHECKS.get(name)
        if check is not None:
            check(value)
        self.__dict__[name] = value
        for watcher in _WATCHERS.get(name, ()):
            watcher(value)

    def watch(self, name: str, watcher: Callable[[Any], Any]) -> None:
        """Call ``watcher`` with the new value whenever setting ``name`` is assigned."""
        _WATCHERS.setdefault(name, []).append(watcher)


def _check_gang_width(value) -> None:
    if value is not None and value not in (1, 2, 4, 8, 16, 32, 64):
        raise ValueError(f"gang_width must be None or one of 1, 2, 4, 8, 16, 32, 64, not {value!r}")


def _check_workers(value) -> None:
    if value is not None and (not isinstance(value, int) or value < 1):
        raise ValueError(f"workers must be None or a positive int, not {value!r}")


def _check_mode(value) -> None:
    if value not in ("release", "debug"):
        raise ValueError(f"mode must be 'release' or 'debug', not {value!r}")


_CHECKS = {"gang_width": _check_gang_width, "workers": _check_workers, "mode": _check_mode}

config = Config()
