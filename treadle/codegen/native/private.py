"""Private memory of kernels with atomics: laid out, filled, and merged in an order that only sizes decide.

Each chunk has one area: a pointer an item (see ``meta["atomics"]``), then the items. A *sum* is the address it belongs
to and 64 partial sums by thread index modulo 64. A *copy* is a copy of the target's bytes. Copies cost memory and a
merge, so there are only K of them, a power of two of at most 16: as many as leave each chunk work worth a worker, more
than all workers need to merge the copies, and the launch more than all copies cost. The work of a thread is guessed by
the compiler, alike for all gang widths. The first chunk needs no copy, it updates the target itself; with K = 1 all
chunks do, in thread order.

*Counters* are copies too, also for the first chunk. A counting pass adds up in them what each chunk will add; then,
chunk after chunk, the sum so far takes the place of what a chunk added, and the target gets the last sum. With several
rounds a later pass, and the real run, draw from a second copy, so that the first stays what it is. Launches too small,
too few workers or K = 1: counters are used in place, in thread order; chunks are the same then.

*Slots* take the place of a copy where threads make many updates: see ``slots.py``.
"""

from __future__ import annotations

from ...types.records import ATOMIC, ENV, PROGRAM, SUMS, SUMS_AT
from . import slots
from .job import JOB, item_at, items_of, job_field, kind_is, round64, view_parts
from .text import Code, Var

SUM_BYTES = SUMS_AT + 8 * SUMS
MAX_COPIES = 16
MAX_COUNTED = 64  # where all copies are of counters: nothing is rounded, and what is merged is small
# Picoseconds: of a launch that is cut at all, of a chunk, and of a scalar of a copy: to fill and to merge what lies in
# the cache of another core, or in none.
LAUNCH_WORK, CHUNK_WORK, SCALAR_WORK = 20_000_000, 4_000_000, 2000
MAX_BYTES = 1 << 28
RANGE = 16384  # scalars merged at a time by one worker
FILLED = 64  # bytes that are filled at once


def private() -> str:
    """LLVM text of ``@prepare_private``, ``@plan_private``, ``@private_memory``, ``@merge_private``,
    ``@restore_counters`` and ``@lie_apart``."""
    return (
        view_span()
        + _fill()
        + _prepare()
        + _plan()
        + _memory()
        + _merge_sum()
        + _merge_range()
        + _merge_strided()
        + slots.slots()
        + _merge()
        + _restore()
        + _apart()
    )


def _reserved(c: Code, nbytes: str) -> str:
    """Bytes that the counters of a chunk take: one copy, or two where there are several rounds."""
    more = c.op("icmp sgt", "i64", job_field(c, "rounds"), 1)
    return c.op("shl", "i64", round64(c, nbytes), c.cast("zext", "i1", more, "i64"))


def view_span() -> str:
    """``@view_span(item, args, low)``: bytes from the first to the last byte of a view; ``*low`` (at most 0) is where
    they begin, from the data pointer."""
    c = Code("view_span", "i64", [("ptr", "item"), ("ptr", "args"), ("ptr", "lowest")], "internal")
    view = c.at("%args", c.load("i64", "%item", ATOMIC["view"]))
    shape, strides, component = view_parts(c, "%item", view)
    elements, size = c.load("i64", "%item", ATOMIC["elements"]), c.load("i64", "%item", ATOMIC["scalar_size"])
    planar = c.op("icmp ne", "i64", c.load("i64", "%item", ATOMIC["planar"]), 0)
    step = c.select(planar, "i64", component, size)
    reach = c.op("mul", "i64", step, c.op("sub", "i64", elements, 1))
    low, high = c.var("i64", 0), c.var("i64", c.op("add", "i64", reach, size))
    with c.for_(c.load("i64", "%item", ATOMIC["ndim"])) as axis:
        at = c.op("mul", "i64", axis, 8)
        extent, stride = c.load("i64", shape, at), c.load("i64", strides, at)
        with c.if_(c.op("icmp sle", "i64", extent, 0)):
            c.store("i64", 0, "%lowest")
            c.ret(0)
        far = c.op("mul", "i64", c.op("sub", "i64", extent, 1), stride)
        back = c.op("icmp slt", "i64", far, 0)
        low.set(c.op("add", "i64", low.get(), c.select(back, "i64", far, 0)))
        high.set(c.op("add", "i64", high.get(), c.select(back, "i64", 0, far)))
    c.store("i64", low.get(), "%lowest")
    c.ret(c.op("sub", "i64", high.get(), low.get()))
    return c.text()


def view_folds() -> str:
    """``@view_folds(item, args)``: whether elements of a view may lie over each other: a stride is smaller than what
    all dimensions with smaller ones reach over."""
    c = Code("view_folds", "i1", [("ptr", "item"), ("ptr", "args")], "internal")
    shape, strides, _ = view_parts(c, "%item", c.at("%args", c.load("i64", "%item", ATOMIC["view"])))
    ndim, scalar_size = c.load("i64", "%item", ATOMIC["ndim"]), c.load("i64", "%item", ATOMIC["scalar_size"])
    planar = c.op("icmp ne", "i64", c.load("i64", "%item", ATOMIC["planar"]), 0)
    whole = c.op("mul", "i64", scalar_size, c.load("i64", "%item", ATOMIC["elements"]))
    size, reach = c.select(planar, "i64", scalar_size, whole), c.var("i64", 0)

    def step(axis: str) -> tuple[str, str]:
        """Steps along an axis, and bytes of each."""
        at = c.op("mul", "i64", axis, 8)
        stride = c.load("i64", strides, at)
        back = c.op("icmp slt", "i64", stride, 0)
        nbytes = c.select(back, "i64", c.op("sub", "i64", 0, stride), stride)
        return c.op("sub", "i64", c.load("i64", shape, at), 1), nbytes

    with c.for_(ndim) as k:
        steps, nbytes = step(k)
        with c.if_(c.op("icmp sgt", "i64", steps, 0)):
            reach.set(size)
            with c.for_(ndim) as j:
                others, other = step(j)
                within = c.op("icmp sle", "i64", other, nbytes)
                counts = c.op("and", "i1", within, c.op("icmp ne", "i64", j, k))
                with c.if_(c.op("and", "i1", counts, c.op("icmp sgt", "i64", others, 0))):
                    reach.set(c.op("add", "i64", reach.get(), c.op("mul", "i64", other, others)))
            with c.if_(c.op("icmp slt", "i64", nbytes, reach.get())):
                c.ret("true")
    c.ret("false")
    return c.text()


def _fill() -> str:
    """``@fill(at, bytes, size, value)``: repeat the ``size`` low bytes of ``value``."""
    c = Code("fill", "void", [("ptr", "at"), ("i64", "bytes"), ("i64", "size"), ("i64", "value")], "internal")
    with c.if_(c.op("icmp eq", "i64", "%value", 0)):
        c.line("call void @llvm.memset.p0.i64(ptr %at, i8 0, i64 %bytes, i1 false)")
        c.ret()
    # A line at a time: the system's copies of what is there already would wait for the stores that they follow.
    lines = c.op("and", "i64", "%bytes", -FILLED)
    for size in (8, 4, 2, 1):
        with c.if_(c.op("icmp eq", "i64", "%size", size)):
            word, many = f"i{8 * size}", f"<{FILLED // size} x i{8 * size}>"
            value = "%value" if size == 8 else c.cast("trunc", "i64", "%value", word)
            first = c.value(f"insertelement {many} poison, {word} {value}, i64 0")
            line = c.value(f"shufflevector {many} {first}, {many} poison, {many.replace(word, 'i32')} zeroinitializer")
            with c.for_(lines, 0, FILLED) as i:
                c.line(f"store {many} {line}, ptr {c.at('%at', i)}, align {size}")
            with c.for_("%bytes", lines, size) as i:
                c.store(word, value, "%at", i)
    return c.text()


def _prepare() -> str:
    """``@prepare_private(job, i)``: fill the area of chunk i with identities; its address, or null if there is none."""
    c = Code("prepare_private", "ptr", [("ptr", "job"), ("i64", "i")], "internal")
    memory = job_field(c, "private", "ptr")
    with c.if_(c.op("icmp eq", "ptr", memory, "null")):
        c.ret("null")
    program, args = job_field(c, "program", "ptr"), job_field(c, "args", "ptr")
    count, items = items_of(c, program)
    area = c.at(memory, c.op("mul", "i64", "%i", job_field(c, "stride")))
    place = c.var("ptr", c.at(area, round64(c, c.op("mul", "i64", count, 8))))
    # Chunk 0 updates the target itself: the others have copies, so nobody else touches it meanwhile.
    copied = c.op("icmp sgt", "i64", job_field(c, "copies"), 1)
    own = c.op("and", "i1", copied, c.op("icmp ne", "i64", "%i", 0))
    counted, real = _is_counted(c), c.op("icmp eq", "i64", job_field(c, "pass"), job_field(c, "rounds"))
    fills = c.op("and", "i1", own, real)
    low = c.var("i64", 0)
    with c.for_(count) as j:
        item, pointer = item_at(c, items, j), c.op("mul", "i64", j, 8)
        size, value = c.load("i64", item, ATOMIC["scalar_size"]), c.load("i64", item, ATOMIC["identity"])
        here = place.get()
        with c.if_(kind_is(c, item, "sum")):
            c.store("ptr", "null", here)
            sums, nbytes = c.at(here, SUMS_AT), c.op("mul", "i64", size, SUMS)
            c.call("void", "@fill", ("ptr", sums), ("i64", nbytes), ("i64", size), ("i64", value))
            c.store("ptr", here, area, pointer)
            place.set(c.at(here, SUM_BYTES))
        with c.if_(c.op("xor", "i1", kind_is(c, item, "sum"), "true")):
            nbytes = c.call("i64", "@view_span", ("ptr", item), ("ptr", args), ("ptr", low.slot))
            target = c.load("ptr", args, c.load("i64", item, ATOMIC["data"]))
            with c.if_(kind_is(c, item, "copy")):
                shifted = c.at(here, c.op("sub", "i64", 0, low.get()))
                kept = c.op("xor", "i1", slots.replaced(c, item), "true")
                c.store("ptr", c.select(c.op("and", "i1", own, kept), "ptr", shifted, target), area, pointer)
                with c.if_(c.op("and", "i1", fills, kept)):
                    c.call("void", "@fill", ("ptr", here), ("i64", nbytes), ("i64", size), ("i64", value))
                with c.if_(c.op("and", "i1", copied, kept)):
                    place.set(c.at(here, round64(c, nbytes)))
            with c.if_(kind_is(c, item, "slots")):
                slots.prepare(c, item, here, nbytes, low.get(), c.at(area, pointer))
                place.set(c.at(here, slots.reserved(c, nbytes)))
            with c.if_(kind_is(c, item, "count")):
                c.store("ptr", target, area, pointer)
                with c.if_(counted):
                    used = _counters(c, item, here, nbytes)
                    c.store("ptr", c.at(used, c.op("sub", "i64", 0, low.get())), area, pointer)
                    place.set(c.at(here, _reserved(c, nbytes)))
    c.ret(area)
    return c.text()


def _is_counted(c: Code) -> str:
    return c.op("icmp ne", "i64", job_field(c, "counted"), 0)


def _counters(c: Code, item: str, here: str, nbytes: str) -> str:
    """Prepare the counters of a chunk for this pass: zero in their own round, what they start from in later ones."""
    number, now = c.load("i64", item, ATOMIC["round"]), job_field(c, "pass")
    used = c.var("ptr", here)
    with c.if_(c.op("icmp eq", "i64", number, now)):
        c.line(f"call void @llvm.memset.p0.i64(ptr {here}, i8 0, i64 {nbytes}, i1 false)")
    several = c.op("icmp sgt", "i64", job_field(c, "rounds"), 1)
    with c.if_(c.op("and", "i1", several, c.op("icmp slt", "i64", number, now))):
        second = c.at(here, round64(c, nbytes))
        c.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {second}, ptr {here}, i64 {nbytes}, i1 false)")
        used.set(second)
    return used.get()


def _plan() -> str:
    """``@plan_private(job)``: decide K, set the job's chunk, stride and copies, and return the bytes of all areas. With
    K = 1, and where counters of several rounds have gaps between them, nothing is counted."""
    c = Code("plan_private", "i64", [("ptr", "job")], "internal")
    program, args, size = job_field(c, "program", "ptr"), job_field(c, "args", "ptr"), job_field(c, "size")
    count, items = items_of(c, program)
    most = c.call("i64", "@plan_slots", ("ptr", "%job"))
    slotted = c.op("icmp ne", "i64", job_field(c, "slotted"), 0)
    sums = c.var("i64", round64(c, c.op("mul", "i64", count, 8)))
    copies, counters, scalars, low = c.var("i64", 0), c.var("i64", 0), c.var("i64", 0), c.var("i64", 0)
    any_copy, any_count = c.var("i1", "false"), c.var("i1", "false")
    with c.for_(count) as j:
        item = item_at(c, items, j)
        summed = kind_is(c, item, "sum")
        with c.if_(summed):
            sums.set(c.op("add", "i64", sums.get(), SUM_BYTES))
        with c.if_(c.op("xor", "i1", summed, "true")):
            nbytes = c.call("i64", "@view_span", ("ptr", item), ("ptr", args), ("ptr", low.slot))
            with c.if_(kind_is(c, item, "slots")):
                sums.set(c.op("add", "i64", sums.get(), slots.reserved(c, nbytes)))
            kept = c.op("xor", "i1", slots.replaced(c, item), "true")
            more = c.op("sdiv", "i64", nbytes, c.load("i64", item, ATOMIC["scalar_size"]))
            with c.if_(c.op("and", "i1", kind_is(c, item, "copy"), kept)):
                scalars.set(_larger(c, scalars.get(), more))
                copies.set(c.op("add", "i64", copies.get(), round64(c, nbytes)))
                any_copy.set("true")
            with c.if_(kind_is(c, item, "count")):
                scalars.set(_larger(c, scalars.get(), more))
                counters.set(c.op("add", "i64", counters.get(), _reserved(c, nbytes)))
                any_count.set("true")
                rounds = c.op("icmp sgt", "i64", job_field(c, "rounds"), 1)
                with c.if_(c.op("and", "i1", rounds, c.op("xor", "i1", _dense(c, item, args, nbytes), "true"))):
                    c.store("i64", 0, "%job", JOB["counted"])
    k = c.var("i64", most)
    with c.if_(c.op("or", "i1", any_copy.get(), any_count.get())):
        copied = _how_many(c, size, scalars, c.op("add", "i64", copies.get(), counters.get()), any_copy.get())
        fewer = c.op("and", "i1", slotted, c.op("icmp slt", "i64", most, copied))
        k.set(c.select(fewer, "i64", most, copied))
        split = c.op("icmp sgt", "i64", k.get(), 1)
        with c.if_(split):
            sums.set(c.op("add", "i64", sums.get(), copies.get()))
            with c.if_(_is_counted(c)):
                sums.set(c.op("add", "i64", sums.get(), counters.get()))
        with c.if_(c.op("xor", "i1", split, "true")):
            c.store("i64", 0, "%job", JOB["counted"])
        c.store("i64", c.select(split, "i64", k.get(), 0), "%job", JOB["copies"])
    with c.if_(c.op("or", "i1", slotted, c.op("icmp sgt", "i64", k.get(), 1))):
        even = c.op("sdiv", "i64", c.op("add", "i64", size, c.op("sub", "i64", k.get(), 1)), k.get())
        c.store("i64", round64(c, even), "%job", JOB["chunk"])
    c.store("i64", sums.get(), "%job", JOB["stride"])
    chunk = job_field(c, "chunk")
    n = c.op("sdiv", "i64", c.op("add", "i64", size, c.op("sub", "i64", chunk, 1)), chunk)
    c.ret(c.op("mul", "i64", n, sums.get()))
    return c.text()


def _larger(c: Code, a: str, b: str) -> str:
    return c.select(c.op("icmp sgt", "i64", a, b), "i64", a, b)


def _how_many(c: Code, size: str, scalars: Var, nbytes: str, any_copy: str) -> str:
    """K, for ``nbytes`` a chunk, of which the largest target has ``scalars``: of the largest alone, so that a kernel
    that carries tangents beside its values decides as the kernel itself."""
    work = c.op("mul", "i64", size, c.load("i64", job_field(c, "program", "ptr"), PROGRAM["work"]))
    most = c.select(any_copy, "i64", MAX_COPIES, MAX_COUNTED)
    small = c.op("icmp slt", "i64", scalars.get(), RANGE)
    last = c.select(small, "i64", scalars.get(), RANGE)  # of a range, which one worker merges
    k = c.var("i64", 1)
    with c.loop() as loop:
        loop.leave_if(c.op("icmp slt", "i64", work, LAUNCH_WORK))
        twice = c.op("mul", "i64", k.get(), 2)
        loop.leave_if(c.op("icmp sgt", "i64", twice, most))
        loop.leave_if(c.op("icmp sgt", "i64", c.op("mul", "i64", twice, CHUNK_WORK), work))
        merged = _larger(c, c.op("mul", "i64", twice, last), scalars.get())
        cost = c.op("mul", "i64", c.op("mul", "i64", merged, SCALAR_WORK), twice)
        loop.leave_if(c.op("icmp sgt", "i64", cost, work))
        loop.leave_if(c.op("icmp sgt", "i64", c.op("mul", "i64", twice, nbytes), MAX_BYTES))
        k.set(twice)
    return k.get()


def _dense(c: Code, item: str, args: str, nbytes: str) -> str:
    """Whether a view has no gaps in its ``nbytes``."""
    scalars = _scalars(c, item, c.at(args, c.load("i64", item, ATOMIC["view"])))
    size = c.load("i64", item, ATOMIC["scalar_size"])
    return c.op("icmp eq", "i64", c.op("mul", "i64", scalars, size), nbytes)


def _memory() -> str:
    """``@private_memory(env, bytes, stack, held)``: the stack if 2,048 bytes are enough, the pool's scratch memory if
    the caller holds the pool, else new memory that the caller frees."""
    params = [("ptr", "env"), ("i64", "bytes"), ("ptr", "stack"), ("i1", "held")]
    c = Code("private_memory", "ptr", params, "internal")
    with c.if_(c.op("icmp sle", "i64", "%bytes", 2048)):
        c.ret("%stack")
    with c.if_(c.op("xor", "i1", "%held", "true")):
        c.ret(c.call("ptr", c.load("ptr", "%env", ENV["malloc"]), ("i64", "%bytes")))
    with c.if_(c.op("icmp slt", "i64", c.load("i64", "%env", ENV["scratch_size"]), "%bytes")):
        c.call("void", c.load("ptr", "%env", ENV["free"]), ("ptr", c.load("ptr", "%env", ENV["scratch"])))
        made = c.call("ptr", c.load("ptr", "%env", ENV["malloc"]), ("i64", "%bytes"))
        c.store("ptr", made, "%env", ENV["scratch"])
        c.store("i64", "%bytes", "%env", ENV["scratch_size"])
    c.ret(c.load("ptr", "%env", ENV["scratch"]))
    return c.text()


def _merge_call(c: Code, merge: str, into: str, source: str, count: str | int) -> None:
    c.call("void", merge, ("ptr", into), ("ptr", source), ("i64", count))


def _merge_sum() -> str:
    """``@merge_sum(item, first, stride, n)``: chunk after chunk into the sums of chunk 0, those by halves into one,
    that into the target."""
    params = [("ptr", "item"), ("ptr", "first"), ("i64", "stride"), ("i64", "n")]
    c = Code("merge_sum", "void", params, "internal")
    merge, size = c.load("ptr", "%item", ATOMIC["merge"]), c.load("i64", "%item", ATOMIC["scalar_size"])
    sums = c.at("%first", SUMS_AT)
    target = c.var("ptr", "null")
    with c.for_("%n") as i:
        area = c.at("%first", c.op("mul", "i64", i, "%stride"))
        found = c.load("ptr", area)
        with c.if_(c.op("icmp ne", "ptr", found, "null")):
            target.set(found)
            with c.if_(c.op("icmp ne", "i64", i, 0)):
                _merge_call(c, merge, sums, c.at(area, SUMS_AT), SUMS)
    with c.if_(c.op("icmp eq", "ptr", target.get(), "null")):
        c.ret()
    half = SUMS // 2
    while half:
        _merge_call(c, merge, sums, c.at(sums, c.op("mul", "i64", size, half)), half)
        half //= 2
    _merge_call(c, merge, target.get(), sums, 1)
    return c.text()


def _merge_range() -> str:
    """``@merge_range(job, r)``: scalars of range r of a dense target, all copies in chunk order. A pool task; its job
    has ``entry`` the merge function, ``args`` the target, ``launch`` the copy of chunk 0, ``chunk`` the scalar's size,
    ``size`` the number of scalars, ``copies`` the number of chunks, ``pass`` the first of them to merge."""
    c = Code("merge_range", "i32", [("ptr", "job"), ("i64", "r")], "internal")
    size, total = job_field(c, "chunk"), job_field(c, "size")
    begin = c.op("mul", "i64", "%r", RANGE)
    left = c.op("sub", "i64", total, begin)
    count = c.select(c.op("icmp slt", "i64", left, RANGE), "i64", left, RANGE)
    offset = c.op("mul", "i64", begin, size)
    into, first = c.at(job_field(c, "args", "ptr"), offset), c.at(job_field(c, "launch", "ptr"), offset)
    with c.for_(job_field(c, "copies"), job_field(c, "pass")) as i:
        source = c.at(first, c.op("mul", "i64", i, job_field(c, "stride")))
        _merge_call(c, job_field(c, "entry", "ptr"), into, source, count)
    c.ret(0)
    return c.text()


def _merge_strided() -> str:
    """``@merge_strided(item, args, copy, merge, times)``: element by element where a target has gaps. ``copy`` is
    shifted so that it takes the place of the data pointer; it is ``times`` as long as the target."""
    params = [("ptr", "item"), ("ptr", "args"), ("ptr", "copy"), ("ptr", "merge"), ("i64", "times")]
    c = Code("merge_strided", "void", params, "internal")
    shape, strides, component = view_parts(c, "%item", c.at("%args", c.load("i64", "%item", ATOMIC["view"])))
    ndim, elements = c.load("i64", "%item", ATOMIC["ndim"]), c.load("i64", "%item", ATOMIC["elements"])
    data = c.load("ptr", "%args", c.load("i64", "%item", ATOMIC["data"]))
    total = c.var("i64", 1)
    with c.for_(ndim) as axis:
        total.set(c.op("mul", "i64", total.get(), c.load("i64", shape, c.op("mul", "i64", axis, 8))))
    planar = c.op("icmp ne", "i64", c.load("i64", "%item", ATOMIC["planar"]), 0)
    pieces, length = c.select(planar, "i64", elements, 1), c.select(planar, "i64", 1, elements)
    rest, offset = c.var("i64", 0), c.var("i64", 0)
    with c.for_(total.get()) as number:
        rest.set(number)
        offset.set(0)
        with c.for_(ndim) as back:  # the last axis runs fastest
            at = c.op("mul", "i64", c.op("sub", "i64", c.op("sub", "i64", ndim, 1), back), 8)
            extent = c.load("i64", shape, at)
            index = c.op("srem", "i64", rest.get(), extent)
            offset.set(c.op("add", "i64", offset.get(), c.op("mul", "i64", index, c.load("i64", strides, at))))
            rest.set(c.op("sdiv", "i64", rest.get(), extent))
        with c.for_(pieces) as piece:
            at = c.op("add", "i64", offset.get(), c.op("mul", "i64", piece, component))
            _merge_call(c, "%merge", c.at(data, at), c.at("%copy", c.op("mul", "i64", at, "%times")), length)
    return c.text()


def _merge() -> str:
    """``@merge_private(job, pool, held, n, round)``: put sums and copies together, item after item; or, if ``round`` is
    not negative, have the counters of that round start where earlier chunks end."""
    params = [("ptr", "job"), ("ptr", "pool"), ("i1", "held"), ("i64", "n"), ("i64", "round")]
    c = Code("merge_private", "void", params, "internal")
    program, args, memory = job_field(c, "program", "ptr"), job_field(c, "args", "ptr"), job_field(c, "private", "ptr")
    count, items = items_of(c, program)
    place = c.var("ptr", c.at(memory, round64(c, c.op("mul", "i64", count, 8))))
    copied = c.op("icmp sgt", "i64", job_field(c, "copies"), 1)
    counted, real = _is_counted(c), c.op("icmp slt", "i64", "%round", 0)
    low = c.var("i64", 0)
    with c.for_(count) as j:
        item, here = item_at(c, items, j), place.get()
        with c.if_(kind_is(c, item, "sum")):
            with c.if_(real):
                stride = job_field(c, "stride")
                c.call("void", "@merge_sum", ("ptr", item), ("ptr", here), ("i64", stride), ("i64", "%n"))
            place.set(c.at(here, SUM_BYTES))
        with c.if_(kind_is(c, item, "slots")):
            nbytes = c.call("i64", "@view_span", ("ptr", item), ("ptr", args), ("ptr", low.slot))
            with c.if_(c.op("icmp ne", "i64", job_field(c, "slotted"), 0)):
                given = _merge_args(item, here, nbytes, low.get(), 0)[:-1]
                c.call("void", "@merge_slots", *given, ("i1", _dense(c, item, args, nbytes)))
            place.set(c.at(here, slots.reserved(c, nbytes)))
        kept = c.op("xor", "i1", slots.replaced(c, item), "true")
        with c.if_(c.op("and", "i1", c.op("and", "i1", copied, kept), kind_is(c, item, "copy"))):
            nbytes = c.call("i64", "@view_span", ("ptr", item), ("ptr", args), ("ptr", low.slot))
            with c.if_(real):
                c.call("void", "@merge_copies", *_merge_args(item, here, nbytes, low.get(), 1))
            place.set(c.at(here, round64(c, nbytes)))
        with c.if_(c.op("and", "i1", counted, kind_is(c, item, "count"))):
            nbytes = c.call("i64", "@view_span", ("ptr", item), ("ptr", args), ("ptr", low.slot))
            with c.if_(c.op("icmp eq", "i64", c.load("i64", item, ATOMIC["round"]), "%round")):
                c.call("void", "@merge_copies", *_merge_args(item, here, nbytes, low.get(), 0))
            place.set(c.at(here, _reserved(c, nbytes)))
    return _merge_copies() + c.text()


_COPIES = [("ptr", "job"), ("ptr", "pool"), ("i1", "held"), ("i64", "n"), ("ptr", "item"), ("ptr", "here"),
           ("i64", "nbytes"), ("i64", "low"), ("i64", "first")]  # fmt: skip


def _merge_args(*values: str | int) -> list[tuple[str, str | int]]:
    given = ("%job", "%pool", "%held", "%n", *values)
    return [(t, value) for (t, _), value in zip(_COPIES, given, strict=True)]


def _merge_copies() -> str:
    """``@merge_copies``: the copies of one item, from chunk ``first`` on; ``here`` is that of chunk 0."""
    c = Code("merge_copies", "void", _COPIES, "internal")
    args, stride = job_field(c, "args", "ptr"), job_field(c, "stride")
    dense = _dense(c, "%item", args, "%nbytes")
    with c.if_(c.op("xor", "i1", dense, "true")):
        with c.for_("%n", "%first") as i:
            source = c.at("%here", c.op("mul", "i64", i, stride))
            shifted = c.at(source, c.op("sub", "i64", 0, "%low"))
            merge = c.load("ptr", "%item", ATOMIC["merge"])
            c.call("void", "@merge_strided", ("ptr", "%item"), ("ptr", args), ("ptr", shifted), ("ptr", merge),
                   ("i64", 1))  # fmt: skip
        c.ret()
    inner, size = c.stack(JOB.size), c.load("i64", "%item", ATOMIC["scalar_size"])
    scalars = c.op("sdiv", "i64", "%nbytes", size)
    data = c.load("ptr", args, c.load("i64", "%item", ATOMIC["data"]))
    for name, t, value in (
        ("entry", "ptr", c.load("ptr", "%item", ATOMIC["merge"])), ("launch", "ptr", "%here"),
        ("args", "ptr", c.at(data, "%low")), ("chunk", "i64", size), ("size", "i64", scalars),
        ("copies", "i64", "%n"), ("stride", "i64", stride), ("pass", "i64", "%first"),
    ):  # fmt: skip
        c.store(t, value, inner, JOB[name])
    ranges = c.op("sdiv", "i64", c.op("add", "i64", scalars, RANGE - 1), RANGE)
    # Ranges are independent of each other, so sharing them out changes no order of additions.
    some = c.op("and", "i1", c.op("icmp slt", "i64", ranges, 1 << 31), c.op("icmp sgt", "i64", ranges, 1))
    share = c.op("and", "i1", "%held", some)
    with c.if_(share):
        c.call("i32", "@run_tasks", ("ptr", "%pool"), ("ptr", "@merge_range"), ("ptr", inner), ("i64", ranges))
    with c.if_(c.op("xor", "i1", share, "true")), c.for_(ranges) as r:
        c.call("i32", "@merge_range", ("ptr", inner), ("i64", r))
    return c.text()


def _restore() -> str:
    """``@restore_counters(job)``: what the first chunk starts from is what the counters were before the launch."""
    c = Code("restore_counters", "void", [("ptr", "job")], "internal")
    program, args, memory = job_field(c, "program", "ptr"), job_field(c, "args", "ptr"), job_field(c, "private", "ptr")
    count, items = items_of(c, program)
    place = c.var("ptr", c.at(memory, round64(c, c.op("mul", "i64", count, 8))))
    low = c.var("i64", 0)
    with c.for_(count) as j:
        item, here = item_at(c, items, j), place.get()
        with c.if_(kind_is(c, item, "sum")):
            place.set(c.at(here, SUM_BYTES))
        with c.if_(c.op("xor", "i1", kind_is(c, item, "sum"), "true")):
            nbytes = c.call("i64", "@view_span", ("ptr", item), ("ptr", args), ("ptr", low.slot))
            with c.if_(kind_is(c, item, "copy")):
                place.set(c.at(here, round64(c, nbytes)))
            with c.if_(kind_is(c, item, "count")):
                with c.if_(c.op("icmp slt", "i64", c.load("i64", item, ATOMIC["round"]), job_field(c, "pass"))):
                    target = c.at(c.load("ptr", args, c.load("i64", item, ATOMIC["data"])), low.get())
                    c.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {here}, i64 {nbytes}, i1 false)")
                place.set(c.at(here, _reserved(c, nbytes)))
    return c.text()


def _apart() -> str:
    """``@lie_apart(program, args)``: whether the arrays of each pair at ``apart`` have no byte in common."""
    c = Code("lie_apart", "i1", [("ptr", "program"), ("ptr", "args")], "internal")
    rows, low = c.load("ptr", "%program", PROGRAM["apart"]), c.var("i64", 0)

    def bounds(row: str) -> tuple[str, str]:
        nbytes = c.call("i64", "@view_span", ("ptr", row), ("ptr", "%args"), ("ptr", low.slot))
        begin = c.op("add", "i64", c.load("i64", "%args", c.load("i64", row, ATOMIC["data"])), low.get())
        return begin, c.op("add", "i64", begin, nbytes)

    with c.for_(c.load("i64", "%program", PROGRAM["napart"])) as i:
        row = c.at(rows, c.op("mul", "i64", i, 2 * ATOMIC.size))
        (begin, end), (other, other_end) = bounds(row), bounds(c.at(row, ATOMIC.size))
        apart = c.op("or", "i1", c.op("icmp ule", "i64", end, other), c.op("icmp ule", "i64", other_end, begin))
        with c.if_(c.op("xor", "i1", apart, "true")):
            c.ret("false")
    c.ret("true")
    return c.text()


def _scalars(c: Code, item: str, view: str) -> str:
    """How many scalars the view has."""
    total = c.var("i64", c.load("i64", item, ATOMIC["elements"]))
    shape = c.at(view, 16)
    with c.for_(c.load("i64", item, ATOMIC["ndim"])) as axis:
        total.set(c.op("mul", "i64", total.get(), c.load("i64", shape, c.op("mul", "i64", axis, 8))))
    return total.get()
