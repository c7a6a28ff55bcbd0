"""Which worlds share gangs, and when."""

import numpy as np
import pytest

from treadle.mujoco import dealing
from treadle.mujoco.dealing import Dealer, deal


def loads(worlds: int = 256) -> np.ndarray:
    """Of each world the number of contacts, and which of eight pairs touch."""
    met = np.random.default_rng(0).integers(0, 2, (worlds, 8)) * np.array([1, 0, 0, 1, 0, 0, 1, 1])
    return np.stack([met.sum(axis=1), met @ (1 << np.arange(0, 29, 4))], axis=1).astype(np.int32)


def test_worlds_that_touch_the_same_share_gangs():
    load = loads()
    order = deal(load)
    assert sorted(order) == list(range(len(load)))
    gangs = load[order, 1].reshape(-1, dealing.LANES)
    several = sum(len(set(gang)) > 1 for gang in gangs)
    assert several <= 15, "16 kinds of worlds have 15 borders"
    assert deal(np.ones((256, 2), np.int32)) is None


@pytest.mark.parametrize("dealt_takes", [0.8, 0.99, 1.2])
def test_the_faster_way_is_found_while_steps_grow_longer_and_other_work_disturbs(dealt_takes):
    dealer, load, rng, order = Dealer(), loads(), np.random.default_rng(1), np.arange(256)
    ways = []
    for k in range(200):
        seconds = (1 + 0.01 * k) * (dealt_takes if dealer.dealt else 1.0)
        if rng.random() < 0.4:
            seconds *= rng.uniform(1, 4)
        if dealer.took(seconds, 1):
            dealer.look(load, order)
        ways.append(dealer.dealt)
    tried = dealing.TURNS // 2 * (dealing.TURN + 1)
    assert ways[60:] == [dealt_takes == 0.8] * 140  # what looks take is not gained by a hundredth
    assert tried <= sum(ways[:60]) < 60 if dealt_takes == 0.8 else sum(ways) <= tried + 1
