"""Kernels whose body is written once are compiled for the gangs that a launch has: full ones, few threads, any."""

import numpy as np
import pytest

import treadle as wp
from treadle.lang.targets import native_width

pytestmark = pytest.mark.host


@wp.kernel
def settle(x: wp.array(dtype=float), push: wp.array2d(dtype=float), rounds: int):
    i = wp.tid()
    y = x[i]
    k = int(0)
    while k < rounds:
        y = y * 0.99 + wp.sin(y) + push[i, k % push.shape[1]]
        if y > 2.0:
            y = y - 1.5 * wp.exp(-y)
        k = k + 1
    x[i] = y


@wp.kernel
def double(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = 2.0 * x[i]


def settled(count: int) -> np.ndarray:
    x = wp.array(np.linspace(0, 1, 64, dtype=np.float32)[:count].copy())
    push = wp.array(np.full((count, 5), 0.01, np.float32))
    wp.launch(settle, dim=count, inputs=[x, push, 20])
    return x.numpy()


def fills(kernel: wp.Kernel) -> list[str]:
    return sorted(options.fill for overload in kernel.overloads.values() for options in overload.variants)


def test_bits_do_not_depend_on_how_gangs_are_filled():
    whole = settled(64)
    for count in (1, 2, 3, 8, 9, 16, 63, 64, 61, 2, 8):  # again and again: the native launcher knows all of them
        assert (settled(count) == whole[:count]).all(), count
    assert fills(settle) == ["", "few", "full", "one"]


def test_full_gangs_are_for_their_grids_alone():
    settled(64)
    (overload,) = settle.overloads.values()
    program = overload.variant((64,)).program
    width = program.entry.meta["width"]
    assert program.entry.meta["full"] and program.last_bits == width - 1
    assert program.takes((width,)) and not program.takes((width + 1,))


def test_gangs_of_several_vectors_are_not_taken_for_full_ones():
    @wp.kernel
    def draw(drawn: wp.array(dtype=float), rounds: wp.array(dtype=int)):
        i = wp.tid()
        state = wp.rand_init(5, i)
        total = float(0.0)
        for _ in range(rounds[i]):
            total += wp.randf(state)
        if i % 2 == 0:
            total += wp.randf(state)
        drawn[i] = total + wp.randf(state)

    count = native_width()
    drawn = wp.zeros(8 * count, dtype=float)
    wp.launch(draw, dim=count, inputs=[drawn, wp.full(8 * count, 3, dtype=int)])
    (overload,) = draw.overloads.values()
    meta = overload.variant((count,)).program.entry.meta
    assert meta["once"] and (meta["width"] > count or count == 1) and not meta["full"]
    assert (drawn.numpy()[:count] > 0).all() and not drawn.numpy()[count:].any()


def test_small_bodies_are_for_any_grid():
    for count in (64, 3, 1):
        x = wp.ones(count, dtype=float)
        wp.launch(double, dim=count, inputs=[x])
        assert (x.numpy() == 2).all()
    assert fills(double) == [""]


def test_what_is_loaded_ahead_is_for_any_grid():
    @wp.kernel(module="unique")
    def ahead(x: wp.array(dtype=float), rounds: int):
        i = wp.tid()
        y = x[i]
        for _ in range(rounds):
            if y > 0.5:
                y = wp.sin(y * 3.0)
            else:
                y = wp.exp(-y)
        x[i] = y

    wp.load_module(ahead.module)
    x = wp.zeros(32, dtype=float)
    wp.launch(ahead, dim=32, inputs=[x, 3])
    assert fills(ahead) == [""]


def test_several_vectors_a_gang_where_the_grid_fills_them():
    @wp.kernel(module="unique", gang_vectors=2)
    def running_sums(x: wp.array2d(dtype=float), sums: wp.array2d(dtype=float)):
        i = wp.tid()
        total = float(0.0)
        for k in range(x.shape[1]):
            total = total + x[i, k]
            sums[i, k] = total

    native = native_width()
    for count in (2 * native, 2 * native + 1, native, 1, 6 * native):
        x = wp.array(np.arange(count * 5, dtype=np.float32).reshape(count, 5))
        sums = wp.zeros((count, 5), dtype=float)
        wp.launch(running_sums, dim=count, inputs=[x, sums])
        assert (sums.numpy() == np.cumsum(x.numpy(), axis=1)).all(), count
    (overload,) = running_sums.overloads.values()
    widths = [overload.variant((count,)).options.width for count in (native, 2 * native, 2 * native + 1)]
    assert widths == [native, 2 * native, native]
