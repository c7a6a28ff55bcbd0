"""What users call: each stage by MuJoCo's name, and half steps; `step` itself is in `stepping`."""

from __future__ import annotations

from treadle.mujoco import sensor
from treadle.mujoco.advance import INTEGRATORS, euler, forward, implicit, rungekutta4
from treadle.mujoco.constants import INVDISCRETE
from treadle.mujoco.data import Data
from treadle.mujoco.discrete import continuous_acceleration
from treadle.mujoco.documented import writes
from treadle.mujoco.model import Model
from treadle.mujoco.stages import ACTUATION, PASSIVE, begin, check_match, group, require, run_stage, settle
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


@writes("kinematics", "geom_frames", "site_frames")
def kinematics(m: Model, d: Data) -> None:
    """Place bodies, joints, geoms and sites.

    Example:
        >>> mjw.kinematics(m, d)
        >>> print(d.geom_xpos.numpy()[0, 1])
        [0.45 0.   0.5 ]
    """
    _run(("kinematics", "geom_frames", "site_frames"), m, d)


@writes("camera_frames", "light_frames")
def camlight(m: Model, d: Data) -> None:
    """Place cameras and lights, after `com_pos`.

    Example:
        >>> mjw.kinematics(m, d)
        >>> mjw.com_pos(m, d)
        >>> mjw.camlight(m, d)
        >>> print(d.cam_xpos.numpy()[0])
        [[ 0. -2.  1.]]
    """
    _run(("camera_frames", "light_frames"), m, d)


@writes("com_pos")
def com_pos(m: Model, d: Data) -> None:
    """Centres of mass, and inertias and motions about them, from the placed bodies.

    Example:
        >>> mjw.kinematics(m, d)
        >>> mjw.com_pos(m, d)
        >>> print(d.subtree_com.numpy()[0, 0])
        [0.45 0.   0.5 ]
    """
    _run(("com_pos",), m, d)


@writes("tendon")
def tendon(m: Model, d: Data) -> None:
    """Lengths of tendons, their Jacobian and their paths.

    Example:
        >>> d.qpos.fill_(0.5)
        >>> mjw.tendon(m, d)
        >>> print(d.ten_length.numpy()[0], d.ten_J.numpy()[0])
        [1.] [2.]
    """
    _run(("tendon",), m, d)


@writes("crb")
def crb(m: Model, d: Data) -> None:
    """The mass matrix, by composite rigid bodies, and with the rotors of joints; after `com_pos`.

    Example:
        >>> mjw.kinematics(m, d)
        >>> mjw.com_pos(m, d)
        >>> mjw.crb(m, d)
        >>> print(d.M.numpy()[0].round(4))
        [0.2065]
    """
    _run(("crb",), m, d)


@writes()
def tendon_armature(m: Model, d: Data) -> None:
    """Add to the mass matrix ``M`` the rotors of tendons, after `tendon` and `crb`.

    Example:
        >>> mjw.kinematics(m, d)
        >>> mjw.com_pos(m, d)
        >>> mjw.tendon(m, d)
        >>> mjw.crb(m, d)
        >>> mjw.tendon_armature(m, d)
        >>> print(d.M.numpy()[0].round(4))
        [0.2065]
    """
    _run(("tendon_armature",), m, d)


@writes("factor_m")
def factor_m(m: Model, d: Data) -> None:
    """Factor the mass matrix, after `crb` and `tendon_armature`.

    Example:
        >>> mjw.kinematics(m, d)
        >>> mjw.com_pos(m, d)
        >>> mjw.crb(m, d)
        >>> mjw.factor_m(m, d)
        >>> print(d.qLDiagInv.numpy()[0].round(3))
        [4.843]
    """
    _run(("factor_m",), m, d)


@writes("collision")
def collision(m: Model, d: Data) -> None:
    """Contacts of geoms that are placed, and their parameters. Outside of captures their list grows as needed.

    Example:
        >>> d.qpos.fill_(1.2)
        >>> mjw.kinematics(m, d)
        >>> mjw.collision(m, d)
        >>> print(d.ncon.numpy(), d.contact_dist.numpy()[:, 0].round(3))
        [1 1] [-0.019 -0.019]
    """
    _run(("collision",), m, d)


@writes("transmission")
def transmission(m: Model, d: Data) -> None:
    """Lengths of actuators, and how they change with each degree of freedom.

    Example:
        >>> mjw.fwd_position(m, d)
        >>> mjw.transmission(m, d)
        >>> print(d.actuator_length.numpy()[0], d.actuator_moment.numpy()[0])
        [0.] [1.]
    """
    _run(("transmission", "site_transmission", "orientation", "adhesion_moment"), m, d)


@writes("com_vel")
def com_vel(m: Model, d: Data) -> None:
    """Velocities of bodies and of the axes of joints, after `com_pos`: angular, linear.

    Example:
        >>> d.qvel.fill_(2.0)
        >>> mjw.fwd_position(m, d)
        >>> mjw.com_vel(m, d)
        >>> print(d.cvel.numpy()[0, 1].round(3))
        [ 0.   2.   0.   0.   0.  -0.9]
    """
    _run(("com_vel",), m, d)


@writes(*PASSIVE)
def passive(m: Model, d: Data) -> None:
    """Forces of springs, dampers, media and against gravity, and their sum.

    Example:
        >>> d.qvel.fill_(2.0)
        >>> mjw.fwd_position(m, d)
        >>> mjw.fwd_velocity(m, d)
        >>> mjw.passive(m, d)
        >>> print(d.qfrc_passive.numpy()[0].round(3))
        [-0.2]
    """
    _run(PASSIVE, m, d)


@writes("rne")
def rne(m: Model, d: Data) -> None:
    """Coriolis, centrifugal and gravitational forces, by recursive Newton-Euler; after `com_vel`.

    Example:
        >>> mjw.fwd_position(m, d)
        >>> mjw.com_vel(m, d)
        >>> mjw.rne(m, d)
        >>> print(d.qfrc_bias.numpy()[0].round(3))
        [-4.414]
    """
    _run(("rne",), m, d)


@writes(*group("position"))
def fwd_position(m: Model, d: Data) -> None:
    """All stages that depend on positions alone.

    Example:
        >>> mjw.fwd_position(m, d)
        >>> print(d.xpos.numpy()[0, 1], d.nefc.numpy())
        [0.  0.  0.5] [0 0]
    """
    _run(group("position"), m, d)


@writes(*group("velocity"))
def fwd_velocity(m: Model, d: Data) -> None:
    """All stages that depend on velocities, after `fwd_position`.

    Example:
        >>> d.qvel.fill_(2.0)
        >>> mjw.fwd_position(m, d)
        >>> mjw.fwd_velocity(m, d)
        >>> print(d.qfrc_passive.numpy()[0].round(3), d.actuator_velocity.numpy()[0])
        [-0.2] [2.]
    """
    _run(group("velocity"), m, d)


@writes(*ACTUATION)
def fwd_actuation(m: Model, d: Data) -> None:
    """Forces of actuators from ``ctrl`` and ``act``, after `fwd_velocity`.

    Example:
        >>> d.ctrl.fill_(0.5)
        >>> mjw.fwd_position(m, d)
        >>> mjw.fwd_velocity(m, d)
        >>> mjw.fwd_actuation(m, d)
        >>> print(d.actuator_force.numpy()[0])
        [2.]
    """
    _run(ACTUATION, m, d)


@writes("fwd_acceleration")
def fwd_acceleration(m: Model, d: Data) -> None:
    """All forces but those of constraints, and what they do; after `fwd_actuation`.

    Example:
        >>> mjw.fwd_position(m, d)
        >>> mjw.fwd_velocity(m, d)
        >>> mjw.fwd_actuation(m, d)
        >>> mjw.fwd_acceleration(m, d)
        >>> print(d.qacc_smooth.numpy()[0].round(2))
        [21.38]
    """
    _run(("fwd_acceleration",), m, d)


@writes("subtree_vel")
def subtree_vel(m: Model, d: Data) -> None:
    """Velocities and angular momenta of subtrees, after `com_vel`.

    Example:
        >>> d.qvel.fill_(2.0)
        >>> mjw.fwd_position(m, d)
        >>> mjw.fwd_velocity(m, d)
        >>> mjw.subtree_vel(m, d)
        >>> print(d.subtree_linvel.numpy()[0, 1].round(3))
        [ 0.   0.  -0.9]
    """
    _run(("subtree_vel",), m, d, force=True)


@writes()
def energy_pos(m: Model, d: Data) -> None:
    """``energy[:, 0]``, potential energy in J, after `fwd_position`.

    Example:
        >>> mjw.fwd_position(m, d)
        >>> mjw.energy_pos(m, d)
        >>> print(d.energy.numpy()[0].round(3))
        [4.905 0.   ]
    """
    _run(("energy_pos",), m, d, force=True)


@writes()
def energy_vel(m: Model, d: Data) -> None:
    """``energy[:, 1]``, kinetic energy in J, after `fwd_position`.

    Example:
        >>> d.qvel.fill_(2.0)
        >>> mjw.fwd_position(m, d)
        >>> mjw.energy_vel(m, d)
        >>> print(d.energy.numpy()[0].round(3))
        [4.905 0.413]
    """
    _run(("energy_vel",), m, d, force=True)


@writes("make_constraint")
def make_constraint(m: Model, d: Data) -> None:
    """Rows of constraints from positions and contacts, after `collision`.

    Example:
        >>> d.qpos.fill_(1.2)
        >>> mjw.fwd_position(m, d)
        >>> mjw.make_constraint(m, d)
        >>> print(d.nefc.numpy(), d.efc_J.numpy()[0, :2, 0].round(3))
        [5 5] [-1.    -0.163]
    """
    _run(("make_constraint",), m, d, force=True)


@writes("reference_constraint")
def reference_constraint(m: Model, d: Data) -> None:
    """What velocities contribute to constraints, after `make_constraint`.

    Example:
        >>> d.qpos.fill_(1.2)
        >>> d.qvel.fill_(2.0)
        >>> mjw.fwd_position(m, d)
        >>> mjw.fwd_velocity(m, d)
        >>> mjw.reference_constraint(m, d)
        >>> print((d.efc_aref.numpy()[0, :4] > 0).all())
        False
    """
    _run(("reference_constraint",), m, d, force=True)


@writes("solve")
def solve(m: Model, d: Data) -> None:
    """Forces of constraints, and ``qacc qfrc_constraint`` with them; after `fwd_acceleration`.

    Example:
        >>> d.qpos.fill_(1.2)
        >>> mjw.fwd_position(m, d)
        >>> mjw.fwd_velocity(m, d)
        >>> mjw.fwd_actuation(m, d)
        >>> mjw.fwd_acceleration(m, d)
        >>> mjw.solve(m, d)
        >>> print((d.efc_force.numpy()[0, :4] > 0).all(), (d.qacc.numpy() < d.qacc_smooth.numpy()).all())
        False True
    """
    _run(("solve",), m, d, force=True)


@writes()
def sensor_pos(m: Model, d: Data) -> None:
    """``sensordata`` of sensors that depend on positions, after `fwd_position`.

    Example:
        >>> d.qpos.fill_(0.5)
        >>> mjw.fwd_position(m, d)
        >>> mjw.sensor_pos(m, d)
        >>> print(d.sensordata.numpy()[:, 0])
        [0.5 0.5]
    """
    _run(("sensor_pos",), m, d)


@writes()
def sensor_vel(m: Model, d: Data) -> None:
    """``sensordata`` of sensors that depend on velocities, after `fwd_velocity`.

    Example:
        >>> d.qvel.fill_(2.0)
        >>> mjw.fwd_position(m, d)
        >>> mjw.fwd_velocity(m, d)
        >>> mjw.sensor_vel(m, d)
        >>> print(d.sensordata.numpy()[0, 1].round(3))
        2.0
    """
    _run(("sensor_vel",), m, d)


@writes()
def sensor_acc(m: Model, d: Data) -> None:
    """``sensordata`` of sensors that depend on accelerations and forces, after `solve`.

    Example:
        >>> d.ctrl.fill_(0.5)
        >>> mjw.forward(m, d)
        >>> mjw.sensor_acc(m, d)
        >>> print(d.sensordata.numpy()[0, 2].round(3))
        2.0
    """
    _run(("sensor_acc",), m, d)


@writes("rne_postconstraint")
def rne_postconstraint(m: Model, d: Data) -> None:
    """Accelerations of bodies and forces on them, with those of constraints; after `forward`.

    Example:
        >>> mjw.forward(m, d)
        >>> mjw.rne_postconstraint(m, d)
        >>> print(d.cacc.numpy()[0, 1].round(3))
        [ 0.    21.378  0.     0.     0.     0.19 ]
    """
    check_match(m, d)
    settle(d)
    sensor.rne_postconstraint(m, d)


@writes("inverse", more=", or the flag ``invdiscrete`` is set and the integrator is Runge-Kutta")
def inverse(m: Model, d: Data) -> None:
    """The forces, of actuators and applied ones, that give the present ``qpos``, ``qvel`` and ``qacc``.

    With the flag ``invdiscrete`` ``qacc`` is a difference of velocities over a step; not so for Runge-Kutta steps.

    Example:
        >>> d.qacc.fill_(1.0)
        >>> mjw.inverse(m, d)
        >>> print(d.qfrc_inverse.numpy()[0].round(3))
        [-4.208]
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


@writes(*group("position"), *group("velocity"))
def step1(m: Model, d: Data) -> None:
    """The first part of a step: all that depends on positions and velocities. Set controls, then call `step2`.

    Example:
        >>> mjw.step1(m, d)
        >>> d.ctrl.assign(-d.qfrc_bias.numpy() / 4)
        >>> mjw.step2(m, d)
        >>> print(d.time.numpy())
        [0.002 0.002]
    """
    check_match(m, d)
    begin(m, d)
    for name in (*group("position"), *group("velocity")):
        run_stage(name, m, d)


@writes(*group("acceleration"), order="`step1` (or `forward`) has not been called since worlds were reset or moved on")
def step2(m: Model, d: Data) -> None:
    """The second part of a step: forces, accelerations, integration. Runge-Kutta cannot be split: Euler instead.

    Example:
        >>> mjw.step1(m, d)
        >>> d.ctrl.fill_(0.5)
        >>> mjw.step2(m, d)
        >>> print(d.actuator_force.numpy()[0], d.time.numpy())
        [2.] [0.002 0.002]
    """
    check_match(m, d)
    require(m, d, ("position", "velocity"), "step2", "call step1 (or forward) before it")
    settle(d)
    for name in group("acceleration"):
        run_stage(name, m, d)
    integrate = INTEGRATORS[m.opt.integrator]
    (euler if integrate is rungekutta4 else integrate)(m, d)
