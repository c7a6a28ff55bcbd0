"""Models with constraints of every kind, and both engines run on them with the same contacts."""

from __future__ import annotations

from contextlib import ExitStack

import mujoco
import numpy as np

import treadle as wp
import treadle.mujoco as mjw
from treadle.mujoco import check, stages, worlds
from treadle.mujoco.collision.pairs import MOST
from treadle.mujoco.contents import contents

# Constraints of every kind, some of them active and some not: contacts of all dimensions, softness in all its forms,
# limits within their margin on both sides, connects and welds of bodies and sites, coupled joints and tendons.
EVERYTHING = """
<mujoco>
  <option cone="{cone}" impratio="3"/>
  <default><geom solimp=".9 .95 .01 .4 3"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" condim="3"/>
    <body name="f" pos="0 0 .09">
      <freejoint/><geom size=".1" condim="6" margin=".02" gap=".001" friction="1 .02 .003"/>
      <site name="s1" pos=".05 0 .1" euler="10 20 30"/>
    </body>
    <body name="h" pos=".3 0 1">
      <joint name="h" axis="0 1 0" frictionloss=".1" limited="true" range="-.2 .2" margin=".3"/>
      <geom size=".1" pos=".3 0 0"/><site name="s2" pos=".1 .2 .3"/>
      <body name="h2" pos=".5 0 0">
        <joint name="sl" type="slide" axis="0 1 1" ref=".1" range="-.1 .1" limited="true"/>
        <geom type="box" size=".1 .1 .1"/><site name="s3"/>
      </body>
    </body>
    <body name="b" pos="2 0 1">
      <joint name="bj" type="ball" limited="true" range="0 .2" margin=".05"/><geom size=".1" pos=".3 0 0"/>
    </body>
    <body name="c4" pos="1 1 .08">
      <freejoint/>
      <geom type="capsule" size=".1 .2" condim="4" euler="0 80 0" friction=".7 .01 .001" solref="-100 -5"
            solimp="0 .9 .1 .5 2"/>
    </body>
    <body name="c1" pos="1 -1 .08"><freejoint/><geom type="sphere" size=".1" condim="1" priority="2"/></body>
    <body name="c3" pos="-1 -1 .08">
      <freejoint/><geom type="box" size=".1 .2 .08" condim="3" friction=".5" solref=".01 .7" solimp="1 1 .001"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="t1" limited="true" range="-.1 .1" frictionloss=".3">
      <joint joint="h" coef="2"/><joint joint="sl" coef="-1"/>
    </fixed>
    <spatial name="t2" range=".1 .2" limited="true"><site site="s1"/><site site="s2"/></spatial>
    <fixed name="t3"><joint joint="sl" coef="3"/></fixed>
  </tendon>
  <equality>
    <joint joint1="h" joint2="sl" polycoef=".1 .2 .3 .4 .5"/>
    <connect body1="b" body2="f" anchor=".1 0 0"/>
    <weld body1="h2" body2="f" torquescale=".3" relpose=".1 .2 .3 1 .2 .3 .4"/>
    <weld site1="s1" site2="s3" torquescale="2"/>
    <connect site1="s2" site2="s3"/>
    <tendon tendon1="t1" tendon2="t2" polycoef="0 1 .5 0 0"/>
    <tendon tendon1="t3"/>
    <joint joint1="h" solref=".005 1"/>
    <connect body1="c4" anchor="0 0 .1" active="false"/>
  </equality>
</mujoco>
"""

# A hand's breadth of every sensor's situation: contacts of several bodies, limits, tendons, actuators, cameras.
SENSES = """
<mujoco>
  <option cone="{cone}" impratio="2" magnetic=".1 -.4 .2" timestep=".003"/>
  <worldbody>
    <geom name="floor" type="plane" size="3 3 1" condim="4" friction=".8 .02 .001"/>
    <site name="world" pos=".1 .2 .3" euler="10 20 30"/>
    <camera name="cw" pos="1 2 3" euler="20 30 40"/>
    <body name="a" pos="0 0 .12">
      <freejoint/><geom name="ga" type="box" size=".1 .15 .1" condim="3"/>
      <site name="sa" type="box" size=".2 .2 .05" pos="0 0 -.1" euler="5 10 15"/>
      <site name="sab" type="ellipsoid" size=".2 .1 .05" pos=".1 .05 -.1"/>
      <camera name="ca" pos=".1 .1 .1" euler="20 30 40"/>
      <body name="b" pos=".1 0 .2" euler="5 6 7">
        <joint name="bj" type="ball" damping=".1" range="0 .3" limited="true"/>
        <geom name="gb" type="capsule" size=".04 .1" condim="6"/>
        <site name="sb" type="capsule" size=".05 .1" pos=".03 0 .05" euler="3 2 1"/>
        <body name="c" pos="0 0 .2">
          <joint name="cj" axis="0 1 0" range="-.2 .2" limited="true" margin=".05"/>
          <geom name="gc" type="sphere" size=".08" pos=".1 0 0" condim="1"/><site name="sc" type="sphere" size=".3"/>
        </body>
      </body>
    </body>
    <body name="d" pos=".3 .1 .1">
      <freejoint/><geom name="gd" type="cylinder" size=".08 .1" condim="3"/>
      <site name="sd" type="cylinder" size=".1 .02" pos="0 0 -.1"/>
    </body>
    <body name="e" pos="-.5 0 .08">
      <joint name="es" type="slide" axis="0 0 1" range="-.02 .02" limited="true"/>
      <geom name="ge" type="sphere" size=".09"/><site name="se" type="sphere" size=".1"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="t" range="-.05 .05" limited="true"><joint joint="cj" coef="1"/></fixed>
    <spatial name="t2"><site site="sb"/><site site="sd"/></spatial>
  </tendon>
  <equality><connect body1="d" body2="c" anchor=".1 0 0"/><weld body1="e" body2="a" torquescale=".7"/></equality>
  <actuator>
    <motor name="m" joint="cj" gear="2"/><position name="mt" tendon="t" kp="3"/>
    <motor name="m2" tendon="t" gear="4"/>
  </actuator>
  <sensor>
    <touch site="sa"/><touch site="sab"/><touch site="sb"/><touch site="sc"/><touch site="sd"/>
    <touch site="se" cutoff="3"/><accelerometer site="sa"/><accelerometer site="sc" cutoff="4"/>
    <accelerometer site="world"/><velocimeter site="sb"/><gyro site="sc"/><force site="sb"/><torque site="sb"/>
    <torque site="sc"/><force site="world"/><torque site="world"/><force site="se"/><torque site="sd"/>
    <magnetometer site="sc"/><jointpos joint="cj"/><jointvel joint="cj" cutoff=".1"/><tendonpos tendon="t2"/>
    <tendonvel tendon="t2"/><actuatorpos actuator="mt"/><actuatorvel actuator="m2"/><actuatorfrc actuator="mt"/>
    <jointactuatorfrc joint="cj"/><tendonactuatorfrc tendon="t"/><ballquat joint="bj"/><ballangvel joint="bj"/>
    <jointlimitpos joint="cj"/><jointlimitvel joint="cj"/><jointlimitfrc joint="cj"/><jointlimitpos joint="bj"/>
    <jointlimitfrc joint="bj"/><tendonlimitpos tendon="t"/><tendonlimitvel tendon="t"/><tendonlimitfrc tendon="t"/>
    <subtreecom body="a"/><subtreelinvel body="a"/><subtreeangmom body="b"/><clock/><e_potential/>
    <e_kinetic cutoff="2"/><insidesite site="sa" objtype="geom" objname="ga"/>
    <insidesite site="sc" objtype="body" objname="b"/><insidesite site="sd" objtype="camera" objname="ca"/>
    <insidesite site="sb" objtype="xbody" objname="b"/><insidesite site="sab" objtype="site" objname="sa"/>
    <distance geom1="gb" geom2="ga" cutoff=".5"/><normal body1="e" body2="a" cutoff="2"/>
    <fromto geom1="gc" geom2="floor" cutoff="1"/>{frames}{contacts}
  </sensor>
</mujoco>
"""


def everything(cone: str = "pyramidal", bonds: bool = True) -> mujoco.MjModel:
    """The model `EVERYTHING`; without equalities and tendons if there shall be no ``bonds``."""
    spec = mujoco.MjSpec.from_string(EVERYTHING.format(cone=cone))
    for each in [] if bonds else [*spec.equalities, *spec.tendons]:
        spec.delete(each)
    return spec.compile()


def senses(cone: str = "pyramidal") -> mujoco.MjModel:
    """The model `SENSES` with sensors of frames for each kind of object, and of contacts in all their forms."""
    objects = [("body", "a"), ("xbody", "b"), ("geom", "gc"), ("site", "sd"), ("camera", "ca"), ("camera", "cw")]
    frames = ""
    for k, (kind, name) in enumerate(objects):
        ref = "".join(f' {a}="{b}"' for a, b in zip(("reftype", "refname"), objects[(k + 2) % len(objects)]))
        for what in ("pos", "quat", "xaxis", "yaxis", "zaxis", "linvel", "angvel", "linacc", "angacc"):
            for frame in ("", ref) if not what.endswith("acc") else ("",):
                frames += f'<frame{what} objtype="{kind}" objname="{name}"{frame}/>'
    contacts = ""
    for which in (
        "", 'geom2="ga"', 'geom1="ga" geom2="floor"', 'body1="a"', 'subtree2="a"', 'subtree1="a" body2="d"',
        'site="sc" geom2="floor"', 'subtree1="b" subtree2="a"',
    ):  # fmt: skip
        for choice in ("none", "mindist", "maxforce", "netforce"):
            number = 1 if choice == "netforce" else 3
            data = "found force torque dist pos normal tangent"
            contacts += f'<contact {which} reduce="{choice}" num="{number}" data="{data}"/>'
        contacts += f'<contact {which} reduce="maxforce" num="2" data="found pos linvel angvel"/>'
    return mujoco.MjModel.from_xml_string(SENSES.format(cone=cone, frames=frames, contacts=contacts))


def near(mjm: mujoco.MjModel, count: int, scale: float = 0.3, seed: int = 0) -> list[mujoco.MjData]:
    """States near the reference pose, every other one ten times as near: few constraints are active, or many."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(count):
        mjd = mujoco.MjData(mjm)
        mujoco.mj_integratePos(mjm, mjd.qpos, rng.normal(size=mjm.nv) * scale * (0.1 if k % 2 else 1.0), 1)
        mjd.qvel[:] = rng.normal(size=mjm.nv)
        mjd.qacc_warmstart[:] = rng.normal(size=mjm.nv)
        mjd.ctrl[:] = rng.normal(size=mjm.nu)
        found.append(mjd)
    return found


def sharp(mjm: mujoco.MjModel) -> mujoco.MjModel:
    """``mjm`` with a solver that goes on until rounding ends it."""
    check.sharpen(mjm)
    mjm.opt.tolerance = mjm.opt.noslip_tolerance = 0
    mjm.opt.ls_tolerance = 1e-10
    return mjm


def put(mjm: mujoco.MjModel, states: list[mujoco.MjData], dtype=wp.float64, **sizes) -> tuple[mjw.Model, mjw.Data]:
    """Model and data in MuJoCo's states, after MuJoCo's forward and with the contacts that it found."""
    m = mjw.put_model(mjm, dtype=dtype)
    d = mjw.make_data(m, len(states), **sizes)
    for name in check.STATE:
        with contents(getattr(d, name)) as values:
            for world, mjd in enumerate(states):
                values[world, ...] = np.reshape(getattr(mjd, name), values.shape[1:])
    for mjd in states:
        mujoco.mj_forward(mjm, mjd)
    put_contacts(m, mjm, d, states)
    return m, d


def put_contacts(m: mjw.Model, mjm: mujoco.MjModel, d: mjw.Data, states: list[mujoco.MjData]) -> None:
    """Set the contacts of ``d`` to those of MuJoCo's data."""
    pairs = {frozenset(ends): p for p, ends in enumerate(zip(m.collision.pairs.geom1, m.collision.pairs.geom2))}
    slots = m.collision.pairs_slot.numpy()
    with ExitStack() as held:
        fields = ("count", "dist", "pos", "normal", "tangent")
        count, *slot_fields = [held.enter_context(contents(d.field(f"slot_{name}"))) for name in fields]
        for world, mjd in enumerate(states):
            count[world] = 0
            for contact in mjd.contact:
                p = pairs[frozenset(contact.geom)]
                assert count[world, p] < MOST[m.collision.pairs.methods[p]]
                slot = slots[p] + count[world, p]
                count[world, p] += 1
                for field, values in zip(
                    slot_fields, (contact.dist, contact.pos, contact.frame[:3], contact.frame[3:6])
                ):
                    field[world, slot] = values
    for row in mjw.Data.rows():
        if row.stage == "collision" and worlds.value_of(mjm, states[0], row.name) is not None:
            with contents(d.field(row.name)) as target:
                for world, mjd in enumerate(states):
                    values = np.asarray(worlds.value_of(mjm, mjd, row.name))
                    if row.name == "ncon":
                        target[world] = mjd.ncon
                    else:
                        target[world, : mjd.ncon] = values.reshape(mjd.ncon, *target.shape[2:])


def forward(m: mjw.Model, d: mjw.Data) -> None:
    """All stages but the collision, whose results are in ``d``."""
    for stage in stages.TABLE:
        if stage.name != "collision":
            stages.run_stage(stage.name, m, d)


def compare(mjm: mujoco.MjModel, states: list[mujoco.MjData], dtype=wp.float64) -> list[check.Line]:
    """A line for each field, after both engines had the same contacts."""
    m, d = put(mjm, states, dtype)
    forward(m, d)
    return check.compare_fields(m, d, mjm, states)
