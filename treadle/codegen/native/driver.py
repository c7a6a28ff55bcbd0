"""The launch driver: one native function that runs any kernel over its threads, on the workers or alone.

What it does depends on the launch's size and the kernel's record alone, never on how many workers there are: chunks,
private sums and copies, and the order in which they are merged. That is why results have the same bits everywhere.
"""

from __future__ import annotations

from ...types.records import (
    ATOMIC,
    BRIEF,
    COUNT,
    COUNTED,
    ENV,
    FAULT,
    LAUNCH,
    POOL,
    PROGRAM,
    SIMPLE,
    STOPPED,
)
from .job import JOB, job_field
from .private import private
from .text import Code, Var

CHUNKS = 256  # there are at most this many of them
PATIENCE = 512  # a bounded kernel is interruptible from this many times the work that is worth a worker


def driver() -> str:
    """LLVM text of ``i32 @treadle_drive(env, program, args, launch, gil)``.

    It returns 0, 1 where a kernel reported a fault, or 2 where Ctrl-C ended the launch. ``gil`` is 1 if the caller
    holds Python's lock; it is then given up while other work than a few microseconds is done.
    """
    return _task() + private() + _serial() + _count_up() + _work() + _brief() + _drive()


def _task() -> str:
    """``@run_chunk(job, i)``: call the kernel for chunk i, unless the launch was asked to stop."""
    c = Code("run_chunk", "i32", [("ptr", "job"), ("i64", "i")], "internal")
    launch = c.load("ptr", "%job", JOB["launch"])
    stop = c.atomic_load("i32", c.load("ptr", launch, LAUNCH["stop"]), 0, "monotonic")
    with c.if_(c.op("icmp ne", "i32", stop, 0)):
        c.ret(STOPPED)
    chunk, size = c.load("i64", "%job", JOB["chunk"]), c.load("i64", "%job", JOB["size"])
    begin = c.op("mul", "i64", "%i", chunk)
    full = c.op("add", "i64", begin, chunk)
    end = c.select(c.op("icmp slt", "i64", full, size), "i64", full, size)
    area = c.call("ptr", "@prepare_private", ("ptr", "%job"), ("i64", "%i"))
    entry, args = c.load("ptr", "%job", JOB["entry"]), c.load("ptr", "%job", JOB["args"])
    with c.if_(c.op("icmp ne", "i64", c.load("i64", "%job", JOB["single"]), 0)):
        with c.for_(end, begin) as thread:
            after = c.op("add", "i64", thread, 1)
            ends = ("ptr", args), ("ptr", launch), ("i64", thread), ("i64", after), ("ptr", area)
            status = c.call("i32", entry, *ends)
            with c.if_(c.op("icmp ne", "i32", status, 0)):
                c.ret(status)
        c.ret(0)
    _in_pieces(c, entry, args, launch, begin, end, area)
    return c.text()


def _in_pieces(c: Code, entry: str, args: str, launch: str, begin: str, end: str, area: str) -> None:
    """Call the kernel for the threads of a chunk: a piece after the other, as long as nobody asks for an end. How long
    a piece is follows from the kernel alone, and is the same for all widths of gangs."""
    piece, stop = job_field(c, "piece"), c.load("ptr", launch, LAUNCH["stop"])
    with c.for_(end, begin, piece) as first:
        full = c.op("add", "i64", first, piece)
        last = c.select(c.op("icmp slt", "i64", full, end), "i64", full, end)
        part = ("ptr", args), ("ptr", launch), ("i64", first), ("i64", last), ("ptr", area)
        status = c.call("i32", entry, *part)
        with c.if_(c.op("icmp ne", "i32", status, 0)):
            c.ret(status)
        asked = c.op("icmp ne", "i32", c.atomic_load("i32", stop, 0, "monotonic"), 0)
        with c.if_(c.op("and", "i1", asked, c.op("icmp slt", "i64", last, end))):
            c.ret(STOPPED)
    c.ret(0)


def _serial() -> str:
    """``@run_serially(job, n)``: all chunks in thread order on this thread."""
    c = Code("run_serially", "i32", [("ptr", "job"), ("i64", "n")], "internal")
    with c.for_("%n") as i:
        status = c.call("i32", "@run_chunk", ("ptr", "%job"), ("i64", i))
        with c.if_(c.op("icmp ne", "i32", status, 0)):
            c.ret(status)
    c.ret(0)
    return c.text()


def _count_up() -> str:
    """``@count_up(job, pool, n)``: run the counting passes, so that every chunk's counters hold what they start from.

    The answer is 0, or STOPPED. A thread that fails in a pass is left to the real run, which then draws from the
    counters themselves, in thread order: it reports the fault that comes first, and has done all that comes before it.
    """
    c = Code("count_up", "i32", [("ptr", "job"), ("ptr", "pool"), ("i64", "n")], "internal")
    entry, entries = c.load("ptr", "%job", JOB["entry"]), c.load("ptr", _program(c), PROGRAM["counting"])
    rounds = c.load("i64", "%job", JOB["rounds"])
    with c.for_(rounds) as k:
        c.store("i64", k, "%job", JOB["pass"])
        c.store("ptr", c.load("ptr", entries, c.op("mul", "i64", k, 8)), "%job", JOB["entry"])
        status = c.call("i32", "@run_tasks", ("ptr", "%pool"), ("ptr", "@run_chunk"), ("ptr", "%job"), ("i64", "%n"))
        with c.if_(c.op("icmp uge", "i32", status, STOPPED)):
            c.ret(STOPPED)
        with c.if_(c.op("icmp ne", "i32", status, 0)):
            c.call("void", "@restore_counters", ("ptr", "%job"))
            launch = c.load("ptr", "%job", JOB["launch"])
            c.store("i64", 0, c.load("ptr", launch, LAUNCH["fault"]), FAULT["state"])
            c.store("i64", 0, "%job", JOB["counted"])
            _real_run(c, entry, rounds)
            c.ret(0)
        args = (("ptr", "%job"), ("ptr", "%pool"), ("i1", "true"), ("i64", "%n"), ("i64", k))
        c.call("void", "@merge_private", *args)
    _real_run(c, entry, rounds)
    c.ret(0)
    return c.text()


def _program(c: Code) -> str:
    return c.load("ptr", "%job", JOB["program"])


def _real_run(c: Code, entry: str, rounds: str) -> None:
    c.store("ptr", entry, "%job", JOB["entry"])
    c.store("i64", rounds, "%job", JOB["pass"])


def _work() -> str:
    """``@work(env, program, args, launch, size, big)``: cut the chunks, share them out, merge what is private."""
    params = [("ptr", "env"), ("ptr", "program"), ("ptr", "args"), ("ptr", "launch"), ("i64", "size"), ("i1", "big")]
    c = Code("work", "i32", params, "internal")
    entry = c.load("ptr", "%program", PROGRAM["entry"])
    natomics = c.load("i64", "%program", PROGRAM["natomics"])
    plain = c.op("icmp eq", "i64", natomics, 0)
    with c.if_(c.op("and", "i1", plain, c.op("xor", "i1", "%big", "true"))):
        args = (("ptr", "%args"), ("ptr", "%launch"), ("i64", 0), ("i64", "%size"), ("ptr", "null"))
        c.ret(c.call("i32", entry, *args))
    simple = c.op("icmp ne", "i64", c.load("i64", "%program", PROGRAM["simple"]), 0)
    draws = c.op("icmp ne", "i64", c.load("i64", "%program", PROGRAM["draws"]), 0)
    with c.if_(c.op("and", "i1", simple, c.op("xor", "i1", c.op("or", "i1", "%big", draws), "true"))):
        _in_place(c, entry, natomics)
    pool = c.load("ptr", "%env", ENV["pool"])
    free = c.op("icmp eq", "i64", c.load("i64", "%program", PROGRAM["order"]), 0)
    rounds = c.load("i64", "%program", PROGRAM["rounds"])
    held, counted, single = _choose(c, pool, free, rounds, draws)
    job = c.stack(JOB.size)
    for name, value in (("entry", entry), ("args", "%args"), ("launch", "%launch"), ("program", "%program")):
        c.store("ptr", value, job, JOB[name])
    c.store("i64", "%size", job, JOB["size"])
    c.store("ptr", "null", job, JOB["private"])
    c.store("i64", 1, job, JOB["copies"])
    for name, flag in (("counted", counted), ("single", single)):
        c.store("i64", c.cast("zext", "i1", flag.get(), "i64"), job, JOB[name])
    for name in ("pass", "rounds"):
        c.store("i64", rounds, job, JOB[name])
    even = c.op("sdiv", "i64", c.op("add", "i64", "%size", CHUNKS - 1), CHUNKS)
    grain = c.load("i64", "%program", PROGRAM["grain"])
    up = c.op("add", "i64", even, c.op("sub", "i64", grain, 1))
    chunk = c.op("and", "i64", up, c.op("sub", "i64", 0, grain))
    c.store("i64", chunk, job, JOB["chunk"])
    c.store("i64", c.load("i64", "%program", PROGRAM["piece"]), job, JOB["piece"])
    status = c.var("i32", 0)
    with c.if_(plain):
        together = c.op("and", "i1", held.get(), free)
        status.set(_share_out(c, job, pool, together, _count(c, job)))
    with c.if_(c.op("xor", "i1", plain, "true")):
        # Few small sums fit on the stack; copies and many sums live in the scratch memory of whoever holds the pool.
        stack = c.stack(2048)
        lock = held.get()
        total = c.call("i64", "@plan_private", ("ptr", job))
        memory = c.call("ptr", "@private_memory", ("ptr", "%env"), ("i64", total), ("ptr", stack), ("i1", lock))
        c.store("ptr", memory, job, JOB["private"])
        n = _count(c, job)
        with c.if_(_is_counted(c, job)):
            status.set(c.call("i32", "@count_up", ("ptr", job), ("ptr", pool), ("i64", n)))
        with c.if_(c.op("icmp eq", "i32", status.get(), 0)):
            # Copies refused: thread order, in place.
            alone = c.op("icmp eq", "i64", c.load("i64", job, JOB["copies"]), 0)
            shared = c.op("and", "i1", lock, c.op("xor", "i1", alone, "true"))
            together = c.op("and", "i1", shared, c.op("or", "i1", free, _is_counted(c, job)))
            status.set(_share_out(c, job, pool, together, n))
        with c.if_(c.op("icmp eq", "i32", status.get(), 0)):
            args = (("ptr", job), ("ptr", pool), ("i1", lock), ("i64", n), ("i64", -1))
            c.call("void", "@merge_private", *args)
        own = c.op("and", "i1", c.op("icmp ne", "ptr", memory, stack), c.op("xor", "i1", lock, "true"))
        with c.if_(own):
            c.call("void", c.load("ptr", "%env", ENV["free"]), ("ptr", memory))
    with c.if_(held.get()):
        c.call("void", "@unlock", ("ptr", pool))
    c.ret(status.get())
    return c.text()


def _choose(c: Code, pool: str, free: str, rounds: str, draws: str) -> tuple[Var, Var, Var]:
    """Whether the pool is ours, whether counting passes run, and whether threads run one by one."""
    held, counted, single = (c.var("i1", "false") for _ in range(3))
    counts = c.op("icmp ne", "i64", rounds, 0)
    with c.if_(c.op("and", "i1", "%big", c.op("or", "i1", free, counts))):
        with c.if_(c.op("icmp eq", "i32", c.atomic_load("i32", pool, POOL["limit"]), 0)):
            c.call("void", c.load("ptr", "%env", ENV["start"]))  # the first launch that is worth workers
        workers = c.cast("sext", "i32", c.atomic_load("i32", pool, POOL["limit"]), "i64")
        enough = c.op("icmp sge", "i64", workers, c.load("i64", "%program", PROGRAM["counting_workers"]))
        counted.set(c.op("and", "i1", counts, enough))
    with c.if_(c.op("or", "i1", draws, counted.get())):
        apart = c.call("i1", "@lie_apart", ("ptr", "%program"), ("ptr", "%args"))
        counted.set(c.op("and", "i1", counted.get(), apart))
        single.set(c.op("and", "i1", draws, c.op("xor", "i1", apart, "true")))
    with c.if_(c.op("and", "i1", "%big", c.op("or", "i1", free, counted.get()))):
        held.set(c.call("i1", "@try_lock", ("ptr", pool)))
    counted.set(c.op("and", "i1", counted.get(), held.get()))
    return held, counted, single


def _in_place(c: Code, entry: str, natomics: str) -> None:
    """Run all threads at once on the counters themselves."""
    pointers, items = c.stack(8 * SIMPLE), c.load("ptr", "%program", PROGRAM["atomics"])
    with c.for_(natomics) as j:
        view = c.load("i64", c.at(items, c.op("mul", "i64", j, ATOMIC.size)), ATOMIC["view"])
        c.store("ptr", c.load("ptr", "%args", view), pointers, c.op("mul", "i64", j, 8))
    args = (("ptr", "%args"), ("ptr", "%launch"), ("i64", 0), ("i64", "%size"), ("ptr", pointers))
    c.ret(c.call("i32", entry, *args))


def _is_counted(c: Code, job: str) -> str:
    return c.op("icmp ne", "i64", c.load("i64", job, JOB["counted"]), 0)


def _count(c: Code, job: str) -> str:
    """How many chunks the job has now."""
    chunk = c.load("i64", job, JOB["chunk"])
    return c.op("sdiv", "i64", c.op("add", "i64", "%size", c.op("sub", "i64", chunk, 1)), chunk)


def _share_out(c: Code, job: str, pool: str, together: str, n: str) -> str:
    """Run all chunks, with the workers where ``together``; the or of their answers."""
    status = c.var("i32", 0)
    with c.if_(together):
        status.set(c.call("i32", "@run_tasks", ("ptr", pool), ("ptr", "@run_chunk"), ("ptr", job), ("i64", n)))
    with c.if_(c.op("xor", "i1", together, "true")):
        status.set(c.call("i32", "@run_serially", ("ptr", job), ("i64", n)))
    return status.get()


def _brief() -> str:
    """``@brief(program, args)``: whether the kernel is over before long, with these arguments."""
    c = Code("brief", "i1", [("ptr", "program"), ("ptr", "args")], "internal")
    kind = c.load("i64", "%program", PROGRAM["bounded"])
    with c.if_(c.op("icmp ne", "i64", kind, COUNTED)):
        c.ret(c.op("icmp eq", "i64", kind, BRIEF))
    rows = c.load("ptr", "%program", PROGRAM["counts"])
    first, second = (_is_many(c, c.at(rows, k * COUNT.size)) for k in range(2))  # there are two rows at least
    with c.if_(c.op("or", "i1", first, second)):
        c.ret("false")
    with c.for_(c.load("i64", "%program", PROGRAM["ncounts"]), 2) as k:
        with c.if_(_is_many(c, c.at(rows, c.op("mul", "i64", k, COUNT.size)))):
            c.ret("false")
    c.ret("true")
    return c.text()


def _is_many(c: Code, row: str) -> str:
    number = c.load("i32", c.at("%args", c.load("i64", row, COUNT["offset"])))
    return c.op("icmp uge", "i64", c.cast("zext", "i32", number, "i64"), c.load("i64", row, COUNT["least"]))


def _drive() -> str:
    """``@treadle_drive``: what surrounds the work: Python's lock and Ctrl-C."""
    params = [("ptr", "env"), ("ptr", "program"), ("ptr", "args"), ("ptr", "launch"), ("i32", "gil")]
    c = Code("treadle_drive", "i32", params)
    size = c.load("i64", "%launch", LAUNCH["size"])
    with c.if_(c.op("icmp sle", "i64", size, 0)):
        c.ret(0)
    worth = c.load("i64", "%program", PROGRAM["pool_size"])
    big = c.op("icmp sge", "i64", size, worth)
    brief = c.op("icmp eq", "i64", c.load("i64", "%program", PROGRAM["bounded"]), BRIEF)
    with c.if_(c.op("and", "i1", brief, c.op("xor", "i1", big, "true"))):
        c.ret(c.call("i32", "@work", *_work_args(size, "false")))
    bounded = c.call("i1", "@brief", ("ptr", "%program"), ("ptr", "%args"))
    with c.if_(c.op("and", "i1", bounded, c.op("xor", "i1", big, "true"))):
        c.ret(c.call("i32", "@work", *_work_args(size, "false")))
    # Anything longer: listen to Ctrl-C where it may last, and let other Python threads run.
    listens = c.var("i1", "false")
    lasting = c.op("icmp sge", "i64", c.op("sdiv", "i64", size, PATIENCE), worth)
    handler = c.stack(256)
    with c.if_(c.op("or", "i1", lasting, c.op("xor", "i1", bounded, "true"))):
        here = c.call("i64", c.load("ptr", "%env", ENV["thread_ident"]))
        with c.if_(c.op("icmp eq", "i64", here, c.load("i64", "%env", ENV["main_thread"]))):
            listens.set(c.call("i1", "@listen", ("ptr", "%env"), ("ptr", handler)))
    state = c.var("ptr", "null")
    has_gil = c.op("icmp ne", "i32", "%gil", 0)
    with c.if_(has_gil):
        state.set(c.call("ptr", c.load("ptr", "%env", ENV["save_thread"])))
    status = c.var("i32", c.call("i32", "@work", *_work_args(size, big)))
    with c.if_(has_gil):
        c.call("void", c.load("ptr", "%env", ENV["restore_thread"]), ("ptr", state.get()))
    with c.if_(listens.get()):
        c.call("void", "@unlisten", ("ptr", "%env"), ("ptr", handler))
        with c.if_(c.op("icmp ne", "i32", c.atomic_load("i32", "@interrupted", 0, "monotonic"), 0)):
            c.atomic_store("i32", 0, "@interrupted", 0, "monotonic")
            status.set(STOPPED)
    c.ret(status.get())
    return c.text()


def _work_args(size: str, big: str) -> tuple[tuple[str, str], ...]:
    return (("ptr", "%env"), ("ptr", "%program"), ("ptr", "%args"), ("ptr", "%launch"), ("i64", size), ("i1", big))
