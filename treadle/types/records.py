"""Records that native code and the runtime share: one table of fields each, so that both read the same offsets."""

from __future__ import annotations

import ctypes
from functools import cache

from .core import Scalar, bf16, f16, f32, f64


class Record:
    """A C-like record of named fields at byte offsets. ``at["name"]`` is an offset, ``size`` the bytes of all."""

    __slots__ = ("at", "size")

    def __init__(self, fields: dict[str, int], size: int):
        self.at, self.size = fields, size

    def __getitem__(self, name: str) -> int:
        return self.at[name]


def words(text: str) -> Record:
    """A record whose fields, named in ``text``, are 8 bytes each."""
    names = text.split()
    return Record({name: 8 * i for i, name in enumerate(names)}, 8 * len(names))


@cache
def _bytes(n: int) -> type[ctypes.Array]:
    return ctypes.c_char * n


class Memory:
    """Zeroed memory of a record, aligned to a cache line, whose fields Python reads and writes by name."""

    __slots__ = ("_buffer", "address", "record")

    def __init__(self, record: Record):
        self.record = record
        self._buffer = _bytes(record.size + 64)()
        base = ctypes.addressof(self._buffer)
        self.address = base + (-base & 63)

    def __getitem__(self, name: str) -> int:
        return ctypes.c_int64.from_address(self.address + self.record.at[name]).value

    def __setitem__(self, name: str, value: int) -> None:
        ctypes.c_uint64.from_address(self.address + self.record.at[name]).value = value & 0xFFFFFFFFFFFFFFFF


MAX_DIMS = 4  # of grids and arrays
MAX_EXTENT = 2**31  # of a grid's axis that the kernel asks for: thread indices are int32
MAX_THREADS = 2**63 - 1  # of a grid
STOPPED = 2  # what a launch answers when Ctrl-C ended it
SUMS = 64  # partial results of a private sum, which begin SUMS_AT bytes behind the address that it belongs to
SUMS_AT = 64
SLOTS = 16  # private places of one scalar, by thread index modulo SLOTS: no gang that has them is wider

# Runs of bytes in memory: where the first begins, the bytes of each, how many, bytes from one to the next.
RUNS = words("at nbytes count step")

# Where CPython keeps things inside its objects: ob_type; ob_size; the items of list, tuple and array.array; ob_fval;
# ob_sval. The runtime compares them with objects whose content is known before native code relies on them.
TYPE, SIZE, ITEMS, FLOAT, BYTES = 8, 16, 24, 16, 32
VIEWED = 56  # of a memoryview: the address of what it shows

# What a kernel's entry is told of its launch.
LAUNCH = words("size dim0 dim1 dim2 dim3 stop fault log priv_targets checked shadow")

# The fault of the smallest thread index. `state` 0: none.
FAULT = words("state thread site value0 value1 value2 value3 value4 value5 value6 value7")

REFUSED = 9  # the `state` of a fault record in which a GPU's driver says why it took no launch: its status is `value0`

# What native code must know of a GPU: the addresses of the driver's functions, the context, the current stream.
GPU = words("push pop launch clear copy wait context stream")

# How a kernel of one pass is launched on a GPU: `threads` of a block, but no fewer than `least` where they would keep
# fewer than all `multiprocessors` busy; with as many blocks as `held` threads have, or one for each thread of the
# launch (`together`).
ISSUE = words("gpu function threads least multiprocessors held shared together")

# The print buffer, and of kernels that look for races the table of what threads touched.
LOG = words("data used capacity")

# What is known there of a scalar: its address, the first thread that stored to it, plus 1, and from which site, and the
# same of the first that used it otherwise.
SHADOW = words("address stored stored_site used used_site")

# What one loaded kernel, with its argument types, needs at a launch. `order` 0 is free, else serial in thread order,
# unless `rounds` counting passes, whose entries are at `counting`, come first; they do with at least `counting_workers`
# workers, and where the `napart` pairs of arrays at `apart` do not lie over each other. Where they do, kernels that
# tally by gang (`draws`) run thread by thread. Where all private targets are counters, up to SIMPLE of them (`simple`),
# small launches need no chunks.
# `piece`: threads of a chunk that run between two looks at the stop flag.
# `grain`: what chunks are multiples of, a power of two.
# `pool_size`: threads from which on the workers help; `rank`, `last_min`, `last_max`: the grids it was compiled for
# (rank 0 takes any), whose last extent has none of the bits `last_bits`. `next`: the program that a native launcher
# tries when this one's arguments do not match; `shared`: the one to use where arrays that it updates lie over each
# other.
PROGRAM = words(
    "entry order bounded pool_size checked atomics natomics own nown updated nupdated args_size params nparams rank "
    "last_min last_max next shared key rounds counting counting_workers apart napart draws simple work grain "
    "last_bits counts ncounts piece"
)
# What `bounded` says: a kernel asks for the stop flag in rounds of its loops, it is over before long, it is unless one
# of the words at `counts` in the arguments is at least `least` (negative numbers are), or it may last.
POLLS, BRIEF, COUNTED, LASTS = 0, 1, 2, 3
COUNT: Record = words("offset least")

# One private target of atomics: a sum (0), a copy (1), counters of a round (2) or slots (3). `view` is the offset of
# its view in the arguments, `data` that of the pointer to its data or its gradient, `ndim` its rank, `elements` the
# scalars of an element, `identity` the bits that leave values unchanged, `merge` the address of `void (dst, src,
# count)`. A copy of a planar view reaches over its component stride. `rounds` of slots: how often a thread is assumed
# to update them; of a copy not 0 if slots may take its place. `fold`: the address of `void (dst, slots, count)`.
ATOMIC = words("kind view data ndim elements scalar_size identity merge planar round rounds fold")
SIMPLE = 16
ATOMIC_KINDS = {"sum": 0, "copy": 1, "count": 2, "slots": 3}

# Arrays that must not lie over each other stand in rows of the same kind, of which only what says where they lie has a
# meaning; and, of arrays at `updated`, the kind: what is updated, gradients, and data that no gradient may lie over.
UPDATED_KINDS = {"data": 0, "grad": 1, "beside": 2}

# An access at the thread's own index, checked at launch: argument offset of the extent, and the grid axis
# (-1 the linear index) or -2 for the constant `index`.
OWN = words("extent axis index")

# A parameter of a native launcher: what to expect (see PARAM_KINDS), where it goes in the arguments, and of views the
# type's id and rank, of host vectors and matrices ("composite") their class and bytes. Of indexed arrays and structs
# the type's id or the class, and the number of parts, which have rows of their own, `offset` bytes behind this one;
# `slot` is where the instance of a struct holds the part. Of numbers `view` is the only class of Python's that will do,
# or 0.
# `other`: of numbers the class of treadle's that will do as well, of views what else may be there: None for a null one,
# and an array that must not be changed where the kernel only reads it.
PARAM = words("kind offset view ndim other slot")
NONE_TOO, READ_ONLY_TOO = 1, 2
_KINDS = "view i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 bool composite indexed struct"
PARAM_KINDS = {name: i for i, name in enumerate(_KINDS.split())}

ARGS_BYTES = 8192  # a native launcher packs arguments on its stack; more of them go the slow way

# What a native launcher is bound to: the environment and the first program to try.
LAUNCHER = words("env first")

# An array's `_desc`, see runtime/array.py; shapes and strides have four places. `view` is the type's address, which is
# even, and READ_ONLY more where the memory must not be changed.
DESC = words("view data grad shape0 shape1 shape2 shape3 stride0 stride1 stride2 stride3 component_stride")
READ_ONLY = 1

# What makes arrays like others: Python's functions and its empty tuple, and where an array's descriptor, address, owner
# and the slots that are the same of both lie in it.
TWIN_SLOTS = 9
TWIN = words(
    "as_number from_number bytes_from new no_arguments incref decref desc address owner "
    + " ".join(f"slot{k}" for k in range(TWIN_SLOTS))
)

# What a native launcher answers when a kernel reported a fault: the program's key, the grid and the fault record.
REPORT = words("key rank dim0 dim1 dim2 dim3 " + " ".join(FAULT.at))

# Functions and objects of the process that native code uses; see the runtime for each.
ENV = words(
    "pool drive malloc calloc free save_thread restore_thread thread_ident main_thread sigaction start scratch "
    "scratch_size stop none not_implemented true false float_type long_type list_type tuple_type array_type "
    "desc_offset data_offset "
    "indexed_type type_offset parts_offset value_offset "
    "as_long_long bytes_from check_signals set_none keyboard_interrupt incref "
    "capturing listen unlisten run_tasks try_lock unlock print_log"
)

# A graph as native code runs it: `count` entries, one after the other, and all of that `times` times; `inside`: they
# are one chain, which repeats itself chunk by chunk. `scratch` bytes are each call's own, zeros at first; `spare` is a
# block of them that the last call left. `listens`: it may last, so Ctrl-C should end it; `short`: it is over before
# other Python threads would notice.
GRAPH = words("env entries count scratch spare listens short times inside")

# One entry of a graph (see ENTRY_KINDS). `code`: the kernel's entry, its program, or the function to call; `args`, of
# `nbytes`: the arguments, in which `nrelocs` addresses at `relocs` depend on the call. `target`: the entry that comes
# next instead, of kind "skip" where an int32 is 0, of kind "apart" where memory at `ranges` (`nranges` of them, see
# RANGE) lies over each other. The `target` entries behind one of kind "chain" are its members, which go chunk by chunk,
# of `chunk` threads, on the workers if `shared`, unless ranges lie over each other: then one after the other, or, where
# they are `bound` to work chunk by chunk, not at all. The `args` of a chain are those of all members; `patches` what
# changes in them by chunk; a member's `place` says where its own begin, and `entry` is its kernel's. Each worker has a
# slot (see SLOT) of `slot` bytes, of which there are `slots`, from byte `place` of the call's scratch on. `serial`
# changes whenever arguments do.
ENTRY = words(
    "kind code args nbytes relocs nrelocs size dim0 dim1 dim2 dim3 checked prints target chunk shared ranges nranges "
    "bound entry place patches npatches slots slot serial"
)
ENTRY_KINDS = {name: i for i, name in enumerate("run launch call skip jump chain apart".split())}

# Memory that a chain works on: `nbytes` from `delta` bytes behind what `symbol` stands for (see RELOC; ABSOLUTE: 0).
RANGE = words("symbol delta nbytes written")

# An array of a chain that needs no memory but a chunk's: the address among arguments, bytes of an element, and where
# in the worker's scratch it lies.
PATCH = words("at step offset")

# What a worker has for a chain: a header of SLOT_HEAD bytes, which says which arguments (`serial`) and which chunk
# (`begin`, plus 1) were prepared; then the arguments, padded to whole lines of the cache; then scratch.
SLOT = words("serial begin")
SLOT_HEAD = 64

# An address among arguments, `at` bytes from their begin: `delta` bytes behind what `symbol` stands for: the buffer of
# that number in the table of the call, the call's scratch (-1), or the arguments themselves (-2).
RELOC = words("at symbol delta")
SCRATCH, SELF, ABSOLUTE = -1, -2, -3

# What a replay that failed says: the entry's number, and the fault.
REPLAY = words("entry " + " ".join(FAULT.at))

# A copy between arrays with gaps: `run` bytes that lie side by side, over `ndim` outer axes, the last one innermost.
MAX_AXES = 6
SPREAD = words(
    "into source run ndim "
    + " ".join(f"{what}{k}" for what in ("extent", "into_step", "source_step") for k in range(MAX_AXES))
)

# What one target of XLA's foreign functions does: a launch of `program`, or what `work` says where that is not null: an
# `i32 function(context, buffers, words)`. `args`, of `nbytes`: the arguments of the launch, in which `nmoves` places
# (at `moves`) depend on the call; those are the buffers of the function. The bytes of `nzeros` results (at `zeros`) are
# cleared before. `launch`: what a kernel is told of it. All is repeated for each of the `count` elements of a batch, of
# size0 × size1 × …, by `batch`, a program whose threads are the elements; null where there is none. `report`: the
# function that says in words what happened, which is told the target's `number`. `busy`: calls under way. Where the
# function answers AGAIN, there is other work now, which is to be done instead. Work with a `gate` is done by one thread
# at a time, its `owner`; `taken`, an i32, is 0, 1, or 2 if somebody waits.
# A target for GPUs has a record FAR for each of the `ngpus` of them, at `gpus` by its number, or null, which `load`, a
# `message function(number, gpu)`, then makes. `traits` are XLA's. `scratch`: the result that passes share, or -1.
TARGET = words(
    "env drive program args nbytes moves nmoves zeros nzeros launch batch count size0 size1 size2 size3 report number "
    "work busy gpus ngpus load traits scratch"
)

# What a target gives to a GPU: a kernel's `launch` record; its passes, `nsteps` rows STEP at `steps`; what those share,
# `nitems` rows ITEM at `items`, whose table the kernel `fills` writes.
FAR = words("gpu launch steps nsteps items nitems fills")

# One pass: a function of the driver's, blocks, threads of a block, bytes of shared memory.
STEP = words("function blocks threads shared")

# Memory that passes share: `own`, or `offset` bytes into the result that they have for that; its slots; how many bytes
# are cleared before the first pass.
ITEM = words("own offset slots cleared")
MAX_ITEMS = 32
WORK = words("function context gate")
GATE = words("taken owner")
AGAIN = 1 << 24
MAX_LEVELS, MAX_MOVES = 4, 128

# Where the address of a buffer goes, `offset` bytes into the arguments, or, where `nbytes` is not 0, so many bytes of
# its content. `index`: the number of the operand, or of the result if `result` is not 0. One element of a batch further
# on level k, `step``k` bytes further in the buffer.
MOVE = words("result index offset nbytes step0 step1 step2 step3")
CLEARED = words("index nbytes")

# The worker pool. Fields that different threads write lie in different cache lines.
POOL = Record(
    {
        "lock": 0,
        "ticket": 64,
        "done": 128, "waiting": 136,
        "epoch": 192, "sleepers": 200,
        "task": 256, "context": 264, "status": 272,
        "limit": 320, "quit": 328, "spins": 336, "wait": 344, "wake": 352,
    },
    384,
)  # fmt: skip


def identity(op: str, t: Scalar) -> int:
    """The bits of the ``t`` that leaves others unchanged under ``op``: add, min, max, and, or, xor; count, of ints.

    For float sums it is -0.0: ``x + -0.0`` is x in every bit, also where x is -0.0, while ``-0.0 + 0.0`` is 0.0.
    """
    ones = (1 << t.bits) - 1
    if op == "add":
        return 1 << t.bits - 1 if t.is_float else 0
    if op in ("or", "xor", "count"):
        return 0
    if op == "and":
        return ones
    if t.is_float:  # infinity of the sign that loses
        exponent = {f16: 0x7C00, bf16: 0x7F80, f32: 0x7F800000, f64: 0x7FF0000000000000}[t]
        return exponent if op == "min" else exponent | 1 << t.bits - 1
    low, high = (1 << t.bits - 1, ones >> 1) if t.is_signed else (0, ones)
    return high if op == "min" else low
