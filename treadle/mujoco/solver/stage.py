"""The stage solve: which solver, and what comes before and after it."""

from __future__ import annotations

from typing import Any

import mujoco

from treadle.mujoco.binding import launch
from treadle.mujoco.data import Data
from treadle.mujoco.model import Model
from treadle.mujoco.solver import cg, dual, ends, newton

PGS, CG, NEWTON = (int(getattr(mujoco.mjtSolver, f"mjSOL_{name}")) for name in ("PGS", "CG", "NEWTON"))


def solve(m: Model, d: Data, **other: Any) -> None:
    """``qacc qfrc_constraint efc_force efc_state`` by the solver that the model names."""
    real, solver = d.real, m.opt.solver

    def run(kernels: Any, name: str) -> None:
        launch(kernels.kernels(real)[name], m, d, **other)

    run(ends, "warm_start")
    if solver == NEWTON:
        run(newton, "newton")
    elif solver == CG:
        run(cg, "cg")
    if solver == PGS or m.opt.noslip_iterations > 0:
        run(dual, "dual_rows")
        if solver == PGS:
            run(dual, "pgs")
        if m.opt.noslip_iterations > 0:
            run(dual, "noslip")
        run(dual, "dual_states")
    run(ends, "finish")
