"""Operations on floats: what one thread of launches does."""

import treadle as wp
from treadle.lang.ahead import deferred
from treadle.mujoco.rates import chains, operations, peak


def test_operations_are_those_of_one_thread():
    out = wp.zeros(64, dtype=float)
    with deferred() as launches:
        for rounds in (10, 0):
            wp.launch(chains(wp.float32), dim=64, inputs=[out, 0.5, rounds])
    assert operations(launches) == 10 * 12 * 2 + 2 * 12  # products with sums, and the sum of all of either launch
    assert not out.numpy().any()  # counting leaves no trace
    assert peak(wp.float32) > 1e8
