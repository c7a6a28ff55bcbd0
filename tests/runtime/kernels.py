"""Kernels written by hand as LLVM text, so that the machine tower is tested without the compiler."""

from __future__ import annotations

from functools import cache

from treadle.base.binary import Binary
from treadle.codegen import native as room
from treadle.codegen.cpu import host_target
from treadle.codegen.native.build import build
from treadle.codegen.native.text import Code
from treadle.runtime import native
from treadle.runtime.device import get_device
from treadle.runtime.launch import Program
from treadle.types.core import f32, i32, i64, view
from treadle.types.records import FAULT, LAUNCH, SLOTS

native.provide(lambda: room, lambda: host_target().key())

V32, VI32, VI64 = view(f32, 1), view(i32, 1), view(i64, 1)
VIEW = 40  # bytes of a one-dimensional view in the arguments


def entry(name: str) -> Code:
    """A kernel's entry, to be written."""
    return Code(name, "i32", [("ptr", "args"), ("ptr", "launch"), ("i64", "begin"), ("i64", "end"), ("ptr", "priv")])


@cache
def binary(text: str, name: str) -> bytes:
    return build(text, (name,), 2).code


def program(c: Code, name: str, signature: tuple, meta: dict, **more) -> Program:
    """The loaded kernel of text ``c``."""
    made = Binary(binary(c.text(), name), (name,), (), {"symbol": name, "order": "free", "bounded": True, **meta})
    return Program(get_device("cpu").load(made), signature, name, **more)


def saxpy(weight: float = 1.0, **more) -> Program:
    """``y[i] += a * x[i]`` for x, y and a."""
    c = entry("saxpy")
    x, y, a = c.load("ptr", "%args"), c.load("ptr", "%args", VIEW), c.load("float", "%args", 2 * VIEW)
    with c.for_("%end", "%begin") as i:
        at = c.op("shl", "i64", i, 2)
        product = c.op("fmul", "float", a, c.load("float", x, at))
        c.store("float", c.op("fadd", "float", product, c.load("float", y, at)), y, at)
    c.ret(0)
    own = [{"path": [p], "axis": 0, "grid": 0} for p in (0, 1)]
    return program(
        c, "saxpy", (V32, V32, f32), {"weight": weight, "own_index": own}, parameters=("x", "y", "a"), **more
    )


def visits(weight: float) -> Program:
    """``n[i] += 1`` through a shared array of i64, and ``order[i] = i``; any thread run twice or never shows."""
    c = entry("visits")
    n, order = c.load("ptr", "%args"), c.load("ptr", "%args", VIEW)
    with c.for_("%end", "%begin") as i:
        at = c.op("shl", "i64", i, 3)
        c.store("i64", c.op("add", "i64", c.load("i64", n, at), 1), n, at)
        c.store("i64", i, order, at)
    c.ret(0)
    return program(c, "visits", (VI64, VI64), {"weight": weight})


def total(weight: float = 1.0) -> Program:
    """``out[0] += x[i]`` by partial sums."""
    c = entry("total")
    x, out = c.load("ptr", "%args"), c.load("ptr", "%args", VIEW)
    item = c.load("ptr", "%priv")
    c.store("ptr", out, item)
    with c.for_("%end", "%begin") as i:
        slot = c.at(item, c.op("add", "i64", 64, c.op("shl", "i64", c.op("and", "i64", i, 63), 2)))
        value = c.load("float", x, c.op("shl", "i64", i, 2))
        c.store("float", c.op("fadd", "float", c.load("float", slot), value), slot)
    c.ret(0)
    atomics = [{"kind": "sum", "op": "add", "scalar": "f32", "path": [1]}]
    return program(c, "total", (V32, V32), {"weight": weight, "atomics": atomics})


def histogram(weight: float = 1.0, out=V32, work: float = 1.0) -> Program:
    """``out[bin[i]] += x[i]`` on private copies; ``out`` may be any view of f32 with one dimension."""
    c = entry("histogram")
    bins, x, data = c.load("ptr", "%args"), c.load("ptr", "%args", VIEW), c.load("ptr", "%args", 2 * VIEW)
    stride = c.load("i64", "%args", 2 * VIEW + 24)
    shift = c.op("sub", "i64", *(c.cast("ptrtoint", "ptr", p, "i64") for p in (c.load("ptr", "%priv"), data)))
    with c.for_("%end", "%begin") as i:
        at = c.op("shl", "i64", i, 2)
        bin_ = c.cast("sext", "i32", c.load("i32", bins, at), "i64")
        slot = c.at(c.at(data, c.op("mul", "i64", bin_, stride)), shift)
        c.store("float", c.op("fadd", "float", c.load("float", slot), c.load("float", x, at)), slot)
    c.ret(0)
    atomics = [{"kind": "copy", "op": "add", "scalar": "f32", "path": [2]}]
    return program(c, "histogram", (VI32, V32, out), {"weight": weight, "work": work, "atomics": atomics})


def histogram_and_total(weight: float = 1.0) -> Program:
    """``out[bin[i]] += 1`` on private copies and ``sum[0] += 1`` by partial sums, of f32."""
    c = entry("both")
    bins, data, total_ = (c.load("ptr", "%args", k * VIEW) for k in range(3))
    shift = c.op("sub", "i64", *(c.cast("ptrtoint", "ptr", p, "i64") for p in (c.load("ptr", "%priv"), data)))
    item = c.load("ptr", "%priv", 8)
    c.store("ptr", total_, item)
    with c.for_("%end", "%begin") as i:
        bin_ = c.cast("sext", "i32", c.load("i32", bins, c.op("shl", "i64", i, 2)), "i64")
        slots = (
            c.at(c.at(data, c.op("shl", "i64", bin_, 2)), shift),
            c.at(item, c.op("add", "i64", 64, c.op("shl", "i64", c.op("and", "i64", i, 63), 2))),
        )
        for slot in slots:
            c.store("float", c.op("fadd", "float", c.load("float", slot), "1.0"), slot)
    c.ret(0)
    fact = {"op": "add", "scalar": "f32"}
    atomics = [{"kind": "copy", "path": [1], **fact}, {"kind": "sum", "path": [2], **fact}]
    return program(c, "both", (VI32, V32, V32), {"weight": weight, "atomics": atomics})


def slotted(weight: float = 1.0, rounds: int = 2, out=V32) -> Program:
    """``out[0] += x[i]; out[i % len(out)] += 1`` in slots where the launch has some, and ``out[i % len(out)] += 1`` on
    copies where it has not; ``out`` may be any view of f32 with one dimension."""
    c = entry("slotted")
    x, data, n = c.load("ptr", "%args"), c.load("ptr", "%args", VIEW), c.load("i64", "%args", VIEW + 16)
    stride, copy, slots = c.load("i64", "%args", VIEW + 24), c.load("ptr", "%priv"), c.load("ptr", "%priv", 8)
    shift = c.op("sub", "i64", *(c.cast("ptrtoint", "ptr", p, "i64") for p in (copy, data)))
    has = c.op("icmp ne", "ptr", slots, "null")
    with c.for_("%end", "%begin") as i:
        place = c.op("mul", "i64", c.op("urem", "i64", i, n), stride)
        own = c.op("shl", "i64", c.op("and", "i64", i, SLOTS - 1), 2)
        with c.if_(has):
            value = c.load("float", x, c.op("shl", "i64", i, 2))
            for at, amount in ((0, value), (c.op("mul", "i64", place, SLOTS), "1.0")):
                slot = c.at(c.at(slots, at), own)
                c.store("float", c.op("fadd", "float", c.load("float", slot), amount), slot)
        with c.if_(c.op("xor", "i1", has, "true")):
            slot = c.at(c.at(data, place), shift)
            c.store("float", c.op("fadd", "float", c.load("float", slot), "1.0"), slot)
    c.ret(0)
    fact = {"op": "add", "scalar": "f32", "path": [1], "rounds": rounds}
    atomics = [{"kind": "copy", **fact}, {"kind": "slots", **fact}]
    return program(c, "slotted", (V32, out), {"weight": weight, "atomics": atomics})


def counters(weight: float, counting_weight: float = 0.0, n=VI64, rounds: int = 1, fails: int = -1) -> Program:
    """``slot[i] = n[i % 2]; n[i % 2] += i`` on counters of a chunk's own; a counting pass says ``seen[i] += 1``, and
    fails at thread ``fails``. With two rounds the odd counter is counted in the second."""
    parts = []
    for k in range(rounds + 1):
        c = entry("counters" if k == rounds else f"counting{k}")
        data, slots, seen = (c.load("ptr", "%args", j * VIEW) for j in range(3))
        stride = c.load("i64", "%args", 24)
        with c.for_("%end", "%begin") as i:
            at, odd = c.op("shl", "i64", i, 3), c.op("and", "i64", i, 1)
            # A counter lies as far from the copy as from the array itself; each round has a copy.
            item = odd if rounds == 2 else "0"
            copy = c.load("ptr", "%priv", c.op("shl", "i64", item, 3))
            counter = c.at(copy, c.op("mul", "i64", odd, stride))
            old = c.load("i64", counter)
            draws = c.op("icmp sle", "i64", item, k)
            with c.if_(draws):
                c.store("i64", c.op("add", "i64", old, i), counter)
            if k == rounds:
                c.store("i64", old, slots, at)
            else:
                c.store("i64", c.op("add", "i64", c.load("i64", seen, at), 1), seen, at)
            if k == rounds - 1:
                with c.if_(c.op("icmp eq", "i64", i, fails)):
                    c.store("i64", 2, c.load("ptr", "%launch", LAUNCH["fault"]))
                    c.ret(1)
        c.ret(0)
        parts.append(c.text())
    names = ("counters", *[f"counting{k}" for k in range(rounds)])
    code = build("".join(parts), names, 2).code
    items = [{"kind": "count", "op": "count", "scalar": "i64", "path": [0], "round": r} for r in range(rounds)]
    meta = {"symbol": names[0], "order": "counted", "bounded": True, "weight": weight, "atomics": items,
            "counting": names[1:], "counting_weight": counting_weight, "apart": [([0], [1])]}  # fmt: skip
    made = Binary(code, names, (), meta)
    return Program(get_device("cpu").load(made), (n, VI64, VI64), "counters")


def endless() -> Program:
    """Loops until it is asked to stop."""
    c = entry("endless")
    stop = c.load("ptr", "%launch", LAUNCH["stop"])
    with c.loop() as loop:
        loop.leave_if(c.op("icmp ne", "i32", c.atomic_load("i32", stop, 0, "monotonic"), 0))
    c.ret(1)
    return program(c, "endless", (), {"bounded": False})


def slow() -> Program:
    """``n[i]`` counts to 2,000 with atomic additions; some 10 µs a thread. Never looks whether it should stop."""
    c = entry("slow")
    n = c.load("ptr", "%args")
    with c.for_("%end", "%begin") as i, c.for_(2000):
        c.atomic("add", "i64", 1, c.at(n, c.op("shl", "i64", i, 3)), 0)
    c.ret(0)
    return program(c, "slow", (VI64,), {"weight": 1e4})


def faulty(bad: int, weight: float = 1.0) -> Program:
    """Threads from ``bad`` on report index 7 of an array of shape (5,); the smallest thread's report stays."""
    c = entry("faulty")
    fault = c.load("ptr", "%launch", LAUNCH["fault"])
    with c.for_("%end", "%begin") as i, c.if_(c.op("icmp sge", "i64", i, bad)):
        state = c.var("i64", 0)
        with c.loop() as locked:  # state 1 is a lock
            state.set(c.atomic("xchg", "i64", 1, fault, FAULT["state"]))
            locked.leave_if(c.op("icmp ne", "i64", state.get(), 1))
        first = c.op("icmp eq", "i64", state.get(), 0)
        earlier = c.op("icmp slt", "i64", i, c.load("i64", fault, FAULT["thread"]))
        with c.if_(c.op("or", "i1", first, earlier)):
            for name, value in (("thread", i), ("site", 0), ("value0", 7), ("value1", 5)):
                c.store("i64", value, fault, FAULT[name])
        c.atomic_store("i64", 2, fault, FAULT["state"])
        c.ret(1)
    c.ret(0)
    site = {"kind": "index", "line": 3, "file": "user.py", "text": "a[i]", "array": "a", "ndim": 1}
    return program(c, "faulty", (), {"weight": weight, "sites": [site]})
