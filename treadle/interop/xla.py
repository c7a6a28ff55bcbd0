"""Launches as targets of XLA's foreign function interface: XLA calls machine code of ours, and no Python.

XLA's structures are read from the headers that jaxlib ships, so that their offsets are those of the XLA there is.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import threading
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from ..base.digest import digest
from ..base.errors import InternalError, TreadleError
from ..runtime import native, prints
from ..runtime.array_views import product
from ..runtime.launch import WORTH_WORKERS, Program, table
from ..types.records import FAULT, LAUNCH, LOG, MAX_DIMS, MAX_LEVELS, MAX_MOVES, PROGRAM, TARGET, Memory
from .extras import jax

MAX_ARGS = 4096  # bytes of arguments that the handler has room for
_STOPPED = 2

# The headers ------------------------------------------------------------------------------------------------------

_STRUCT = re.compile(r"(?:typedef\s+)?struct\s+(\w+)\s*\{(.*?)\}", re.DOTALL)
_ENUM = re.compile(r"typedef\s+enum\s*\{(.*?)\}\s*(\w+)\s*;", re.DOTALL)
_DEFINE = re.compile(r"#define\s+(XLA_FFI_API_M\w+)\s+(\d+)")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WIDE = frozenset({"size_t", "int64_t", "uint64_t"})
_NARROW = frozenset({"int", "int32_t", "uint32_t", "XLA_FFI_Handler_Traits"})


@cache
def layout() -> dict[str, int]:
    """Offsets of fields as ``"Structure.field"``, sizes as ``"Structure"``, and enumerators, of XLA's C interface."""
    path = os.path.join(jax().ffi.include_dir(), "xla", "ffi", "api", "c_api.h")
    with open(path, encoding="utf-8") as file:
        return parse_header(file.read())


def parse_header(text: str) -> dict[str, int]:
    """The same of the text of a header, which declares structures before it nests them."""
    text = _COMMENT.sub("", text)
    found = {name: int(value) for name, value in _DEFINE.findall(text)}
    enums = set()
    for body, name in _ENUM.findall(text):
        enums.add(name)
        found.update({key: int(value) for key, value in re.findall(r"(\w+)\s*=\s*(\d+)", body)})
    sizes: dict[str, int] = {}
    for name, body in _STRUCT.findall(re.sub(r"_XLA_FFI_API_STRUCT_FIELD\((\w+)\)", r"void* \1", text)):
        at = 0
        for field in filter(None, map(str.strip, body.split(";"))):
            kind, _, label = field.rpartition(" ")
            label = re.findall(r"\w+", label if "(" not in field else field.partition(")")[0])[-1]
            kind = re.sub(r"\b(const|struct)\b", "", kind).strip()
            if "*" in field:
                size, align = 8, 8
            elif kind in _WIDE:
                size, align = 8, 8
            elif kind in _NARROW or kind in enums:
                size, align = 4, 4
            elif kind in sizes:
                size, align = sizes[kind], 8
            else:
                raise InternalError(f"XLA's header has a field of unknown type: {name}: {field}")
            at = -(-at // align) * align
            found[f"{name}.{label}"] = at
            at += size
        sizes[name] = -(-at // 8) * 8
    return {**found, **sizes}


# Targets ------------------------------------------------------------------------------------------------------------


class Move(NamedTuple):
    """Where a buffer goes among the arguments: its address, or, with ``nbytes``, so much of its content.

    ``result``: it is a result, else an operand, number ``index``; ``steps``: bytes from one element of a batch to the
    next, per level.
    """

    result: bool
    index: int
    offset: int
    nbytes: int = 0
    steps: tuple[int, ...] = ()

    def row(self) -> tuple[int, ...]:
        """As native code reads it."""
        return (self.result, self.index, self.offset, self.nbytes, *self.steps, *[0] * (MAX_LEVELS - len(self.steps)))


class Target:
    """One launch that XLA knows by ``name``. It lives as long as the process: XLA may keep what calls it."""

    def __init__(self, name: str, program: Program, packed: bytes, dims: tuple[int, ...], moves: Sequence[Move],
                 cleared: Sequence[tuple[int, int]], levels: tuple[int, ...]):  # fmt: skip
        self.name, self.program, self.dims = name, program, dims
        self.number = next(_numbers)
        driver = native.driver()
        self.library = native.ffi_handler(layout())
        self.record, self.launch = Memory(TARGET), Memory(LAUNCH)
        self.args = ctypes.create_string_buffer(bytes(packed), max(len(packed), 8))
        self.tables = table([move.row() for move in moves]), table([*cleared])
        record, launch = self.record, self.launch
        record["env"], record["drive"] = driver.env.address, driver.address
        record["program"], record["args"] = program.record.address, ctypes.addressof(self.args)
        record["nbytes"] = len(packed)
        for name_of, count, rows in zip(("moves", "zeros"), ("nmoves", "nzeros"), self.tables, strict=True):
            record[name_of], record[count] = rows.buffer_info()[0], len(moves if name_of == "moves" else cleared)
        launch["size"], launch["stop"], launch["checked"] = product(dims), driver.stop, program.checked
        for k, extent in enumerate((*dims, *(1,) * (MAX_DIMS - len(dims)))):
            launch[f"dim{k}"] = extent
        record["launch"] = launch.address
        record["count"] = product(levels)
        for k, size in enumerate((*levels, *(1,) * (MAX_LEVELS - len(levels)))):
            record[f"size{k}"] = max(size, 1)
        self.batch = self._batch() if levels else None
        record["batch"] = self.batch.address if self.batch is not None else 0
        record["report"], record["number"] = ctypes.cast(_report, ctypes.c_void_p).value or 0, self.number
        address = self.library.addresses["treadle_target"]
        ctypes.c_uint64.from_address(address).value = record.address
        _targets[self.number] = self

    def _batch(self) -> Memory:
        """The program whose threads are the elements of the batch; what prints runs in order."""
        inner = Memory(PROGRAM)
        own = self.program.record
        inner["entry"] = self.library.addresses["treadle_batch"]
        inner["order"] = bool(self.program.entry.meta.get("prints"))
        inner["bounded"], inner["grain"], inner["work"] = own["bounded"], 1, own["work"]
        weight = max(self.program.entry.meta.get("weight", 1.0), 1e-3) * max(product(self.dims), 1)
        inner["pool_size"] = max(int(WORTH_WORKERS / weight), 1)
        return inner

    def tell(self, status: int, fault: int, log: int, shadow: int) -> str:
        """Write what the kernel printed; what it reported, in words, or nothing."""
        lines = (ctypes.c_int64 * len(LOG.at)).from_address(log)
        if lines[0]:
            text = ctypes.string_at(lines[0], lines[1])
            _free(lines[0])
            prints.write(text, self.program.entry.meta["prints"])
        places = (ctypes.c_int64 * len(LOG.at)).from_address(shadow)
        if places[0]:
            _free(places[0])
        if status == _STOPPED:
            return f"the launch of kernel {self.program.name} was interrupted"
        report = ctypes.string_at(fault, FAULT.size)
        return str(self.program.error(report, self.dims)) if status or any(report[:8]) else ""


def _free(address: int) -> None:
    ctypes.pythonapi.PyMem_RawFree(ctypes.c_void_p(address))


_numbers = itertools.count(1)
_targets: dict[int, Target] = {}
_names: dict[str, Target] = {}
_said = threading.local()  # keeps a message until XLA has copied it
_lock = threading.Lock()


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int32, *[ctypes.c_void_p] * 3)
def _report(number: int, status: int, fault: int, log: int, shadow: int) -> int:
    """What native code calls where something happened: the address of a message, or 0."""
    try:
        words = _targets[number].tell(status, fault, log, shadow)
    except TreadleError as error:
        words = str(error)
    if not words:
        return 0
    _said.text = ctypes.create_string_buffer(words.encode())
    return ctypes.addressof(_said.text)


def register(program: Program, packed: bytes, dims: tuple[int, ...], moves: Sequence[Move],
             cleared: Sequence[tuple[int, int]] = (), levels: tuple[int, ...] = ()) -> str:  # fmt: skip
    """Make a launch known to XLA, and give its name.

    The name is the digest of all that the launch is, so that executables that JAX keeps on disk find it again.

    Args:
        program: what is launched, over a grid of ``dims``.
        packed: its arguments, without what depends on the call.
        moves: what depends on it.
        cleared: results whose bytes are set to zero first, with their numbers of bytes.
        levels: the extents of a batch, outermost first.

    Raises:
        InternalError: more than the handler has room for.
    """
    if len(packed) > MAX_ARGS or len(moves) > MAX_MOVES or len(levels) > MAX_LEVELS:
        raise InternalError(f"kernel {program.name} has too many arguments for a function of JAX")
    facts = repr((program.name, dims, [*moves], [*cleared], levels, program.checked))
    name = "treadle_" + digest(program.entry.binary.code, bytes(packed), facts)[:40]
    with _lock:
        if name not in _names:
            made = _names[name] = Target(name, program, packed, dims, moves, cleared, levels)
            handler = ctypes.c_void_p(made.library.addresses["treadle_ffi"])
            jax().ffi.register_ffi_target(name, jax().ffi.pycapsule(handler), platform="cpu")
    return name
