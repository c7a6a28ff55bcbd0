"""treadle: kernels in Python, run on every SIMD lane of every core.

``import treadle as wp`` gives the names of NVIDIA Warp with their meanings. Names are resolved when first used, so that
importing costs little.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any, TypeVar

from .base.config import VERSION
from .base.config import config as config
from .runtime import foreign as _foreign
from .runtime import hooks as _hooks
from .runtime import operators as _operators

__version__ = VERSION

# Where each name lives; the builtins of the kernel language and the value types (vec3, mat33 …) come after these.
_HOMES = {
    "lang.kernel": "Kernel kernel overload",
    "lang.function": "Function func",
    "lang.rules": "func_grad func_replay grad adjoint",
    "lang.struct": "struct",
    "lang.static": "static constant",
    "lang.module": "Module get_module set_module_options get_module_options load_module force_load",
    "lang.launch": "launch",
    "lang.recorded": "Launch",
    "lang.graph": "ScopedCapture CaptureMode capture_begin capture_end capture_launch capture_if capture_while",
    "lang.graph_dot": "capture_debug_dot_print",
    "runtime.graph": "Graph",
    "lang.tiles": "launch_tiled tile tile_stack",
    "lang.mapping": "map",
    "lang.snippets": "func_native",
    "lang.tape": "Tape",
    "lang.jvp": "jvp",
    "lang.hvp": "hvp",
    "lang.session": "init clear_kernel_cache clear_lto_cache get_cpu_kernel_cache_key",
    "lang.alias": "install_as_warp",
    "lang.diagnostics": "print_diagnostics",
    "base.logs": "LOG_DEBUG LOG_INFO LOG_WARNING LOG_ERROR Logger get_logger set_logger ScopedLogger ScopedLogLevel",
    "runtime.array": "array",
    "runtime.dimensions": "array1d array2d array3d array4d indexedarray1d indexedarray2d indexedarray3d indexedarray4d",
    "types.annotations": "fixedarray ref",
    "runtime.indexed": "indexedarray",
    "runtime.fabric": "fabricarray indexedfabricarray fabricarrayarray indexedfabricarrayarray",
    "runtime.construct": "empty zeros ones full empty_like zeros_like ones_like full_like from_numpy from_ptr "
                         "dtype_to_numpy dtype_from_numpy",
    "runtime.copies": "copy clone",
    "runtime.device": "Device DeviceLike get_device set_device get_preferred_device get_devices is_device_available "
                      "is_cpu_available is_cuda_available get_cuda_device_count get_cuda_devices ScopedDevice",
    "runtime.streams": "Stream Event get_stream set_stream ScopedStream record_event wait_event wait_stream "
                       "get_event_elapsed_time synchronize synchronize_device synchronize_stream synchronize_event",
    "runtime.timer": "ScopedTimer",
    "runtime.allocators": "Allocator MemoryKind ScopedAllocator get_device_allocator set_device_allocator "
                          "set_cuda_allocator",
    "runtime.pools": "is_mempool_supported is_mempool_enabled set_mempool_enabled set_mempool_release_threshold "
                     "get_mempool_release_threshold get_mempool_used_mem_current get_mempool_used_mem_high "
                     "ScopedMempool is_mempool_access_supported is_mempool_access_enabled set_mempool_access_enabled "
                     "ScopedMempoolAccess is_peer_access_supported is_peer_access_enabled set_peer_access_enabled "
                     "ScopedPeerAccess can_access",
    "runtime.cuda": "get_cuda_device get_cuda_driver_version get_cuda_toolkit_version get_cuda_supported_archs "
                    "get_cuda_max_cluster_dim map_cuda_device unmap_cuda_device get_cuda_kernel_properties "
                    "get_suggested_block_size is_cubql_available is_conditional_graph_supported cuda_profiler_start "
                    "cuda_profiler_stop ScopedCudaProfiler",
    "runtime.cuda.shared": "from_ipc_handle event_from_ipc_handle CudaManagedAllocator",
    "runtime.tracking": "ScopedMemoryTracker print_memory_report",
    "runtime.timing": "TimingResult timing_begin timing_end timing_print TIMING_KERNEL TIMING_KERNEL_BUILTIN "
                      "TIMING_MEMCPY TIMING_MEMSET TIMING_GRAPH TIMING_ALL",
    "types.groups": "handle",
    "runtime.dlpack": "to_dlpack from_dlpack",
    "interop.torch_arrays": "to_torch from_torch dtype_to_torch dtype_from_torch device_to_torch device_from_torch "
                            "stream_to_torch stream_from_torch",
    "interop.torch_function": "torch_function",
    "interop.jax_arrays": "to_jax from_jax dtype_to_jax dtype_from_jax device_to_jax device_from_jax",
    "interop.jax_kernel": "jax_kernel JaxModulePreloadMode",
    "interop.jax_callable": "jax_callable JaxCallableGraphMode clear_jax_callable_graph_cache",
    "types.values": "transform_expand",
    "base.config": "DeterministicMode",
    "base.errors": "TreadleError KernelError KernelSyntaxError KernelTypeError KernelNameError KernelAttributeError "
                   "KernelValueError KernelIndexError KernelGradientError AutogradError UnassignedError LaunchError "
                   "DeviceError DeviceLostError GridError CaptureError DeterminismError LaunchTypeError ArrayError "
                   "IndexOutOfRange DataRaceError KernelAssertionError KernelMemoryError",
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
_ERRORS = {  # how programs written for Warp name what a refused program raises
    "WarpCodegenError": "KernelError", "WarpCodegenTypeError": "KernelTypeError",
    "WarpCodegenAttributeError": "KernelAttributeError", "WarpCodegenKeyError": "KernelNameError",
    "WarpCodegenValueError": "KernelValueError", "WarpCodegenIndexError": "KernelIndexError",
    "WarpDeterminismError": "DeterminismError",
}  # fmt: skip
_MODULES = {"types": "types", "utils": "utils", "autograd": "autograd", "mujoco": "mujoco",
            "sparse": "sparse", "fem": "fem", "optim": "optim",
            # as older programs say
            "context": "compat.context", "torch": "compat.torch", "jax": "compat.jax", "jax_experimental": "compat.jax",
            "_src": "compat"}  # fmt: skip
_CONSTANTS = {
    "pi": 3.14159265358979323846, "tau": 6.28318530717958647693, "e": 2.71828182845904523536,
    "phi": 1.61803398874989484820, "half_pi": 1.57079632679489661923, "ln2": 0.69314718055994530942,
    "ln10": 2.30258509299404568402, "log2e": 1.44269504088896340736, "log10e": 0.43429448190325182765,
    "inf": float("inf"), "nan": float("nan"),
}  # fmt: skip
_CONSTANTS.update({name.upper(): value for name, value in list(_CONSTANTS.items())})
_PYTHON = {"float": float, "int": int}  # kernels may call them by these names as well
_GENERIC = ("Int", "Float", "Scalar")  # stand for any type of their kind in annotations


def _operate(name: str, arguments: tuple[Any, ...], out: Any) -> Any:
    """What arrays do under Python's operators; they wait for the compiler until one is used."""
    from .lang.mapping import operate

    return operate(name, arguments, out)


def _move(dest: Any, src: Any, ordered: bool) -> None:
    """Copies through lists of indices in captures, which wait for the compiler in the same way."""
    from .lang.indexed_copies import move

    move(dest, src, ordered)


def _install() -> None:
    """Let the rooms of the compiler say that they write the native helpers."""
    from .lang.natives import install

    install()


_FRAMEWORKS = {"torch": "interop.torch_arrays", "jax": "interop.jax_arrays", "jaxlib": "interop.jax_arrays"}


def _adopt(value: Any, dtype: Any) -> Any:
    """An array over the memory of an array of PyTorch or JAX; None for any other object."""
    adopted = _adopters.get(type(value))
    if adopted is None:
        home = _FRAMEWORKS.get(type(value).__module__.partition(".")[0])
        if home is None:
            return None
        adopted = _adopters[type(value)] = importlib.import_module(f".{home}", __name__).adopted
    return adopted(value, dtype)


_adopters: dict[type, Any] = {}  # what knows arrays of a class, once asked for
_operators.perform = _operate
_foreign.convert = _adopt
_hooks.install, _hooks.move = _install, _move


def __getattr__(name: str) -> Any:
    found = _find(name)
    globals()[name] = found
    return found


def _find(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is not None:
        return getattr(importlib.import_module(f".{home}", __name__), name)
    if name in _CONSTANTS:
        return _CONSTANTS[name]
    if name in _PYTHON:
        return _PYTHON[name]
    if name in _ERRORS:
        return _find(_ERRORS[name])
    if name in _MODULES:
        return importlib.import_module(f".{_MODULES[name]}", __name__)
    if name == "__all__":  # asked for by ``from treadle import *``
        from .builtins.names import PUBLIC
        from .types import values

        return sorted({"config", *_HOME_OF, *_CONSTANTS, *_ERRORS, *values.names(), *PUBLIC})
    if not name.startswith("__"):
        values, types, builtins, make = _language()
        if name in types:
            return getattr(values, name)
        if name in builtins:
            return make(name)
        if name in _GENERIC:
            return TypeVar(name)
    raise importlib.import_module(".absent", __name__).absent(__name__, name)


@cache
def _language() -> tuple[Any, Any, frozenset[str], Any]:
    """The module of the value types, their names, the names of the builtins, and what makes a builtin of its name."""
    from .builtins.names import PUBLIC
    from .lang.host import Builtin
    from .types import values

    return values, values.names(), frozenset(PUBLIC), Builtin


def __treadle_absent__(name: str) -> str:
    """Why there is no ``name``, for the messages of the compiler."""
    from .absent import state

    return state(name)


def __dir__() -> list[str]:
    from .builtins.names import PUBLIC
    from .types import values

    return sorted({*globals(), *_HOME_OF, *_CONSTANTS, *_ERRORS, *_MODULES, *values.names(), *PUBLIC})
