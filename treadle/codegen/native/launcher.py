"""The native launcher: a function of Python's METH_FASTCALL kind, ``launch(dim, inputs, outputs)``.

It reads a kernel's list of programs (records of loaded code with their argument types), takes the first whose types are
exactly those of the arguments, packs them on the stack, and calls the driver. One launcher serves all signatures: what
to expect stands in the program's table of parameters, so a new signature costs no compile.

It answers None when the launch is done; NotImplemented, with nothing done, for whatever is unusual; a bytes object with
a fault report; or an exception where Ctrl-C ended the launch. The offsets inside Python's objects are those of CPython
with 64-bit pointers and one lock; the runtime checks them before it uses this code.
"""

from __future__ import annotations

from collections.abc import Callable

from ...types.records import (
    ARGS_BYTES,
    ATOMIC,
    BYTES,
    DESC,
    ENV,
    FAULT,
    FLOAT,
    ITEMS,
    LAUNCH,
    LAUNCHER,
    MAX_DIMS,
    MAX_EXTENT,
    NONE_TOO,
    OWN,
    PARAM,
    PARAM_KINDS,
    PROGRAM,
    READ_ONLY,
    READ_ONLY_TOO,
    REPORT,
    SIZE,
    STOPPED,
    TYPE,
    UPDATED_KINDS,
)
from .private import view_folds, view_span
from .text import Code

PARAMS = [("ptr", "self"), ("ptr", "args"), ("i64", "count")]


def launcher(name: str) -> str:
    """LLVM text of the launcher ``name``."""
    c = Code(name, "ptr", PARAMS)
    record = c.load("ptr", "%self", BYTES)
    env = c.load("ptr", record, LAUNCHER["env"])
    captures = c.op("icmp ne", "i64", c.load("i64", env, ENV["capturing"]), 0)  # see runtime/capture.py
    with c.if_(c.op("or", "i1", captures, c.op("icmp ne", "i64", "%count", 3))):
        _decline(c, env)
    dims = c.stack(8 * MAX_DIMS)
    rank, size = _grid(c, env, c.load("ptr", "%args"), dims)
    inputs, nin = _sequence(c, env, c.load("ptr", "%args", 8))
    outputs, nout = _sequence(c, env, c.load("ptr", "%args", 16))
    total = c.op("add", "i64", nin, nout)
    last = c.load("i64", c.at(dims, c.op("shl", "i64", c.op("sub", "i64", rank, 1), 3)))
    packed = c.stack(ARGS_BYTES)
    program = c.var("ptr", c.load("ptr", record, LAUNCHER["first"]))
    with c.loop() as programs:
        p = program.get()
        with c.if_(c.op("icmp eq", "ptr", p, "null")):
            _decline(c, env)
        program.set(c.load("ptr", p, PROGRAM["next"]))
        programs.again_if(c.op("icmp ne", "i64", total, c.load("i64", p, PROGRAM["nparams"])))
        wanted = c.load("i64", p, PROGRAM["rank"])
        other = c.op("and", "i1", c.op("icmp ne", "i64", wanted, 0), c.op("icmp ne", "i64", wanted, rank))
        programs.again_if(other)
        programs.again_if(c.op("icmp slt", "i64", last, c.load("i64", p, PROGRAM["last_min"])))
        programs.again_if(c.op("icmp sgt", "i64", last, c.load("i64", p, PROGRAM["last_max"])))
        beside = c.op("and", "i64", last, c.load("i64", p, PROGRAM["last_bits"]))
        programs.again_if(c.op("icmp ne", "i64", beside, 0))
        with c.for_(total) as i:
            second = c.op("icmp sge", "i64", i, nin)
            items = c.select(second, "ptr", outputs, inputs)
            at = c.select(second, "i64", c.op("sub", "i64", i, nin), i)
            thing = c.load("ptr", items, c.op("shl", "i64", at, 3))
            param = c.at(c.load("ptr", p, PROGRAM["params"]), c.op("mul", "i64", i, PARAM.size))
            ok = c.call("i1", "@pack_argument", ("ptr", env), ("ptr", param), ("ptr", thing), ("ptr", packed))
            programs.again_if(c.op("xor", "i1", ok, "true"))
        _check_own(c, env, p, packed, dims, size)
        _launch(c, env, _fitting(c, env, p, packed), packed, dims, rank, size)
    c.unreachable()
    return (
        "declare {i64, i1} @llvm.smul.with.overflow.i64(i64, i64)\ndeclare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
        + _pack_argument() + _integer() + view_span() + view_folds() + c.text()
    )  # fmt: skip


def _new_reference(c: Code, env: str, thing: str) -> str:
    """``thing`` with one more reference; by function, because constants are immortal in some versions only."""
    c.call("void", c.load("ptr", env, ENV["incref"]), ("ptr", thing))
    return thing


def _decline(c: Code, env: str) -> None:
    c.ret(_new_reference(c, env, c.load("ptr", env, ENV["not_implemented"])))


def _is(c: Code, env: str, thing: str, type_name: str) -> str:
    """Whether the type of ``thing`` is exactly the one that ``ENV`` names."""
    return c.op("icmp eq", "ptr", c.load("ptr", thing, TYPE), c.load("ptr", env, ENV[type_name]))


def _sequence(c: Code, env: str, thing: str) -> tuple[str, str]:
    """Address of the items of a list or tuple, and their number; declines anything else."""
    items = c.var("ptr", c.at(thing, ITEMS))
    a_list = _is(c, env, thing, "list_type")
    with c.if_(a_list):
        items.set(c.load("ptr", thing, ITEMS))
    neither = c.op("xor", "i1", c.op("or", "i1", a_list, _is(c, env, thing, "tuple_type")), "true")
    with c.if_(neither):
        _decline(c, env)
    return items.get(), c.load("i64", thing, SIZE)


def _grid(c: Code, env: str, dim: str, dims: str) -> tuple[str, str]:
    """Read ``dim``, an int or up to four, into ``dims``; the rank and the number of threads."""
    for axis in range(MAX_DIMS):
        c.store("i64", 1, dims, 8 * axis)
    rank, size = c.var("i64", 1), c.var("i64", 1)
    number = _is(c, env, dim, "long_type")
    with c.if_(number):
        extent = _extent(c, env, dim)
        c.store("i64", extent, dims)
        size.set(extent)
    with c.if_(c.op("xor", "i1", number, "true")):
        items, count = _sequence(c, env, dim)
        with c.if_(c.op("icmp ugt", "i64", c.op("sub", "i64", count, 1), MAX_DIMS - 1)):
            _decline(c, env)
        rank.set(count)
        with c.for_(count) as i:
            at = c.op("shl", "i64", i, 3)
            item = c.load("ptr", items, at)
            with c.if_(c.op("xor", "i1", _is(c, env, item, "long_type"), "true")):
                _decline(c, env)
            extent = _extent(c, env, item)
            c.store("i64", extent, dims, at)
            both = c.call("{i64, i1}", "@llvm.smul.with.overflow.i64", ("i64", size.get()), ("i64", extent))
            with c.if_(c.value(f"extractvalue {{i64, i1}} {both}, 1")):
                _decline(c, env)
            size.set(c.value(f"extractvalue {{i64, i1}} {both}, 0"))
    return rank.get(), size.get()


def _extent(c: Code, env: str, number: str) -> str:
    value = c.var("i64", 0)
    ok = c.call("i1", "@integer", ("ptr", env), ("ptr", number), ("ptr", value.slot))
    extent = value.get()
    good = c.op("and", "i1", ok, c.op("icmp ule", "i64", extent, MAX_EXTENT))
    with c.if_(c.op("xor", "i1", good, "true")):
        _decline(c, env)
    return extent


def _integer() -> str:
    """``@integer(env, number, out)``: the value of a Python int, if 64 bits hold it."""
    c = Code("integer", "i1", [("ptr", "env"), ("ptr", "number"), ("ptr", "out")], "internal")
    overflow = c.var("i32", 0)
    convert = c.load("ptr", "%env", ENV["as_long_long"])
    c.store("i64", c.call("i64", convert, ("ptr", "%number"), ("ptr", overflow.slot)), "%out")
    c.ret(c.op("icmp eq", "i32", overflow.get(), 0))
    return c.text()


def _pack_argument() -> str:
    """``@pack_argument(env, param, thing, packed)``: write one argument; false if it is not exactly of its type."""
    params = [("ptr", "env"), ("ptr", "param"), ("ptr", "thing"), ("ptr", "packed")]
    c = Code("pack_argument", "i1", params, "internal")
    kind = c.load("i64", "%param", PARAM["kind"])
    into = c.at("%packed", c.load("i64", "%param", PARAM["offset"]))
    other = c.load("ptr", "%param", PARAM["other"])
    with c.if_(c.op("icmp eq", "i64", kind, PARAM_KINDS["view"])):
        _pack_view(c, into)
    with c.if_(c.op("icmp eq", "i64", kind, PARAM_KINDS["composite"])):
        _pack_composite(c, into)
    with c.if_(c.op("icmp eq", "i64", kind, PARAM_KINDS["indexed"])):
        _pack_indexed(c)
    with c.if_(c.op("icmp eq", "i64", kind, PARAM_KINDS["struct"])):
        _pack_struct(c)
    with c.if_(c.op("icmp eq", "ptr", c.load("ptr", "%thing", TYPE), other)):  # a number of exactly this type
        plain = c.load("ptr", "%thing", c.load("i64", "%env", ENV["value_offset"]))
        with c.if_(c.op("icmp eq", "ptr", plain, "null")):
            c.ret("false")
        bare = c.stack(PARAM.size)
        c.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {bare}, ptr %param, i64 {PARAM.size}, i1 false)")
        c.store("ptr", "null", bare, PARAM["view"])
        c.store("ptr", "null", bare, PARAM["other"])
        c.ret(c.call("i1", "@pack_argument", ("ptr", "%env"), ("ptr", bare), ("ptr", plain), ("ptr", "%packed")))
    kind_type = c.load("ptr", "%thing", TYPE)
    wanted = c.load("ptr", "%param", PARAM["view"])
    with c.if_(c.op("and", "i1", c.op("icmp ne", "ptr", wanted, "null"), c.op("icmp ne", "ptr", wanted, kind_type))):
        c.ret("false")
    for name, word in (("f32", "float"), ("f64", "double")):
        with c.if_(c.op("icmp eq", "i64", kind, PARAM_KINDS[name])):
            _pack_float(c, into, kind_type, word)
    with c.if_(c.op("icmp eq", "i64", kind, PARAM_KINDS["bool"])):
        for value, name in ((1, "true"), (0, "false")):
            with c.if_(c.op("icmp eq", "ptr", "%thing", c.load("ptr", "%env", ENV[name]))):
                c.store("i8", value, into)
                c.ret("true")
        c.ret("false")
    with c.if_(c.op("icmp ne", "ptr", kind_type, c.load("ptr", "%env", ENV["long_type"]))):
        c.ret("false")
    value = c.var("i64", 0)
    with c.if_(
        c.op("xor", "i1", c.call("i1", "@integer", ("ptr", "%env"), ("ptr", "%thing"), ("ptr", value.slot)), "true")
    ):
        c.ret("false")
    number = value.get()
    for bits in (32, 64, 8, 16):
        for sign in "iu":
            with c.if_(c.op("icmp eq", "i64", kind, PARAM_KINDS[f"{sign}{bits}"])):
                _pack_integer(c, into, number, sign, bits)
    c.ret("false")
    return c.text()


def _pack_view(c: Code, into: str) -> None:
    """An array whose view type is the one wanted: its parts lie in its ``_desc``. None too, and memory that must not be
    changed, where ``other`` says so."""

    def takes(what: int) -> str:
        return c.op("icmp ne", "i64", c.op("and", "i64", c.load("i64", "%param", PARAM["other"]), what), 0)

    absent = c.op("icmp eq", "ptr", "%thing", c.load("ptr", "%env", ENV["none"]))
    with c.if_(c.op("and", "i1", absent, takes(NONE_TOO))):
        words = c.op("add", "i64", c.op("shl", "i64", c.load("i64", "%param", PARAM["ndim"]), 1), 3)
        nbytes = c.op("shl", "i64", words, 3)
        c.line(f"call void @llvm.memset.p0.i64(ptr {into}, i8 0, i64 {nbytes}, i1 false)")
        c.ret("true")
    with c.if_(c.op("icmp ne", "ptr", c.load("ptr", "%thing", TYPE), c.load("ptr", "%env", ENV["array_type"]))):
        c.ret("false")
    described = c.load("ptr", "%thing", c.load("i64", "%env", ENV["desc_offset"]))
    with c.if_(c.op("icmp eq", "ptr", described, "null")):
        c.ret("false")
    desc = c.at(described, BYTES)
    has, wanted = c.load("i64", desc, DESC["view"]), c.load("i64", "%param", PARAM["view"])
    with c.if_(c.op("icmp ne", "i64", has, wanted)):
        fixed = c.op("icmp eq", "i64", has, c.op("add", "i64", wanted, READ_ONLY))
        with c.if_(c.op("xor", "i1", c.op("and", "i1", fixed, takes(READ_ONLY_TOO)), "true")):
            c.ret("false")
    c.store("i64", c.load("i64", desc, DESC["data"]), into)
    c.store("i64", c.load("i64", desc, DESC["grad"]), into, 8)
    ndim = c.load("i64", "%param", PARAM["ndim"])
    strides = c.at(into, c.op("shl", "i64", ndim, 3))
    with c.for_(ndim) as axis:
        at = c.op("shl", "i64", axis, 3)
        c.store("i64", c.load("i64", c.at(desc, DESC["shape0"]), at), c.at(into, 16), at)
        c.store("i64", c.load("i64", c.at(desc, DESC["stride0"]), at), c.at(strides, 16), at)
    end = c.at(strides, c.op("shl", "i64", ndim, 3))
    c.store("i64", c.load("i64", desc, DESC["component_stride"]), end, 16)
    c.ret("true")


def _pack_indexed(c: Code) -> None:
    """An indexed array of the type wanted: the arrays that it is made of, one after the other."""
    with c.if_(c.op("icmp ne", "ptr", c.load("ptr", "%thing", TYPE), c.load("ptr", "%env", ENV["indexed_type"]))):
        c.ret("false")
    own, wanted = (c.load("i64", where, at) for where, at in (
        ("%thing", c.load("i64", "%env", ENV["type_offset"])), ("%param", PARAM["view"])))  # fmt: skip
    with c.if_(c.op("icmp ne", "i64", own, wanted)):
        c.ret("false")
    parts = c.load("ptr", "%thing", c.load("i64", "%env", ENV["parts_offset"]))
    with c.if_(c.op("icmp eq", "ptr", parts, "null")):
        c.ret("false")
    _pack_parts(c, lambda i, row: c.load("ptr", c.at(parts, ITEMS), c.op("shl", "i64", i, 3)))


def _pack_struct(c: Code) -> None:
    """An instance of a struct's class: its fields, each in a slot of the instance."""
    with c.if_(c.op("icmp ne", "ptr", c.load("ptr", "%thing", TYPE), c.load("ptr", "%param", PARAM["view"]))):
        c.ret("false")
    _pack_parts(c, lambda i, row: c.load("ptr", "%thing", c.load("i64", row, PARAM["slot"])))


def _pack_parts(c: Code, part_of: Callable[[str, str], str]) -> None:
    """What ``part_of`` gives for the number and the row of each part."""
    rows = c.at("%param", c.load("i64", "%param", PARAM["offset"]))
    with c.for_(c.load("i64", "%param", PARAM["ndim"])) as i:
        row = c.at(rows, c.op("mul", "i64", i, PARAM.size))
        part = part_of(i, row)
        with c.if_(c.op("icmp eq", "ptr", part, "null")):
            c.ret("false")
        given = ("ptr", "%env"), ("ptr", row), ("ptr", part), ("ptr", "%packed")
        with c.if_(c.op("xor", "i1", c.call("i1", "@pack_argument", *given), "true")):
            c.ret("false")
    c.ret("true")


def _pack_composite(c: Code, into: str) -> None:
    """A host vector or matrix of exactly the wanted class: its components lie in an ``array.array``."""
    with c.if_(c.op("icmp ne", "ptr", c.load("ptr", "%thing", TYPE), c.load("ptr", "%param", PARAM["view"]))):
        c.ret("false")
    data = c.load("ptr", "%thing", c.load("i64", "%env", ENV["data_offset"]))
    with c.if_(c.op("icmp eq", "ptr", data, "null")):
        c.ret("false")
    nbytes = c.load("i64", "%param", PARAM["ndim"])
    c.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {into}, ptr {c.load('ptr', data, ITEMS)}, i64 {nbytes}, i1 false)")
    c.ret("true")


def _pack_float(c: Code, into: str, kind_type: str, word: str) -> None:
    """A Python float, or an int that a double holds exactly."""
    value = c.var("double", "0.0")
    is_float = c.op("icmp eq", "ptr", kind_type, c.load("ptr", "%env", ENV["float_type"]))
    with c.if_(is_float):
        value.set(c.load("double", "%thing", FLOAT))
    with c.if_(c.op("xor", "i1", is_float, "true")):
        with c.if_(c.op("icmp ne", "ptr", kind_type, c.load("ptr", "%env", ENV["long_type"]))):
            c.ret("false")
        whole = c.var("i64", 0)
        ok = c.call("i1", "@integer", ("ptr", "%env"), ("ptr", "%thing"), ("ptr", whole.slot))
        shifted = c.op("add", "i64", whole.get(), 1 << 53)
        exact = c.op("icmp ule", "i64", shifted, 1 << 54)
        with c.if_(c.op("xor", "i1", c.op("and", "i1", ok, exact), "true")):
            c.ret("false")
        value.set(c.cast("sitofp", "i64", whole.get(), "double"))
    number = value.get()
    c.store(word, number if word == "double" else c.cast("fptrunc", "double", number, word), into)
    c.ret("true")


def _pack_integer(c: Code, into: str, number: str, sign: str, bits: int) -> None:
    """An int that the type holds."""
    if bits == 64:
        if sign == "u":
            with c.if_(c.op("icmp slt", "i64", number, 0)):
                c.ret("false")
        c.store("i64", number, into)
    else:
        short = c.cast("trunc", "i64", number, f"i{bits}")
        back = c.cast("sext" if sign == "i" else "zext", f"i{bits}", short, "i64")
        with c.if_(c.op("icmp ne", "i64", back, number)):
            c.ret("false")
        c.store(f"i{bits}", short, into)
    c.ret("true")


def _check_own(c: Code, env: str, p: str, packed: str, dims: str, size: str) -> None:
    """Decline where an access at the thread's own index, or at a constant one, would leave its array."""
    own = c.load("ptr", p, PROGRAM["own"])
    with c.for_(c.load("i64", p, PROGRAM["nown"])) as i:
        access = c.at(own, c.op("mul", "i64", i, OWN.size))
        extent = c.load("i64", packed, c.load("i64", access, OWN["extent"]))
        axis = c.load("i64", access, OWN["axis"])
        past = c.var("i64", size)
        with c.if_(c.op("icmp sge", "i64", axis, 0)):
            past.set(c.load("i64", dims, c.op("shl", "i64", axis, 3)))
        with c.if_(c.op("icmp eq", "i64", axis, -2)):
            past.set(c.op("add", "i64", c.load("i64", access, OWN["index"]), 1))
        with c.if_(c.op("icmp sgt", "i64", past.get(), extent)):
            _decline(c, env)


def _fitting(c: Code, env: str, p: str, packed: str) -> str:
    """The program for these arguments: another one where arrays that the kernel updates, or elements of one, lie over
    each other, or a gradient over data. Declines where that is not known."""
    rows, count = c.load("ptr", p, PROGRAM["updated"]), c.load("i64", p, PROGRAM["nupdated"])
    low, found = c.var("i64", 0), c.var("ptr", p)
    instead = c.load("ptr", p, PROGRAM["shared"])

    def bounds(i: str) -> tuple[str, str]:
        item = c.at(rows, c.op("mul", "i64", i, ATOMIC.size))
        nbytes = c.call("i64", "@view_span", ("ptr", item), ("ptr", packed), ("ptr", low.slot))
        begin = c.op("add", "i64", c.load("i64", packed, c.load("i64", item, ATOMIC["data"])), low.get())
        return begin, c.op("add", "i64", begin, nbytes)

    def kind(i: str) -> str:
        return c.load("i64", c.at(rows, c.op("mul", "i64", i, ATOMIC.size)), ATOMIC["kind"])

    with c.for_(count) as i:
        item, own = c.at(rows, c.op("mul", "i64", i, ATOMIC.size)), kind(i)
        beside = c.op("icmp eq", "i64", own, UPDATED_KINDS["beside"])  # the last ones
        with c.if_(c.op("xor", "i1", beside, "true")):
            with c.if_(c.call("i1", "@view_folds", ("ptr", item), ("ptr", packed))):
                found.set(instead)
            (begin, end), gradient = bounds(i), c.op("icmp eq", "i64", own, UPDATED_KINDS["grad"])
            with c.for_(count, c.op("add", "i64", i, 1)) as j:
                other, other_end = bounds(j)
                apart = c.op("or", "i1", c.op("icmp ule", "i64", end, other), c.op("icmp ule", "i64", other_end, begin))
                changed = c.op("icmp ne", "i64", kind(j), UPDATED_KINDS["beside"])
                counts = c.op("or", "i1", gradient, changed)
                with c.if_(c.op("and", "i1", counts, c.op("xor", "i1", apart, "true"))):
                    found.set(instead)
    chosen = found.get()
    with c.if_(c.op("icmp eq", "ptr", chosen, "null")):
        _decline(c, env)
    return chosen


def _launch(c: Code, env: str, p: str, packed: str, dims: str, rank: str, size: str) -> None:
    """Fill the launch record, call the driver, and turn its answer into Python's."""
    launch, report = c.stack(LAUNCH.size), c.stack(REPORT.size)
    fault = c.at(report, REPORT["state"])
    c.line(f"call void @llvm.memset.p0.i64(ptr {fault}, i8 0, i64 {FAULT.size}, i1 false)")
    c.store("i64", size, launch, LAUNCH["size"])
    for axis in range(MAX_DIMS):
        c.store("i64", c.load("i64", dims, 8 * axis), launch, LAUNCH[f"dim{axis}"])
    c.store("ptr", c.load("ptr", env, ENV["stop"]), launch, LAUNCH["stop"])
    c.store("ptr", fault, launch, LAUNCH["fault"])
    c.store("ptr", "null", launch, LAUNCH["log"])
    c.store("ptr", "null", launch, LAUNCH["priv_targets"])
    c.store("i64", c.load("i64", p, PROGRAM["checked"]), launch, LAUNCH["checked"])
    drive = c.load("ptr", env, ENV["drive"])
    status = c.call("i32", drive, ("ptr", env), ("ptr", p), ("ptr", packed), ("ptr", launch), ("i32", 1))
    with c.if_(c.op("icmp eq", "i32", status, STOPPED)):
        _interrupted(c, env)
    faulted = c.op("icmp ne", "i64", c.load("i64", fault), 0)
    with c.if_(c.op("or", "i1", faulted, c.op("icmp ne", "i32", status, 0))):
        c.store("i64", c.load("i64", p, PROGRAM["key"]), report, REPORT["key"])
        c.store("i64", rank, report, REPORT["rank"])
        for axis in range(MAX_DIMS):
            c.store("i64", c.load("i64", dims, 8 * axis), report, REPORT[f"dim{axis}"])
        c.ret(c.call("ptr", c.load("ptr", env, ENV["bytes_from"]), ("ptr", report), ("i64", REPORT.size)))
    c.ret(_new_reference(c, env, c.load("ptr", env, ENV["none"])))


def _interrupted(c: Code, env: str) -> None:
    """Let Python's own handler of SIGINT raise; if it raises nothing, KeyboardInterrupt all the same."""
    pending = c.call("i32", c.load("ptr", env, ENV["check_signals"]))
    with c.if_(c.op("icmp eq", "i32", pending, 0)):
        c.call("void", c.load("ptr", env, ENV["set_none"]), ("ptr", c.load("ptr", env, ENV["keyboard_interrupt"])))
    c.ret("null")
