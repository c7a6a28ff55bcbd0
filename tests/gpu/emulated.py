"""A stand-in for the CUDA driver that runs kernels on this processor, for tests of everything above it.

It has the functions of ``cuda.bindings.driver`` that treadle calls, does at once what they ask for, and executes the LLVM
text that PTX is made of (``tests/codegen/gpu_text.py``). Memory "of the device" cannot be read or written while no
function of the driver runs, so that nobody mistakes it for the host's. What it cannot show: what PTX and its assembler
make of the text, races, and time.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import mmap
from typing import Any

import llvmlite.binding as llvm

from tests.codegen.gpu_text import Module

ARENA = 1 << 28
FACTS = {
    "COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0, "MULTIPROCESSOR_COUNT": 2,
    "MAX_THREADS_PER_MULTIPROCESSOR": 512, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448, "UNIFIED_ADDRESSING": 1,
    "MEMORY_POOLS_SUPPORTED": 1,
}  # fmt: skip


class Arena:
    """Memory of the device: first fit, guarded while nobody works."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, ARENA)
        self.start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.free = [(self.start, ARENA)]
        self.taken: dict[int, int] = {}
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self.depth = 0

    def open(self, wanted: bool) -> None:
        self.depth += 1 if wanted else -1
        if self.depth == (1 if wanted else 0):
            assert self.libc.mprotect(self.start, ARENA, mmap.PROT_READ | mmap.PROT_WRITE if wanted else 0) == 0

    def take(self, nbytes: int) -> int | None:
        nbytes = -(-nbytes // 256) * 256
        for k, (at, size) in enumerate(self.free):
            if size >= nbytes:
                self.free[k] = (at + nbytes, size - nbytes)
                self.taken[at] = nbytes
                ctypes.memset(at, 0xCD, nbytes)
                return at
        return None

    def give(self, at: int) -> None:
        self.free.append((at, self.taken.pop(at)))
        merged: list[tuple[int, int]] = []
        for start, size in sorted(self.free):
            if merged and merged[-1][0] + merged[-1][1] == start:
                merged[-1] = (merged[-1][0], merged[-1][1] + size)
            elif size:
                merged.append((start, size))
        self.free = merged


class _Parameters:
    """A node to be: what the driver would fill in is there from the start."""

    def __init__(self) -> None:
        self.type = None
        self.conditional = type("Conditional", (), {})()
        self.conditional.phGraph_out = [_Graph()]


class _Graph:
    """A list of functions. ``values``: of its conditions."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []

    def run(self) -> None:
        for node in self.nodes:
            node()


class Driver:
    """What stands where ``cuda.bindings.driver`` does."""

    def __init__(self) -> None:
        from cuda.bindings import driver

        self._real = driver
        self.CUgraphNodeParams = _Parameters
        self.cuuint64_t = int
        self.arena = Arena()
        self.modules: dict[int, Module] = {}
        self.functions: dict[int, tuple[Module, str]] = {}
        self.host: dict[int, Any] = {}
        self.captured: dict[int, _Graph] = {}  # by stream
        self.graphs: dict[int, _Graph] = {}
        self.conditions: dict[int, int] = {}
        self.calls: list[str] = []
        self._number = 100
        set_ = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_int32)
        self._set = set_(lambda handle, value: self.conditions.__setitem__(handle, value))
        llvm.add_symbol("cudaGraphSetConditional", ctypes.cast(self._set, ctypes.c_void_p).value)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu") or name.startswith("cuuint"):
            return getattr(self._real, name)
        own = getattr(type(self), f"_{name}", None)
        ok = self._real.CUresult.CUDA_SUCCESS

        def call(*args: Any) -> tuple:
            self.calls.append(name)
            if own is None:
                if name in _NOTHING:
                    return (ok,)
                raise AssertionError(f"the emulated driver has no {name}")
            self.arena.open(True)
            try:
                found = own(self, *args)
            finally:
                self.arena.open(False)
            if isinstance(found, self._real.CUresult):
                return (found, None)
            return (ok,) if found is None else (ok, *found) if isinstance(found, tuple) else (ok, found)

        return call

    def _new(self) -> int:
        self._number += 1
        return self._number

    # ---- what there is

    def _cuDeviceGetCount(self) -> int:
        return 1

    def _cuDeviceGet(self, number: int) -> int:
        return number

    def _cuDeviceGetName(self, size: int, device: int) -> bytes:
        return b"emulated GPU\0"

    def _cuDeviceGetAttribute(self, which: Any, device: int) -> int:
        return FACTS.get(which.name.removeprefix("CU_DEVICE_ATTRIBUTE_"), 0)

    def _cuDeviceGetPCIBusId(self, size: int, device: int) -> bytes:
        return b"0000:00:00.0\0"

    def _cuDevicePrimaryCtxRetain(self, device: int) -> int:
        return 7

    def _cuCtxGetCurrent(self) -> int:
        return 7

    def _cuCtxGetStreamPriorityRange(self) -> tuple[int, int]:
        return 0, -5

    def _cuDriverGetVersion(self) -> int:
        return 13000

    def _cuDeviceTotalMem(self, device: int) -> int:
        return ARENA

    def _cuMemGetInfo(self) -> tuple[int, int]:
        return sum(size for _, size in self.arena.free), ARENA

    # ---- memory

    def _cuMemPoolCreate(self, wanted: Any) -> int:
        return self._new()

    def _cuMemPoolGetAttribute(self, pool: int, which: Any) -> int:
        return sum(self.arena.taken.values())

    def _cuMemAlloc(self, nbytes: int) -> Any:
        found = self.arena.take(nbytes)
        return self._real.CUresult.CUDA_ERROR_OUT_OF_MEMORY if found is None else found

    def _cuMemAllocFromPoolAsync(self, nbytes: int, pool: int, stream: int) -> Any:
        return self._cuMemAlloc(nbytes)

    def _cuMemFree(self, at: int) -> None:
        self.arena.give(at)

    def _cuMemFreeAsync(self, at: int, stream: int) -> None:
        self.arena.give(at)

    def _cuMemHostAlloc(self, nbytes: int, flags: int) -> int:
        made = ctypes.create_string_buffer(nbytes)
        self.host[ctypes.addressof(made)] = made
        return ctypes.addressof(made)

    def _cuMemFreeHost(self, at: int) -> None:
        del self.host[at]

    def _cuPointerGetAttribute(self, which: Any, at: int) -> Any:
        if not self.arena.start <= at < self.arena.start + ARENA:
            return self._real.CUresult.CUDA_ERROR_INVALID_VALUE
        is_type = which == self._real.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
        return int(self._real.CUmemorytype.CU_MEMORYTYPE_DEVICE) if is_type else 0

    def _cuMemcpyAsync(self, into: int, source: int, nbytes: int, stream: int) -> None:
        self._do(stream, lambda: ctypes.memmove(into, source, nbytes))

    def _cuMemsetD8Async(self, at: int, value: int, count: int, stream: int) -> None:
        self._do(stream, lambda: ctypes.memset(at, value, count))

    def _cuMemsetD16Async(self, at: int, value: int, count: int, stream: int) -> None:
        self._do(stream, lambda: ctypes.memmove(at, value.to_bytes(2, "little") * count, 2 * count))

    def _cuMemsetD32Async(self, at: int, value: int, count: int, stream: int) -> None:
        self._do(stream, lambda: ctypes.memmove(at, value.to_bytes(4, "little") * count, 4 * count))

    # ---- code

    def _cuModuleLoadData(self, code: bytes) -> int:
        number = self._new()
        self.modules[number] = Module(code.decode())
        return number

    def _cuModuleGetFunction(self, module: int, name: bytes) -> int:
        number = self._new()
        self.functions[number] = self.modules[module], name.decode()
        return number

    def _cuModuleUnload(self, module: int) -> None:
        del self.modules[module]

    def _cuFuncGetAttribute(self, which: Any, function: int) -> int:
        return 0

    def _cuLaunchKernel(self, function: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, shared: int,
                        stream: int, params: int, extra: int) -> None:  # fmt: skip
        module, name = self.functions[function]
        assert gx > 0 and 0 < bx <= 1024 and (gy, gz, by, bz, extra) == (1, 1, 1, 1, 0)
        if stream not in self.captured:
            module.run(name, params, gx, bx)
            return
        kept, table = _copied(params, module, name)  # as the driver does
        self._do(stream, lambda: kept and module.run(name, ctypes.addressof(table), gx, bx))

    # ---- streams, events, graphs

    def _do(self, stream: int, work: Any) -> None:
        graph = self.captured.get(int(stream))
        work() if graph is None else graph.nodes.append(work)

    def _cuStreamCreateWithPriority(self, flags: int, priority: int) -> int:
        return self._new()

    def _cuEventCreate(self, flags: int) -> int:
        return self._new()

    def _cuEventElapsedTime(self, a: int, b: int) -> float:
        return 0.5

    def _cuStreamIsCapturing(self, stream: int) -> Any:
        status = self._real.CUstreamCaptureStatus
        active = stream in self.captured
        return status.CU_STREAM_CAPTURE_STATUS_ACTIVE if active else status.CU_STREAM_CAPTURE_STATUS_NONE

    def _cuStreamBeginCapture(self, stream: int, mode: Any) -> None:
        self.captured[stream] = _Graph()

    def _cuStreamBeginCaptureToGraph(self, stream: int, graph: _Graph, *rest: Any) -> None:
        self.captured[stream] = graph

    def _cuStreamEndCapture(self, stream: int) -> _Graph:
        return self.captured.pop(stream)

    def _cuStreamGetCaptureInfo(self, stream: int) -> tuple:
        return self._real.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE, 1, self.captured[stream], (), None, 0

    def _cuGraphConditionalHandleCreate(self, graph: _Graph, context: int, default: int, flags: int) -> int:
        number = self._new()
        self.conditions[number] = default
        return number

    def _cuGraphAddNode(self, graph: _Graph, *rest: Any) -> int:
        wanted = rest[-1].conditional
        body, handle, kind = wanted.phGraph_out[0], wanted.handle, self._real.CUgraphConditionalNodeType

        def run() -> None:
            if wanted.type == kind.CU_GRAPH_COND_TYPE_IF:
                if self.conditions[handle]:
                    body.run()
                return
            while self.conditions[handle]:
                body.run()

        graph.nodes.append(run)
        return self._new()

    def _cuGraphInstantiate(self, graph: _Graph, flags: int) -> int:
        number = self._new()
        self.graphs[number] = graph
        return number

    def _cuGraphLaunch(self, graph: int, stream: int) -> None:
        self.graphs[graph].run()

    def _cuGraphExecDestroy(self, graph: int) -> None:
        del self.graphs[graph]


_NOTHING = {
    "cuInit", "cuCtxPushCurrent", "cuCtxPopCurrent", "cuCtxSynchronize", "cuStreamSynchronize", "cuStreamQuery",
    "cuStreamWaitEvent", "cuStreamDestroy", "cuEventRecord", "cuEventSynchronize", "cuEventQuery", "cuEventDestroy",
    "cuMemPoolSetAttribute", "cuCtxSetLimit", "cuFuncSetAttribute", "cuGraphDestroy",
    "cuStreamUpdateCaptureDependencies",
}  # fmt: skip


def _copied(params: int, module: Module, name: str) -> tuple[list, Any]:
    """The parameters of a launch as they are now."""
    sizes = module.sizes[name]
    table = (ctypes.c_void_p * len(sizes))()
    kept = []
    for k, size in enumerate(sizes):
        source = ctypes.c_void_p.from_address(params + 8 * k).value
        kept.append(ctypes.create_string_buffer(ctypes.string_at(source, size), size))
        table[k] = ctypes.addressof(kept[-1])
    return kept, table


def install() -> Driver:
    """From now on ``cuda:0`` is the emulated GPU."""
    from treadle.codegen import nvptx
    from treadle.runtime import cuda
    from treadle.runtime.cuda import driver as drivers
    from treadle.runtime.cuda import modules

    made = Driver()
    drivers._bindings = lambda: made
    nvptx.compile_text = lambda text, target: text.encode()
    modules.assembler = lambda: "none: the text itself"
    modules._assembled = lambda ptx, arch: ptx
    cuda.reset()
    made.arena.open(True)
    made.arena.open(False)
    return made
