"""Frames of contacts have three axes, however geoms lie."""

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw

UPRIGHT = """
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body pos="0 0 0.199"><freejoint/><geom type="capsule" size="0.1 0.1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_a_capsule_upright_on_a_plane_has_friction(dtype):
    mjm = mujoco.MjModel.from_xml_string(UPRIGHT)
    m, d, mjd = mjw.put_model(mjm, dtype=dtype), mjw.make_data(mjm, dtype=dtype), mujoco.MjData(mjm)
    mjw.kinematics(m, d)
    mjw.collision(m, d)
    mujoco.mj_forward(mjm, mjd)
    frame = np.reshape(d.contact_frame.numpy()[0, 0], 9)
    np.testing.assert_allclose(frame, mjd.contact.frame[0], atol=1e-6)
