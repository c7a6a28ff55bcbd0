"""What concerns the whole process: starting up, the cache on disk, and answering for the name ``warp``."""

from __future__ import annotations

import sys
from typing import Any

from ..base.config import VERSION, config

_started = False


def init() -> None:
    """Start treadle: load the native helpers, and the compiler too if no kernel is in the cache yet, so that the first
    launch need not.

    Optional; everything starts by itself when needed. Prints one line if ``wp.config.verbose``.
    """
    global _started
    if _started:
        return
    _started = True
    from ..runtime import cache, fast, native
    from ..runtime.device import get_device
    from ..types.core import f32
    from . import launch  # noqa: F401  what the first launch would otherwise import
    from .compile import load_compiler, native_width
    from .natives import install

    cold = cache.is_empty()
    if config.track_memory:
        from ..runtime.tracking import start

        start()
    install()
    device = get_device()
    device.prepare()
    fast.launcher()
    native.merge_function("add", f32)  # what most kernels with atomics ask for
    native_width()
    if cold:
        load_compiler()
    if not config.quiet and config.verbose:
        print(f"treadle {VERSION} on {device.name}; kernels are cached in {config.kernel_cache_dir}")


class Runtime:
    """What libraries ask of the process they run in. There is one, ``runtime``."""

    is_cuda_enabled = False
    driver_version = toolkit_version = None  # of CUDA
    cuda_devices: tuple = ()

    @property
    def cpu_device(self) -> Any:
        """The CPU."""
        from ..runtime.device import get_device

        return get_device("cpu")

    def get_device(self, ident: Any = None) -> Any:
        """The device that ``ident`` names; the current one where it is None."""
        from ..runtime.device import get_device

        return get_device(ident)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"treadle's runtime has no {name!r}: there is no native library behind it")


runtime = Runtime()


def check_p2p() -> bool:
    """Whether devices can read each other's memory directly: False, as there is one device."""
    return False


def clear_kernel_cache() -> None:
    """Delete all compiled kernels from the folder ``wp.config.kernel_cache_dir``."""
    from ..runtime import cache

    cache.clear()


def install_as_warp() -> None:
    """Let ``import warp`` in this process give treadle.

    Raises:
        RuntimeError: NVIDIA Warp itself is already imported.

    >>> import treadle
    >>> treadle.install_as_warp()
    >>> import warp
    >>> warp is treadle
    True
    """
    present = sys.modules.get("warp")
    ours = sys.modules[__package__.rpartition(".")[0]]
    if present is not None and present is not ours:
        raise RuntimeError("NVIDIA Warp is already imported in this process")
    sys.modules["warp"] = ours
    prefix = ours.__name__ + "."
    for name in [n for n in sys.modules if n.startswith(prefix)]:
        sys.modules["warp." + name[len(prefix) :]] = sys.modules[name]
