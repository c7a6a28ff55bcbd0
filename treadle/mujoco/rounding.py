"""What single precision costs at least: MuJoCo's own engine, its fields rounded between its stages.

A number that is a small difference of large ones cannot be exact in single precision, whoever computes it. How far off
it must be is measured here, for each field in the very states that are compared: MuJoCo computes each stage exactly,
in double precision, and then every number of its data becomes one of single precision, up or down by chance (stochastic
rounding; D. S. Parker, *Monte Carlo Arithmetic*, 1997). Where these ends differ from MuJoCo's own is what rounding does
to a field even if no stage computes anything but exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import mujoco
import numpy as np

from treadle.mujoco.data import Data
from treadle.mujoco.fields import Field
from treadle.mujoco.worlds import value_of

# MuJoCo's mj_forward in parts, between which numbers are rounded.
STAGES = (
    ("kinematics",), ("comPos",), ("camlight",), ("tendon",), ("makeM",), ("factorM",), ("collision",),
    ("makeConstraint", "island", "projectConstraint"), ("transmission",), ("fwdVelocity",), ("fwdActuation",),
    ("fwdAcceleration",), ("fwdConstraint",),
)  # fmt: skip


def forward(mjm: mujoco.MjModel, mjd: mujoco.MjData, rng: np.random.Generator) -> None:
    """MuJoCo's mj_forward, numbers rounded to single precision before the first stage and after each."""
    _round(mjd, _numbers(), rng)
    for parts in STAGES:
        for part in parts:
            getattr(mujoco, f"mj_{part}")(mjm, mjd)
        _round(mjd, _numbers(), rng)
        if parts == ("collision",):
            for name in ("dist", "pos", "frame"):
                values = getattr(mjd.contact, name)
                values[...] = rounded(values, rng)
    _aside(mjm, mjd)
    _round(mjd, _numbers(), rng)


def _aside(mjm: mujoco.MjModel, mjd: mujoco.MjData) -> None:
    """What mj_forward computes only where a flag or a sensor asks for it."""
    for part in (mujoco.mj_energyPos, mujoco.mj_energyVel, mujoco.mj_subtreeVel):
        part(mjm, mjd)


def step(mjm: mujoco.MjModel, mjd: mujoco.MjData, rng: np.random.Generator) -> None:
    """A step so; one of Runge-Kutta, which is four, is rounded at its start and its end alone."""
    if mjm.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4:
        _round(mjd, _numbers(), rng)
        mujoco.mj_step(mjm, mjd)
    else:
        forward(mjm, mjd, rng)
        euler = mjm.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER
        (mujoco.mj_Euler if euler else mujoco.mj_implicit)(mjm, mjd)
    _round(mjd, ("qpos", "qvel", "act"), rng)


def costs(
    mjm: mujoco.MjModel,
    states: Callable[[], list[mujoco.MjData]],
    error: Callable[[np.ndarray, np.ndarray], float],
    draws: int = 4,
) -> dict[tuple[str, str], float]:
    """The largest error of each field, by (stage, field), over ``draws`` roundings of all states.

    Args:
        states: makes the states anew, all alike.
        error: of numbers and those that they should be.

    Values that cannot be compared, as there are more contacts or points of tendons in one of them, are left out.
    """
    exact, ends = states(), states()
    for mjd, end in zip(exact, ends):
        mujoco.mj_forward(mjm, mjd)
        _aside(mjm, mjd)
        mujoco.mj_step(mjm, end)
    found: dict[tuple[str, str], float] = {}
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        for run, wanted, rows in ((forward, exact, "derived"), (step, ends, "state")):
            for moved, mjd in zip(states(), wanted):
                run(mjm, moved, rng)
                for row in Data.rows():
                    if row.role == rows and (pair := _compared(mjm, row, moved, mjd)) is not None:
                        key = (row.stage or row.role, row.name) if run is forward else ("step", row.name)
                        found[key] = max(found.get(key, 0.0), error(*pair))
    return found


def rounded(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Numbers of single precision next to ``values``, in double precision, the nearer the more likely. Those that are
    of single precision already stay."""
    with np.errstate(over="ignore", invalid="ignore"):
        near = values.astype(np.float32)
        other = np.nextafter(near, np.where(values > near, np.inf, -np.inf).astype(np.float32))
        chance = np.abs(values - near) / np.abs(other.astype(float) - near)
        return np.where(rng.uniform(size=values.shape) < chance, other, near)


@cache
def _numbers() -> tuple[str, ...]:
    """The names of all fields of double precision."""
    mjd = mujoco.MjData(mujoco.MjModel.from_xml_string("<mujoco/>"))
    values = {name: getattr(mjd, name, None) for name in dir(mjd) if not name.startswith("_")}
    return tuple(k for k, x in values.items() if isinstance(x, np.ndarray) and x.dtype == np.float64)


def _round(mjd: mujoco.MjData, names: tuple[str, ...], rng: np.random.Generator) -> None:
    for name in names:
        values = getattr(mjd, name)  # asked for again: constraints lie elsewhere after each stage
        if values.size:
            values[...] = rounded(values, rng)


def _compared(
    mjm: mujoco.MjModel, row: Field, moved: mujoco.MjData, exact: mujoco.MjData
) -> tuple[np.ndarray, np.ndarray] | None:
    """The numbers of a field in both data, contacts in the order of the second; None if there are not as many."""
    pair = [value_of(mjm, mjd, row.name) for mjd in (moved, exact)]
    if any(values is None for values in pair):
        return None
    ours, theirs = (np.asarray(values, dtype=float) for values in pair)
    if ours.shape != theirs.shape:
        return None
    if row.stage == "collision" and ours.ndim:
        ours = ours[_order(moved, exact)]
    return ours.ravel(), theirs.ravel()


def _order(moved: mujoco.MjData, exact: mujoco.MjData) -> list[int]:
    """Which contact of ``moved`` is nearest to each of ``exact``, of those between the same geoms."""
    found = []
    for geoms, pos in zip(exact.contact.geom, exact.contact.pos):
        other = (moved.contact.geom != geoms).any(axis=1)
        found.append(int(np.argmin(np.where(other, np.inf, np.linalg.norm(moved.contact.pos - pos, axis=1)))))
    return found
