"""A step by stages: all derived fields, then one of the integrators."""

from __future__ import annotations

from typing import Any

import mujoco

from treadle.mujoco import history
from treadle.mujoco.data import Data
from treadle.mujoco.documented import writes
from treadle.mujoco.model import Model
from treadle.mujoco.reset import begin_anew
from treadle.mujoco.solver.stage import primal
from treadle.mujoco.stages import TABLE, begin, check_match, require, run_stage, settle

# The stages of later parts of a Runge-Kutta step: sensors, and what is for them, belong to its start.
WITHIN = tuple(stage.name for stage in TABLE if not stage.name.startswith("sensor_") and stage.name != "subtree_vel")


@writes()
def forward(m: Model, d: Data) -> None:
    """Every derived field from the present state, without advancing time (`Data.document` lists them).

    Example:
        >>> d.ctrl.fill_(0.5)
        >>> mjw.forward(m, d)
        >>> print(d.actuator_force.numpy()[0], d.xpos.numpy()[0, 1], d.time.numpy())
        [2.] [0.  0.  0.5] [0. 0.]
    """
    check_match(m, d)
    begin(m, d)
    for stage in TABLE:
        run_stage(stage.name, m, d)
    d.note(m)


@writes(order="`forward` has not been called since worlds were reset or moved on")
def euler(m: Model, d: Data) -> None:
    """Advance ``qvel qpos act time`` by one step of semi-implicit Euler, from the forces that `forward` found.

    Example:
        >>> mjw.forward(m, d)
        >>> mjw.euler(m, d)
        >>> print(d.time.numpy(), d.qvel.numpy()[0].round(4))
        [0.002 0.002] [0.0427]
    """
    _from_forward(m, d, "euler")
    run_stage("euler", m, d, solves=m.constrained and primal(m))
    _advance(m, d)


def _from_forward(m: Model, d: Data, caller: str) -> None:
    check_match(m, d)
    require(m, d, ("position", "velocity", "acceleration"), caller, "call forward before it, or step in place of both")
    settle(d)


def _advance(m: Model, d: Data, given: bool = False, **rates: Any) -> None:
    """Move on; ``rates`` are arrays that take the place of fields where activations change."""
    if m.nhistory:
        history.remember(m, d)
    if m.na:
        run_stage("advance_act", m, d, **rates)
        if m.motors:
            run_stage("advance_motors", m, d, **rates)
        if m.orients:
            run_stage("advance_orientation", m, d, **rates)
    run_stage("advance", m, d, given=given)
    if m.nplastic:
        run_stage("springs_yield", m, d)
    begin_anew(m, d)
    d.moved()


@writes(order="`forward` has not been called since worlds were reset or moved on")
def rungekutta4(m: Model, d: Data) -> None:
    """Advance ``qvel qpos act time`` by one step of the classical Runge-Kutta method of order 4, after `forward`.

    It leaves derived fields as MuJoCo does: those of the last of the step's four parts, but ``qacc``, the mean of all,
    and what sensors found at its start, with ``subtree_linvel subtree_angmom cacc cfrc_int cfrc_ext``.

    Example:
        >>> mjw.forward(m, d)
        >>> mjw.rungekutta4(m, d)
        >>> print(d.time.numpy(), d.qvel.numpy()[0].round(4))
        [0.002 0.002] [0.0427]
    """
    _from_forward(m, d, "rungekutta4")
    run_stage("rk_start", m, d)
    for part, share in ((0.5, 1.0 / 3.0), (0.5, 1.0 / 3.0), (1.0, 1.0 / 6.0)):
        run_stage("rk_place", m, d, part=part)
        for name in WITHIN:
            run_stage(name, m, d)
        d.note(m)
        run_stage("rk_gather", m, d, part=part, share=share)
    run_stage("rk_end", m, d)
    start = {"actuator_length": d.field("rk_length"), "actuator_velocity": d.field("rk_speed")}
    _advance(m, d, given=True, act_dot=d.field("rk_act_dot"), **start)


@writes(order="`forward` has not been called since worlds were reset or moved on")
def implicit(m: Model, d: Data) -> None:
    """Advance ``qvel qpos act time`` by one step that is implicit in velocities, after `forward`.

    The integrator ``implicitfast`` leaves out how Coriolis forces change, and then has a symmetric matrix to solve.

    Example:
        >>> mjw.forward(m, d)
        >>> mjw.implicit(m, d)
        >>> print(d.time.numpy(), d.qvel.numpy()[0].round(4))
        [0.002 0.002] [0.0427]
    """
    _from_forward(m, d, "implicit")
    full, wet = derivatives(m, d)
    run_stage("implicit" if full else "implicitfast", m, d)
    if m.floats:
        run_stage("free_bodies_in_fluid" if wet else "free_bodies", m, d)
    _advance(m, d)


def derivatives(m: Model, d: Data) -> tuple[bool, bool]:
    """How smooth forces change with velocities, ``qDeriv``; whether those of Coriolis count, and whether a medium's."""
    run_stage("deriv_passive", m, d)
    if m.nactuator and not m.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_ACTUATION):
        run_stage("deriv_actuators", m, d)
        if m.motors:
            run_stage("deriv_motors", m, d)
        if m.orients:
            run_stage("deriv_orientation", m, d)
    full = m.opt.integrator == int(mujoco.mjtIntegrator.mjINT_IMPLICIT)
    wet = not m.uses.isdisjoint(("density", "viscosity"))
    if wet:
        run_stage("deriv_fluid", m, d, symmetric=not full)
    if full:
        run_stage("deriv_bias", m, d)
    return full, wet


INTEGRATORS = {
    int(mujoco.mjtIntegrator.mjINT_EULER): euler,
    int(mujoco.mjtIntegrator.mjINT_RK4): rungekutta4,
    int(mujoco.mjtIntegrator.mjINT_IMPLICIT): implicit,
    int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST): implicit,
}
