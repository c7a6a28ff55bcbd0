"""Chains: runs of launches over the same grid that share memory only at the thread's own index.

They are cut into chunks of threads, and each chunk passes through all of them, so that what one leaves the next finds
in the cache. A worker has a slot for a chain (``SLOT``): its own copy of all arguments, in which the addresses of
arrays that need no memory but a chunk's lead to the scratch behind it. That copy is made once; what a chunk changes in
it are these addresses, since threads keep their indices.
"""

from __future__ import annotations

from ...types.records import (
    ENTRY,
    ENV,
    GRAPH,
    LAUNCH,
    MAX_DIMS,
    PATCH,
    POOL,
    RANGE,
    RELOC,
    SCRATCH,
    SLOT,
    SLOT_HEAD,
    STOPPED,
    words,
)
from .text import Code

# What the workers share while they run a chain; it lies on the stack of who replays. `next`: the first chunk that
# nobody has taken.
CHAIN = words("item launch table memory size times count next")


def chain() -> str:
    """LLVM text of ``@base_of``, ``@grid``, ``@links_apart`` and ``@run_chain``."""
    return _base() + _grid() + _prepare() + _move_on() + _run_chunk() + _run_links() + _links_apart() + _run_chain()


def _base() -> str:
    """``@base_of(symbol, table, scratch)``: what an address depends on."""
    c = Code("base_of", "ptr", [("i64", "symbol"), ("ptr", "table"), ("ptr", "scratch")], "internal")
    with c.if_(c.op("icmp sge", "i64", "%symbol", 0)):
        c.ret(c.load("ptr", "%table", c.op("shl", "i64", "%symbol", 3)))
    with c.if_(c.op("icmp eq", "i64", "%symbol", SCRATCH)):
        c.ret("%scratch")
    c.ret("null")
    return c.text()


def _grid() -> str:
    """``@grid(item, launch)``: tell ``launch`` the grid of ``item``; its number of threads."""
    c = Code("grid", "i64", [("ptr", "item"), ("ptr", "launch")], "internal")
    size = c.load("i64", "%item", ENTRY["size"])
    c.store("i64", size, "%launch", LAUNCH["size"])
    for k in range(MAX_DIMS):
        c.store("i64", c.load("i64", "%item", ENTRY[f"dim{k}"]), "%launch", LAUNCH[f"dim{k}"])
    c.store("i64", c.load("i64", "%item", ENTRY["checked"]), "%launch", LAUNCH["checked"])
    c.ret(size)
    return c.text()


def _prepare() -> str:
    """``@prepare_slot(chain, item, slot)``: the arguments of all members with the addresses of this call."""
    c = Code("prepare_slot", "void", [("ptr", "chain"), ("ptr", "item"), ("ptr", "slot")], "internal")
    serial, nrelocs = c.load("i64", "%item", ENTRY["serial"]), c.load("i64", "%item", ENTRY["nrelocs"])
    same = c.op("icmp eq", "i64", c.load("i64", "%slot", SLOT["serial"]), serial)
    with c.if_(c.op("and", "i1", same, c.op("icmp eq", "i64", nrelocs, 0))):
        c.ret()
    args, nbytes = c.at("%slot", SLOT_HEAD), c.load("i64", "%item", ENTRY["nbytes"])
    source, relocs = c.load("ptr", "%item", ENTRY["args"]), c.load("ptr", "%item", ENTRY["relocs"])
    c.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {args}, ptr {source}, i64 {nbytes}, i1 false)")
    table, memory = c.load("ptr", "%chain", CHAIN["table"]), c.load("ptr", "%chain", CHAIN["memory"])
    with c.for_(nrelocs) as i:
        reloc = c.at(relocs, c.op("mul", "i64", i, RELOC.size))
        symbol = c.load("i64", reloc, RELOC["symbol"])
        base = c.call("ptr", "@base_of", ("i64", symbol), ("ptr", table), ("ptr", memory))
        there = c.load("i64", reloc, RELOC["at"])
        c.store("ptr", c.at(base, c.load("i64", reloc, RELOC["delta"])), c.at(args, there))
    c.store("i64", serial, "%slot", SLOT["serial"])
    c.store("i64", 0, "%slot", SLOT["begin"])
    return c.text()


def _move_on() -> str:
    """``@move_on(item, slot, begin)``: let addresses of scratch be those for a chunk that begins at ``begin``."""
    c = Code("move_on", "void", [("ptr", "item"), ("ptr", "slot"), ("i64", "begin")], "internal")
    mark = c.op("add", "i64", "%begin", 1)
    with c.if_(c.op("icmp eq", "i64", c.load("i64", "%slot", SLOT["begin"]), mark)):
        c.ret()
    c.store("i64", mark, "%slot", SLOT["begin"])
    args, nbytes = c.at("%slot", SLOT_HEAD), c.load("i64", "%item", ENTRY["nbytes"])
    padded = c.op("and", "i64", c.op("add", "i64", nbytes, SLOT_HEAD - 1), -SLOT_HEAD)
    scratch, patches = c.at(args, padded), c.load("ptr", "%item", ENTRY["patches"])
    with c.for_(c.load("i64", "%item", ENTRY["npatches"])) as j:
        patch = c.at(patches, c.op("mul", "i64", j, PATCH.size))
        back = c.op("mul", "i64", "%begin", c.load("i64", patch, PATCH["step"]))
        offset = c.op("sub", "i64", c.load("i64", patch, PATCH["offset"]), back)
        c.store("ptr", c.at(scratch, offset), args, c.load("i64", patch, PATCH["at"]))
    return c.text()


def _run_chunk() -> str:
    """``@run_chunk(item, launch, args, begin, end)``: one chunk through all members, once."""
    params = [("ptr", "item"), ("ptr", "launch"), ("ptr", "args"), ("i64", "begin"), ("i64", "end")]
    c = Code("run_chunk", "i32", params, "internal")
    stop = c.atomic_load("i32", c.load("ptr", "%launch", LAUNCH["stop"]), 0, "monotonic")
    with c.if_(c.op("icmp ne", "i32", stop, 0)):
        c.ret(STOPPED)
    with c.for_(c.load("i64", "%item", ENTRY["target"])) as k:
        member = c.at("%item", c.op("mul", "i64", c.op("add", "i64", k, 1), ENTRY.size))
        args = c.at("%args", c.load("i64", member, ENTRY["place"]))
        at = ("i64", "%begin"), ("i64", "%end"), ("ptr", "null")
        status = c.call("i32", c.load("ptr", member, ENTRY["entry"]), ("ptr", args), ("ptr", "%launch"), *at)
        with c.if_(c.op("icmp ne", "i32", status, 0)):
            c.ret(status)
    c.ret(0)
    return c.text()


def _run_links() -> str:
    """``@run_links(chain, i)``: take chunks as long as there are any, with slot i."""
    c = Code("run_links", "i32", [("ptr", "chain"), ("i64", "i")], "internal")
    item, launch = c.load("ptr", "%chain", CHAIN["item"]), c.load("ptr", "%chain", CHAIN["launch"])
    size, times, count = (c.load("i64", "%chain", CHAIN[name]) for name in ("size", "times", "count"))
    memory, place = c.load("ptr", "%chain", CHAIN["memory"]), c.load("i64", item, ENTRY["place"])
    behind = c.op("add", "i64", place, c.op("mul", "i64", "%i", c.load("i64", item, ENTRY["slot"])))
    slot, chunk = c.at(memory, behind), c.load("i64", item, ENTRY["chunk"])
    c.call("void", "@prepare_slot", ("ptr", "%chain"), ("ptr", item), ("ptr", slot))
    with c.loop() as loop:
        k = c.atomic("add", "i64", 1, "%chain", CHAIN["next"], "monotonic")
        loop.leave_if(c.op("icmp uge", "i64", k, count))
        begin = c.op("mul", "i64", k, chunk)
        full = c.op("add", "i64", begin, chunk)
        end = c.select(c.op("icmp slt", "i64", full, size), "i64", full, size)
        c.call("void", "@move_on", ("ptr", item), ("ptr", slot), ("i64", begin))
        with c.for_(times):
            at = ("ptr", c.at(slot, SLOT_HEAD)), ("i64", begin), ("i64", end)
            status = c.call("i32", "@run_chunk", ("ptr", item), ("ptr", launch), *at)
            with c.if_(c.op("icmp ne", "i32", status, 0)):
                c.ret(status)
    c.ret(0)
    return c.text()


def _links_apart() -> str:
    """``@links_apart(item, table, scratch)``: whether no two ranges of a chain meet, one of which is written."""
    c = Code("links_apart", "i1", [("ptr", "item"), ("ptr", "table"), ("ptr", "scratch")], "internal")
    rows, count = c.load("ptr", "%item", ENTRY["ranges"]), c.load("i64", "%item", ENTRY["nranges"])

    def place(i: str) -> tuple[str, str, str, str]:
        row = c.at(rows, c.op("mul", "i64", i, RANGE.size))
        symbol, delta, nbytes, written = (c.load("i64", row, RANGE[name]) for name in RANGE.at)
        given = ("i64", symbol), ("ptr", "%table"), ("ptr", "%scratch")
        base = c.cast("ptrtoint", "ptr", c.call("ptr", "@base_of", *given), "i64")
        low = c.op("add", "i64", base, delta)
        return low, c.op("add", "i64", low, nbytes), written, symbol

    with c.for_(count) as i:
        low, high, written, symbol = place(i)
        with c.for_(i) as j:
            begin, end, also, other = place(j)
            meets = c.op("and", "i1", c.op("icmp ult", "i64", begin, high), c.op("icmp ult", "i64", low, end))
            matters = c.op("icmp ne", "i64", c.op("or", "i64", written, also), 0)
            moves = c.op("icmp ne", "i64", symbol, other)  # those that go together were compared before
            with c.if_(c.op("and", "i1", c.op("and", "i1", meets, moves), matters)):
                c.ret("false")
    c.ret("true")
    return c.text()


def _run_chain() -> str:
    """``@run_chain(graph, item, launch, table, memory)``: all chunks, on the workers where they are worth it and
    free."""
    params = [("ptr", "graph"), ("ptr", "item"), ("ptr", "launch"), ("ptr", "table"), ("ptr", "memory")]
    c = Code("run_chain", "i32", params, "internal")
    chain, env = c.stack(CHAIN.size), c.load("ptr", "%graph", GRAPH["env"])
    size, chunk = c.call("i64", "@grid", ("ptr", "%item"), ("ptr", "%launch")), c.load("i64", "%item", ENTRY["chunk"])
    n = c.op("sdiv", "i64", c.op("add", "i64", size, c.op("sub", "i64", chunk, 1)), chunk)
    inside = c.op("icmp ne", "i64", c.load("i64", "%graph", GRAPH["inside"]), 0)
    times = c.select(inside, "i64", c.load("i64", "%graph", GRAPH["times"]), 1)
    for name in ("item", "launch", "table", "memory"):
        c.store("ptr", f"%{name}", chain, CHAIN[name])
    for name, value in (("size", size), ("times", times), ("count", n), ("next", 0)):
        c.store("i64", value, chain, CHAIN[name])
    pool = c.load("ptr", env, ENV["pool"])
    several = c.op("icmp sgt", "i64", n, 1)
    with c.if_(c.op("and", "i1", several, c.op("icmp ne", "i64", c.load("i64", "%item", ENTRY["shared"]), 0))):
        with c.if_(c.op("icmp eq", "i32", c.atomic_load("i32", pool, POOL["limit"]), 0)):
            c.call("void", c.load("ptr", env, ENV["start"]))  # the first work that is worth workers
        with c.if_(c.call("i1", c.load("ptr", env, ENV["try_lock"]), ("ptr", pool))):
            # As many tasks as workers, each with a slot of its own; they take chunks until there are none.
            tasks = c.cast("sext", "i32", c.atomic_load("i32", pool, POOL["limit"]), "i64")
            for most in (n, c.load("i64", "%item", ENTRY["slots"])):
                tasks = c.select(c.op("icmp slt", "i64", tasks, most), "i64", tasks, most)
            tasks = c.select(c.op("icmp sgt", "i64", tasks, 1), "i64", tasks, 1)
            task = ("ptr", pool), ("ptr", "@run_links"), ("ptr", chain), ("i64", tasks)
            status = c.call("i32", c.load("ptr", env, ENV["run_tasks"]), *task)
            c.call("void", c.load("ptr", env, ENV["unlock"]), ("ptr", pool))
            c.ret(status)
    c.ret(c.call("i32", "@run_links", ("ptr", chain), ("i64", 0)))
    return c.text()
