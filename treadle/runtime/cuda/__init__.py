"""GPUs of NVIDIA: which there are, and what programs ask about them. The driver is looked for when somebody asks."""

from __future__ import annotations

import threading
from typing import Any

from ...base.errors import DeviceError
from ..device import Device, far, get_device, give_name, known_devices, take_name
from . import driver as drivers

_lock = threading.RLock()
_made: dict[int, Any] = {}  # devices by number
_names: set[str] = set()  # that the program has given


def device(number: int) -> Device:
    """The GPU of that number.

    Raises:
        DeviceError: there is none, or it is too old.
    """
    found = _made.get(number)
    if found is None:
        with _lock:
            found = _made.get(number)
            if found is None:
                driver = drivers.driver()
                from .gpu import Gpu

                count = driver.cuDeviceGetCount()
                if not 0 <= number < count:
                    raise DeviceError(f"there is no device cuda:{number}; this machine has {_listed(count)}")
                found = Gpu(driver, number)
                _made[number] = found
    if found.arch < drivers.OLDEST:
        old, needed = found.arch, drivers.OLDEST
        raise DeviceError(
            f"{found.alias} ({found.name}) has compute capability {old // 10}.{old % 10}; kernels need "
            f"{needed // 10}.{needed % 10} or newer"
        )
    if found not in far:
        far.append(found)
    return found


def _listed(count: int) -> str:
    return "cuda:0" if count == 1 else f"cuda:0 to cuda:{count - 1}"


def count() -> int:
    """How many GPUs the driver knows.

    Raises:
        DeviceError: there is no driver.
    """
    return int(drivers.driver().cuDeviceGetCount())


def devices() -> list[Device]:
    """All GPUs that kernels can run on."""
    driver = drivers.available()
    found = []
    for number in range(driver.cuDeviceGetCount() if driver is not None else 0):
        try:
            found.append(device(number))
        except DeviceError:  # too old; whoever names it is told
            continue
    return found


def find(alias: str) -> Device:
    """The GPU that a name means: ``cuda`` is the one used last, or the first.

    Raises:
        ValueError: there is none; the message says what is missing.
    """
    try:
        if alias == "cuda":
            return _usual()
        number = alias.removeprefix("cuda:")
        if number.isdecimal():
            return device(int(number))
    except DeviceError as error:
        raise ValueError(f"no device {alias!r}: {error.message}") from None
    raise ValueError(f"no device {alias!r}; devices: {', '.join(map(str, known_devices()))}")


def reset() -> None:
    """Forget all GPUs and the driver; arrays on them must be gone."""
    _made.clear()
    for alias in _names:
        take_name(alias)
    _names.clear()
    far.clear()
    drivers.forget()


def get_cuda_device(ordinal: int | None = None) -> Device:
    """The CUDA device number ``ordinal``; the one used last, or the first, if left out.

    Raises:
        DeviceError: there is none; the message says what is missing.
    """
    return _usual() if ordinal is None else device(ordinal)


def _usual() -> Device:
    """The GPU that this thread uses, or that the program used last, or the first."""
    now = get_device()
    if now.queue is not None:
        return now
    return far[0] if far else device(0)


def get_cuda_driver_version() -> tuple[int, int] | None:
    """The version of CUDA that the driver knows; None where there is none."""
    driver = drivers.available()
    if driver is None:
        return None
    version = driver.cuDriverGetVersion()
    return version // 1000, version % 1000 // 10


def get_cuda_toolkit_version() -> tuple[int, int] | None:
    """The version of the CUDA toolkit; None, as none is used."""
    return None


def get_cuda_supported_archs() -> list[int]:
    """The GPU architectures that kernels can be compiled for and run on, of the GPUs that are here."""
    return sorted({each.arch for each in devices()})


def get_cuda_max_cluster_dim(device: Any = None) -> int:
    """How many blocks a cluster of ``device`` can have; 1 where there are no clusters."""
    get_device(device)
    return 1


def map_cuda_device(alias: str, context: Any = None) -> Device:
    """Give the CUDA device of a context a name; that of the current context if left out.

    Raises:
        DeviceError: there is no CUDA device, or the context is not the one that the device's users share.
    """
    driver = drivers.driver()
    context = int(driver.cuCtxGetCurrent() if context is None else context)
    for each in devices():
        if int(each.context) == context:
            _names.add(alias)
            give_name(alias, each)
            return each
    raise DeviceError(f"the context {context:#x} is none of the primary contexts, in which kernels run")


def unmap_cuda_device(alias: str) -> None:
    """Take the name of a CUDA device back.

    Raises:
        DeviceError: it was not given.
    """
    if alias not in _names:
        raise DeviceError(f"no CUDA device was given the name {alias!r}")
    _names.discard(alias)
    take_name(alias)


def get_cuda_kernel_properties(kernel: Any, device: Any = None, block_dim: int | None = None) -> dict[str, int]:
    """What a kernel takes on a GPU: ``register_count`` of a thread, ``local_memory_size`` and ``shared_memory_size`` in
    bytes of a thread and of a block, and ``max_threads_per_block``.

    Args:
        kernel: a kernel, whose types are complete; it is compiled if it was not.
        device: the GPU; the current device if left out.
        block_dim: threads in a block; 256 if left out.

    Raises:
        RuntimeError: ``device`` is no GPU.
        KernelTypeError: the kernel's types are open.
    """
    entry = _entry(kernel, device, block_dim)
    words = {"register_count": "NUM_REGS", "local_memory_size": "LOCAL_SIZE_BYTES",
             "shared_memory_size": "SHARED_SIZE_BYTES", "max_threads_per_block": "MAX_THREADS_PER_BLOCK"}  # fmt: skip
    found = entry.library.facts(entry.name, tuple(words.values()))
    return {name: found[word] for name, word in words.items()}


def _entry(kernel: Any, device: Any, block_dim: int | None = None) -> Any:
    """A kernel's code on a GPU, loaded."""
    where = get_device(device)
    if where.queue is None:
        raise RuntimeError(f"{where} is no CUDA device; only those tell what a kernel takes")
    return kernel.code_on(where, block_dim).entry


def get_suggested_block_size(kernel: Any, device: Any = None) -> tuple[int, int]:
    """Threads a block and blocks a grid that keep ``device`` busy; ``(1, 1)`` for a CPU, where blocks do not matter."""
    where = get_device(device)
    if where.queue is None:
        return 1, 1
    entry = _entry(kernel, where)
    with where.entered as driver:  # type: ignore[attr-defined]
        blocks, threads = driver.cuOccupancyMaxPotentialBlockSize(entry.library.addresses[entry.name], None, 0, 0)
    return int(threads), int(blocks)


def is_cubql_available() -> bool:
    """Whether trees are built by the library cuBQL: no."""
    return False


def is_conditional_graph_supported() -> bool:
    """Whether CUDA graphs with conditions can be made: where the driver is of CUDA 12.4 or newer."""
    return (get_cuda_driver_version() or (0, 0)) >= (12, 4)


def cuda_profiler_start() -> None:
    """Start a CUDA profiler that is attached; without effect where none is."""
    for each in far:
        with each.entered as driver:  # type: ignore[attr-defined]
            driver.cuProfilerStart()


def cuda_profiler_stop() -> None:
    """Stop a CUDA profiler that is attached; without effect where none is."""
    for each in far:
        with each.entered as driver:  # type: ignore[attr-defined]
            driver.cuProfilerStop()


class ScopedCudaProfiler:
    """``with wp.ScopedCudaProfiler():`` lets an attached CUDA profiler look at a block; without effect otherwise."""

    def __init__(self, device: Any = None):
        self.device = get_device(device)

    def __enter__(self) -> ScopedCudaProfiler:
        cuda_profiler_start()
        return self

    def __exit__(self, *exc: object) -> None:
        cuda_profiler_stop()
