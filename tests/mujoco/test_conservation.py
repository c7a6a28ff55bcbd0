"""What physics keeps is kept: momenta of free bodies, energy to the order of the integrator, work of gravity."""

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco import models
from treadle.mujoco.contents import contents

BODIES = """
<mujoco>
  <option gravity="0 0 {g}" integrator="{integrator}" timestep="{h}"><flag energy="enable"/></option>
  <default><geom contype="0" conaffinity="0" density="500"/></default>
  <worldbody>
    <body pos="0 0 2">
      <freejoint/><geom type="box" size=".1 .2 .3"/>
      <body pos=".2 0 .3">
        <joint type="ball"/><geom type="capsule" size=".05 .2" pos="0 0 .2"/>
        <body pos="0 0 .4"><joint axis="1 0 0"/><geom size=".1" pos=".1 0 .1"/></body>
      </body>
    </body>
    <body pos="2 0 2"><freejoint/><geom type="ellipsoid" size=".1 .2 .3"/></body>
  </worldbody>
</mujoco>
"""
NO_CONTACT = int(mujoco.mjtDisableBit.mjDSBL_CONTACT)


def floating(integrator="RK4", g=0.0, h=0.001):
    """Trees that float freely, thrown and spun, in two worlds."""
    mjm = mujoco.MjModel.from_xml_string(BODIES.format(g=g, integrator=integrator, h=h))
    m = mjw.put_model(mjm, dtype=wp.float64)
    d = mjw.make_data(m, 2)
    with contents(d.qvel) as held:
        held[...] = np.random.default_rng(1).uniform(-2, 2, (2, mjm.nv))
    return mjm, m, d


def momenta(m, d, mass):
    """Of each world, of all trees together about the origin: linear and angular momentum."""
    mjw.forward(m, d)
    mjw.subtree_vel(m, d)
    linear = d.subtree_linvel.numpy()[:, 0] * mass
    about = d.subtree_com.numpy()[:, 0]
    return linear, d.subtree_angmom.numpy()[:, 0] + np.cross(about, linear)


@pytest.mark.parametrize("integrator, slack", [("RK4", 1e-8), ("Euler", 1e-2)])
def test_free_bodies_keep_linear_and_angular_momentum(integrator, slack):
    mjm, m, d = floating(integrator)
    mass = mjm.body_subtreemass[0]
    before = momenta(m, d, mass)
    mjw.step(m, d, nstep=500)
    after = momenta(m, d, mass)
    for ours, start in zip(after, before):
        assert np.abs(start).max() > 1
        np.testing.assert_allclose(ours, start, rtol=0, atol=slack * np.abs(start).max())


def test_gravity_gives_momentum_and_energy_what_it_takes_from_height():
    mjm, m, d = floating(g=-3.0)
    mass = mjm.body_subtreemass[0]
    (linear, _), energy = momenta(m, d, mass), d.energy.numpy().copy()
    mjw.step(m, d, nstep=400)
    (falling, _), later = momenta(m, d, mass), d.energy.numpy()
    np.testing.assert_allclose(falling - linear, [[0, 0, -3.0 * mass * 0.4]] * 2, atol=1e-8 * mass)
    np.testing.assert_allclose(later.sum(axis=1), energy.sum(axis=1), rtol=1e-9)
    assert (np.abs(later[:, 0] - energy[:, 0]) > 1).all()


def test_energy_drifts_with_the_order_of_runge_kutta():
    drift = []
    for h in (0.004, 0.002, 0.001):
        mjm = models.chain(6)
        mjm.dof_damping[:] = 0
        mjm.opt.timestep, mjm.opt.integrator = h, mujoco.mjtIntegrator.mjINT_RK4
        mjm.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
        m = mjw.put_model(mjm, dtype=wp.float64)
        d = mjw.make_data(m, 1)
        d.qpos.fill_(0.5)
        mjw.forward(m, d)
        before = d.energy.numpy().sum()
        mjw.step(m, d, nstep=round(0.4 / h))
        mjw.forward(m, d)
        drift.append(abs(d.energy.numpy().sum() - before))
    assert drift[0] > 1e-9
    assert drift[0] > 11 * drift[1] > 11 * 11 * drift[2]  # 16 each time, but for what is of higher order
