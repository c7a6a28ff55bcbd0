"""The stage solve: which solver, and what is left for those who read rows."""

from __future__ import annotations

from typing import Any

import mujoco

from treadle.lang.tape import carries, recording
from treadle.mujoco import inverse_dynamics
from treadle.mujoco.binding import launch
from treadle.mujoco.data import Data
from treadle.mujoco.model import Model
from treadle.mujoco.solver.kernel import CURVE, FOLLOW, NEWTON, PGS, solver_kernel

OVERRIDE = int(mujoco.mjtEnableBit.mjENBL_OVERRIDE)


def primal(m: Model) -> bool:
    """Whether the solver is one of the primal problem to its end, which finds accelerations."""
    return m.opt.solver != PGS and m.opt.noslip_iterations == 0


def solve(m: Model, d: Data, **other: Any) -> None:
    """``qacc qfrc_constraint efc_force efc_state`` by the solver that the model names, from bonds: of each world those
    of as many contacts as its list has room for.

    Methods of the primal problem leave accelerations, from which forces follow in closed form; only who reads these
    needs rows; a tape takes down what the optimum is (`optimum`), not the way there, unless tangents went along.
    Methods of the dual problem leave forces.
    """
    most, slips = d.sizes["nconmax"], m.opt.noslip_iterations == 0
    d.reserve(m.capacity.room.sizes(most))
    given = {**m.collision.arrays(), **m.bonds.arrays(), **other}
    given.update(overridden=m.opt.enableflags & OVERRIDE, most=most)
    plain = m.neq == 0 and m.ntendon == 0
    launch(solver_kernel(d.real, m.opt.solver, m.opt.cone, slips, plain), m, d, **given)
    if primal(m) and recording() and not carries(d.field("qacc")):
        for part in (CURVE, FOLLOW):  # the same for all methods
            launch(solver_kernel(d.real, NEWTON, m.opt.cone, slips, plain, part), m, d, **given)
    if primal(m):
        kernel = inverse_dynamics.kernels(d.real)["inv_constraint"]
        launch(kernel, m, d, **other, qfrc_constraint=d.field("solver_grad"))
