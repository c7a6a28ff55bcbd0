"""What gives a kernel to a stream of a GPU, where the driver of the CPU would run it: ``treadle_issue``, as native
launchers call it. The functions of CUDA's driver are called by their addresses."""

from __future__ import annotations

from ...types.records import FAULT, GPU, ISSUE, LAUNCH, PROGRAM, REFUSED
from .text import Code

ISSUE_SYMBOLS = ("treadle_issue",)


def issue() -> str:
    """LLVM text of ``i32 treadle_issue(env, program, packed, launch, inline)``. The program's entry is a record
    :data:`ISSUE`. Where the driver refuses, its status lies in the fault record, of state :data:`REFUSED`."""
    params = [("ptr", "env"), ("ptr", "program"), ("ptr", "packed"), ("ptr", "launch"), ("i32", "inline")]
    c = Code(ISSUE_SYMBOLS[0], "i32", params)
    fault = c.load("ptr", "%launch", LAUNCH["fault"])
    for name in ("stop", "fault", "shadow"):  # they lie in memory of the host, or nowhere
        c.store("ptr", "null", "%launch", LAUNCH[name])
    size = c.load("i64", "%launch", LAUNCH["size"])
    with c.if_(c.op("icmp eq", "i64", size, 0)):
        c.ret("0")
    own = c.load("ptr", "%program", PROGRAM["entry"])
    gpu = c.load("ptr", own, ISSUE["gpu"])
    threads, blocks = _grid(c, own, size)
    given = c.stack(16)
    c.store("ptr", "%packed", given)
    c.store("ptr", "%launch", given, 8)
    pushed = c.call("i32", c.load("ptr", gpu, GPU["push"]), ("ptr", c.load("ptr", gpu, GPU["context"])))
    with c.if_(c.op("icmp ne", "i32", pushed, 0)):  # the context that lies there is somebody else's
        _refused(c, fault, pushed)
    grid = [("i32", c.cast("trunc", "i64", blocks, "i32")), ("i32", "1"), ("i32", "1")]
    block = [("i32", c.cast("trunc", "i64", threads, "i32")), ("i32", "1"), ("i32", "1")]
    shared = "i32", c.cast("trunc", "i64", c.load("i64", own, ISSUE["shared"]), "i32")
    stream = "ptr", c.load("ptr", gpu, GPU["stream"])
    function = "ptr", c.load("ptr", own, ISSUE["function"])
    launch = c.load("ptr", gpu, GPU["launch"])
    status = c.call("i32", launch, function, *grid, *block, shared, stream, ("ptr", given), ("ptr", "null"))
    c.call("i32", c.load("ptr", gpu, GPU["pop"]), ("ptr", c.stack(8)))
    with c.if_(c.op("icmp ne", "i32", status, 0)):
        _refused(c, fault, status)
    c.ret("0")
    return c.text()


def _refused(c: Code, fault: str, status: str) -> None:
    """Leave word of what the driver said, and return."""
    c.store("i64", REFUSED, fault, FAULT["state"])
    c.store("i64", c.cast("zext", "i32", status, "i64"), fault, FAULT["value0"])
    c.ret("0")


def _grid(c: Code, own: str, size: str) -> tuple[str, str]:
    """Threads of a block, and blocks, as ``runtime/cuda/launch.py`` spreads them."""
    threads = c.var("i64", c.load("i64", own, ISSUE["threads"]))
    least, wanted = c.load("i64", own, ISSUE["least"]), c.load("i64", own, ISSUE["multiprocessors"])
    with c.loop() as halving:
        half = c.op("lshr", "i64", threads.get(), 1)
        even = c.op("icmp eq", "i64", c.op("shl", "i64", half, 1), threads.get())
        large = c.op("and", "i1", even, c.op("icmp ugt", "i64", threads.get(), least))
        few = c.op("icmp ult", "i64", _cut(c, size, threads.get()), wanted)
        halving.leave_if(c.op("xor", "i1", c.op("and", "i1", large, few), "true"))
        threads.set(half)
    block = threads.get()
    together = c.op("icmp ne", "i64", c.load("i64", own, ISSUE["together"]), 0)
    needed = c.select(together, "i64", size, _cut(c, size, block))
    held = c.op("udiv", "i64", c.load("i64", own, ISSUE["held"]), block)
    most = c.select(c.op("icmp eq", "i64", held, 0), "i64", 1, held)
    return block, c.select(c.op("icmp ult", "i64", needed, most), "i64", needed, most)


def _cut(c: Code, size: str, block: str) -> str:
    """Blocks for ``size`` threads."""
    return c.op("udiv", "i64", c.op("add", "i64", size, c.op("sub", "i64", block, 1)), block)
