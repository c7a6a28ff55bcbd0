"""Each difference from MuJoCo that the documentation lists is shown by a test; some by those here."""

import re
from pathlib import Path

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco import differences, scenes
from treadle.mujoco import check

ROOT = Path(__file__).resolve().parents[2]


def test_the_documentation_has_the_table():
    assert differences.document() in (ROOT / "docs" / "physics.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("row", differences.TABLE, ids=lambda row: row.what)
def test_each_row_is_shown_by_a_test(row):
    file, _, name = row.shown.partition("::")
    text = (ROOT / "tests" / "mujoco" / file).read_text(encoding="utf-8")
    assert re.search(rf"^def {name}\(", text, re.M), row.shown


def test_forms_of_fields():
    mjm = scenes.load("tendon_pulley_wrap")
    m = mjw.put_model(mjm, dtype=wp.float64)
    states = check.random_states(mjm, 1)
    d = check.put_states(m, states)
    mjw.forward(m, d)
    mjd = states[0]
    mujoco.mj_forward(mjm, mjd)
    dense = np.zeros((mjm.ntendon, mjm.nv))
    for t in range(mjm.ntendon):
        first, count = m.ten_J_rowadr.numpy()[t], m.ten_J_rownnz.numpy()[t]
        row = slice(first, first + count)
        dense[t, m.ten_J_colind.numpy()[row]] = d.ten_J.numpy()[0, row]
    theirs = np.zeros((mjm.ntendon, mjm.nv))
    mujoco.mju_sparse2dense(theirs, mjd.ten_J, mjm.ten_J_rownnz, mjm.ten_J_rowadr, mjm.ten_J_colind)
    np.testing.assert_allclose(dense, theirs, atol=1e-12)
    assert d.wrap_xpos.shape == (1, 2 * mjm.nwrap) and mjd.wrap_xpos.shape == (mjm.nwrap, 6)
    assert d.efc_J.shape == (1, d.sizes["njmax"], mjm.nv)


def test_normals_of_curved_geoms_are_polished():
    body = '<body pos="{}" euler="20 30 {}"><freejoint/><geom type="ellipsoid" size=".1 .2 .3"/></body>'
    xml = f"<mujoco><worldbody>{body.format('0 0 0', 10)}{body.format('.15 .1 .1', 70)}</worldbody></mujoco>"
    mjm = mujoco.MjModel.from_xml_string(xml)
    m, d, mjd = mjw.put_model(mjm, dtype=wp.float64), mjw.make_data(mjm, dtype=wp.float64), mujoco.MjData(mjm)
    mjw.kinematics(m, d)
    mjw.collision(m, d)
    mujoco.mj_forward(mjm, mjd)
    loose = mjd.contact.frame[0, :3].copy()
    mjm.opt.ccd_tolerance, mjm.opt.ccd_iterations = 1e-14, 500
    mujoco.mj_forward(mjm, mjd)
    exact, ours = mjd.contact.frame[0, :3], d.contact_frame.numpy()[0, 0, 0]
    assert np.abs(ours - exact).max() < 0.1 * np.abs(loose - exact).max()


BOXES = """
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body pos="0 0 .09" euler="3 2 0"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body pos=".05 .05 .28"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  </worldbody>
</mujoco>
"""


def test_newtons_steps_that_run_out_end_where_or_near_where_mujocos_do():
    for cone in (mujoco.mjtCone.mjCONE_PYRAMIDAL, mujoco.mjtCone.mjCONE_ELLIPTIC):
        gaps = []
        for iterations in (1, 2, 100):
            mjm = mujoco.MjModel.from_xml_string(BOXES)
            mjm.opt.cone, mjm.opt.iterations = cone, iterations
            m, mjd = mjw.put_model(mjm, dtype=wp.float64), mujoco.MjData(mjm)
            mjd.qvel[0] = 0.3
            d = mjw.put_data(mjm, mjd, dtype=wp.float64)
            mujoco.mj_forward(mjm, mjd)
            mjw.forward(m, d)
            least, ours = cost(mjm, mjd, mjd.qacc.copy()), cost(mjm, mjd, d.qacc.numpy()[0])
            gaps.append(ours / least - 1)
        assert abs(gaps[0]) < 1e-9 and abs(gaps[2]) < 1e-9
        assert 1e-11 < gaps[1] < 1e-3  # 0.04 % with elliptic cones


@pytest.mark.parametrize("dtype, bound", [(wp.float64, 1e-12), (wp.float32, 1e-4)])
def test_a_step_without_damping_takes_the_acceleration_that_a_solver_cut_short_left(dtype, bound):
    mjm = mujoco.MjModel.from_xml_string(BOXES)
    mjm.opt.iterations = 1
    m, mjd = mjw.put_model(mjm, dtype=dtype), mujoco.MjData(mjm)
    mjd.qvel[0] = 0.3
    d = mjw.put_data(mjm, mjd, dtype=dtype)
    mujoco.mj_step(mjm, mjd)
    mjw.step(m, d)
    assert np.abs(d.qvel.numpy()[0] - mjd.qvel).max() < bound * np.abs(mjd.qvel).max()


def cost(mjm, mjd, qacc):
    """What MuJoCo's solver minimises, at ``qacc``."""
    jar, found = np.zeros(mjd.nefc), np.zeros(1)
    mujoco.mj_mulJacVec(mjm, mjd, jar, qacc)
    mujoco.mj_constraintUpdate(mjm, mjd, jar - mjd.efc_aref, found, 0)
    beside = qacc - mjd.qacc_smooth
    force = np.zeros(mjm.nv)
    mujoco.mj_mulM(mjm, mjd, force, beside)
    return found[0] + 0.5 * beside @ force


@pytest.mark.parametrize("limit, damps", [(1e-3, False), (50, True)])
def test_a_servo_at_its_limit_does_not_damp(limit, damps):
    servo = f'<orientation joint="b" kp="2" kv=".3" forcerange="0 {limit}"/>'
    body = '<body><joint name="b" type="ball"/><geom size=".1" pos=".1 0 0"/></body>'
    xml = (
        f'<mujoco><option integrator="implicitfast"/><worldbody>{body}</worldbody><actuator>{servo}</actuator></mujoco>'
    )
    mjm = mujoco.MjModel.from_xml_string(xml)
    m = mjw.put_model(mjm, dtype=wp.float64)
    d = mjw.make_data(m)
    d.ctrl.fill_(0.4)
    mjw.forward(m, d)
    mjw.implicit(m, d)
    assert d.field("qDeriv").numpy().any() == damps


def test_quaternions_are_normalised_when_used():
    mjm = scenes.load("joints")
    m, mjd = mjw.put_model(mjm, dtype=wp.float64), mujoco.MjData(mjm)
    mjd.qpos[3:7] *= 2
    d = mjw.put_data(mjm, mjd, dtype=wp.float64)
    mjw.kinematics(m, d)
    mujoco.mj_kinematics(mjm, mjd)
    np.testing.assert_allclose(d.xpos.numpy()[0], mjd.xpos, atol=1e-12)
    np.testing.assert_array_equal(d.qpos.numpy()[0, 3:7], [2, 0, 0, 0])
