"""Smooth dynamics: every field of every stage, and every integrator's step, are MuJoCo's, without constraints."""

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco import scenes
from treadle.mujoco import check
from treadle.mujoco.contents import contents

NAMES = [name for name in (*scenes.OWN, *scenes.FILES) if name != "so101"]  # straight-line code has its own tests
SINGLE = [*scenes.OWN, "shadow_hand", "mjx_sensor", "humanoid", "pendula", "ant", "cmu_humanoid", "muscle",
          "slidercrank", "tendon_wrap", "tendon_pulley_site_fixed", "tendon_armature"]  # fmt: skip


def said(lines, limit):
    return "\n".join(map(str, check.beyond(lines, limit)))


@pytest.mark.parametrize(
    "name, dtype, limit",
    [(name, wp.float64, 1e-9) for name in NAMES] + [(name, wp.float32, 1e-4) for name in SINGLE],
)
def test_every_field_of_every_stage_is_mujocos(name, dtype, limit):
    mjm = scenes.smooth(name)
    lines = check.compare(mjm, check.random_states(mjm, 5), dtype)
    assert not check.beyond(lines, limit), said(lines, limit)
    assert {"qacc", "xpos", "M", "qfrc_bias"} <= {line.field for line in lines}


@pytest.mark.parametrize("integrator", ["EULER", "RK4", "IMPLICIT", "IMPLICITFAST"])
@pytest.mark.parametrize(
    "name",
    [
        "joints",
        "fluid",
        "pid",
        "motors",
        "orientation",
        "actuators",
        "pendula",
        "ant",
        "humanoid_mjw",
        "tendon_damping",
    ],
)
def test_a_step_of_every_integrator_ends_where_mujocos_ends(name, integrator):
    mjm = scenes.smooth(name)
    mjm.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
    lines = check.compare_steps(mjm, check.random_states(mjm, 3), nstep=3)
    assert not check.beyond(lines, 1e-9), said(lines, 1e-9)


@pytest.mark.parametrize("name", ["motors", "orientation"])
def test_forces_of_set_points_that_are_ahead_and_of_limits(name):
    mjm = scenes.smooth(name)
    mjm.actuator_actearly[:] = 1
    mjm.actuator_forcerange[:, 1] = 0.2
    lines = check.compare(mjm, check.random_states(mjm, 3)) + check.compare_steps(mjm, check.random_states(mjm, 3))
    assert not check.beyond(lines, 1e-9), said(lines, 1e-9)


@pytest.mark.parametrize("name", ["joints", "fluid", "shadow_hand", "tendon_armature"])
def test_inverse_dynamics_are_mujocos(name):
    mjm = scenes.smooth(name)
    states = check.random_states(mjm, 2)
    m = mjw.put_model(mjm, dtype=wp.float64)
    d = check.put_states(m, states)
    accelerations = np.random.default_rng(3).uniform(-2, 2, (2, mjm.nv))
    with contents(d.qacc) as held:
        held[...] = accelerations
    mjw.inverse(m, d)
    for world, mjd in enumerate(states):
        mjd.qacc[:] = accelerations[world]
        mujoco.mj_inverse(mjm, mjd)
        assert check.error(d.qfrc_inverse.numpy()[world], mjd.qfrc_inverse) < 1e-10


@pytest.mark.parametrize("name", ["joints", "fluid", "shadow_hand", "half_cheetah"])
def test_inverse_dynamics_of_steps_are_mujocos(name):
    mjm = scenes.smooth(name)
    mjm.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_INVDISCRETE)
    for integrator in (0, 2, 3):
        mjm.opt.integrator = integrator
        states = check.random_states(mjm, 2)
        for mjd in states:
            mjd.ctrl[:] = 0
        m = mjw.put_model(mjm, dtype=wp.float64)
        d = check.put_states(m, states)
        for world, mjd in enumerate(states):
            start = mjd.qvel.copy()
            mujoco.mj_forward(mjm, mjd)
            position = mjd.qpos.copy()
            mujoco.mj_step(mjm, mjd)
            step = (mjd.qvel - start) / mjm.opt.timestep
            mjd.qpos[:], mjd.qvel[:], mjd.qacc[:] = position, start, step
            with contents(d.qacc) as held:
                held[world] = step
        mjw.inverse(m, d)
        for world, mjd in enumerate(states):
            mujoco.mj_inverse(mjm, mjd)
            assert check.error(d.qfrc_inverse.numpy()[world], mjd.qfrc_inverse) < 1e-9, integrator
    mjm.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    with pytest.raises(ValueError, match="invdiscrete"):
        mjw.inverse(mjw.put_model(mjm, dtype=wp.float64), d)


@pytest.mark.parametrize("flag", ["SPRING", "DAMPER", "GRAVITY", "CLAMPCTRL", "ACTUATION"])
def test_flags_switch_off_what_they_name(flag):
    mjm = scenes.smooth("joints")
    mjm.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}")
    for integrator in (0, 2, 3):
        mjm.opt.integrator = integrator
        lines = check.compare(mjm, check.random_states(mjm, 2))
        lines += check.compare_steps(mjm, check.random_states(mjm, 2))
        assert not check.beyond(lines, 1e-9), said(lines, 1e-9)


def test_groups_of_actuators_can_be_switched_off():
    mjm = scenes.smooth("joints")
    mjm.opt.disableactuator = 1 << 3
    lines = check.compare(mjm, check.random_states(mjm, 2))
    for integrator in (0, 1, 3):
        mjm.opt.integrator = integrator
        lines += check.compare_steps(mjm, check.random_states(mjm, 2))
    assert not check.beyond(lines, 1e-9), said(lines, 1e-9)


def test_a_step_in_two_parts_is_a_step():
    mjm = scenes.smooth("joints")
    states = check.random_states(mjm, 2)
    m = mjw.put_model(mjm, dtype=wp.float64)
    whole, parts = check.put_states(m, states), check.put_states(m, states)
    mjw.step(m, whole)
    mjw.step1(m, parts)
    mjw.step2(m, parts)
    for name in ("qpos", "qvel", "act", "time", "qacc"):
        np.testing.assert_array_equal(getattr(parts, name).numpy(), getattr(whole, name).numpy(), err_msg=name)


def test_energy_is_mujocos():
    mjm = scenes.smooth("joints")
    mjm.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    states = check.random_states(mjm, 2)
    m = mjw.put_model(mjm, dtype=wp.float64)
    d = check.put_states(m, states)
    mjw.forward(m, d)
    for world, mjd in enumerate(states):
        mujoco.mj_forward(mjm, mjd)
        np.testing.assert_allclose(d.energy.numpy()[world], mjd.energy, rtol=1e-11)
    mjw.subtree_vel(m, d)
    for world, mjd in enumerate(states):
        mujoco.mj_subtreeVel(mjm, mjd)
        assert check.error(d.subtree_linvel.numpy()[world], mjd.subtree_linvel) < 1e-10
        assert check.error(d.subtree_angmom.numpy()[world], mjd.subtree_angmom) < 1e-10


def test_fields_that_were_zero_count_once_they_are_set():
    mjm = scenes.smooth("half_cheetah")
    m, d = mjw.put_model(mjm, dtype=wp.float64), mjw.make_data(mjm, dtype=wp.float64)
    mjw.step(m, d)  # by straight-line code, which knows nothing of these
    mjd = mujoco.MjData(mjm)
    mujoco.mj_step(mjm, mjd)
    mjm.dof_dampingpoly[:, 0] = 0.5
    mjm.opt.viscosity = 0.3
    with contents(m.dof_dampingpoly) as held:
        held[..., 0] = 0.5
    m.opt.viscosity.fill_(0.3)
    mjw.step(m, d, nstep=5)
    mujoco.mj_step(mjm, mjd, nstep=5)
    np.testing.assert_allclose(d.qpos.numpy()[0], mjd.qpos, rtol=0, atol=1e-11)
