"""Each stage gives what MuJoCo's C engine gives, field by field; asking late gives what asking in time gives."""

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco import models
from treadle.mujoco import check
from treadle.mujoco.contents import contents

DERIVED = [row.name for row in mjw.Data.rows() if row.role == "derived"]


def put(mjm, nworld, dtype, seed=0):
    """Model and data in a random state, and that state."""
    state = models.random_state(mjm, nworld, seed)
    m = mjw.put_model(mjm, dtype=dtype)
    d = mjw.make_data(m, nworld)
    for name, values in state.items():
        with contents(getattr(d, name)) as held:
            held[...] = values
    return m, d, state


def assert_field(d, name, mjd, world, tolerance):
    ours = getattr(d, name).numpy()[world]
    theirs = getattr(mjd, name)
    scale = max(np.abs(theirs).max(initial=0.0), 1e-3)
    np.testing.assert_allclose(ours.reshape(theirs.shape), theirs, rtol=0, atol=tolerance * scale, err_msg=name)


@pytest.mark.parametrize("name", models.MODELS)
@pytest.mark.parametrize("dtype, tolerance", [(wp.float32, 1e-4), (wp.float64, 1e-12)])
def test_every_derived_field_equals_mujoco(name, dtype, tolerance):
    mjm = models.MODELS[name]()
    m, d, state = put(mjm, 3, dtype)
    mjw.forward(m, d)
    states = [models.reference(mjm, state, world) for world in range(3)]
    for mjd in states:
        mujoco.mj_forward(mjm, mjd)
    lines = check.compare_fields(m, d, mjm, states)
    assert not check.beyond(lines, tolerance), "\n".join(map(str, check.beyond(lines, tolerance)))


@pytest.mark.parametrize("straight", [True, False])
def test_forces_on_bodies_push_them(straight, monkeypatch):
    if not straight:
        monkeypatch.setattr("treadle.mujoco.stepping.STRAIGHT_WORK", 0)
    mjm = models.tree()
    m, d, state = put(mjm, 2, wp.float64)
    mjw.step(m, d)  # nobody is pushed yet
    pushes = np.random.default_rng(5).uniform(-1, 1, (2, mjm.nbody, 6))
    with contents(d.xfrc_applied) as held:
        held[...] = pushes
    mjw.step(m, d, nstep=5)
    mjw.step(m, d)
    d.xfrc_applied.zero_()
    for world in range(2):
        mjd = models.reference(mjm, state, world)
        mujoco.mj_step(mjm, mjd)
        mjd.xfrc_applied[:] = pushes[world]
        mujoco.mj_step(mjm, mjd, nstep=6)
        np.testing.assert_allclose(d.qpos.numpy()[world], mjd.qpos, rtol=0, atol=1e-11)
        for field in ("qfrc_smooth", "qacc", "qfrc_bias"):
            assert_field(d, field, mjd, world, 1e-11)


def test_stages_one_by_one_equal_forward():
    mjm = models.tree()
    m, d, _ = put(mjm, 2, wp.float64)
    one, _, _ = put(mjm, 2, wp.float64)[1], None, None
    mjw.forward(m, d)
    for stage in ("kinematics", "com_pos", "crb", "factor_m", "transmission", "com_vel", "passive", "rne"):
        getattr(mjw, stage)(m, one)
    mjw.fwd_velocity(m, one)
    mjw.fwd_actuation(m, one)
    mjw.fwd_acceleration(m, one)
    for field in DERIVED:
        np.testing.assert_array_equal(getattr(one, field).numpy(), getattr(d, field).numpy(), err_msg=field)


def test_fields_read_after_a_step_are_those_of_its_start():
    mjm = models.pair()
    m, d, state = put(mjm, 2, wp.float64)
    mjw.step(m, d)
    d.ctrl.zero_()  # controls set after the step do not change what it did
    for world in range(2):
        mjd = models.reference(mjm, state, world)
        mujoco.mj_step(mjm, mjd)
        for field in ("qacc", "xpos", "geom_xpos", "qfrc_bias", "actuator_force", "M", "cvel"):
            assert_field(d, field, mjd, world, 1e-12)


def test_a_stage_after_a_step_leaves_later_fields_as_they_were():
    mjm = models.pair()
    m, d, state = put(mjm, 1, wp.float64)
    mjw.step(m, d)
    mjw.kinematics(m, d)
    mjd = models.reference(mjm, state, 0)
    mujoco.mj_step(mjm, mjd)
    mujoco.mj_kinematics(mjm, mjd)
    for field in ("xpos", "xanchor", "geom_xpos", "qfrc_bias", "qacc"):
        assert_field(d, field, mjd, 0, 1e-12)


@pytest.mark.parametrize("flag", ["SPRING", "DAMPER", "GRAVITY", "CLAMPCTRL", "ACTUATION", "EULERDAMP"])
@pytest.mark.parametrize("straight", [True, False])
def test_flags_switch_off_what_they_name(flag, straight, monkeypatch):
    if not straight:
        monkeypatch.setattr("treadle.mujoco.stepping.STRAIGHT_WORK", 0)
    mjm = models.pair()
    mjm.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}")
    m, d, state = put(mjm, 1, wp.float64)
    mjd = models.reference(mjm, state, 0)
    for _ in range(20):
        mjw.step(m, d)
        mujoco.mj_step(mjm, mjd)
    np.testing.assert_allclose(d.qpos.numpy()[0], mjd.qpos, rtol=0, atol=1e-11)
    for field in ("qfrc_passive", "qfrc_bias", "actuator_force", "qfrc_actuator", "qacc"):
        assert_field(d, field, mjd, 0, 1e-10)


def test_data_of_another_model_or_precision_is_refused():
    m = mjw.put_model(models.tree())
    with pytest.raises(ValueError, match="nq = 5, the model 8"):
        mjw.step(m, mjw.make_data(models.chain(5)))
    with pytest.raises(TypeError, match="float32.*float64"):
        mjw.forward(m, mjw.make_data(models.tree(), dtype=wp.float64))
