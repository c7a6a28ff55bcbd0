"""The stages sensor_pos, sensor_vel, sensor_acc: which kernels the kinds of a model's sensors need."""

from __future__ import annotations

from typing import Any

import mujoco

from treadle.mujoco import history, postconstraint, tension
from treadle.mujoco.binding import launch
from treadle.mujoco.collision.distances import MEASURING
from treadle.mujoco.collision.stage import measure
from treadle.mujoco.data import Data
from treadle.mujoco.model import Model
from treadle.mujoco.sensor import acceleration, contact, cutoff, distance, limits, position, velocity
from treadle.mujoco.sensor.kinds import STAGE_ACC, STAGE_POS, STAGE_VEL


def _kind(name: str) -> int:
    return int(getattr(mujoco.mjtSensor, f"mjSENS_{name}"))


def _kinds(names: str) -> frozenset[int]:
    return frozenset(map(_kind, names.split()))


SCALAR_POS = _kinds("JOINTPOS TENDONPOS ACTUATORPOS BALLQUAT E_POTENTIAL CLOCK")
FRAME_POS = _kinds("MAGNETOMETER FRAMEPOS FRAMEQUAT FRAMEXAXIS FRAMEYAXIS FRAMEZAXIS SUBTREECOM INSIDESITE")
VELOCITY = _kinds(
    "VELOCIMETER GYRO JOINTVEL TENDONVEL ACTUATORVEL BALLANGVEL FRAMELINVEL FRAMEANGVEL SUBTREELINVEL "
    "SUBTREEANGMOM E_KINETIC"
)
FORCE = _kinds("ACTUATORFRC JOINTACTFRC TENDONACTFRC")
FRAME_ACC = _kinds("ACCELEROMETER FORCE TORQUE FRAMELINACC FRAMEANGACC")
TOUCH, CONTACT = _kinds("TOUCH"), _kinds("CONTACT")
LIMITS = {  # of joints, of tendons, and what of a row they tell
    STAGE_POS: ("JOINTLIMITPOS", "TENDONLIMITPOS", "efc_pos"),
    STAGE_VEL: ("JOINTLIMITVEL", "TENDONLIMITVEL", "efc_vel"),
    STAGE_ACC: ("JOINTLIMITFRC", "TENDONLIMITFRC", "efc_force"),
}
LIMIT = frozenset[int]().union(*[_kinds(f"{joint} {tendon}") for joint, tendon, _ in LIMITS.values()])
SUPPORTED = SCALAR_POS | FRAME_POS | MEASURING | VELOCITY | FORCE | FRAME_ACC | TOUCH | CONTACT | LIMIT


def _senses(m: Model, kinds: frozenset[int]) -> bool:
    return not m.senses.isdisjoint(kinds)


def senses(m: Model) -> bool:
    """Whether sensors have anything to do."""
    return m.nsensor > 0 and not m.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_SENSOR)


def lists(m: Model) -> bool:
    """Whether sensors look at lists of contacts or of rows of constraints."""
    return senses(m) and _senses(m, LIMIT | TOUCH | CONTACT | FRAME_ACC)


def _limits(m: Model, d: Data, stage: int, **other: Any) -> None:
    joint, tendon, value = LIMITS[stage]
    if _senses(m, _kinds(f"{joint} {tendon}")):
        launch(
            limits.kernels(d.real)["sensor_limits"], m, d, of_joint=_kind(joint), of_tendon=_kind(tendon),
            less_margin=int(stage == STAGE_POS), row_value=d.field(value), **other,
        )  # fmt: skip


def _cut(m: Model, d: Data, stage: int, **other: Any) -> None:
    launch(cutoff.kernels(d.real)["sensor_cutoff_outputs"], m, d, stage=int(stage), **other)
    history.delay_sensors(m, d, stage, **other)


def sensor_pos(m: Model, d: Data, **other: Any) -> None:
    """Sensors that depend on positions."""
    if not senses(m):
        return
    made = position.kernels(d.real)
    if _senses(m, SCALAR_POS):
        launch(made["sensor_scalar_pos"], m, d, **other)
    if _senses(m, FRAME_POS):
        launch(made["sensor_frame_pos"], m, d, **other)
    if _senses(m, MEASURING):
        measure(m, d, **other)
        launch(distance.kernels(d.real)["sensor_distance"], m, d, **m.distances.arrays(), **other)
    _limits(m, d, STAGE_POS, **other)
    _cut(m, d, STAGE_POS, **other)


def sensor_vel(m: Model, d: Data, **other: Any) -> None:
    """Sensors that depend on velocities."""
    if not senses(m):
        return
    if _senses(m, VELOCITY):
        launch(velocity.kernels(d.real)["sensor_vel"], m, d, **other)
    _limits(m, d, STAGE_VEL, **other)
    _cut(m, d, STAGE_VEL, **other)


def sensor_acc(m: Model, d: Data, **other: Any) -> None:
    """Sensors that depend on accelerations and forces; before them what they need of `rne_postconstraint`."""
    if not senses(m):
        return
    real = d.real
    if _senses(m, FRAME_ACC):
        rne_postconstraint(m, d, **other)
    elif _senses(m, TOUCH | CONTACT):
        launch(postconstraint.kernels(real)["contact_wrenches"], m, d, **other)
    made = acceleration.kernels(real)
    if _senses(m, FORCE):
        launch(made["sensor_force"], m, d, **other)
    if _senses(m, FRAME_ACC):
        launch(made["sensor_frame_acc"], m, d, **other)
    if _senses(m, TOUCH):
        launch(made["sensor_touch"], m, d, **other)
    if _senses(m, CONTACT):
        for name in ("sensor_match", "sensor_contact", "sensor_net"):
            launch(contact.kernels(real)[name], m, d, **other)
    _limits(m, d, STAGE_ACC, **other)
    _cut(m, d, STAGE_ACC, **other)


def rne_postconstraint(m: Model, d: Data, **other: Any) -> None:
    """``cacc cfrc_ext cfrc_int`` of bodies, under all forces and with the accelerations that were found."""
    made = postconstraint.kernels(d.real)
    launch(made["contact_wrenches"], m, d, **other)
    launch(made["external_forces"], m, d, **other)
    if m.ntendon:
        for name in ("tendon_tensions", "tendon_pulls"):
            launch(tension.kernels(d.real)[name], m, d, **other)
    launch(made["rne_postconstraint"], m, d, **other)
