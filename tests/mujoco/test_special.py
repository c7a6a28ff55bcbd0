"""Code made for one model has the bits of the stages, in place of which it comes."""

import mujoco
import numpy as np

import treadle as wp
import treadle.mujoco as mjw
from treadle.mujoco import plan, special

NWORLD = 32  # a multiple of all widths of gangs

SCENE = """
<mujoco>
  <option timestep="0.01"><flag constraint="disable"/></option>
  <worldbody>
    <body pos="0 0 1">
      <freejoint/>
      <geom type="sphere" size="0.1"/>
      <body pos="0.1 0 0" quat="0.9 0 0.1 0.2">
        <joint name="j" axis="0 1 0" damping="0.1" stiffness="2" pos="0.02 0 0.01"/>
        <geom type="capsule" fromto="0 0 0 0.2 0 0.1" size="0.03"/>
        <body pos="0.2 0 0"><joint type="ball" damping="0.1"/><geom type="box" size="0.05 0.04 0.03"/></body>
      </body>
      <body pos="-0.2 0 0"><joint name="s" type="slide" axis="1 0 0"/><geom type="sphere" size="0.05"/></body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="j" gear="0.5" ctrlrange="-1 1" ctrllimited="true"/>
    <position joint="s" kp="20"/>
  </actuator>
  <sensor><jointpos joint="j"/></sensor>
</mujoco>
"""  # the sensor keeps it from the straight line


def test_specialised_steps_have_the_bits_of_stages(monkeypatch):
    monkeypatch.setattr(special, "LEAST", 1)
    monkeypatch.setattr(plan, "TRIES", 4)
    mjm = mujoco.MjModel.from_xml_string(SCENE)
    m = mjw.put_model(mjm)
    rng = np.random.default_rng(0)
    one, other = mjw.make_data(m, NWORLD), mjw.make_data(m, NWORLD)
    velocity = rng.uniform(-1, 1, (NWORLD, mjm.nv))
    velocity[3] = 1e12  # goes beyond all bounds, and begins anew
    for d in (one, other):
        d.qvel.assign(velocity)
    for k in range(8):
        controls = rng.uniform(-1, 1, (NWORLD, mjm.nu))
        for d in (one, other):
            d.ctrl.assign(controls)
            mjw.step(m, d)
        if k == 1:  # from the next step on
            launches = one._plan._graph.entries
            one._plan._specialist.work()
        if k == 2:
            assert len(one._plan._graph.entries) < len(launches) / 2
        if k == 3:
            spare = mjw.make_data(m, NWORLD).qpos
            spare.assign(one.qpos)
            one.qpos = spare  # the plan goes on with another array
        for name in ("qpos", "qvel", "time"):
            np.testing.assert_array_equal(getattr(one, name).numpy(), getattr(other, name).numpy(), err_msg=name)
    assert one._plan._specialist is None, "one of both was faster"
    assert one.warning["BADQVEL"][3] == other.warning["BADQVEL"][3] > 0
    np.testing.assert_array_equal(one.sensordata.numpy(), other.sensordata.numpy())


def test_it_is_made_when_it_pays(monkeypatch):
    monkeypatch.setattr(special, "WORTH", 3 * NWORLD)
    ran = []
    monkeypatch.setattr(special.Specialist, "work", lambda self: ran.append(self))
    mjm = mujoco.MjModel.from_xml_string(SCENE)
    m = mjw.put_model(mjm)
    small = mjw.make_data(m, NWORLD)
    mjw.step(m, small)
    assert small._plan._specialist is None
    monkeypatch.setattr(special, "LEAST", 1)
    d = mjw.make_data(m, NWORLD)
    mjw.step(m, d, nstep=2)
    assert not ran
    mjw.step(m, d)
    assert len(ran) == 1
    mjw.step(m, d)  # nothing came of it
    assert d._plan._specialist is None and len(ran) == 1

    def fail(self):
        raise RuntimeError("no room")

    monkeypatch.setattr(special.Specialist, "work", fail)
    failing = mjw.make_data(m, NWORLD)
    said = []
    monkeypatch.setattr(special, "log_warning", said.append)
    mjw.step(m, failing)
    specialist = failing._plan._specialist
    mjw.step(m, failing, nstep=2)
    specialist._thread.join()
    mjw.step(m, failing)
    assert failing._plan._specialist is None and "no room" in said[0]


def test_gangs_are_no_wider_than_asked_for(monkeypatch):
    monkeypatch.setattr(special, "LEAST", 1)
    monkeypatch.setattr(wp.config, "gang_width", 2)
    m = mjw.put_model(mujoco.MjModel.from_xml_string(SCENE))
    one, other = mjw.make_data(m, 6), mjw.make_data(m, 6)
    mjw.step(m, one)
    one._plan._specialist.work()
    made = one._plan._specialist.graph().entries
    assert len(made) < len(one._plan._graph.entries)
    assert {entry.program.entry.meta["width"] for entry in made} == {2}
    mjw.step(m, one, nstep=2)
    mjw.step(m, other, nstep=3)
    np.testing.assert_array_equal(one.qpos.numpy(), other.qpos.numpy())
