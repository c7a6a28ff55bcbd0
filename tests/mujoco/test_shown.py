"""Arrays that somebody has seen: whether they hold something else now."""

import numpy as np

import treadle as wp
from treadle.mujoco.shown import Shown


class Far:
    """An array in memory that the host sees copies of."""

    ptr = 0

    def __init__(self, values):
        self.values = np.array(values)

    def numpy(self):
        return self.values.copy()


def test_an_array_that_moves_between_memories_is_looked_at_where_it_is():
    shown, near, far = Shown(), wp.array([1, 2], dtype=int, device="cpu"), Far([1, 2])
    shown.note("table", near)
    assert shown.some and not shown.changed(far=True)
    near.numpy()[0] = 3
    assert shown.changed(far=False) == ["table"]
    shown.renew("table", far)
    assert not shown.changed(far=True)
    far.values[1] = 4
    assert not shown.changed(far=False) and shown.changed(far=True) == ["table"]
    shown.renew("table", near)
    assert not shown.changed(far=True)
