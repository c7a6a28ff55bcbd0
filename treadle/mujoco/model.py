"""The model: what `put_model` takes from MuJoCo's compiled MJCF. One row an array, by MuJoCo's names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mujoco
import numpy as np

import treadle as wp
from treadle.frontend.names import near
from treadle.mujoco import fine_mass, refuse
from treadle.mujoco.arguments import instance, precision, whole
from treadle.mujoco.capacity import Capacity
from treadle.mujoco.collision.distances import Distances, measured
from treadle.mujoco.collision.pairs import Pairs
from treadle.mujoco.collision.tables import Tables
from treadle.mujoco.constraint.bonds import Bonds
from treadle.mujoco.editions import Edition, Editions
from treadle.mujoco.fields import Field, Fields, constant
from treadle.mujoco.shown import Shown
from treadle.mujoco.structure import (
    Structure,
    actuator_columns,
    constraint_kinds,
    dof_ancestors,
    fits,
    floating,
    frames,
    mirror,
    tendon_types,
)

SIZES = (
    "nq", "nv", "nu", "na", "nactuator", "nout", "nbody", "njnt", "ngeom", "nsite", "ncam", "nlight", "nmocap", "nkey",
    "ntendon", "nwrap", "nJten", "nC", "nD", "neq", "npair", "nsensor", "nsensordata", "nmesh", "nmeshvert",
    "nmeshface", "nmeshgraph", "nmeshpoly", "nmeshpolyvert", "nmeshpolymap", "nhfield", "nhfielddata", "nhistory",
    "nplastic",
)  # fmt: skip


class Option(Fields):
    """Options of a simulation. Whole numbers are attributes; those with an array may differ between worlds."""

    timestep = constant("real", "*", "seconds of one step")
    gravity = constant("vec3", "*", "gravitational acceleration, m/s²")
    wind = constant("vec3", "*", "velocity of the medium, m/s")
    magnetic = constant("vec3", "*", "global magnetic flux")
    density = constant("real", "*", "density of the medium, kg/m³")
    viscosity = constant("real", "*", "viscosity of the medium, Pa s")
    impratio = constant("real", "*", "ratio of frictional to normal impedance of contacts")
    tolerance = constant("real", "*", "tolerance of the solver")
    ls_tolerance = constant("real", "*", "tolerance of its line search")
    noslip_tolerance = constant("real", "*", "tolerance of the solver without slip")
    ccd_tolerance = constant("real", "*", "tolerance of the collisions of convex shapes")
    o_margin = constant("real", "*", "margin of contacts, where overridden")
    o_solref = constant("vec2", "*", "reference of contacts, where overridden")
    o_solimp = constant("vec5", "*", "impedance of contacts, where overridden")
    o_friction = constant("vec5", "*", "friction of contacts, where overridden")

    NUMBERS = (
        "integrator", "cone", "jacobian", "solver", "iterations", "ls_iterations", "noslip_iterations",
        "ccd_iterations", "disableflags", "enableflags", "disableactuator", "sdf_initpoints", "sdf_iterations",
    )  # fmt: skip

    EXTRAS = ("density", "viscosity")  # 0 in most models, and a step then need not look at them

    def __init__(self, real: Any, opt: mujoco.MjOption):
        super().__init__(real, {})
        self._disabled = int(opt.disableflags)  # when the model was put
        for name in Option.NUMBERS:
            setattr(self, name, int(getattr(opt, name)))
        self.uses = {name for name in Option.EXTRAS if getattr(opt, name)}
        self._shown = Shown()
        self._editions = Editions()  # with the model's
        for row in Option.rows():
            self.fill(row, getattr(opt, row.name))

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute. Whole numbers are checked as `put_model` does, and the next step goes by them."""
        if name in Option.NUMBERS:
            value = whole(f"option {name}", value, 0)
            refuse.check_option(name, value, self._disabled)
            self.version += 1
        super().__setattr__(name, value)

    def _take_note(self, row: Field) -> None:
        """A field that the user has set, or may write to, counts from now on."""
        if row.name in Option.EXTRAS and row.name not in self.uses:
            self.uses.add(row.name)
            self.version += 1

    def give(self, row: Field) -> wp.array:
        """The array of a field, for the user, who may write to it: a step then looks at it."""
        self._take_note(row)
        found = self.read(row)
        self._editions.note(found)
        self._shown.note(row.name, found)
        return found

    def intact(self, far: bool) -> None:
        """Raise a ValueError if an option has been given a value that means nothing; ``far`` as for `Shown.changed`."""
        for name in self._shown.changed(far):
            refuse.check_value(name, self._arrays[name].numpy())
            self._shown.renew(name, self._arrays[name])

    def assign(self, row: Field, value: wp.array) -> None:
        """Put an array of the user's in a field's place."""
        if isinstance(value, wp.array | np.ndarray):
            refuse.check_value(row.name, value if isinstance(value, np.ndarray) else value.numpy())
        super().assign(row, value)
        self._editions.note(self.read(row))

    def replaced(self, row: Field, value: wp.array) -> None:
        """Take note of an array of the user's."""
        self._take_note(row)
        self._shown.renew(row.name, value)
        super().replaced(row, value)


class Model(Fields):
    """What does not change while worlds are simulated. Numbers may be set between steps: ``m.body_mass.assign(…)``.

    A leading axis ``*`` has length 1: the same numbers in every world. To let them differ, assign an array with one row
    for each world, or call `expand`. The integer tables are the model's structure, from which `put_model` makes the
    lists of pairs and constraints and the code of a step: whoever changes one (but ``eq_active0``) is told by an error,
    and puts the changed model again.
    """

    qpos0 = constant("real", "* nq", "joint positions of the reference pose")
    qpos_spring = constant("real", "* nq", "joint positions at which springs rest")

    body_parentid = constant("int", "nbody", "parent of each body; 0 is the world")
    body_rootid = constant("int", "nbody", "topmost ancestor below the world")
    body_weldid = constant("int", "nbody", "topmost ancestor that does not move against the body")
    body_mocapid = constant("int", "nbody", "index among mocap bodies, -1 if none")
    body_jntnum = constant("int", "nbody", "number of joints")
    body_jntadr = constant("int", "nbody", "first joint, -1 if none")
    body_dofnum = constant("int", "nbody", "number of degrees of freedom")
    body_dofadr = constant("int", "nbody", "first degree of freedom, -1 if none")
    body_geomnum = constant("int", "nbody", "number of geoms")
    body_geomadr = constant("int", "nbody", "first geom, -1 if none")
    body_simple = constant("int", "nbody", "whether the body's block of the mass matrix is diagonal (1, 2)")
    body_pos = constant("vec3", "* nbody", "position in the parent's frame, m")
    body_quat = constant("quat", "* nbody", "orientation in the parent's frame, (w, x, y, z)")
    body_ipos = constant("vec3", "* nbody", "centre of mass in the body's frame, m")
    body_iquat = constant("quat", "* nbody", "orientation of the principal axes of inertia")
    body_mass = constant("real", "* nbody", "mass, kg")
    body_subtreemass = constant("real", "* nbody", "mass of the body and all below it, kg")
    body_inertia = constant("vec3", "* nbody", "principal moments of inertia, kg m²")
    body_invweight0 = constant("vec2", "* nbody", "mean inverse inertia in the reference pose: translation, rotation")
    body_gravcomp = constant("real", "* nbody", "force against gravity in units of the body's weight")

    body_isdofancestor = constant("int", "nbody nv", "whether a degree of freedom moves the body")

    jnt_type = constant("int", "njnt", "mjtJoint")
    jnt_qposadr = constant("int", "njnt", "index in qpos")
    jnt_dofadr = constant("int", "njnt", "index in qvel")
    jnt_bodyid = constant("int", "njnt", "body of the joint")
    jnt_actuatorid = constant("int", "njnt", "actuator that adds damping or armature, -1 if none")
    jnt_limited = constant("int", "njnt", "whether the position is limited")
    jnt_actfrclimited = constant("int", "njnt", "whether actuators' force on the joint is clamped")
    jnt_actgravcomp = constant("int", "njnt", "whether compensation of gravity counts as actuator force")
    jnt_solref = constant("vec2", "* njnt", "reference of the limit")
    jnt_solimp = constant("vec5", "* njnt", "impedance of the limit")
    jnt_pos = constant("vec3", "* njnt", "anchor in the body's frame, m")
    jnt_axis = constant("vec3", "* njnt", "axis in the body's frame, unit length")
    jnt_stiffness = constant("real", "* njnt", "stiffness, N/m or N m/rad")
    jnt_stiffnesspoly = constant("vec2", "* njnt", "how stiffness grows with extension: linearly, quadratically")
    jnt_plasticadr = constant(
        "int", "njnt", "where its spring's place of rest begins in plastic, -1 if it never yields"
    )
    jnt_springyield = constant("real", "* njnt", "extension beyond which its spring yields, m or rad")
    jnt_range = constant("vec2", "* njnt", "limits of the position, m or rad")
    jnt_actfrcrange = constant("vec2", "* njnt", "range of actuators' force on the joint, N or N m")
    jnt_margin = constant("real", "* njnt", "distance from a limit at which it becomes a constraint")

    dof_bodyid = constant("int", "nv", "body that the degree of freedom moves")
    dof_jntid = constant("int", "nv", "its joint")
    dof_parentid = constant("int", "nv", "the degree of freedom before it in the tree, -1 if none")
    dof_solref = constant("vec2", "* nv", "reference of dry friction")
    dof_solimp = constant("vec5", "* nv", "impedance of dry friction")
    dof_frictionloss = constant("real", "* nv", "dry friction, N or N m")
    dof_armature = constant("real", "* nv", "inertia of the rotor as the joint feels it")
    dof_damping = constant("real", "* nv", "damping, N s/m or N m s/rad")
    dof_dampingpoly = constant("vec2", "* nv", "how damping grows with speed: linearly, quadratically")
    dof_invweight0 = constant("real", "* nv", "inverse inertia in the reference pose")

    M_rownnz = constant("int", "nv", "number of elements in a row of the mass matrix")
    M_rowadr = constant("int", "nv", "first element of the row")
    M_colind = constant("int", "nC", "column of each element")
    D_rownnz = constant("int", "nv", "number of elements in a row of the full pattern of a tree")
    D_rowadr = constant("int", "nv", "first element of the row")
    D_diag = constant("int", "nv", "place of the diagonal in the row")
    D_colind = constant("int", "nD", "column of each element")
    mapM2D = constant("int", "nD", "element of the mass matrix for each element of the full pattern")

    mapD2M = constant("int", "nC", "element of the full pattern for each element of the mass matrix")
    D_mirror = constant("int", "nD", "element of the full pattern across the diagonal from each")
    body_swims = constant("int", "nbody", "whether geoms of the body meet a medium as ellipsoids")
    body_floats = constant("int", "nbody", "whether the body is free and nothing moves against it")

    geom_type = constant("int", "ngeom", "mjtGeom")
    geom_bodyid = constant("int", "ngeom", "body that carries the geom")
    geom_dataid = constant("int", "ngeom", "its mesh or height field, -1 if none")
    geom_condim = constant("int", "ngeom", "dimension of its contacts")
    geom_contype = constant("int", "ngeom", "bits of what it is")
    geom_conaffinity = constant("int", "ngeom", "bits of what it meets")
    geom_priority = constant("int", "ngeom", "whose parameters a contact takes")
    geom_pos = constant("vec3", "* ngeom", "position in the body's frame, m")
    geom_quat = constant("quat", "* ngeom", "orientation in the body's frame")
    geom_size = constant("vec3", "* ngeom", "sizes, by type, m")
    geom_rbound = constant("real", "* ngeom", "radius of the bounding sphere, m; 0 for planes")
    geom_solmix = constant("real", "* ngeom", "weight in mixing contact parameters")
    geom_solref = constant("vec2", "* ngeom", "reference of contacts")
    geom_solimp = constant("vec5", "* ngeom", "impedance of contacts")
    geom_friction = constant("vec3", "* ngeom", "friction: slide, spin, roll")
    geom_margin = constant("real", "* ngeom", "margin of contacts, m")
    geom_gap = constant("real", "* ngeom", "part of the margin without force, m")
    geom_fluid = constant("real", "ngeom 12", "how the geom meets a medium")

    site_bodyid = constant("int", "nsite", "body that carries the site")
    site_type = constant("int", "nsite", "mjtGeom of its shape")
    site_pos = constant("vec3", "* nsite", "position in the body's frame, m")
    site_quat = constant("quat", "* nsite", "orientation in the body's frame")
    site_size = constant("vec3", "* nsite", "sizes, by type, m")

    cam_mode = constant("int", "ncam", "mjtCamLight")
    cam_bodyid = constant("int", "ncam", "body that carries the camera")
    cam_targetbodyid = constant("int", "ncam", "body that it looks at, -1 if none")
    cam_pos = constant("vec3", "* ncam", "position in the body's frame, m")
    cam_quat = constant("quat", "* ncam", "orientation in the body's frame")
    cam_poscom0 = constant("vec3", "* ncam", "in the reference pose, position from the subtree's centre of mass")
    cam_pos0 = constant("vec3", "* ncam", "in the reference pose, position from the body")
    cam_mat0 = constant("mat33", "* ncam", "orientation in the reference pose")
    light_mode = constant("int", "nlight", "mjtCamLight")
    light_bodyid = constant("int", "nlight", "body that carries the light")
    light_targetbodyid = constant("int", "nlight", "body that it shines at, -1 if none")
    light_pos = constant("vec3", "* nlight", "position in the body's frame, m")
    light_dir = constant("vec3", "* nlight", "direction in the body's frame")
    light_poscom0 = constant("vec3", "* nlight", "in the reference pose, position from the subtree's centre of mass")
    light_pos0 = constant("vec3", "* nlight", "in the reference pose, position from the body")
    light_dir0 = constant("vec3", "* nlight", "direction in the reference pose")

    tendon_type = constant("int", "ntendon", "mjtTendon")
    tendon_adr = constant("int", "ntendon", "first object of its path")
    tendon_num = constant("int", "ntendon", "number of objects of its path")
    tendon_actuatorid = constant("int", "ntendon", "actuator that adds damping or armature, -1 if none")
    tendon_limited = constant("int", "ntendon", "whether the length is limited")
    tendon_actfrclimited = constant("int", "ntendon", "whether actuators' force on the tendon is clamped")
    tendon_solref_lim = constant("vec2", "* ntendon", "reference of the limit")
    tendon_solimp_lim = constant("vec5", "* ntendon", "impedance of the limit")
    tendon_solref_fri = constant("vec2", "* ntendon", "reference of dry friction")
    tendon_solimp_fri = constant("vec5", "* ntendon", "impedance of dry friction")
    tendon_range = constant("vec2", "* ntendon", "limits of the length, m")
    tendon_actfrcrange = constant("vec2", "* ntendon", "range of actuators' force, N")
    tendon_margin = constant("real", "* ntendon", "distance from a limit at which it becomes a constraint")
    tendon_stiffness = constant("real", "* ntendon", "stiffness, N/m")
    tendon_stiffnesspoly = constant("vec2", "* ntendon", "how stiffness grows with extension: linearly, quadratically")
    tendon_damping = constant("real", "* ntendon", "damping, N s/m")
    tendon_dampingpoly = constant("vec2", "* ntendon", "how damping grows with speed: linearly, quadratically")
    tendon_armature = constant("real", "* ntendon", "inertia that goes with the tendon's velocity")
    tendon_frictionloss = constant("real", "* ntendon", "dry friction, N")
    tendon_lengthspring = constant("vec2", "* ntendon", "lengths between which its spring rests, m")
    tendon_plasticadr = constant("int", "ntendon", "where its spring's rest begins in plastic, -1 if it never yields")
    tendon_springyield = constant("real", "* ntendon", "extension beyond which its spring yields, m")
    tendon_length0 = constant("real", "* ntendon", "length in the reference pose, m")
    tendon_invweight0 = constant("real", "* ntendon", "inverse inertia in the reference pose")
    ten_J_rownnz = constant("int", "ntendon", "number of elements in a row of the tendon Jacobian")
    ten_J_rowadr = constant("int", "ntendon", "first element of the row")
    ten_J_colind = constant("int", "nJten", "column of each element")
    wrap_type = constant("int", "nwrap", "mjtWrap")
    wrap_objid = constant("int", "nwrap", "its joint, site or geom")
    wrap_prm = constant("real", "nwrap", "coefficient, divisor or side site")

    actuator_trntype = constant("int", "nactuator", "mjtTrn")
    actuator_dyntype = constant("int", "nactuator", "mjtDyn")
    actuator_gaintype = constant("int", "nactuator", "mjtGain")
    actuator_biastype = constant("int", "nactuator", "mjtBias")
    actuator_trnid = constant("int", "nactuator 2", "joint, tendon, sites or body that the actuator drives")
    actuator_ctrladr = constant("int", "nactuator", "its first control")
    actuator_outadr = constant("int", "nactuator", "its first output")
    actuator_ctrlnum = constant("int", "nactuator", "number of controls")
    actuator_ctrlspec = constant("int", "nactuator", "bits of what its controls are")
    actuator_actadr = constant("int", "nactuator", "its first activation, -1 if none")
    actuator_actnum = constant("int", "nactuator", "number of activations")
    actuator_actlimited = constant("int", "nactuator", "whether activation is clamped")
    actuator_actearly = constant("int", "nactuator", "whether the force is that of the next activation")
    actuator_forcelimited = constant("int", "nactuator", "whether force is clamped")
    actuator_group = constant("int", "nactuator", "group, by which actuators are switched off")
    actuator_ctrllimited = constant("int", "nu", "whether control is clamped")
    actuator_gear = constant("spatial", "* nout", "scale of length and force")
    actuator_cranklength = constant("real", "* nactuator", "length of the crank's rod, m")
    actuator_dynprm = constant("real", "* nactuator 10", "parameters of the dynamics")
    actuator_gainprm = constant("real", "* nactuator 10", "gain: constant, by length, by velocity")
    actuator_biasprm = constant("real", "* nactuator 10", "bias: constant, by length, by velocity")
    actuator_actrange = constant("vec2", "* nactuator", "range of activation")
    actuator_ctrlrange = constant("vec2", "* nu", "range of control")
    actuator_forcerange = constant("vec2", "* nactuator", "range of force, N or N m")
    actuator_damping = constant("real", "* nactuator", "damping that it adds to its joint or tendon")
    actuator_dampingpoly = constant("vec2", "* nactuator", "how that grows with speed: linearly, quadratically")
    actuator_armature = constant("real", "* nactuator", "inertia that it adds to its joint or tendon")
    actuator_acc0 = constant("real", "* nout", "acceleration of a unit force in the reference pose")
    actuator_lengthrange = constant("vec2", "* nout", "range of its length, m or rad")
    actuator_history = constant("int", "nactuator 2", "samples of its controls that are kept, and how to read between")
    actuator_historyadr = constant("int", "nactuator", "where they begin in the history, -1 if none")
    actuator_delay = constant("real", "* nactuator", "time from control to actuator, s")
    moment_rownnz = constant("int", "nout", "number of elements in a row of the actuators' moments")
    moment_rowadr = constant("int", "nout", "first element of the row")
    moment_colind = constant("int", "nJmom", "column of each element")

    key_time = constant("real", "nkey", "time of a keyframe, s")
    key_qpos = constant("real", "nkey nq", "its qpos")
    key_qvel = constant("real", "nkey nv", "its qvel")
    key_act = constant("real", "nkey na", "its act")
    key_ctrl = constant("real", "nkey nu", "its ctrl")
    key_mpos = constant("vec3", "nkey nmocap", "its mocap_pos")
    key_mquat = constant("quat", "nkey nmocap", "its mocap_quat")

    key_plastic = constant("real", "nkey nplastic", "its plastic")

    # contacts: tables of `collision`
    pair_dim = constant("int", "npair", "dimension of the pair's contacts")
    pair_geom1 = constant("int", "npair", "first geom")
    pair_geom2 = constant("int", "npair", "second geom")
    pair_solref = constant("vec2", "* npair", "reference of contacts")
    pair_solreffriction = constant("vec2", "* npair", "reference of their friction")
    pair_solimp = constant("vec5", "* npair", "impedance of contacts")
    pair_margin = constant("real", "* npair", "margin, m")
    pair_gap = constant("real", "* npair", "part of the margin without force, m")
    pair_friction = constant("vec5", "* npair", "friction: two tangents, spin, two rolls")

    hfield_size = constant("vec4", "nhfield", "height fields: half widths along x and y, height above, depth below")
    hfield_nrow = constant("int", "nhfield", "rows of the grid, along y")
    hfield_ncol = constant("int", "nhfield", "columns of the grid, along x")
    hfield_adr = constant("int", "nhfield", "first of its data")
    hfield_data = constant("real", "nhfielddata", "elevations from 0 to 1, row after row")

    # constraints: tables of `constraint` and `solver`
    eq_type = constant("int", "neq", "mjtEq")
    eq_obj1id = constant("int", "neq", "first object")
    eq_obj2id = constant("int", "neq", "second object")
    eq_objtype = constant("int", "neq", "mjtObj of both")
    eq_active0 = constant("int", "neq", "whether it is on at the start")
    eq_solref = constant("vec2", "* neq", "reference")
    eq_solimp = constant("vec5", "* neq", "impedance")
    eq_data = constant("real", "* neq 12", "numbers of the constraint, by type")

    # sensors: tables of `sensor`
    sensor_type = constant("int", "nsensor", "mjtSensor")
    sensor_datatype = constant("int", "nsensor", "mjtDataType")
    sensor_objtype = constant("int", "nsensor", "mjtObj of what is measured")
    sensor_objid = constant("int", "nsensor", "what is measured")
    sensor_reftype = constant("int", "nsensor", "mjtObj of the frame in which it is measured")
    sensor_refid = constant("int", "nsensor", "that frame; -1 is the world's")
    sensor_dim = constant("int", "nsensor", "number of outputs")
    sensor_adr = constant("int", "nsensor", "first output in sensordata")
    sensor_cutoff = constant("real", "* nsensor", "bound of the outputs; 0 for none")
    sensor_needstage = constant("int", "nsensor", "mjtStage after which it can be computed")
    sensor_history = constant("int", "nsensor 2", "samples of its output that are kept, and how to read between")
    sensor_historyadr = constant("int", "nsensor", "where they begin in the history, -1 if none")
    sensor_delay = constant("real", "* nsensor", "time from the sensor to its output, s")
    sensor_interval = constant("vec2", "* nsensor", "time between samples and first sample, s; 0: every step")
    sensor_intprm = constant("int", "nsensor 3", "of the sensor of contacts: what it reports, which contacts, how many")

    FIXED = (*Fields.FIXED, "opt", "collision", "distances", "bonds", "capacity")

    def __init__(self, real: Any, mjm: mujoco.MjModel):
        super().__init__(real, sizes_of(mjm))
        for name, size in self.sizes.items():
            setattr(self, name, size)
        self.opt = Option(real, mjm.opt)
        self.collision = Tables(real, mjm, Pairs.of(mjm))
        self.distances = Distances(real, mjm)
        self.bonds = Bonds(real, mjm, self.collision.pairs)
        self.capacity = Capacity.of(mjm, self.collision.pairs)
        self._kinds = sum({bit for used, bit in constraint_kinds(mjm).values() if used})
        self.meaninertia = float(mjm.stat.meaninertia)
        self._structure = Structure.of(mjm)
        self.fits = fits(mjm)
        self.transmissions = {int(kind) for kind in mjm.actuator_trntype}
        self.fine = real is not wp.float64 and fine_mass.asks(mjm)
        self.motors = bool(np.any(mjm.actuator_gaintype == int(mujoco.mjtGain.mjGAIN_DCMOTOR)))
        self.orients = int(mujoco.mjtTrn.mjTRN_SO3) in self.transmissions
        self.floats = bool(floating(mjm).any())
        self.senses = {int(kind) for kind in mjm.sensor_type}
        self._uses = {name for name in Model.EXTRAS if np.any(getattr(mjm, name))}
        self._shown = Shown()  # tables of structure
        self._editions = self.opt._editions
        own = {**actuator_columns(mjm), **frames(mjm)}
        own["body_isdofancestor"] = dof_ancestors(mjm)
        own["tendon_type"] = tendon_types(mjm)
        own["D_mirror"], own["body_floats"] = mirror(mjm), floating(mjm)
        own["body_swims"] = np.isin(np.arange(mjm.nbody), mjm.geom_bodyid[mjm.geom_fluid[:, 0] > 0])
        if not self.nplastic:
            own.update(jnt_plasticadr=np.full(mjm.njnt, -1), tendon_plasticadr=np.full(mjm.ntendon, -1))
        for row in Model.rows():
            self.fill(row, own[row.name] if row.name in own else getattr(mjm, row.name, np.zeros(self.extent(row))))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {self.sizes[name]}" for name in ("nq", "nv", "nu", "nbody", "ngeom"))
        return f"<Model with {sizes}, {self.real.__name__}>"

    EXTRAS = (  # 0 in most models, and a step then need not look at them
        "body_gravcomp", "jnt_stiffnesspoly", "dof_dampingpoly", "tendon_armature",
        "actuator_damping", "actuator_dampingpoly", "actuator_armature",
    )  # fmt: skip

    @property
    def uses(self) -> set[str]:
        """Those fields in `EXTRAS`, of the model and of its options, that are not 0 or that the user has asked for."""
        return self._uses | self.opt.uses

    @property
    def straight(self) -> bool:
        """Whether `straight` can step the model."""
        euler = self.opt.integrator == int(mujoco.mjtIntegrator.mjINT_EULER)
        return self.fits and euler and not (self.uses or self.constrained or self.opt.disableactuator)

    @property
    def constrained(self) -> bool:
        """Whether worlds may meet constraints: of kinds that the model has and no flag has switched off."""
        off = self.opt.disableflags
        return not off & int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT) and bool(self._kinds & ~off)

    @property
    def collides(self) -> bool:
        """Whether geoms may touch: there are pairs of them, and no flag has switched contacts off."""
        off = int(mujoco.mjtDisableBit.mjDSBL_CONTACT) | int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        return bool(self.collision.methods) and not self.opt.disableflags & off

    @property
    def structure(self) -> Structure:
        """What the code of a straight-line step depends on."""
        return replace(self._structure, disableflags=self.opt.disableflags)

    def _take_note(self, row: Field) -> None:
        """A field that the user has set, or may write to, counts from now on."""
        before = self._structure, self._kinds, len(self._uses)
        if row in (Model.jnt_pos, Model.jnt_axis):
            self._structure = self._structure.askew()
        elif row in (Model.dof_frictionloss, Model.tendon_frictionloss):
            self._kinds |= int(mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS)
        elif row.name in Model.EXTRAS:
            self._uses.add(row.name)
        if before != (self._structure, self._kinds, len(self._uses)):
            self.version += 1

    def give(self, row: Field) -> wp.array:
        """The array of a field. Whoever asks for anchors or axes may move them: code then does not rely on them."""
        self._take_note(row)
        found = self.read(row)
        if is_settled(row):
            self._shown.note(row.name, found)
        else:
            self._editions.note(found)
        return found

    def assign(self, row: Field, value: Any) -> None:
        """Put another array in a field's place.

        Raises:
            ValueError: it is part of the model's structure; or the array does not fit.
        """
        if is_settled(row):
            raise ValueError(_FIXED.format(row.name))
        super().assign(row, value)
        self._editions.note(self.read(row))

    def intact(self, far: bool = True) -> None:
        """Raise if a table of the model's structure has been written to, or an option means nothing.

        Args:
            far: look at memory of GPUs, too, which takes a while.

        Raises:
            ValueError: the message names it.
        """
        if (self._shown.some or self.opt._shown.some) and not wp.get_device().is_capturing:
            self.opt.intact(far)
            for name in self._shown.changed(far):
                raise ValueError(_FIXED.format(name))

    def replaced(self, row: Field, value: wp.array) -> None:
        """Take note of an array of the user's."""
        self._take_note(row)
        super().replaced(row, value)

    def edition(self) -> Edition:
        """What a step sets out with that is taken now."""
        return self._editions.now(self)

    def as_of(self, edition: Edition, before: tuple[Edition, Model] | None) -> Model:
        """The model as it was in ``edition``: this one, if nothing has changed since. ``before``: see
        `Edition.restored`."""
        return self if self._editions.hold(edition, self) else edition.restored(before)

    def copied(self) -> Model:
        """A model of its own, with the same arrays."""
        made, opt = object.__new__(Model), object.__new__(Option)
        own = {"_arrays": dict(self.opt._arrays), "varied": dict(self.opt.varied), "uses": set(self.opt.uses)}
        vars(opt).update(vars(self.opt), _shown=Shown(), **own)
        own = {"_arrays": dict(self._arrays), "varied": dict(self.varied), "_uses": set(self._uses)}
        vars(made).update(vars(self), opt=opt, **own)
        return made

    def __deepcopy__(self, memo: Any) -> Model:
        """A model of its own, with the same numbers."""
        made = self.copied()
        made._shown, made.opt._editions = Shown(), Editions()
        made._editions = made.opt._editions
        for table in (made, made.opt):
            for name, array in [*table._arrays.items()]:
                own = table._arrays[name] = table.allocate(getattr(type(table), name))
                own.requires_grad = array.requires_grad
                wp.copy(own, array)
        return made

    def __copy__(self) -> Model:
        return self.__deepcopy__(None)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(_PICKLED)

    def expand(self, nworld: int, *names: str) -> None:
        """Let fields differ between worlds: give each a row for every world, with the values that it has now.

        Args:
            nworld: number of worlds.
            names: fields with a leading axis ``*``; those of options begin with ``opt.``.

        Raises:
            ValueError: a name is not that of such a field, or ``nworld`` is less than 1.

        Example:
            >>> import mujoco, treadle.mujoco as mjw
            >>> xml = "<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>"
            >>> m = mjw.put_model(mujoco.MjModel.from_xml_string(xml))
            >>> m.expand(8, "body_mass", "opt.gravity")
            >>> m.body_mass.shape, m.opt.gravity.shape
            ((8, 2), (8,))
        """
        nworld = whole("nworld", nworld, 1)
        for name in names:
            owner = self.opt if name.startswith("opt.") else self
            row = getattr(type(owner), name.removeprefix("opt."), None)
            if not isinstance(row, Field) or row.shape[0] != "*":
                rows = [(prefix, r) for prefix, table in (("", Model), ("opt.", Option)) for r in table.rows()]
                hint = near(name, [prefix + r.name for prefix, r in rows if r.shape[0] == "*"])
                raise ValueError(f"{name} is no field of the model that may differ between worlds; {hint}".rstrip("; "))
            values = owner.read(row).numpy()
            if values.shape[0] not in (1, nworld):
                raise ValueError(f"{name} has rows for {values.shape[0]} worlds, not {nworld}")
            owner.vary(row, nworld)
            own = owner.allocate(row)
            own.assign(np.broadcast_to(values, own.numpy().shape))
            owner._arrays[row.name] = own
            owner.replaced(row, own)


def is_settled(row: Field) -> bool:
    """Whether a field is a table of the model's structure, which does not change."""
    return row.kind == "int" and row.role == "constant" and row is not Model.eq_active0


_PICKLED = (
    "what put_model returns cannot be pickled: pickle MuJoCo's MjModel, and put it again; of fields that have changed "
    "since pickle what their numpy() gives"
)
_FIXED = (
    "{} of the model cannot change after put_model, which made the tables of its structure from it: change MuJoCo's "
    "model and put it again"
)


def sizes_of(mjm: mujoco.MjModel) -> dict[str, int]:
    """The sizes that shapes of fields name: MuJoCo's, and some of our own.

    They are ``nJmom``, elements of the actuators' moments as we keep them, ``nwrappoint``, most points of paths, and
    ``nnear``, most points that are found for sensors of distance.
    """
    sizes = {name: int(getattr(mjm, name, 0)) for name in SIZES}  # version 3 has fewer
    moments = int(actuator_columns(mjm)["moment_rownnz"].sum())
    return {**sizes, "nJmom": moments, "nwrappoint": 2 * mjm.nwrap, "nnear": measured(mjm).most()}


def put_model(mjm: mujoco.MjModel, dtype: Any = None) -> Model:
    """The model ``mjm`` for this engine.

    Args:
        mjm: a compiled model, as from ``mujoco.MjModel.from_xml_path(…)``.
        dtype: beyond MuJoCo Warp: the precision of all its numbers, ``wp.float32`` (also if None) or ``wp.float64``.

    Raises:
        TypeError: ``mjm`` is no MjModel, or there is no such precision.
        ValueError: an option has a value that means nothing, such as a time step of 0.
        UnsupportedModelError: the model uses a feature that is not simulated; the message names element and attribute.

    Example:
        >>> import mujoco, treadle.mujoco as mjw
        >>> body = "<body><joint axis='0 1 0'/><geom size='.1' pos='.2 0 0'/></body>"
        >>> xml = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
        >>> m = mjw.put_model(mujoco.MjModel.from_xml_string(xml))
        >>> m.nv, m.jnt_axis.shape
        (1, (1, 1))
    """
    instance("mjm", mjm, mujoco.MjModel, "MuJoCo's MjModel, as from mujoco.MjModel.from_xml_path(…)")
    real = precision(dtype)
    refuse.check(mjm)
    return Model(real, mjm)
