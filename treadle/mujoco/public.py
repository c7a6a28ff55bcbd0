"""What users call: each stage by MuJoCo's name, and half steps; `step` itself is in `stepping`."""

from __future__ import annotations

from treadle.mujoco import sensor
from treadle.mujoco.advance import INTEGRATORS, euler, forward, implicit, rungekutta4
from treadle.mujoco.constants import INVDISCRETE
from treadle.mujoco.data import Data
from treadle.mujoco.discrete import continuous_acceleration
from treadle.mujoco.model import Model
from treadle.mujoco.stages import ACTUATION, PASSIVE, check_match, group, require, run_stage, settle
from treadle.mujoco.stepping import step

__all__ = [
    "camlight", "collision", "com_pos", "com_vel", "crb", "energy_pos", "energy_vel", "euler", "factor_m", "forward",
    "fwd_acceleration", "fwd_actuation", "fwd_position", "fwd_velocity", "implicit", "inverse", "kinematics",
    "make_constraint", "passive", "reference_constraint", "rne", "rne_postconstraint", "rungekutta4", "sensor_acc",
    "sensor_pos", "sensor_vel", "solve", "step", "step1", "step2", "subtree_vel", "tendon", "tendon_armature",
    "transmission",
]  # fmt: skip


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


def inverse(m: Model, d: Data) -> None:
    """``qfrc_inverse``: the forces, of actuators and applied ones, that give the present ``qacc``.

    With the flag ``invdiscrete`` ``qacc`` is a difference of velocities over a step; not so for Runge-Kutta steps.

    Raises:
        ValueError: the flag is set, and the integrator is Runge-Kutta.
    """
    check_match(m, d)
    settle(d)
    for name in (*group("position"), *group("velocity")):
        run_stage(name, m, d)
    given = {}
    if m.opt.enableflags & INVDISCRETE:
        if INTEGRATORS[m.opt.integrator] is rungekutta4:
            raise ValueError("inverse: the flag invdiscrete has no meaning for Runge-Kutta steps")
        given["qacc"] = continuous_acceleration(m, d)
    if m.constrained:
        run_stage("inv_constraint", m, d, **given)
    else:
        d.field("qfrc_constraint").zero_()
    run_stage("sensor_acc", m, d, **given)
    run_stage("inverse", m, d, **given)


def step1(m: Model, d: Data) -> None:
    """The first part of a step: all that depends on positions and velocities. Set controls, then call `step2`."""
    check_match(m, d)
    d._late = frozenset()
    for name in (*group("position"), *group("velocity")):
        run_stage(name, m, d)


def step2(m: Model, d: Data) -> None:
    """The second part of a step: forces, accelerations, integration. Runge-Kutta cannot be split: Euler instead."""
    check_match(m, d)
    require(m, d, ("position", "velocity"), "step2", "call step1 (or forward) before it")
    settle(d)
    for name in group("acceleration"):
        run_stage(name, m, d)
    integrate = INTEGRATORS[m.opt.integrator]
    (euler if integrate is rungekutta4 else integrate)(m, d)
