"""Blocks of threads on a CPU: one each, or as many as a launch asks for where that is enabled."""

import numpy as np
import pytest

import treadle as wp

pytestmark = pytest.mark.host


@wp.func
def here(x: int):
    return 1000 * wp.block_dim() + x


@wp.kernel
def note(out: wp.array(dtype=int)):
    i = wp.tid()
    out[i] = here(i)


@wp.kernel
def scale(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * float(wp.block_dim())


@wp.kernel
def count(n: wp.array(dtype=int)):
    wp.atomic_add(n, 0, 1)


@wp.kernel
def sums(a: wp.array2d(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    wp.tile_store(out, wp.tile_sum(wp.tile_load(a[i], shape=4)), offset=i)


@pytest.fixture
def enabled(monkeypatch):
    monkeypatch.setattr(wp.config, "enable_cpu_blocks", True)


def blocks(block_dim):
    out = wp.zeros(70, dtype=int)
    wp.launch(note, dim=70, inputs=[out], block_dim=block_dim)
    rows = out.numpy() - np.arange(70)
    assert (rows == rows[0]).all()
    return rows[0] // 1000


def test_a_block_is_one_thread():
    assert [blocks(n) for n in (None, 1, 64)] == [1, 1, 1]


def test_blocks_as_large_as_asked_for(enabled):
    assert [blocks(n) for n in (None, 0, 1, 2, 64, 2)] == [1, 1, 1, 2, 64, 2]
    note.forget()
    assert blocks(64) == 64


def test_what_was_recorded_keeps_its_blocks(enabled):
    x, y = wp.array([1.0, 2.0], dtype=float, requires_grad=True), wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(scale, dim=2, inputs=[x, y], block_dim=4)
    command = wp.launch(scale, dim=2, inputs=[x, y], block_dim=8, record_cmd=True)
    wp.config.enable_cpu_blocks = False
    tape.backward(grads={y: wp.array([1.0, 1.0], dtype=float)})
    assert y.list() == [4.0, 8.0] and x.grad.list() == [4.0, 4.0]
    command.launch()
    assert y.list() == [8.0, 16.0] and command.block_dim == 8


@pytest.mark.parametrize(("enable", "threads"), [(False, 6), (True, 30)])
def test_tiled_launches_start_whole_blocks(enable, threads, monkeypatch):
    monkeypatch.setattr(wp.config, "enable_cpu_blocks", enable)
    n = wp.zeros(1, dtype=int)
    wp.launch_tiled(count, dim=[2, 3], inputs=[n], block_dim=5)
    assert n.list() == [threads]


def test_tiles_need_blocks_of_one_thread(enabled):
    args = [wp.ones((2, 4), dtype=float), wp.zeros(2, dtype=float)]
    with pytest.raises(TypeError, match="tiles are worked on by blocks of one thread on a CPU"):
        wp.launch_tiled(sums, dim=2, inputs=args, block_dim=4)
    wp.launch_tiled(sums, dim=2, inputs=args, block_dim=1)
    assert args[1].list() == [4.0, 4.0]


def test_too_large_a_block():
    for run in (wp.launch, wp.launch_tiled):
        with pytest.raises(ValueError, match="at most 1024 on CPU, not 1025"):
            run(count, dim=1, inputs=[wp.zeros(1, dtype=int)], block_dim=1025)


def test_modules_are_loaded_for_blocks(enabled):
    made = wp.Module("test_modules_are_loaded_for_blocks")

    @wp.kernel(module=made)
    def one(n: wp.array(dtype=int)):
        n[0] = wp.block_dim()

    made.load(block_dim=4)
    assert [*made.execs] == [(None, 4)]
    wp.force_load(modules=[made])  # no other size is asked for
    assert [*made.execs] == [(None, 4)]
    wp.config.enable_cpu_blocks = False
    wp.load_module(made, block_dim=4)
    assert [*made.execs] == [(None, 1), (None, 4)]
    with pytest.raises(ValueError, match="at most 1024 on CPU"):
        wp.force_load(modules=[made], block_dim=1025)
