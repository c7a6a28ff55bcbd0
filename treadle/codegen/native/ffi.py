"""Functions that XLA calls: a handler of its foreign function interface that launches a kernel, or calls a graph or
another function, without Python.

What it does stands in a record (``types/records.TARGET``) that the variable ``@treadle_target`` points to; each
target has a copy of the code and of that variable. The offsets of XLA's structures come from the headers that jaxlib
ships, as ``layout["Structure.field"]``, enumerators and sizes among them.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...types.records import (
    AGAIN,
    CLEARED,
    ENV,
    FAULT,
    GATE,
    LAUNCH,
    LOG,
    MAX_LEVELS,
    MAX_MOVES,
    MOVE,
    STOPPED,
    TARGET,
    WORK,
)
from .system import pause, waiting
from .text import Code

ARGS_BYTES = 4096  # arguments are laid out on the stack

# What the launch over a batch has as arguments: the target, the addresses of the buffers, the launch, and where the
# function's words go.
_BATCH = {"target": 0, "buffers": 8, "launch": 16, "words": 24}
_WORDS = 8 * 16  # bytes in which a function says what happened
_STOPPED = "the work was interrupted by Ctrl-C\0"


_PATIENCE = 200  # rounds of waiting before a thread sleeps; most work that must be alone takes microseconds
_FREE, _TAKEN, _AWAITED = 0, 1, 2  # what the word of a gate says


def ffi(layout: Mapping[str, int], triple: str) -> str:
    """LLVM text of ``ptr @treadle_ffi(frame)``, an ``XLA_FFI_Handler``, and of ``@treadle_batch``, the entry of the
    program that repeats the work for each element of a batch."""
    spin, declaration = pause(triple)
    return (
        "@treadle_target = global ptr null\n"
        f'@stopped = internal constant [{len(_STOPPED)} x i8] c"{_STOPPED[:-1]}\\00"\n'
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
        + declaration
        + waiting(triple)
        + _enter(spin)
        + _leave()
        + _once()
        + _batch()
        + _execute(layout)
        + _handler(layout)
    )


def _handler(layout: Mapping[str, int]) -> str:
    """XLA first asks of what version the handler is; then it calls at each stage of an execution."""
    c = Code("treadle_ffi", "ptr", [("ptr", "frame")])
    answer(c, layout, 0)
    stage = c.load("i32", "%frame", layout["XLA_FFI_CallFrame.stage"])
    with c.if_(c.op("icmp ne", "i32", stage, layout["XLA_FFI_ExecutionStage_EXECUTE"])):
        c.ret("null")
    c.ret(c.call("ptr", "@execute", ("ptr", "%frame")))
    return c.text()


def answer(c: Code, layout: Mapping[str, int], traits: str | int) -> None:
    """Where XLA asks what the handler is, say so, and return."""
    extension = c.load("ptr", "%frame", layout["XLA_FFI_CallFrame.extension_start"])
    with c.if_(c.op("icmp ne", "ptr", extension, "null")):
        kind = c.load("i32", extension, layout["XLA_FFI_Extension_Base.type"])
        with c.if_(c.op("icmp eq", "i32", kind, layout["XLA_FFI_Extension_Metadata"])):
            data = c.load("ptr", extension, layout["XLA_FFI_Metadata_Extension.metadata"])
            version = c.at(data, layout["XLA_FFI_Metadata.api_version"])
            for part in ("major", "minor"):
                number = layout[f"XLA_FFI_API_{part.upper()}"]
                c.store("i32", number, version, layout[f"XLA_FFI_Api_Version.{part}_version"])
            c.store("i32", traits, data, layout["XLA_FFI_Metadata.traits"])
            c.ret("null")


def gathered(c: Code, layout: Mapping[str, int], target: str) -> tuple[str, str]:
    """The addresses of the buffers that the target moves, in a row on the stack; and XLA's table of results."""
    buffers = c.stack(8 * MAX_MOVES)
    operands = c.load("ptr", c.at("%frame", layout["XLA_FFI_CallFrame.args"]), layout["XLA_FFI_Args.args"])
    results = c.load("ptr", c.at("%frame", layout["XLA_FFI_CallFrame.rets"]), layout["XLA_FFI_Rets.rets"])
    data = layout["XLA_FFI_Buffer.data"]
    moves = c.load("ptr", target, TARGET["moves"])
    with c.for_(c.load("i64", target, TARGET["nmoves"])) as i:
        move = c.at(moves, c.op("mul", "i64", i, MOVE.size))
        is_result = c.op("icmp ne", "i64", c.load("i64", move, MOVE["result"]), 0)
        table = c.select(is_result, "ptr", results, operands)
        buffer = c.load("ptr", table, c.op("mul", "i64", c.load("i64", move, MOVE["index"]), 8))
        c.store("ptr", c.load("ptr", buffer, data), buffers, c.op("mul", "i64", i, 8))
    return buffers, results


def _execute(layout: Mapping[str, int]) -> str:
    """``ptr @execute(frame)``: the work; null, or XLA's error."""
    c = Code("execute", "ptr", [("ptr", "frame")], "internal")
    target = c.load("ptr", "@treadle_target")
    buffers, results = gathered(c, layout, target)
    data, zeros = layout["XLA_FFI_Buffer.data"], c.load("ptr", target, TARGET["zeros"])
    with c.for_(c.load("i64", target, TARGET["nzeros"])) as i:
        row = c.at(zeros, c.op("mul", "i64", i, CLEARED.size))
        buffer = c.load("ptr", results, c.op("mul", "i64", c.load("i64", row, CLEARED["index"]), 8))
        nbytes = c.load("i64", row, CLEARED["nbytes"])
        c.line(f"call void @llvm.memset.p0.i64(ptr {c.load('ptr', buffer, data)}, i8 0, i64 {nbytes}, i1 false)")
    launch, fault, log, shadow = c.stack(LAUNCH.size), c.stack(FAULT.size), c.stack(LOG.size), c.stack(LOG.size)
    told = c.stack(_WORDS)
    _copy(c, launch, c.load("ptr", target, TARGET["launch"]), LAUNCH.size)
    c.store("i64", 0, fault, FAULT["state"])
    for record in (log, shadow):
        for name in LOG.at:
            c.store("i64", 0, record, LOG[name])
    for name, record in (("fault", fault), ("log", log), ("shadow", shadow)):
        c.store("ptr", record, launch, LAUNCH[name])
    status, batch = c.var("i32", 0), c.load("ptr", target, TARGET["batch"])
    alone = c.op("icmp eq", "ptr", batch, "null")
    with c.if_(alone):
        listed = (("ptr", target), ("ptr", buffers), ("ptr", launch), ("ptr", told))
        status.set(c.call("i32", "@once", *listed))
    with c.if_(c.op("xor", "i1", alone, "true")):
        outer, whole = c.stack(LAUNCH.size), c.stack(8 * len(_BATCH))
        _copy(c, outer, launch, LAUNCH.size)
        for name in ("size", "dim0"):
            c.store("i64", c.load("i64", target, TARGET["count"]), outer, LAUNCH[name])
        for place, value in zip(_BATCH.values(), (target, buffers, launch, told), strict=True):
            c.store("ptr", value, whole, place)
        status.set(_drive(c, target, batch, whole, outer))
    failed = c.op("icmp ne", "i32", status.get(), 0)
    faulty = c.op("icmp ne", "i64", c.load("i64", fault, FAULT["state"]), 0)
    printed = c.op("icmp ne", "ptr", c.load("ptr", log, LOG["data"]), "null")
    shadowed = c.op("icmp ne", "ptr", c.load("ptr", shadow, LOG["data"]), "null")
    eventful = c.op("or", "i1", c.op("or", "i1", failed, faulty), c.op("or", "i1", printed, shadowed))
    with c.if_(c.op("xor", "i1", eventful, "true")):
        c.ret("null")
    # Python's own handler has noted the Ctrl-C, so any Python that ran now would end before it had said anything. The
    # main thread hears of it once it is back there.
    with c.if_(c.op("icmp eq", "i32", status.get(), STOPPED)):
        for record in (log, shadow):
            free = c.load("ptr", c.load("ptr", target, TARGET["env"]), ENV["free"])
            c.call("void", free, ("ptr", c.load("ptr", record, LOG["data"])))
        c.ret(error(c, layout, "@stopped"))
    number = c.load("i64", target, TARGET["number"])
    listed = (("i64", number), ("i32", status.get()), ("ptr", fault), ("ptr", log), ("ptr", shadow), ("ptr", told))
    words = c.call("ptr", c.load("ptr", target, TARGET["report"]), *listed)
    with c.if_(c.op("icmp eq", "ptr", words, "null")):
        c.ret("null")
    c.ret(error(c, layout, words))
    return c.text()


def _enter(spin: str) -> str:
    """``i1 @enter(target, gate)``: wait until nobody else is behind the gate; false where this thread is there already:
    a function that Python runs may call others."""
    c = Code("enter", "i1", [("ptr", "target"), ("ptr", "gate")], "internal")
    env = c.load("ptr", "%target", TARGET["env"])
    pool, here = c.load("ptr", env, ENV["pool"]), c.call("i64", c.load("ptr", env, ENV["thread_ident"]))
    with c.if_(c.op("icmp eq", "i64", c.atomic_load("i64", "%gate", GATE["owner"], "monotonic"), here)):
        c.ret("false")
    word, spun, wanted = c.at("%gate", GATE["taken"]), c.var("i32", 0), c.var("i32", _TAKEN)
    with c.loop() as loop:
        pair = c.value(f"cmpxchg ptr {word}, i32 {_FREE}, i32 {wanted.get()} seq_cst seq_cst")
        loop.leave_if(c.value(f"extractvalue {{ i32, i1 }} {pair}, 1"))
        count = c.op("add", "i32", spun.get(), 1)
        spun.set(count)
        c.line(spin)
        loop.again_if(c.op("icmp slt", "i32", count, _PATIENCE))
        # Who has slept does not know whether others still do, so it leaves word of that when it gets in.
        wanted.set(_AWAITED)
        before = c.atomic("xchg", "i32", _AWAITED, "%gate", GATE["taken"])
        loop.leave_if(c.op("icmp eq", "i32", before, _FREE))
        c.call("void", "@sleep_on", ("ptr", pool), ("ptr", word), ("i32", _AWAITED))
    c.atomic_store("i64", here, "%gate", GATE["owner"], "monotonic")
    c.ret("true")
    return c.text()


def _leave() -> str:
    """``@leave(target, gate)``: let the next one in."""
    c = Code("leave", "void", [("ptr", "target"), ("ptr", "gate")], "internal")
    c.atomic_store("i64", 0, "%gate", GATE["owner"], "monotonic")
    before = c.atomic("xchg", "i32", _FREE, "%gate", GATE["taken"])
    with c.if_(c.op("icmp eq", "i32", before, _AWAITED)):
        pool = c.load("ptr", c.load("ptr", "%target", TARGET["env"]), ENV["pool"])
        c.call("void", "@wake", ("ptr", pool), ("ptr", c.at("%gate", GATE["taken"])), ("i32", 1))
    return c.text()


def _once() -> str:
    """``i32 @once(target, buffers, launch, words)``: the work on some buffers."""
    params = [("ptr", "target"), ("ptr", "buffers"), ("ptr", "launch"), ("ptr", "words")]
    c = Code("once", "i32", params, "internal")
    with c.if_(c.op("icmp ne", "ptr", c.load("ptr", "%target", TARGET["work"]), "null")):
        with c.loop() as again:
            # Whoever takes the work away puts other work there first, and then waits until nobody is here.
            c.atomic("add", "i64", 1, "%target", TARGET["busy"])
            work = c.value(f"load atomic ptr, ptr {c.at('%target', TARGET['work'])} seq_cst, align 8")
            context, gate = c.load("ptr", work, WORK["context"]), c.load("ptr", work, WORK["gate"])
            entered = c.var("i1", "false")
            with c.if_(c.op("icmp ne", "ptr", gate, "null")):
                entered.set(c.call("i1", "@enter", ("ptr", "%target"), ("ptr", gate)))
            listed = (("ptr", context), ("ptr", "%buffers"), ("ptr", "%words"))
            status = c.call("i32", c.load("ptr", work, WORK["function"]), *listed)
            with c.if_(entered.get()):
                c.call("void", "@leave", ("ptr", "%target"), ("ptr", gate))
            c.atomic("sub", "i64", 1, "%target", TARGET["busy"])
            again.again_if(c.op("icmp eq", "i32", status, AGAIN))
            c.ret(status)
        c.unreachable()
    args = c.stack(ARGS_BYTES)
    _copy(c, args, c.load("ptr", "%target", TARGET["args"]), c.load("i64", "%target", TARGET["nbytes"]))
    moves = c.load("ptr", "%target", TARGET["moves"])
    with c.for_(c.load("i64", "%target", TARGET["nmoves"])) as i:
        move = c.at(moves, c.op("mul", "i64", i, MOVE.size))
        place, nbytes = c.at(args, c.load("i64", move, MOVE["offset"])), c.load("i64", move, MOVE["nbytes"])
        source = c.load("ptr", "%buffers", c.op("mul", "i64", i, 8))
        by_value = c.op("icmp ne", "i64", nbytes, 0)
        with c.if_(by_value):
            _copy(c, place, source, nbytes)
        with c.if_(c.op("xor", "i1", by_value, "true")):
            c.store("ptr", source, place)
    c.ret(_drive(c, "%target", c.load("ptr", "%target", TARGET["program"]), args, "%launch"))
    return c.text()


def error(c: Code, layout: Mapping[str, int], words: str) -> str:
    """XLA's error with a message."""
    record = c.stack(layout["XLA_FFI_Error_Create_Args"])
    c.store("i64", layout["XLA_FFI_Error_Create_Args"], record, layout["XLA_FFI_Error_Create_Args.struct_size"])
    c.store("ptr", "null", record, layout["XLA_FFI_Error_Create_Args.extension_start"])
    c.store("ptr", words, record, layout["XLA_FFI_Error_Create_Args.message"])
    c.store("i32", layout["XLA_FFI_Error_Code_INTERNAL"], record, layout["XLA_FFI_Error_Create_Args.errc"])
    api = c.load("ptr", "%frame", layout["XLA_FFI_CallFrame.api"])
    return c.call("ptr", c.load("ptr", api, layout["XLA_FFI_Api.XLA_FFI_Error_Create"]), ("ptr", record))


def place_element(c: Code, target: str, buffers: str, own: str, element: str) -> None:
    """Put the addresses of the buffers of an element of the batch into ``own``."""
    moves, nmoves = c.load("ptr", target, TARGET["moves"]), c.load("i64", target, TARGET["nmoves"])
    sizes = [c.load("i64", target, TARGET[f"size{k}"]) for k in range(MAX_LEVELS)]
    places, rest = [], element
    for size in reversed(sizes):
        places.append(c.op("urem", "i64", rest, size))
        rest = c.op("udiv", "i64", rest, size)
    places.reverse()
    with c.for_(nmoves) as i:
        move = c.at(moves, c.op("mul", "i64", i, MOVE.size))
        offset = "0"
        for k, place in enumerate(places):
            step = c.op("mul", "i64", place, c.load("i64", move, MOVE[f"step{k}"]))
            offset = c.op("add", "i64", offset, step)
        at = c.op("mul", "i64", i, 8)
        c.store("ptr", c.value(f"getelementptr i8, ptr {c.load('ptr', buffers, at)}, i64 {offset}"), own, at)


def _batch() -> str:
    """``i32 @treadle_batch(whole, outer, begin, end, priv)``: the work for some elements of a batch."""
    params = [("ptr", "whole"), ("ptr", "outer"), ("i64", "begin"), ("i64", "end"), ("ptr", "priv")]
    c = Code("treadle_batch", "i32", params)
    target, buffers, launch, words = (c.load("ptr", "%whole", at) for at in _BATCH.values())
    own = c.stack(8 * MAX_MOVES)
    with c.for_("%end", "%begin") as element:
        place_element(c, target, buffers, own, element)
        listed = (("ptr", target), ("ptr", own), ("ptr", launch), ("ptr", words))
        status = c.call("i32", "@once", *listed)
        with c.if_(c.op("icmp ne", "i32", status, 0)):
            c.ret(status)
    c.ret(0)
    return c.text()


def _drive(c: Code, target: str, program: str, args: str, launch: str) -> str:
    """Run a program by the driver; Python's lock is not held here."""
    env = c.load("ptr", target, TARGET["env"])
    drive = c.load("ptr", target, TARGET["drive"])
    listed = (("ptr", env), ("ptr", program), ("ptr", args), ("ptr", launch), ("i32", 0))
    return c.call("i32", drive, *listed)


def _copy(c: Code, into: str, source: str, nbytes: str | int) -> None:
    c.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {into}, ptr {source}, i64 {nbytes}, i1 false)")
