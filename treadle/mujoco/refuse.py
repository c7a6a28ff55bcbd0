"""What the engine does not simulate is refused when a model is put, by element and attribute; nothing is ignored.

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
    "geom": mujoco.mjtObj.mjOBJ_GEOM,
    "pair": mujoco.mjtObj.mjOBJ_PAIR,
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
    values: str = ""  # those of the attribute that are refused, if not all


def _kinds(element: str, attribute: str, field: str, enumeration: Any, allowed: str) -> Refusal:
    """Elements whose ``field`` is a kind other than ``allowed``, a list of names."""
    members = enumeration.__members__.values()
    known = {int(kind): kind.name.partition("_")[2].lower() for kind in members if "_" in kind.name}
    taken = [number for number, name in known.items() if name in allowed.split()]
    others = ", ".join(name for name in known.values() if name not in (*allowed.split(), "undefined"))
    return Refusal(element, attribute, lambda m: ~np.isin(getattr(m, field), taken), values=others)


def _nonzero(field: str) -> Callable[[mujoco.MjModel], Any]:
    return lambda m: np.reshape(getattr(m, field, 0), (len(getattr(m, field, ())) or 1, -1)).any(axis=1)


def _present(size: str) -> Callable[[mujoco.MjModel], Any]:
    return lambda m: np.ones(getattr(m, size, 0), dtype=bool)


NAMES = "rangefinder, camprojection, tactile, plugin, user"
UNSENSED = tuple(int(getattr(mujoco.mjtSensor, f"mjSENS_{name.upper()}")) for name in NAMES.split(", "))
WITHOUT = "set the flag mjDSBL_SENSOR to simulate without sensors"

REFUSALS = (
    Refusal("body", "plugin", lambda m: m.body_plugin >= 0),
    Refusal("geom", "plugin", lambda m: m.geom_plugin >= 0),
    Refusal("geom", "adhesion", _nonzero("geom_adhesion")),
    Refusal("geom", "type sdf", lambda m: m.geom_type == mujoco.mjtGeom.mjGEOM_SDF),
    Refusal("pair", "adhesion", _nonzero("pair_adhesion")),
    Refusal("geom", "surfacevel", _nonzero("geom_surfacevel")),
    _kinds("actuator", "dyntype", "actuator_dyntype", mujoco.mjtDyn,
           "none integrator filter filterexact muscle pid dcmotor"),
    _kinds("actuator", "gaintype", "actuator_gaintype", mujoco.mjtGain, "fixed affine muscle pid dcmotor so3"),
    _kinds("actuator", "biastype", "actuator_biastype", mujoco.mjtBias, "none affine muscle dcmotor so3"),
    Refusal("actuator", "plugin", lambda m: m.actuator_plugin >= 0),
    Refusal("flex", "flex", _present("nflex")),
    Refusal("sensor", "type", lambda m: np.isin(m.sensor_type, UNSENSED), WITHOUT, values=NAMES),
)  # fmt: skip


# Numbers that options may have: not below the least, and if ``above`` not equal to it either.
LEAST = {
    "timestep": (0.0, True),
    "impratio": (0.0, True),
    **dict.fromkeys(("density", "viscosity", "tolerance", "ls_tolerance", "noslip_tolerance", "ccd_tolerance",
                     "iterations", "ls_iterations", "noslip_iterations", "ccd_iterations"), (0.0, False)),
}  # fmt: skip


def check(mjm: mujoco.MjModel) -> None:
    """Raise if ``mjm`` cannot be simulated.

    Raises:
        ValueError: an option's value means nothing.
        UnsupportedModelError: it lists everything in ``mjm`` that would not be simulated.
    """
    for name in (*LEAST, "gravity", "wind", "magnetic"):
        check_value(name, getattr(mjm.opt, name))
    for name, kind in KINDS.items():
        _check_kind(name, int(getattr(mjm.opt, name)), kind)
    found = [*_options(mjm), *_elements(mjm), *_callbacks()]
    if found:
        listed = "\n  ".join(found)
        raise UnsupportedModelError(f"this model uses what treadle.mujoco does not simulate yet:\n  {listed}")


def _elements(mjm: mujoco.MjModel) -> Iterator[str]:
    sensing = not mjm.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_SENSOR
    for row in REFUSALS:
        if row.element == "sensor" and not sensing:
            continue
        for index in np.flatnonzero(row.users(mjm)):
            yield f"{_named(mjm, row.element, index)}: {row.attribute}" + (f" ({row.hint})" if row.hint else "")


CALLBACKS = ("control", "passive", "contactfilter")  # others serve user types, which are refused, or only measure


def _callbacks() -> Iterator[str]:
    """MuJoCo's global callbacks that are set, and would have a say in its own engine."""
    for name in CALLBACKS:
        if getattr(mujoco, f"get_mjcb_{name}")() is not None:
            yield f"callback mjcb_{name} (it would not be called: mujoco.set_mjcb_{name}(None) takes it away)"


def _named(mjm: mujoco.MjModel, element: str, index: int) -> str:
    name = mujoco.mj_id2name(mjm, OBJECT[element], int(index))
    return f"{element} '{name}'" if name else f"{element} number {index}"


def _options(mjm: mujoco.MjModel) -> Iterator[str]:
    opt = mjm.opt
    if opt.integrator > int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST):
        name = mujoco.mjtIntegrator(opt.integrator).name[6:]
        yield f"option integrator: {name} (Euler, RK4, implicit and implicitfast are supported)"
    if opt.disableflags & mujoco.mjtDisableBit.mjDSBL_NATIVECCD:
        yield "option flag nativeccd: collisions by the other library (do not disable it)"
    for bit in _flags():
        if opt.enableflags & int(bit):
            yield f"option flag {bit.name[7:].lower()} (enable bit {bit.name})"


KINDS = {
    "integrator": mujoco.mjtIntegrator,
    "solver": mujoco.mjtSolver,
    "cone": mujoco.mjtCone,
    "jacobian": mujoco.mjtJacobian,
}  # options that are numbers of enumerations


FLAGS = {"disableflags": mujoco.mjtDisableBit, "enableflags": mujoco.mjtEnableBit}


def _all_bits(kind: Any) -> int:
    members = {name: int(member) for name, member in kind.__members__.items() if not name.startswith("mjN")}
    return sum(set(members.values()))


def _check_kind(name: str, value: int, kind: Any) -> None:
    if value not in {int(member) for member in kind.__members__.values()}:
        raise ValueError(f"option {name} is one of {kind.__name__}, not {value}")


def check_value(name: str, values: Any) -> None:
    """Raise a ValueError if the option ``name`` has values that mean nothing."""
    numbers = np.asarray(values, dtype=float)
    least, above = LEAST.get(name, (-np.inf, False))
    bad = ~(np.isfinite(numbers) & (numbers >= least) & ~(above & (numbers == least)))
    if bad.any():
        expected = f"{'greater than' if above else 'at least'} {least:g}" if name in LEAST else "finite"
        raise ValueError(f"option {name} is {expected}, not {numbers[bad].flat[0]:g}")


def check_option(name: str, value: int, disabled: int) -> None:
    """Raise if the option ``name`` cannot be ``value``, in a model that was put with the flags ``disabled``.

    Raises:
        UnsupportedModelError: that is not simulated.
        ValueError: it means nothing; or tables were made at `put_model` which would have to change.
    """
    bit = mujoco.mjtDisableBit
    if name in KINDS:
        _check_kind(name, value, KINDS[name])
    check_value(name, value)
    if name == "integrator" and value > int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST):
        raise UnsupportedModelError(f"option integrator: {mujoco.mjtIntegrator(value).name[6:]} is not simulated")
    if name in FLAGS and value & ~_all_bits(FLAGS[name]):
        raise ValueError(f"option {name} has bits of {FLAGS[name].__name__}; {value} has others")
    if name == "enableflags":
        for flag in _flags():
            if value & int(flag):
                raise UnsupportedModelError(f"option flag {flag.name[7:].lower()} is not simulated")
    if name == "disableflags":
        if value & int(bit.mjDSBL_NATIVECCD):
            raise UnsupportedModelError("option flag nativeccd: collisions by the other library are not simulated")
        lasting = int(bit.mjDSBL_CONTACT) | int(bit.mjDSBL_CONSTRAINT) | int(bit.mjDSBL_SENSOR)
        changed = disabled & ~value & lasting | (disabled ^ value) & int(bit.mjDSBL_FILTERPARENT)
        if changed:
            named = ", ".join(b.name for b in bit.__members__.values() if b.name != "mjNDISABLE" and changed & int(b))
            raise ValueError(f"{named} cannot change after put_model, which made the tables: put the model again")


def _flags() -> Iterator[Any]:
    """The bits of optional features that are refused."""
    names = ("OVERRIDE", "ENERGY", "INVDISCRETE")
    known = sum(int(getattr(mujoco.mjtEnableBit, f"mjENBL_{name}")) for name in names)
    for bit in {int(bit): bit for bit in mujoco.mjtEnableBit.__members__.values()}.values():
        if bit.name != "mjNENABLE" and not int(bit) & known:
            yield bit


def document() -> str:
    """What is refused, as a table for the documentation."""
    rows = [(row.element, row.attribute + (f" ({row.values})" if row.values else "")) for row in REFUSALS]
    rows += [("option", "integrator (discrete)"), ("option", "flag nativeccd, if disabled")]
    rows += [("option", f"flag {bit.name[7:].lower()}, if enabled") for bit in _flags()]
    rows += [("callback", f"mjcb_{name}, if set when the model is put") for name in CALLBACKS]
    elements = dict.fromkeys(element for element, _ in rows)
    listed = {e: ", ".join(attribute for element, attribute in rows if element == e) for e in elements}
    return "| element | what |\n|---|---|\n" + "\n".join(f"| {e} | {what} |" for e, what in listed.items())
