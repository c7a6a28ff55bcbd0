"""Replay: one native function that runs the entries of a graph, and the small functions that entries call.

A graph is a table of entries (``ENTRY``) that the runtime writes. Most are launches; others call a function of three
words (copies, zeros, swaps), go on elsewhere if a condition in memory is 0, or go on elsewhere always. What changes
from call to call are addresses among arguments, listed beside them (``RELOC``): such arguments are copied first.

A *chain* is a run of launches over the same grid that share memory only at the thread's own index. It is cut into
chunks of threads, and each chunk passes through all of them, so that what one leaves the next finds in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from ...types.records import (
    ARGS_BYTES,
    BYTES,
    CHUNK_SCRATCH,
    ENTRY,
    ENTRY_KINDS,
    ENV,
    FAULT,
    GRAPH,
    LAUNCH,
    LOG,
    MAX_DIMS,
    MOST_CHAINED,
    PATCH,
    POOL,
    RANGE,
    RELOC,
    REPLAY,
    SCRATCH,
    SELF,
    SPREAD,
    STOPPED,
    words,
)
from .text import Code, Var

WORDS = 3  # arguments of a function that an entry calls
# What the chunks of a chain share; lies on the stack of who replays.
CHAIN = words("members count launch args chunk size")

_DECLARE = """declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
"""


def graph() -> str:
    """LLVM text of ``i32 @treadle_replay(graph, table, report)`` and of what entries call.

    ``table``: addresses of the buffers that take the place of the graph's inputs. The answer is 0; 1 where a kernel
    reported a fault, which ``report`` tells (``REPLAY``); 2 where Ctrl-C ended the replay; 3 where memory for scratch
    cannot be had.
    """
    steps = _base() + _settle() + _run_chunk() + _links_apart() + _run_chain() + _replay()
    return _DECLARE + _move() + _zero() + _spread() + _sum() + steps + _launch_graph()


NO_MEMORY = 3


# ---- what entries call


def _move() -> str:
    c = Code("treadle_move", "void", [("ptr", "into"), ("ptr", "source"), ("i64", "nbytes")])
    c.line("call void @llvm.memmove.p0.p0.i64(ptr %into, ptr %source, i64 %nbytes, i1 false)")
    return c.text()


def _zero() -> str:
    c = Code("treadle_zero", "void", [("ptr", "into"), ("i64", "unused"), ("i64", "nbytes")])
    c.line("call void @llvm.memset.p0.i64(ptr %into, i8 0, i64 %nbytes, i1 false)")
    return c.text()


def _spread() -> str:
    """``@treadle_spread(spread)``: copy runs of bytes between arrays with gaps, as the record ``SPREAD`` says."""
    c = Code("treadle_spread", "void", [("ptr", "spread"), ("i64", "unused"), ("i64", "none")])
    with _rows(c) as (places, steps, count, run):
        rest = c.var("i64", 0)
        for size in (1, 2, 4, 8, 12, 16):
            with c.if_(c.op("icmp eq", "i64", run, size)):
                _copy_runs(c, places, steps, count, size)
                rest.set(-1)
        with c.if_(c.op("icmp sge", "i64", rest.get(), 0)):
            _copy_runs(c, places, steps, count, run)
    return c.text()


def _sum() -> str:
    """``@treadle_sum(spread, size)``: add floats of ``size`` bytes to others, as the record ``SPREAD`` says."""
    c = Code("treadle_sum", "void", [("ptr", "spread"), ("i64", "size"), ("i64", "none")])
    with _rows(c) as (places, steps, count, run):
        for size, t in ((4, "float"), (8, "double")):
            with c.if_(c.op("icmp eq", "i64", "%size", size)):
                with c.if_(c.op("icmp eq", "i64", run, size)):  # the common case has one loop
                    _add_runs(c, t, places, steps, count, size, size)
                with c.if_(c.op("icmp ne", "i64", run, size)):
                    _add_runs(c, t, places, steps, count, size, run)
    return c.text()


@contextmanager
def _rows(c: Code) -> Iterator[tuple[tuple[str, str], tuple[str, str], str, str]]:
    """For each row of the record ``SPREAD``, which is the last axis: the two places where it begins, the steps from one
    run to the next, how many there are, and how long each is."""
    last = c.op("sub", "i64", c.load("i64", "%spread", SPREAD["ndim"]), 1)
    run = c.load("i64", "%spread", SPREAD["run"])

    def axis(what: str, k: str) -> str:
        return c.load("i64", c.at("%spread", SPREAD[f"{what}0"]), c.op("shl", "i64", k, 3))

    rows = c.var("i64", 1)
    with c.for_(last) as k:
        rows.set(c.op("mul", "i64", rows.get(), axis("extent", k)))
    count, into_step, source_step = (axis(what, last) for what in ("extent", "into_step", "source_step"))
    with c.for_(rows.get()) as row:
        into, source = (c.var("ptr", c.load("ptr", "%spread", SPREAD[name])) for name in ("into", "source"))
        rest = c.var("i64", row)
        with c.for_(last) as back:
            k = c.op("sub", "i64", c.op("sub", "i64", last, 1), back)
            extent = axis("extent", k)
            index = c.op("srem", "i64", rest.get(), extent)
            rest.set(c.op("sdiv", "i64", rest.get(), extent))
            for place, what in ((into, "into_step"), (source, "source_step")):
                place.set(c.at(place.get(), c.op("mul", "i64", index, axis(what, k))))
        yield (into.get(), source.get()), (into_step, source_step), count, run


def _copy_runs(c: Code, places: tuple[str, str], steps: tuple[str, str], count: str, run: str | int) -> None:
    with c.for_(count) as i:
        a, b = (c.at(place, c.op("mul", "i64", i, step)) for place, step in zip(places, steps, strict=True))
        if isinstance(run, int):
            value = c.value(f"load i{8 * run}, ptr {b}, align 1")
            c.line(f"store i{8 * run} {value}, ptr {a}, align 1")
        else:
            c.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {a}, ptr {b}, i64 {run}, i1 false)")


def _add_runs(
    c: Code, t: str, places: tuple[str, str], steps: tuple[str, str], count: str, size: int, run: str | int
) -> None:
    with c.for_(count) as i:
        into, source = (c.at(place, c.op("mul", "i64", i, step)) for place, step in zip(places, steps, strict=True))
        with c.for_(run, step=size) if run != size else nullcontext(0) as k:
            a, b = c.at(into, k), c.at(source, k)
            values = [c.value(f"load {t}, ptr {x}, align {size}") for x in (a, b)]
            c.line(f"store {t} {c.op('fadd', t, *values)}, ptr {a}, align {size}")


# ---- replay


def _settle() -> str:
    """``@settle(entry, table, scratch, buffer)``: the entry's arguments with the addresses of this call."""
    c = Code("settle", "ptr", [("ptr", "item"), ("ptr", "table"), ("ptr", "scratch"), ("ptr", "buffer")], "internal")
    args, nrelocs = c.load("ptr", "%item", ENTRY["args"]), c.load("i64", "%item", ENTRY["nrelocs"])
    nbytes, relocs = c.load("i64", "%item", ENTRY["nbytes"]), c.load("ptr", "%item", ENTRY["relocs"])
    c.line(f"call void @llvm.memcpy.p0.p0.i64(ptr %buffer, ptr {args}, i64 {nbytes}, i1 false)")
    with c.for_(nrelocs) as i:
        reloc = c.at(relocs, c.op("mul", "i64", i, RELOC.size))
        symbol = c.load("i64", reloc, RELOC["symbol"])
        base = c.var("ptr", c.call("ptr", "@base_of", ("i64", symbol), ("ptr", "%table"), ("ptr", "%scratch")))
        with c.if_(c.op("icmp eq", "i64", symbol, SELF)):
            base.set("%buffer")
        address = c.at(base.get(), c.load("i64", reloc, RELOC["delta"]))
        c.store("ptr", address, "%buffer", c.load("i64", reloc, RELOC["at"]))
    c.ret("%buffer")
    return c.text()


def _grid(c: Code, entry: str, launch: str) -> str:
    """Tell ``launch`` the grid of ``entry``; its number of threads."""
    size = c.load("i64", entry, ENTRY["size"])
    c.store("i64", size, launch, LAUNCH["size"])
    for k in range(MAX_DIMS):
        c.store("i64", c.load("i64", entry, ENTRY[f"dim{k}"]), launch, LAUNCH[f"dim{k}"])
    c.store("i64", c.load("i64", entry, ENTRY["checked"]), launch, LAUNCH["checked"])
    return size


def _run_chunk() -> str:
    """``@run_links(chain, i)``: chunk i through all launches of a chain."""
    c = Code("run_links", "i32", [("ptr", "chain"), ("i64", "i")], "internal")
    chunk, size = c.load("i64", "%chain", CHAIN["chunk"]), c.load("i64", "%chain", CHAIN["size"])
    begin = c.op("mul", "i64", "%i", chunk)
    full = c.op("add", "i64", begin, chunk)
    end = c.select(c.op("icmp slt", "i64", full, size), "i64", full, size)
    members, launch = c.load("ptr", "%chain", CHAIN["members"]), c.load("ptr", "%chain", CHAIN["launch"])
    settled = c.load("ptr", "%chain", CHAIN["args"])
    scratch, patched = c.stack(CHUNK_SCRATCH), c.stack(ARGS_BYTES)
    stop = c.atomic_load("i32", c.load("ptr", launch, LAUNCH["stop"]), 0, "monotonic")
    with c.if_(c.op("icmp ne", "i32", stop, 0)):
        c.ret(STOPPED)
    with c.for_(c.load("i64", "%chain", CHAIN["count"])) as k:
        member = c.at(members, c.op("mul", "i64", k, ENTRY.size))
        args = c.var("ptr", c.load("ptr", settled, c.op("shl", "i64", k, 3)))
        npatches = c.load("i64", member, ENTRY["npatches"])
        with c.if_(c.op("icmp ne", "i64", npatches, 0)):
            nbytes = c.load("i64", member, ENTRY["nbytes"])
            c.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {patched}, ptr {args.get()}, i64 {nbytes}, i1 false)")
            patches = c.load("ptr", member, ENTRY["patches"])
            with c.for_(npatches) as j:
                patch = c.at(patches, c.op("mul", "i64", j, PATCH.size))
                there = c.at(scratch, c.load("i64", patch, PATCH["offset"]))
                back = c.op("mul", "i64", begin, c.load("i64", patch, PATCH["step"]))
                address = c.at(there, c.op("sub", "i64", 0, back))
                c.store("ptr", address, patched, c.load("i64", patch, PATCH["at"]))
            args.set(patched)
        at = ("i64", begin), ("i64", end), ("ptr", "null")
        status = c.call("i32", c.load("ptr", member, ENTRY["entry"]), ("ptr", args.get()), ("ptr", launch), *at)
        with c.if_(c.op("icmp ne", "i32", status, 0)):
            c.ret(status)
    c.ret(0)
    return c.text()


def _base() -> str:
    """``@base_of(symbol, table, scratch)``: what an address depends on."""
    c = Code("base_of", "ptr", [("i64", "symbol"), ("ptr", "table"), ("ptr", "scratch")], "internal")
    with c.if_(c.op("icmp sge", "i64", "%symbol", 0)):
        c.ret(c.load("ptr", "%table", c.op("shl", "i64", "%symbol", 3)))
    with c.if_(c.op("icmp eq", "i64", "%symbol", SCRATCH)):
        c.ret("%scratch")
    c.ret("null")
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
    """``@run_chain(env, item, launch, args)``: all chunks, on the workers where they are worth it and free."""
    params = [("ptr", "env"), ("ptr", "item"), ("ptr", "launch"), ("ptr", "args")]
    c = Code("run_chain", "i32", params, "internal")
    chain = c.stack(CHAIN.size)
    size, chunk = _grid(c, "%item", "%launch"), c.load("i64", "%item", ENTRY["chunk"])
    for name, place in (("launch", "%launch"), ("members", c.at("%item", ENTRY.size)), ("args", "%args")):
        c.store("ptr", place, chain, CHAIN[name])
    for name, value in (("chunk", chunk), ("size", size), ("count", c.load("i64", "%item", ENTRY["target"]))):
        c.store("i64", value, chain, CHAIN[name])
    n = c.op("sdiv", "i64", c.op("add", "i64", size, c.op("sub", "i64", chunk, 1)), chunk)
    pool = c.load("ptr", "%env", ENV["pool"])
    with c.if_(c.op("icmp ne", "i64", c.load("i64", "%item", ENTRY["shared"]), 0)):
        with c.if_(c.op("icmp eq", "i32", c.atomic_load("i32", pool, POOL["limit"]), 0)):
            c.call("void", c.load("ptr", "%env", ENV["start"]))  # the first work that is worth workers
        with c.if_(c.call("i1", c.load("ptr", "%env", ENV["try_lock"]), ("ptr", pool))):
            task = ("ptr", pool), ("ptr", "@run_links"), ("ptr", chain), ("i64", n)
            status = c.call("i32", c.load("ptr", "%env", ENV["run_tasks"]), *task)
            c.call("void", c.load("ptr", "%env", ENV["unlock"]), ("ptr", pool))
            c.ret(status)
    with c.for_(n) as i:
        status = c.call("i32", "@run_links", ("ptr", chain), ("i64", i))
        with c.if_(c.op("icmp ne", "i32", status, 0)):
            c.ret(status)
    c.ret(0)
    return c.text()


def _replay() -> str:
    c = Code("treadle_replay", "i32", [("ptr", "graph"), ("ptr", "table"), ("ptr", "report")])
    env, handler = c.load("ptr", "%graph", GRAPH["env"]), c.stack(256)
    listens = c.var("i1", "false")
    with c.if_(c.op("icmp ne", "i64", c.load("i64", "%graph", GRAPH["listens"]), 0)):
        here = c.call("i64", c.load("ptr", env, ENV["thread_ident"]))
        with c.if_(c.op("icmp eq", "i64", here, c.load("i64", env, ENV["main_thread"]))):
            listens.set(c.call("i1", c.load("ptr", env, ENV["listen"]), ("ptr", env), ("ptr", handler)))
    scratch = c.var("ptr", "null")
    needs = c.load("i64", "%graph", GRAPH["scratch"])
    with c.if_(c.op("icmp ne", "i64", needs, 0)):
        _take_scratch(c, env, needs, scratch)
    status = c.var("i32", 0)
    _run_entries(c, env, scratch.get(), status)
    with c.if_(c.op("icmp ne", "i64", needs, 0)):
        # Leave the block for the next call; another call that ended meanwhile left one as well: that one goes.
        other = c.value(f"atomicrmw xchg ptr {c.at('%graph', GRAPH['spare'])}, ptr {scratch.get()} acq_rel")
        with c.if_(c.op("icmp ne", "ptr", other, "null")):
            c.call("void", c.load("ptr", env, ENV["free"]), ("ptr", other))
    with c.if_(listens.get()):
        c.call("void", c.load("ptr", env, ENV["unlisten"]), ("ptr", env), ("ptr", handler))
        word = c.load("ptr", env, ENV["stop"])
        with c.if_(c.op("icmp ne", "i32", c.atomic_load("i32", word, 0, "monotonic"), 0)):
            c.atomic_store("i32", 0, word, 0, "monotonic")
            status.set(STOPPED)
    c.ret(status.get())
    return c.text()


def _take_scratch(c: Code, env: str, nbytes: str, scratch: Var) -> None:
    """The block that the last call left, or a new one."""
    scratch.set(c.value(f"atomicrmw xchg ptr {c.at('%graph', GRAPH['spare'])}, ptr null acq_rel"))
    with c.if_(c.op("icmp eq", "ptr", scratch.get(), "null")):
        scratch.set(c.call("ptr", c.load("ptr", env, ENV["malloc"]), ("i64", nbytes)))
        with c.if_(c.op("icmp eq", "ptr", scratch.get(), "null")):
            c.ret(NO_MEMORY)


def _run_entries(c: Code, env: str, scratch: str, status: Var) -> None:
    """Go through the table until it ends or something fails."""
    launch, fault, log, shadow = (c.stack(r.size) for r in (LAUNCH, FAULT, LOG, LOG))
    buffer, each = c.stack(ARGS_BYTES), c.stack(8 * MOST_CHAINED)
    for place, record in ((fault, FAULT), (log, LOG), (shadow, LOG)):
        c.line(f"call void @llvm.memset.p0.i64(ptr {place}, i8 0, i64 {record.size}, i1 false)")
    stop = c.load("ptr", env, ENV["stop"])
    for name, place in (("stop", stop), ("fault", fault), ("log", log), ("shadow", shadow), ("priv_targets", "null")):
        c.store("ptr", place, launch, LAUNCH[name])
    entries, count = c.load("ptr", "%graph", GRAPH["entries"]), c.load("i64", "%graph", GRAPH["count"])
    number = c.var("i64", 0)
    with c.loop() as loop:
        k = number.get()
        loop.leave_if(c.op("icmp uge", "i64", k, count))
        number.set(c.op("add", "i64", k, 1))
        entry = c.at(entries, c.op("mul", "i64", k, ENTRY.size))
        kind, code = c.load("i64", entry, ENTRY["kind"]), c.load("ptr", entry, ENTRY["code"])
        settled = c.var("ptr", c.load("ptr", entry, ENTRY["args"]))
        with c.if_(c.op("icmp ne", "i64", c.load("i64", entry, ENTRY["nrelocs"]), 0)):
            given = ("ptr", entry), ("ptr", "%table"), ("ptr", scratch), ("ptr", buffer)
            settled.set(c.call("ptr", "@settle", *given))
        args = settled.get()

        def is_(name: str) -> str:
            return c.op("icmp eq", "i64", kind, ENTRY_KINDS[name])

        with c.if_(is_("run")):
            size = _grid(c, entry, launch)
            at = ("i64", 0), ("i64", size), ("ptr", "null")
            status.set(c.call("i32", code, ("ptr", args), ("ptr", launch), *at))
            loop.again_if(c.op("icmp eq", "i32", status.get(), 0))
        with c.if_(is_("call")):
            given = [("i64", c.load("i64", args, 8 * i)) for i in range(WORDS)]
            c.call("void", code, *given)
            loop.again()
        with c.if_(is_("launch")):
            _grid(c, entry, launch)
            given = ("ptr", env), ("ptr", code), ("ptr", args), ("ptr", launch), ("i32", 0)
            status.set(c.call("i32", c.load("ptr", env, ENV["drive"]), *given))
            _after_launch(c, env, entry, k, log, shadow)
        with c.if_(is_("chain")):
            with c.if_(c.call("i1", "@links_apart", ("ptr", entry), ("ptr", "%table"), ("ptr", scratch))):
                members = c.load("i64", entry, ENTRY["target"])
                _settle_members(c, entry, members, scratch, buffer, each)
                number.set(c.op("add", "i64", number.get(), members))
                given = ("ptr", env), ("ptr", entry), ("ptr", launch), ("ptr", each)
                status.set(c.call("i32", "@run_chain", *given))
        with c.if_(is_("apart")):
            apart = c.call("i1", "@links_apart", ("ptr", entry), ("ptr", "%table"), ("ptr", scratch))
            with c.if_(c.op("xor", "i1", apart, "true")):
                number.set(c.load("i64", entry, ENTRY["target"]))
            loop.again()
        with c.if_(is_("jump")):
            _poll(c, stop, status)
            number.set(c.load("i64", entry, ENTRY["target"]))
        with c.if_(is_("skip")):
            condition = c.load("i32", c.load("ptr", args))
            with c.if_(c.op("icmp eq", "i32", condition, 0)):
                number.set(c.load("i64", entry, ENTRY["target"]))
        faulted = c.op("icmp ne", "i64", c.load("i64", fault), 0)
        with c.if_(c.op("or", "i1", faulted, c.op("icmp ne", "i32", status.get(), 0))):
            with c.if_(c.op("icmp eq", "i32", status.get(), 0)):
                status.set(1)
            with c.if_(c.op("icmp ne", "ptr", "%report", "null")):
                c.store("i64", k, "%report", REPLAY["entry"])
                into = c.at("%report", REPLAY["state"])
                c.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {into}, ptr {fault}, i64 {FAULT.size}, i1 false)")
            loop.leave()


def _settle_members(c: Code, entry: str, count: str, scratch: str, buffer: str, each: str) -> None:
    """Put the addresses of the members' arguments in ``each``; those that depend on the call lie in ``buffer``."""
    free = c.var("ptr", buffer)
    with c.for_(count) as k:
        member = c.at(entry, c.op("mul", "i64", c.op("add", "i64", k, 1), ENTRY.size))
        args = c.var("ptr", c.load("ptr", member, ENTRY["args"]))
        with c.if_(c.op("icmp ne", "i64", c.load("i64", member, ENTRY["nrelocs"]), 0)):
            here = free.get()
            args.set(c.call("ptr", "@settle", ("ptr", member), ("ptr", "%table"), ("ptr", scratch), ("ptr", here)))
            free.set(c.at(here, c.load("i64", member, ENTRY["nbytes"])))
        c.store("ptr", args.get(), each, c.op("shl", "i64", k, 3))


def _launch_graph() -> str:
    """``@treadle_launch_graph(self, none)``: what Python calls; ``self`` holds the address of the graph.

    None where all is done, else a bytes object with the answer of ``@treadle_replay`` and its report.
    """
    c = Code("treadle_launch_graph", "ptr", [("ptr", "self"), ("ptr", "none")])
    graph, report = c.load("ptr", "%self", BYTES), c.stack(8 + REPLAY.size)
    env = c.load("ptr", graph, GRAPH["env"])
    given = ("ptr", graph), ("ptr", "null"), ("ptr", c.at(report, 8))
    status = c.var("i32", 0)
    short = c.op("icmp ne", "i64", c.load("i64", graph, GRAPH["short"]), 0)
    with c.if_(short):
        status.set(c.call("i32", "@treadle_replay", *given))
    with c.if_(c.op("xor", "i1", short, "true")):
        state = c.call("ptr", c.load("ptr", env, ENV["save_thread"]))
        status.set(c.call("i32", "@treadle_replay", *given))
        c.call("void", c.load("ptr", env, ENV["restore_thread"]), ("ptr", state))
    with c.if_(c.op("icmp ne", "i32", status.get(), 0)):
        c.store("i64", c.cast("zext", "i32", status.get(), "i64"), report)
        c.ret(c.call("ptr", c.load("ptr", env, ENV["bytes_from"]), ("ptr", report), ("i64", 8 + REPLAY.size)))
    nothing = c.load("ptr", env, ENV["none"])
    c.call("void", c.load("ptr", env, ENV["incref"]), ("ptr", nothing))
    c.ret(nothing)
    return c.text()


def _poll(c: Code, stop: str, status: Var) -> None:
    """Ctrl-C ends a loop between its rounds."""
    with c.if_(c.op("icmp ne", "i32", c.atomic_load("i32", stop, 0, "monotonic"), 0)):
        status.set(STOPPED)


def _after_launch(c: Code, env: str, entry: str, number: str, log: str, shadow: str) -> None:
    """Show what was printed, and drop the table of a kernel that looks for races."""
    free = c.load("ptr", env, ENV["free"])
    with c.if_(c.op("icmp ne", "i64", c.load("i64", entry, ENTRY["prints"]), 0)):
        data, used = c.load("ptr", log, LOG["data"]), c.load("i64", log, LOG["used"])
        with c.if_(c.op("icmp ne", "ptr", data, "null")):
            given = ("ptr", "%graph"), ("i64", number), ("ptr", data), ("i64", used)
            c.call("void", c.load("ptr", env, ENV["print_log"]), *given)
            c.call("void", free, ("ptr", data))
            c.line(f"call void @llvm.memset.p0.i64(ptr {log}, i8 0, i64 {LOG.size}, i1 false)")
    with c.if_(c.op("icmp ne", "ptr", c.load("ptr", shadow), "null")):
        c.call("void", free, ("ptr", c.load("ptr", shadow)))
        c.line(f"call void @llvm.memset.p0.i64(ptr {shadow}, i8 0, i64 {LOG.size}, i1 false)")
