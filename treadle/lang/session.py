"""What concerns the whole process: starting up, the cache on disk, and what libraries ask of the process."""

from __future__ import annotations

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
    from . import launch, tape  # noqa: F401  what the first launches would otherwise import
    from .compile import load_compiler
    from .natives import install
    from .targets import native_width

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

    toolkit_version = None  # of CUDA, which is not needed

    @property
    def is_cuda_enabled(self) -> bool:
        """Whether there is a GPU that can be used."""
        return bool(self.cuda_devices)

    @property
    def cuda_devices(self) -> tuple[Any, ...]:
        """The GPUs that can be used."""
        from ..runtime.device import get_devices

        return tuple(get_devices()[1:])

    @property
    def driver_version(self) -> tuple[int, int] | None:
        """The version of CUDA that the driver knows; None where there is none."""
        from ..runtime import cuda

        return cuda.get_cuda_driver_version()

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


def clear_lto_cache() -> None:
    """Delete GPU code that is linked late. There is none; :func:`clear_kernel_cache` deletes all compiled kernels."""


def get_cpu_kernel_cache_key(*, cpu_compiler_flags: str | None = None) -> str:
    """A name for what compiled kernels depend on besides their source: release, system, processor, code generator.

    Folders of kernels whose machines give the same name can be shared. Do not take it apart; its form may change.

    >>> import treadle as wp
    >>> wp.get_cpu_kernel_cache_key() == wp.get_cpu_kernel_cache_key()
    True
    """
    import platform

    from ..base.digest import digest
    from ..codegen.cpu import host_target, llvm_version

    what = digest(host_target().key(), llvm_version())[:8]
    return f"{VERSION}-{platform.system()}-{platform.machine()}-{what}"
