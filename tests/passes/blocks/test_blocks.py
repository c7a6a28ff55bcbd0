"""Kernels on tiles as blocks of threads run them, by the oracle: it ends with an error where two threads meet in memory
between barriers, or come to different ones."""

import numpy as np
import pytest

import treadle as wp
from treadle.base.errors import InternalError
from treadle.codegen import oracle
from treadle.ir.read import read
from treadle.ir.verify import verify
from treadle.ir.walk import ops_of
from treadle.lang.compile import Options, translate
from treadle.passes.blocks import share_block

THREADS = 4


def programs(kernel, args, active=None, threads=THREADS):
    """The kernel, or its adjoint, for one thread, and for each of the threads of a block; None if it stays as it is."""
    _, types = kernel.bind(args)
    func = translate(kernel, types, Options(16, False, False, 1, active=active)).func
    shared = share_block(func, threads)
    return func, shared and verify(shared, scalar=True)


def names(func):
    return names_in(func.body)


def names_in(block):
    return [op.name for op in ops_of(block)]


def same_bits(pair, make, dim=1):
    """Both give the same bits in all arrays that ``make`` gives; the arrays."""
    found = []
    for func in pair:
        args = make()
        oracle.run(func, args, dim)
        found.append([a for pair in args for a in (pair if isinstance(pair, tuple) else (pair,))])
    for a, b in zip(*found, strict=True):
        assert a.tobytes() == b.tobytes()
    return found[0]


def array(*shape, grad=False, dtype=float):
    return wp.zeros(shape, dtype=dtype, requires_grad=grad)


def numbers(*shape):
    return (np.random.default_rng(len(shape)).normal(size=shape) / 4).astype("f4")


@wp.kernel
def mixed(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), sums: wp.array(dtype=float)):
    """Loads that reach over the edge, products, arithmetic, transposed parts, reductions, a choice of the whole block,
    loops around, updates, stores."""
    i = wp.tid()
    x = wp.tile_load(a, shape=(5, 8), offset=(i * 5, 0))
    total = wp.tile_zeros(shape=(5, 5), dtype=float)
    for k in range(2):
        y = wp.tile_load(a, shape=(8, 5), offset=(k * 4, k))
        wp.tile_matmul(x, y, total)
    total = wp.tile_map(wp.sin, total) + wp.tile_transpose(total) * 0.5
    if total[1, 2] > 0.0:
        total = total * 2.0
    wp.tile_store(b, total, offset=(i * 5, 1))
    rows = wp.tile_sum(total, axis=1)
    wp.tile_atomic_add(sums, rows, offset=i)


def test_a_block_gives_the_bits_of_one_thread():
    pair = programs(mixed, [array(7, 8), array(7, 5), array(4)])
    a, b, sums = same_bits(pair, lambda: [numbers(7, 8), np.zeros((7, 5), "f4"), np.zeros(4, "f4")])
    assert (b[:5, 1:] != 0).all() and (b[:, 0] == 0).all() and (sums != 0).all()
    assert names(pair[1]).count("barrier") < names(pair[1]).count("for")


@wp.kernel
def curve(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float)):
    i = wp.tid()
    x = wp.tile_load(a, shape=(5, 8), offset=(i * 5, 0))
    for _ in range(2):
        x = wp.tile_map(wp.sin, x) * x
    wp.tile_store(b, x, offset=(i * 5, 0))


def test_adjoints_take_from_their_tapes_what_they_put_there():
    pair = programs(curve, [array(5, 8, grad=True), array(5, 8, grad=True)], ("a", "b"))
    assert {"push", "pop", "record", "recall", "barrier"} <= set(names(pair[1]))
    zeros = np.zeros((5, 8), "f4")
    found = same_bits(pair, lambda: [(numbers(5, 8), zeros.copy()), (zeros.copy(), numbers(5, 8))])
    assert (found[1] != 0).all()


@wp.kernel
def factor(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), log: wp.array(dtype=float)):
    """Loops whose bounds depend on loops around them; memory that the kernel reads after it wrote to it."""
    i = wp.tid()
    x = wp.tile_load(a, shape=(7, 7), offset=(7 * i, 0))
    y = wp.tile_cholesky(x)
    wp.tile_store(b, y, offset=(7 * i, 0))
    log[i] = log[i] + b[7 * i, 0] * 2.0
    wp.tile_store(b, y * log[i], offset=(7 * i, 0))


def test_what_others_wait_for_the_first_thread_does():
    pair = programs(factor, [array(14, 7), array(14, 7), array(2)])
    half = numbers(7, 7)
    a = np.concatenate([half @ half.T + np.eye(7), np.eye(7)]).astype("f4")
    _, b, log = same_bits(pair, lambda: [a.copy(), np.zeros((14, 7), "f4"), np.ones(2, "f4")], dim=2)
    assert np.allclose(b[:7], np.linalg.cholesky(a[:7]) * log[0], atol=1e-5)


@wp.kernel
def extremes(x: wp.array(dtype=float), n: wp.array(dtype=int), out: wp.array(dtype=float), sums: wp.array(dtype=int)):
    t = wp.tile_load(x, shape=75)
    wp.tile_store(out, wp.tile_min(t), offset=0)
    wp.tile_store(out, wp.tile_max(t), offset=1)
    wp.tile_store(sums, wp.tile_sum(wp.tile_load(n, shape=75)))


def test_reductions_by_shuffles_of_ragged_runs():
    """Numbers that are equal and differ in their bits, and numbers that are none."""
    args = [array(75), array(75, dtype=int), array(2), array(1, dtype=int)]
    x, n = numbers(75), np.random.default_rng(1).integers(-(2**30), 2**30, 75).astype("i4")
    x[[70, 3, 44]] = [x.min(), np.nan, x.max()]
    x[x < 0] = -0.0  # the first of them is the least
    x[2] = 0.0
    for threads, exchanges in ((64, 15), (8, 9)):
        pair = programs(extremes, args, threads=threads)
        assert names(pair[1]).count("shuffle") == exchanges
        *_, out, sums = same_bits(pair, lambda: [x, n, np.ones(2, "f4"), np.zeros(1, "i4")])
        assert out[0] == 0 and out[1] == np.nanmax(x) and sums[0] == n.sum(dtype="i4")


@wp.kernel
def scattered(x: wp.array(dtype=float), out: wp.array2d(dtype=float)):
    """Loops of the user's: rounds that meet, that only seem to, that meet as bytes wrap around, and whose places a
    float tells."""
    t, u, v = wp.tile_load(x, shape=36), wp.tile_zeros(shape=36, dtype=float), wp.tile_zeros(shape=36, dtype=float)
    w = wp.tile_zeros(shape=36, dtype=float)
    for k in range(36):
        u[k // 2] += t[k]
    for k in range(36):
        v[(k * 7) % 36] = t[k] * 2.0
    for k in range(36):
        w[int(wp.uint8(k) * wp.uint8(8)) // 8] = t[k]
    for k in range(36):
        t[int(float(k) * 0.75)] += u[k]
    wp.tile_store(out[0], t)
    wp.tile_store(out[1], u)
    wp.tile_store(out[2], v)
    wp.tile_store(out[3], w)


def test_only_rounds_that_do_not_meet_are_divided():
    pair = programs(scattered, [array(36), array(4, 36)])
    (out,) = same_bits(pair, lambda: [numbers(36), np.zeros((4, 36), "f4")])[1:]
    assert np.allclose(out[1][:18], numbers(36).reshape(18, 2).sum(1)) and (out[2] != 0).all()
    assert (out[3] == np.concatenate([numbers(36)[[32, 33, 34, 35]], numbers(36)[4:32], np.zeros(4)])).all()
    alone = [op for op in ops_of(pair[1].body) if op.name == "if" and names_in(op.regions[0])[:1] == ["for"]]
    assert len(alone) == 3


@wp.kernel
def ordered(keys: wp.array(dtype=float), places: wp.array(dtype=int)):
    k, v = wp.tile_load(keys, shape=40), wp.tile_load(places, shape=40)
    wp.tile_sort(k, v)
    wp.tile_store(keys, k)
    wp.tile_store(places, v)


def test_what_is_mostly_one_after_the_other_stays_one_thread():
    assert programs(ordered, [array(40), array(40, dtype=int)], threads=64)[1] is None


SHARED = "%1: local<f32,1,(4)> = local blank=true shared=true type=!fixed<f32,(4)>\n %2: i32 = lane\n"


@pytest.mark.parametrize(
    "body",
    [
        f"{SHARED} %3: f32 = cast %2\n store %1, %2, %3\n %4: i32 = const value=1\n %5: i32 = bitxor %2, %4\n"
        " %6: f32 = load %1, %5",
        f"{SHARED} %3: i32 = const value=0\n %4: bool = eq %2, %3\n if %4 {{\n barrier\n yield\n }} {{\n yield\n }}\n"
        " barrier\n barrier",
    ],
    ids=["a read beside a write", "different barriers"],
)
def test_the_oracle_tells_what_barriers_miss(body):
    func = verify(read(f'kernel @0 "k" (%0: f32) threads=4 {{\n {body}\n yield\n}}'))
    with pytest.raises(InternalError, match="meets|different barriers"):
        oracle.run(func, [0.0])
