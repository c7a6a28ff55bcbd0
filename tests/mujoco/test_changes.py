"""What users change after `put_model` counts in the next step, whichever way they set it, or is refused."""

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco import models
from treadle.base.errors import UnsupportedModelError
from treadle.mujoco.contents import contents

DISABLE, ENABLE = mujoco.mjtDisableBit, mujoco.mjtEnableBit


def assert_same_steps(mjm, m, d, nstep=10):
    mjd = mujoco.MjData(mjm)
    mjd.qvel[:], mjd.ctrl[:] = 0.5, 0.7
    mjw.reset_data(m, d)
    d.qvel.fill_(0.5)
    d.ctrl.fill_(0.7)
    mujoco.mj_step(mjm, mjd, nstep)
    mjw.step(m, d, nstep)
    np.testing.assert_allclose(d.qpos.numpy()[0], mjd.qpos, rtol=0, atol=1e-9)


def put():
    mjm = models.pair()
    m = mjw.put_model(mjm, dtype=wp.float64)
    d = mjw.make_data(m)
    mjw.step(m, d)  # by straight-line code, in which fields that are 0 do not occur
    return mjm, m, d


def test_an_array_in_a_fields_place_counts_as_one_that_was_written_to():
    for name, value in (("jnt_axis", (0.6, 0.0, 0.8)), ("jnt_pos", (0.1, 0.0, 0.1)), ("dof_dampingpoly", (0.5, 0.2)),
                        ("opt.viscosity", 0.3)):  # fmt: skip
        mjm, m, d = put()
        ours, theirs, field = (m.opt, mjm.opt, name[4:]) if name.startswith("opt.") else (m, mjm, name)
        array = ours.field(field)
        values = array.numpy().copy()
        values[...] = value
        setattr(ours, field, wp.array(values, dtype=array.dtype))
        if field == "viscosity":
            theirs.viscosity = value
        else:
            getattr(theirs, field)[...] = value
        assert_same_steps(mjm, m, d)


def test_flags_and_dry_friction_may_change():
    mjm, m, d = put()
    for name, value in (
        ("disableflags", int(DISABLE.mjDSBL_GRAVITY)),
        ("disableflags", int(DISABLE.mjDSBL_ACTUATION)),
        ("disableflags", 0),
        ("disableactuator", 1),
    ):
        setattr(mjm.opt, name, value)
        setattr(m.opt, name, value)
        assert_same_steps(mjm, m, d)
    mjm.dof_frictionloss[:] = 0.3
    m.dof_frictionloss.fill_(0.3)
    assert_same_steps(mjm, m, d)
    assert d.nefc.numpy()[0] == mjm.nv
    for flags in (int(DISABLE.mjDSBL_FRICTIONLOSS), 0, int(DISABLE.mjDSBL_CONSTRAINT)):
        mjm.opt.disableflags = m.opt.disableflags = flags
        assert_same_steps(mjm, m, d)
        assert d.nefc.numpy()[0] == (0 if flags else mjm.nv)


def test_forces_of_a_model_with_constraints_do_not_stay():
    free, held = models.pair(), models.pair()
    held.dof_frictionloss[:] = 0.3
    d = mjw.make_data(free, dtype=wp.float64)
    mjw.step(mjw.put_model(held, dtype=wp.float64), d)
    free.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICIT
    assert_same_steps(free, mjw.put_model(free, dtype=wp.float64), d)


@pytest.mark.parametrize(
    "name, value, kind",
    [
        ("integrator", int(mujoco.mjtIntegrator.mjINT_DISCRETE), UnsupportedModelError),
        ("integrator", 9, ValueError),
        ("solver", 7, ValueError),
        ("enableflags", int(ENABLE.mjENBL_SLEEP), UnsupportedModelError),
        ("disableflags", int(DISABLE.mjDSBL_NATIVECCD), UnsupportedModelError),
        ("disableflags", int(DISABLE.mjDSBL_FILTERPARENT), ValueError),
    ],
)
def test_an_option_that_cannot_be_followed_is_refused(name, value, kind):
    m = mjw.put_model(models.pair())
    with pytest.raises(kind, match="option|cannot change after put_model"):
        setattr(m.opt, name, value)


def test_contacts_that_were_switched_off_cannot_be_switched_on():
    mjm = models.pair()
    mjm.opt.disableflags = DISABLE.mjDSBL_CONTACT
    m = mjw.put_model(mjm)
    with pytest.raises(ValueError, match="mjDSBL_CONTACT cannot change after put_model"):
        m.opt.disableflags = 0


BOX = """
<mujoco>
  <option integrator="implicitfast" iterations="100" tolerance="1e-12"/>
  <worldbody>
    <geom type="plane" size="1 1 1" condim="1"/>
    <body pos="0 0 0.099"><freejoint/><geom type="box" size="0.1 0.1 0.1" friction="0.6"/></body>
  </worldbody>
</mujoco>
"""


def test_numbers_of_contacts_may_change_and_kinds_of_contacts_may_not():
    mjm = mujoco.MjModel.from_xml_string(BOX)
    m = mjw.put_model(mjm, dtype=wp.float64)
    d = mjw.make_data(m)
    mjw.step(m, d)
    for name, value in (
        ("geom_solref", (0.05, 0.9)),
        ("geom_friction", 0.1),
        ("geom_solmix", (0.2, 0.9)),
        ("geom_margin", 0.01),
        ("geom_gap", 0.005),
        ("geom_solimp", (0.8, 0.9, 0.01, 0.5, 2.0)),
    ):
        theirs = getattr(mjm, name)
        theirs[...] = value
        with contents(getattr(m, name)) as ours:
            ours[...] = np.reshape(theirs, ours.shape)
        assert_same_steps(mjm, m, d, nstep=3)
    for name in ("geom_condim", "geom_priority", "geom_contype", "jnt_limited", "body_parentid"):
        with pytest.raises(ValueError, match=f"{name} of the model cannot change after put_model"):
            setattr(m, name, wp.array(getattr(m, name).numpy(), dtype=int))
        with contents(getattr(m, name)) as held:
            held[0] += 1
        for act in (mjw.step, mjw.forward) if wp.get_device().is_cpu else (lambda m, d: d.check(),):
            with pytest.raises(ValueError, match=f"{name} of the model cannot change after put_model"):
                act(m, d)
        with contents(getattr(m, name)) as held:
            held[0] -= 1
    mjw.step(m, d)


TOUCHING = """
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body pos="0 0 0.09">
      <freejoint/><geom name="g" type="{}" size="0.1 0.1 0.1"/><site name="s" size=".2"/>
    </body>
    <body pos="1 0 1"><joint name="j" axis="0 1 0" limited="true" range="-5 5"/><geom size=".1" pos=".2 0 0"/></body>
  </worldbody>
  <sensor><touch site="s"/><contact geom1="g" data="found"/><accelerometer site="s"/><jointpos joint="j"/></sensor>
</mujoco>
"""


@pytest.mark.parametrize("flag", [DISABLE.mjDSBL_CONTACT, DISABLE.mjDSBL_CONSTRAINT])
@pytest.mark.parametrize("geom", ["box", "ellipsoid"])
def test_contacts_that_are_switched_off_are_gone(flag, geom):
    mjm = mujoco.MjModel.from_xml_string(TOUCHING.format(geom))
    m, mjd = mjw.put_model(mjm, dtype=wp.float64), mujoco.MjData(mjm)
    mjd.qpos[7] = 0.3  # beyond its limit
    d = mjw.put_data(mjm, mjd, nworld=2, dtype=wp.float64)
    for _ in range(2):  # so that fields are stored by steps, too
        mjw.step(m, d)
        mujoco.mj_step(mjm, mjd)
        assert d.ncon.numpy().tolist() == [mjd.ncon] * 2 and mjd.ncon > 0
    mjm.opt.disableflags = int(flag)
    m.opt.disableflags = int(flag)
    for act in ("step", "step", "forward"):
        getattr(mjw, act)(m, d)
        getattr(mujoco, f"mj_{act}")(mjm, mjd)
        for name in ("ncon", "nefc", "nl"):
            assert getattr(d, name).numpy().tolist() == [getattr(mjd, name)] * 2, name
        assert (d.solver_niter.numpy() > 0).all() == (mjd.nefc > 0)
        assert mjd.ncon == 0 and len(d.contact.dist) == 0
        np.testing.assert_allclose(d.sensordata.numpy()[1], mjd.sensordata, atol=1e-6)
        np.testing.assert_allclose(d.qvel.numpy()[1], mjd.qvel, atol=1e-9)
        given = mujoco.MjData(mjm)
        mjw.get_data_into(given, mjm, d)
        assert given.ncon == 0 and given.nefc == mjd.nefc


def test_masses_of_free_bodies_and_places_of_geoms_count_where_mujoco_takes_shortcuts():
    body = '<body><freejoint/><geom size=".1"/></body>'
    mjm = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    mjm.opt.gravity[:] = 0.0
    m, mjd = mjw.put_model(mjm, dtype=wp.float64), mujoco.MjData(mjm)
    mjd.qfrc_applied[0] = 1.0
    mujoco.mj_forward(mjm, mjd)
    before = mjd.qacc[0]
    mjm.body_mass[1] *= 2.0
    mjm.geom_pos[0, 2] = 0.5
    mujoco.mj_forward(mjm, mjd)
    assert mjd.qacc[0] == before and mjd.geom_xpos[0, 2] == 0.0
    with contents(m.body_mass) as held:
        held[0, 1] *= 2.0
    with contents(m.geom_pos) as held:
        held[0, 0, 2] = 0.5
    d = mjw.put_data(mjm, mjd, dtype=wp.float64)
    mjw.forward(m, d)
    assert d.qacc.numpy()[0, 0] == pytest.approx(before / 2) and d.geom_xpos.numpy()[0, 0, 2] == 0.5
