"""Random models go as MuJoCo's go: every field of the smooth stages, and a step of the integrator that chance chose."""

import mujoco
import pytest

import treadle as wp
from tests.mujoco import constrained
from tests.mujoco.random_models import random_model
from treadle.mujoco import check


@pytest.mark.parametrize("first", range(0, 50, 10))
def test_smooth_stages_and_steps_are_mujocos(first):
    for seed in range(first, first + 10):
        mjm = random_model(seed)
        mjm.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        lines = check.compare(mjm, check.random_states(mjm, 2, seed))
        lines += check.compare_steps(mjm, check.random_states(mjm, 2, seed))
        assert not check.beyond(lines, 1e-9), f"seed {seed}:\n" + "\n".join(map(str, check.beyond(lines, 1e-9)))


@pytest.mark.parametrize("first", range(0, 8, 4))
def test_contacts_and_constraints_are_mujocos(first):
    for seed in range(first, first + 4):
        mjm = constrained.sharp(random_model(seed, contacts=True))
        lines = check.compare(mjm, check.random_states(mjm, 2, seed))
        lines += check.compare_steps(mjm, check.random_states(mjm, 2, seed))
        bad = [line for line in lines if not line.error <= check.bound(line, wp.float64)]
        assert not bad, f"seed {seed}:\n" + "\n".join(map(str, bad))
