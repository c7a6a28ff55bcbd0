"""Worlds a second beside MuJoCo's own engine, on a model of the user's: ``python -m treadle mujoco bench scene.xml``.

Both engines start from the same states and get the same fresh controls at every step. They run in turns, a round each,
from the same start, so that other work on the machine meets both; a figure is the median of the rounds. MuJoCo runs
``mujoco.rollout`` on as many threads.

Two sets of worlds are quoted. *Alike*: all settled from the first keyframe (or the reference pose), with controls that
differ a little. *Diverse*: random poses, controls from all of their range, and each world reset at a time of its own in
the last 200 steps. Worlds that do the same fill SIMD lanes best, so the first set flatters.

Of each stage, run apart, it says what part of all time it takes, the bytes that it leaves, and how far from the peak of
multiplications with additions it is: the operations on floats that one world's numbers need, counted by an interpreter
in the first world, against what the same machine does in a loop of nothing else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout

import treadle as wp
from treadle.lang.ahead import Deferred, deferred
from treadle.mujoco.contents import contents
from treadle.mujoco.data import Data
from treadle.mujoco.model import Model, put_model
from treadle.mujoco.plan import StraightPlan
from treadle.mujoco.public import INTEGRATORS, step
from treadle.mujoco.rates import operations, peak
from treadle.mujoco.stages import TABLE, run_stage
from treadle.mujoco.worlds import make_data
from treadle.runtime.capture import Launch

SETTLE = 600  # steps before the first round
LATE = 200  # diverse worlds are reset within so many last steps of these
NOISE = 0.1  # of half the range of a control, for worlds that are alike
FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS

_START = ("time", "qpos", "qvel", "act", "qacc_warmstart")
Progress = Callable[[str, float], None]


@dataclass
class Figures:
    """What `bench` found. Rates are in worlds times steps a second; times in seconds; bytes are of one world."""

    model: str
    worlds: str
    nworld: int
    threads: int
    steps: int
    world_steps_per_s: float = 0.0
    mujoco_world_steps_per_s: float = 0.0
    ratio: float = 0.0
    compile_s: float = 0.0
    contacts: float = 0.0
    rows: float = 0.0
    bytes_per_world: int = 0
    peak_flops: float = 0.0  # operations on floats a second, of all workers
    stages: dict[str, dict[str, float]] = field(default_factory=dict)

    def text(self) -> str:
        """A table for people."""
        what = f"{self.contacts:.1f} contacts and {self.rows:.1f} rows a world"
        lines = [
            f"{self.model}: {self.nworld:,} worlds, {self.worlds}, {what}",
            f"  treadle            {self.world_steps_per_s:>14,.0f} world-steps/s",
            f"  MuJoCo, {self.threads} threads  {self.mujoco_world_steps_per_s:>14,.0f} world-steps/s",
            f"  ratio              {self.ratio:>14.2f}",
            f"  first step         {self.compile_s:>14.2f} s",
            f"  memory             {self.bytes_per_world:>14,} bytes a world",
        ]
        if self.stages:
            lines.append(f"  peak               {self.peak_flops / 1e9:>14,.1f} GFLOP/s")
            lines.append(f"  {'stage, run apart':26} {'share':>7} {'us a world':>11} {'bytes a world':>14} {'GB/s':>7} "
                         f"{'flop a world':>13} {'of peak':>8}")  # fmt: skip
            for name, one in sorted(self.stages.items(), key=lambda item: -item[1]["share"]):
                if one["share"] >= 0.005:
                    lines.append(f"  {name:26} {one['share']:>7.1%} {one['us']:>11.3f} {one['bytes']:>14,.0f} "
                                 f"{one['bytes'] / one['us'] / 1e3:>7.1f} {one['flop']:>13,.0f} "
                                 f"{one['of_peak']:>8.1%}")  # fmt: skip
        return "\n".join(lines)


class Race:
    """Both engines over the same worlds; each round starts where these were settled."""

    def __init__(self, mjm: mujoco.MjModel, nworld: int, diverse: bool, threads: int, seed: int = 0):
        self.mjm, self.nworld, self.diverse, self.threads = mjm, nworld, diverse, threads
        self.rng = np.random.default_rng(seed)
        start = time.perf_counter()
        self.m: Model = put_model(mjm)
        self.d: Data = make_data(self.m, nworld)
        step(self.m, self.d)
        self.compile_s = time.perf_counter() - start
        self.pool = rollout.Rollout(nthread=threads if threads > 1 else 0)
        self.data = [mujoco.MjData(mjm) for _ in range(threads)]
        limited = np.asarray(mjm.actuator_ctrllimited, bool)
        low, high = mjm.actuator_ctrlrange.T
        self.half = np.where(limited, (high - low) / 2, 1.0)
        self.middle = np.where(limited, (high + low) / 2, 0.0)
        self.base = mjm.key_ctrl[0] if mjm.nkey else np.zeros(mjm.nu)

    def controls(self) -> np.ndarray:
        """Fresh controls of all worlds for one step, ``(nworld, nu)``."""
        noise = self.rng.uniform(-1, 1, (self.nworld, self.mjm.nu))
        return self.middle + self.half * noise if self.diverse else self.base + NOISE * self.half * noise

    def poses(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Where so many worlds start: ``qpos`` and ``qvel``."""
        mjm, mjd = self.mjm, mujoco.MjData(self.mjm)
        if mjm.nkey:
            mujoco.mj_resetDataKeyframe(mjm, mjd, 0)
        qpos, qvel = np.tile(mjd.qpos, (count, 1)), np.tile(mjd.qvel, (count, 1))
        for pose in qpos if self.diverse else ():
            _place(mjm, pose, self.rng)
        return qpos, qvel

    def settle(self, progress: Progress) -> None:
        """Bring all worlds to where rounds start, by our own engine."""
        d, late = self.d, self.rng.integers(SETTLE - LATE, SETTLE, self.nworld)
        self._begin(np.ones(self.nworld, bool))
        for k in range(SETTLE):
            if self.diverse and (late == k).any():
                self._begin(late == k)
            d.ctrl.assign(self.controls())
            step(self.m, d)
            progress("settling", (k + 1) / SETTLE)
        d.check()
        self.start = {name: getattr(d, name).numpy().copy() for name in _START}

    def _begin(self, which: np.ndarray) -> None:
        """Put worlds to where they start."""
        values = dict(zip(("qpos", "qvel"), self.poses(int(which.sum()))), act=0.0, qacc_warmstart=0.0)
        for name, numbers in values.items():
            with contents(getattr(self.d, name)) as found:
                found[which] = numbers

    def restore(self) -> None:
        """Put our worlds to where rounds start."""
        for name, values in self.start.items():
            getattr(self.d, name).assign(values)

    def steps_for(self, seconds: float) -> int:
        """How many steps of all worlds MuJoCo does in about so many seconds, 2 to 50."""
        sample = min(self.nworld, 64)
        taken = self.theirs(np.stack([self.controls() for _ in range(2)], 1)[:sample])[0] / sample
        return int(np.clip(2 * seconds / (taken * self.nworld), 2, 50))

    def round(self, steps: int) -> tuple[float, float]:
        """Seconds of ``steps`` steps here and in MuJoCo."""
        given = np.stack([self.controls() for _ in range(steps)], axis=1)
        self.restore()
        begin = time.perf_counter()
        for k in range(steps):
            with contents(self.d.ctrl) as ctrl:
                ctrl[...] = given[:, k]
            step(self.m, self.d)
        wp.synchronize()
        ours = time.perf_counter() - begin
        return ours, self.theirs(given)[0]

    def theirs(self, given: np.ndarray) -> tuple[float, np.ndarray]:
        """Let MuJoCo step the first worlds with the controls ``(worlds, steps, nu)``: seconds, and the states it
        finds."""
        s, nworld = self.start, len(given)
        state = np.concatenate([s["time"][:, None], s["qpos"], s["qvel"], s["act"]], axis=1, dtype=float)[:nworld]
        size, steps = mujoco.mj_stateSize(self.mjm, FULL), given.shape[1]
        if state.shape[1] != size:  # plugins and histories have state of their own
            raise ValueError("this model's state is more than time, qpos, qvel and act, which the bench cannot set")
        warm = np.ascontiguousarray(s["qacc_warmstart"][:nworld], dtype=float)
        ends = np.zeros((nworld, steps, size))
        begin = time.perf_counter()
        self.pool.rollout(
            self.mjm, self.data, state, np.ascontiguousarray(given) if self.mjm.nu else None, nstep=steps, state=ends,
            initial_warmstart=warm,
        )  # fmt: skip
        return time.perf_counter() - begin, ends

    def stages(self, best: float, progress: Progress, repeats: int = 5) -> dict[str, dict[str, float]]:
        """Of each stage that steps do, run apart in all worlds: its share, µs, bytes and operations on floats a world,
        and these as part of the ``best`` that there can be. Steps run stages together, which is faster; shares say
        where the work is."""
        m, d, taken = self.m, self.d, {}
        self.restore()
        runs: list[tuple[str, Callable[[], Any]]] = [
            (s.name, lambda name=s.name: run_stage(name, m, d)) for s in TABLE if s.needed(m)
        ]
        runs.append(("integration", lambda: INTEGRATORS[m.opt.integrator](m, d)))
        for k in range(repeats + 1):
            for name, run in runs:
                begin = time.perf_counter()
                run()
                if k:
                    taken.setdefault(name, []).append(time.perf_counter() - begin)
        launches = {name: _launches(run) for name, run in runs}
        kernels = _kernels(d)  # what only makes fields for readers is no part of a step
        names = [name for name in launches if kernels is None or any(k.kernel in kernels for k in launches[name])]
        spent = {name: min(taken[name]) for name in names}
        total, found = sum(spent.values()), {}
        for k, name in enumerate(names):
            flop, seconds = operations(launches[name]), spent[name] / self.nworld
            found[name] = {
                "share": spent[name] / total, "us": 1e6 * seconds, "bytes": _bytes(d, name), "flop": flop,
                "of_peak": flop / seconds / best,
            }  # fmt: skip
            progress("operations", (k + 1) / len(names))
        return found


def _launches(run: Callable[[], Any]) -> list[Deferred]:
    """What ``run`` launches."""
    with deferred() as launches:
        run()
    return launches


def _kernels(d: Data) -> set[Any] | None:
    """The kernels that make up a step; None where it is one of its own."""
    if isinstance(d._plan, StraightPlan):
        return None
    return {entry.program.origin[0]() for entry in d._plan.entries if isinstance(entry, Launch)}


def _bytes(d: Data, stage: str) -> float:
    """The bytes of a world that a stage leaves in memory."""
    return sum([getattr(d, row.name).numpy().nbytes for row in Data.rows() if row.stage == stage]) / d.nworld


def _place(mjm: mujoco.MjModel, pose: np.ndarray, rng: np.random.Generator) -> None:
    """Move ``pose`` by chance: free bodies are lifted and turned, joints take any place in their range."""
    for j in range(mjm.njnt):
        q, kind = mjm.jnt_qposadr[j], mjm.jnt_type[j]
        if kind == mujoco.mjtJoint.mjJNT_FREE:
            pose[q + 2] += rng.uniform(0.0, 0.5)
            pose[q + 3 : q + 7] = _turned(rng)
        elif kind == mujoco.mjtJoint.mjJNT_BALL:
            pose[q : q + 4] = _turned(rng)
        else:
            low, high = mjm.jnt_range[j] if mjm.jnt_limited[j] else (pose[q] - 0.5, pose[q] + 0.5)
            pose[q] = rng.uniform(low, high)


def _turned(rng: np.random.Generator) -> np.ndarray:
    quaternion = rng.normal(size=4)
    return quaternion / np.linalg.norm(quaternion)


def bench(
    mjm: mujoco.MjModel,
    nworld: int = 2048,
    worlds: str = "alike",
    threads: int | None = None,
    rounds: int = 3,
    seconds: float = 1.0,
    name: str = "model",
    stages: bool = True,
    seed: int = 0,
    progress: Progress = lambda what, share: None,
) -> Figures:
    """Time a model in both engines.

    Args:
        mjm: MuJoCo's model.
        nworld: number of worlds.
        worlds: the set of worlds, ``alike`` or ``diverse``, see above.
        threads: of MuJoCo; as many as treadle has workers if None.
        rounds: rounds of each engine; the median counts.
        seconds: about how long MuJoCo takes for a round.
        name: what to call the model.
        stages: whether to time each stage, too.
        seed: of controls and poses.
        progress: called with what is being done and how much of it is done, 0 to 1.

    Raises:
        UnsupportedModelError: the model uses a feature that is not simulated.
        ValueError: there is no such set.

    Example:
        >>> import mujoco
        >>> from treadle.mujoco.bench import bench
        >>> body = "<body><joint axis='0 1 0'/><geom size='.1' pos='.2 0 0'/></body>"
        >>> mjm = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
        >>> figures = bench(mjm, nworld=8, rounds=1, seconds=0.01, threads=1, stages=False)
        >>> figures.world_steps_per_s > 0 and figures.mujoco_world_steps_per_s > 0
        True
    """
    if worlds not in ("alike", "diverse"):
        raise ValueError(f"worlds are alike or diverse, not {worlds!r}")
    race = Race(mjm, nworld, worlds == "diverse", threads or wp.config.workers or os.cpu_count() or 1, seed)
    found = Figures(name, worlds, nworld, race.threads, 0, compile_s=race.compile_s)
    race.settle(progress)
    found.steps = race.steps_for(seconds)
    times = []
    for k in range(rounds):
        times.append(race.round(found.steps))
        progress("in turns", (k + 1) / rounds)
    ours, theirs = (median(column) for column in zip(*times))
    found.world_steps_per_s, found.mujoco_world_steps_per_s = nworld * found.steps / ours, nworld * found.steps / theirs
    found.ratio = theirs / ours
    found.bytes_per_world = race.d.nbytes // nworld
    if race.m.constrained:
        found.contacts, found.rows = (float(getattr(race.d, x).numpy().mean()) for x in ("ncon", "nefc"))
    if stages:
        found.peak_flops = peak(race.m.real)
        found.stages = race.stages(found.peak_flops, progress)
    return found
