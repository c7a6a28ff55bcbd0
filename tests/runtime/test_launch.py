"""Launches by way of Python: arguments, checks, faults, private sums and copies, and that workers change no bit."""

import threading

import numpy as np
import pytest

from tests.runtime import kernels
from treadle.base.config import config
from treadle.base.errors import IndexOutOfRange, LaunchError, LaunchTypeError
from treadle.runtime.array import array
from treadle.runtime.construct import empty, zeros
from treadle.runtime.launch import grain, normal_dims
from treadle.types.core import f32, i64, view
from treadle.types.records import SLOTS

pytestmark = pytest.mark.host  # workers, private sums and copies: what the CPU's programs are launched with

HEAVY = 1e6  # ns a thread: every launch is worth the workers


@pytest.fixture(params=[1, 2, 3, 7])
def workers(request):
    before = config.workers
    config.workers = request.param
    yield request.param
    config.workers = before


def test_a_launch_runs_each_thread_once(workers):
    run = kernels.visits(HEAVY)
    for size in (1, 63, 64, 65, 1000, 16384, 100_003):
        n, order = zeros(size, dtype=np.int64), zeros(size, dtype=np.int64)
        for _ in range(3):
            run.run([n, order], (size,))
        assert (n.numpy() == 3).all() and (order.numpy() == np.arange(size)).all()


def test_many_small_launches_lose_no_chunk(workers):
    run = kernels.visits(HEAVY)
    n, order = zeros(640, dtype=np.int64), zeros(640, dtype=np.int64)
    for _ in range(2000):
        run.run([n, order], (640,))
    assert (n.numpy() == 2000).all()


def test_launches_from_several_threads_at_once():
    run = kernels.visits(HEAVY)
    arrays = [(zeros(6400, dtype=np.int64), zeros(6400, dtype=np.int64)) for _ in range(4)]

    def go(n, order):
        for _ in range(200):
            run.run([n, order], (6400,))

    threads = [threading.Thread(target=go, args=a) for a in arrays]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all((n.numpy() == 200).all() for n, _ in arrays)


def test_partial_sums_have_the_same_bits_for_any_workers():
    x = array(np.random.default_rng(1).standard_normal(100_003).astype(np.float32))
    found = set()
    for weight in (1e-3, HEAVY):
        for n in (1, 2, 3, 7):
            config.workers = n
            out = zeros(1)
            out.fill_(3.0)
            kernels.total(weight).run([x, out], (x.size,))
            found.add(out.numpy().tobytes())
    config.workers = None
    assert len(found) == 1
    exact = 3.0 + x.numpy().astype(np.float64).sum()
    assert abs(np.frombuffer(found.pop(), np.float32)[0] - exact) < 1e-3


def test_partial_sums_follow_the_documented_tree():
    values = np.random.default_rng(2).standard_normal(1000).astype(np.float32)
    out = zeros(1)
    kernels.total().run([array(values), out], (1000,))
    sums = np.full((16, 64), -0.0, np.float32)  # 16 chunks of 64 threads
    for t, v in enumerate(values):
        sums[t // 64, t % 64] += v
    tree = sums[0]
    for other in sums[1:]:
        tree = tree + other
    while len(tree) > 1:
        tree = tree[: len(tree) // 2] + tree[len(tree) // 2 :]
    assert out.numpy()[0] == np.float32(0.0) + tree[0]


@pytest.mark.parametrize("bins", [3, 256, 50_000])
def test_private_copies_have_the_same_bits_for_any_workers(bins):
    rng, size = np.random.default_rng(3), 200_000
    where = array(rng.integers(0, bins, size).astype(np.int32))
    x = array(rng.standard_normal(size).astype(np.float32))
    found = set()
    for n in (1, 2, 3, 7):
        config.workers = n
        out = zeros(bins)
        kernels.histogram(HEAVY).run([where, x, out], (size,))
        found.add(out.numpy().tobytes())
    config.workers = None
    assert len(found) == 1
    exact = np.bincount(where.numpy(), x.numpy().astype(np.float64), bins)
    assert np.abs(np.frombuffer(found.pop(), np.float32) - exact).max() < 1e-2


@pytest.mark.parametrize("size", [100, 5000, 200_000])
def test_sums_and_copies_side_by_side(workers, size):
    where = array((np.arange(size) % 100).astype(np.int32))
    out, total = zeros(100), zeros(1)
    kernels.histogram_and_total(HEAVY).run([where, out, total], (size,))
    assert out.list() == np.bincount(where.numpy(), minlength=100).tolist() and total.list() == [size]


def test_copies_of_a_strided_target_leave_its_gaps_alone():
    rng, size = np.random.default_rng(4), 100_000
    where = array(rng.integers(0, 100, size).astype(np.int32))
    x = array(np.ones(size, np.float32))
    whole = array(np.full(300, 0x7FA00001, np.uint32)).view(float)  # signalling NaNs: an addition would change them
    target = whole[::3]
    target.zero_()
    run = kernels.histogram(HEAVY, view(f32, 1, (None,)))
    run.run([where, x, target], (size,))
    assert (target.numpy() == np.bincount(where.numpy(), minlength=100)).all()
    bits = whole.numpy().view(np.uint32)
    assert (bits[1::3] == 0x7FA00001).all() and (bits[2::3] == 0x7FA00001).all()


@pytest.mark.parametrize(
    ("size", "work", "bins", "copies"),
    [
        (1024, 10.0, 10, 1),  # less work than what is cut at all
        (1024, 20.0, 10, 4),  # 20 microseconds: five for a chunk
        (1024, 100.0, 10, 16),
        (4096, 20.0, 4096, 2),  # to fill and merge four copies would take longer than a chunk
        (4096, 20.0, 400_000, 1),
    ],
)
def test_how_many_copies_there_are_follows_from_work_and_target(workers, size, work, bins, copies):
    rng = np.random.default_rng(5)
    where, x = rng.integers(0, bins, size).astype(np.int32), rng.standard_normal(size).astype(np.float32)
    chunk, expected = -(-(-(-size // copies)) // 64) * 64, np.zeros(bins, np.float32)
    np.add.at(expected, where[:chunk], x[:chunk])
    for begin in range(chunk, size, chunk):
        part = np.zeros(bins, np.float32)
        np.add.at(part, where[begin : begin + chunk], x[begin : begin + chunk])
        expected += part
    out = zeros(bins)
    kernels.histogram(HEAVY, work=work).run([array(where), array(x), out], (size,))
    assert (out.numpy() == expected).all()


def test_copies_reach_backwards_for_negative_strides():
    size = 100_000
    where = array((np.arange(size) % 100).astype(np.int32))
    target = zeros(100)[::-1]
    kernels.histogram(HEAVY, view(f32, 1, (None,))).run([where, array(np.ones(size, np.float32)), target], (size,))
    assert (target.numpy() == 1000).all()


@pytest.mark.parametrize(("size", "length"), [(100, 3), (5000, 100), (60_000, 1000)])
def test_slots_have_the_same_bits_for_any_workers(size, length):
    x, found = np.random.default_rng(6).standard_normal(size).astype(np.float32), set()
    for weight in (1e-3, HEAVY):
        for n in (1, 2, 3, 7):
            config.workers = n
            out = zeros(length)
            kernels.slotted(weight).run([array(x), out], (size,))
            found.add(out.numpy().tobytes())
    config.workers = None
    assert len(found) == 1
    exact = np.bincount(np.arange(size) % length).astype(float)
    exact[0] += x.astype(np.float64).sum()
    assert np.abs(np.frombuffer(found.pop(), np.float32) - exact).max() < 2e-3


def test_slots_follow_the_documented_tree():
    x, out = np.random.default_rng(7).standard_normal(256).astype(np.float32), zeros(8)
    kernels.slotted(rounds=2).run([array(x), out], (256,))  # four chunks of 64 threads
    sums = np.full((4, SLOTS), -0.0, np.float32)
    for i, v in enumerate(x):
        sums[i // 64, i % SLOTS] += v
        sums[i // 64, i % SLOTS] += np.float32(i % 8 == 0)
    tree = sums[0] + sums[1] + sums[2] + sums[3]
    while len(tree) > 1:
        tree = tree[: len(tree) // 2] + tree[len(tree) // 2 :]
    assert out.numpy()[0] == tree[0] and out.list()[1:] == [32.0] * 7


@pytest.mark.parametrize(("size", "length", "rounds"), [(100, 300, 2), (100, 200, 1), (2_000_000, 2_000_000, 1000)])
def test_there_are_no_slots_for_few_updates_or_large_targets(size, length, rounds):
    """The kernel then leaves ``x`` out."""
    out = zeros(length)
    kernels.slotted(HEAVY, rounds).run([array(np.ones(size, np.float32)), out], (size,))
    assert (out.numpy() == np.bincount(np.arange(size) % length, minlength=length)).all()


def test_slots_of_strided_targets_leave_gaps_alone_and_reach_backwards():
    x, size = array(np.ones(10_000, np.float32)), 10_000
    whole = array(np.full(300, 0x7FA00001, np.uint32)).view(float)
    forward, back = whole[::3], zeros(100)[::-1]
    forward.zero_()
    for target in (forward, back):
        kernels.slotted(HEAVY, out=view(f32, 1, (None,))).run([x, target], (size,))
        assert target.list() == [size + 100.0] + [100.0] * 99
    bits = whole.numpy().view(np.uint32)
    assert (bits[1::3] == 0x7FA00001).all() and (bits[2::3] == 0x7FA00001).all()


def test_a_target_as_large_as_the_launch_is_updated_in_place_in_thread_order():
    size = 1000
    where = array((np.arange(size) % 10).astype(np.int32))
    x = np.random.default_rng(5).standard_normal(size).astype(np.float32)
    out = zeros(10_000)
    kernels.histogram(HEAVY).run([where, array(x), out], (size,))
    expected = np.zeros(10, np.float32)
    for i in range(size):
        expected[i % 10] += x[i]
    assert (out.numpy()[:10] == expected).all()


def drawn(run, size, n=None):
    """Counters, slots and visits of counting passes after ``run``; the first two are what thread order gives."""
    n = array(np.array([100, 1000]), dtype=np.int64) if n is None else n
    before = n.numpy().copy()
    slot, seen = zeros(size, dtype=np.int64), zeros(size, dtype=np.int64)
    run.run([n, slot, seen], (size,))
    for k in range(2):
        mine = np.arange(size)[k::2]
        assert (slot.numpy()[k::2] == before[k] + mine.cumsum() - mine).all() and n.numpy()[k] == before[k] + mine.sum()
    return n.numpy(), slot.numpy(), seen.numpy()


@pytest.mark.parametrize("rounds", [1, 2])
def test_counters_come_in_thread_order(workers, rounds):
    run = kernels.counters(HEAVY, rounds=rounds)
    for size in (1, 63, 1000, 19_999, 20_000, 100_003):
        *_, seen = drawn(run, size)
        counted = workers > 1 and size >= 20_000
        assert (seen == (rounds if counted else 0)).all()


def test_counting_needs_workers_enough_to_pay(workers):
    """As long a pass as the run itself: two workers would need all the time that one needs."""
    *_, seen = drawn(kernels.counters(HEAVY, HEAVY), 20_000)
    assert (seen == (workers > 2)).all()
    *_, seen = drawn(kernels.counters(1e-3), 9000)  # less work than the workers are worth
    assert (seen == 0).all()


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_pass_that_fails_leaves_the_launch_to_thread_order(workers, rounds):
    """The run itself does not fail here, so that all it does can be looked at."""
    *_, seen = drawn(kernels.counters(HEAVY, rounds=rounds, fails=9999), 20_000)
    assert (seen[9999] == rounds) == (workers > 1)


def test_counters_with_gaps_leave_them_alone(workers):
    whole = array(np.array([[5, 7], [6, 8]]), dtype=np.int64)
    n, _, seen = drawn(kernels.counters(HEAVY, n=view(i64, 1, (None,))), 20_000, whole[:, 0])
    assert (whole.numpy()[:, 1] == [7, 8]).all() and (seen == (workers > 1)).all()
    # in two rounds the second pass would have to put gaps back
    *_, seen = drawn(kernels.counters(HEAVY, n=view(i64, 1, (None,)), rounds=2), 20_000, whole[:, 0])
    assert (whole.numpy()[:, 1] == [7, 8]).all() and (seen == 0).all()


def test_nothing_is_counted_where_arrays_lie_over_each_other(workers):
    memory = zeros(20_002, dtype=np.int64)
    run, seen = kernels.counters(HEAVY), zeros(20_000, dtype=np.int64)
    run.run([memory[:2], memory[1:20_001], seen], (20_000,))
    assert (seen.numpy() == 0).all()
    run.run([memory[:2], memory[2:], seen], (20_000,))
    assert (seen.numpy() == (workers > 1)).all()


def test_the_fault_of_the_smallest_thread_is_raised(workers):
    for bad in (0, 70, 5000):
        with pytest.raises(IndexOutOfRange, match=rf"index 7 .*array 'a' of shape \(5,\).*thread {bad}\b"):
            kernels.faulty(bad, HEAVY).run([], (10_000,))


def test_a_fault_names_the_place_in_the_grid():
    with pytest.raises(IndexOutOfRange, match=r"thread \(1, 2\)"):
        kernels.faulty(12).run([], (3, 10))


def test_an_own_index_beyond_the_array_is_found_before_anything_runs():
    x, y = array(np.ones(8, np.float32)), zeros(7)
    with pytest.raises(IndexOutOfRange, match=r"index 7 .*dimension 0 of array 'y' of shape \(7,\).*thread 7"):
        kernels.saxpy().run([x, y, 1.0], (8,))
    assert not y.numpy().any()
    kernels.saxpy().run([x, y, 1.0], (7,))
    assert y.numpy().all()


def test_arguments_are_checked_by_name():
    run = kernels.saxpy()
    with pytest.raises(LaunchTypeError, match="kernel saxpy: argument 'a': expected float32, got str"):
        run.run([zeros(3), zeros(3), "2"], (3,))
    with pytest.raises(LaunchError, match="takes 3 arguments, 2 were given"):
        run.run([zeros(3), zeros(3)], (3,))


def test_numbers_of_all_kinds_are_taken():
    x, y = array(np.ones(3, np.float32)), zeros(3)
    for a in (1, 1.0, np.float32(1), np.int64(1), True):
        kernels.saxpy().run([x, y, a], (3,))
    assert (y.numpy() == 5).all()


def test_an_empty_launch_does_nothing():
    y = zeros(3)
    kernels.saxpy().run([zeros(3), y, 1.0], (0,))
    kernels.saxpy().run([None, None, 1.0], (0,))


@pytest.mark.parametrize("dim", [-1, (1, 2, 3, 4, 5), 1.5, "x", (2, -1)])
def test_dims_that_are_no_grid(dim):
    with pytest.raises((LaunchError, LaunchTypeError)):
        normal_dims(dim)


def test_dims():
    assert normal_dims(5) == (5,) and normal_dims([2, 3]) == (2, 3) and normal_dims(np.int32(4)) == (4,)
    assert normal_dims(()) == (1,) and normal_dims(2**40) == (2**40,)


def test_a_thread_may_write_memory_that_nobody_touched():
    n = 3_000_000
    y = empty(n)
    y.zero_()
    kernels.saxpy().run([array(np.arange(n, dtype=np.float32)), y, 2.0], (n,))
    assert (y.numpy() == 2 * np.arange(n, dtype=np.float32)).all()


def test_heavy_threads_are_handed_out_in_small_chunks():
    """A gang at least; 64 threads where they are light, or where sums depend on the chunks."""
    assert grain({"width": 8}, 1000.0) == 8 and grain({"width": 1}, 1e6) == 1
    assert grain({"width": 8}, 100.0) == 32 and grain({"width": 8}, 0.5) == 64
    assert grain({"width": 8, "atomics": [{}]}, 1e6) == 64
