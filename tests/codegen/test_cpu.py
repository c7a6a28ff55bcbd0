"""Building for processors: this one and others."""

import re

import pytest

from tests.codegen.harness import Entry, KernelBuilder
from tests.codegen.programs import Program
from tests.targets import MACHINES, MAGIC
from treadle.base.errors import InternalError
from treadle.codegen import cpu
from treadle.codegen.emit.unit import Options
from treadle.types.core import b1, f32, f64, i32, vector, view


def sums():
    k = KernelBuilder((view(vector(3, f32), 1), view(f32, 1)))
    x, y = k.params
    i = k.tid()
    a, b, c = k.load(x, i)
    k.store(y, (i,), k.op("add", k.op("add", a, b), c))
    return k.func()


def escape(scalar=f32):
    """A short loop of arithmetic alone."""
    k = KernelBuilder((view(scalar, 1),))
    (x,) = k.params
    i = k.tid()
    v = k.load(x, i)

    def round_(z, n):
        go = k.op("lt", k.op("mul", z, z), k.const(4.0, scalar))
        rest = lambda: [k.op("add", k.op("mul", z, z), v), k.op("add", n, k.const(1, i32))]
        return [k.op("bitand", go, k.op("lt", n, k.const(50, i32))), *k.if_(go, rest, lambda: [z, n])]

    _, n = k.while_([k.const(0.0, scalar), k.const(0, i32)], round_)
    k.store(x, (i,), k.cast(n, scalar))
    return k.func()


def gathered():
    """Reads at an index that memory holds."""
    k = KernelBuilder((view(f32, 1), view(i32, 1)))
    x, where = k.params
    i = k.tid()
    k.store(x, (i,), k.load(x, k.load(where, i)))
    return k.func()


def test_wide_gangs_make_gathers_no_cheaper():
    """What a thread weighs decides whether the workers help: by lane, twice the lanes take twice as long."""
    by_lane, in_one = ([cpu.draft(f(), cpu.host_target(w)).meta["weight"] for w in (8, 16)] for f in (gathered, sums))
    assert in_one[1] == pytest.approx(in_one[0] / 2, abs=0.01)
    assert by_lane[1] == pytest.approx(by_lane[0] / 2 + 0.4 * 4 / 16, abs=0.01)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("seed", range(3))
def test_every_processor_gets_an_object(name, seed):
    func = (sums, escape, Program(7).func)[seed]()
    binary = cpu.build(func, MACHINES[name], symbol="kernel")
    assert binary.code.startswith(MAGIC.get(name, b"\x7fELF")) and binary.symbols == ("kernel",)


def test_short_loops_of_arithmetic_get_gangs_of_several_vectors():
    width = lambda func, name: cpu.draft(func, MACHINES[name]).meta["width"]
    assert [width(escape(), name) for name in MACHINES] == [64, 16, 8, 16, 16, 16]
    assert [width(escape(f64), name) for name in MACHINES] == [64, 16, 8, 16, 16, 16]
    assert [width(sums(), name) for name in MACHINES] == [16, 8, 4, 4, 4, 8]


def test_masks_of_several_registers_are_not_put_together():
    code = cpu.assembly(cpu.draft(escape(), MACHINES["avx512"]).text, MACHINES["avx512"])
    assert code.count("vcmpltps\t%zmm") == 4 and not re.search(r"\tk(unpck|shift)", code)


def powers(scalar, count):
    """A long straight line of multiplications."""
    k = KernelBuilder((view(scalar, 1),))
    (x,) = k.params
    i = k.tid()
    v = k.load(x, i)
    for _ in range(count):
        v = k.op("mul", v, k.op("add", v, v))
    k.store(x, (i,), v)
    return k.func()


def test_large_kernels_in_float64_get_half_the_lanes():
    width = lambda func, name: cpu.draft(func, MACHINES[name]).meta["width"]
    assert [width(powers(f64, 100), name) for name in MACHINES] == [8, 4, 2, 2, 2, 4]
    assert [width(powers(f64, 20), name) for name in MACHINES] == [16, 8, 4, 4, 4, 8]
    assert [width(powers(f32, 100), name) for name in MACHINES] == [16, 8, 4, 4, 4, 8]


def test_loops_that_keep_more_than_the_registers_hold_get_one_vector():
    k = KernelBuilder((view(f32, 1),))
    (x,) = k.params
    i = k.tid()
    v = k.load(x, i)
    go = lambda a: k.op("lt", a, k.const(100.0, f32))
    turn = lambda *a: [go(a[0]), *a[1:], k.op("add", a[0], v)]
    found = k.while_([v, *[k.op("mul", v, k.const(float(n), f32)) for n in range(5)]], turn)
    k.store(x, (i,), found[-1])
    assert [cpu.draft(k.func(), MACHINES[name]).meta["width"] for name in MACHINES] == [32, 8, 4, 8, 8, 8]


def test_what_the_runtime_reads():
    binary = Entry(sums(), 8, Options(checked=True)).binary
    meta = binary.meta
    assert (meta["width"], meta["order"], meta["checked"], meta["bounded"], meta["atomics"]) == (
        8,
        "free",
        True,
        True,
        [],
    )
    assert meta["signature"] == ["view<vec<3,f32>,1,(12)>", "view<f32,1,(4)>"] and meta["size"] == 80
    assert [site["kind"] for site in meta["sites"]] == ["index"] * len(meta["sites"]) and meta["weight"] > 0


def test_an_endless_loop_makes_a_kernel_unbounded():
    k = KernelBuilder((view(i32, 1),))
    k.while_([k.const(0, i32)], lambda n: [k.const(True, b1), k.op("add", n, n)])
    assert not cpu.draft(k.func(), MACHINES["avx2"]).meta["bounded"]


def test_text_that_llvm_rejects_is_our_error():
    with pytest.raises(InternalError, match="LLVM rejects"):
        cpu.parse("define void @f() { ret i32 0 }")


BRANCH = """
define void @f(i1 %c, i32 %x, ptr %p) {
  %y = mul i32 %x, %x
  br i1 %c, label %on, label %off
on:
  store volatile i32 %y, ptr %p
  ret void
off:
  store volatile i8 0, ptr %p
  ret void
}
"""


def test_long_code_is_not_polished_and_leaves_llvm_as_it_was(monkeypatch):
    target = cpu.host_target()
    polished = cpu.assembly(BRANCH, target)
    monkeypatch.setattr(cpu, "LARGE", 5)
    plain = cpu.assembly(BRANCH, target)
    monkeypatch.undo()
    assert plain != polished
    assert cpu.assembly(BRANCH, target) == polished
