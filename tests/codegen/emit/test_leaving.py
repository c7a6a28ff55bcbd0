"""Gangs that leave, and updates that go on from what the lane before left: all widths do what threads in order do."""

import numpy as np
import pytest

import treadle as wp

N, THREADS = 23, 1003


@wp.kernel
def springs(
    x: wp.array(dtype=wp.vec3),
    mass: wp.array(dtype=float),
    first: wp.array(dtype=int),
    second: wp.array(dtype=int),
    f: wp.array(dtype=wp.vec3),
    seen: wp.array(dtype=int),
):
    t = wp.tid()
    i = first[t]
    j = second[t]
    d = (x[j] + x[i]) * mass[i]
    wp.atomic_add(f, i, d)
    wp.atomic_sub(f, j, d)
    seen[t] = seen[t] + 1


def lists(kind: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    first, second = np.sort(rng.integers(0, N, THREADS)), rng.integers(0, N, THREADS)
    if kind == "by second":
        first, second = second, first
    if kind == "alike":
        second = np.where(rng.random(THREADS) < 0.5, first, np.roll(first, 1))
    if kind == "from the end":  # in some gangs, and in the threads that fill none
        first, second = (np.where(rng.random(THREADS) < 0.02, a - N, a) for a in (first, second))
        first[-1] = -1
    return first.astype(np.int32), second.astype(np.int32)


@pytest.mark.parametrize("width", [1, 8, 16])
def test_all_widths_do_what_threads_in_order_do(width, monkeypatch):
    monkeypatch.setattr(wp.config, "gang_width", width)
    rng = np.random.default_rng(4)
    x = rng.normal(size=(N, 3)).astype(np.float32)
    mass = rng.uniform(1.0, 2.0, 3 * N).astype(np.float32)  # a longer array: -1 is another element there
    for kind in ("by first", "by second", "alike", "from the end"):
        first, second = lists(kind)
        want = np.zeros((N, 3), np.float32)
        for i, j in zip(first, second, strict=True):
            d = (x[j] + x[i]) * mass[i]
            want[i] += d
            want[j] -= d
        f, seen = wp.zeros(N, dtype=wp.vec3), wp.zeros(THREADS, dtype=int)
        args = [wp.array(x, dtype=wp.vec3), wp.array(mass), wp.array(first), wp.array(second), f, seen]
        wp.launch(springs, dim=THREADS, inputs=args)
        assert np.array_equal(f.numpy(), want), kind
        assert (seen.numpy() == 1).all(), kind


@wp.kernel
def seats(
    index: wp.array(dtype=int), x: wp.array(dtype=float), counter: wp.array(dtype=int), at: wp.array(dtype=float)
):  # fmt: skip
    t = wp.tid()
    value = x[index[t]]
    for _ in range(t % 3):
        place = wp.atomic_add(counter, 0, 1)
        at[place] = value


@pytest.mark.parametrize("width", [1, 8])
def test_a_gang_that_has_drawn_from_counters_stays(width, monkeypatch):
    monkeypatch.setattr(wp.config, "gang_width", width)
    index = np.random.default_rng(5).integers(0, N, 40).astype(np.int32)
    index[[3, 17, 39]] = -1
    x = np.arange(N, dtype=np.float32)
    want = np.repeat(x[index], np.arange(40) % 3)
    counter, at = wp.zeros(1, dtype=int), wp.zeros(60, dtype=float)
    wp.launch(seats, dim=40, inputs=[wp.array(index), wp.array(x), counter, at])
    assert counter.list() == [len(want)] and np.array_equal(at.numpy()[: len(want)], want)
