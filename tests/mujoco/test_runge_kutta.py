"""What a Runge-Kutta step leaves in derived fields is what MuJoCo leaves: its last part, its mean, or its start."""

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from treadle.mujoco.worlds import fields_of

XML = """
<mujoco>
  <option integrator="RK4" timestep=".02"><flag energy="enable"/></option>
  <worldbody>
    <geom type="plane" size="3 3 .1"/>
    <body name="arm" pos="0 0 1">
      <joint name="j" axis="0 1 0" limited="true" range="-10 30"/><geom size=".03" pos=".3 0 0"/>
      <site name="s" pos=".1 0 0"/><camera/><light/>
      <body pos=".3 0 0"><joint name="k" axis="0 1 0" damping=".1" stiffness="1"/><geom size=".03" pos=".3 0 0"/></body>
    </body>
    <body pos="1 1 .09"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  </worldbody>
  <tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>
  <actuator>
    <motor name="m" joint="j"/><motor tendon="t"/><general joint="j" dyntype="integrator"/>
    <general joint="k" dyntype="filterexact" dynprm=".1"/>
  </actuator>
  <sensor><subtreelinvel body="arm"/><actuatorpos actuator="m"/><jointvel joint="j"/><accelerometer site="s"/></sensor>
</mujoco>
"""
CUT = {("njmax",), ("nconmax",), ("nwrappoint",)}  # axes that are longer than what there is


@pytest.mark.parametrize("reads", [1, 3])  # the last one finds fields that the step has stored
def test_every_field_is_that_of_mujoco(reads):
    mjm = mujoco.MjModel.from_xml_string(XML)
    m, mjd = mjw.put_model(mjm, dtype=wp.float64), mujoco.MjData(mjm)
    mjd.qpos[0], mjd.qvel[:], mjd.ctrl[:] = 0.3, 0.5, (1.0, 0.5, 0.2, 0.7)
    d = mjw.put_data(mjm, mjd, dtype=wp.float64)
    compared: dict[str, float] = {}
    for _ in range(reads):
        mujoco.mj_step(mjm, mjd)
        mjw.step(m, d)
        for row, theirs in fields_of(mjm, mjd):
            if theirs.size and row.name not in ("solver_niter", "qfrc_inverse"):
                ours = d.read(row).numpy()[0]
                ours = ours[: len(theirs)] if row.shape[1:2] in CUT else ours
                off = float(np.abs(np.ravel(ours) - np.ravel(theirs)).max())
                compared[row.name] = max(off, compared.get(row.name, 0.0))
    assert {"actuator_length", "act_dot", "subtree_linvel", "sensordata", "contact_dist", "efc_J"} <= compared.keys()
    assert not {name: off for name, off in compared.items() if off > 1e-7}
