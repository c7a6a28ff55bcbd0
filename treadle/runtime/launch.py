"""Launches by way of Python: pack the arguments, call the driver, tell what happened.

A :class:`Program` is a loaded kernel with its argument types: the record that the driver and the native launchers read,
and what Python needs to pack, check and report. Native launchers (``fast.py``) do the usual launches; this path takes
the first one, and everything unusual.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from array import array as words
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..base.errors import GridError, IndexOutOfRange, LaunchError, LaunchTypeError, TreadleError
from ..base.span import Span
from ..types.core import SCALARS, Type, View
from ..types.layout import leaves, pack
from ..types.records import (
    ATOMIC_KINDS,
    BRIEF,
    COUNTED,
    FAULT,
    LASTS,
    LAUNCH,
    LOG,
    MAX_DIMS,
    MAX_EXTENT,
    MAX_THREADS,
    POLLS,
    PROGRAM,
    SIMPLE,
    STOPPED,
    SUMS,
    UPDATED_KINDS,
    Memory,
    identity,
)
from . import capture, faults, native, prints
from .array_views import product
from .cpu import Entry
from .memory import span
from .packing import packer, pointers_of

WORTH_WORKERS = 20_000  # ns of work from which on the workers help
PIECE = 64  # times the work that is worth workers: after that a chunk looks whether it shall end
WORTH_A_CHUNK = 2_000  # ns of work that a chunk has at least, if 64 threads have it
MANY = 1 << 14  # rounds of a loop that are worth listening to Ctrl-C
LINEAR, CONSTANT = -1, -2
_Fault, _Log = ctypes.c_int64 * len(FAULT.at), ctypes.c_int64 * len(LOG.at)
_LAUNCH = struct.Struct(f"<{len(LAUNCH.at)}q")
_FAULT = struct.Struct(f"<{len(FAULT.at)}q")


def normal_dims(dim: Any, kernel: str = "a kernel") -> tuple[int, ...]:
    """``dim`` of a launch as a tuple of 1 to 4 extents.

    Raises:
        GridError: negative extents, or too many of them.
        LaunchTypeError: not ints.
    """
    if type(dim) is int:
        dims: tuple[int, ...] = (dim,)
    else:
        try:
            dims = (dim.__index__(),) if hasattr(dim, "__index__") else tuple([d.__index__() for d in dim]) or (1,)
        except (TypeError, AttributeError):
            raise LaunchTypeError(f"dim of a launch is an int or up to four ints, not {dim!r}") from None
    if len(dims) > MAX_DIMS:
        raise GridError(f"launch of {kernel}: a grid has at most {MAX_DIMS} dimensions, not {len(dims)}")
    if min(dims) < 0:
        raise GridError(f"launch of {kernel}: the extents of a grid are non-negative, not {dim!r}")
    return dims


def grain(meta: dict[str, Any], weight: float) -> int:
    """How many threads the chunks of a launch are multiples of: whole gangs, and work that is worth handing out.

    Sums that are kept apart by chunk and by thread index modulo 64 depend on the chunks; those are multiples of 64.
    """
    if meta.get("atomics"):
        return SUMS
    found = meta.get("width", SUMS)
    while found < SUMS and found * weight < WORTH_A_CHUNK:
        found *= 2
    return found


def kind_of(meta: dict[str, Any]) -> int:
    """How long a kernel may run: POLLS, BRIEF, COUNTED or LASTS."""
    if not meta.get("bounded", True):
        return POLLS
    counts = meta.get("counts", ())
    return LASTS if counts is None else COUNTED if counts else BRIEF


class Program:
    """A loaded kernel and its argument types.

    Args:
        entry: what ``Device.load`` gave.
        signature: argument types in order.
        name: the kernel's name, for messages.
        parameters: names of the arguments.
        checked: whether the code checks every index.
        rank, last_min, last_max: grids that the code is for: their rank (0: any) and the range of the last extent,
            which is a multiple of the gang's width if that is to be full.
        shared: whether it is only for launches in which arrays that it updates lie over each other.
    """

    __slots__ = ("__weakref__", "_keep", "_pointers", "args_size", "beside", "checked", "entry", "instead", "last_bits",
                 "last_max", "last_min", "name", "offsets", "origin", "own", "packers", "parameter_table", "parameters",
                 "rank", "record", "shared", "signature", "updated")  # fmt: skip

    def __init__(self, entry: Entry, signature: tuple[Type, ...], name: str, parameters: Sequence[str] = (),
                 checked: bool = False, rank: int = 0, last_min: int = 0, last_max: int = MAX_THREADS,
                 shared: bool = False):  # fmt: skip
        self.entry, self.signature, self.name, self.checked = entry, signature, name, checked
        self.parameters = tuple(parameters) or tuple(f"#{i}" for i in range(len(signature)))
        self.rank, self.last_min, self.last_max, self.shared = rank, last_min, last_max, shared
        self.instead: Program | None = None  # what native launchers run where arrays lie over each other
        self.offsets, self.args_size = pack(signature)
        self._pointers: tuple[int, ...] | None = None
        self.origin: Any = None  # what it was compiled from: kernel (weakly), types, options
        self.packers = tuple(packer(t) for t in signature)
        meta = entry.meta
        self.last_bits = meta.get("width", 1) - 1 if meta.get("full") else 0
        self.own = [self._own_access(access) for access in meta.get("own_index", ())]
        self.record = record = Memory(PROGRAM)
        weight = max(meta.get("weight", 1.0), 1e-3)
        record["entry"] = entry.address
        record["order"] = 0 if meta.get("order", "free") == "free" else 1
        record["bounded"] = kind_of(meta)
        record["pool_size"] = max(int(WORTH_WORKERS / weight), 1)
        record["grain"] = grain(meta, weight)
        record["piece"] = SUMS * (1 + int(PIECE * WORTH_WORKERS / max(meta.get("work", 1.0), 1e-3) / SUMS))
        record["work"] = int(min(max(1e3 * meta.get("work", 1.0), 1), 1e8))
        record["checked"], record["args_size"], record["rank"] = checked, self.args_size, rank
        record["last_min"], record["last_max"], record["nparams"] = last_min, last_max, len(signature)
        record["last_bits"] = self.last_bits
        atomics = [self._atomic(item) for item in meta.get("atomics", ()) if entry.address]
        self.updated = [self.leaf(path) for path in meta.get("updated", ())]
        self.beside = [self.leaf(path) for path in meta.get("beside", ())]
        if len(self.updated) == 1 and not self.beside and None not in self.updated[0].view.strides:
            self.updated = []  # dense: there is nothing that it could meet
        updated = [_extent_row(leaf, "grad" if leaf.gradient else "data") for leaf in self.updated]
        updated += [_extent_row(leaf, "beside") for leaf in self.beside]
        passes = [entry.library.addresses[name] for name in meta.get("counting", ()) if entry.address]
        apart = [_extent_row(self.leaf(path)) for pair in meta.get("apart", ()) for path in pair]
        counts = [row for row in self._counts() if record["bounded"] == COUNTED]
        tables = (table(atomics), table([row for row, _ in self.own]), table(updated), words("Q", passes or [0]),
                  table(apart), table(counts))  # fmt: skip
        self._keep = tables
        record["counting"], record["rounds"] = tables[3].buffer_info()[0], len(passes)
        record["counts"], record["ncounts"] = tables[5].buffer_info()[0], len(counts)
        record["apart"], record["napart"] = tables[4].buffer_info()[0], len(apart) // 2
        record["draws"] = meta.get("draws", False)
        record["simple"] = 0 < len(atomics) <= SIMPLE and all(item["kind"] == "count" for item in meta["atomics"])
        # Counting pays where all workers need less than nine tenths of the time that one needs without it.
        record["counting_workers"] = int((1 + meta.get("counting_weight", 0.0) / weight) / 0.9) + 1
        record["atomics"], record["natomics"] = tables[0].buffer_info()[0], len(atomics)
        record["own"], record["nown"] = tables[1].buffer_info()[0], len(self.own)
        record["updated"], record["nupdated"] = tables[2].buffer_info()[0], len(updated)

    @property
    def pointers(self) -> tuple[int, ...]:
        """Where addresses of arrays and of gradients stand among the arguments."""
        if self._pointers is None:
            self._pointers = tuple([
                offset + at for t, offset in zip(self.signature, self.offsets, strict=True) for at in pointers_of(t)
            ])  # fmt: skip
        return self._pointers

    def _counts(self) -> list[tuple[int, int]]:
        """Rows of COUNT: two at least, of a long number one for each half."""
        found = []
        for at, size in self.entry.meta.get("counts") or ():
            found += [(at, MANY)] if size == 4 else [(at, MANY), (at + 4, 1)]
        return found if len(found) != 1 else 2 * found

    def lasts(self, packed: bytes | bytearray) -> bool:
        """Whether loops of the kernel may last with these arguments."""
        kind = self.record["bounded"]
        counts = self._counts() if kind == COUNTED else []
        return kind == LASTS or any(int.from_bytes(packed[at : at + 4], "little") >= least for at, least in counts)

    def leaf(self, path: Sequence[int | str]) -> Leaf:
        """The array that ``path`` (parameter, field…) leads to, or its gradient where "grad" is last."""
        if len(path) == 1 and isinstance(t := self.signature[path[0]], View):
            return Leaf(self.offsets[path[0]], t)
        first, *rest = path
        gradient = rest[-1:] == ["grad"]
        for leaf in leaves(self.signature[first]):
            if leaf.path == tuple(rest[:-1] if gradient else rest) and isinstance(leaf.type, View):
                return Leaf(self.offsets[first] + leaf.offset, leaf.type, gradient)
        raise LaunchError(f"kernel {self.name} has no array at {list(path)}")

    def _own_access(self, access: dict[str, Any]) -> tuple[tuple[int, ...], dict[str, Any]]:
        offset = self.leaf(access["path"]).offset
        grid, index = access.get("grid", CONSTANT), access.get("index", 0)
        return (offset + 16 + 8 * access["axis"], grid, index), access

    def _atomic(self, item: dict[str, Any]) -> tuple[int, ...]:
        scalar = next(t for t in SCALARS if t.name == item["scalar"])
        leaf = self.leaf(item["path"])
        view = leaf.view
        elements = max(view.elem.size // scalar.size, 1)
        return (ATOMIC_KINDS[item["kind"]], leaf.offset, leaf.pointer, view.ndim, elements, scalar.size,
                identity(item["op"], scalar), native.merge_function(item["op"], scalar), view.planar,
                item.get("round", 0), item.get("rounds", 0),
                native.fold_function(scalar) if item["kind"] == "slots" else 0)  # fmt: skip

    # Launching -------------------------------------------------------------------------------------------------------

    def takes(self, dims: tuple[int, ...]) -> bool:
        """Whether the code is for grids such as ``dims``."""
        fits = self.last_min <= dims[-1] <= self.last_max and not dims[-1] & self.last_bits
        return fits and (not self.rank or len(dims) == self.rank)

    def pack(self, values: Sequence[Any]) -> bytearray:
        """The arguments as the kernel reads them.

        Raises:
            LaunchError, LaunchTypeError: their number or types do not fit.
        """
        if len(values) != len(self.signature):
            raise LaunchError(f"kernel {self.name} takes {len(self.signature)} arguments, {len(values)} were given")
        buffer = bytearray(max(self.args_size, 8))
        for i, (put, offset, value) in enumerate(zip(self.packers, self.offsets, values, strict=True)):
            try:
                put(buffer, offset, value)
            except TreadleError:
                raise
            except (TypeError, OverflowError, AttributeError, ValueError, struct.error) as error:
                what = f"kernel {self.name}: argument {self.parameters[i]!r}"
                raise LaunchTypeError(f"{what}: {error}") from None
        return buffer

    def run(self, values: Sequence[Any], dims: tuple[int, ...]) -> None:
        """Launch over a grid of ``dims`` and wait for its end.

        Raises:
            IndexOutOfRange, KernelAssertionError, UnassignedError: what a thread reported.
            KeyboardInterrupt: Ctrl-C ended the launch.
        """
        self.command(self.pack(values), dims, values)()

    def command(self, packed: bytearray, dims: tuple[int, ...], values: Sequence[Any] = ()) -> Command:
        """A launch that can be repeated, with arguments that are packed already. ``values``: these arguments, so that
        a graph which the launch becomes part of keeps their memory.

        Raises:
            GridError: there are threads whose indices the kernel cannot tell apart.
        """
        if product(dims) > MAX_EXTENT:
            self._check_extents(dims)
        return (self.entry.command or Command)(self, packed, dims, values)

    def _check_extents(self, dims: tuple[int, ...]) -> None:
        for axis in self.entry.meta.get("axes", ()):
            if axis < len(dims) and dims[axis] > MAX_EXTENT:
                raise GridError(
                    f"kernel {self.name} asks for wp.tid(), which is an int32; extent {dims[axis]} in dimension {axis} "
                    f"of the grid is more than {MAX_EXTENT}",
                    hint="split the launch, or use more dimensions",
                )
        if product(dims) > MAX_THREADS:
            raise GridError(f"launch of kernel {self.name}: a grid of {product(dims)} threads is too large")

    def written(self) -> set[tuple[Any, ...]]:
        """The arrays that the kernel stores or adds to, each as parameter and fields."""
        arrays = self.entry.meta["touched"]["arrays"]
        return {tuple(fact["path"]) for fact in arrays if fact["stores"] or fact["added"]}

    @property
    def stored(self) -> set[tuple[Any, ...]] | None:
        """The same with the arrays that it may store to under a name that several have, or by their address; None where
        it is not known what the code does."""
        touched = self.entry.meta.get("touched")
        if touched is None:
            return None
        mixed = touched["mixed"] if touched["unknown"] == "written" else ()
        return self.written() | {(*path,) for path in mixed}

    def meets(self, packed: bytearray) -> bool:
        """Whether arrays that the kernel updates, or elements of one, lie over each other, or a gradient over data; or
        the launch would take too much memory beside them."""
        if self.entry.crowds(self, packed):
            return True
        ranges = sorted([bytes_of(packed, leaf) for leaf in self.updated])
        apart = all(end <= after for (_, end), (after, _) in zip(ranges, ranges[1:]))
        if not apart or any(folds(packed, leaf) for leaf in self.updated):
            return True
        gradients = [bytes_of(packed, leaf) for leaf in self.updated if leaf.gradient]
        data = [bytes_of(packed, leaf) for leaf in self.beside]
        return any(low < end and begin < high for low, high in gradients for begin, end in data)

    def check_own(self, packed: bytearray, dims: tuple[int, ...]) -> None:
        """Raise IndexOutOfRange where an access at the thread's own index, or at a constant one, leaves its array."""
        extents = (*dims, *(1,) * (MAX_DIMS - len(dims)))
        for (offset, axis, index), access in self.own:
            (extent,) = struct.unpack_from("<q", packed, offset)
            last = index if axis == CONSTANT else (product(dims) if axis == LINEAR else extents[axis]) - 1
            if last >= extent:
                raise self._own_error(access, packed, dims, extent, axis)

    def _own_error(
        self, access: dict[str, Any], packed: bytearray, dims: tuple[int, ...], extent: int, axis: int
    ) -> TreadleError:
        offset, view, _ = self.leaf(access["path"])
        shape = struct.unpack_from(f"<{view.ndim}q", packed, offset + 16)
        name = access.get("array") or self.parameters[access["path"][0]]
        span = None
        if access.get("file") and access.get("line"):
            span = Span(access["file"], access["line"], access.get("column", 0), access.get("end_column", 0))
        index = access["index"] if axis == CONSTANT else extent
        thread = 0
        if axis != CONSTANT:
            thread = extent if axis == LINEAR else extent * product(dims[axis + 1 :])
        where = f"kernel {self.name}, thread {faults.thread_text(thread, dims)}"
        message = f"index {index} is out of bounds in dimension {access['axis']} of array '{name}' of shape {shape}"
        return IndexOutOfRange(f"{message} ({where})", span)

    def error(self, fault: bytes, dims: Sequence[int]) -> TreadleError:
        """The exception for a fault record."""
        _, thread, number, *values = _FAULT.unpack(fault)
        sites = self.entry.meta.get("sites", ())
        if not 0 <= number < len(sites):
            return LaunchError(f"kernel {self.name} reported a fault at thread {thread}")
        if sites[number]["kind"] == "race":
            return faults.race_error(self.name, sites, number, thread, values, dims)
        return faults.fault_error(self.name, sites[number], thread, values, dims)

    def __repr__(self) -> str:
        return f"<program {self.name}({', '.join(t.name for t in self.signature)})>"


class Command:
    """One launch with all it needs; call it to run it, and to wait for its end."""

    __slots__ = (
        "_args",
        "_env",
        "_fault",
        "_launch",
        "_log",
        "_record",
        "_run",
        "_shadow",
        "_turn",
        "_unchecked",
        "dims",
        "packed",
        "program",
        "values",
    )

    most = 0  # blocks of threads at a time, where the device has blocks; 0: as many as keep it busy

    def __init__(self, program: Program, packed: bytearray, dims: tuple[int, ...], values: Sequence[Any] = ()):
        self.program, self.packed, self.dims, self.values = program, packed, dims, values
        self._run: Any = None
        self._unchecked = bool(program.own)
        if product(dims) == 0:
            self._unchecked = False
            return
        if program.entry.address == 0:  # the null device
            return
        driver = native.driver()
        self._fault, self._log, self._shadow = _Fault(), _Log(), _Log()
        meta = program.entry.meta  # what a run leaves in the logs is taken from there before another one
        self._turn: Any = threading.RLock() if meta.get("prints") or meta.get("races") else None
        extents = (*dims, *(1,) * (MAX_DIMS - len(dims)))
        fault, log, shadow = (ctypes.addressof(x) for x in (self._fault, self._log, self._shadow))
        self._launch = _LAUNCH.pack(product(dims), *extents, driver.stop, fault, log, 0, program.checked, shadow)
        self._args = ctypes.addressof(ctypes.c_char.from_buffer(packed))
        self._run, self._env, self._record = driver.drive, driver.env.address, program.record.address

    def limit(self, blocks: int) -> None:
        """Let at most so many blocks of threads run at a time, 0 for no limit; a CPU has none."""

    def __call__(self) -> None:
        """Run it, or while a graph is captured let it be part of that.

        Raises:
            IndexOutOfRange, KernelAssertionError, UnassignedError: what a thread reported.
            KeyboardInterrupt: Ctrl-C ended the launch.
        """
        if self._unchecked:
            self.program.check_own(self.packed, self.dims)
            self._unchecked = False
        if capture.active and (now := capture.here()) is not None:
            now.launch(self)
            return
        if self._run is None:
            return
        if self._turn is None:
            self._drive()
        else:
            with self._turn:
                self._drive()

    def _drive(self) -> None:
        fault, log, shadow = self._fault, self._log, self._shadow
        try:
            status = self._run(self._env, self._record, self._args, self._launch, 0)
        finally:
            if log[0]:
                text, address = ctypes.string_at(log[0], log[1]), log[0]
                log[0] = log[1] = log[2] = 0
                _raw_free(address)
                prints.write(text, self.program.entry.meta["prints"])
            if shadow[0]:
                address, shadow[:] = shadow[0], [0] * len(shadow)
                _raw_free(address)
        if status or fault[0]:
            report = bytes(fault)
            fault[0] = 0
            if status == STOPPED:
                raise KeyboardInterrupt
            raise self.program.error(report, self.dims)


class Leaf(NamedTuple):
    """An array among the arguments: where its view begins, and whether its gradient is meant."""

    offset: int
    view: View
    gradient: bool = False

    @property
    def pointer(self) -> int:
        """Where the address of what is meant stands."""
        return self.offset + 8 * self.gradient


def _extent_row(leaf: Leaf, kind: str = "data") -> tuple[int, ...]:
    """Where an array lies, as a row of ``ATOMIC``."""
    view = leaf.view
    size = view.elem.elem.size if view.planar else 1
    elements = view.elem.size // size
    return UPDATED_KINDS[kind], leaf.offset, leaf.pointer, view.ndim, elements, size, 0, 0, view.planar, 0, 0, 0


def bytes_of(packed: bytearray, leaf: Leaf) -> tuple[int, int]:
    """The addresses from which and up to which an array lies."""
    view = leaf.view
    data, grad, *rest = struct.unpack_from(f"<QQ{2 * view.ndim + 1}q", packed, leaf.offset)
    data = grad if leaf.gradient else data
    shape, strides = (*rest[: view.ndim],), (*rest[view.ndim : -1],)
    size = view.elem.size
    if view.planar:
        shape, strides, size = (*shape, view.elem.n), (*strides, rest[-1]), view.elem.elem.size
    low, high = span(shape, strides, size)
    return data + low, data + high


def folds(packed: bytearray, leaf: Leaf) -> bool:
    """Whether elements of an array may lie over each other: a stride is smaller than what all dimensions with smaller
    ones reach over."""
    view = leaf.view
    numbers = struct.unpack_from(f"<{2 * view.ndim}q", packed, leaf.offset + 16)
    axes = [(abs(s), n - 1) for n, s in zip(numbers, numbers[view.ndim :]) if n > 1]
    reach = view.elem.elem.size if view.planar else view.elem.size
    for nbytes, steps in sorted(axes):
        if nbytes < reach:
            return True
        reach += nbytes * steps
    return False


def table(rows: list[tuple[int, ...]]) -> words:
    """Rows of numbers, 8 bytes each, as native code reads them: memory that the caller keeps."""
    return words("Q", [value & 0xFFFFFFFFFFFFFFFF for row in rows for value in row] or [0])


def _raw_free(address: int) -> None:
    free = ctypes.pythonapi.PyMem_RawFree
    free(ctypes.c_void_p(address))
