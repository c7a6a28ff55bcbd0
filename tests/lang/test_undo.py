"""The undo log by itself: what is saved when, and that swapping goes back and forth."""

import numpy as np
import pytest

import treadle as wp
from treadle.lang.plan import plan_of
from treadle.lang.undo import BLOCK, Log, _changed

pytestmark = pytest.mark.host  # the log looks on at programs of the CPU; tapes try it on every device


@wp.kernel
def copy_over(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i]


@wp.kernel
def send(x: wp.array(dtype=float), at: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    y[at[i]] = x[i]


def launch(log, kernel, dim, args):
    """A launch with ``log`` looking on."""
    _, types = kernel.bind(args)
    overload = kernel.overload(types)
    program = overload.variant((dim,)).program
    log.before(plan_of(kernel, overload, program), dim, args)
    program.run(args, (dim,))
    log.after()
    log.ops.append(None)


def sizes(log):
    return [(piece.position, piece.nbytes) for piece in log.saved]


def test_what_nobody_read_is_not_saved():
    log, x, y = Log(), wp.ones(8), wp.zeros(8)
    launch(log, copy_over, 8, [x, y])
    launch(log, copy_over, 8, [x, y])
    assert sizes(log) == []


def test_what_was_read_is_saved_once_and_only_as_far_as_it_is_written():
    log, x, y, z = Log(), wp.ones(8), wp.zeros(8), wp.zeros(8)
    launch(log, copy_over, 8, [y, z])
    launch(log, copy_over, 3, [x, y])
    launch(log, copy_over, 4, [x, y])
    assert sizes(log) == [(1, 12), (2, 4)]
    assert log.saved_bytes == 16


def test_views_of_one_allocation_are_told_apart_by_bytes():
    log, x, base = Log(), wp.ones(4), wp.zeros(12)
    launch(log, copy_over, 4, [base[:4], wp.zeros(4)])
    launch(log, copy_over, 4, [x, base[8:]])
    assert sizes(log) == []
    launch(log, copy_over, 4, [x, base[2:6]])
    assert sizes(log) == [(2, 8)]


def test_memory_that_came_as_an_address_may_be_any():
    log, x, base = Log(), wp.ones(4), wp.zeros(12)
    launch(log, copy_over, 4, [base[:4], wp.zeros(4)])
    launch(log, copy_over, 4, [x, wp.array(ptr=base.ptr + 8, shape=4, dtype=float)])
    assert sizes(log) == [(1, 8)]
    rows = np.zeros(16, np.float32)
    launch(log, copy_over, 4, [wp.array(rows[4:8], copy=False), wp.zeros(4)])
    launch(log, copy_over, 4, [x, wp.array(rows[2:6], copy=False)])
    assert sizes(log) == [(1, 8), (3, 8)]


def test_scattered_writes_keep_the_blocks_that_change():
    log, y = Log(), wp.ones(10_000)
    launch(log, copy_over, 10_000, [y, wp.zeros(10_000)])
    launch(log, send, 3, [wp.zeros(3), wp.array([5, 6, 9000], dtype=int), y])
    assert [n for _, n in sizes(log)] == [BLOCK, BLOCK]
    launch(log, send, 1, [wp.ones(1), wp.array([1], dtype=int), y])  # 1.0 was there: nothing changes
    assert len(log.saved) == 2


def test_swapping_goes_back_and_forth():
    log, y = Log(), wp.array(np.arange(8.0), dtype=float)
    states = [y.list()]
    for k in range(4):
        launch(log, copy_over, 8, [y, wp.zeros(8)])
        launch(log, copy_over, 5, [wp.full(5, 10.0 * k, dtype=float), y[k:]])
        states.append(y.list())
    assert len(log.saved) == 4
    for piece, state in zip(reversed(log.saved), reversed(states[:-1])):
        piece.swap()
        assert y.list() == state
    for piece, state in zip(log.saved, states[1:]):
        piece.swap()
        assert y.list() == state


@pytest.mark.parametrize("length", [0, 1, BLOCK, BLOCK + 1, 5 * BLOCK, 5 * BLOCK + 7])
def test_changed_blocks(length):
    rng = np.random.default_rng(length)
    before = rng.integers(0, 256, length, np.uint8)
    assert _changed(before.tobytes(), before.tobytes()) == []
    for at in {0, length // 2, length - 1} if length else ():
        after = before.copy()
        after[at] ^= 1
        first = at // BLOCK * BLOCK
        assert _changed(before.tobytes(), after.tobytes()) == [(first, min(first + BLOCK, length))]


@wp.kernel
def square_in_place(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] * x[i]


def planned(kernel, dim, args):
    _, types = kernel.bind(args)
    overload = kernel.overload(types)
    return plan_of(kernel, overload, overload.variant((dim,)).program)


@pytest.mark.parametrize("foreign", [False, True])
def test_a_launch_that_comes_again_saves_the_same_pieces(foreign):
    log, base = Log(), wp.full(64, 1.25, dtype=float)
    x = wp.array(ptr=base.ptr, shape=64, dtype=float) if foreign else base
    wanted = []
    for k in range(6):
        wanted.append(base.list())
        launch(log, square_in_place, 64, [x])
        assert sizes(log) == [(n, 256) for n in range(k + 1)]
    (known,) = log.steady.values()
    assert len(known) == 1
    for piece, state in zip(reversed(log.saved), reversed(wanted)):
        piece.swap()
        assert base.list() == state


def test_what_is_steady_is_looked_at_anew_when_anything_else_is_watched():
    log, x, y = Log(), wp.full(64, 1.25, dtype=float), wp.zeros(64)
    for _ in range(3):
        launch(log, square_in_place, 64, [x])
    launch(log, copy_over, 64, [x, y])
    launch(log, copy_over, 64, [y, wp.zeros(64)])
    launch(log, copy_over, 64, [x, y])
    launch(log, square_in_place, 32, [x])
    assert sizes(log) == [(0, 256), (1, 256), (2, 256), (5, 256), (6, 128)]


def test_launches_that_are_not_recorded_save_once():
    log, x = Log(), wp.full(64, 1.25, dtype=float)
    launch(log, copy_over, 64, [x, wp.zeros(64)])
    plan = planned(square_in_place, 64, [x])
    assert not log.far(plan, [x]) and log.far(plan, [wp.zeros(64)])
    for _ in range(3):
        log.before(plan, 64, [x], reading=False)
        log.ops.append(None)
    assert sizes(log) == [(1, 256)]


def test_planes_are_saved_as_planes():
    log, memory = Log(), np.arange(64, dtype=np.float32)
    x = wp.array(ptr=memory.ctypes.data, shape=(10, 3), strides=(4, 64), dtype=float, deleter=lambda *_: memory)
    launch(log, columns, 10, [x])
    launch(log, columns, 10, [x])
    before = memory.copy()
    assert sizes(log) == [(0, 80), (1, 80)]
    log.saved[1].swap()
    assert memory[16] == 26.0 and memory[32] == 42.0 and (memory[10:16] == before[10:16]).all()
    log.saved[0].swap()
    assert (memory == np.arange(64)).all()


@wp.kernel
def columns(x: wp.array2d(dtype=float)):
    i = wp.tid()
    x[i, 1] = x[i, 1] + x[i, 0] + 10.0
    x[i, 2] = x[i, 2] + 10.0


def test_what_two_arguments_of_one_launch_share_comes_back_however_often_it_is_launched():
    log, x = Log(), wp.array([1.0, 2.0, 3.0], dtype=float)
    contents = [x.numpy().copy()]
    for _ in range(4):
        launch(log, both, 3, [x, x])
        contents.append(x.numpy().copy())
    pieces = list(log.saved)
    for k in reversed(range(4)):
        while pieces and pieces[-1].position >= k:
            pieces.pop().swap()
        assert (x.numpy() == contents[k]).all()
    for piece in log.saved:
        piece.swap()
    assert (x.numpy() == contents[4]).all()


@wp.kernel
def both(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    a[i] = a[i] * a[i]
    b[i] = b[i] + 1.0
