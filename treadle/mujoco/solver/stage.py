"""The stage solve: which solver, and what comes before and after it."""

from __future__ import annotations

from typing import Any

import mujoco

from treadle.mujoco import inverse_dynamics
from treadle.mujoco.binding import launch
from treadle.mujoco.data import Data
from treadle.mujoco.model import Model
from treadle.mujoco.solver import dual, ends, primal

OVERRIDE = int(mujoco.mjtEnableBit.mjENBL_OVERRIDE)
PGS, NEWTON = int(mujoco.mjtSolver.mjSOL_PGS), int(mujoco.mjtSolver.mjSOL_NEWTON)


def is_dual(m: Model) -> bool:
    """Whether forces are sought for row by row, in whole or, to do without slip, afterwards."""
    return m.opt.solver == PGS or m.opt.noslip_iterations > 0


def solve(m: Model, d: Data, **other: Any) -> None:
    """``qacc qfrc_constraint efc_force efc_state`` by the solver that the model names."""
    real = d.real

    def run(kernels: Any, name: str, **more: Any) -> None:
        launch(kernels.kernels(real)[name], m, d, **more, **other)

    if m.opt.solver == PGS:
        run(ends, "warm_start")
    else:
        _primal(m, d, **other)
        run(inverse_dynamics, "inv_constraint", qfrc_constraint=d.field("solver_grad"))
    if is_dual(m):
        run(dual, "dual_rows")
        if m.opt.solver == PGS:
            run(dual, "pgs")
        if m.opt.noslip_iterations > 0:
            run(dual, "noslip")
        run(dual, "dual_states")
        run(ends, "finish")


def _primal(m: Model, d: Data, **other: Any) -> None:
    """The acceleration, from bonds: of each world those of as many contacts as its list has room for."""
    most = d.sizes["nconmax"]
    d.reserve(m.capacity.room.sizes(most))
    given = {**m.collision.arrays(), **m.bonds.arrays(), **other}
    given.update(newton=int(m.opt.solver == NEWTON), overridden=m.opt.enableflags & OVERRIDE, most=most)
    launch(primal.kernels(d.real)["primal"], m, d, **given)
