"""Launches as targets of XLA's foreign function interface: XLA calls machine code of ours, and no Python.

XLA's structures are read from the headers that jaxlib ships, so that their offsets are those of the XLA there is.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from ..base.digest import digest
from ..base.errors import InternalError, TreadleError
from ..base.forks import fresh_lock
from ..runtime import native, prints
from ..runtime.array_views import product
from ..runtime.launch import WORTH_WORKERS, Program, table
from ..types.records import (
    BRIEF,
    FAULT,
    GATE,
    LAUNCH,
    LOG,
    MAX_DIMS,
    MAX_LEVELS,
    MAX_MOVES,
    PROGRAM,
    REPLAY,
    STOPPED,
    TARGET,
    WORK,
    Memory,
)
from .extras import jax

MAX_ARGS = 4096  # bytes of arguments that the handler has room for

# The headers ------------------------------------------------------------------------------------------------------

_STRUCT = re.compile(r"(?:typedef\s+)?struct\s+(\w+)\s*\{(.*?)\}", re.DOTALL)
_ENUM = re.compile(r"typedef\s+enum\s*\{(.*?)\}\s*(\w+)\s*;", re.DOTALL)
_BIT = re.compile(r"(\w+)\s*=\s*1u\s*<<\s*(\d+)")
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
    found |= {name: 1 << int(place) for name, place in _BIT.findall(text)}
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


class Work(NamedTuple):
    """A native function that does the work: ``i32 address(context, buffers, words)``, which is 0 where all went well,
    and AGAIN where there is other work now. ``keep`` must live as long as calls are made; ``told`` says in words what
    any other status, and what the function left in ``words``, mean. ``context``: None means how deep the target lies.
    ``alone``: nobody else does such work at that depth meanwhile (``jax_nesting.py``)."""

    address: int
    context: int | None
    keep: Any
    told: Callable[[int, bytes], str]
    alone: bool = False


class Told:
    """Something that XLA knows by ``name``, and the record of what it does. It lives as long as the process: XLA may
    keep what calls it."""

    platform = "cpu"
    stages = ("execute",)  # at which XLA calls it

    def __init__(self, name: str, buffers: Buffers, library: Any):
        self.name, self.number, self.library = name, next(_numbers), library
        self.record = record = Memory(TARGET)
        self.tables = table([move.row() for move in buffers.moves]), table([*buffers.cleared])
        for field, rows, given in zip(("moves", "zeros"), self.tables, (buffers.moves, buffers.cleared), strict=True):
            record[field], record[f"n{field}"] = rows.buffer_info()[0], len(given)
        self.levels = tuple([level.size for level in buffers.levels])
        record["count"] = product(self.levels)
        for k, size in enumerate((*self.levels, *(1,) * (MAX_LEVELS - len(self.levels)))):
            record[f"size{k}"] = max(size, 1)
        record["report"], record["number"] = ctypes.cast(_report, ctypes.c_void_p).value or 0, self.number
        ctypes.c_uint64.from_address(library.addresses["treadle_target"]).value = record.address
        _targets[self.number] = self

    def takes(self, packed: bytes) -> None:
        """The arguments of a launch, without what depends on the call."""
        self.args = ctypes.create_string_buffer(bytes(packed), max(len(packed), 8))
        self.record["args"], self.record["nbytes"] = ctypes.addressof(self.args), len(packed)

    def tell(self, status: int, fault: int, log: int, shadow: int, words: int) -> str:
        """What happened in a call, in words, or nothing."""
        raise NotImplementedError


class Target(Told):
    """Launches of a program on the CPU, or :class:`Work`, which may change."""

    def __init__(self, name: str, buffers: Buffers, launch: tuple[Program, bytes, tuple[int, ...]] | None,
                 weight: float, ordered: bool, depth: int = 0):  # fmt: skip
        super().__init__(name, buffers, native.ffi_handler(layout()))
        self.depth = depth
        driver = native.driver()
        self.told, record = Memory(LAUNCH), self.record
        record["env"], record["drive"] = driver.env.address, driver.address
        self.program, self.dims = None, (1,)
        self.work: tuple[Work, Memory] | None = None
        if launch is not None:
            self._launches(*launch)
        self.told["stop"], record["launch"] = driver.stop, self.told.address
        self.batch = self._batch(weight, ordered) if self.levels else None
        record["batch"] = self.batch.address if self.batch is not None else 0

    def _launches(self, program: Program, packed: bytes, dims: tuple[int, ...]) -> None:
        """Launch a program."""
        self.program, self.dims = program, dims
        self.takes(packed)
        self.record["program"] = program.record.address
        self.told["size"], self.told["checked"] = product(dims), program.checked
        for k, extent in enumerate((*dims, *(1,) * (MAX_DIMS - len(dims)))):
            self.told[f"dim{k}"] = extent

    def does(self, work: Work) -> None:
        """From now on do ``work``. What was done before is let go once no call of it is under way."""
        pair = Memory(WORK)
        pair["function"] = work.address
        pair["context"] = self.depth if work.context is None else work.context
        pair["gate"] = _gate(self.depth).address if work.alone else 0
        if work.alone and self.batch is not None:
            self.batch["order"] = 1
        before, self.work = self.work, (work, pair)
        self.record["work"] = pair.address
        if before is not None:
            _retired.append((self, before))
        _retired[:] = [(target, old) for target, old in _retired if target.record["busy"]]

    def _batch(self, weight: float, ordered: bool) -> Memory:
        """The program whose threads are the elements of the batch, each worth ``weight`` ns."""
        inner = Memory(PROGRAM)
        inner["entry"], inner["order"] = self.library.addresses["treadle_batch"], ordered
        inner["bounded"], inner["grain"], inner["work"] = self.program is not None, 1, 1000
        inner["piece"] = 64
        if self.program is not None:
            inner["bounded"] = int(self.program.record["bounded"] == BRIEF)
        inner["pool_size"] = max(int(WORTH_WORKERS / max(weight, 1.0)), 1)
        return inner

    def tell(self, status: int, fault: int, log: int, shadow: int, words: int) -> str:
        """Write what the kernel printed; what it reported, in words, or nothing."""
        lines = (ctypes.c_int64 * len(LOG.at)).from_address(log)
        if lines[0] and self.program is not None:
            text = ctypes.string_at(lines[0], lines[1])
            _free(lines[0])
            prints.write(text, self.program.entry.meta["prints"])
        places = (ctypes.c_int64 * len(LOG.at)).from_address(shadow)
        if places[0]:
            _free(places[0])
        if status == STOPPED:
            return "the work was interrupted"
        if self.program is None:
            return self.work[0].told(status, ctypes.string_at(words, 8 * len(REPLAY.at))) if self.work else ""
        report = ctypes.string_at(fault, FAULT.size)
        return str(self.program.error(report, self.dims)) if status or any(report[:8]) else ""


@cache
def _gate(depth: int) -> Memory:
    """What work that must be alone goes through, at each depth one."""
    return Memory(GATE)


def _free(address: int) -> None:
    ctypes.pythonapi.PyMem_RawFree(ctypes.c_void_p(address))


_numbers = itertools.count(1)
_targets: dict[int, Told] = {}
_names: dict[str, Told] = {}
_retired: list[tuple[Target, Any]] = []  # work that may still be under way
_said = threading.local()  # keeps a message until XLA has copied it
_lock = fresh_lock(globals())


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int32, *[ctypes.c_void_p] * 4)
def _report(number: int, status: int, fault: int, log: int, shadow: int, words: int) -> int:
    """What native code calls where something happened: the address of a message, or 0."""
    said, _last = spoken(lambda: _targets[number].tell(status, fault, log, shadow, words))
    return message(said)


def spoken(tell: Callable[[], str]) -> tuple[str, Any]:
    """What XLA is told by ``tell``, or of its exception, which cannot go through native code; and :func:`heard_again`
    where that was Ctrl-C, for the caller to keep."""
    try:
        return tell(), None
    except Exception as error:
        return str(error) if isinstance(error, TreadleError) else f"{type(error).__name__}: {error}", None
    except KeyboardInterrupt:
        return "the work was interrupted by Ctrl-C", heard_again()


def heard_again() -> Any:
    """Ctrl-C was raised where it cannot go further: in what native code has called. What this makes is for that
    function to keep: at its end it goes, and the main thread hears of the Ctrl-C once more when it is back in Python.

    It calls ``PyErr_SetInterrupt``. If Python did, its next step would be interrupted, here again.
    """
    if threading.get_ident() != threading.main_thread().ident:
        return None  # what ended work of this thread is still to be raised in that one
    api = ctypes.pythonapi
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    interrupt = ctypes.cast(api.PyErr_SetInterrupt, ctypes.c_void_p).value
    return make(("PyCapsule_New", api))(interrupt, None, interrupt)


def target_of(number: int) -> Told:
    """The target of that number."""
    return _targets[number]


def message(said: str) -> int:
    """The address of a message for XLA, which copies it; 0 where there is none."""
    if not said:
        return 0
    _said.text = ctypes.create_string_buffer(said.encode(errors="backslashreplace"))
    return ctypes.addressof(_said.text)


class Level(NamedTuple):
    """One axis of a batch, which ``jax.vmap`` made: its extent, and which operands have it."""

    size: int
    flags: tuple[bool, ...]


class Buffers:
    """The operands and results of a target, being put together. ``aliases``: operands that become results."""

    def __init__(self, batch: Sequence[Level]):
        self.levels = merged(batch)
        self.sizes = tuple([level.size for level in batch])
        self.moves: list[Move] = []
        self.cleared: list[tuple[int, int]] = []
        self.results: list[tuple[tuple[int, ...], Any]] = []
        self.aliases: dict[int, int] = {}

    def result(self, shape: tuple[int, ...], dtype: Any, clear: bool, alias: int | None = None) -> tuple[bool, int]:
        """A new result: it begins as operand ``alias``, or cleared, or as memory is."""
        index = len(self.results)
        self.results.append(((*self.sizes, *shape), dtype))
        if alias is not None:
            self.aliases[alias] = index
        elif clear:
            self.cleared.append((index, product((*self.sizes, *shape)) * dtype.itemsize))
        return True, index

    def move(self, source: tuple[bool, int], nbytes: int, offset: int = 0, by_value: int = 0) -> None:
        """The buffer ``source``, of ``nbytes`` an element of the batch, goes to ``offset``."""
        is_result, index = source
        step, steps = nbytes, []
        for level in reversed(self.levels):
            has = is_result or level.flags[index]
            steps.append(step if has else 0)
            step *= level.size if has else 1
        self.moves.append(Move(is_result, index, offset, by_value, tuple(reversed(steps))))

    def facts(self) -> str:
        """All of it in words."""
        return repr(([*self.moves], self.cleared, [level.size for level in self.levels]))


def merged(batch: Sequence[Level]) -> tuple[Level, ...]:
    """The axes of a batch, those that the same operands have taken together.

    Raises:
        NotImplementedError: more of them are left than the handler knows.
    """
    found: list[Level] = []
    for level in batch:
        if found and found[-1].flags == level.flags:
            found[-1] = Level(found[-1].size * level.size, level.flags)
        else:
            found.append(level)
    if len(found) > MAX_LEVELS:
        raise NotImplementedError(f"{len(found)} nested vmaps of different operands; {MAX_LEVELS} are possible")
    return (*found,)


def register_launch(program: Program, packed: bytes, dims: tuple[int, ...], buffers: Buffers) -> str:
    """Make the launch of a program, over a grid of ``dims``, known to XLA, and give its name.

    The name is the digest of all that the launch is, so that executables that JAX keeps on disk find it again.

    Args:
        packed: the arguments, without what depends on the call.

    Raises:
        InternalError: more than the handler has room for.
    """
    meta = program.entry.meta
    weight = max(meta.get("weight", 1.0), 1e-3) * max(product(dims), 1)

    def made(name: str) -> Target:
        return Target(name, buffers, (program, packed, dims), weight, bool(meta.get("prints")))

    return named(program, packed, dims, buffers, made)


def named(program: Program, packed: bytes, dims: tuple[int, ...], buffers: Buffers, make: Callable[[str], Told],
          more: str = "") -> str:  # fmt: skip
    """The name of a launch, for which ``make`` makes the target if there is none yet. ``more``: what else it is.

    Raises:
        InternalError: it has more arguments than handlers have room for.
    """
    if len(packed) > MAX_ARGS or len(buffers.moves) > MAX_MOVES:
        raise InternalError(f"kernel {program.name} has too many arguments for a function of JAX")
    facts = repr((program.name, dims, program.checked)) + buffers.facts() + more
    name = "treadle_" + digest(program.entry.binary.code, bytes(packed), facts)[:40]
    with _lock:
        if name not in _names:
            _register(make(name))
    return name


def register_work(facts: Sequence[str], buffers: Buffers, weight: float, ordered: bool,
                  depth: int = 0) -> Target:  # fmt: skip
    """Make a function of buffers known to XLA; what it does is said by :meth:`Target.does`.

    Args:
        facts: what it is, in words that are the same in another process. Several functions that agree in it have
            names by the order in which they come.
        weight: about how many ns it takes.
        ordered: whether elements of a batch come one after the other.
        depth: how many functions that JAX calls are around it.
    """
    if len(buffers.moves) > MAX_MOVES:
        raise InternalError("a function of JAX has too many arguments")
    name = "treadle_" + digest(*facts, buffers.facts(), *[f"depth {depth}"] * bool(depth))[:40]
    return numbered(name, lambda name: Target(name, buffers, None, weight, ordered, depth))  # type: ignore[return-value]


def numbered(name: str, make: Callable[[str], Told]) -> Told:
    """The target that ``make`` makes, under ``name`` and the next number."""
    with _lock:
        number = next(k for k in itertools.count() if f"{name}_{k}" not in _names)
        return _register(make(f"{name}_{number}"))


def _register(target: Told) -> Told:
    _names[target.name] = target
    handler = jax().ffi.pycapsule(ctypes.c_void_p(target.library.addresses["treadle_ffi"]))
    jax().ffi.register_ffi_target(target.name, dict.fromkeys(target.stages, handler), platform=target.platform)
    return target
