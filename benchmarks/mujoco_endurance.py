"""Humanoids under random control for a long time: no NaN, no overflow, and one end whatever gangs and workers do.

    python benchmarks/mujoco_endurance.py [--worlds 256] [--steps 10000] [--runs 1x8,2x8,3x8,1x16]

A run ``2x16`` is one with 2 workers and gangs of 16 lanes. Each starts from the same random states, gets the same
fresh controls at every step, and ends in a state whose bytes are hashed; the exit status is 1 if a number is not
finite, room ran out without a report, a world diverged, or hashes differ. The model is the humanoid of `mujoco.mjx`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import mujoco
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco import scenes

STATE = ("time", "qpos", "qvel", "act", "qacc_warmstart")


@dataclass(frozen=True)
class End:
    """What a run left: ``finite`` whether all numbers are, ``contacts`` the most in a world, ``upright`` the head."""

    workers: int
    lanes: int
    hash: str
    finite: bool
    contacts: int
    lowest: float
    seconds: float


def endure(name: str, worlds: int, steps: int, workers: int, lanes: int, every: int = 500) -> End:
    """Step ``worlds`` humanoids ``steps`` times; room for contacts is checked ``every`` so many steps."""
    wp.config.workers, wp.config.gang_width = workers, lanes
    mjm = scenes.load(name)
    m = mjw.put_model(mjm)
    d = mjw.make_data(m, worlds)
    rng = np.random.default_rng(0)
    d.qvel.numpy()[...] = rng.uniform(-0.1, 0.1, (worlds, mjm.nv))
    low, high = np.where(mjm.actuator_ctrllimited[:, None], mjm.actuator_ctrlrange, [-1.0, 1.0]).T
    contacts, start = 0, time.perf_counter()
    for k in range(steps):
        d.ctrl.numpy()[...] = rng.uniform(low, high, (worlds, mjm.nu))
        mjw.step(m, d)
        if k % every == every - 1 or k == steps - 1:
            d.check()
            contacts = max(contacts, int(d.ncon.numpy().max()))
    seconds = time.perf_counter() - start
    digest, finite = hashlib.sha256(), True
    for field in STATE:
        values = np.ascontiguousarray(getattr(d, field).numpy())
        digest.update(values.tobytes())
        finite = finite and bool(np.isfinite(values).all())
    lowest = float(d.xpos.numpy()[:, 1:, 2].min())
    return End(workers, lanes, digest.hexdigest()[:16], finite, contacts, lowest, seconds)


def main() -> int:
    """The command line. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="humanoid")
    parser.add_argument("--worlds", type=int, default=256)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--runs", default="1x8,2x8,3x8,1x16", help="workers x lanes, with commas between")
    parser.add_argument("--json", action="store_true", help="one JSON line a run")
    given = parser.parse_args()
    ends = []
    for run in given.runs.split(","):
        workers, lanes = map(int, run.split("x"))
        ends.append(endure(given.model, given.worlds, given.steps, workers, lanes))
        end = ends[-1]
        words = f"{run:>5}  {end.hash}  at most {end.contacts} contacts, lowest body at {end.lowest:.3f} m"
        words += f", {given.worlds * given.steps / end.seconds:,.0f} steps/s" + ("" if end.finite else "  NOT FINITE")
        print(json.dumps(asdict(end)) if given.json else words, flush=True)
    return 0 if all(end.finite for end in ends) and len({end.hash for end in ends}) == 1 else 1


if __name__ == "__main__":
    print(f"MuJoCo {mujoco.__version__}", file=sys.stderr)
    sys.exit(main())
