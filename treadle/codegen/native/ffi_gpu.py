"""Functions that XLA calls for a GPU: a handler of its foreign function interface that gives the passes of a kernel to
the stream of the call, without Python; or lets Python give what a function does.

What it does stands in a record (``types/records.TARGET``), and for each GPU in one of its own (``FAR``), as grids,
functions and memory differ. All that depends on sizes is known when JAX compiles the call, so what is given to the
stream is the same each time and may become part of a graph of XLA's. Memory that passes share is one of the results.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...types.records import (
    CLEARED,
    FAR,
    FAULT,
    GPU,
    ITEM,
    LAUNCH,
    LOG,
    MAX_ITEMS,
    MAX_MOVES,
    MOVE,
    STEP,
    TARGET,
    WORK,
)
from .ffi import ARGS_BYTES, answer, error, gathered, place_element
from .text import Code, Var

_WORDS = 8 * 16  # bytes in which a function says what happened; on the way there, stream and GPU
_REPORTED = 2  # the state of a fault record that is written
_UNPREPARED = b"treadle has not prepared this function for the GPU that it is called on\0"


def ffi_gpu(layout: Mapping[str, int]) -> str:
    """LLVM text of ``ptr @treadle_ffi(frame)``, an ``XLA_FFI_Handler`` of the stages initialize and execute."""
    return (
        "@treadle_target = global ptr null\n"
        f'@unprepared = internal constant [{len(_UNPREPARED)} x i8] c"{_UNPREPARED.decode()[:-1]}\\00"\n'
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
        + _enqueue()
        + _work()
        + _execute(layout)
        + _handler(layout)
    )


def _asked(c: Code, layout: Mapping[str, int], name: str, out: str, kind: str) -> str:
    """What XLA answers to a question about the call; where it refuses, its error is returned."""
    record = c.stack(layout[f"{name}_Args"])
    c.store("i64", layout[f"{name}_Args"], record, layout[f"{name}_Args.struct_size"])
    c.store("ptr", "null", record, layout[f"{name}_Args.extension_start"])
    context = c.load("ptr", "%frame", layout["XLA_FFI_CallFrame.ctx"])
    c.store("ptr", context, record, layout[f"{name}_Args.ctx"])
    api = c.load("ptr", "%frame", layout["XLA_FFI_CallFrame.api"])
    refused = c.call("ptr", c.load("ptr", api, layout[f"XLA_FFI_Api.{name}"]), ("ptr", record))
    with c.if_(c.op("icmp ne", "ptr", refused, "null")):
        c.ret(refused)
    return c.load(kind, record, layout[f"{name}_Args.{out}"])


def _handler(layout: Mapping[str, int]) -> str:
    """Before XLA runs a program it asks each target to get ready; what a GPU lacks is loaded then."""
    c = Code("treadle_ffi", "ptr", [("ptr", "frame")])
    target = c.load("ptr", "@treadle_target")
    answer(c, layout, c.cast("trunc", "i64", c.load("i64", target, TARGET["traits"]), "i32"))
    stage = c.load("i32", "%frame", layout["XLA_FFI_CallFrame.stage"])
    early = c.op("icmp slt", "i32", stage, layout["XLA_FFI_ExecutionStage_INITIALIZE"])
    with c.if_(early):
        c.ret("null")
    number = _asked(c, layout, "XLA_FFI_DeviceOrdinal_Get", "device_ordinal", "i32")
    gpu, there = c.cast("zext", "i32", number, "i64"), c.var("ptr", "null")
    place = c.at(c.load("ptr", target, TARGET["gpus"]), c.op("shl", "i64", gpu, 3))
    known = c.op("icmp ult", "i64", gpu, c.load("i64", target, TARGET["ngpus"]))
    with c.if_(known):
        there.set(c.load("ptr", place))
    with c.if_(c.op("icmp eq", "ptr", there.get(), "null")):
        listed = ("i64", c.load("i64", target, TARGET["number"])), ("i64", gpu)
        words = c.call("ptr", c.load("ptr", target, TARGET["load"]), *listed)
        with c.if_(c.op("icmp ne", "ptr", words, "null")):
            c.ret(error(c, layout, words))
        known = c.op("icmp ult", "i64", gpu, c.load("i64", target, TARGET["ngpus"]))
        with c.if_(known):
            there.set(c.load("ptr", place))
        with c.if_(c.op("icmp eq", "ptr", there.get(), "null")):  # whatever went wrong there
            c.ret(error(c, layout, "@unprepared"))
    with c.if_(c.op("icmp eq", "i32", stage, layout["XLA_FFI_ExecutionStage_INITIALIZE"])):
        c.ret("null")
    c.ret(c.call("ptr", "@execute", ("ptr", "%frame"), ("ptr", target), ("ptr", there.get()), ("i64", gpu)))
    return c.text()


class _Calls:
    """Calls of the driver, of which the first status that is no success is kept."""

    def __init__(self, c: Code, gpu: str, status: Var):
        self.c, self.gpu, self.status = c, gpu, status

    def __call__(self, name: str, *args: tuple[str, str | int]) -> None:
        c = self.c
        said = c.call("i32", c.load("ptr", self.gpu, GPU[name]), *args)
        before = self.status.get()
        self.status.set(c.select(c.op("icmp ne", "i32", before, 0), "i32", before, said))


def _execute(layout: Mapping[str, int]) -> str:
    """``ptr @execute(frame, target, far, number)``: give the work to the stream; null, or XLA's error."""
    params = [("ptr", "frame"), ("ptr", "target"), ("ptr", "far"), ("i64", "number")]
    c = Code("execute", "ptr", params, "internal")
    stream = _asked(c, layout, "XLA_FFI_Stream_Get", "stream", "ptr")
    buffers, results = gathered(c, layout, "%target")
    gpu, status = c.load("ptr", "%far", FAR["gpu"]), c.var("i32", 0)
    calls, data = _Calls(c, gpu, status), layout["XLA_FFI_Buffer.data"]
    told, empty = c.stack(_WORDS), c.stack(LOG.size)
    for name in LOG.at:
        c.store("i64", 0, empty, LOG[name])
    calls("push", ("ptr", c.load("ptr", gpu, GPU["context"])))
    with c.if_(c.op("icmp ne", "i32", status.get(), 0)):  # what lies there is somebody else's
        _told(c, layout, status.get(), "null", empty, told)
    zeros = c.load("ptr", "%target", TARGET["zeros"])
    with c.for_(c.load("i64", "%target", TARGET["nzeros"])) as i:
        row = c.at(zeros, c.op("mul", "i64", i, CLEARED.size))
        buffer = c.load("ptr", results, c.op("mul", "i64", c.load("i64", row, CLEARED["index"]), 8))
        nbytes = c.load("i64", row, CLEARED["nbytes"])
        with c.if_(c.op("icmp ne", "i64", nbytes, 0)):
            calls("clear", ("ptr", c.load("ptr", buffer, data)), ("i8", 0), ("i64", nbytes), ("ptr", stream))
    scratch, index = c.var("ptr", "null"), c.load("i64", "%target", TARGET["scratch"])
    with c.if_(c.op("icmp sge", "i64", index, 0)):
        scratch.set(c.load("ptr", c.load("ptr", results, c.op("shl", "i64", index, 3)), data))
    own, faults, failed = c.stack(8 * MAX_MOVES), c.var("ptr", "null"), c.var("i32", 0)
    called = c.op("icmp ne", "ptr", c.load("ptr", "%target", TARGET["work"]), "null")
    with c.if_(c.op("xor", "i1", called, "true")):
        faults.set(c.load("ptr", c.load("ptr", "%far", FAR["launch"]), LAUNCH["fault"]))
    with c.for_(c.load("i64", "%target", TARGET["count"])) as element:
        place_element(c, "%target", buffers, own, element)
        with c.if_(called):
            listed = (("ptr", "%target"), ("ptr", own), ("ptr", stream), ("i64", "%number"), ("ptr", told))
            said = c.call("i32", "@work", *listed)
            failed.set(c.select(c.op("icmp ne", "i32", said, 0), "i32", said, failed.get()))
        with c.if_(c.op("xor", "i1", called, "true")):
            listed = (("ptr", "%target"), ("ptr", "%far"), ("ptr", own), ("ptr", scratch.get()), ("ptr", stream))
            said, before = c.call("i32", "@enqueue", *listed), status.get()
            status.set(c.select(c.op("icmp ne", "i32", before, 0), "i32", before, said))
    calls("pop", ("ptr", c.stack(8)))
    eventful = c.op("icmp ne", "i32", c.op("or", "i32", status.get(), failed.get()), 0)
    bad = c.var("i1", eventful)
    with c.if_(c.op("icmp ne", "ptr", faults.get(), "null")):  # what an earlier call left
        state = c.value(f"load volatile i64, ptr {c.at(faults.get(), FAULT['state'])}")
        bad.set(c.op("or", "i1", eventful, c.op("icmp eq", "i64", state, _REPORTED)))
    with c.if_(c.op("xor", "i1", bad.get(), "true")):
        c.ret("null")
    own_word = c.op("sub", "i32", 0, failed.get())  # below 0, which no status of the driver is
    both = c.select(c.op("icmp ne", "i32", status.get(), 0), "i32", status.get(), own_word)
    _told(c, layout, both, faults.get(), empty, told)
    return c.text()


def _told(c: Code, layout: Mapping[str, int], status: str, fault: str, empty: str, told: str) -> None:
    """Return what Python makes of a status, of a fault record, and of what a function told."""
    listed = (("i64", c.load("i64", "%target", TARGET["number"])), ("i32", status), ("ptr", fault),
              ("ptr", empty), ("ptr", empty), ("ptr", told))  # fmt: skip
    words = c.call("ptr", c.load("ptr", "%target", TARGET["report"]), *listed)
    with c.if_(c.op("icmp eq", "ptr", words, "null")):
        c.ret("null")
    c.ret(error(c, layout, words))


def _work() -> str:
    """``i32 @work(target, buffers, stream, number, words)``: Python gives something to the stream."""
    params = [("ptr", "target"), ("ptr", "buffers"), ("ptr", "stream"), ("i64", "number"), ("ptr", "words")]
    c = Code("work", "i32", params, "internal")
    work = c.load("ptr", "%target", TARGET["work"])
    c.store("ptr", "%stream", "%words")
    c.store("i64", "%number", "%words", 8)
    listed = (("ptr", c.load("ptr", work, WORK["context"])), ("ptr", "%buffers"), ("ptr", "%words"))
    c.ret(c.call("i32", c.load("ptr", work, WORK["function"]), *listed))
    return c.text()


def _enqueue() -> str:
    """``i32 @enqueue(target, far, buffers, scratch, stream)``: one launch; the driver's status."""
    params = [(("ptr"), name) for name in ("target", "far", "buffers", "scratch", "stream")]
    c = Code("enqueue", "i32", params, "internal")
    gpu, status = c.load("ptr", "%far", FAR["gpu"]), c.var("i32", 0)
    calls = _Calls(c, gpu, status)
    with c.if_(c.op("icmp eq", "i64", c.load("i64", "%far", FAR["nsteps"]), 0)):  # a grid without threads
        c.ret(0)
    args, launch = c.stack(ARGS_BYTES), c.stack(LAUNCH.size)
    _copied(c, args, c.load("ptr", "%target", TARGET["args"]), c.load("i64", "%target", TARGET["nbytes"]))
    _copied(c, launch, c.load("ptr", "%far", FAR["launch"]), LAUNCH.size)
    moves, waits = c.load("ptr", "%target", TARGET["moves"]), c.var("i1", "false")
    with c.for_(c.load("i64", "%target", TARGET["nmoves"])) as i:
        move = c.at(moves, c.op("mul", "i64", i, MOVE.size))
        place, nbytes = c.at(args, c.load("i64", move, MOVE["offset"])), c.load("i64", move, MOVE["nbytes"])
        source = c.load("ptr", "%buffers", c.op("mul", "i64", i, 8))
        by_value = c.op("icmp ne", "i64", nbytes, 0)
        with c.if_(by_value):  # a number that JAX computes, which the driver wants to see
            calls("copy", ("ptr", place), ("ptr", source), ("i64", nbytes), ("ptr", "%stream"))
            waits.set("true")
        with c.if_(c.op("xor", "i1", by_value, "true")):
            c.store("ptr", source, place)
    with c.if_(waits.get()):
        calls("wait", ("ptr", "%stream"))
    _share(c, calls, launch)
    given = c.stack(16)
    c.store("ptr", args, given)
    c.store("ptr", launch, given, 8)
    steps = c.load("ptr", "%far", FAR["steps"])
    with c.for_(c.load("i64", "%far", FAR["nsteps"])) as i:
        step = c.at(steps, c.op("mul", "i64", i, STEP.size))
        blocks, threads, shared = (c.load("i32", step, STEP[f]) for f in ("blocks", "threads", "shared"))
        _launched(c, calls, c.load("ptr", step, STEP["function"]), blocks, threads, shared, given)
    c.ret(status.get())
    return c.text()


def _share(c: Code, calls: _Calls, launch: str) -> None:
    """Lay out the memory that passes share, and tell them where it is."""
    count, items = c.load("i64", "%far", FAR["nitems"]), c.load("ptr", "%far", FAR["items"])
    with c.if_(c.op("icmp ne", "i64", count, 0)):
        table = c.stack(16 * MAX_ITEMS)
        with c.for_(count) as i:
            item, row = c.at(items, c.op("mul", "i64", i, ITEM.size)), c.at(table, c.op("shl", "i64", i, 4))
            own, offset = c.load("i64", item, ITEM["own"]), c.load("i64", item, ITEM["offset"])
            inside = c.op("icmp ne", "i64", offset, 0)
            there = c.at("%scratch", offset)
            c.store("i64", c.select(inside, "i64", c.cast("ptrtoint", "ptr", there, "i64"), own), row)
            c.store("i64", c.load("i64", item, ITEM["slots"]), row, 8)
            cleared = c.load("i64", item, ITEM["cleared"])
            with c.if_(c.op("icmp ne", "i64", cleared, 0)):
                calls("clear", ("ptr", there), ("i8", 0), ("i64", cleared), ("ptr", "%stream"))
        given, where = c.stack(16), c.stack(8)
        c.store("ptr", "%scratch", where)
        c.store("ptr", table, given)
        c.store("ptr", where, given, 8)
        _launched(c, calls, c.load("ptr", "%far", FAR["fills"]), 1, 2 * MAX_ITEMS, 0, given)
        c.store("ptr", "%scratch", launch, LAUNCH["priv_targets"])


def _launched(c: Code, calls: _Calls, function: str, blocks: str | int, threads: str | int, shared: str | int,
              given: str) -> None:  # fmt: skip
    grid = [("i32", n) for n in (blocks, 1, 1, threads, 1, 1, shared)]
    calls("launch", ("ptr", function), *grid, ("ptr", "%stream"), ("ptr", given), ("ptr", "null"))


def _copied(c: Code, into: str, source: str, nbytes: str | int) -> None:
    c.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {into}, ptr {source}, i64 {nbytes}, i1 false)")
