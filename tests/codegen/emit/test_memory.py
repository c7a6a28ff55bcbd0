"""Memory: every shape of access, in gangs of every width."""

import ctypes
import mmap
import sys

import numpy as np
import pytest

from tests.codegen.harness import Entry, KernelBuilder, agrees_with_oracle, same_on_all_widths
from tests.targets import MACHINES
from treadle.codegen import cpu
from treadle.codegen.emit.atomics import plan
from treadle.codegen.emit.module import write
from treadle.codegen.emit.unit import Options
from treadle.types.core import Struct, b1, bf16, f16, f32, f64, fixed, i8, i32, i64, matrix, u8, u16, vector, view

N = 45
V3 = vector(3, f32)


def text_of(func, width=8) -> str:
    target = cpu.host_target(width)
    return write(func, "kernel", cpu.machine(target, width), Options(), target.triple, plan(func, "free"))[0]


def rand(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    "elem", [vector(2, f32), V3, vector(4, f32), vector(7, f32), matrix(3, 3, f32), vector(36, f32)]
)
def test_elements_of_several_scalars_at_the_threads_index(elem):
    k = KernelBuilder((view(elem, 1), view(elem, 1)))
    x, y = k.params
    i = k.tid()
    parts = k.load(x, i)
    k.store(y, (i,), *[k.op("mul", p, q) for p, q in zip(parts, parts[1:] + parts[:1], strict=True)])
    shape = (N, elem.rows, elem.cols) if elem.name.startswith("mat") else (N, elem.n)
    make = lambda: (rand(*shape), np.zeros(shape, np.float32))
    out = same_on_all_widths(k.func(), N, make)
    agrees_with_oracle(k.func(), N, make, out[1])


def test_a_vec3_array_is_read_by_wide_loads():
    k = KernelBuilder((view(V3, 1), view(f32, 1)))
    x, y = k.params
    i = k.tid()
    a, b, c = k.load(x, i)
    k.store(y, (i,), k.op("add", k.op("add", a, b), c))
    text = text_of(k.func())
    assert "load <24 x float>" in text and "gather" not in text


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("elem", [vector(2, f32), V3, vector(3, f64), vector(4, i32), vector(3, u8)])
def test_a_component_is_read_and_written_as_part_of_its_element(elem, masked):
    """Gathers and scatters would take several times as long, and wait for the stores before them."""
    k = KernelBuilder((view(elem, 1), view(elem, 1)))
    x, y = k.params
    i, last = k.tid(), elem.n - 1
    part = lambda v, at: k.b.op("field", (v,), (view(elem.elem, 1, (elem.size,)),), index=at)[0]

    def change():
        k.store(y, (i,), *k.load(x, i))
        k.store(part(y, last), (i,), k.op("add", k.load(part(y, last), i), k.load(part(x, 0), i)))
        return []

    if masked:
        k.if_(k.op("ne", k.op("mod", i, k.const(3, i32)), k.const(1, i32)), change)
    else:
        change()
    kind = np.dtype({"u8": "uint8", "i32": "int32", "f64": "float64", "f32": "float32"}[elem.elem.name])
    numbers = np.random.default_rng(0).integers(0, 100, (N, elem.n)).astype(kind)
    out = same_on_all_widths(k.func(), N, lambda: (numbers.copy(), np.full((N, elem.n), 7, kind)))[1]
    want = numbers.copy()
    want[:, last] += want[:, 0]
    runs = (np.arange(N) % 3 != 1)[:, None] | (not masked)
    assert np.array_equal(out, np.where(runs, want, 7))
    target = MACHINES["avx512"]._replace(width=16)
    text = cpu.draft(k.func(), target).text
    assert "gather" not in text and "scatter" not in text and "insertelement" not in text.split("gang")[1]


def test_a_component_of_elements_that_do_not_follow_each_other_is_gathered():
    """What lies between them may not be memory at all."""
    k = KernelBuilder((view(V3, 1, (36,)), view(f32, 1)))
    x, y = k.params
    part = k.b.op("field", (x,), (view(f32, 1, (36,)),), index=1)[0]
    k.store(y, (k.tid(),), k.load(part, k.tid()))
    make = lambda: (rand(N, 3, 3)[:, 0], np.zeros(N, np.float32))
    out = same_on_all_widths(k.func(), N, make)[1]
    assert np.array_equal(out, rand(N, 3, 3)[:, 0, 1])


@pytest.mark.skipif(sys.platform != "linux", reason="pages are closed by Linux's own means")
@pytest.mark.parametrize("at_end", [False, True])
def test_gathers_of_vec3_touch_nothing_around_an_array(at_end):
    """Rows are loaded in pairs, by loads that are wider than the rows."""
    page, count = mmap.PAGESIZE, 64
    pages = mmap.mmap(-1, 3 * page)
    start = 2 * page - 12 * count if at_end else page
    x = np.frombuffer(pages, np.float32, 3 * count, start).reshape(count, 3)
    x[:] = rand(count, 3)
    first = np.frombuffer(pages, np.uint8).ctypes.data
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for at in (first, first + 2 * page):
        assert protect(ctypes.c_void_p(at), ctypes.c_size_t(page), 0) == 0
    k = KernelBuilder((view(V3, 1), view(i32, 1), view(V3, 1)))
    source, where, y = k.params
    k.store(y, (k.tid(),), *k.load(source, k.load(where, k.tid())))
    places = np.random.default_rng(0).choice([0, 1, count - 1], N).astype(np.int32)
    for width in (1, 4, 8, 16):
        out = np.zeros((N, 3), np.float32)
        Entry(k.func(), width)((N,), x, places, out)
        assert np.array_equal(out, x[places]), width
    target = MACHINES["avx512"]._replace(width=16)
    assert "call <8 x float> @llvm.masked.load" in cpu.draft(k.func(), target).text


def test_masked_elements_of_several_scalars():
    k = KernelBuilder((view(V3, 1), view(V3, 1)))
    x, y = k.params
    i = k.tid()
    go = k.op("ne", k.op("mod", i, k.const(3, i32)), k.const(1, i32))
    k.if_(go, lambda: [k.store(y, (i,), *[k.op("neg", p) for p in k.load(x, i)])][:0])
    out = same_on_all_widths(k.func(), N, lambda: (rand(N, 3), np.full((N, 3), 5.0, np.float32)))[1]
    want = np.where(np.arange(N)[:, None] % 3 != 1, -rand(N, 3), 5.0)
    assert np.array_equal(out, want)


def test_planar_arrays_have_a_wide_load_for_each_component():
    planar = view(V3, 1, (4,), planar=True)
    k = KernelBuilder((planar, planar))
    x, y = k.params
    i = k.tid()
    a, b, c = k.load(x, i)
    k.store(y, (i,), b, c, k.op("add", a, a))
    planes = lambda a: np.ascontiguousarray(a.T).T  # components far apart
    make = lambda: (planes(rand(N, 3)), planes(np.zeros((N, 3), np.float32)))
    for width in (1, 8, 16):
        x, y = make()
        assert Entry(k.func(), width)(N, x, y) == 0
        assert np.array_equal(y, np.stack([x[:, 1], x[:, 2], x[:, 0] + x[:, 0]], axis=1))
    assert text_of(k.func()).count("load <8 x float>") == 3


def test_strided_and_permuted_places():
    column = view(f32, 2, (4, None))  # column-major
    k = KernelBuilder((column, view(f32, 2), view(i32, 1), view(f32, 1)))
    x, z, where, y = k.params
    i, zero, two = k.tid(), k.const(0, i32), k.const(2, i32)
    j = k.load(where, i)
    values = [k.load(x, i, two), k.load(z, i, two), k.load(z, zero, k.op("mod", i, k.const(3, i32))),
              k.load(z, j, zero),
              k.load(x, k.op("sub", k.const(N - 1, i32), i), zero)]  # fmt: skip
    total = values[0]
    for v in values[1:]:
        total = k.op("add", k.op("mul", total, k.const(3.0, f32)), v)
    k.store(y, (i,), total)
    make = lambda: (np.asfortranarray(rand(N, 3)), rand(N, 3, seed=1),
                    np.random.default_rng(2).permutation(N).astype(np.int32),
                    np.zeros(N, np.float32))  # fmt: skip
    out = same_on_all_widths(k.func(), N, make)
    agrees_with_oracle(k.func(), N, make, out[3])


def test_scatter_keeps_the_last_thread_where_threads_meet():
    k = KernelBuilder((view(f32, 1), view(i32, 1)))
    x, y = k.params
    i = k.tid()
    k.store(y, (k.op("mod", i, k.const(5, i32)),), i)
    out = same_on_all_widths(k.func(), N, lambda: (rand(N), np.zeros(5, np.int32)))[1]
    assert [max(t for t in range(N) if t % 5 == j) for j in range(5)] == list(out)


def test_one_address_for_all_lanes():
    k = KernelBuilder((view(f32, 1), view(f32, 1), view(i32, 1)))
    x, y, last = k.params
    i = k.tid()
    k.store(y, (i,), k.load(x, k.const(3, i32)))
    k.if_(k.op("lt", i, k.const(30, i32)), lambda: [k.store(last, (k.const(0, i32),), i)][:0])
    out = same_on_all_widths(k.func(), N, lambda: (rand(N), np.zeros(N, np.float32), np.zeros(1, np.int32)))
    assert (out[1] == rand(N)[3]).all() and out[2][0] == 29
    assert "load float, ptr" in text_of(k.func())


def test_own_arrays_are_apart_for_each_lane():
    t = fixed(V3, (4,))
    k = KernelBuilder((view(f32, 1), view(i32, 1), view(f32, 1)))
    x, where, y = k.params
    i = k.tid()
    (own,) = k.b.op("local", (), (view(V3, 1, space="local"),), type=t)
    v, j = k.load(x, i), k.load(where, i)
    for n in range(3):
        k.store(own, (k.const(n, i32),), v, k.op("mul", v, v), k.const(float(n), f32))
    k.if_(k.op("gt", v, k.const(0.0, f32)), lambda: [k.store(own, (j,), k.op("neg", v), v, v)][:0])
    a, b, c = k.load(own, k.const(1, i32))
    d, e, f = k.load(own, j)
    total = a
    for p in (b, c, d, e, f):
        total = k.op("add", k.op("mul", total, k.const(1.5, f32)), p)
    k.store(y, (i,), total)
    make = lambda: (rand(N), np.random.default_rng(1).integers(0, 4, N).astype(np.int32), np.zeros(N, np.float32))
    out = same_on_all_widths(k.func(), N, make)
    agrees_with_oracle(k.func(), N, make, out[2])


def test_derived_views():
    mat = matrix(2, 3, f32)
    k = KernelBuilder((view(mat, 2), view(f32, 1)))
    x, y = k.params
    i, two = k.tid(), k.const(2, i32)
    (row,) = k.b.op("subview", (x, i), (view(mat, 1),))
    (cut,) = k.b.op("slice", (row, k.const(1, i32), two, two), (view(mat, 1, (None,)),), axis=0)
    (parts,) = k.b.op("parts", (row,), (view(f32, 3),))
    (field,) = k.b.op("field", (row,), (view(f32, 1, (24,)),), index=4)
    total = k.op("add", k.load(cut, k.const(1, i32))[2], k.load(parts, two, k.const(1, i32), k.const(0, i32)))
    total = k.op("add", k.op("mul", total, total), k.load(field, k.const(1, i32)))
    shape = k.b.one("shape", (cut,), i32, axis=0)
    k.store(y, (i,), k.op("add", total, k.cast(shape, f32)))
    make = lambda: (rand(N, 4, 2, 3), np.zeros(N, np.float32))
    out = same_on_all_widths(k.func(), N, make)
    agrees_with_oracle(k.func(), N, make, out[1])


def test_structs_in_arrays():
    s = Struct("s", (("a", f32), ("n", i32), ("v", V3), ("flag", b1), ("big", f64)))
    k = KernelBuilder((view(s, 1), view(f32, 1)))
    x, y = k.params
    i = k.tid()
    a, n, p, q, r, flag, big = k.load(x, i)
    total = k.op("add", k.op("mul", a, k.cast(n, f32)), k.op("mul", p, k.op("mul", q, r)))
    k.store(y, (i,), k.select(flag, total, k.cast(big, f32)))
    k.store(x, (i,), r, n, a, p, q, k.op("logical_not", flag), big)
    layout = np.dtype({"names": ["a", "n", "v", "flag", "big"], "formats": ["f4", "i4", ("f4", 3), "?", "f8"],
                       "offsets": s.offsets, "itemsize": s.size})  # fmt: skip

    def make():
        found = np.zeros(N, layout)
        found["a"], found["n"], found["v"] = rand(N), np.arange(N), rand(N, 3)
        found["flag"], found["big"] = rand(N, seed=4) > 0, rand(N, seed=5)
        return found, np.zeros(N, np.float32)

    out = same_on_all_widths(k.func(), N, make)
    start = make()[0]
    v = start["v"]
    total = start["a"] * start["n"].astype(np.float32) + v[:, 0] * (v[:, 1] * v[:, 2])
    assert np.array_equal(out[1], np.where(start["flag"], total, start["big"].astype(np.float32)))
    assert np.array_equal(out[0]["flag"], ~start["flag"]) and np.array_equal(out[0]["v"][:, 0], start["a"])


@pytest.mark.parametrize(
    ("t", "code"), [(b1, "?"), (i8, "i1"), (u8, "u1"), (u16, "u2"), (i64, "i8"), (f64, "f8"), (f16, "f2")]
)
def test_every_scalar_type_goes_in_and_out(t, code):
    k = KernelBuilder((view(t, 1), view(t, 1)))
    x, y = k.params
    i = k.tid()
    v = k.load(x, i)
    k.store(y, (i,), k.op("logical_not", v) if t is b1 else k.op("add", v, v))
    values = np.arange(N).astype(code)
    out = same_on_all_widths(k.func(), N, lambda: (values.copy(), np.zeros(N, code)))[1]
    assert np.array_equal(out, ~values if t is b1 else values + values)


def test_bfloat16_is_rounded_to_the_nearest_even():
    k = KernelBuilder((view(f32, 1), view(bf16, 1)))
    x, y = k.params
    i = k.tid()
    k.store(y, (i,), k.cast(k.load(x, i), bf16))
    values = rand(N) * np.float32(1e3)
    out = same_on_all_widths(k.func(), N, lambda: (values.copy(), np.zeros(N, np.uint16)), widths=(1, 8))[1]
    bits = values.view(np.uint32)
    assert np.array_equal(out, ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16))


@pytest.mark.parametrize(
    ("dims", "rows"), [((5, 21), True), ((5, 21), False), ((7, 3), False), ((3, 4, 19), True), ((3, 2, 3), False)]
)
def test_grids_of_several_axes(dims, rows):
    k = KernelBuilder((view(i32, len(dims)),), ndim=len(dims))
    (out,) = k.params
    axes = [k.tid(a) for a in range(len(dims))]
    total = axes[0]
    for a in axes[1:]:
        total = k.op("add", k.op("mul", total, k.const(100, i32)), a)
    k.store(out, tuple(axes), total)
    found = same_on_all_widths(k.func(), dims, lambda: (np.full(dims, -1, np.int32),), Options(rows=rows))[0]
    want = np.zeros(dims, np.int64)
    for a in np.indices(dims):
        want = want * 100 + a
    assert np.array_equal(found, want)


def test_a_chunk_may_begin_within_a_row():
    k = KernelBuilder((view(i32, 2),), ndim=2)
    (out,) = k.params
    i, j = k.tid(0), k.tid(1)
    k.store(out, (i, j), k.op("add", k.op("mul", i, k.const(10, i32)), j))
    found = np.full((6, 37), -1, np.int32)
    assert Entry(k.func(), 8, Options(rows=True))((6, 37), found, begin=64, end=128) == 0
    ran = np.arange(6 * 37).reshape(6, 37)
    inside = (ran >= 64) & (ran < 128)
    assert (found[~inside] == -1).all()
    assert np.array_equal(found[inside], (np.arange(6)[:, None] * 10 + np.arange(37))[inside])


@pytest.mark.parametrize("small", [u8, f16])
def test_small_items_are_not_left_to_gathers_that_no_processor_has(small):
    k = KernelBuilder((view(i32, 1), view(small, 1), view(small, 1)))
    index, x, y = k.params
    j = k.load(index, k.tid())
    k.if_(k.op("gt", j, k.const(3, i32)), lambda: [k.store(y, (j,), k.load(x, j))][:0])
    text = cpu.draft(k.func(), MACHINES["avx512"]).text
    assert "masked.gather" not in text and "masked.scatter" not in text
