"""Questions about CUDA devices, answered for a machine that has none."""

from __future__ import annotations

from typing import Any, NoReturn

from .device import Device, get_device


def get_cuda_device(ordinal: int | None = None) -> Device:
    """The CUDA device number ``ordinal``.

    Raises:
        RuntimeError: there is none.
    """
    raise RuntimeError("there is no CUDA device here")


def get_cuda_driver_version() -> tuple[int, int] | None:
    """The version of the CUDA driver; None where there is none."""
    return None


def get_cuda_toolkit_version() -> tuple[int, int] | None:
    """The version of the CUDA toolkit; None, as none is used."""
    return None


def get_cuda_supported_archs() -> list[int]:
    """The GPU architectures that kernels can be compiled for and run on."""
    return []


def get_cuda_max_cluster_dim(device: Any = None) -> int:
    """How many blocks a cluster of ``device`` can have; 1 where there are no clusters."""
    get_device(device)
    return 1


def _no_cuda(alias: str) -> NoReturn:
    raise RuntimeError(f"there is no CUDA device that {alias!r} could name")


def map_cuda_device(alias: str, context: Any = None) -> Device:
    """Give a CUDA context a name.

    Raises:
        RuntimeError: there is no CUDA device.
    """
    _no_cuda(alias)


def unmap_cuda_device(alias: str) -> None:
    """Take the name of a CUDA context back.

    Raises:
        RuntimeError: there is no CUDA device.
    """
    _no_cuda(alias)


def get_cuda_kernel_properties(kernel: Any, device: Any = None, block_dim: int | None = None) -> dict[str, int]:
    """Registers and local memory that a kernel takes on a GPU.

    Raises:
        RuntimeError: ``device`` is none.
    """
    raise RuntimeError(f"{get_device(device)} is no CUDA device; only those tell what a kernel takes")


def get_suggested_block_size(kernel: Any, device: Any = None) -> tuple[int, int]:
    """Threads a block and blocks a grid that keep ``device`` busy; ``(1, 1)`` for a CPU, where blocks do not matter."""
    get_device(device)
    return 1, 1


def is_cubql_available() -> bool:
    """Whether trees are built by the library cuBQL: no."""
    return False


def is_conditional_graph_supported() -> bool:
    """Whether CUDA graphs with conditions can be made: no."""
    return False


def cuda_profiler_start() -> None:
    """Start a CUDA profiler that is attached; without effect where none is."""


def cuda_profiler_stop() -> None:
    """Stop a CUDA profiler that is attached; without effect where none is."""


class ScopedCudaProfiler:
    """``with wp.ScopedCudaProfiler():`` lets an attached CUDA profiler look at a block; without effect otherwise."""

    def __init__(self, device: Any = None):
        self.device = get_device(device)

    def __enter__(self) -> ScopedCudaProfiler:
        cuda_profiler_start()
        return self

    def __exit__(self, *exc: object) -> None:
        cuda_profiler_stop()
