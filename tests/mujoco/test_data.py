"""Data comes from MuJoCo, goes back to it, and starts again."""

import copy

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco import models, scenes
from treadle.mujoco.contents import contents
from treadle.mujoco.worlds import fields_of, value_of


def test_what_is_put_comes_back():
    mjm = models.tree()
    mjd = models.reference(mjm, models.random_state(mjm, 1), 0)
    mujoco.mj_step(mjm, mjd, nstep=3)
    d = mjw.put_data(mjm, mjd, nworld=4, dtype=wp.float64)
    back = mujoco.MjData(mjm)
    mjw.get_data_into(back, mjm, d, world_id=3)
    for row, values in fields_of(mjm, mjd):
        np.testing.assert_array_equal(value_of(mjm, back, row.name), values, err_msg=row.name)


def test_contacts_and_rows_of_constraints_come_back_too():
    mjm = scenes.load("humanoid_mjw")
    mjd = mujoco.MjData(mjm)
    mujoco.mj_resetDataKeyframe(mjm, mjd, 0)
    mujoco.mj_step(mjm, mjd, nstep=30)
    assert mjd.ncon > 0
    d = mjw.put_data(mjm, mjd, nworld=2, dtype=wp.float64)
    back = mujoco.MjData(mjm)
    mjw.get_data_into(back, mjm, d, world_id=1)
    for row, values in fields_of(mjm, mjd):
        np.testing.assert_array_equal(value_of(mjm, back, row.name), values, err_msg=row.name)
    for name in ("geom", "geom1", "geom2", "flex", "elem", "vert", "mu", "exclude"):
        theirs = getattr(mjd.contact, name)
        np.testing.assert_allclose(getattr(back.contact, name), theirs, rtol=1e-15, atol=0, err_msg=name)


def test_why_contacts_have_no_rows_comes_back():
    mjm = mujoco.MjModel.from_xml_string("""
        <mujoco><worldbody>
          <geom name="floor" type="plane" size="1 1 1"/>
          <body mocap="true" pos="0 0 .05"><geom name="led" size=".1"/></body>
          <body pos="1 0 .099"><freejoint/><geom size=".1"/></body>
          <body pos="2 0 .11"><freejoint/><geom size=".1" margin=".005" gap=".01"/></body>
        </worldbody><contact><pair geom1="floor" geom2="led"/></contact></mujoco>""")
    mjd, back = mujoco.MjData(mjm), mujoco.MjData(mjm)
    mujoco.mj_forward(mjm, mjd)
    assert set(mjd.contact.exclude) == {0, 1, 3}
    m, d = mjw.put_model(mjm, dtype=wp.float64), mjw.put_data(mjm, mjd, dtype=wp.float64)
    for computed in (False, True):
        mujoco.mj_step(mjm, back, nstep=9)  # leaves numbers of its own where contacts will be
        mjw.get_data_into(back, mjm, d)
        np.testing.assert_array_equal(back.contact.exclude, mjd.contact.exclude, err_msg=f"{computed=}")
        mjw.forward(m, d)


@pytest.mark.mujoco4
def test_what_does_not_come_back_is_known():
    mjm = scenes.load("joints")
    mjd, back = mujoco.MjData(mjm), mujoco.MjData(mjm)
    mujoco.mj_step(mjm, mjd, nstep=3)
    d = mjw.put_data(mjm, mjd, dtype=wp.float64)
    with contents(d.warned) as held:
        held[0] = [4, 3, 2, 1, 5]
    mjw.get_data_into(back, mjm, d)
    numbers = [name for name in dir(mjd) if isinstance(getattr(mjd, name), int | float | np.ndarray)]
    left = {name for name in numbers if not np.allclose(getattr(mjd, name), getattr(back, name), rtol=0, atol=1e-14)}
    of_integrators = {"qH", "qHDiagInv", "qDeriv", "qLU"}
    assert {name for name in left if not name.startswith(("_", "maxuse_", "flg_"))} <= of_integrators
    names = ("BADQVEL", "BADQPOS", "BADQACC", "BADCTRL", "INERTIA")
    assert [back.warning[int(getattr(mujoco.mjtWarning, f"mjWARN_{name}"))].number for name in names] == [4, 3, 2, 1, 5]


def test_one_world_of_many_is_taken():
    mjm = models.pair()
    m, d = mjw.put_model(mjm, dtype=wp.float64), mjw.make_data(mjm, 5, dtype=wp.float64)
    with contents(d.qvel) as held:
        held[...] = np.arange(5.0)[:, None]
    mjw.step(m, d)
    result = mujoco.MjData(mjm)
    mjw.get_data_into(result, mjm, d, world_id=2)
    mjd = mujoco.MjData(mjm)
    mjd.qvel[:] = 2.0
    mujoco.mj_step(mjm, mjd)
    for name in ("qpos", "qvel", "xpos", "xquat", "qacc", "M"):
        np.testing.assert_allclose(getattr(result, name), getattr(mjd, name), rtol=0, atol=1e-11, err_msg=name)
    assert result.time == pytest.approx(mjd.time)
    with pytest.raises(IndexError, match="world_id is 5"):
        mjw.get_data_into(result, mjm, d, world_id=5)


def test_worlds_start_at_the_reference_pose():
    mjm = models.tree()
    d = mjw.make_data(mjm, nworld=3, nconmax=10, njmax=20)
    assert d.nworld == 3 and d.qpos.shape == (3, mjm.nq) and d.qpos.dtype is wp.float32
    np.testing.assert_array_equal(d.qpos.numpy(), np.tile(mjm.qpos0.astype(np.float32), (3, 1)))
    assert not d.qvel.numpy().any() and not d.time.numpy().any()


def test_marked_worlds_are_reset_and_others_go_on():
    mjm = models.pair()
    m, d = mjw.put_model(mjm), mjw.make_data(mjm, nworld=4)
    d.ctrl.fill_(0.5)
    d.qfrc_applied.fill_(0.1)
    mjw.step(m, d, nstep=5)
    before = {name: getattr(d, name).numpy().copy() for name in ("qpos", "qvel", "ctrl", "qfrc_applied", "time")}
    mjw.reset_data(m, d, wp.array([True, False, False, True], dtype=bool))
    fresh = mjw.make_data(mjm, nworld=4)
    for name, old in before.items():
        now = getattr(d, name).numpy()
        np.testing.assert_array_equal(now[[1, 2]], old[[1, 2]], err_msg=name)
        np.testing.assert_array_equal(now[[0, 3]], getattr(fresh, name).numpy()[[0, 3]], err_msg=name)
    mjw.reset_data(m, d)
    assert not d.time.numpy().any() and not d.qvel.numpy().any()
    with pytest.raises(ValueError, match="reset has shape"):
        mjw.reset_data(m, d, wp.zeros(3, dtype=bool))


def test_a_world_without_worlds_is_refused():
    with pytest.raises(ValueError, match="nworld is at least 1"):
        mjw.make_data(models.tree(), nworld=0)


def test_there_is_room_for_a_bond_of_six_rows_with_all_that_moves():
    ball = "<body><freejoint/><geom size='.1' condim='6'/></body>"
    mjm = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody>{ball}<geom type='plane' size='1 1 1'/></worldbody></mujoco>"
    )
    d = mjw.make_data(mjm, nworld=8)
    assert d.live_Z.shape == (8, 6 * mjm.nv)  # a contact has six rows by six degrees
    assert (d.nconmax, d.naconmax, d.njmax) == (1, 8, d.efc_D.shape[1])


def test_copies_are_worlds_of_their_own():
    mjm = models.pair()
    m, d = mjw.put_model(mjm), mjw.make_data(mjm, nworld=2)
    d.qvel.fill_(0.5)
    d.xfrc_applied.fill_(0.1)
    mjw.step(m, d, nstep=5)
    for other in (copy.copy(d), copy.deepcopy(d)):
        mjw.step(m, other)
        assert not (other.qpos.numpy() == d.qpos.numpy()).any()
    again = copy.deepcopy(d)
    np.testing.assert_array_equal(again.xpos.numpy(), d.xpos.numpy())
    mjw.step(m, again)
    np.testing.assert_array_equal(again.qpos.numpy(), other.qpos.numpy())


@pytest.mark.mujoco4
def test_rows_of_tendons_come_back():
    body = '<body><joint name="j" axis="0 1 0" limited="true" range="-5 5"/><geom size=".1" pos=".3 0 0"/></body>'
    fixed = '<fixed name="{}" limited="true" range="-.1 .1" {}><joint joint="j" coef="1"/></fixed>'
    tendons = "".join(fixed.format(n, extra) for n, extra in zip("abcd", ("", 'frictionloss="1"', "", "")))
    equal = '<equality><tendon tendon1="c" tendon2="d"/></equality>'
    xml = f"<mujoco><worldbody>{body}</worldbody><tendon>{tendons}</tendon>{{}}</mujoco>"
    for equality, angle in ((equal, 0.3), ("", 0.3), ("", 0.0)):
        mjm = mujoco.MjModel.from_xml_string(xml.format(equality))
        m, mjd, back = mjw.put_model(mjm, dtype=wp.float64), mujoco.MjData(mjm), mujoco.MjData(mjm)
        mjd.qpos[0] = angle
        d = mjw.put_data(mjm, mjd, dtype=wp.float64)
        mujoco.mj_forward(mjm, mjd)
        mjw.forward(m, d)
        mjw.get_data_into(back, mjm, d)
        assert back.tendon_efcadr.tolist() == mjd.tendon_efcadr.tolist()
