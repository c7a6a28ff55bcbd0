"""What this slice of the engine does not simulate is refused when a model is put, by element and attribute.

A row names a kind of element and an attribute, says which of the model's elements use it, and what to do about it.
Attributes that a version of MuJoCo does not have are none that its models can use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from treadle.base.errors import UnsupportedModelError

OBJECT = {
    "body": mujoco.mjtObj.mjOBJ_BODY,
    "joint": mujoco.mjtObj.mjOBJ_JOINT,
    "actuator": mujoco.mjtObj.mjOBJ_ACTUATOR,
    "tendon": mujoco.mjtObj.mjOBJ_TENDON,
    "sensor": mujoco.mjtObj.mjOBJ_SENSOR,
    "flex": mujoco.mjtObj.mjOBJ_FLEX,
}


@dataclass(frozen=True)
class Refusal:
    """``users(mjm)`` is an array with a true value for each element that uses ``attribute``."""

    element: str
    attribute: str
    users: Callable[[mujoco.MjModel], Any]
    hint: str = ""


def _not_in(field: str, *allowed: Any) -> Callable[[mujoco.MjModel], Any]:
    return lambda m: ~np.isin(getattr(m, field), [int(a) for a in allowed])


def _nonzero(field: str) -> Callable[[mujoco.MjModel], Any]:
    return lambda m: np.reshape(getattr(m, field, 0), (len(getattr(m, field, ())) or 1, -1)).any(axis=1)


def _present(size: str) -> Callable[[mujoco.MjModel], Any]:
    return lambda m: np.ones(getattr(m, size, 0), dtype=bool)


def _other(field: str, normal: int) -> Callable[[mujoco.MjModel], Any]:
    return lambda m: np.asarray(getattr(m, field, ())) != normal


JOINT, GAIN, BIAS = mujoco.mjtJoint, mujoco.mjtGain, mujoco.mjtBias

REFUSALS = (
    Refusal("joint", "type", _not_in("jnt_type", JOINT.mjJNT_HINGE, JOINT.mjJNT_SLIDE),
            "hinge and slide are supported"),
    Refusal("joint", "stiffness (polynomial)", _nonzero("jnt_stiffnesspoly")),
    Refusal("joint", "damping (polynomial)", _nonzero("dof_dampingpoly")),
    Refusal("joint", "springyield", _nonzero("jnt_springyield")),
    Refusal("joint", "actuatorgravcomp", _nonzero("jnt_actgravcomp")),
    Refusal("body", "gravcomp", _nonzero("body_gravcomp")),
    Refusal("body", "mocap", lambda m: m.body_mocapid >= 0),
    Refusal("body", "plugin", lambda m: m.body_plugin >= 0),
    Refusal("actuator", "joint (the transmission)", _not_in("actuator_trntype", mujoco.mjtTrn.mjTRN_JOINT),
            "actuators on joints are supported"),
    Refusal("actuator", "dyntype", _not_in("actuator_dyntype", mujoco.mjtDyn.mjDYN_NONE),
            "stateless actuators are supported"),
    Refusal("actuator", "gaintype", _not_in("actuator_gaintype", GAIN.mjGAIN_FIXED, GAIN.mjGAIN_AFFINE)),
    Refusal("actuator", "biastype", _not_in("actuator_biastype", BIAS.mjBIAS_NONE, BIAS.mjBIAS_AFFINE)),
    Refusal("actuator", "armature", _nonzero("actuator_armature")),
    Refusal("actuator", "damping", _nonzero("actuator_damping")),
    Refusal("actuator", "damping (polynomial)", _nonzero("actuator_dampingpoly")),
    Refusal("actuator", "delay", _nonzero("actuator_delay")),
    Refusal("actuator", "plugin", lambda m: m.actuator_plugin >= 0),
    Refusal("actuator", "number of controls", _other("actuator_ctrlnum", 1)),
    Refusal("actuator", "number of outputs", _other("actuator_outnum", 1)),
    Refusal("tendon", "tendon", _present("ntendon")),
    Refusal("sensor", "sensor", _present("nsensor"), "set the flag mjDSBL_SENSOR to simulate without them"),
    Refusal("flex", "flex", _present("nflex")),
)  # fmt: skip


def check(mjm: mujoco.MjModel) -> None:
    """Raise `UnsupportedModelError` that lists everything in ``mjm`` which would not be simulated."""
    found = [*_options(mjm), *_constraints(mjm), *_elements(mjm)]
    if found:
        listed = "\n  ".join(found)
        raise UnsupportedModelError(f"this model uses what treadle.mujoco does not simulate yet:\n  {listed}")


def _constraints(mjm: mujoco.MjModel) -> Iterator[str]:
    bit, off = mujoco.mjtDisableBit, mjm.opt.disableflags
    if off & bit.mjDSBL_CONSTRAINT:
        return
    meeting = (mjm.geom_contype[:, None] & mjm.geom_conaffinity[None, :]) != 0
    meeting = (meeting | meeting.T) & (mjm.geom_bodyid[:, None] != mjm.geom_bodyid[None, :])
    kinds = {
        "geom: contacts": bool(meeting.any() or mjm.npair) and not off & bit.mjDSBL_CONTACT,
        "joint: limited": bool(mjm.jnt_limited.any()) and not off & bit.mjDSBL_LIMIT,
        "joint: frictionloss": bool(mjm.dof_frictionloss.any()) and not off & bit.mjDSBL_FRICTIONLOSS,
        "equality": bool(mjm.neq) and not off & bit.mjDSBL_EQUALITY,
    }
    for kind, used in kinds.items():
        if used:
            yield f"{kind}: constraints are not supported yet (set the flag mjDSBL_CONSTRAINT to simulate without them)"


def _elements(mjm: mujoco.MjModel) -> Iterator[str]:
    sensing = not mjm.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_SENSOR
    for row in REFUSALS:
        if row.element == "sensor" and not sensing:
            continue
        for index in np.flatnonzero(row.users(mjm)):
            name = mujoco.mj_id2name(mjm, OBJECT[row.element], int(index))
            called = f"'{name}'" if name else f"number {index}"
            yield f"{row.element} {called}: {row.attribute}" + (f" ({row.hint})" if row.hint else "")


def _options(mjm: mujoco.MjModel) -> Iterator[str]:
    opt = mjm.opt
    if opt.integrator != mujoco.mjtIntegrator.mjINT_EULER:
        yield f"option integrator: {mujoco.mjtIntegrator(opt.integrator).name[6:]} (Euler is supported)"
    for name in ("density", "viscosity"):
        if getattr(opt, name):
            yield f"option {name}: fluid forces"
    if opt.disableactuator:
        yield "option actuatorgroupdisable"
    harmless = int(mujoco.mjtEnableBit.mjENBL_OVERRIDE)
    for bit in mujoco.mjtEnableBit.__members__.values():
        if bit.name != "mjNENABLE" and int(bit) != harmless and opt.enableflags & int(bit):
            yield f"option flag {bit.name[7:].lower()} (enable bit {bit.name})"
