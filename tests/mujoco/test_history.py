"""Delays of controls and sensors, and sensors that pause, are MuJoCo's."""

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from treadle.mujoco.contents import contents

DELAYS = """
<mujoco>
  <option timestep=".01" integrator="{integrator}"/>
  <default><geom contype="0" conaffinity="0" size=".1" pos=".1 0 .1"/></default>
  <worldbody>
    <body><joint name="a" axis="1 0 0"/><geom/><site name="s"/></body>
    <body pos="1 0 0"><joint name="b" type="ball"/><geom/></body>
  </worldbody>
  <actuator>
    <motor joint="a" nsample="4" delay=".03"/>
    <motor joint="a" nsample="4" delay=".025" interp="linear" ctrlrange="-.5 .5"/>
    <motor joint="a" nsample="6" delay=".037" interp="cubic"/>
    <motor joint="a" nsample="2"/>
    <position joint="a" timeconst=".1" kp="2" nsample="1" delay=".004"/>
    <pid joint="a" kp="1" kv=".1" ki=".3" input="pos vel ff" nsample="3" delay=".012" interp="linear"/>
    <orientation joint="b" kp=".2" kv=".1" input="quat" nsample="3" delay=".02"/>
  </actuator>
  <sensor>
    <jointpos joint="a" nsample="3" delay=".02"/>
    <jointvel joint="a" nsample="5" delay=".033" interp="cubic"/>
    <accelerometer site="s" nsample="4" delay=".015" interp="linear"/>
    <framepos objtype="site" objname="s" nsample="2" interval=".025"/>
    <gyro site="s" nsample="3" interval=".025 -.012" delay=".021"/>
    <actuatorfrc actuator="{frc}" nsample="2" interval=".005"/>
    <e_kinetic nsample="4" delay=".02"/><clock nsample="2" delay=".01"/><jointpos joint="a"/>
  </sensor>
</mujoco>
""".replace('actuator="{frc}"', 'actuator="p"').replace("<position joint", '<position name="p" joint')


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])
@pytest.mark.parametrize("dtype, limit", [(wp.float64, 1e-9), (wp.float32, 1e-4)])
def test_delays_and_pauses(integrator, dtype, limit):
    if dtype is wp.float32 and integrator != "Euler":
        pytest.skip("one integrator is enough in single precision")
    mjm = mujoco.MjModel.from_xml_string(DELAYS.format(integrator=integrator))
    m = mjw.put_model(mjm, dtype=dtype)
    d, theirs = mjw.make_data(m, 3), [mujoco.MjData(mjm) for _ in range(3)]
    np.testing.assert_allclose(d.history.numpy()[1], theirs[0].history, atol=1e-7)
    rng = np.random.default_rng(0)
    for k in range(60):
        ctrl = rng.uniform(-1, 1, (3, mjm.nu)).astype(np.float32)
        with contents(d.ctrl) as held:
            held[...] = ctrl
        mjw.step(m, d)
        for world, mjd in enumerate(theirs):
            mjd.ctrl[:] = ctrl[world]
            mujoco.mj_step(mjm, mjd)
            for name in ("qpos", "qvel", "act", "sensordata"):
                ours = getattr(d, name).numpy()[world]
                np.testing.assert_allclose(
                    ours, getattr(mjd, name), rtol=limit, atol=limit, err_msg=f"{name}, step {k}"
                )
            if dtype is wp.float64:
                np.testing.assert_allclose(d.history.numpy()[world], mjd.history, atol=1e-9)
        if k == 30:
            mjw.reset_data(m, d, wp.array([0, 1, 0], dtype=int))
            mujoco.mj_resetData(mjm, theirs[1])


def test_a_world_that_begins_anew_has_no_history():
    mjm = mujoco.MjModel.from_xml_string(DELAYS.format(integrator="Euler"))
    m = mjw.put_model(mjm, dtype=wp.float64)
    d = mjw.make_data(m, 2)
    d.ctrl.fill_(0.3)
    mjw.step(m, d, nstep=5)
    with contents(d.qvel) as held:
        held[1, 0] = np.nan
    mjw.step(m, d)
    np.testing.assert_allclose(d.history.numpy()[1], mujoco.MjData(mjm).history, atol=1e-15)
    assert not np.allclose(d.history.numpy()[0], d.history.numpy()[1])
