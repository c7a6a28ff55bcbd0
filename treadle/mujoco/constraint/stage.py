"""The stages make_constraint (of positions) and reference_constraint (of velocities): which kernels, in which order."""

from __future__ import annotations

from typing import Any

from treadle.mujoco.binding import launch
from treadle.mujoco.constraint import bounds, contact, equality, impedance
from treadle.mujoco.constraint.kinds import NO_CONSTRAINT, NO_EQUALITY
from treadle.mujoco.data import Data
from treadle.mujoco.model import Model


def make_constraint(m: Model, d: Data, **other: Any) -> None:
    """Rows of all constraints, ``efc_J efc_pos … efc_D`` and their numbers ``ne nf nl nefc``.

    Where a world needs more rows than there is room for, the arrays grow and the rows are written again; in a capture,
    whose arrays are fixed, the rest is left out and ``nrow`` keeps what was needed.
    """
    _write(m, d, **other)
    if not d.fixed:
        needed = int(d.nrow.numpy().max())
        if needed > d.sizes["njmax"]:
            d.grow("njmax", needed)
            _write(m, d, **other)


def _write(m: Model, d: Data, **other: Any) -> None:
    real, off = d.real, m.opt.disableflags
    launch(impedance.kernels(real)["begin_rows"], m, d, **other)
    if not off & NO_CONSTRAINT:
        if m.neq and not off & NO_EQUALITY:
            launch(equality.kernels(real)["equality"], m, d, **other)
        launch(bounds.kernels(real)["friction"], m, d, **other)
        launch(bounds.kernels(real)["limits"], m, d, **other)
        if d.sizes["nconmax"]:
            launch(contact.kernels(real)["contacts"], m, d, **other)
    launch(impedance.kernels(real)["impedance"], m, d, **other)


def reference_constraint(m: Model, d: Data, **other: Any) -> None:
    """Velocities of constraints and their reference accelerations, ``efc_vel efc_aref``."""
    launch(impedance.kernels(d.real)["reference"], m, d, **other)
    if m.neq and not m.opt.disableflags & (NO_CONSTRAINT | NO_EQUALITY):
        launch(equality.kernels(d.real)["equality_drift"], m, d, **other)
