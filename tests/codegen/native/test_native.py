"""Native helpers: the writer of LLVM text, merging, and that every system's and processor's form of them compiles."""

import ctypes

import llvmlite.binding as llvm
import numpy as np
import pytest

from treadle.codegen import native
from treadle.codegen.native import build, launcher, merge, pool, system
from treadle.codegen.native.driver import driver
from treadle.codegen.native.text import Code
from treadle.runtime.loader import link
from treadle.types.core import SCALARS, b1, bf16, f16, f32, f64, i8, u16, u64
from treadle.types.numbers import bf16_bits, bf16_values
from treadle.types.records import SLOTS, identity

TRIPLES = [
    "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "arm64-apple-macosx14.0.0", "x86_64-pc-windows-msvc",
    "aarch64-pc-windows-msvc", "riscv64-unknown-linux-gnu", "x86_64-unknown-freebsd14",
]  # fmt: skip


def function(c: Code, result, *args):
    """The code of ``c`` as a Python callable; its library lives as long."""
    library = link(build.build(c.text(), ("f",), 2))
    made = ctypes.CFUNCTYPE(result, *args)(library.addresses["f"])
    made.library = library
    return made


def test_loops_and_branches():
    """The number of primes below n, by trial division."""
    c = Code("f", "i64", [("i64", "n")])
    found = c.var("i64", 0)
    with c.for_("%n", 2) as i:
        prime = c.var("i1", "true")
        with c.for_(i, 2) as d:
            with c.if_(c.op("icmp eq", "i64", c.op("srem", "i64", i, d), 0)):
                prime.set("false")
        with c.if_(prime.get()):
            found.set(c.op("add", "i64", found.get(), 1))
    c.ret(found.get())
    primes = function(c, ctypes.c_int64, ctypes.c_int64)
    assert [primes(n) for n in (0, 2, 3, 10, 100)] == [0, 0, 1, 4, 25]


def test_leaving_and_repeating_loops():
    """Sum of the odd numbers from 1 until their sum exceeds n."""
    c = Code("f", "i64", [("i64", "n")])
    i, total = c.var("i64", 0), c.var("i64", 0)
    with c.loop() as loop:
        i.set(c.op("add", "i64", i.get(), 1))
        loop.again_if(c.op("icmp eq", "i64", c.op("and", "i64", i.get(), 1), 0))
        total.set(c.op("add", "i64", total.get(), i.get()))
        with c.if_(c.op("icmp sgt", "i64", total.get(), "%n")):
            c.ret(total.get())
        loop.leave_if(c.op("icmp sgt", "i64", i.get(), 100))
    c.ret(-1)
    odd = function(c, ctypes.c_int64, ctypes.c_int64)
    assert [odd(0), odd(4), odd(10_000)] == [1, 9, -1]


def test_a_function_must_return_what_it_promises():
    with pytest.raises(AssertionError):
        Code("f", "i64", []).text()


NUMBERS = [t for t in SCALARS if t is not b1 and t is not bf16]
INTEGER = ("and", "or", "xor", "count")
CASES = [(op, t) for op in merge.OPS for t in NUMBERS if not (t.is_float and op in INTEGER)]
MEANING = {
    "add": np.add, "count": np.add, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.parametrize("t", NUMBERS, ids=str)
def test_merge_is_the_operation_on_each_element(t):
    text = "".join(merge.merge(op, u, op) for op, u in CASES if u is t)
    ops = tuple(op for op, u in CASES if u is t)
    library = link(build.build(text, ops, 2))
    rng = np.random.default_rng(7)
    dtype = np.dtype(f"{t.kind}{t.size}")
    for op in ops:
        run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(library.addresses[op])
        for n in (0, 1, 7, 8, 61):
            a, b = (np.frombuffer(rng.bytes(n * t.size), dtype).copy() for _ in range(2))
            if t.is_float:
                a, b = (rng.standard_normal(n).astype(dtype) for _ in range(2))
            guard, source = np.concatenate([a, np.ones(3, dtype)]), b.copy()
            run(guard.ctypes.data, source.ctypes.data, n)
            with np.errstate(over="ignore"):
                assert (guard[:n] == MEANING[op](a, b)).all() and (guard[n:] == 1).all()
            assert (source == (a if op == "count" else b)).all()


@pytest.mark.parametrize(("op", "t"), CASES, ids=lambda x: str(x))
def test_identities_change_no_bit(op, t):
    dtype = np.dtype(f"{t.kind}{t.size}")
    one = np.frombuffer(identity(op, t).to_bytes(t.size, "little"), dtype)[0]
    if t.is_float:
        values = np.array([0.0, -0.0, 1.5, -np.inf, np.inf, np.finfo(dtype).tiny, -np.finfo(dtype).max], dtype)
    else:
        values = np.array([0, 1, np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    with np.errstate(over="ignore"):
        assert MEANING[op](values, one).tobytes() == values.tobytes()


@pytest.mark.parametrize("t", [f16, f32, f64, i8, u16, u64], ids=str)
def test_the_loser_of_min_is_the_largest(t):
    assert identity("min", t) != identity("max", t)


@pytest.mark.parametrize("op", ["add", "min", "max"])
def test_merge_of_bfloat16_rounds_once(op):
    library = link(build.merge_binary(op, bf16))
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(library.addresses["treadle_merge"])
    rng = np.random.default_rng(8)
    a, b = (bf16_bits(rng.standard_normal(61)) for _ in range(2))
    a[:3], b[:3] = bf16_bits([np.inf, np.nan, 1.0]), bf16_bits([1.0, 2.0, 1.0 / 256.0])
    with np.errstate(invalid="ignore"):
        want = MEANING[op](bf16_values(a), bf16_values(b))
    run(a.ctypes.data, b.ctypes.data, 61)
    assert np.array_equal(bf16_values(a), bf16_values(bf16_bits(want)), equal_nan=True)


@pytest.mark.parametrize("t", [f16, bf16, f32, f64], ids=str)
def test_slots_are_folded_by_halves(t):
    library = link(build.fold_binary(t))
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(library.addresses["treadle_fold"])
    rng = np.random.default_rng(9)
    slots, into = rng.standard_normal((7, SLOTS)), rng.standard_normal(7)
    if t is bf16:
        pack, unpack = bf16_bits, bf16_values
    else:
        pack, unpack = (lambda x: np.asarray(x, f"f{t.size}"),) * 2
    rounded = lambda x: unpack(pack(x))
    parts, given, found = rounded(slots).T, pack(slots), pack(np.append(into, 1.0))
    while len(parts) > 1:
        parts = rounded(parts[: len(parts) // 2] + parts[len(parts) // 2 :])
    run(found.ctypes.data, given.ctypes.data, 7)
    assert np.array_equal(unpack(found)[:7], rounded(rounded(into) + parts[0])) and unpack(found)[7] == 1


def test_nan_stays_in_a_target():
    library = link(build.merge_binary("min", f32))
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(library.addresses["treadle_merge"])
    a, b = np.array([np.nan, 1.0], np.float32), np.array([np.inf, np.inf], np.float32)
    run(a.ctypes.data, b.ctypes.data, 2)
    assert np.isnan(a[0]) and a[1] == 1.0


@pytest.mark.parametrize("triple", TRIPLES)
def test_every_system_and_processor_has_its_form(triple):
    """Nothing runs here but this machine's form; the others must at least be accepted by their code generators."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(reloc="pic")
    parts = [system.interrupt(triple) + pool.pool(triple) + driver(), launcher.launcher("treadle_launch")]
    for text in parts:
        module = llvm.parse_assembly(f'target triple = "{triple}"\n{text}')
        module.verify()
        assert len(machine.emit_object(module)) > 1000


def test_ways_of_waiting():
    assert [system.kind_of(t) for t in TRIPLES] == ["futex", "futex", "ulock", "address", "address", "futex", "sleep"]


def test_the_revision_follows_the_sources():
    assert native.revision() == native.revision() and len(native.revision()) == 64
