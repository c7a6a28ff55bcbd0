"""Settings, and the one place where environment variables are read.

Users reach this object as ``wp.config``; unknown names raise, so a misspelt setting is not lost in silence.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable
from enum import IntEnum
from types import NoneType
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
    given = os.environ.get("TREADLE_CACHE_DIR") or os.environ.get("TREADLE_CACHE_PATH")
    return given or os.path.join(cache_root(), "treadle")


def for_children(folder: str) -> None:
    """Let Python processes that this one starts search ``folder`` for modules, before all others."""
    rest = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([folder, rest] if rest else [folder])


def cache_root() -> str:
    """The folder in which the user's programs keep what they can make again."""
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Caches")
    return os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")


class LaunchArrayAccessMode(IntEnum):
    """What is checked of the devices of a launch's arrays. With one device there is nothing to check."""

    RELAXED = 0
    CHECKED = 1
    STRICT = 2


class DeterministicMode(IntEnum):
    """How far results must repeat: without being asked to they do, bit by bit, on every machine. NOT_GUARANTEED lets
    floats that several threads add up be added in any order; both others mean the same here."""

    NOT_GUARANTEED = 0
    RUN_TO_RUN = 1
    GPU_TO_GPU = 2


# What has a meaning here, with its default.
SETTINGS: dict[str, Any] = {
    "mode": "release",
    "quiet": False,
    "verbose": False,
    "log_level": 20,
    "verify_fp": False,
    "check_races": False,
    "print_launches": False,
    "enable_backward": True,
    "max_unroll": 16,
    "cache_kernels": True,
    "kernel_cache_dir": None,
    "deterministic": DeterministicMode.GPU_TO_GPU,
    "gang_width": None,
    "workers": None,
    "compile_workers": None,
    "enable_cpu_blocks": False,
    "enable_vector_component_overwrites": False,
    "legacy_scalar_return_types": False,
    "verify_autograd_array_access": False,
    "track_memory": False,
    "version": LANGUAGE_LEVEL,
}

# Settings of the field that change nothing here, by why. Programs may set and read them.
ACCEPTED: dict[str, dict[str, Any]] = {
    "they speak of GPU code or of the C++ compiler of Warp, and no C++ is compiled": {
        "optimization_level": None, "cuda_output": None, "ptx_target_arch": None, "cuda_arch_suffix": None,
        "lineinfo": False, "line_directives": True, "compile_time_trace": False, "enable_mathdx_gemm": True,
        "enable_mathdx_solver": True, "enable_mathdx_fft": True, "cpu_compiler_flags": None, "llvm_cuda": False,
        "use_precompiled_headers": True, "legacy_cpu_linker": False, "load_module_max_workers": 0,
        "default_grid_stride": True, "verify_cuda": False, "enable_mempools_at_init": True,
        "enable_graph_capture_module_load_by_default": True,
    },
    "all arrays are on the one device there is": {"launch_array_access_mode": LaunchArrayAccessMode.RELAXED},
    "results repeat without records of what threads add": {
        "deterministic_max_records": 0, "deterministic_debug": False,
    },
    "tiles lie where the compiler puts them": {"enable_tiles_in_stack_memory": True},
    "warnings always name their line": {"verbose_warnings": False},
}  # fmt: skip

_DEFAULTS = {**SETTINGS, **{name: value for group in ACCEPTED.values() for name, value in group.items()}}


class Config(types.ModuleType):
    """Global settings. Assign an attribute to change one, as in ``wp.config.mode = "debug"``.

    mode: "release" or "debug"; debug checks every index and assertion.
    check_races: check what debug checks, and raise where two threads of a launch use one element that one of them
        writes without an atomic; threads run one after the other then, and each access costs some 50 ns.
    deterministic: a :class:`DeterministicMode`. Results repeat bit by bit unless it is NOT_GUARANTEED: then floats that
        several threads add up may be added in any order, which can be quicker; a module's or kernel's option of the
        same name goes before it.
    gang_width: logical threads a SIMD gang (1, 2, 4, 8, 16, 32 or 64); None lets the processor decide.
    workers: worker threads of the CPU, the launching one included; None takes every core.
    kernel_cache_dir, cache_kernels: folder of compiled kernels, and whether they are kept there.
    compile_workers: processes that compile kernels loaded together; None takes every core.
    max_unroll: loops of at most so many known rounds are unrolled.
    print_launches, verbose, quiet, log_level: what is said, see ``wp.LOG_DEBUG`` and ``wp.set_logger``.
    enable_cpu_blocks: blocks have as many threads as a launch asks for, not one each, and ``wp.block_dim()`` tells so;
        not for kernels with tiles, which blocks of one thread work on.
    verify_fp: after each launch, say which arrays hold values that are not finite.
    verify_autograd_array_access: tapes warn of writes to what a backward pass will look at (they keep what is
        overwritten), and note a checksum of what each launch reads; the backward pass raises where an array was changed
        since in a way that the tape could not see.
    legacy_scalar_return_types: components of vectors, and results of builtins, are Python numbers of whatever type.
    track_memory: keep book of all arrays from ``wp.init`` on, as :class:`ScopedMemoryTracker` does for a block.
    version: the release of Warp whose language this is, which programs parse; ``treadle.__version__`` is our own.

    The other settings are the field's; they are accepted so that programs run unchanged, and change nothing here. The
    object is a module, so that ``import treadle.config`` gives it.

    Raises:
        AttributeError: there is no such setting.
        ValueError: the value, perhaps from an environment variable, is not one the setting takes.
    """

    LaunchArrayAccessMode = LaunchArrayAccessMode
    DeterministicMode = DeterministicMode

    def __init__(self, name: str = "config"):
        super().__init__(name, type(self).__doc__)
        values = dict(_DEFAULTS)
        values["kernel_cache_dir"] = _default_cache_dir()
        values["gang_width"] = _environment("TREADLE_GANG_WIDTH", int)
        values["workers"] = _environment("TREADLE_WORKERS", int)
        values["mode"] = _environment("TREADLE_MODE") or values["mode"]
        for name, check in _CHECKS.items():
            check(values[name])
        self.__dict__.update(values)

    def __setattr__(self, name: str, value) -> None:
        if name not in _DEFAULTS and not name.startswith("__"):  # what the import system says of every module
            raise AttributeError(f"wp.config has no setting {name!r}; it has {', '.join(sorted(_DEFAULTS))}")
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


def _is_a(kind: type[IntEnum]) -> Callable[[Any], None]:
    def check(value: Any) -> None:
        if not isinstance(value, kind):
            raise ValueError(f"expected a {kind.__name__}, not {value!r}")

    return check


def _one_of(name: str, *kinds: type, word: str, least: int | None = None) -> Callable[[Any], None]:
    def check(value: Any) -> None:
        good = isinstance(value, kinds) and not isinstance(value, bool)
        if not good or (least is not None and isinstance(value, int) and value < least):
            raise ValueError(f"{name} must be {word}, not {value!r}")

    return check


def _is_switch(name: str) -> Callable[[Any], None]:
    """Whether a value turns something on or off: a bool, of NumPy too, or 0 or 1, as programs write it."""

    def check(value: Any) -> None:
        if not (isinstance(value, bool | int) or type(value).__name__ in ("bool", "bool_")) or value not in (0, 1):
            raise ValueError(f"{name} must be True or False, not {value!r}")

    return check


def _usual_check(name: str, default: Any) -> Callable[[Any], None]:
    """The check of a setting that needs none of its own, by its default."""
    if isinstance(default, bool):
        return _is_switch(name)
    if isinstance(default, str):
        return _one_of(name, str, word="a string")
    return _one_of(name, int, NoneType, word="None or an int from 0 on", least=0)


_CHECKS: dict[str, Callable[[Any], None]] = {
    **{name: _usual_check(name, default) for name, default in SETTINGS.items()},
    "gang_width": _check_gang_width, "workers": _check_workers, "mode": _check_mode,
    "log_level": _one_of("log_level", int, word="an int, such as wp.LOG_DEBUG"),
    "max_unroll": _one_of("max_unroll", int, word="an int from 0 on", least=0),
    "compile_workers": _one_of("compile_workers", int, NoneType, word="None or a positive int", least=1),
    "kernel_cache_dir": _one_of("kernel_cache_dir", str, os.PathLike, NoneType, word="a path"),
    "launch_array_access_mode": _is_a(LaunchArrayAccessMode), "deterministic": _is_a(DeterministicMode),
}  # fmt: skip

config = Config(f"{__package__.partition('.')[0]}.config")
sys.modules[config.__name__] = config
