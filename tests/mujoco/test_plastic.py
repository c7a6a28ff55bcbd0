"""Springs that yield do so as MuJoCo's, of joints of all kinds and tendons; resets undo it, keyframes bring it."""

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from treadle.mujoco import check
from treadle.mujoco.contents import contents

YIELDING = """
<mujoco>
  <option integrator="{integrator}" timestep=".005"><flag energy="enable"/></option>
  <compiler angle="radian"/>
  <default><geom contype="0" conaffinity="0" size=".1" pos=".2 0 .1"/></default>
  <worldbody>
    <site name="w" pos="0 0 1"/>
    <body><joint name="a" axis="0 1 0" stiffness="4" springyield=".1"/><geom/><site name="s"/></body>
    <body pos="1 0 0"><joint name="b" type="ball" stiffness="6" springyield=".2"/><geom/></body>
    <body pos="2 0 0">
      <joint name="c" type="slide" axis="1 0 1" stiffness="5" springref=".1" springyield=".03"/><geom/>
      <body><joint name="d" axis="0 1 0" stiffness="1"/><geom/></body>
    </body>
  </worldbody>
  <tendon>
    <fixed stiffness="5" springlength="0 .1" springyield=".02">
      <joint joint="d" coef="1"/><joint joint="c" coef="-1"/>
    </fixed>
    <spatial stiffness="5" springlength=".2 .5" springyield=".05"><site site="w"/><site site="s"/></spatial>
    <fixed stiffness="2"><joint joint="d" coef="1"/></fixed>
  </tendon>
  <keyframe><key plastic=".3 1 0 0 0 .2 0 .2 .3 .6"/></keyframe>
</mujoco>
"""


@pytest.mark.mujoco4
@pytest.mark.parametrize("integrator", ["Euler", "RK4"])
def test_springs_yield(integrator):
    mjm = mujoco.MjModel.from_xml_string(YIELDING.format(integrator=integrator))
    assert mjm.nplastic == 10
    m = mjw.put_model(mjm, dtype=wp.float64)
    states = check.random_states(mjm, 3)
    d = check.put_states(m, states)
    for world, mjd in enumerate(states):
        np.testing.assert_array_equal(d.plastic.numpy()[world], mjd.plastic)
    start = states[0].plastic.copy()
    for k in range(40):
        mjw.step(m, d)
        for world, mjd in enumerate(states):
            mujoco.mj_step(mjm, mjd)
            for name in ("plastic", "qpos", "qfrc_spring", "energy"):
                np.testing.assert_allclose(getattr(d, name).numpy()[world], getattr(mjd, name), atol=1e-9, err_msg=name)
    assert (states[0].plastic != start).sum() > 6
    mjw.reset_data_keyframe(m, d, wp.array([-1, 0, -1], dtype=int))
    np.testing.assert_array_equal(d.plastic.numpy()[1], mjm.key_plastic[0])
    with contents(d.qvel) as held:
        held[2, 0] = np.nan
    mjw.step(m, d)
    np.testing.assert_array_equal(d.plastic.numpy()[2], mujoco.MjData(mjm).plastic)
    np.testing.assert_allclose(mjw.make_data(mjm).plastic.numpy()[0], mujoco.MjData(mjm).plastic, rtol=1e-6)
