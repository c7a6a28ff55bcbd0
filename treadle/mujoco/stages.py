"""The stages in their order, and how they are run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import treadle as wp
from treadle.base.errors import OrderError
from treadle.mujoco import (
    acceleration,
    actuation,
    dcmotor,
    derivative,
    energy,
    fine_mass,
    fluid,
    frames,
    implicit_steps,
    integrators,
    inverse_dynamics,
    orientation,
    passive_forces,
    plastic,
    position,
    sensor,
    tendons,
    transmission,
    velocity,
)
from treadle.mujoco.arguments import shown
from treadle.mujoco.binding import launch
from treadle.mujoco.collision.stage import collision
from treadle.mujoco.constants import (
    ENERGY,
    SENS_E_KINETIC,
    SENS_E_POTENTIAL,
    SENS_SUBTREEANGMOM,
    SENS_SUBTREELINVEL,
    TRN_BODY,
    TRN_SITE,
    TRN_SLIDERCRANK,
    TRN_SO3,
)
from treadle.mujoco.constraint.stage import make_constraint, reference_constraint
from treadle.mujoco.data import Data
from treadle.mujoco.model import Model
from treadle.mujoco.sensor.stage import senses
from treadle.mujoco.solver.stage import solve


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
    return lambda m: senses(m) and not m.senses.isdisjoint(kinds)


def _counts_energy(m: Model) -> bool:
    return bool(m.opt.enableflags & ENERGY) or _senses(SENS_E_POTENTIAL, SENS_E_KINETIC)(m)


def _carries_rotors(m: Model) -> bool:
    return m.ntendon > 0 and not m.uses.isdisjoint(("tendon_armature", "actuator_armature"))


def _has_motors(m: Model) -> bool:
    return m.motors


def _collides(m: Model) -> bool:
    return bool(m.collision.methods)


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
    Stage("position", "collision", needed=_collides, run=collision),
    Stage("position", "make_constraint", needed=_constrained, run=make_constraint),
    Stage("position", "transmission", transmission.kernels),
    Stage("position", "site_transmission", transmission.kernels, _drives(TRN_SITE, TRN_SLIDERCRANK)),
    Stage("position", "orientation", orientation.kernels, _drives(TRN_SO3)),
    Stage("position", "adhesion_moment", transmission.kernels, _drives(TRN_BODY)),
    Stage("position", "plastic_rest", needed=_has("nplastic"), run=plastic.plastic_rest),
    Stage("position", "energy_pos", energy.kernels, _counts_energy),
    Stage("position", "sensor_pos", needed=senses, run=sensor.sensor_pos),
    Stage("velocity", "tendon_vel", tendons.kernels, _has("ntendon")),
    Stage("velocity", "actuator_vel", transmission.kernels),
    Stage("velocity", "com_vel", velocity.kernels),
    Stage("velocity", "joint_springs", passive_forces.kernels),
    Stage("velocity", "joint_dampers", passive_forces.kernels),
    Stage("velocity", "tendon_springs", passive_forces.kernels, _has("ntendon")),
    Stage("velocity", "gravity_compensation", passive_forces.kernels, _uses("body_gravcomp")),
    Stage("velocity", "fluid", fluid.kernels, _uses("density", "viscosity")),
    Stage("velocity", "passive", passive_forces.kernels),
    Stage("velocity", "rne", velocity.kernels),
    Stage("velocity", "tendon_bias", tendons.kernels, _carries_rotors),
    Stage("velocity", "subtree_vel", energy.kernels, _senses(SENS_SUBTREELINVEL, SENS_SUBTREEANGMOM)),
    Stage("velocity", "reference_constraint", needed=_constrained, run=reference_constraint),
    Stage("velocity", "energy_vel", energy.kernels, _counts_energy),
    Stage("velocity", "sensor_vel", needed=senses, run=sensor.sensor_vel),
    Stage("acceleration", "controls", needed=_has("nu"), run=actuation.take_controls),
    Stage("acceleration", "act_dynamics", actuation.kernels, _has("na")),
    Stage("acceleration", "motor_dynamics", dcmotor.kernels, _has_motors),
    Stage("acceleration", "fwd_actuation", actuation.kernels),
    Stage("acceleration", "motor_force", dcmotor.kernels, _has_motors),
    Stage("acceleration", "orientation_force", orientation.kernels, _drives(TRN_SO3)),
    Stage("acceleration", "tendon_force_limits", actuation.kernels, _has("ntendon")),
    Stage("acceleration", "motor_friction", dcmotor.kernels, _has_motors),
    Stage("acceleration", "actuator_forces_on_joints", actuation.kernels),
    Stage("acceleration", "fwd_acceleration", acceleration.kernels),
    Stage("acceleration", "solve", needed=_constrained, run=solve),
    Stage("acceleration", "sensor_acc", needed=senses, run=sensor.sensor_acc),
)
STAGES = {stage.name: stage for stage in TABLE}
PASSIVE = ("joint_springs", "joint_dampers", "tendon_springs", "gravity_compensation", "fluid", "passive")
ACTUATION = (
    "controls", "act_dynamics", "motor_dynamics", "fwd_actuation", "motor_force", "orientation_force",
    "tendon_force_limits", "motor_friction", "actuator_forces_on_joints",
)  # fmt: skip
ADVANCE = {
    **dict.fromkeys(
        ("euler", "rk_start", "rk_place", "rk_gather", "rk_end", "advance_act", "advance"), integrators.kernels
    ),
    **dict.fromkeys(("deriv_passive", "deriv_actuators", "deriv_bias"), derivative.kernels),
    "deriv_fluid": fluid.kernels,
    **dict.fromkeys(("advance_motors", "deriv_motors"), dcmotor.kernels),
    **dict.fromkeys(("advance_orientation", "deriv_orientation"), orientation.kernels),
    **dict.fromkeys(("implicitfast", "implicit", "free_bodies", "free_bodies_in_fluid"), implicit_steps.kernels),
    "springs_yield": plastic.kernels,
    **dict.fromkeys(("inv_constraint", "inverse", "undo_product", "undo_solve"), inverse_dynamics.kernels),
    **dict.fromkeys(("undo_free_bodies", "undo_free_bodies_in_fluid"), implicit_steps.kernels),
}


@cache
def stage_kernel(name: str, real: Any, fine: bool = False) -> wp.Kernel:
    """The kernel of a stage, or of an integrator, for one precision; ``fine``: whether M needs more (`fine_mass`)."""
    if fine and name in fine_mass.kernels(real):
        return fine_mass.kernels(real)[name]
    kernels = ADVANCE[name] if name in ADVANCE else STAGES[name].kernels
    return kernels(real)[name]


def group(name: str) -> tuple[str, ...]:
    """The names of the stages that depend on ``name``: ``position``, ``velocity`` or ``acceleration``."""
    return tuple(stage.name for stage in TABLE if stage.group == name)


def run_stage(name: str, m: Model, d: Data, force: bool = False, **other: Any) -> None:
    """Do one stage, or one part of an integrator, in all worlds; ``force``: even if the model does not need it."""
    stage = STAGES.get(name)
    if stage is not None and not (force or stage.needed(m)):
        return
    if stage is not None and stage.run is not None:
        stage.run(m, d, **other)
    else:
        launch(stage_kernel(name, d.real, m.fine), m, d, **other)
    d.mark(name)


# What no other stage, and no integrator, needs.
ASIDE = ("camera_frames", "light_frames", "energy_pos", "energy_vel", "subtree_vel", "sensor_pos", "sensor_vel",
         "sensor_acc")  # fmt: skip


def require(m: Model, d: Data, groups: tuple[str, ...], caller: str, mend: str) -> None:
    """Raise if the stages of ``groups`` have not been done in the present state.

    Raises:
        OrderError: ``caller`` names who needs them, ``mend`` what does them.
    """
    for stage in TABLE:
        if stage.group in groups and stage.name not in ASIDE and stage.needed(m) and not d.has_done(stage.name):
            since = "since worlds were made, reset or moved on"
            raise OrderError(f"{caller}: the stage {stage.name} has not been done {since}", hint=mend)


def settle(d: Data) -> None:
    """Compute everything that the last step did not store, before fields are overwritten one by one."""
    if d._late:
        from treadle.mujoco.stepping import compute

        compute(d, None)


def keep_outputs(m: Model, d: Data) -> None:
    """Outputs of sensors that flags have switched off stay as the last step left them, so they are computed before the
    next one."""
    if "sensordata" in d._late and not senses(m) and d.sizes["nsensordata"]:
        d.read(Data.sensordata)


def begin(m: Model, d: Data) -> None:
    """All derived fields are about to be computed anew, so that none is left from the last step."""
    keep_outputs(m, d)
    d._late = frozenset()


def check_kinds(m: Any, d: Any) -> None:
    """Raise if these are no model and data of ours."""
    for given, kind, maker in ((m, Model, "put_model"), (d, Data, "make_data or put_data")):
        if not isinstance(given, kind):
            raise TypeError(f"a {kind.__name__.lower()} is what {maker} returns, not {shown(given)}")


def check_match(m: Model, d: Data) -> None:
    """Raise if ``d`` was not made for ``m``."""
    check_kinds(m, d)
    if m.real is not d.real:
        raise TypeError(f"the model is of {m.real.__name__}, the data of {d.real.__name__}; give both the same dtype")
    for name, size in m.sizes.items():
        if d.sizes[name] != size:
            raise ValueError(f"the data has {name} = {d.sizes[name]}, the model {size}: it was made for another model")
    m.intact()
    d.reserve(m.capacity.room.sizes(d.sizes["nconmax"]))
    for table in (m, m.opt):
        for name, worlds in table.varied.items():
            if worlds != d.nworld:
                raise ValueError(f"{name} of the model has a row for each of {worlds} worlds, the data has {d.nworld}")
    if d.solved and not m.constrained:  # flags have changed, or this is another model: no forces of then remain
        names = ("ncon", "ne", "nf", "nl", "nefc", "qfrc_constraint", "solver_niter")
        d._late -= {*names}
        for name in names:
            d.field(name).zero_()
    d.solved = m.constrained
