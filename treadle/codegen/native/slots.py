"""Slots: private memory with 16 places for every scalar of a target, one for each thread index modulo 16.

Where a gang adds to one element, round after round of a loop, its lanes find their slots side by side; and wherever
else a thread adds, no other of its gang meets it. A slot gets what threads add in thread order, so that neither gangs
nor workers show. In the end the slots of the chunks are added up in chunk order, those of a scalar folded by halves
(i and i + 8, 4, 2, 1), and the sum is added to the target.

They take 16 times the target's memory for each of K chunks, K a power of two of at most 16, so they are used where
threads make many updates: the kernel says how many a thread is assumed to make. Elsewhere copies are used, as ever.
"""

from __future__ import annotations

from ...types.records import ATOMIC, SLOTS
from .job import JOB, item_at, items_of, job_field, kind_is, round64
from .text import Code

MAX_CHUNKS = 16
MAX_BYTES = 1 << 26
# Slots an update, at most. To fill and merge 16 takes less time than to hold an update and apply it; several chunks are
# worth it where it is little beside the updates themselves.
SLOTS_AN_UPDATE, SHARED_SLOTS = 16, 8
RANGE = 1024  # scalars put together at a time by one worker


def slots() -> str:
    """LLVM text of ``@plan_slots``, ``@fill_slots`` and ``@merge_slots``."""
    return _plan() + _fill() + _range() + _merge()


def _slotted(c: Code) -> str:
    return c.op("icmp ne", "i64", job_field(c, "slotted"), 0)


def replaced(c: Code, item: str) -> str:
    """Whether slots take the place of this copy."""
    return c.op("and", "i1", _slotted(c), c.op("icmp ne", "i64", c.load("i64", item, ATOMIC["rounds"]), 0))


def reserved(c: Code, nbytes: str) -> str:
    """Bytes that the slots of a target of ``nbytes`` take in each chunk."""
    return c.select(_slotted(c), "i64", round64(c, c.op("mul", "i64", nbytes, SLOTS)), 0)


def _plan() -> str:
    """``@plan_slots(job)``: decide whether slots are used, and return K; the answer depends on sizes alone."""
    c = Code("plan_slots", "i64", [("ptr", "job")], "internal")
    args, (count, items) = job_field(c, "args", "ptr"), items_of(c, job_field(c, "program", "ptr"))
    c.store("i64", 0, "%job", JOB["slotted"])
    # Bytes of a target's slots; and how many there are, over the rounds in which a thread updates them: of the largest
    # target, so that a kernel that carries tangents beside its values decides as the kernel itself.
    most, threads, low = c.var("i64", 0), c.var("i64", 0), c.var("i64", 0)
    with c.for_(count) as j:
        item = item_at(c, items, j)
        with c.if_(kind_is(c, item, "slots")):
            nbytes = c.call("i64", "@view_span", ("ptr", item), ("ptr", args), ("ptr", low.slot))
            data = c.load("ptr", args, c.load("i64", item, ATOMIC["data"]))
            with c.if_(c.op("icmp eq", "ptr", data, "null")):
                c.ret(1)
            slots = c.op("sdiv", "i64", c.op("mul", "i64", nbytes, SLOTS), c.load("i64", item, ATOMIC["scalar_size"]))
            per_round = c.op("sdiv", "i64", slots, c.load("i64", item, ATOMIC["rounds"]))
            for var, value in ((threads, per_round), (most, round64(c, c.op("mul", "i64", nbytes, SLOTS)))):
                var.set(c.select(c.op("icmp sgt", "i64", value, var.get()), "i64", value, var.get()))
    with c.if_(c.op("icmp eq", "i64", most.get(), 0)):
        c.ret(1)
    few = c.op("icmp sle", "i64", threads.get(), c.op("mul", "i64", job_field(c, "size"), SLOTS_AN_UPDATE))
    with c.if_(c.op("and", "i1", few, c.op("icmp sle", "i64", most.get(), MAX_BYTES))):
        c.store("i64", 1, "%job", JOB["slotted"])
    k, updates = c.var("i64", 1), c.op("mul", "i64", job_field(c, "size"), SHARED_SLOTS)
    with c.loop() as loop:
        twice = c.op("mul", "i64", k.get(), 2)
        loop.leave_if(c.op("icmp sgt", "i64", twice, MAX_CHUNKS))
        loop.leave_if(c.op("icmp sgt", "i64", c.op("mul", "i64", twice, threads.get()), updates))
        loop.leave_if(c.op("icmp sgt", "i64", c.op("mul", "i64", twice, most.get()), MAX_BYTES))
        k.set(twice)
    c.ret(k.get())
    return c.text()


def prepare(c: Code, item: str, here: str, nbytes: str, low: str, pointer: str) -> None:
    """Fill the slots at ``here`` and leave at ``pointer`` where those of the target's data pointer would be; null where
    there are none."""
    c.store("ptr", "null", pointer)
    with c.if_(_slotted(c)):
        size, value = c.load("i64", item, ATOMIC["scalar_size"]), c.load("i64", item, ATOMIC["identity"])
        c.call("void", "@fill_slots", ("ptr", here), ("i64", c.op("mul", "i64", nbytes, SLOTS)), ("i64", size),
               ("i64", value))  # fmt: skip
        c.store("ptr", c.at(here, c.op("mul", "i64", low, -SLOTS)), pointer)


def _fill() -> str:
    """``@fill_slots(at, bytes, size, value)``: one scalar's slots by hand, then pieces of what is filled already."""
    c = Code("fill_slots", "void", [("ptr", "at"), ("i64", "bytes"), ("i64", "size"), ("i64", "value")], "internal")
    first, most = c.op("mul", "i64", "%size", SLOTS), 1 << 14
    c.call("void", "@fill", ("ptr", "%at"), ("i64", first), ("i64", "%size"), ("i64", "%value"))
    done = c.var("i64", first)
    with c.loop() as loop:
        left = c.op("sub", "i64", "%bytes", done.get())
        loop.leave_if(c.op("icmp sle", "i64", left, 0))
        piece = c.select(c.op("icmp slt", "i64", done.get(), most), "i64", done.get(), most)
        piece = c.select(c.op("icmp slt", "i64", left, piece), "i64", left, piece)
        into = c.at("%at", done.get())
        c.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {into}, ptr %at, i64 {piece}, i1 false)")
        done.set(c.op("add", "i64", done.get(), piece))
    return c.text()


def _range() -> str:
    """``@slots_range(job, r)``: the slots of range r of a target, all chunks in order, then folded if its scalars lie
    side by side. A pool task; its job has ``entry`` the merge function, ``program`` the one that folds, ``args`` the
    target or null, ``launch`` the slots of chunk 0, ``chunk`` the scalar's size, ``size`` the number of scalars,
    ``copies`` the number of chunks."""
    c = Code("slots_range", "i32", [("ptr", "job"), ("i64", "r")], "internal")
    size, begin = job_field(c, "chunk"), c.op("mul", "i64", "%r", RANGE)
    left = c.op("sub", "i64", job_field(c, "size"), begin)
    count = c.select(c.op("icmp slt", "i64", left, RANGE), "i64", left, RANGE)
    offset = c.op("mul", "i64", begin, size)
    first, target = c.at(job_field(c, "launch", "ptr"), c.op("mul", "i64", offset, SLOTS)), job_field(c, "args", "ptr")
    many = c.op("mul", "i64", count, SLOTS)
    with c.for_(job_field(c, "copies"), 1) as i:
        source = c.at(first, c.op("mul", "i64", i, job_field(c, "stride")))
        c.call("void", job_field(c, "entry", "ptr"), ("ptr", first), ("ptr", source), ("i64", many))
    with c.if_(c.op("icmp ne", "ptr", target, "null")):
        fold = job_field(c, "program", "ptr")
        c.call("void", fold, ("ptr", c.at(target, offset)), ("ptr", first), ("i64", count))
    c.ret(0)
    return c.text()


def _merge() -> str:
    """``@merge_slots(job, pool, held, n, item, here, nbytes, low, dense)``: the slots of one item; ``here`` are those
    of chunk 0, ``dense`` says whether the target has no gaps."""
    c = Code("merge_slots", "void", [
        ("ptr", "job"), ("ptr", "pool"), ("i1", "held"), ("i64", "n"), ("ptr", "item"), ("ptr", "here"),
        ("i64", "nbytes"), ("i64", "low"), ("i1", "dense"),
    ], "internal")  # fmt: skip
    args, inner, size = job_field(c, "args", "ptr"), c.stack(JOB.size), c.load("i64", "%item", ATOMIC["scalar_size"])
    data, scalars = c.load("ptr", args, c.load("i64", "%item", ATOMIC["data"])), c.op("sdiv", "i64", "%nbytes", size)
    fold = c.load("ptr", "%item", ATOMIC["fold"])
    for name, t, value in (
        ("entry", "ptr", c.load("ptr", "%item", ATOMIC["merge"])), ("program", "ptr", fold), ("launch", "ptr", "%here"),
        ("args", "ptr", c.select("%dense", "ptr", c.at(data, "%low"), "null")), ("chunk", "i64", size),
        ("size", "i64", scalars), ("copies", "i64", "%n"), ("stride", "i64", job_field(c, "stride")),
    ):  # fmt: skip
        c.store(t, value, inner, JOB[name])
    ranges = c.op("sdiv", "i64", c.op("add", "i64", scalars, RANGE - 1), RANGE)
    share = c.op("and", "i1", "%held", c.op("icmp sgt", "i64", ranges, 1))  # ranges are independent of each other
    with c.if_(share):
        c.call("i32", "@run_tasks", ("ptr", "%pool"), ("ptr", "@slots_range"), ("ptr", inner), ("i64", ranges))
    with c.if_(c.op("xor", "i1", share, "true")), c.for_(ranges) as r:
        c.call("i32", "@slots_range", ("ptr", inner), ("i64", r))
    with c.if_(c.op("xor", "i1", "%dense", "true")):
        shifted = c.at("%here", c.op("mul", "i64", "%low", -SLOTS))
        c.call("void", "@merge_strided", ("ptr", "%item"), ("ptr", args), ("ptr", shifted), ("ptr", fold),
               ("i64", SLOTS))  # fmt: skip
    return c.text()
