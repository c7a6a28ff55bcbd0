"""Launches on GPUs as targets of XLA's foreign functions: machine code of ours gives their passes to XLA's stream.

A target is for all GPUs of the machine. What it gives to one of them is made when XLA gets a program ready for that;
grids, and the memory that passes share, which XLA allocates as one more result, are as the first GPU has them.
"""

from __future__ import annotations

import ctypes
import threading
from array import array as words
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.digest import digest
from ..base.errors import DeviceError, InternalError
from ..runtime import cuda, native
from ..runtime.launch import Program
from ..types.records import FAR, FAULT, MAX_ITEMS, MAX_MOVES, WORK, Memory
from .xla import Buffers, Told, Work, layout, message, named, numbered, spoken, target_of

if TYPE_CHECKING:
    from ..runtime.cuda.gpu import Gpu
    from ..runtime.cuda.handed import Handed

_COMPLETE = 2  # the state of a fault record that is written
_NEEDED = "XLA_FFI_Api.XLA_FFI_DeviceOrdinal_Get"


class GpuTarget(Told):
    """Launches of a program on whichever GPU XLA calls for, or :class:`Work` that gives something to its stream.

    Args:
        program: gives the program for a GPU, None where there is none but work.
        scratch: the number of the result that passes share; -1: they share nothing.
        like: the launch on the GPU that this result was made for.
    """

    platform = "CUDA"
    stages = ("initialize", "execute")

    def __init__(self, name: str, buffers: Buffers, program: Callable[[Gpu], Program] | None, packed: bytes,
                 dims: tuple[int, ...], scratch: int = -1, like: Handed | None = None):  # fmt: skip
        if _NEEDED not in layout():
            raise DeviceError("this jaxlib does not tell on which GPU a function is called; install a newer one")
        super().__init__(name, buffers, native.ffi_handler(layout(), far=True))
        self._program, self._packed, self.dims, self._like = program, packed, dims, like
        self._pointers = [move.offset for move in buffers.moves if not move.nbytes]
        self._handed: dict[int, Any] = {}
        self._loading = threading.Lock()
        self._work: tuple[Work, Memory] | None = None
        self.takes(packed)
        record = self.record
        self._gpus = words("Q", [0] * max(cuda.count(), 1))
        record["gpus"], record["ngpus"] = self._gpus.buffer_info()[0], len(self._gpus)
        record["load"] = ctypes.cast(_load, ctypes.c_void_p).value or 0
        record["scratch"] = scratch
        # A number that JAX computes must be waited for; nobody knows what a function does.
        again = program is not None and not any(move.nbytes for move in buffers.moves)
        record["traits"] = layout()["XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE"] if again else 0

    def does(self, work: Work) -> None:
        """Let Python give something to the stream."""
        pair = Memory(WORK)
        pair["function"], pair["context"] = work.address, work.context or 0
        self._work, self.record["work"] = (work, pair), pair.address

    def load(self, number: int) -> None:
        """Make what is given to a GPU, if another thread has not done so meanwhile: it lasts, as calls may use it.

        Raises:
            DeviceError: there is none of that number, or it is of another kind than the first.
        """
        with self._loading:
            if number not in self._handed:
                self._load(number)

    def _load(self, number: int) -> None:
        from ..runtime.cuda.handed import Handed

        device = cuda.device(number)
        if self._program is None or self._like is None:
            made = Memory(FAR)
            made["gpu"] = device.quick.record.address  # type: ignore[attr-defined]
            self._handed[number], self._gpus[number] = made, made.address
            return
        handed = like = self._like
        if like.device is not device:
            handed = Handed(self._program(device), self._packed, self.dims, self._pointers, like.rooms)
        if handed.nbytes > like.nbytes:
            raise DeviceError(f"{device} needs {handed.nbytes} bytes between passes, {like.device} {like.nbytes}")
        self._handed[number], self._gpus[number] = handed, handed.record.address

    def tell(self, status: int, fault: int, log: int, shadow: int, words: int) -> str:
        """What the driver, or an earlier call, reported."""
        report = ctypes.string_at(fault, FAULT.size) if fault else b""
        if int.from_bytes(report[:8], "little") == _COMPLETE:
            ctypes.memset(fault, 0, FAULT.size)
            program = next(made.program for made in self._handed.values() if made.fault == fault)
            return f"reported by a call before: {program.error(report, self.dims)}"
        if self._work is not None and status < 0:
            return self._work[0].told(-status, b"")
        driver = cuda.driver.driver()
        return str(driver.error("a launch for JAX", driver.enum_of("CUresult", status))) if status else ""


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)
def _load(number: int, gpu: int) -> int:
    """What native code calls for a GPU that a target does not know yet: the address of a message, or 0."""
    said, _last = spoken(lambda: target_of(number).load(gpu) or "")  # type: ignore[attr-defined]
    return message(said)


def register_launch(program: Callable[[Gpu], Program], first: Gpu, packed: bytes, dims: tuple[int, ...],
                    buffers: Buffers) -> str:  # fmt: skip
    """Make a launch over a grid of ``dims`` known to XLA, and give its name.

    Args:
        program: gives the program for a GPU.
        first: the GPU that decides how much memory passes share.
        packed: the arguments, without what depends on the call.

    Raises:
        InternalError: more than the handler has room for.
    """
    from ..runtime.cuda.handed import Handed

    own = program(first)
    pointers = [move.offset for move in buffers.moves if not move.nbytes]
    like, scratch = Handed(own, packed, dims, pointers), -1
    if len(own.entry.scratch) > MAX_ITEMS:
        raise InternalError(f"kernel {own.name} shares too much between its passes")
    if like.nbytes:
        scratch = len(buffers.results)
        buffers.results.append(((like.nbytes,), np.dtype("u1")))

    def made(name: str) -> GpuTarget:
        return GpuTarget(name, buffers, program, packed, dims, scratch, like)

    return named(own, packed, dims, buffers, made, f"{like.nbytes} bytes")


def register_work(facts: Sequence[str], buffers: Buffers) -> GpuTarget:
    """Make a function of buffers known to XLA, which gives something to a stream; see ``xla.register_work``."""
    if len(buffers.moves) > MAX_MOVES:
        raise InternalError("a function of JAX has too many arguments")
    name = "treadle_gpu_" + digest(*facts, buffers.facts())[:40]
    return numbered(name, lambda name: GpuTarget(name, buffers, None, b"", (1,)))  # type: ignore[return-value]
