"""Data: everything that changes while worlds are simulated. One row an array, by MuJoCo's names."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

import treadle as wp
from treadle.base.errors import CapacityError
from treadle.mujoco.arguments import whole
from treadle.mujoco.collision.view import Contact
from treadle.mujoco.constants import WARNINGS
from treadle.mujoco.constraint.bonds import LIVE
from treadle.mujoco.contents import outside_of_captures
from treadle.mujoco.dealing import Dealer
from treadle.mujoco.editions import Edition
from treadle.mujoco.efc import Efc
from treadle.mujoco.fields import Field, Fields, control, derived, scratch, state
from treadle.mujoco.model import Model

WARM = "warm start"  # among the fields that a step did not store: it left no acceleration for the next one's solver
ROOM = ("nconmax", "njmax")  # what grows where worlds need more, in the order of `most_needed`
_WARNED = {"BADCTRL": "had bad controls", "INERTIA": "had a mass matrix that is all but singular"}
COUNTED = (("found_count", "contacts"), ("nrow", "rows of constraints"))  # fields that count it, and what it is


class Data(Fields):
    """State, controls and results of ``nworld`` worlds.

    Every array has the world as its first axis. Derived fields are those of the state from which the last step set
    out, as in MuJoCo; a step does not store them, they are computed when they are read. So read them through ``d``
    after each step (``d.xpos``) and do not keep the array.
    """

    time = state("real", "nworld", "simulation time, s")
    qpos = state("real", "nworld nq", "joint positions, m or rad")
    qvel = state("real", "nworld nv", "joint velocities")
    act = state("real", "nworld na", "activations of actuators")
    qacc_warmstart = state("real", "nworld nv", "acceleration with which the solver starts")

    history = state("real", "nworld nhistory", "samples of controls and sensors, for those with delays (`history`)")
    plastic = state("real", "nworld nplastic", "places of rest of springs that yield (`plastic`)")
    warned = state("int", "nworld 5", "how often velocity, position, acceleration, control or mass matrix was bad")

    ctrl = control("real", "nworld nu", "actuator controls")
    qfrc_applied = control("real", "nworld nv", "forces applied to joints, N or N m")
    xfrc_applied = control("spatial", "nworld nbody", "forces and torques applied to bodies at their centres of mass")
    mocap_pos = control("vec3", "nworld nmocap", "positions of mocap bodies, m")
    mocap_quat = control("quat", "nworld nmocap", "orientations of mocap bodies")

    xpos = derived("kinematics", "vec3", "nworld nbody", "positions of bodies in the world's frame, m")
    xquat = derived("kinematics", "quat", "nworld nbody", "orientations of bodies, (w, x, y, z)")
    xmat = derived("kinematics", "mat33", "nworld nbody", "the same as matrices")
    xipos = derived("kinematics", "vec3", "nworld nbody", "centres of mass of bodies, m")
    ximat = derived("kinematics", "mat33", "nworld nbody", "orientations of the principal axes of inertia")
    xanchor = derived("kinematics", "vec3", "nworld njnt", "anchors of joints, m")
    xaxis = derived("kinematics", "vec3", "nworld njnt", "axes of joints")
    geom_xpos = derived("geom_frames", "vec3", "nworld ngeom", "positions of geoms, m")
    geom_xmat = derived("geom_frames", "mat33", "nworld ngeom", "orientations of geoms")
    site_xpos = derived("site_frames", "vec3", "nworld nsite", "positions of sites, m")
    site_xmat = derived("site_frames", "mat33", "nworld nsite", "orientations of sites")

    subtree_com = derived("com_pos", "vec3", "nworld nbody", "centre of mass of each subtree, m")
    cinert = derived("com_pos", "inertia", "nworld nbody", "inertia of bodies about the centre of mass of their tree")
    cdof = derived("com_pos", "spatial", "nworld nv", "motion of each degree of freedom about that point")
    cam_xpos = derived("camera_frames", "vec3", "nworld ncam", "positions of cameras, m")
    cam_xmat = derived("camera_frames", "mat33", "nworld ncam", "orientations of cameras")
    light_xpos = derived("light_frames", "vec3", "nworld nlight", "positions of lights, m")
    light_xdir = derived("light_frames", "vec3", "nworld nlight", "directions of lights")
    ten_length = derived("tendon", "real", "nworld ntendon", "lengths of tendons, m")
    ten_J = derived("tendon", "real", "nworld nJten", "how they change with each degree of freedom (``ten_J_colind``)")
    ten_wrapadr = derived("tendon", "int", "nworld ntendon", "first point of each tendon's path")
    ten_wrapnum = derived("tendon", "int", "nworld ntendon", "number of points")
    wrap_obj = derived("tendon", "int", "nworld nwrappoint", "geom of each point; -1 for a site, -2 for a pulley")
    wrap_xpos = derived("tendon", "vec3", "nworld nwrappoint", "points of tendons' paths, m")
    crb = derived("crb", "inertia", "nworld nbody", "inertia of composite bodies")
    M = derived("crb", "real", "nworld nC", "mass matrix: of each row the columns that are ancestors")
    qLD = derived("factor_m", "real", "nworld nC", "its factor L' D L")
    qLDiagInv = derived("factor_m", "real", "nworld nv", "1 / D")
    own_inertia = scratch("inertia", "nworld nbody", "inertia of composite bodies from near points (`composite`)")
    fine_crb = scratch("double", "nworld nbody 10", "crb before it is rounded, if M needs that (`fine_mass`)")
    fine_M = scratch("double", "nworld nC", "M before it is rounded")
    fine_LD = scratch("double", "nworld nC", "its factor")
    fine_DiagInv = scratch("double", "nworld nv", "1 / D of that")
    actuator_length = derived("transmission", "real", "nworld nout", "lengths of actuators")
    actuator_moment = derived("transmission", "real", "nworld nJmom", "how they change with each degree of freedom "
                              "(``moment_colind``)")  # fmt: skip

    cvel = derived("com_vel", "spatial", "nworld nbody", "velocities of bodies, about the centre of mass of their tree")
    cdof_dot = derived("com_vel", "spatial", "nworld nv", "rate of change of cdof")
    ten_velocity = derived("tendon_vel", "real", "nworld ntendon", "velocities of tendons, m/s")
    actuator_velocity = derived("actuator_vel", "real", "nworld nout", "velocities of actuators")
    qfrc_spring = derived("joint_springs", "real", "nworld nv", "forces of springs")
    qfrc_damper = derived("joint_dampers", "real", "nworld nv", "forces of dampers")
    qfrc_gravcomp = derived("gravity_compensation", "real", "nworld nv", "forces against gravity")
    qfrc_fluid = derived("fluid", "real", "nworld nv", "forces of the medium")
    qfrc_passive = derived("passive", "real", "nworld nv", "all passive forces")
    energy = derived("energy_vel", "real", "nworld 2", "potential and kinetic energy, J, where the model asks for it")
    subtree_linvel = derived("subtree_vel", "vec3", "nworld nbody", "velocities of subtrees' centres of mass, m/s, if "
                             "a sensor asks for them")  # fmt: skip
    subtree_angmom = derived("subtree_vel", "vec3", "nworld nbody", "angular momenta about them, likewise")
    qfrc_bias = derived("rne", "real", "nworld nv", "Coriolis, centrifugal and gravitational forces")

    ctrl_taken = derived("controls", "real", "nworld nu", "controls within their ranges, as actuators take them")
    act_dot = derived("act_dynamics", "real", "nworld na", "rate of change of activations")
    actuator_force = derived("fwd_actuation", "real", "nworld nout", "forces of actuators")
    qfrc_actuator = derived("actuator_forces_on_joints", "real", "nworld nv", "the same, on joints")
    qfrc_smooth = derived("fwd_acceleration", "real", "nworld nv", "all forces but those of constraints")
    qacc_smooth = derived("fwd_acceleration", "real", "nworld nv", "the acceleration they give")
    qacc = derived("fwd_acceleration", "real", "nworld nv", "joint accelerations")
    qfrc_constraint = derived("fwd_acceleration", "real", "nworld nv", "forces of constraints on joints")
    qfrc_inverse = derived("inverse", "real", "nworld nv", "forces that give qacc: those of actuators and applied ones")

    # contacts: results of `collision`
    ncon = derived("collision", "int", "nworld", "number of contacts")
    contact_dist = derived("collision", "real", "nworld nconmax", "distances of geoms, negative if they overlap, m")
    contact_pos = derived("collision", "vec3", "nworld nconmax", "points of contact, m")
    contact_frame = derived("collision", "mat33", "nworld nconmax", "axes of contacts, in rows: normal, two tangents")
    contact_includemargin = derived("collision", "real", "nworld nconmax", "distance below which a contact pushes, m")
    contact_friction = derived("collision", "vec5", "nworld nconmax", "friction: two tangents, spin, two rolls")
    contact_solref = derived("collision", "vec2", "nworld nconmax", "reference of the normal direction")
    contact_solreffriction = derived("collision", "vec2", "nworld nconmax", "reference of friction; 0: the same")
    contact_solimp = derived("collision", "vec5", "nworld nconmax", "impedance")
    contact_dim = derived("collision", "int", "nworld nconmax", "dimension: 1, 3, 4 or 6")
    contact_geom1 = derived("collision", "int", "nworld nconmax", "first geom")
    contact_geom2 = derived("collision", "int", "nworld nconmax", "second geom")
    contact_pair = derived("collision", "int", "nworld nconmax", "number of the pair in the list of pairs")
    contact_slot = scratch("int", "nworld nconmax", "place of the contact among the slots")
    found_count = scratch("int", "nworld", "number of contacts that were found, with those for which there was no room")
    slot_count = scratch("int", "nworld npairs", "number of contacts of each pair")
    slot_turns = scratch("int", "nworld", "turns of walks towards the nearest points (`collision.convex`)")
    slot_dist = scratch("real", "nworld nslot", "contacts in the slots of their pairs (`Tables.pairs_slot`): distance")
    slot_pos = scratch("vec3", "nworld nslot", "point")
    slot_normal = scratch("vec3", "nworld nslot", "normal")
    slot_tangent = scratch("vec3", "nworld nslot", "direction of the first tangent, 0 for any")
    near_count = scratch("int", "nworld nnearpair", "what was found for sensors of distance, in the form of contacts: "
                         "number of each pair")  # fmt: skip
    near_turns = scratch("int", "nworld", "turns of walks")
    near_dist = scratch("real", "nworld nnear", "distance")
    near_pos = scratch("vec3", "nworld nnear", "the middle between the nearest points")
    near_normal = scratch("vec3", "nworld nnear", "direction from the first geom to the second")
    near_tangent = scratch("vec3", "nworld nnear", "what `collision.convex_kernel` notes there on its way")
    contact_efc_address = derived("make_constraint", "int", "nworld nconmax", "first row of constraints, -1 if none")

    # constraints: results of `constraint` and `solver`
    ne = derived("make_constraint", "int", "nworld", "number of rows of equality constraints")
    nf = derived("make_constraint", "int", "nworld", "number of rows of dry friction")
    nl = derived("make_constraint", "int", "nworld", "number of rows of limits")
    nefc = derived("make_constraint", "int", "nworld", "number of rows of constraints")
    nrow = derived("make_constraint", "int", "nworld", "number of rows that were needed")
    efc_type = derived("make_constraint", "int", "nworld njmax", "mjtConstraint")
    efc_id = derived("make_constraint", "int", "nworld njmax", "its equality, joint, degree of freedom or contact")
    efc_J = derived("make_constraint", "real", "nworld njmax nv", "Jacobian")
    efc_pos = derived("make_constraint", "real", "nworld njmax", "position")
    efc_margin = derived("make_constraint", "real", "nworld njmax", "margin of the position")
    efc_frictionloss = derived("make_constraint", "real", "nworld njmax", "dry friction")
    efc_diagA = derived("make_constraint", "real", "nworld njmax", "inverse mass as the row feels it, approximately")
    efc_KBIP = derived("make_constraint", "vec4", "nworld njmax", "stiffness, damping, impedance, its derivative")
    efc_D = derived("make_constraint", "real", "nworld njmax", "1 / R")
    efc_R = derived("make_constraint", "real", "nworld njmax", "regularisation")
    efc_vel = derived("reference_constraint", "real", "nworld njmax", "velocity")
    efc_aref = derived("reference_constraint", "real", "nworld njmax", "reference acceleration")
    efc_force = derived("solve", "real", "nworld njmax", "force")
    efc_state = derived("solve", "int", "nworld njmax", "mjtConstraintState")
    solver_niter = derived("solve", "int", "nworld", "iterations that the solver took")
    efc_dim = scratch("int", "nworld njmax", "rows of the contact that begins here, 0 within one, 1 elsewhere")
    efc_spec = scratch("spec", "nworld njmax", "what is known of a row before its impedance (`constraint.rows`)")
    efc_friction = scratch("real", "nworld njmax", "friction coefficient of a row of a contact")
    eq_efc_address = scratch("int", "nworld neq", "first row of each equality constraint, -1 if none")
    solver_unsettled = scratch("int", "nworld", "1 where its steps ran out before the gradient was rounding, else 0")
    solver_x = scratch("real", "nworld nv", "qacc - qacc_smooth, of the solver")
    solver_Mx = scratch("real", "nworld nv", "mass matrix times that")
    solver_grad = scratch("real", "nworld nv", "gradient of the cost")
    solver_last = scratch("real", "nworld nv", "gradient before (conjugate gradients)")
    solver_Mgrad = scratch("real", "nworld nv", "inverse mass matrix times gradient (conjugate gradients)")
    solver_p = scratch("real", "nworld nv", "direction of the next step")
    solver_Mp = scratch("real", "nworld nv", "mass matrix times that")
    solver_diag = scratch("real", "nworld nv", "1 / diagonal of the Hessian's factor")
    solver_H = scratch("real", "nworld nH", "Hessian: rows up to the diagonal (Newton)")
    solver_jar = scratch("real", "nworld njmax", "accelerations of constraints, less the reference")
    # bonds that some world of a gang has, one after the other (`constraint.live`), and their basis rows
    live_need = scratch("int", "nworld", "number of contacts, with those for which the gang's bonds had no room")
    live_bond = scratch("int", "nworld nlive", "number of the bond")
    live_row = scratch("int", "nworld nlive", "its first basis row")
    live_number = scratch("int", "nworld nlive", "place of its Jacobian")
    live_weight = scratch("int", "nworld nlive", "place of its weights")
    live_state = scratch("int", "nworld nliverow", "in which piece of the cost a bond is, by its first row")
    live_shape = scratch("vec5", "nworld nlive", "an elliptic contact along a line: a polynomial, and how stiff it is")
    live_J = scratch("real", "nworld nlivenumber", "Jacobian: for each of the bond's degrees of freedom a column")
    live_C = scratch("real", "nworld nliveweight", "weights of basis rows in the Hessian: rows up to the diagonal")
    live_dC = scratch("real", "nworld nliveweight", "their changes")
    live_Z = scratch("real", "nworld nlivecolumn", "weights times Jacobian, of one bond of up to six basis rows")
    row_D = scratch("real", "nworld nliverow", "1 / regularisation; 0 where a world does not have the bond")
    row_mu = scratch("real", "nworld nliverow", "coefficient of friction, or bound of dry friction")
    row_damp = scratch("real", "nworld nliverow", "damping")
    row_b = scratch("real", "nworld nliverow", "acceleration without constraints, less the reference")
    row_jar = scratch("real", "nworld nliverow", "acceleration less the reference")
    row_jv = scratch("real", "nworld nliverow", "how that changes along the direction")
    row_force = scratch("real", "nworld nliverow", "force")
    row_up = scratch("real", "nworld nliverow", "force on the edge of a pyramid that slides this way (dual methods)")
    row_down = scratch("real", "nworld nliverow", "force on the opposite one")
    live_A = scratch("real", "nworld nliveweight", "of each bond its part of A, as rows up to the diagonal")
    live_G = scratch("real", "nworld nlivereach", "what basis rows do in the space of `solver.dual`")
    solver_y = scratch("real", "nworld nv", "what all forces do there")
    solver_root = scratch("real", "nworld nv", "1 / square root of the diagonal of the mass matrix's factor")
    tree_up = scratch("int", "nworld nv", "the degree of freedom before it in the tree of the gang (`solver.hessian`)")
    tree_deep = scratch("int", "nworld nv", "its number of ancestors there")
    tree_at = scratch("int", "nworld nv", "where its row of the Hessian begins")
    solver_L = scratch("real", "nworld nH", "factor of the Hessian: rows up to the diagonal")
    eq_active = control("int", "nworld neq", "whether equality constraints are on")

    # sensors: results of `sensor`
    sensordata = derived("sensor_acc", "real", "nworld nsensordata", "outputs of sensors")
    cacc = derived("rne_postconstraint", "spatial", "nworld nbody", "accelerations of bodies, if a sensor needs them")
    cfrc_int = derived("rne_postconstraint", "spatial", "nworld nbody", "forces of parents on bodies, likewise")
    cfrc_ext = derived("rne_postconstraint", "spatial", "nworld nbody", "forces on bodies from outside, likewise")
    ctrl_delayed = scratch("real", "nworld nu", "controls after delays, if there are any")
    sensor_fresh = scratch("real", "nworld nsensordata", "what sensors found, before delays")
    rk_time = scratch("real", "nworld", "time from which a Runge-Kutta step set out")
    qpos_rest = scratch("real", "nworld nq", "positions at which springs rest, if any yields")
    length_rest = scratch("vec2", "nworld ntendon", "lengths between which springs of tendons rest, if any yields")
    so3_quat = scratch("quat", "nworld nactuator", "relative orientations of servos of orientations")
    motor_mech = scratch("real", "nworld nout", "friction and torque ripple of motors, which no limit bounds")
    motor_slope = scratch("real", "nworld nout", "how their electric forces change with velocity")
    ten_passive = scratch("real", "nworld ntendon", "forces of tendons' springs and dampers")
    ten_tension = scratch("real", "nworld ntendon", "all forces along tendons")
    contact_wrench = scratch("spatial", "nworld nconmax", "force and torque of a contact in its frame")
    sensor_side = scratch("int", "nworld nsensor nconmax", "1, -1: the contact matches the sensor so or reversed")
    sensor_found = scratch("int", "nworld nsensor", "number of contacts that match the sensor")

    body_linvel = scratch("vec3", "nworld nbody", "velocities of bodies' centres of mass (subtree_vel)")
    bias_acc = scratch("spatial", "nworld nbody", "accelerations of bodies while qacc = 0 (rne)")
    bias_frc = scratch("spatial", "nworld nbody", "forces on bodies while qacc = 0 (rne)")
    qH = scratch("real", "nworld nC", "factor of the mass matrix with damping (euler)")
    qHDiagInv = scratch("real", "nworld nv", "1 / D of the same")
    qacc_integrated = scratch("real", "nworld nv", "acceleration over the step, by the integrator")

    qDeriv = scratch("real", "nworld nD", "how smooth forces change with qvel (implicit integrators)")
    qLU = scratch("real", "nworld nD", "factors of the mass matrix less the step times qDeriv (implicit)")
    deriv_vel = scratch("spatial", "nworld nbody", "how velocities of bodies change with one of qvel")
    deriv_acc = scratch("spatial", "nworld nbody", "how their accelerations at qacc = 0 change")
    deriv_frc = scratch("spatial", "nworld nbody", "how the forces for these change")
    qacc_continuous = scratch("real", "nworld nv", "what qacc stands for, as the difference of velocities over a step")
    qvel_integrated = scratch("real", "nworld nv", "velocity over the step, by the integrator")
    rk_qpos = scratch("real", "nworld nq", "qpos from which a Runge-Kutta step set out")
    rk_qvel = scratch("real", "nworld nv", "its qvel")
    rk_act = scratch("real", "nworld na", "its act")
    rk_length = scratch("real", "nworld nout", "its lengths of actuators")
    rk_speed = scratch("real", "nworld nout", "its velocities of actuators")
    rk_rate = scratch("real", "nworld nv", "rates of positions at the present point of the step")
    rk_act_dot = scratch("real", "nworld na", "mean rate of activations so far")

    reset_key = scratch("int", "nworld", "keyframe to reset a world to; -1 for the reference pose, -2 if it goes on")

    most_needed = scratch("int", "nworld 2", "largest numbers of contacts and of rows, of plans' steps (`ROOM`)")
    load = scratch("int", "nworld 2", "what there was to do in the last step: contacts, and which pairs (`dealing`)")
    order = scratch("int", "nworld", "world of each lane, where worlds are dealt to gangs by what they have to do")

    FIXED = (*Fields.FIXED, "nworld")

    def __init__(self, real: Any, sizes: dict[str, int], nworld: int):
        nworld = whole("nworld", nworld, 1)
        nv = sizes["nv"]
        made = {"nworld": nworld, "nH": nv * (nv + 1) // 2, "nlivecolumn": 6 * nv}
        super().__init__(real, {**dict.fromkeys((*ROOM, *LIVE), 0), **sizes, **made})
        self.nworld = nworld
        self.pushed = False  # whether anybody has asked for xfrc_applied: until then nobody is pushed
        self.solved = False  # whether the last model had constraints, whose forces stand here
        self._late: frozenset[str] = frozenset()  # fields that the last step did not store
        self._model: Model | None = None  # the model of that step
        self._edition: Edition | None = None  # what it held then
        self._before: tuple[Edition, Model] | None = None  # what was restored for the fields of another step
        self._plan: Any = None  # how the last step was done (`plan.Plan`, `plan.StraightPlan`)
        self._dealer = Dealer()  # decides which worlds share gangs
        self._other: Any = None  # the plan for steps where they do, or where they do not
        self._plans: dict[Any, Any] = {}  # how fields were computed that it did not store, by their names
        self._steps = 0  # calls of `step`
        self._asked: dict[str, int] = {}  # fields that were late when they were read, and after which call
        self._wanted: set[str] = set()  # fields that steps store
        self._computed = 0, 0  # after which call fields were computed late, and how often
        self._captured: tuple[Model, frozenset[str]] | None = None  # model and late fields of a step in a graph
        self._needs: dict[tuple[int, ...], wp.array] = {}  # what captured steps needed, by the room that they have
        self._done: set[str] = set()  # stages that were done one by one since worlds have moved
        self._done_after = 0  # after which call of `step`
        self._stamp: wp.array | None = None  # counts runs of that
        self._seen = 0  # its number when somebody looked

    @property
    def nconmax(self) -> int:
        """How many contacts each world has room for."""
        return self.sizes["nconmax"]

    @property
    def naconmax(self) -> int:
        """How many contacts all worlds together have room for."""
        return self.nworld * self.nconmax

    @property
    def njmax(self) -> int:
        """How many rows of constraints each world has room for."""
        return self.sizes["njmax"]

    def __deepcopy__(self, memo: Any) -> Data:
        """Worlds of their own in the same state, with the same derived fields."""
        made = Data(self.real, dict(self.sizes), self.nworld)
        for name, a in self._arrays.items():
            wp.copy(made.field(name), a)
        made.pushed, made.solved = self.pushed, self.solved
        made._late, made._model, made._edition = self._late, self._model, self._edition
        made._done, made._done_after = set(self._done), 0
        if self._done_after != self._steps:
            made.moved()
        return made

    def __copy__(self) -> Data:
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        return f"<Data of {self.nworld} worlds with nq {self.sizes['nq']}, nv {self.sizes['nv']}, {self.real.__name__}>"

    def give(self, row: Field) -> wp.array:
        """The array of a field, for the user."""
        if row is Data.xfrc_applied:
            self.push()
        return self.read(row)

    def replaced(self, row: Field, value: wp.array) -> None:
        """Take note of another array: a step that is ready to launch takes it in, as controls may come in a new one."""
        if row is Data.xfrc_applied:
            self.push()
        if self._plan is not None and not self._plan.take(row.name, value):
            self._plan = None
        if self._other is not None and not self._other.take(row.name, value):
            self._other = None
        self._plans = {names: plan for names, plan in self._plans.items() if plan.take(row.name, value)}

    @property
    def fixed(self) -> bool:
        """Whether arrays must stay as they are, also where worlds need more room."""
        return wp.get_device().is_capturing

    def grow(self, symbol: str, size: int) -> None:
        """Make room for ``size`` rows (``njmax``) or contacts (``nconmax``) in each world; what they held is lost."""
        self.reserve({symbol: size + size // 4})

    def reserve(self, sizes: dict[str, int]) -> None:
        """Make arrays larger, where they are smaller than this; what they held is lost."""
        larger = {symbol: size for symbol, size in sizes.items() if size > self.sizes[symbol]}
        if larger:
            self.sizes.update(larger)
            for row in Data.rows():
                if not larger.keys().isdisjoint(row.shape):
                    self._arrays.pop(row.name, None)
            self.version += 1

    @property
    def warning(self) -> dict[str, np.ndarray]:
        """How often what happened in each world: by MuJoCo's names, each an array of ``nworld`` numbers.

        ``BADQVEL``, ``BADQPOS``, ``BADQACC``: the world was lost, as velocities, positions or accelerations were no
        numbers or beyond all bounds, and unless the flag ``mjDSBL_AUTORESET`` is set it began anew. ``BADCTRL``: a
        control was, and the world went on as if all were 0; once for each time that forces of actuators were computed.
        ``INERTIA``: the mass matrix was all but singular; once for each of its factors (straight-line steps have one
        matrix, with the joints' damping in it, which MuJoCo factors after the other). Where MuJoCo warns that contacts
        or constraints are full, `check` raises.
        """
        counts = self.field("warned").numpy()
        return {name: counts[:, k].copy() for k, name in enumerate(WARNINGS)}

    def check(self) -> None:
        """Raise if worlds needed more contacts or rows of constraints than there was room for, as they may in captures.

        What is left out then is decided for each world by itself: the contacts behind the first ``nconmax``, in
        MuJoCo's order. Otherwise room is made, and the step done again.

        Worlds that diverged, had bad controls or singular mass matrices are named in a warning, a ``RuntimeWarning``.

        Raises:
            CapacityError: the message says how many were needed.
            ValueError: a table of the model's structure was written to, or an option means nothing. Steps say so where
                that is to be seen at no cost, in memory of the host.
        """
        if self._model is not None:
            self._model.intact()
        for name, counts in self.warning.items():
            if counts.any():
                first, total = int(np.flatnonzero(counts)[0]), int((counts > 0).sum())
                what = _WARNED.get(name, "diverged")
                text = f"{name}: {total} of {self.nworld} worlds {what}, up to {counts.max()} times, the first {first}"
                warnings.warn(text, RuntimeWarning, stacklevel=2)
        if self._captured is not None:
            self._look_at_graph()
        for rooms, most in self._needs.items():  # what is done outside of captures makes room
            raise_if_short(most.numpy(), rooms)
        now = [count if count not in self._late else "" for count, _ in COUNTED]
        needed = [self.field(name).numpy() if name else np.zeros(self.nworld, int) for name in now]
        raise_if_short(np.stack(needed, axis=1), [self.sizes[symbol] for symbol in ROOM])

    @property
    def efc(self) -> Efc:
        """Rows of constraints by MuJoCo Warp's names: ``d.efc.J``, ``d.efc.force``."""
        return Efc(self)

    @property
    def contact(self) -> Contact:
        """The contacts of all worlds one after the other: a copy, by MuJoCo Warp's names."""
        return Contact(self)

    @property
    def nacon(self) -> wp.array:
        """Their number: an array of one element."""
        return wp.array([len(self.contact)], dtype=wp.int32)

    def push(self) -> None:
        """From now on look at ``xfrc_applied``."""
        if not self.pushed:
            self.pushed = True
            self.version += 1

    def read(self, row: Field) -> wp.array:
        """The array of a field; what the last step did not store is computed first."""
        if self._captured is not None:
            self._look_at_graph()
        if row.name in self._late:
            from treadle.mujoco.stepping import compute

            compute(self, row)
        if row is Data.qacc_warmstart and WARM in self._late:
            self._late -= {WARM}
            wp.copy(super().read(row), self.read(Data.qacc))
        return super().read(row)

    def _look_at_graph(self) -> None:
        """Whether a captured step has been done meanwhile."""
        model, late = self._captured
        if not wp.get_device().is_capturing and (stamp := int(self._stamp.numpy()[0])) != self._seen:
            self._seen, self._model, self._late, self._edition = stamp, model, late, model.edition()
            self.moved()

    def mark(self, stage: str) -> None:
        """A stage has been done in the present state."""
        if self._done_after != self._steps:
            self._done, self._done_after = set(), self._steps
        self._done.add(stage)

    def moved(self) -> None:
        """The state is another one, for which no stage has been done."""
        self._done.clear()

    def has_done(self, stage: str) -> bool:
        """Whether a stage has been done in the present state."""
        if self._captured is not None:
            self._look_at_graph()
        return self._done_after == self._steps and stage in self._done

    def note(self, m: Model) -> None:
        """Called where all derived fields have been computed: captures remember there what room was needed."""
        if self.fixed and m.constrained:
            from treadle.mujoco.plan import counts, reads_lists, remember_needs

            remember_needs(self, counts(m, reads_lists(m)), self.captured_needs())

    def captured_needs(self, array: wp.array | None = None) -> wp.array:
        """Where captured steps remember what room they needed, as `most_needed`, for the room that they have: ``array``
        from now on, or one that stays from graph to graph."""
        rooms = tuple([self.sizes[symbol] for symbol in ROOM])
        if array is not None:
            self._needs[rooms] = array
        if rooms not in self._needs:
            with outside_of_captures():
                self._needs[rooms] = self.allocate(Data.most_needed)
        return self._needs[rooms]


def raise_if_short(needed: np.ndarray, rooms: Sequence[int]) -> None:
    """Raise if worlds needed more than there was room for; ``needed`` has a row for each, with columns as `ROOM`.

    Raises:
        CapacityError: the message says how many were needed.
    """
    for k, (symbol, room, (_, what)) in enumerate(zip(ROOM, rooms, COUNTED, strict=True)):
        short = int((needed[:, k] > room).sum())
        if short:
            most, worlds = int(needed[:, k].max()), len(needed)
            raise CapacityError(f"{short} of {worlds} worlds needed up to {most} {what}, but {symbol} = {room}")


def start_of(row: Field) -> Field:
    """The field that keeps the values of ``row``, of state or control, from which the last step set out."""
    return getattr(Data, f"start_{row.name}")


for _row in [row for row in Data.rows() if row.role in ("state", "control")]:
    _start = scratch(_row.kind, " ".join(_row.shape), f"{_row.name} from which the last step set out")
    _start.__set_name__(Data, f"start_{_row.name}")
    setattr(Data, _start.name, _start)
