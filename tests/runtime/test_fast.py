"""Native launchers take exactly the usual launches, and decline everything else without doing anything."""

import gc
import struct
import sys

import numpy as np
import pytest

import treadle as wp
from tests.runtime import kernels
from treadle.base.errors import IndexOutOfRange
from treadle.runtime import fast, writes
from treadle.runtime.adopt import remember
from treadle.runtime.array import array
from treadle.runtime.construct import zeros
from treadle.runtime.packing import packer
from treadle.types import core
from treadle.types.core import b1, f32, f64, vector, view
from treadle.types.layout import leaves, pack
from treadle.types.values import class_of

pytestmark = [
    pytest.mark.host,  # native launchers of the CPU are called by themselves
    pytest.mark.skipif(not fast.usable(), reason="this interpreter has no native launchers"),
]


def launcher(*programs):
    made = fast.launcher()
    for p in programs:
        fast.add(made, p)
    return made


@pytest.fixture
def xy():
    return array(np.arange(8, dtype=np.float32)), zeros(8)


def test_a_usual_launch_is_done(xy):
    x, y = xy
    launch = launcher(kernels.saxpy())
    assert launch(8, [x, y, 2.0], ()) is None
    assert launch(8, (x,), [y, 1.0]) is None
    assert launch((8,), [x], (y, 3)) is None
    assert (y.numpy() == 6 * x.numpy()).all()


@pytest.mark.parametrize(
    "arguments",
    [
        lambda x, y: (8, [x, y], ()),
        lambda x, y: (8, [x, y, 1.0, 1.0], ()),
        lambda x, y: (8, [x, y, "1"], ()),
        lambda x, y: (8, [x, y, True], ()),
        lambda x, y: (8, [x, y, np.float32(1)], ()),
        lambda x, y: (8, [x, None, 1.0], ()),
        lambda x, y: (8, [x, y.numpy(), 1.0], ()),
        lambda x, y: (8, [x, zeros(8, dtype=float).view(int), 1.0], ()),
        lambda x, y: (4, [x, y[::2], 1.0], ()),
        lambda x, y: (9, [x, y, 1.0], ()),
        lambda x, y: ((3, 3), [x, y, 1.0], ()),
        lambda x, y: (-1, [x, y, 1.0], ()),
        lambda x, y: (2**31, [x, y, 1.0], ()),
        lambda x, y: (2**80, [x, y, 1.0], ()),
        lambda x, y: ((), [x, y, 1.0], ()),
        lambda x, y: ((1, 1, 1, 1, 1), [x, y, 1.0], ()),
        lambda x, y: ((2**31 - 1,) * 4, [x, y, 1.0], ()),
        lambda x, y: (8.0, [x, y, 1.0], ()),
        lambda x, y: (np.int64(8), [x, y, 1.0], ()),
        lambda x, y: (8, {0: x}, ()),
        lambda x, y: (8, [x, y, 2**60], ()),
    ],
)
def test_the_unusual_is_declined_and_nothing_happens(xy, arguments):
    launch = launcher(kernels.saxpy(rank=1))
    assert launch(*arguments(*xy)) is NotImplemented
    assert not xy[1].numpy().any()


def test_wrong_calls_are_declined(xy):
    assert launcher(kernels.saxpy())(8) is NotImplemented
    assert launcher()(8, [*xy, 1.0], ()) is NotImplemented


def test_an_empty_grid_is_a_launch(xy):
    launch = launcher(kernels.saxpy())
    assert launch(0, [*xy, 1.0], ()) is None and not xy[1].numpy().any()


def _echo(types):
    """A kernel that copies its packed scalars, as they are, to the bytes of an array."""
    signature = (view(core.u8, 1), *types)
    offsets, size = pack(signature)
    c = kernels.entry("echo")
    c.line(
        f"call void @llvm.memcpy.p0.p0.i64(ptr {c.load('ptr', '%args')}, ptr {c.at('%args', 40)}, "
        f"i64 {size - 40}, i1 false)"
    )
    c.ret(0)
    text = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n" + c.text()
    c.text = lambda: text
    return kernels.program(c, "echo", signature, {}), size - 40


@pytest.mark.parametrize("t", [t for t in core.SCALARS if t.name not in ("f16", "bf16")], ids=lambda t: t.name)
def test_scalars_arrive_as_their_type_holds_them(t):
    p, size = _echo((t,))
    launch, out = launcher(p), zeros(size, dtype=class_of(core.u8))
    dtype = np.dtype("?" if t is b1 else f"{t.kind}{t.size}")
    good, bad = [], []
    if t is b1:
        good, bad = [True, False], [1, 0.0]
    elif t.is_float:
        good, bad = [1.1, -0.0, float("inf"), 3, -(2**53)], [True, 2**53 + 2]
    else:
        low, high = np.iinfo(dtype).min, min(np.iinfo(dtype).max, 2**63 - 1)
        good, bad = [int(low), int(high), 0], [int(low) - 1, 2**64, 1.0, True]
        bad += [int(high) + 1] if high < 2**63 - 1 or t.is_signed else []
    for value in good:
        assert launch(1, [out, value], ()) is None
        assert out.numpy()[: t.size].tobytes() == np.array(value).astype(dtype).tobytes()
    for value in bad:
        assert launch(1, [out, value], ()) is NotImplemented


COMPOSITES = [vector(3, f32), core.quaternion(f32), core.matrix(3, 2, f64), vector(2, core.u8)]


@pytest.mark.parametrize("t", COMPOSITES, ids=str)
def test_host_vectors_and_matrices_arrive(t):
    p, size = _echo((t,))
    launch, out, cls = launcher(p), zeros(size, dtype=class_of(core.u8)), class_of(t)
    value = cls(*range(1, t.n + 1))
    assert launch(1, [out, value], ()) is None
    dtype = np.dtype(f"{t.elem.kind}{t.elem.size}")
    assert out.numpy()[: t.size].tobytes() == np.arange(1, t.n + 1).astype(dtype).tobytes()
    for other in (class_of(vector(5, f32))(), tuple(value), 1.0, None, object.__new__(cls)):
        assert launch(1, [out, other], ()) is NotImplemented


def test_numbers_of_treadles_own_types_arrive():
    p, size = _echo((f64, core.i8))
    launch, out, double, small = launcher(p), zeros(size, dtype=class_of(core.u8)), class_of(f64), class_of(core.i8)
    assert launch(1, [out, double(2.5), small(-3)], ()) is None
    assert out.numpy().tobytes()[:9] == struct.pack("<db", 2.5, -3)
    for bad in ([double(1.0), double(1.0)], [small(1), small(1)], [object.__new__(double), 1]):
        assert launch(1, [out, *bad], ()) is NotImplemented


@wp.struct
class Spring:
    stiffness: float
    ends: wp.array(dtype=wp.vec3)
    at: wp.vec3d


@wp.struct
class Net:
    count: wp.uint8
    spring: Spring
    on: bool
    grid: wp.array2d(dtype=wp.mat22)


@wp.struct
class Halves:
    x: wp.float16


def test_structs_arrive_with_all_that_is_in_them():
    points, grid = zeros(4, dtype=wp.vec3, requires_grad=True), zeros((2, 3), dtype=wp.mat22)
    net, other = Net(), Net()
    launches = {}
    for ends in (None, points, points[::2]):
        for over in (None, grid):
            net.spring.ends, net.grid = ends, over
            net.spring.at[1], net.count, net.on = 2.5, wp.uint8(7), True
            p, size = _echo((net.treadle_type(),))
            launch, out, want = launcher(p), zeros(size, dtype=class_of(core.u8)), bytearray(size)
            packer(net.treadle_type())(want, 0, net)
            assert launch(1, [out, net], ()) is None
            for leaf in leaves(net.treadle_type()):
                at = slice(leaf.offset, leaf.offset + leaf.type.size)
                assert out.numpy()[at].tobytes() == want[at], leaf
            launches[ends is None, over is None] = launch, out
            for bad in (net.spring, None, 1.0, object.__new__(Net)):
                assert launch(1, [out, bad], ()) is NotImplemented
    launch, out = launches[False, False]
    assert launch(1, [out, other], ()) is NotImplemented  # its arrays are missing: other code is for that
    assert fast.packs(net.treadle_type()) and not fast.packs(Halves.__treadle_type__)


def test_arrays_over_each_other_get_the_program_for_that():
    plain, instead, unlike = (_stores(n, shared=n > 1, rank=int(n == 3)) for n in (1, 2, 3))
    launch, x, y = launcher(plain), zeros(4, dtype=np.int64), zeros(4, dtype=np.int64)
    assert launch(4, [x, x], ()) is NotImplemented
    for p in (unlike, instead):
        fast.add(launch, p)
    assert launch(4, [x, y], ()) is None and (x.list()[0], y.list()[0]) == (1, 0)
    assert launch(4, [x, x], ()) is None and x.list()[0] == 2
    assert launch(3, [x[1:], x[:3]], ()) is None and x.list()[:2] == [2, 2]
    assert launch(2, [x[:2], x[2:]], ()) is None and x.list()[0] == 1


def _stores(number, **more):
    """A kernel that updates two arrays, at least so it says, and puts ``number`` into the first."""
    c = kernels.entry(f"stores{number}")
    c.store("i64", number, c.load("ptr", "%args"))
    c.ret(0)
    meta = {"updated": [[0], [1]], "beside": []}
    return kernels.program(c, f"stores{number}", (view(core.i64, 1),) * 2, meta, **more)


def test_views_of_all_ranks_arrive_whole():
    for ndim in range(1, 5):
        a = zeros((2, 3, 4, 5)[:ndim], dtype=class_of(vector(3, f32)), requires_grad=True)
        c = kernels.entry("shape")
        out = c.load("ptr", "%args")
        c.line(
            f"call void @llvm.memcpy.p0.p0.i64(ptr {out}, ptr {c.at('%args', 40)}, i64 {8 * (3 + 2 * ndim)}, i1 false)"
        )
        c.ret(0)
        text = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n" + c.text()
        c.text = lambda text=text: text
        p = kernels.program(c, "shape", (view(core.i64, 1), a.type), {})
        seen = zeros(3 + 2 * ndim, dtype=np.int64)
        assert launcher(p)(1, [seen], [a]) is None
        assert seen.list() == [a.ptr, a.grad.ptr, *a.shape, *a.strides, 4]


def test_the_program_whose_types_fit_is_taken(xy):
    x, y = xy
    other = kernels.saxpy()
    c = kernels.entry("wide")
    c.store("double", c.load("double", "%args", 40), c.load("ptr", "%args"))
    c.ret(0)
    wide = kernels.program(c, "wide", (view(f64, 1), f64), {})
    launch, d = launcher(other, wide), zeros(1, dtype=class_of(f64))
    assert launch(1, [d, 2.5], ()) is None and d.list() == [2.5]
    assert launch(8, [x, y, 1.0], ()) is None and y.list() == x.list()


def test_the_grid_decides_between_variants(xy):
    narrow, rows = (kernels.visits(1.0) for _ in range(2))
    for p, limits in ((narrow, (2, 0, 7)), (rows, (2, 8, 2**31 - 1))):
        for name, value in zip(("rank", "last_min", "last_max"), limits, strict=True):
            p.record[name] = value
    n = [zeros(64, dtype=np.int64) for _ in range(2)]
    only_narrow, only_rows = launcher(narrow), launcher(rows)
    assert only_narrow((2, 7), n, ()) is None and only_narrow((2, 8), n, ()) is NotImplemented
    assert only_rows((2, 8), n, ()) is None and only_rows((2, 7), n, ()) is NotImplemented
    assert only_rows(16, n, ()) is NotImplemented


def test_a_fault_becomes_a_report():
    launch = launcher(kernels.faulty(12))
    report = launch((3, 10), (), ())
    assert type(report) is bytes
    with pytest.raises(IndexOutOfRange, match=r"kernel faulty, thread \(1, 2\)"):
        raise fast.error(report)


def test_references_are_counted_right(xy):
    x, y = xy
    launch, items = launcher(kernels.saxpy()), [xy[0], xy[1], 1.5]
    things = [x, y, items[2], items, None, NotImplemented]
    before = [sys.getrefcount(t) for t in things]
    for _ in range(1000):
        launch(8, items, ())
        launch(9, items, ())
    after = [sys.getrefcount(t) for t in things]
    assert all(abs(a - b) < 10 for a, b in zip(before, after, strict=True))


def test_a_launcher_and_its_programs_go(xy):
    p = kernels.saxpy()
    launch = launcher(p)
    key = p.record["key"]
    del launch, p
    gc.collect()
    assert key not in fast._programs


def test_big_launches_share_the_workers_and_lose_nothing():
    launch = launcher(kernels.visits(1e3))
    n, order = zeros(50_000, dtype=np.int64), zeros(50_000, dtype=np.int64)
    for _ in range(20):
        assert launch(50_000, [n, order], ()) is None
    assert (n.numpy() == 20).all()


def test_twins_are_arrays_like_others_at_another_address():
    likes = {}
    for made in (zeros(3), zeros((2, 3), dtype=class_of(vector(3, f32)))):
        remember(likes, made.shape, made)
    for like in likes.values():
        memory = np.ones(like.nbytes, np.uint8)
        address = memory.ctypes.data
        native, slow = fast.twin()(like, memory, address), fast._twin_by_python(like, memory, address)
        for name in ("_address", "_at", "_desc", "_element", "_grad", "_ref", "component_stride", "device", "shape",
                     "strides", "type"):  # fmt: skip
            assert getattr(native, name) is getattr(slow, name) or getattr(native, name) == getattr(slow, name)
        native.note = "an attribute"
        assert np.array_equal(native.numpy(), slow.numpy()) and native.ptr == address
        seen = memoryview(memory)
        assert fast.twin()(like, seen)._desc == fast._twin_by_python(like, seen)._desc == native._desc
        assert fast.twin()(like, seen).ptr == address
        del seen
        held, counts = sys.getrefcount(memory), [sys.getrefcount(x) for x in (like.strides, like.device)]
        more = [fast.twin()(like, memory, address) for _ in range(10)]
        assert sys.getrefcount(memory) == held + 10
        del more
        assert sys.getrefcount(memory) == held
        assert counts == [sys.getrefcount(x) for x in (like.strides, like.device)]


def test_arrays_are_cleared_by_native_code():
    launcher()
    assert not hasattr(writes.clear, "__code__")  # Python's own function is not used any more
    for size in (1, 3, 1000, 300_000):  # the last is so large that Python's lock is given up
        whole = array(np.ones(size + 2, dtype=np.float32))
        whole[1:-1].zero_()
        assert whole.numpy().sum() == 2 and whole.numpy()[0] == whole.numpy()[-1] == 1
