"""Humanoids under random control: no NaN, no overflow, and one end for all gangs and workers.

`benchmarks/mujoco_endurance.py` does the same for 10,000 steps of 256.
"""

import pytest

import treadle as wp
from benchmarks import mujoco_endurance


@pytest.fixture
def settings():
    before = wp.config.workers, wp.config.gang_width
    yield
    wp.config.workers, wp.config.gang_width = before


def test_humanoids_end_the_same_on_any_number_of_workers_and_lanes(settings):
    ends = [mujoco_endurance.endure("humanoid", 40, 60, workers, lanes) for workers, lanes in ((1, 8), (3, 8), (2, 16))]
    assert all(end.finite for end in ends) and ends[0].contacts > 2
    assert len({end.hash for end in ends}) == 1
