"""Whole kernels and their adjoints as a GPU runs them (see ``gpu.py``), beside what the CPU gives."""

import numpy as np
import pytest

import treadle as wp
from tests import ptx_guard
from tests.codegen import gpu
from treadle.codegen import nvptx
from treadle.codegen.nvptx import merging
from treadle.lang.compile import Options, translate


@pytest.fixture(autouse=True)
def few_threads(monkeypatch):
    monkeypatch.setattr(merging, "MERGERS", 8)
    monkeypatch.setattr(nvptx, "FOLDERS", 2)


def on_gpu(kernel, args, active=None, **options) -> gpu.Kernel:
    """``kernel``, or its adjoint for the arrays ``active``, for a GPU of small blocks."""
    _, types = kernel.bind(args)
    made = translate(kernel, types, Options(16, False, False, 1, active=active))
    return gpu.Kernel(made.func, nvptx.Options(block=4, **options))


def plain(args):
    """Arguments as the GPU reads them: memory of arrays, with that of their gradients."""
    return [
        (a.numpy(), a.grad.numpy()) if isinstance(a, wp.array) and a.requires_grad
        else a.numpy() if isinstance(a, wp.array) else a
        for a in args
    ]  # fmt: skip


@wp.func
def step(x: float, a: float):
    y = x - (x * x - a) / (2.0 * x)
    if y > 1.2:
        y = y + 0.1 * x * a
    return y


@wp.kernel
def loops(x: wp.array(dtype=float), rounds: wp.array(dtype=int), y: wp.array(dtype=wp.vec2)):
    """Loops whose length only the data knows, in loops, with values that only the tape has."""
    i = wp.tid()
    s = x[i]
    t = float(0.0)
    for k in range(rounds[i]):
        s = 0.5 * s + 0.5
        j = int(0)
        while float(j) < s * 3.0:
            t = 0.5 * t + 0.1 * s * s + 0.01 * float(k)
            s = step(s, 1.0 + 0.1 * t)
            j += 1
    y[i] = wp.vec2(s, t)


def test_adjoints_with_a_tape():
    """In scratch memory; in memory of the heap, where nobody knew how much is needed; and after that in scratch."""
    n = 21
    draw = np.random.default_rng(3)
    args = [
        wp.array(draw.uniform(0.5, 2, n).astype("f4"), requires_grad=True),
        wp.array(draw.integers(0, 6, n).astype("i4")),
        wp.zeros(n, dtype=wp.vec2, requires_grad=True),
    ]
    with wp.Tape() as tape:
        wp.launch(loops, n, args[:2], args[2:])
    seed = draw.normal(size=(n, 2)).astype("f4")
    tape.backward(grads={args[2]: wp.array(seed, dtype=wp.vec2)})
    expected = args[0].grad.numpy().copy()
    assert np.isfinite(expected).all() and (expected != 0).any()

    kernel = on_gpu(loops, args, ("x", "y"))
    assert kernel.meta["heap"] and [one["per"] for one in kernel.meta["scratch"]][:2] == ["host", "thread"]
    for first in (64, 4, 4):
        before = int(kernel.host[0][0]) if kernel.host else 0
        kernel.meta["scratch"][1]["first"] = first
        args[0].grad.zero_()
        args[2].grad.assign(wp.array(seed, dtype=wp.vec2))
        assert kernel(n, *plain(args)) == 0
        assert args[0].grad.numpy().tobytes() == expected.tobytes()
        assert (kernel.host[0][0] > before) == (first == 4 and before == 0)


@wp.kernel
def gather(x: wp.array(dtype=wp.vec3), where: wp.array(dtype=int), loss: wp.array(dtype=float)):
    i = wp.tid()
    v = x[where[i]]
    wp.atomic_add(loss, 0, wp.dot(v, v) * float(i))


def test_adjoints_of_gathers_add_exactly():
    n, m = 50, 7
    draw = np.random.default_rng(4)
    args = [
        wp.array(draw.normal(size=(m, 3)).astype("f4"), dtype=wp.vec3, requires_grad=True),
        wp.array(draw.integers(0, m, n).astype("i4")),
        wp.zeros(1, dtype=float, requires_grad=True),
    ]
    args[2].grad.fill_(1.0)
    on_gpu(gather, args, ("x", "loss"))(n, *plain(args))
    x, where = args[0].numpy(), args[1].numpy()
    # One factor of the product is rounded in the kernel; what is added is float32.
    parts = np.zeros((m, 3))
    for i in range(n):
        parts[where[i]] += (np.float32(i) * x[where[i]]).astype("f4").astype("f8") * 2
    assert np.allclose(args[0].grad.numpy(), parts, rtol=1e-6)
    on_gpu(gather, args)(n, *plain(args))
    assert np.isclose(args[2].numpy()[0], sum(i * np.dot(x[w], x[w]) for i, w in enumerate(where)), rtol=1e-5)


@wp.kernel
def grid(a: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    m = wp.mat33()
    for k in range(3):
        m[k, (i + k) % 3] = a[i, j] + float(k)
    out[i, j] = wp.determinant(m) + wp.svd3(m)[1][0]


def test_grids_of_several_dimensions():
    a = wp.array(np.random.default_rng(5).normal(size=(5, 7)).astype("f4"))
    expected, found = wp.zeros((5, 7), dtype=float), wp.zeros((5, 7), dtype=float)
    wp.launch(grid, (5, 7), [a, expected])
    kernel = on_gpu(grid, [a, found])
    assert kernel((5, 7), *plain([a, found])) == 0
    assert found.numpy().tobytes() == expected.numpy().tobytes()


@wp.kernel
def shared(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), least: wp.array(dtype=float)):
    i = wp.tid()
    x = wp.tile_load(a, shape=(8, 8), offset=(8 * i, 0))
    y = wp.tile_zeros(shape=(8, 8), dtype=float)
    wp.tile_matmul(x, wp.tile_transpose(x), y)
    wp.tile_store(b, wp.tile_map(wp.sin, y), offset=(8 * i, 0))
    wp.tile_store(least, wp.tile_min(y), offset=i)


def test_blocks_that_share_tiles():
    """Barriers, shuffles and shared memory; two blocks for three tiles."""
    a = wp.array(np.random.default_rng(6).normal(size=(24, 8)).astype("f4"))
    expected, found = [[wp.zeros((24, 8), dtype=float), wp.zeros(3, dtype=float)] for _ in range(2)]
    wp.launch_tiled(shared, dim=3, inputs=[a, *expected], block_dim=8)
    _, types = shared.bind([a, *found])
    func = translate(shared, types, Options(16, False, False, 1, arch=75)).func
    kernel = gpu.Kernel(func, nvptx.Options(block=8), resident=2)
    (launched,) = kernel.meta["passes"]
    assert launched["grid"] == "blocks" and launched["shared"] > 1000 and "shfl.sync.bfly" in kernel.draft.text
    assert kernel(3, *plain([a, *found])) == 0
    for x, y in zip(expected, found, strict=True):
        assert x.numpy().tobytes() == y.numpy().tobytes()
    ptx_guard.assemble_too("shared", 75, nvptx.compile_text(kernel.draft.text, kernel.draft.target))
