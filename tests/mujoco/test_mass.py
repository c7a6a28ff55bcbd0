"""In single precision the mass matrix, its factor and the forces of weights keep their digits where parts are light.

Each model loses them if it is counted from the centre of mass of its tree, or if its M is rounded before it is
factored; no field before the solver may be off by more than one part in 10,000.
"""

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco.test_rounding import FAR
from treadle.mujoco import check

# Two joints, a bone of 0.1 m, three joints at its end, and three more there that carry an arm: if those give way, next
# to nothing is left to move. A tendon with inertia goes over some of them.
SHOULDER = """
<mujoco>
  <worldbody><body pos="0 0 1">
    <joint name="yaw" axis="0 0 1"/><joint axis="0 1 0"/>
    <geom type="capsule" size=".01" fromto="0 0 0 .1 0 0" density="300"/>
    <body pos=".1 0 0">
      <joint name="a" axis="0 1 0" armature="1e-4"/><joint name="b" axis="0 0 1" armature="1e-4"/>
      <joint axis="1 0 0" armature="1e-4"/>
      <geom size=".01"/>
      <body>
        <joint name="c" axis="0 0 1"/><joint axis="0 1 0"/><joint axis="1 0 0"/>
        <geom type="capsule" size=".05" fromto="0 0 0 .6 0 0"/>
        <body pos=".6 0 0"><joint axis="0 0 1"/><geom type="capsule" size=".04" fromto="0 0 0 .4 .1 0"/></body>
      </body>
    </body>
  </body></worldbody>
  <tendon><fixed armature="1e-3"><joint joint="yaw" coef="1"/><joint joint="b" coef="2"/><joint joint="c" coef="-1"/>
  </fixed></tendon>
  <actuator><motor joint="b" armature="1e-5" gear="2"/></actuator>
</mujoco>
"""
LOADED = SHOULDER.replace(' armature="1e-3"', "").replace('<motor joint="b" armature="1e-5"', '<motor joint="b"')


@pytest.mark.parametrize("text", [FAR, SHOULDER, LOADED], ids=["far", "shoulder", "no rotors"])
def test_no_field_loses_digits_that_the_problem_has(text):
    mjm = mujoco.MjModel.from_xml_string(text)
    mjm.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    lines = check.compare(mjm, check.random_states(mjm, 20), wp.float32)
    assert not check.beyond(lines, 1e-4), "\n".join(map(str, check.beyond(lines, 1e-4)))
    assert not check.beyond(check.compare(mjm, check.random_states(mjm, 20), wp.float64), 1e-9)


def test_double_precision_is_for_what_asks_for_it():
    for text, asks in ((FAR, False), (SHOULDER, True), (LOADED, True)):
        mjm = mujoco.MjModel.from_xml_string(text)
        assert mjw.put_model(mjm).fine is asks
        assert not mjw.put_model(mjm, dtype=wp.float64).fine


def test_weights_that_no_joint_feels_give_no_force():
    mjm = mujoco.MjModel.from_xml_string(FAR)
    m = mjw.put_model(mjm)
    d = mjw.make_data(m, 1)
    d.qpos.assign([[0.3, 0.7]])
    mjw.fwd_position(m, d)
    mjw.fwd_velocity(m, d)
    assert (d.qfrc_bias.numpy() == 0).all()


def test_gradients_go_through_both_precisions():
    mjm = mujoco.MjModel.from_xml_string(SHOULDER.replace('"1e-4"', '"1e-2"'))
    found = []
    for real in (wp.float32, wp.float64):
        m = mjw.put_model(mjm, dtype=real)
        assert m.fine is (real is wp.float32)
        d = mjw.make_data(m, 1)
        d.qpos.fill_(0.2)
        for array in (d.qpos, d.M, d.qLDiagInv):
            array.requires_grad = True
        with wp.Tape() as tape:
            for stage in (mjw.kinematics, mjw.com_pos, mjw.tendon, mjw.crb, mjw.tendon_armature, mjw.factor_m):
                stage(m, d)
        tape.backward(grads={d.qLDiagInv: wp.array(np.linspace(-1, 1, m.nv)[None], dtype=real)})
        found.append(d.qpos.grad.numpy().astype(float))
    assert np.abs(found[1]).max() > 1.0
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-3 * np.abs(found[1]).max())
