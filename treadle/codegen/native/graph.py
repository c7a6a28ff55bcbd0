"""Replay: one native function that runs the entries of a graph, and the small functions that entries call.

A graph is a table of entries (``ENTRY``) that the runtime writes. Most are launches; others call a function of three
words (copies, zeros, swaps), go on elsewhere if a condition in memory is 0, or go on elsewhere always. What changes
from call to call are addresses among arguments, listed beside them (``RELOC``): such arguments are copied first.
Launches that go chunk by chunk are run by ``chain.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from ...types.records import (
    ARGS_BYTES,
    BYTES,
    ENTRY,
    ENTRY_KINDS,
    ENV,
    FAULT,
    GRAPH,
    LAUNCH,
    LOG,
    RELOC,
    REPLAY,
    SELF,
    SPREAD,
    STOPPED,
)
from .chain import chain
from .text import Code, Var

WORDS = 3  # arguments of a function that an entry calls

_DECLARE = """declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
"""


def graph() -> str:
    """LLVM text of ``i32 @treadle_replay(graph, table, report)`` and of what entries call.

    ``table``: addresses of the buffers that take the place of the graph's inputs. The answer is 0; 1 where a kernel
    reported a fault, which ``report`` tells (``REPLAY``); 2 where Ctrl-C ended the replay; 3 where memory for scratch
    cannot be had; 4 where buffers lie over each other that a chain needs apart.
    """
    replay = chain() + _settle() + _run_entries() + _replay()
    return _DECLARE + _move() + _zero() + _spread() + _sum() + replay + _launch_graph()


NO_MEMORY, NOT_APART = 3, 4


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
    inside = c.op("icmp ne", "i64", c.load("i64", "%graph", GRAPH["inside"]), 0)
    with c.for_(c.select(inside, "i64", 1, c.load("i64", "%graph", GRAPH["times"]))):
        with c.if_(c.op("icmp eq", "i32", status.get(), 0)):
            line = c.op("and", "i64", c.op("add", "i64", c.cast("ptrtoint", "ptr", scratch.get(), "i64"), 63), -64)
            memory = c.cast("inttoptr", "i64", line, "ptr")
            given = ("ptr", "%graph"), ("ptr", "%table"), ("ptr", "%report"), ("ptr", memory)
            status.set(c.call("i32", "@run_entries", *given))
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
        scratch.set(
            c.call("ptr", c.load("ptr", env, ENV["calloc"]), ("i64", c.op("add", "i64", nbytes, 64)), ("i64", 1))
        )
        with c.if_(c.op("icmp eq", "ptr", scratch.get(), "null")):
            c.ret(NO_MEMORY)


def _run_entries() -> str:
    """``@run_entries(graph, table, report, scratch)``: go through the table until it ends or something fails."""
    params = [("ptr", "graph"), ("ptr", "table"), ("ptr", "report"), ("ptr", "scratch")]
    c = Code("run_entries", "i32", params, "internal")
    env, scratch, status = c.load("ptr", "%graph", GRAPH["env"]), "%scratch", c.var("i32", 0)
    launch, fault, log, shadow = (c.stack(r.size) for r in (LAUNCH, FAULT, LOG, LOG))
    buffer = c.stack(ARGS_BYTES)
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

        def is_(name: str) -> str:
            return c.op("icmp eq", "i64", kind, ENTRY_KINDS[name])

        with c.if_(is_("chain")):
            with c.if_(c.call("i1", "@links_apart", ("ptr", entry), ("ptr", "%table"), ("ptr", scratch))):
                number.set(c.op("add", "i64", number.get(), c.load("i64", entry, ENTRY["target"])))
                given = ("ptr", entry), ("ptr", launch), ("ptr", "%table"), ("ptr", scratch)
                status.set(c.call("i32", "@run_chain", ("ptr", "%graph"), *given))
                loop.again_if(c.op("icmp eq", "i32", status.get(), 0))
                c.ret(status.get())
            with c.if_(c.op("icmp ne", "i64", c.load("i64", entry, ENTRY["bound"]), 0)):
                c.ret(NOT_APART)
            loop.again()
        with c.if_(c.op("icmp ne", "i64", c.load("i64", entry, ENTRY["nrelocs"]), 0)):
            given = ("ptr", entry), ("ptr", "%table"), ("ptr", scratch), ("ptr", buffer)
            settled.set(c.call("ptr", "@settle", *given))
        args = settled.get()
        with c.if_(is_("run")):
            size = c.call("i64", "@grid", ("ptr", entry), ("ptr", launch))
            at = ("i64", 0), ("i64", size), ("ptr", "null")
            status.set(c.call("i32", code, ("ptr", args), ("ptr", launch), *at))
            loop.again_if(c.op("icmp eq", "i32", status.get(), 0))
        with c.if_(is_("call")):
            given = [("i64", c.load("i64", args, 8 * i)) for i in range(WORDS)]
            c.call("void", code, *given)
            loop.again()
        with c.if_(is_("launch")):
            c.call("i64", "@grid", ("ptr", entry), ("ptr", launch))
            given = ("ptr", env), ("ptr", code), ("ptr", args), ("ptr", launch), ("i32", 0)
            status.set(c.call("i32", c.load("ptr", env, ENV["drive"]), *given))
            _after_launch(c, env, entry, k, log, shadow)
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
    c.ret(status.get())
    return c.text()


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
