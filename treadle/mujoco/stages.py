"""The stages in their order, and what users call: `step`, `forward` and each stage by MuJoCo's name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import mujoco

import treadle as wp
from treadle.lang.tape import recording
from treadle.mujoco import (
    acceleration,
    actuation,
    constraint,
    derivative,
    energy,
    fluid,
    frames,
    integrators,
    passive,
    position,
    solver,
    transmission,
    velocity,
)
from treadle.mujoco import implicit as implicits
from treadle.mujoco import tendon as tendons
from treadle.mujoco.binding import bind, launch, parameters
from treadle.mujoco.constants import (
    ENERGY,
    SENS_E_KINETIC,
    SENS_E_POTENTIAL,
    SENS_SUBTREEANGMOM,
    SENS_SUBTREELINVEL,
    TRN_SITE,
    TRN_SLIDERCRANK,
)
from treadle.mujoco.data import Data
from treadle.mujoco.model import Model
from treadle.mujoco.sensor.stage import senses
from treadle.mujoco.straight import step_kernel

STRAIGHT_DOFS = 20  # beyond, compiling a straight-line step takes too long: its time grows with the square


def _always(m: Model) -> bool:
    return True


@dataclass(frozen=True)
class Stage:
    """A step of the computation: the kernel ``name`` of ``kernels``, or, where one launch does not do, ``run``.

    ``group`` says what it depends on: ``position``, ``velocity`` or ``acceleration`` (controls and forces too);
    ``needed(m)`` whether a model has anything for it to do. ``run(m, d, **other)`` finds in ``other`` the arrays that
    take the place of fields.
    """

    group: str
    name: str
    kernels: Callable[[Any], dict[str, wp.Kernel]] | None = None
    needed: Callable[[Model], bool] = _always
    run: Callable[..., None] | None = None


def _has(size: str) -> Callable[[Model], bool]:
    return lambda m: m.sizes[size] > 0


def _uses(*names: str) -> Callable[[Model], bool]:
    return lambda m: not m.uses.isdisjoint(names)


def _drives(*kinds: int) -> Callable[[Model], bool]:
    return lambda m: not m.transmissions.isdisjoint(kinds)


def _senses(*kinds: int) -> Callable[[Model], bool]:
    return lambda m: not m.senses.isdisjoint(kinds)


def _counts_energy(m: Model) -> bool:
    return bool(m.opt.enableflags & ENERGY) or not m.senses.isdisjoint((SENS_E_POTENTIAL, SENS_E_KINETIC))


def _carries_rotors(m: Model) -> bool:
    return m.ntendon > 0 and not m.uses.isdisjoint(("tendon_armature", "actuator_armature"))


def _constrained(m: Model) -> bool:
    return m.constrained


# The order is that of MuJoCo's mj_forward. A stage that is not here is not computed; `refuse` refuses what needs it.
TABLE = (
    Stage("position", "kinematics", position.kernels),
    Stage("position", "geom_frames", frames.kernels),
    Stage("position", "site_frames", frames.kernels),
    Stage("position", "com_pos", position.kernels),
    Stage("position", "camera_frames", frames.kernels, _has("ncam")),
    Stage("position", "light_frames", frames.kernels, _has("nlight")),
    Stage("position", "tendon", tendons.kernels, _has("ntendon")),
    Stage("position", "crb", position.kernels),
    Stage("position", "tendon_armature", position.kernels, _carries_rotors),
    Stage("position", "factor_m", position.kernels),
    # collision
    Stage("position", "make_constraint", needed=_constrained, run=constraint.make_constraint),
    Stage("position", "transmission", transmission.kernels),
    Stage("position", "site_transmission", transmission.kernels, _drives(TRN_SITE, TRN_SLIDERCRANK)),
    Stage("position", "sensor_pos", needed=senses, run=sensor.sensor_pos),
    Stage("position", "energy_pos", energy.kernels, _counts_energy),
    Stage("velocity", "tendon_vel", tendons.kernels, _has("ntendon")),
    Stage("velocity", "actuator_vel", transmission.kernels),
    Stage("velocity", "com_vel", velocity.kernels),
    Stage("velocity", "joint_springs", passive.kernels),
    Stage("velocity", "joint_dampers", passive.kernels),
    Stage("velocity", "tendon_springs", passive.kernels, _has("ntendon")),
    Stage("velocity", "gravity_compensation", passive.kernels, _uses("body_gravcomp")),
    Stage("velocity", "fluid", fluid.kernels, _uses("density", "viscosity")),
    Stage("velocity", "passive", passive.kernels),
    Stage("velocity", "rne", velocity.kernels),
    Stage("velocity", "tendon_bias", tendons.kernels, _carries_rotors),
    Stage("velocity", "subtree_vel", energy.kernels, _senses(SENS_SUBTREELINVEL, SENS_SUBTREEANGMOM)),
    Stage("velocity", "reference_constraint", needed=_constrained, run=constraint.reference_constraint),
    Stage("velocity", "sensor_vel", needed=senses, run=sensor.sensor_vel),
    Stage("velocity", "energy_vel", energy.kernels, _counts_energy),
    Stage("acceleration", "act_dynamics", actuation.kernels, _has("na")),
    Stage("acceleration", "fwd_actuation", actuation.kernels),
    Stage("acceleration", "tendon_force_limits", actuation.kernels, _has("ntendon")),
    Stage("acceleration", "actuator_forces_on_joints", actuation.kernels),
    Stage("acceleration", "fwd_acceleration", acceleration.kernels),
    Stage("acceleration", "solve", needed=_constrained, run=solver.solve),
    Stage("acceleration", "sensor_acc", needed=senses, run=sensor.sensor_acc),
)
STAGES = {stage.name: stage for stage in TABLE}
PASSIVE = ("joint_springs", "joint_dampers", "tendon_springs", "gravity_compensation", "fluid", "passive")
ACTUATION = ("act_dynamics", "fwd_actuation", "tendon_force_limits", "actuator_forces_on_joints")
ADVANCE = {
    **dict.fromkeys(
        ("euler", "rk_start", "rk_place", "rk_gather", "rk_end", "advance_act", "advance"), integrators.kernels
    ),
    **dict.fromkeys(("deriv_passive", "deriv_actuators", "deriv_bias"), derivative.kernels),
    "deriv_fluid": fluid.kernels,
    **dict.fromkeys(("implicitfast", "implicit", "free_bodies", "free_bodies_in_fluid"), implicits.kernels),
}


@cache
def stage_kernel(name: str, real: Any) -> wp.Kernel:
    """The kernel of a stage, or of an integrator, for one precision."""
    kernels = ADVANCE[name] if name in ADVANCE else STAGES[name].kernels
    return kernels(real)[name]


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


def run_stage(name: str, m: Model, d: Data, **other: Any) -> None:
    """Do one stage, or one part of an integrator, in all worlds."""
    stage = STAGES.get(name)
    if stage is not None and not stage.needed(m):
        return
    if stage is not None and stage.run is not None:
        stage.run(m, d, **other)
        return
    launch(stage_kernel(name, d.real), m, d, **other)


def catch_up(m: Model, d: Data, name: str) -> None:
    """Compute the fields of a stage that the last step passed by, from the state in which that step set out.

    Binding the kernel reads the fields that it needs, so the stages before it catch up first.
    """
    d._pending.discard(name)
    start = {row: d.field("start_" + row) for row in ("qpos", "qvel", "ctrl", "qfrc_applied", "xfrc_applied")}
    run_stage(name, m, d, **start)


def settle(d: Data) -> None:
    """Compute everything that the last step passed by, before fields are overwritten one by one."""
    for stage in TABLE:
        if stage.name in d._pending:
            catch_up(d._model, d, stage.name)


def check_match(m: Model, d: Data) -> None:
    """Raise if ``d`` was not made for ``m``."""
    if m.real is not d.real:
        raise TypeError(f"the model is of {m.real.__name__}, the data of {d.real.__name__}; give both the same dtype")
    for name, size in m.sizes.items():
        if d.sizes[name] != size:
            raise ValueError(f"the data has {name} = {d.sizes[name]}, the model {size}: it was made for another model")
    for table in (m, m.opt):
        for name, worlds in table.varied.items():
            if worlds != d.nworld:
                raise ValueError(f"{name} of the model has a row for each of {worlds} worlds, the data has {d.nworld}")


def _run(names: tuple[str, ...], m: Model, d: Data) -> None:
    check_match(m, d)
    settle(d)
    for name in names:
        run_stage(name, m, d)


def _group(group: str) -> tuple[str, ...]:
    return tuple(stage.name for stage in TABLE if stage.group == group)


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


def transmission(m: Model, d: Data) -> None:
    """``actuator_length actuator_moment``."""
    _run(("transmission", "site_transmission"), m, d)


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
    _run(_group("position"), m, d)


def fwd_velocity(m: Model, d: Data) -> None:
    """All stages that depend on velocities."""
    _run(_group("velocity"), m, d)


def fwd_actuation(m: Model, d: Data) -> None:
    """``act_dot actuator_force qfrc_actuator`` from ``ctrl`` and ``act``."""
    _run(ACTUATION, m, d)


def fwd_acceleration(m: Model, d: Data) -> None:
    """``qfrc_smooth qacc_smooth qacc``: all forces and what they do."""
    _run(("fwd_acceleration",), m, d)


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
    if m.na:
        run_stage("advance_act", m, d)
    run_stage("advance", m, d, given=given)


def rungekutta4(m: Model, d: Data) -> None:
    """Advance ``qvel qpos act time`` by one step of the classical Runge-Kutta method of order 4, after `forward`."""
    check_match(m, d)
    settle(d)
    run_stage("rk_start", m, d)
    for part, share in ((0.5, 1.0 / 3.0), (0.5, 1.0 / 3.0), (1.0, 1.0 / 6.0)):
        run_stage("rk_place", m, d, part=part)
        forward(m, d)
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
        for _ in range(nstep):
            forward(m, d)
            integrate(m, d)
        return
    if d._plan is None or not d._plan.holds(m, d):
        d._plan = Plan(m, d)
    d._plan.launch(d, nstep)
    d._model, d._pending = m, set(STAGES)


INTEGRATORS = {
    int(mujoco.mjtIntegrator.mjINT_EULER): euler,
    int(mujoco.mjtIntegrator.mjINT_RK4): rungekutta4,
    int(mujoco.mjtIntegrator.mjINT_IMPLICIT): implicit,
    int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST): implicit,
}
