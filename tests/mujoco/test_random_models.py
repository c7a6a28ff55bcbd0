"""Random models go as MuJoCo's go: every field of the smooth stages, and a step of the integrator that chance chose."""

import mujoco
import pytest

import treadle as wp
from tests.mujoco import constrained
from tests.mujoco.random_models import random_model
from treadle.mujoco import check

# Where tendons go around something, those of version 3 go another way; and Runge-Kutta turns there by another formula.
ROUND = {int(mujoco.mjtWrap.mjWRAP_SPHERE), int(mujoco.mjtWrap.mjWRAP_CYLINDER)}
OTHERWISE = int(mujoco.__version__.partition(".")[0]) < 4


@pytest.mark.parametrize("first", range(0, 50, 10))
def test_smooth_stages_and_steps_are_mujocos(first):
    for seed in range(first, first + 10):
        mjm = random_model(seed)
        if OTHERWISE and not ROUND.isdisjoint(mjm.wrap_type):
            continue
        mjm.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        lines = check.compare(mjm, check.random_states(mjm, 2, seed))
        bad = check.beyond(lines, 1e-9)
        lines = check.compare_steps(mjm, check.random_states(mjm, 2, seed))
        bad += check.beyond(lines, 1e-6 if OTHERWISE else 1e-9)
        assert not bad, f"seed {seed}:\n" + "\n".join(map(str, bad))


@pytest.mark.parametrize("first", range(0, 8, 4))
def test_contacts_and_constraints_are_mujocos(first):
    for seed in range(first, first + 4):
        mjm = constrained.sharp(random_model(seed, contacts=True))
        lines = check.compare(mjm, check.random_states(mjm, 2, seed))
        lines += check.compare_steps(mjm, check.random_states(mjm, 2, seed))
        bad = [line for line in lines if not line.error <= check.bound(line, wp.float64)]
        assert not bad, f"seed {seed}:\n" + "\n".join(map(str, bad))
