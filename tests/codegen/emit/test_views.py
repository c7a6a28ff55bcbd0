"""Gradients of views: the layout of the data, other memory."""

import numpy as np
import pytest

from tests.codegen.harness import Entry, KernelBuilder, agrees_with_oracle, same_on_all_widths
from treadle.codegen import cpu
from treadle.ir.verify import verify
from treadle.types.core import Struct, b1, f32, i32, vector, view

N = 45
rng = np.random.default_rng(4)


def gradient(k, v):
    return k.b.one("grad", (v,), v.type)


def part(k, v, index):
    return k.b.one("field", (v,), view(f32, v.type.ndim, v.type.strides), index=index)


@pytest.mark.parametrize("planar", [False, True])
def test_the_gradient_of_a_parameter(planar):
    """Elements at the own index, components, rows: what is done to the data can be done to its gradient."""
    t = view(vector(3, f32), 1, (4,) if planar else (12,), planar=planar)
    k = KernelBuilder((t, view(f32, 2)))
    x, m = k.params
    i, one = k.tid(), k.const(1, i32)
    a, b, c = k.load(x, i)
    g = gradient(k, x)
    p, q, r = k.load(g, i)
    k.store(g, (i,), k.op("add", p, a), k.op("mul", q, b), k.op("neg", k.op("add", r, c)))
    (row,) = k.b.op("subview", (gradient(k, m), i), (view(f32, 1),))
    k.store(row, (one,), k.op("add", k.load(row, one), a))
    func = verify(k.func(), scalar=True)

    def vectors():
        data = np.arange(3 * N, dtype=np.float32).reshape((3, N) if planar else (N, 3))
        return data.T if planar else data

    make = lambda: ((vectors(), vectors() * 2), (np.zeros((N, 2), np.float32), np.ones((N, 2), np.float32)))
    found = same_on_all_widths(func, N, make)
    agrees_with_oracle(func, N, make, *found)
    assert (found[0] == vectors()).all() and (found[2] == 0).all()


def test_the_gradient_of_a_field():
    s = Struct("test.<locals>.S", (("scale", f32), ("x", view(f32, 1))))
    k = KernelBuilder((s, view(f32, 1)))
    scale, x, y = k.params
    i = k.tid()
    k.store(y, (i,), k.op("mul", scale, k.load(gradient(k, x), i)))
    data, grad = np.zeros(N, np.float32), np.arange(N, dtype=np.float32)
    make = lambda: ([2.0, (data, grad)], np.zeros(N, np.float32))
    (found,) = same_on_all_widths(verify(k.func(), scalar=True), N, make)
    assert (found == 2 * grad).all()


def test_gradients_of_arrays_that_memory_gave():
    """Each lane its own array; half of them have no gradient."""
    rows = view(view(f32, 1), 1)
    k = KernelBuilder((rows, view(f32, 1)))
    table, y = k.params
    i, zero = k.tid(), k.const(0, i32)
    v = k.load(table, i)
    there = k.b.one("has_grad", (v,), b1)

    def add():
        g = gradient(k, v)
        k.store(g, (zero,), k.op("add", k.load(g, zero), k.load(v, zero)))
        return []

    k.if_(there, add)
    k.store(y, (i,), k.select(there, k.const(1.0, f32), k.const(0.0, f32)))
    func = verify(k.func(), scalar=True)
    for width in (1, 4, 8, 16):
        data = rng.uniform(-1, 1, (N, 1)).astype(np.float32)
        grad = np.ones((N, 1), np.float32)
        packed = np.zeros((N, 5), np.int64)  # data, gradient, shape, stride, component stride
        packed[:, 0] = data.ctypes.data + 4 * np.arange(N)
        packed[::2, 1] = (grad.ctypes.data + 4 * np.arange(N))[::2]
        packed[:, 2:4] = 1, 4
        y = np.zeros(N, np.float32)
        entry = Entry(func, width)
        assert entry(N, packed_rows(packed), y) == 0
        even = np.arange(N) % 2 == 0
        assert (y == even).all()
        assert (grad[:, 0] == np.where(even, 1 + data[:, 0], 1)).all()


def packed_rows(packed):
    """The numbers of many views as an array of them: its shape and strides are those of the outer array."""
    return packed.view(np.dtype((np.void, 40))).reshape(N)


def test_foreign_updates_of_a_gradient_go_to_private_memory():
    """Sums to an address that all share, and copies for those that vary: the pointer is that of the gradient."""
    k = KernelBuilder((view(f32, 1), view(i32, 1)))
    x, where = k.params
    i, zero = k.tid(), k.const(0, i32)
    g = gradient(k, x)
    for at in (zero, k.load(where, i)):
        k.b.one("atomic", (g, at, k.cast(i, f32)), f32, op="add", apart=True)
    func = verify(k.func(), scalar=True)
    items = cpu.draft(func, cpu.host_target(8)).meta["atomics"]
    assert [(item["kind"], item["path"]) for item in items] == [("sum", [0, "grad"]), ("copy", [0, "grad"])]
    make = lambda: ((np.zeros(8, np.float32), np.zeros(8, np.float32)), (np.arange(N, dtype=np.int32) * 5) % 8)
    found = same_on_all_widths(func, N, make)
    assert (found[0] == 0).all()
    want = np.bincount(make()[1], np.arange(N), 8) + np.eye(8)[0] * np.arange(N).sum()
    assert np.allclose(found[1], want)
