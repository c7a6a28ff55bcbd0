"""What the stand-in for the CUDA driver is made of: its constants, its memory, streams, events and graphs, and how
kernels run."""

from __future__ import annotations

import ctypes
import mmap
import re
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from types import SimpleNamespace
from typing import Any

from tests.codegen.gpu_text import Module

ARENA = 256 << 20
_LINE = 256

_ENUMS = {
    "CUresult": {"CUDA_SUCCESS": 0, "CUDA_ERROR_INVALID_VALUE": 1, "CUDA_ERROR_OUT_OF_MEMORY": 2,
                 "CUDA_ERROR_NO_DEVICE": 100, "CUDA_ERROR_INVALID_CONTEXT": 201, "CUDA_ERROR_INVALID_IMAGE": 200,
                 "CUDA_ERROR_NOT_READY": 600, "CUDA_ERROR_ILLEGAL_ADDRESS": 700, "CUDA_ERROR_NOT_FOUND": 500,
                 "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": 900, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION": 905},
    "CUdevice_attribute": {f"CU_DEVICE_ATTRIBUTE_{name}": n for name, n in {
        "MULTIPROCESSOR_COUNT": 16, "MAX_THREADS_PER_MULTIPROCESSOR": 39, "UNIFIED_ADDRESSING": 41,
        "COMPUTE_CAPABILITY_MAJOR": 75, "COMPUTE_CAPABILITY_MINOR": 76, "MANAGED_MEMORY": 83,
        "HOST_NATIVE_ATOMIC_SUPPORTED": 86, "PAGEABLE_MEMORY_ACCESS": 88, "CONCURRENT_MANAGED_ACCESS": 89,
        "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 97, "MEMORY_POOLS_SUPPORTED": 115}.items()},
    "CUmemAllocationType": {"CU_MEM_ALLOCATION_TYPE_PINNED": 1},
    "CUmemLocationType": {"CU_MEM_LOCATION_TYPE_DEVICE": 1},
    "CUmemAccess_flags": {"CU_MEM_ACCESS_FLAGS_PROT_NONE": 0, "CU_MEM_ACCESS_FLAGS_PROT_READWRITE": 3},
    "CUmemPool_attribute": {"CU_MEMPOOL_ATTR_RELEASE_THRESHOLD": 4, "CU_MEMPOOL_ATTR_USED_MEM_CURRENT": 7,
                            "CU_MEMPOOL_ATTR_USED_MEM_HIGH": 8},
    "CUpointer_attribute": {"CU_POINTER_ATTRIBUTE_MEMORY_TYPE": 2, "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL": 9},
    "CUmemorytype": {"CU_MEMORYTYPE_HOST": 1, "CU_MEMORYTYPE_DEVICE": 2},
    "CUjit_option": {"CU_JIT_ERROR_LOG_BUFFER": 5, "CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES": 6},
    "CUjitInputType": {"CU_JIT_INPUT_PTX": 1},
    "CUfunction_attribute": {"CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES": 8, "CU_FUNC_ATTRIBUTE_NUM_REGS": 4,
                             "CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES": 3, "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES": 1,
                             "CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK": 0},
    "CUstreamCaptureMode": {"CU_STREAM_CAPTURE_MODE_THREAD_LOCAL": 1},
    "CUstreamCaptureStatus": {"CU_STREAM_CAPTURE_STATUS_NONE": 0, "CU_STREAM_CAPTURE_STATUS_ACTIVE": 1},
    "CUgraphNodeType": {"CU_GRAPH_NODE_TYPE_CONDITIONAL": 13},
    "CUgraphConditionalNodeType": {"CU_GRAPH_COND_TYPE_IF": 0, "CU_GRAPH_COND_TYPE_WHILE": 1},
    "CUlimit": {"CU_LIMIT_MALLOC_HEAP_SIZE": 2},
}  # fmt: skip
ENUMS = {name: IntEnum(name, values) for name, values in _ENUMS.items()}
OK = ENUMS["CUresult"].CUDA_SUCCESS

_libc = ctypes.CDLL(None)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Refused(Exception):
    """The driver says no."""

    def __init__(self, word: str):
        self.status = getattr(ENUMS["CUresult"], f"CUDA_ERROR_{word}")


class Arena:
    """Memory of one device: host memory that nobody can touch, except while the driver works."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, ARENA)
        self._anchor = ctypes.c_char.from_buffer(self._memory)
        self.base = ctypes.addressof(self._anchor)
        self.live: dict[int, int] = {}
        self._free = [(self.base, ARENA)]
        self._open = 0
        self._protect(mmap.PROT_NONE if hasattr(mmap, "PROT_NONE") else 0)

    def _protect(self, rights: int) -> None:
        assert _libc.mprotect(self.base, ARENA, rights) == 0

    @contextmanager
    def open(self):
        """The driver works."""
        self._open += 1
        if self._open == 1:
            self._protect(mmap.PROT_READ | mmap.PROT_WRITE)
        try:
            yield
        finally:
            self._open -= 1
            if self._open == 0:
                self._protect(0)

    def take(self, nbytes: int) -> int:
        size = -(-nbytes // _LINE) * _LINE
        for k, (at, room) in enumerate(self._free):
            if room >= size:
                self._free[k : k + 1] = [(at + size, room - size)] if room > size else []
                self.live[at] = nbytes
                with self.open():
                    ctypes.memset(at, 0xCC, nbytes)
                return at
        raise Refused("OUT_OF_MEMORY")

    def give(self, address: int) -> None:
        nbytes = self.live.pop(address, None)
        if nbytes is None:
            raise Refused("INVALID_VALUE")
        with self.open():
            ctypes.memset(address, 0xDD, nbytes)
        self._free.append((address, -(-nbytes // _LINE) * _LINE))

    def has(self, address: int) -> bool:
        return self.base <= address < self.base + ARENA

    def holds(self, address: int, nbytes: int) -> bool:
        """Whether these bytes lie in one block."""
        return any(at <= address and address + nbytes <= at + size for at, size in self.live.items())


@dataclass
class Graph:
    """Nodes in order, each a piece of work; ``names`` says what they are."""

    nodes: list[Callable[[], None]] = field(default_factory=list)
    names: list[Any] = field(default_factory=list)


@dataclass
class Stream:
    """Work that was given, of which ``done`` pieces are done."""

    number: int
    work: list[Callable[[], None]] = field(default_factory=list)
    done: int = 0
    graph: Graph | None = None  # what it is captured for
    alive: bool = True


@dataclass
class Event:
    """A point in a stream: after so many pieces of its work."""

    stream: Stream | None = None
    at: int = 0
    timing: bool = True


class Record:
    """A record of the bindings, whose fields may be set."""

    def __init__(self, **fields: Any):
        self.__dict__.update(fields)


# ---- kernels ---------------------------------------------------------------------------------------------------------

_SIZES = {"i64": 8, "i32": 4, "ptr": 8}
_drivers: list[Any] = []  # the one at work


@ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int32)
def _set_condition(handle: int, value: int) -> None:
    _drivers[-1].conditions[handle] = value


class Entry:
    """An entry of a module, and the bytes of each of its parameters."""

    def __init__(self, module: Module, name: str, sizes: list[int]):
        self.module, self.name, self.sizes = module, name, sizes

    def read(self, params: int) -> list[Any]:
        """Copies of the parameters that an array of pointers leads to."""
        places = (ctypes.c_uint64 * len(self.sizes)).from_address(params)
        copies = [ctypes.string_at(at, n) for at, n in zip(places, self.sizes, strict=True)]
        return [ctypes.create_string_buffer(content, len(content)) for content in copies]

    def run(self, driver: Any, blocks: int, threads: int, values: list[Any]) -> None:
        _drivers[:] = [driver]
        places = (ctypes.c_uint64 * len(values))(*map(ctypes.addressof, values))
        self.module.run(self.name, ctypes.addressof(places), blocks, threads)


@cache
def entries(text: str) -> dict[str, Entry]:
    """The entries of a module, compiled for this processor."""
    heads = [line for line in text.splitlines() if line.startswith("define ptx_kernel")]
    found = [re.match(r"define ptx_kernel void @([\w.$]+)\((.*)\)", line).groups() for line in heads]
    at = ctypes.cast(_set_condition, ctypes.c_void_p).value
    text = text.replace("declare void @cudaGraphSetConditional(i64, i32)", "")
    module = Module(text.replace("@cudaGraphSetConditional(", f"inttoptr (i64 {at} to ptr)("))
    return {name: Entry(module, name, _parameter_sizes(params)) for name, params in found}


def _parameter_sizes(text: str) -> list[int]:
    found = re.findall(r"(?:ptr byval\(\[(\d+) x i8\]\)|(i64|i32|ptr))[^,]*", text)
    return [int(nbytes) if nbytes else _SIZES[kind] for nbytes, kind in found]


# ---- for native code -------------------------------------------------------------------------------------------------


def native_functions(driver: Any) -> Any:
    """The functions that native code calls, as those of a library."""
    i32, ptr = ctypes.c_int32, ctypes.c_void_p

    @ctypes.CFUNCTYPE(i32, ptr)
    def push(context):
        return int(driver.cuCtxPushCurrent(context)[0])

    @ctypes.CFUNCTYPE(i32, ptr)
    def pop(into):
        status, context = driver.cuCtxPopCurrent()
        ctypes.c_uint64.from_address(into).value = context
        return int(status)

    @ctypes.CFUNCTYPE(i32, ptr, *[i32] * 7, ptr, ptr, ptr)
    def launch(function, gx, gy, gz, bx, by, bz, shared, stream, params, extra):
        (status,) = driver.cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream or 0, params, extra or 0)[:1]
        return int(status)

    @ctypes.CFUNCTYPE(i32, ptr, ctypes.c_uint8, ctypes.c_uint64, ptr)
    def clear(address, value, count, stream):
        return int(driver.cuMemsetD8Async(address, value, count, stream or 0)[0])

    @ctypes.CFUNCTYPE(i32, ptr, ptr, ctypes.c_uint64, ptr)
    def copy(into, source, count, stream):
        return int(driver.cuMemcpyAsync(into, source, count, stream or 0)[0])

    @ctypes.CFUNCTYPE(i32, ptr)
    def wait(stream):
        return int(driver.cuStreamSynchronize(stream or 0)[0])

    return SimpleNamespace(cuCtxPushCurrent_v2=push, cuCtxPopCurrent_v2=pop, cuLaunchKernel=launch,
                           cuMemsetD8Async=clear, cuMemcpyDtoHAsync_v2=copy, cuStreamSynchronize=wait)  # fmt: skip
