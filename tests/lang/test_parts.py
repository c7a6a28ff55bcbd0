"""Boxes of indices, and the bytes they hold."""

import itertools

import numpy as np

import treadle as wp
from treadle.lang.parts import joined, part, whole
from treadle.mujoco.planes import planar


def test_boxes_that_touch_become_one():
    columns = [((0, 8), (c, c + 1)) for c in (3, 1, 0, 2)]
    assert joined(columns) == [((0, 8), (0, 4))]
    assert joined([*columns, *columns, ((0, 8), (9, 10))]) == [((0, 8), (0, 4)), ((0, 8), (9, 10))]
    cells = [((i, i + 1), (j, j + 1), (0, 5)) for i in range(3) for j in range(3)]
    assert joined(cells) == [((0, 3), (0, 3), (0, 5))]
    assert joined([((0, 4),), ((2, 6),)]) == [((0, 6),)]
    assert len(joined([((0, 1), (0, 1)), ((1, 2), (1, 2))])) == 2


def test_joined_boxes_hold_the_same_elements():
    rng = np.random.default_rng(3)
    for _ in range(200):
        boxes = [tuple((int(low), int(low + n)) for low, n in zip(rng.integers(0, 4, 3), rng.integers(1, 3, 3)))
                 for _ in range(rng.integers(1, 6))]  # fmt: skip

        def held(boxes):
            return {at for box in boxes for at in itertools.product(*[range(*ends) for ends in box])}

        assert held(joined(boxes)) == held(boxes)


def test_bytes_of_boxes():
    a = wp.zeros((4, 6), dtype=float)
    assert part(a, ((1, 3), (0, 6))) == (a.ptr + 24, a.ptr + 72, None)
    low, high, runs = part(a, ((0, 4), (2, 4)))
    assert (low, high) == (a.ptr + 8, a.ptr + 88) and runs.rows == [(a.ptr + 8, 8, 4, 24)]
    assert whole(a.transpose())[2] is None and whole(a[::-1])[:2] == (a.ptr, a.ptr + 96)


def test_bytes_of_planes():
    a = planar(100, (3,), wp.vec3, 3, 4)
    step = a.component_stride
    assert whole(a)[2].rows == [(a.ptr, 400, 9, step)]
    assert part(a, ((0, 100), (1, 2)))[2].rows == [(a.ptr + 3 * step, 400, 3, step)]
