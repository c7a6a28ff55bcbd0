"""The CUDA driver: found when a GPU is asked for, never before. The one place that imports ``cuda.bindings``.

What is missing is said in one sentence: the driver, the extra with its bindings, a GPU, or a newer one.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import Any

from ...base.errors import DeviceError, DeviceLostError

OLDEST = 75  # compute capability from which on kernels run, times ten
EXTRA = "pip install 'treadle[cuda]'"

# After these the driver answers every call of the process with the same (CUDA Driver API, CUresult).
LOST = frozenset("CUDA_ERROR_" + name for name in (
    "ECC_UNCORRECTABLE", "ILLEGAL_ADDRESS", "LAUNCH_TIMEOUT", "CONTEXT_IS_DESTROYED", "ASSERT", "HARDWARE_STACK_ERROR",
    "ILLEGAL_INSTRUCTION", "MISALIGNED_ADDRESS", "INVALID_ADDRESS_SPACE", "INVALID_PC", "LAUNCH_FAILED",
    "EXTERNAL_DEVICE", "CONTAINED", "TENSOR_MEMORY_LEAK"))  # fmt: skip

_lock = threading.Lock()
_found: Driver | None = None
_missing: str | None = None  # why there is none; None: nobody has looked


class Driver:
    """The functions of the driver, by their names. Each takes what ``cuda.bindings.driver`` does and gives the results
    behind the status: none, one, or a tuple.

    Raises:
        DeviceError: from each function, where the driver refuses; it names the function and the driver's word for it.
    """

    def __init__(self, module: Any):
        self.module = module

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function, success = getattr(self.module, name), self.module.CUresult.CUDA_SUCCESS

        def call(*args: Any) -> Any:
            try:
                status, *results = function(*args)
            except RuntimeError as error:  # the library behind the bindings is older than they are
                if "not found" in str(error) and name != "cuInit":
                    raise DeviceError(f"the NVIDIA driver is too old: it has no {name}") from None
                raise
            if status != success:
                raise self.error(name, status)
            return results[0] if len(results) == 1 else tuple(results) or None

        setattr(self, name, call)  # found at once from now on
        return call

    def error(self, function: str, status: Any) -> DeviceError:
        """The exception for a status other than success."""
        texts = []
        for ask in (self.module.cuGetErrorName, self.module.cuGetErrorString):
            _, text = ask(status)
            texts.append(text.decode() if isinstance(text, bytes) else str(text))
        if texts[0] in LOST:
            return DeviceLostError(
                f"the GPU has stopped: {texts[0]} ({texts[1]}), told by {function} but caused by work given before",
                hint='wp.config.mode = "debug" finds indices outside of arrays; this process cannot use the GPU again',
            )
        return DeviceError(f"the CUDA driver refused {function}: {texts[0]} ({texts[1]})")

    def ready(self, function: str, *args: Any) -> bool:
        """The answer of a function that says by its status whether something is done."""
        (status, *_) = getattr(self.module, function)(*args)
        if status == self.module.CUresult.CUDA_ERROR_NOT_READY:
            return False
        if status != self.module.CUresult.CUDA_SUCCESS:
            raise self.error(function, status)
        return True

    # ---- functions whose arguments changed with CUDA 13: edges of graphs have data since then

    def captured(self, stream: int) -> tuple[Any, list[Any]]:
        """The graph that a stream is captured for, and the nodes that what comes next depends on."""
        _, _, graph, nodes, *_ = self.cuStreamGetCaptureInfo(stream)
        return graph, list(nodes or ())

    def add_node(self, graph: Any, before: list[Any], wanted: Any) -> Any:
        """A new node of ``graph``, which comes after the nodes ``before``."""
        edges = [None] if self._has_edges else []
        return self.cuGraphAddNode(graph, before, *edges, len(before), wanted)

    def continue_after(self, stream: int, node: Any) -> None:
        """What is captured next on a stream comes after ``node`` alone."""
        edges = [None] if self._has_edges else []
        self.cuStreamUpdateCaptureDependencies(stream, [node], *edges, 1, 1)  # CU_STREAM_SET_CAPTURE_DEPENDENCIES

    @property
    def _has_edges(self) -> bool:
        return "dependencyData" in (self.module.cuGraphAddNode.__doc__ or "")

    def enum_of(self, kind: str, number: int) -> Any:
        """A constant of the driver's, by its number."""
        return getattr(self.module, kind)(number)

    def enum(self, kind: str, name: str) -> Any:
        """A constant of the driver's."""
        return getattr(getattr(self.module, kind), name)


def driver() -> Driver:
    """The driver.

    Raises:
        DeviceError: there is none; the message says what is missing.
    """
    found = available()
    if found is None:
        raise DeviceError(missing())
    return found


def available() -> Driver | None:
    """The driver, looked for once; None where something is missing."""
    global _found, _missing
    if _found is None and _missing is None:
        with _lock:
            if _found is None and _missing is None:
                _found, _missing = _look()
    return _found


def missing() -> str:
    """What is missing, as a sentence; empty where nothing is."""
    available()
    return _missing or ""


def forget() -> None:
    """Look again when somebody asks next."""
    global _found, _missing
    _found = _missing = None


def _look() -> tuple[Driver | None, str | None]:
    try:
        module = _bindings()
    except ImportError:
        if not has_library():
            return None, "this machine has no NVIDIA driver"
        return None, f"this machine has an NVIDIA driver, but not the extra that talks to it: {EXTRA}"
    found = Driver(module)
    try:
        found.cuInit(0)
        count = found.cuDeviceGetCount()
    except DeviceError as error:
        return None, f"the NVIDIA driver found no GPU it can use: {error.message}"
    except RuntimeError as error:  # the bindings are there, the library behind them is not
        return None, f"the extra treadle[cuda] is installed, but this machine has no NVIDIA driver ({error})"
    return (found, None) if count else (None, "the NVIDIA driver found no GPU")


def _bindings() -> Any:
    from cuda.bindings import driver as module

    return module


def has_library() -> bool:
    """Whether the driver's library can be loaded, with or without bindings to it."""
    try:
        library()
    except OSError:
        return False
    return True


def library() -> Any:
    """The driver's library, for native code that calls its functions by their addresses.

    Raises:
        OSError: there is none.
    """
    return ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
