"""A comparison with MuJoCo's own engine, stage by stage: ``python -m treadle mujoco check scene.xml``, and all tests.

Both engines start from the same states; every field that both have is compared. The error of a field in a world is the
largest difference in any of its numbers, relative to the largest of MuJoCo's, or to `FLOOR` where all are smaller.
Without rounding the engines agree; with it, what iterates stops elsewhere, so both are made to iterate longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

import treadle as wp
from treadle.mujoco import decided, rounding
from treadle.mujoco.contents import contents
from treadle.mujoco.data import Data
from treadle.mujoco.fields import Field
from treadle.mujoco.model import Model, put_model
from treadle.mujoco.worlds import make_data, value_of

# What is smaller is compared with this, absolutely: where forces cancel, the rounding of these forces is left.
FLOOR = {wp.float32: 0.1, wp.float64: 1e-3}
STATE = ("time", "qpos", "qvel", "act", "ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat",
         "qacc_warmstart", "eq_active", "history", "plastic")  # fmt: skip
STATE = tuple(name for name in STATE if hasattr(mujoco.MjData, name))  # version 3 has less


# What comes after a stage that iterates: the convex shapes of a collision, or the solver.
ITERATED = ("collision", "make_constraint", "reference_constraint", "adhesion_moment", "solve", "sensor_pos",
            "sensor_vel", "sensor_acc", "rne_postconstraint")  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One field of one stage: its largest error over all worlds, and the world where it is."""

    stage: str
    field: str
    error: float
    world: int

    def __str__(self) -> str:
        return f"{self.stage:26} {self.field:20} {self.error:10.2e}  world {self.world}"


def random_states(mjm: mujoco.MjModel, count: int, seed: int = 0) -> list[mujoco.MjData]:
    """States to compare in: the reference pose or a keyframe, moved by chance, with velocities, controls and forces.

    Positions stay near the start and within limits, quaternions are turned by up to half a radian, activations and
    controls lie within their ranges.
    """
    rng, inner = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    found = []
    for k in range(count):
        mjd = mujoco.MjData(mjm)
        if mjm.nkey and k % 2:
            mujoco.mj_resetDataKeyframe(mjm, mjd, k // 2 % mjm.nkey)
        start, moved = mjd.qpos.copy(), rng.uniform(-0.5, 0.5, mjm.nv)
        mujoco.mj_integratePos(mjm, mjd.qpos, moved, 1.0)
        single = np.flatnonzero(np.asarray(mjm.jnt_limited, bool) & (mjm.jnt_type >= 2))
        for j in single:
            q, (low, high) = mjm.jnt_qposadr[j], mjm.jnt_range[j]
            low, high = min(low, start[q]), max(high, start[q])
            if not low < mjd.qpos[q] < high:  # at a limit geoms may touch exactly, and rounding decides
                mjd.qpos[q] = inner.uniform(low, high)
        mjd.qvel[:] = rng.uniform(-1, 1, mjm.nv)
        mjd.act[:] = rng.uniform(0, 1, mjm.na)
        limited = np.asarray(mjm.actuator_ctrllimited, bool)
        low = np.where(limited, mjm.actuator_ctrlrange[:, 0] - 0.1, -1.0)
        high = np.where(limited, mjm.actuator_ctrlrange[:, 1] + 0.1, 1.0)
        mjd.ctrl[:] = rng.uniform(low, high)
        mjd.qfrc_applied[:] = rng.uniform(-0.1, 0.1, mjm.nv)
        mjd.xfrc_applied[1:] = rng.uniform(-0.1, 0.1, (mjm.nbody - 1, 6))
        mjd.mocap_pos[:] += rng.uniform(-0.1, 0.1, mjd.mocap_pos.shape)
        mjd.mocap_quat[:] += rng.uniform(-0.1, 0.1, mjd.mocap_quat.shape)
        mjd.qacc_warmstart[:] = rng.uniform(-1, 1, mjm.nv)
        found.append(mjd)
    return found


def put_states(m: Model, states: list[mujoco.MjData]) -> Data:
    """Data with one world for each of the states of MuJoCo."""
    d = make_data(m, len(states))
    for name in STATE:
        with contents(getattr(d, name)) as values:
            for world, mjd in enumerate(states):
                values[world, ...] = np.reshape(getattr(mjd, name), values.shape[1:])
    return d


def compare(
    mjm: mujoco.MjModel, states: list[mujoco.MjData], dtype: Any = wp.float64, decisions: list[int] | None = None
) -> list[Line]:
    """Run `forward` in both engines from ``states`` (which MuJoCo changes) and compare all fields that both have.

    Contacts in which MuJoCo has not converged, and in single precision those of which rounding chooses one, are those
    that a third computation decided for, see `decided`; how many, for each state, is appended to ``decisions``.
    """
    m = put_model(mjm, dtype=dtype)
    d = put_states(m, states)
    found = _forward(m, d, mjm, states)
    if decisions is not None:
        decisions += found
    return compare_fields(m, d, mjm, states)


def compare_steps(
    mjm: mujoco.MjModel, states: list[mujoco.MjData], dtype: Any = wp.float64, nstep: int = 1
) -> list[Line]:
    """Take ``nstep`` steps in both engines from ``states`` (which MuJoCo changes) and compare where they end.

    The first step starts from the contacts of `compare`; states with such whose step finds others on its way, as that
    of RK4 does, are left out.
    """
    from treadle.mujoco.public import step

    m = put_model(mjm, dtype=dtype)
    d = put_states(m, states)
    starts = [mjd.qacc_warmstart.copy() for mjd in states]
    found = _forward(m, put_states(m, states), mjm, states)
    step(m, d, nstep)
    alone = mjm.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    euler = mjm.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER
    for mjd, count, start in zip(states, found, starts):
        if count and not alone:
            (mujoco.mj_Euler if euler else mujoco.mj_implicit)(mjm, mjd)
        else:
            mjd.qacc_warmstart[:] = start
            mujoco.mj_step(mjm, mjd)
        mujoco.mj_step(mjm, mjd, nstep - 1)
    worlds = [w for w, count in enumerate(found) if not (count and alone)]
    ends = [line for line in compare_fields(m, d, mjm, states, worlds) if line.stage == "state"]
    return [Line("step", line.field, line.error, line.world) for line in ends]


def _forward(m: Model, d: Data, mjm: mujoco.MjModel, states: list[mujoco.MjData]) -> list[int]:
    """Forward in both engines; gives how many contacts of each state are decided, and put in MuJoCo's data."""
    from treadle.mujoco.public import forward

    starts = [mjd.qacc_warmstart.copy() for mjd in states]
    forward(m, d)
    for mjd in states:
        mujoco.mj_forward(mjm, mjd)
    found = decided.decide(m, d, mjm, states)
    for mjd, count, start in zip(states, found, starts):
        if count:
            decided.resume(mjm, mjd, start)
    return found


def compare_fields(
    m: Model, d: Data, mjm: mujoco.MjModel, states: list[mujoco.MjData], worlds: list[int] | None = None
) -> list[Line]:
    """A line for every field that both engines have, over all ``worlds``.

    Contacts may come in another order, and their rows with them. If there are not as many, so that they cannot be
    compared one by one, ``ncon`` or ``nefc`` says it.
    """
    orders = {w: _Order.of(d, states[w], w) for w in (range(len(states)) if worlds is None else worlds)}
    lines = []
    for row in Data.rows():
        if row.role not in ("derived", "state") or row.name in _NOT_COMPARED:
            continue
        if value_of(mjm, states[0], row.name) is None:
            continue
        worst, where, numbers = 0.0, 0, 0
        for world, order in orders.items():
            theirs = np.asarray(value_of(mjm, states[world], row.name), dtype=float)
            ours = order.apply(row, d.read(row).numpy()[world, ...], len(np.atleast_1d(theirs)))
            if row.name in ("efc_force", "efc_state"):
                moving = _moving(mjm, states[world])
                ours, theirs = ours[moving], theirs[moving]
            e = error(np.reshape(ours, -1), np.reshape(theirs, -1), FLOOR[m.real])
            numbers += theirs.size
            if not e <= worst:
                worst, where = e, world
        if numbers:
            lines.append(Line(row.stage or row.role, row.name, worst, where))
    return lines


def _moving(mjm: mujoco.MjModel, mjd: mujoco.MjData) -> np.ndarray:
    """The rows of constraints that any motion changes: the force of others does nothing, and is made of rounding."""
    return np.abs(value_of(mjm, mjd, "efc_J")).max(axis=1, initial=0.0) > 1e-13


# Ours alone; by the order of contacts; by rounding.
_NOT_COMPARED = ("contact_pair", "contact_efc_address", "solver_niter")


@dataclass(frozen=True)
class _Order:
    """In which order our contacts, and our rows of constraints, are MuJoCo's."""

    contacts: np.ndarray
    rows: np.ndarray
    fixed: int  # rows before those of contacts

    @classmethod
    def of(cls, d: Data, mjd: mujoco.MjData, world: int) -> _Order:
        """The order for one world: each of MuJoCo's contacts with the nearest of ours between the same geoms."""
        ncon, nefc = (int(d.field(name).numpy()[world]) for name in ("ncon", "nefc"))
        contacts, rows = np.arange(mjd.ncon), np.arange(mjd.nefc)
        if ncon != mjd.ncon or nefc != mjd.nefc:
            return cls(contacts, rows, len(rows))
        place = d.field("contact_pos").numpy()[world, :ncon]
        geoms = np.sort([d.field(f"contact_geom{k}").numpy()[world, :ncon] for k in (1, 2)], axis=0)
        free = np.ones(ncon, dtype=bool)
        for i in range(ncon):
            alike = (geoms == np.sort(mjd.contact.geom[i])[:, None]).all(axis=0) & free
            distance = np.where(alike, np.linalg.norm(place - mjd.contact.pos[i], axis=1), np.inf)
            contacts[i] = np.argmin(distance)
            free[contacts[i]] = False
        ours = d.field("contact_efc_address").numpy()[world, :ncon]
        first = np.sort(mjd.contact.efc_address[mjd.contact.efc_address >= 0])
        for i in range(ncon):
            start = mjd.contact.efc_address[i]
            if start >= 0:
                stop = np.append(first, nefc)[np.searchsorted(first, start) + 1]
                rows[start:stop] = ours[contacts[i]] + np.arange(stop - start)
        return cls(contacts, rows, int(first[0]) if len(first) else nefc)

    def _renumbered(self, ids: np.ndarray) -> np.ndarray:
        """``efc_id`` where rows of contacts, which come last, have MuJoCo's numbers of these."""
        numbers, found = np.argsort(self.contacts), ids.copy()
        found[self.fixed : len(self.rows)] = numbers[ids[self.fixed : len(self.rows)]]
        return found

    def apply(self, row: Field, values: np.ndarray, count: int) -> np.ndarray:
        """The first ``count`` of ``values`` in MuJoCo's order, if the field is one of those."""
        symbol = row.shape[1] if len(row.shape) > 1 else ""
        if symbol not in ("njmax", "nconmax", "nwrappoint"):
            return values
        if symbol == "nwrappoint":
            return values[:count]
        order = (self.rows if symbol == "njmax" else self.contacts)[:count]
        if row.name == "efc_id":
            values = self._renumbered(values)
        return values[order] if len(values) > order.max(initial=-1) else np.full((count, *values.shape[1:]), np.nan)


def error(ours: np.ndarray, theirs: np.ndarray, floor: float = FLOOR[wp.float64]) -> float:
    """The largest difference, relative to the largest of ``theirs``; infinite if ours are no numbers."""
    if not ours.size:
        return 0.0
    difference = np.abs(ours - theirs).max()
    return float(difference / max(np.abs(theirs).max(), floor)) if np.isfinite(difference) else float("inf")


def beyond(lines: Iterable[Line], bound: float) -> list[Line]:
    """The lines whose error is beyond ``bound``, in the order of the stages."""
    return [line for line in lines if line.error > bound]


_SOLVED = ("qacc", "qfrc_constraint", "qacc_warmstart")  # what the solver finds


# Within a stage numbers are rounded several times, not once: how many times what `rounding.costs` says that may cost.
ROUNDINGS = 4


def bound(line: Line, dtype: Any, cost: float = 0.0) -> float | None:
    """The error that a line may have; None where single precision is not compared: of constraints and of the solver.

    ``cost`` is what rounding to single precision costs its field at least (`rounding.costs`).
    """
    if dtype is wp.float64:
        return 1e-6 if line.stage in (*ITERATED, "step") or line.field in _SOLVED else 1e-9
    if line.field in _SOLVED or (line.stage in ITERATED and line.stage != "collision"):
        return None
    return max(1e-4, ROUNDINGS * cost)


def judge(
    mjm: mujoco.MjModel, lines: Iterable[Line], dtype: Any, states: Callable[[], list[mujoco.MjData]]
) -> list[tuple[Line, float | None]]:
    """Lines with their bounds; where single precision is beyond them, with those that rounding leaves.

    Args:
        states: makes anew the states from which both engines started.
    """
    judged = [(line, bound(line, dtype)) for line in lines]
    if dtype is wp.float64 or all(limit is None or line.error <= limit for line, limit in judged):
        return judged
    costs = rounding.costs(mjm, states, lambda ours, theirs: error(ours, theirs, FLOOR[dtype]))
    return [(line, bound(line, dtype, costs.get((line.stage, line.field), 0.0))) for line, _ in judged]


def sharpen(mjm: mujoco.MjModel) -> None:
    """Let both engines iterate until rounding ends it, which takes solvers other than Newton's many times as long.

    Without islands: MuJoCo solves these one by one, with the same forces, but then mixes up the states of their rows.
    """
    mjm.opt.tolerance = mjm.opt.ls_tolerance = mjm.opt.ccd_tolerance = mjm.opt.noslip_tolerance = 1e-13
    newton = mjm.opt.solver == mujoco.mjtSolver.mjSOL_NEWTON
    least = {"iterations": 200 if newton else 5000, "ls_iterations": 200, "ccd_iterations": 200}
    for name, count in least.items():
        setattr(mjm.opt, name, max(getattr(mjm.opt, name), count))
    mjm.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ISLAND)


def report(path: str, count: int = 5, seed: int = 0) -> tuple[str, bool]:
    """Compare the model of a file in ``count`` random states, in both precisions.

    Returns:
        a table with a line for each stage, and whether all are within their bounds.

    Raises:
        UnsupportedModelError: the model uses a feature that is not simulated.
    """
    mjm = mujoco.MjModel.from_xml_path(path)
    sharpen(mjm)
    text, fine = [], True
    for dtype in (wp.float64, wp.float32):
        decisions: list[int] = []
        lines = compare(mjm, random_states(mjm, count, seed), dtype, decisions)
        lines += compare_steps(mjm, random_states(mjm, count, seed), dtype)
        judged = judge(mjm, lines, dtype, lambda: random_states(mjm, count, seed))
        text.append(f"{dtype.__name__}, {count} states")
        if any(decisions):
            why = "MuJoCo's contacts less exact" if dtype is wp.float64 else "other contacts as deep, to rounding"
            text.append(f"  of {sum(decisions)} pairs of geoms a third computation found {why}")
        for stage in dict.fromkeys(line.stage for line, limit in judged if limit is not None):
            worst, limit = max(((x, b) for x, b in judged if x.stage == stage and b is not None), key=_by_bound)
            raised = "" if worst.error <= bound(worst, dtype) else f"  of {limit:.0e} that rounding alone may cause"
            text.append(f"  {worst}" + (raised if worst.error <= limit else f"  beyond {limit:.0e}"))
        bad = [line for line, limit in judged if limit is not None and not line.error <= limit]
        if bad:
            text.append(f"  the first beyond its bound: {bad[0].field} of {bad[0].stage}, {bad[0].error:.1e}")
        fine = fine and not bad
    return "\n".join(text), fine


def _by_bound(judged: tuple[Line, float]) -> float:
    return judged[0].error / judged[1]
