"""Fields that are read after a step are those of the numbers with which it was taken, whatever was read before."""

import copy
import gc

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco import models
from treadle.base.errors import OrderError
from treadle.mujoco.contents import contents
from treadle.mujoco.editions import as_values, memory_of

XML = """
<mujoco>
  <worldbody>
    <body pos="0 0 1"><freejoint/><geom size=".1"/></body>
    <body pos="1 0 1"><joint axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body>
  </worldbody>
  <sensor><clock/><subtreecom body="world"/></sensor>
</mujoco>
"""
DISABLE = mujoco.mjtDisableBit


@wp.kernel
def nullify(values: wp.array(dtype=wp.vec3d)):
    values[wp.tid()] = wp.vec3d()


def fall(m, d):
    m.opt.gravity.fill_(0.0)


def fall_by_numpy(m, d):
    m.opt.gravity.numpy()[...] = 0.0


def fall_by_kernel(m, d):
    wp.launch(nullify, dim=1, inputs=[m.opt.gravity])


def fall_by_assignment(m, d):
    m.opt.gravity = wp.zeros(1, dtype=wp.vec3d)


def fall_by_flag(m, d):
    m.opt.disableflags |= int(DISABLE.mjDSBL_GRAVITY)


def fall_in_each_world(m, d):
    m.expand(d.nworld, "opt.gravity")
    m.opt.gravity.fill_(0.0)


def other_masses(m, d):
    with contents(m.body_mass) as held:
        held[...] *= 3.0
    m.body_ipos.fill_(0.1)


def other_masses_while_others_step(m, d):
    other = mjw.make_data(m)
    other_masses(m, d)
    mjw.step(m, other)
    m.body_mass.fill_(2.0)
    mjw.step(m, other)


def anchors(m, d):  # beyond what a straight-line step knows
    m.jnt_pos.fill_(0.3)
    m.body_gravcomp.fill_(1.0)


VIEWED = pytest.param(fall_by_numpy, marks=pytest.mark.host)  # a view of the array's own memory
CHANGES = (fall, VIEWED, fall_by_kernel, fall_by_assignment, fall_by_flag, fall_in_each_world, other_masses,
           other_masses_while_others_step, anchors)  # fmt: skip


@pytest.mark.parametrize("integrator", [mujoco.mjtIntegrator.mjINT_EULER, mujoco.mjtIntegrator.mjINT_IMPLICIT])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_fields_of_a_step_do_not_follow_later_changes_of_the_model(change, integrator):
    mjm = mujoco.MjModel.from_xml_string(XML)
    mjm.opt.integrator = integrator
    for early in (True, False):  # whether arrays were seen before the step
        m, mjd = mjw.put_model(mjm, dtype=wp.float64), mujoco.MjData(mjm)
        mjd.qfrc_applied[:] = 1.0
        d = mjw.put_data(mjm, mjd, dtype=wp.float64)
        if early:
            assert m.opt.gravity.shape == m.body_mass.shape[:1] == (1,)
        for _ in range(2):
            mujoco.mj_step(mjm, mjd)
            mjw.step(m, d)
        change(m, d)
        copied = d.__deepcopy__({})
        for name in ("qacc", "sensordata", "cinert", "xanchor", "qfrc_bias"):
            for worlds in (d, copied):
                ours, theirs = getattr(worlds, name).numpy()[0], getattr(mjd, name)
                np.testing.assert_allclose(np.reshape(ours, theirs.shape), theirs, rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.host  # who has a view of the array's own memory
def test_the_next_step_goes_by_what_was_changed():
    mjm = mujoco.MjModel.from_xml_string(XML)
    m, mjd = mjw.put_model(mjm, dtype=wp.float64), mujoco.MjData(mjm)
    d = mjw.put_data(mjm, mjd, dtype=wp.float64)
    gravity = m.opt.gravity.numpy()  # a view that is kept
    for strength in (-9.0, -3.0, 0.0, 2.0):
        gravity[...] = mjm.opt.gravity[:] = (0.0, 0.0, strength)
        mujoco.mj_step(mjm, mjd)
        mjw.step(m, d)
        gravity[...] = 77.0
        np.testing.assert_allclose(d.qacc.numpy()[0], mjd.qacc, atol=1e-12)
        np.testing.assert_allclose(d.qvel.numpy()[0], mjd.qvel, atol=1e-12)


def test_warm_starts_are_the_accelerations_of_the_step():
    mjm = models.pair()
    mjm.dof_frictionloss[:] = 0.3
    mjm.opt.iterations = 1  # so that it matters where the solver starts
    accelerations = []
    for read in (True, False):
        m, d = mjw.put_model(mjm, dtype=wp.float64), mjw.make_data(mjm, dtype=wp.float64)
        d.qvel.fill_(0.5)
        mjw.step(m, d)
        if read:
            d.qacc_warmstart.numpy()
        m.opt.gravity.fill_(1.0)
        mjw.step(m, d)
        accelerations.append(d.qacc.numpy().copy())
    np.testing.assert_array_equal(*accelerations)


def test_outputs_of_sensors_that_are_switched_off_stay():
    mjm = mujoco.MjModel.from_xml_string(XML)
    for act in ("step", "forward"):
        mjm.opt.disableflags = 0
        m, mjd = mjw.put_model(mjm, dtype=wp.float64), mujoco.MjData(mjm)
        d = mjw.make_data(m)
        for _ in range(3):
            mujoco.mj_step(mjm, mjd)
            mjw.step(m, d)
        m.opt.disableflags = mjm.opt.disableflags = int(DISABLE.mjDSBL_SENSOR)
        getattr(mujoco, f"mj_{act}")(mjm, mjd)
        getattr(mjw, act)(m, d)
        assert mjd.sensordata[0] > 0
        np.testing.assert_allclose(d.sensordata.numpy()[0], mjd.sensordata, atol=1e-12)


@pytest.mark.host  # where each step looks at what somebody has seen
def test_what_nobody_needs_any_more_is_forgotten():
    m = mjw.put_model(models.pair())
    d = mjw.make_data(m)
    for k in range(5):
        m.opt.gravity.fill_(float(k))
        m.body_mass = wp.full(m.body_mass.shape, 1.0 + k, dtype=float)
        mjw.step(m, d)
    gc.collect()
    assert len(m._editions._living) == 1 and len(m._editions._seen) == 2


def test_plans_of_fields_outlast_changes_of_numbers():
    mjm = mujoco.MjModel.from_xml_string(XML)
    mjm.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICIT
    m, mjd = mjw.put_model(mjm, dtype=wp.float64), mujoco.MjData(mjm)
    d = mjw.put_data(mjm, mjd, dtype=wp.float64)
    used = []
    for k in range(12):
        m.opt.gravity.fill_(wp.vec3d(0.0, 0.0, -1.0 - k))
        mjm.opt.gravity[:] = (0.0, 0.0, -1.0 - k)
        if k == 5:
            m.body_mass.fill_(2.0)
            mjm.body_mass[:] = 2.0
        mjw.step(m, d)
        mujoco.mj_step(mjm, mjd)
        m.opt.gravity.fill_(9.0)
        if k % 4 == 0:
            np.testing.assert_allclose(d.xanchor.numpy()[0, 1], mjd.xanchor[1], atol=1e-12)
            np.testing.assert_allclose(d.qfrc_bias.numpy()[0], mjd.qfrc_bias, atol=1e-12)
            used.append({id(plan) for plan in d._plans.values()})
    assert used[1] == used[2]  # at first body_mass had not been written to


def test_a_tape_does_not_follow_fields_of_numbers_that_are_gone():
    pendulum = '<body><joint axis="0 1 0" damping=".1"/><geom size=".1" pos=".2 0 0"/></body>'
    mjm = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{pendulum}</worldbody></mujoco>")
    m = mjw.put_model(mjm, dtype=wp.float64)
    d = mjw.make_data(m)
    loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    with wp.Tape():
        mjw.step(m, d)
        m.opt.gravity.fill_(0.0)
        with pytest.raises(OrderError, match="cannot be computed on a tape any more: the model has been written to"):
            wp.utils.array_sum(d.qfrc_bias.flatten(), out=loss)
        mjw.step(m, d)
        assert d.qfrc_bias.numpy() == 0.0


def test_arrays_that_are_first_seen_in_a_capture_are_known():
    mjm = mujoco.MjModel.from_xml_string(XML)
    m, mjd = mjw.put_model(mjm, dtype=wp.float64), mujoco.MjData(mjm)
    d = mjw.put_data(mjm, mjd, dtype=wp.float64)
    with wp.ScopedCapture() as capture:
        m.body_mass.fill_(9.0)
    mjw.step(m, d)
    mujoco.mj_step(mjm, mjd)
    wp.capture_launch(capture.graph)
    np.testing.assert_allclose(d.qfrc_bias.numpy()[0], mjd.qfrc_bias, atol=1e-12)


def test_contents_in_planes_come_back():
    for shape in ((3, 4), (2, 3, 4), (5,), ()):
        room = np.random.default_rng(0).normal(size=(7, *shape))
        for values in (room[0], np.moveaxis(room, 0, -1)[..., :5], np.moveaxis(room, 0, -1)[..., 1], room[::3]):
            np.testing.assert_array_equal(as_values(memory_of(values).tobytes(), values), values)


def test_copies_of_models_ask_for_the_same_gradients():
    m = mjw.put_model(mujoco.MjModel.from_xml_string(XML))
    m.body_mass.requires_grad = True
    for made in (copy.deepcopy(m), copy.copy(m)):
        assert made.body_mass.requires_grad and not made.jnt_pos.requires_grad
