"""What users call: `step`, `forward`, integrators, and each stage by MuJoCo's name."""

from __future__ import annotations

import mujoco

import treadle as wp
from treadle.lang.ahead import ahead
from treadle.lang.tape import recording
from treadle.mujoco import history, sensor
from treadle.mujoco.binding import bind, parameters
from treadle.mujoco.data import WARM, Data
from treadle.mujoco.model import Model
from treadle.mujoco.stages import ACTUATION, PASSIVE, STAGES, TABLE, check_match, group, run_stage, settle
from treadle.mujoco.straight import step_kernel

WITHIN = tuple(stage.name for stage in TABLE if not stage.name.startswith("sensor_"))  # a Runge-Kutta step
STRAIGHT_DOFS = 20  # beyond, compiling a straight-line step takes too long: its time grows with the square


class Plan:
    """The straight-line step of one model over one data, ready to launch as long as both keep their versions."""

    def __init__(self, m: Model, d: Data):
        check_match(m, d)
        self.kernel = step_kernel(m.structure, m.real, d.pushed)
        self.single = step_kernel(m.structure, m.real, d.pushed, single=True)
        self.inputs = bind(self.kernel, m, d, nstep=1)
        self.places = {name: k for k, name in enumerate(parameters(self.kernel))}
        self.model, self.versions = m, (m.version, m.opt.version, d.version)

    def holds(self, m: Model, d: Data) -> bool:
        """Whether the model and what the code depends on are still those of the plan."""
        return m is self.model and (m.version, m.opt.version, d.version) == self.versions

    def take(self, name: str, array: wp.array) -> None:
        """Use ``array`` as the field ``name`` of the data."""
        if name in self.places:
            self.inputs[self.places[name]] = array

    def launch(self, d: Data, nstep: int) -> None:
        """Step ``nstep`` times: in one launch; while a tape records, in one launch a step, whose adjoint is faster."""
        if not recording():
            self.inputs[0] = nstep
            wp.launch(self.kernel, dim=d.nworld, inputs=self.inputs)
            return
        self.inputs[0] = 1
        for _ in range(nstep):
            wp.launch(self.single, dim=d.nworld, inputs=self.inputs)


def _run(names: tuple[str, ...], m: Model, d: Data, force: bool = False) -> None:
    check_match(m, d)
    settle(d)
    for name in names:
        run_stage(name, m, d, force)


def kinematics(m: Model, d: Data) -> None:
    """Place bodies, joints, geoms and sites: ``xpos xquat xmat xipos ximat xanchor xaxis geom_… site_…``."""
    _run(("kinematics", "geom_frames", "site_frames"), m, d)


def camlight(m: Model, d: Data) -> None:
    """Place cameras and lights: ``cam_xpos cam_xmat light_xpos light_xdir``."""
    _run(("camera_frames", "light_frames"), m, d)


def com_pos(m: Model, d: Data) -> None:
    """``subtree_com cinert cdof`` from the placed bodies."""
    _run(("com_pos",), m, d)


def tendon(m: Model, d: Data) -> None:
    """Lengths of tendons, their Jacobian and their paths: ``ten_length ten_J ten_wrap… wrap_…``."""
    _run(("tendon",), m, d)


def crb(m: Model, d: Data) -> None:
    """The mass matrix ``M``, by composite rigid bodies, and with the rotors of joints."""
    _run(("crb",), m, d)


def tendon_armature(m: Model, d: Data) -> None:
    """Add to ``M`` the rotors of tendons."""
    _run(("tendon_armature",), m, d)


def factor_m(m: Model, d: Data) -> None:
    """The factor ``qLD qLDiagInv`` of the mass matrix."""
    _run(("factor_m",), m, d)


def collision(m: Model, d: Data) -> None:
    """Contacts of geoms: ``ncon contact_dist contact_pos contact_frame`` and their parameters."""
    _run(("collision",), m, d)


def transmission(m: Model, d: Data) -> None:
    """``actuator_length actuator_moment``."""
    _run(("transmission", "site_transmission", "orientation", "adhesion_moment"), m, d)


def com_vel(m: Model, d: Data) -> None:
    """Velocities of bodies ``cvel`` and of joint axes ``cdof_dot`` from ``qvel``."""
    _run(("com_vel",), m, d)


def passive(m: Model, d: Data) -> None:
    """``qfrc_spring qfrc_damper qfrc_gravcomp qfrc_fluid`` and their sum ``qfrc_passive``."""
    _run(PASSIVE, m, d)


def rne(m: Model, d: Data) -> None:
    """``qfrc_bias``: Coriolis, centrifugal and gravitational forces, by recursive Newton-Euler."""
    _run(("rne",), m, d)


def fwd_position(m: Model, d: Data) -> None:
    """All stages that depend on positions alone."""
    _run(group("position"), m, d)


def fwd_velocity(m: Model, d: Data) -> None:
    """All stages that depend on velocities."""
    _run(group("velocity"), m, d)


def fwd_actuation(m: Model, d: Data) -> None:
    """``act_dot actuator_force qfrc_actuator`` from ``ctrl`` and ``act``."""
    _run(ACTUATION, m, d)


def fwd_acceleration(m: Model, d: Data) -> None:
    """``qfrc_smooth qacc_smooth``: all forces but those of constraints, and what they do."""
    _run(("fwd_acceleration",), m, d)


def subtree_vel(m: Model, d: Data) -> None:
    """``subtree_linvel subtree_angmom``."""
    _run(("subtree_vel",), m, d, force=True)


def energy_pos(m: Model, d: Data) -> None:
    """``energy[:, 0]``, potential energy."""
    _run(("energy_pos",), m, d, force=True)


def energy_vel(m: Model, d: Data) -> None:
    """``energy[:, 1]``, kinetic energy."""
    _run(("energy_vel",), m, d, force=True)


def make_constraint(m: Model, d: Data) -> None:
    """Rows of constraints from positions and contacts: ``ne nf nl nefc efc_J efc_pos efc_D`` and others."""
    _run(("make_constraint",), m, d, force=True)


def reference_constraint(m: Model, d: Data) -> None:
    """What velocities contribute to constraints: ``efc_vel efc_aref``."""
    _run(("reference_constraint",), m, d, force=True)


def solve(m: Model, d: Data) -> None:
    """``qacc qfrc_constraint efc_force efc_state`` from ``qacc_smooth`` and the constraints."""
    _run(("solve",), m, d, force=True)


def sensor_pos(m: Model, d: Data) -> None:
    """``sensordata`` of sensors that depend on positions."""
    _run(("sensor_pos",), m, d)


def sensor_vel(m: Model, d: Data) -> None:
    """``sensordata`` of sensors that depend on velocities."""
    _run(("sensor_vel",), m, d)


def sensor_acc(m: Model, d: Data) -> None:
    """``sensordata`` of sensors that depend on accelerations and forces."""
    _run(("sensor_acc",), m, d)


def rne_postconstraint(m: Model, d: Data) -> None:
    """``cacc cfrc_ext cfrc_int``: accelerations of bodies and forces on them, with those of constraints."""
    check_match(m, d)
    settle(d)
    sensor.rne_postconstraint(m, d)


def forward(m: Model, d: Data) -> None:
    """Every derived field from the present state, without advancing time."""
    check_match(m, d)
    d._pending.clear()
    for stage in TABLE:
        run_stage(stage.name, m, d)


def euler(m: Model, d: Data) -> None:
    """Advance ``qvel qpos act time`` by one step of semi-implicit Euler, from the forces that `forward` found."""
    check_match(m, d)
    settle(d)
    run_stage("euler", m, d)
    _advance(m, d)


def _advance(m: Model, d: Data, given: bool = False) -> None:
    if m.nhistory:
        history.remember(m, d)
    if m.na:
        run_stage("advance_act", m, d)
        if m.motors:
            run_stage("advance_motors", m, d)
        if m.orients:
            run_stage("advance_orientation", m, d)
    run_stage("advance", m, d, given=given)
    if m.nhistory:
        history.begin(m, d, lost=True)


def rungekutta4(m: Model, d: Data) -> None:
    """Advance ``qvel qpos act time`` by one step of the classical Runge-Kutta method of order 4, after `forward`."""
    check_match(m, d)
    settle(d)
    run_stage("rk_start", m, d)
    for part, share in ((0.5, 1.0 / 3.0), (0.5, 1.0 / 3.0), (1.0, 1.0 / 6.0)):
        run_stage("rk_place", m, d, part=part)
        for name in WITHIN:
            run_stage(name, m, d)
        run_stage("rk_gather", m, d, part=part, share=share)
    run_stage("rk_end", m, d)
    _advance(m, d, given=True)


def implicit(m: Model, d: Data) -> None:
    """Advance ``qvel qpos act time`` by one step that is implicit in velocities, after `forward`.

    The integrator ``implicitfast`` leaves out how Coriolis forces change, and then has a symmetric matrix to solve.
    """
    check_match(m, d)
    settle(d)
    run_stage("deriv_passive", m, d)
    if m.nactuator and not m.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_ACTUATION):
        run_stage("deriv_actuators", m, d)
        if m.motors:
            run_stage("deriv_motors", m, d)
        if m.orients:
            run_stage("deriv_orientation", m, d)
    full = m.opt.integrator == int(mujoco.mjtIntegrator.mjINT_IMPLICIT)
    wet = not m.uses.isdisjoint(("density", "viscosity"))
    if wet:
        run_stage("deriv_fluid", m, d, symmetric=not full)
    if full:
        run_stage("deriv_bias", m, d)
    run_stage("implicit" if full else "implicitfast", m, d)
    if m.floats:
        run_stage("free_bodies_in_fluid" if wet else "free_bodies", m, d)
    _advance(m, d)


def inverse(m: Model, d: Data) -> None:
    """``qfrc_inverse``: the forces, of actuators and applied ones, that give the present ``qacc``."""
    check_match(m, d)
    settle(d)
    for name in (*group("position"), *group("velocity")):
        run_stage(name, m, d)
    if m.constrained:
        run_stage("inv_constraint", m, d)
    else:
        d.field("qfrc_constraint").zero_()
    run_stage("sensor_acc", m, d)
    run_stage("inverse", m, d)


def step1(m: Model, d: Data) -> None:
    """The first part of a step: all that depends on positions and velocities. Set controls, then call `step2`."""
    check_match(m, d)
    d._pending.clear()
    for name in (*group("position"), *group("velocity")):
        run_stage(name, m, d)


def step2(m: Model, d: Data) -> None:
    """The second part of a step: forces, accelerations, integration. Runge-Kutta cannot be split: Euler instead."""
    check_match(m, d)
    settle(d)
    for name in group("acceleration"):
        run_stage(name, m, d)
    integrate = INTEGRATORS[m.opt.integrator]
    (euler if integrate is rungekutta4 else integrate)(m, d)


def step(m: Model, d: Data, nstep: int = 1) -> None:
    """Advance all worlds by ``nstep`` steps.

    Args:
        m: the model.
        d: the worlds; ``ctrl`` and ``qfrc_applied`` act during all the steps.
        nstep: beyond MuJoCo Warp: number of steps, at least 1, done in one launch.

    Raises:
        TypeError: model and data differ in precision.
        ValueError: the data was made for another model, or ``nstep`` is less than 1.

    Example:
        >>> import mujoco, treadle.mujoco as mjw
        >>> body = "<body><joint axis='0 1 0'/><geom size='.1' pos='.2 0 0'/></body>"
        >>> xml = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
        >>> m = mjw.put_model(mujoco.MjModel.from_xml_string(xml))
        >>> d = mjw.make_data(m, nworld=2)
        >>> mjw.step(m, d, nstep=100)
        >>> print(d.time.numpy().round(3), (d.qpos.numpy() > 0).all())
        [0.2 0.2] True
    """
    if nstep < 1:
        raise ValueError(f"nstep is at least 1, not {nstep}")
    if not (m.straight and m.nv <= STRAIGHT_DOFS):
        integrate = INTEGRATORS[m.opt.integrator]
        if not d._compiled and not recording():
            with ahead():  # the kernels of all stages, on several cores, before the first one runs
                forward(m, d)
                integrate(m, d)
            d._compiled = True
        for _ in range(nstep):
            forward(m, d)
            integrate(m, d)
        return
    if d._plan is None or not d._plan.holds(m, d):
        d._plan = Plan(m, d)
    d._plan.launch(d, nstep)
    d._model, d._pending = m, {*STAGES, WARM}


INTEGRATORS = {
    int(mujoco.mjtIntegrator.mjINT_EULER): euler,
    int(mujoco.mjtIntegrator.mjINT_RK4): rungekutta4,
    int(mujoco.mjtIntegrator.mjINT_IMPLICIT): implicit,
    int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST): implicit,
}
