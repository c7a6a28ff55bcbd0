"""The worker pool: a ticket that hands out chunks, workers that spin and then sleep, a launcher that works too.

The ticket is one 64-bit word, ``chunks << 32 | next``. Whoever adds 1 to it owns the chunk it read, if that is below
the number of chunks; a worker that comes late simply finds none, so nobody ever waits for a worker, only for chunks.
A task is ``i32 (ptr context, i64 chunk)``; once one returns non-zero, later chunks are counted but not run.
"""

from __future__ import annotations

from ...types.records import POOL
from .system import pause, waiting
from .text import Code


def pool(triple: str) -> str:
    """The functions of the pool as LLVM text.

    ``@treadle_worker(pool, index)`` is what a worker thread calls and stays in; ``@run_tasks(pool, task, context, n)``
    runs n chunks and returns the or of their answers; ``@try_lock(pool)`` and ``@unlock(pool)`` say who may call it.
    """
    spin, declaration = pause(triple)
    return declaration + waiting(triple) + _take() + _worker(spin) + _run(spin) + _locks() + _set_workers()


def _take() -> str:
    """``@take_chunks``: run chunks until the ticket is used up."""
    c = Code("take_chunks", "void", [("ptr", "pool")], "internal")
    with c.loop() as loop:
        seen = c.atomic_load("i64", "%pool", POOL["ticket"], "seq_cst")
        left = c.op("icmp ult", "i64", c.op("and", "i64", seen, 0xFFFFFFFF), c.op("lshr", "i64", seen, 32))
        loop.leave_if(c.op("xor", "i1", left, "true"))
        ticket = c.atomic("add", "i64", 1, "%pool", POOL["ticket"])
        chunk, chunks = c.op("and", "i64", ticket, 0xFFFFFFFF), c.op("lshr", "i64", ticket, 32)
        loop.leave_if(c.op("icmp uge", "i64", chunk, chunks))
        # From here on the job cannot end before this chunk is counted, so its fields hold still.
        status = c.atomic_load("i32", "%pool", POOL["status"], "monotonic")
        with c.if_(c.op("icmp eq", "i32", status, 0)):
            task, context = c.load("ptr", "%pool", POOL["task"]), c.load("ptr", "%pool", POOL["context"])
            answer = c.call("i32", task, ("ptr", context), ("i64", chunk))
            with c.if_(c.op("icmp ne", "i32", answer, 0)):
                c.atomic("or", "i32", answer, "%pool", POOL["status"])
        before = c.atomic("add", "i32", 1, "%pool", POOL["done"])
        after = c.cast("zext", "i32", c.op("add", "i32", before, 1), "i64")
        last = c.op("icmp eq", "i64", after, chunks)
        awaited = c.op("icmp ne", "i32", c.atomic_load("i32", "%pool", POOL["waiting"], "seq_cst"), 0)
        with c.if_(c.op("and", "i1", last, awaited)):
            c.call("void", "@wake", ("ptr", "%pool"), ("ptr", c.at("%pool", POOL["done"])), ("i32", 1))
    return c.text()


def _worker(spin: str) -> str:
    """``@treadle_worker``: look for chunks, spin for a while, sleep; until told to quit."""
    c = Code("treadle_worker", "void", [("ptr", "pool"), ("i32", "index")])
    spun = c.var("i32", 0)
    with c.loop() as loop:
        with c.if_(c.op("icmp ne", "i32", c.atomic_load("i32", "%pool", POOL["quit"]), 0)):
            c.ret()
        limit = c.atomic_load("i32", "%pool", POOL["limit"], "seq_cst")
        with c.if_(c.op("icmp sge", "i32", "%index", limit)):  # not wanted now: sleep until the limit changes
            c.call("void", "@sleep_on", ("ptr", "%pool"), ("ptr", c.at("%pool", POOL["limit"])), ("i32", limit))
            loop.again()
        with c.if_(_has_work(c)):
            c.call("void", "@take_chunks", ("ptr", "%pool"))
            spun.set(0)
            loop.again()
        c.line(spin)
        count = c.op("add", "i32", spun.get(), 1)
        spun.set(count)
        loop.again_if(c.op("icmp slt", "i32", count, c.load("i32", "%pool", POOL["spins"])))
        # Announce the sleep, then look once more: a launcher publishes its ticket before it looks for sleepers.
        c.atomic("add", "i32", 1, "%pool", POOL["sleepers"])
        epoch = c.atomic_load("i32", "%pool", POOL["epoch"], "seq_cst")
        quit_ = c.op("icmp ne", "i32", c.atomic_load("i32", "%pool", POOL["quit"], "seq_cst"), 0)
        with c.if_(c.op("xor", "i1", c.op("or", "i1", _has_work(c), quit_), "true")):
            c.call("void", "@sleep_on", ("ptr", "%pool"), ("ptr", c.at("%pool", POOL["epoch"])), ("i32", epoch))
        c.atomic("sub", "i32", 1, "%pool", POOL["sleepers"])
        spun.set(0)
    return c.text()


def _has_work(c: Code) -> str:
    ticket = c.atomic_load("i64", "%pool", POOL["ticket"], "seq_cst")
    return c.op("icmp ult", "i64", c.op("and", "i64", ticket, 0xFFFFFFFF), c.op("lshr", "i64", ticket, 32))


def _run(spin: str) -> str:
    """``@run_tasks``: publish a job, help with it, wait for the chunks that others took."""
    c = Code("run_tasks", "i32", [("ptr", "pool"), ("ptr", "task"), ("ptr", "context"), ("i64", "n")])
    c.store("ptr", "%task", "%pool", POOL["task"])
    c.store("ptr", "%context", "%pool", POOL["context"])
    c.atomic_store("i32", 0, "%pool", POOL["status"], "monotonic")
    c.atomic_store("i32", 0, "%pool", POOL["done"], "monotonic")
    c.atomic_store("i64", c.op("shl", "i64", "%n", 32), "%pool", POOL["ticket"], "seq_cst")
    sleepers = c.atomic_load("i32", "%pool", POOL["sleepers"], "seq_cst")
    with c.if_(c.op("icmp sgt", "i32", sleepers, 0)):
        c.atomic("add", "i32", 1, "%pool", POOL["epoch"])
        # The launcher takes a chunk itself, so n - 1 helpers are enough.
        others = c.cast("trunc", "i64", c.op("sub", "i64", "%n", 1), "i32")
        c.call("void", "@wake", ("ptr", "%pool"), ("ptr", c.at("%pool", POOL["epoch"])), ("i32", others))
    c.call("void", "@take_chunks", ("ptr", "%pool"))
    total = c.cast("trunc", "i64", "%n", "i32")
    spun = c.var("i32", 0)
    with c.loop() as loop:
        done = c.atomic_load("i32", "%pool", POOL["done"], "seq_cst")
        loop.leave_if(c.op("icmp eq", "i32", done, total))
        c.line(spin)
        count = c.op("add", "i32", spun.get(), 1)
        spun.set(count)
        loop.again_if(c.op("icmp slt", "i32", count, c.load("i32", "%pool", POOL["spins"])))
        c.atomic_store("i32", 1, "%pool", POOL["waiting"], "seq_cst")
        now = c.atomic_load("i32", "%pool", POOL["done"], "seq_cst")
        with c.if_(c.op("icmp ne", "i32", now, total)):
            c.call("void", "@sleep_on", ("ptr", "%pool"), ("ptr", c.at("%pool", POOL["done"])), ("i32", now))
        c.atomic_store("i32", 0, "%pool", POOL["waiting"], "seq_cst")
    c.ret(c.atomic_load("i32", "%pool", POOL["status"], "acquire"))
    return c.text()


def _locks() -> str:
    """One launcher at a time owns the pool; another that comes meanwhile works alone instead of waiting."""
    lock = Code("try_lock", "i1", [("ptr", "pool")])
    lock.ret(lock.op("icmp eq", "i32", lock.atomic("xchg", "i32", 1, "%pool", POOL["lock"], "acquire"), 0))
    unlock = Code("unlock", "void", [("ptr", "pool")])
    unlock.atomic_store("i32", 0, "%pool", POOL["lock"], "release")
    return lock.text() + unlock.text()


def _set_workers() -> str:
    """``@treadle_set_workers(pool, limit, quit)``: how many may work from now on, and whether all shall end."""
    c = Code("treadle_set_workers", "void", [("ptr", "pool"), ("i32", "limit"), ("i32", "quit")])
    c.atomic_store("i32", "%quit", "%pool", POOL["quit"], "seq_cst")
    c.atomic_store("i32", "%limit", "%pool", POOL["limit"], "seq_cst")
    c.atomic("add", "i32", 1, "%pool", POOL["epoch"])
    for word in ("epoch", "limit"):
        c.call("void", "@wake", ("ptr", "%pool"), ("ptr", c.at("%pool", POOL[word])), ("i32", 0x7FFFFFFF))
    return c.text()
