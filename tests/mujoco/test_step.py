"""Many steps end where MuJoCo's end, in any number of worlds, by straight-line code and by stages."""

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco import models
from treadle.mujoco.contents import contents

PRECISIONS = [(wp.float32, 1e-4), (wp.float64, 1e-9)]


def run_both(mjm, nworld, nstep, dtype, watched):
    """Step random worlds with random controls; ours and MuJoCo's qpos of the ``watched`` worlds."""
    rng = np.random.default_rng(7)
    state = models.random_state(mjm, nworld)
    m = mjw.put_model(mjm, dtype=dtype)
    d = mjw.make_data(m, nworld)
    for name, values in state.items():
        with contents(getattr(d, name)) as held:
            held[...] = values
    theirs = [models.reference(mjm, state, world) for world in watched]
    for _ in range(nstep):
        ctrl = rng.uniform(-2, 2, (nworld, mjm.nu))
        with contents(d.ctrl) as held:
            held[...] = ctrl
        mjw.step(m, d)
        for mjd, world in zip(theirs, watched):
            mjd.ctrl[:] = ctrl[world]
            mujoco.mj_step(mjm, mjd)
    np.testing.assert_allclose(d.time.numpy(), theirs[0].time, rtol=1e-5)
    return d.qpos.numpy()[watched], np.array([mjd.qpos for mjd in theirs])


@pytest.mark.parametrize("dtype, tolerance", PRECISIONS)
@pytest.mark.parametrize("nworld", [1, 3, 2048])
def test_the_arm_stays_with_mujoco_for_200_steps(nworld, dtype, tolerance):
    watched = sorted({0, nworld // 2, nworld - 1})
    ours, theirs = run_both(models.arm(), nworld, 200, dtype, watched)
    assert np.abs(ours - theirs).max() <= tolerance
    assert np.abs(theirs).max() > 0.1, "the arms must have moved"


@pytest.mark.parametrize("make", [models.tree, models.MODELS["chain"], models.floating, "tree by stages"])
def test_other_trees_stay_with_mujoco(make, monkeypatch):
    if make == "tree by stages":
        make = models.tree
        monkeypatch.setattr("treadle.mujoco.stepping.STRAIGHT_WORK", 0)
    ours, theirs = run_both(make(), 3, 100, wp.float64, [0, 1, 2])
    assert np.abs(ours - theirs).max() <= 1e-9


def test_code_for_large_trees_is_the_general_one():
    from treadle.mujoco.stepping import _straight

    assert _straight(mjw.put_model(models.chain(20))) and not _straight(mjw.put_model(models.chain(30)))


def test_nothing_to_move_still_takes_time():
    mjm = mujoco.MjModel.from_xml_string("<mujoco><worldbody><body pos='0 0 1'><site/></body></worldbody></mujoco>")
    m, d = mjw.put_model(mjm), mjw.make_data(mjm, nworld=2)
    mjw.step(m, d, nstep=3)
    np.testing.assert_allclose(d.time.numpy(), 3 * mjm.opt.timestep, rtol=1e-6)
    np.testing.assert_array_equal(d.site_xpos.numpy()[1], [[0, 0, 1]])
    with pytest.raises(ValueError, match="nstep is at least 1"):
        mjw.step(m, d, nstep=0)


def test_several_steps_in_one_launch_equal_single_steps():
    mjm = models.pair()
    m = mjw.put_model(mjm)
    single, many = mjw.make_data(m, 5), mjw.make_data(m, 5)
    for d in (single, many):
        with contents(d.qvel) as held:
            held[...] = np.linspace(-1, 1, 5)[:, None]
        d.ctrl.fill_(0.3)
    for _ in range(20):
        mjw.step(m, single)
    mjw.step(m, many, nstep=20)
    for name in ("qpos", "qvel", "qacc", "xpos"):
        np.testing.assert_array_equal(getattr(many, name).numpy(), getattr(single, name).numpy())
    np.testing.assert_allclose(many.time.numpy(), single.time.numpy(), rtol=1e-5)


def test_gang_width_and_workers_do_not_show():
    mjm, nworld = models.pair(), 2045
    state = models.random_state(mjm, nworld)

    def end(width, workers):
        wp.config.gang_width, wp.config.workers = width, workers
        m = mjw.put_model(mjm)
        d = mjw.make_data(m, nworld)
        for name, values in state.items():
            with contents(getattr(d, name)) as held:
                held[...] = values
        mjw.step(m, d, nstep=10)
        return np.concatenate([d.qpos.numpy(), d.qvel.numpy(), d.qacc.numpy()], axis=1)

    before = wp.config.gang_width, wp.config.workers
    try:
        first = end(1, 1)
        for width, workers in [(8, 1), (16, 1), (8, 2), (8, 3), (8, 7)]:
            np.testing.assert_array_equal(end(width, workers), first, err_msg=f"{width} lanes, {workers} workers")
    finally:
        wp.config.gang_width, wp.config.workers = before


def test_numbers_of_the_model_may_change_between_steps():
    mjm = models.pair()
    m, d = mjw.put_model(mjm, dtype=wp.float64), mjw.make_data(mjm, dtype=wp.float64)
    mjw.step(m, d)
    mjd = mujoco.MjData(mjm)
    mujoco.mj_step(mjm, mjd)
    mjm.dof_damping[:] *= 3
    mjm.actuator_gainprm[:, 0] *= 0.5
    mjm.opt.gravity[2] = -3
    with contents(m.dof_damping) as held:
        held[...] = mjm.dof_damping
    with contents(m.actuator_gainprm) as held:
        held[...] = mjm.actuator_gainprm
    with contents(m.opt.gravity) as held:
        held[...] = mjm.opt.gravity
    for _ in range(10):
        mjw.step(m, d)
        mujoco.mj_step(mjm, mjd)
    np.testing.assert_allclose(d.qpos.numpy()[0], mjd.qpos, rtol=0, atol=1e-11)


def test_anchors_and_axes_may_move_too():
    mjm = models.chain(3)
    m, d = mjw.put_model(mjm, dtype=wp.float64), mjw.make_data(mjm, dtype=wp.float64)
    d.qvel.fill_(1.0)
    mjw.step(m, d)
    mjd = mujoco.MjData(mjm)
    mjd.qvel[:] = 1.0
    mujoco.mj_step(mjm, mjd)
    mjm.jnt_pos[1] = [0.02, 0.01, -0.05]
    mjm.jnt_axis[2] = [0.6, 0.0, 0.8]
    with contents(m.jnt_pos) as held:
        held[...] = mjm.jnt_pos
    with contents(m.jnt_axis) as held:
        held[...] = mjm.jnt_axis
    for _ in range(20):
        mjw.step(m, d)
        mujoco.mj_step(mjm, mjd)
    np.testing.assert_allclose(d.qpos.numpy()[0], mjd.qpos, rtol=0, atol=1e-11)


def test_energy_of_a_pendulum_is_kept():
    mjm = models.chain(1)
    mjm.dof_damping[:] = 0
    mjm.opt.timestep = 1e-3
    m, d = mjw.put_model(mjm, dtype=wp.float64), mjw.make_data(mjm, dtype=wp.float64)
    d.qpos.fill_(1.0)

    def energy():
        mjw.forward(m, d)
        speed = d.qvel.numpy()[0, 0]
        height = (mjm.body_mass * d.xipos.numpy()[0, :, 2]).sum()
        return 0.5 * d.M.numpy()[0, 0] * speed**2 + 9.81 * height

    start, depth = energy(), mjm.body_mass[1] * 9.81 * 0.1
    mjw.step(m, d, nstep=2000)
    assert abs(energy() - start) < 2e-3 * depth
