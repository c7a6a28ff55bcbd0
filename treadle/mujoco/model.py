"""The model: what `put_model` takes from MuJoCo's compiled MJCF. One row an array, by MuJoCo's names."""

from __future__ import annotations

from typing import Any

import mujoco

import treadle as wp
from treadle.mujoco import refuse
from treadle.mujoco.fields import Field, Fields, constant
from treadle.mujoco.structure import Structure

SIZES = ("nq", "nv", "nu", "nbody", "njnt", "ngeom", "nsite", "nC")


class Option(Fields):
    """Options of a simulation; the integrator is MuJoCo's semi-implicit Euler."""

    timestep = constant("real", "*", "seconds of one step")
    gravity = constant("vec3", "*", "gravitational acceleration, m/s²")

    def __init__(self, real: Any, opt: mujoco.MjOption):
        super().__init__(real, {})
        self.disableflags = int(opt.disableflags)
        self.integrator = int(opt.integrator)
        self.fill(Option.timestep, opt.timestep)
        self.fill(Option.gravity, opt.gravity)


class Model(Fields):
    """What does not change while worlds are simulated. Numbers may be set between steps: ``m.body_mass.assign(…)``.

    A leading axis ``*`` has length 1: the same numbers in every world. The integer tables are the model's structure,
    out of which the code of a step is made; they are not to be changed.
    """

    qpos0 = constant("real", "* nq", "joint positions of the reference pose")
    qpos_spring = constant("real", "* nq", "joint positions at which springs rest")

    body_parentid = constant("int", "nbody", "parent of each body; 0 is the world")
    body_rootid = constant("int", "nbody", "topmost ancestor below the world")
    body_jntnum = constant("int", "nbody", "number of joints")
    body_jntadr = constant("int", "nbody", "first joint, -1 if none")
    body_dofnum = constant("int", "nbody", "number of degrees of freedom")
    body_dofadr = constant("int", "nbody", "first degree of freedom, -1 if none")
    body_pos = constant("vec3", "* nbody", "position in the parent's frame, m")
    body_quat = constant("quat", "* nbody", "orientation in the parent's frame, (w, x, y, z)")
    body_ipos = constant("vec3", "* nbody", "centre of mass in the body's frame, m")
    body_iquat = constant("quat", "* nbody", "orientation of the principal axes of inertia")
    body_mass = constant("real", "* nbody", "mass, kg")
    body_subtreemass = constant("real", "* nbody", "mass of the body and all below it, kg")
    body_inertia = constant("vec3", "* nbody", "principal moments of inertia, kg m²")

    jnt_type = constant("int", "njnt", "mjtJoint")
    jnt_qposadr = constant("int", "njnt", "index in qpos")
    jnt_dofadr = constant("int", "njnt", "index in qvel")
    jnt_actfrclimited = constant("int", "njnt", "whether actuators' force on the joint is clamped")
    jnt_actfrcrange = constant("vec2", "* njnt", "range of that force, N or N m")
    jnt_pos = constant("vec3", "* njnt", "anchor in the body's frame, m")
    jnt_axis = constant("vec3", "* njnt", "axis in the body's frame, unit length")
    jnt_stiffness = constant("real", "* njnt", "stiffness, N/m or N m/rad")

    dof_bodyid = constant("int", "nv", "body that the degree of freedom moves")
    dof_armature = constant("real", "* nv", "inertia of the rotor as the joint feels it")
    dof_damping = constant("real", "* nv", "damping, N s/m or N m s/rad")

    M_rownnz = constant("int", "nv", "number of elements in a row of the mass matrix")
    M_rowadr = constant("int", "nv", "first element of the row")
    M_colind = constant("int", "nC", "column of each element")

    actuator_trnid = constant("int", "nu", "joint that the actuator drives")
    actuator_ctrllimited = constant("int", "nu", "whether control is clamped")
    actuator_forcelimited = constant("int", "nu", "whether force is clamped")
    actuator_gaintype = constant("int", "nu", "mjtGain")
    actuator_biastype = constant("int", "nu", "mjtBias")
    actuator_gear = constant("real", "* nu", "joint movement times gear is the actuator's length")
    actuator_gainprm = constant("real", "* nu 10", "gain: constant, by length, by velocity")
    actuator_biasprm = constant("real", "* nu 10", "bias: constant, by length, by velocity")
    actuator_ctrlrange = constant("vec2", "* nu", "range of control")
    actuator_forcerange = constant("vec2", "* nu", "range of force, N or N m")

    geom_bodyid = constant("int", "ngeom", "body that carries the geom")
    geom_pos = constant("vec3", "* ngeom", "position in the body's frame, m")
    geom_quat = constant("quat", "* ngeom", "orientation in the body's frame")
    site_bodyid = constant("int", "nsite", "body that carries the site")
    site_pos = constant("vec3", "* nsite", "position in the body's frame, m")
    site_quat = constant("quat", "* nsite", "orientation in the body's frame")

    def __init__(self, real: Any, mjm: mujoco.MjModel):
        super().__init__(real, {name: int(getattr(mjm, name)) for name in SIZES})
        self.nq, self.nv, self.nu = mjm.nq, mjm.nv, mjm.nu
        self.nbody, self.njnt, self.ngeom, self.nsite = mjm.nbody, mjm.njnt, mjm.ngeom, mjm.nsite
        self.opt = Option(real, mjm.opt)
        self.structure = Structure.of(mjm)
        first_only = {"actuator_trnid", "actuator_gear"}  # of several columns, a joint transmission uses the first
        for row in Model.rows():
            values = getattr(mjm, row.name)
            self.fill(row, values[:, 0] if row.name in first_only else values)

    def give(self, row: Field) -> wp.array:
        """The array of a field. Whoever asks for anchors or axes may move them: code then does not rely on them."""
        if row in (Model.jnt_pos, Model.jnt_axis):
            self.structure = self.structure.askew()
            self.version += 1
        return self.read(row)


def put_model(mjm: mujoco.MjModel, dtype: Any = None) -> Model:
    """The model ``mjm`` for this engine.

    Args:
        mjm: a compiled model, as from ``mujoco.MjModel.from_xml_path(…)``.
        dtype: beyond MuJoCo Warp: the precision of all its numbers, ``wp.float32`` (also if None) or ``wp.float64``.

    Raises:
        UnsupportedModelError: the model uses a feature that is not simulated; the message names element and attribute.

    Example:
        >>> import mujoco, treadle.mujoco as mjw
        >>> body = "<body><joint axis='0 1 0'/><geom size='.1' pos='.2 0 0'/></body>"
        >>> xml = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
        >>> m = mjw.put_model(mujoco.MjModel.from_xml_string(xml))
        >>> m.nv, m.jnt_axis.shape
        (1, (1, 1))
    """
    real = wp.float32 if dtype in (None, float) else dtype
    if real not in (wp.float32, wp.float64):
        raise TypeError(f"dtype is wp.float32 or wp.float64, not {dtype!r}")
    refuse.check(mjm)
    return Model(real, mjm)
