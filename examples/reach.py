"""Finds controls that bring a robot arm's gripper to a target, by gradient descent through 200 steps. Writes reach.png.

Every arm of a batch gets a target of its own. What is sought are the set points of its servos, one each 50 steps. The
arms are stepped in place; the tape keeps what a step overwrites, and carries the gradient of the gripper's distance
back through all steps of ``treadle.mujoco`` to all controls.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from so101_batch import load_arm

import treadle as wp
import treadle.mujoco as mjw

STEPS, HOLD = 200, 50  # of a simulation; between new set points
PIECES = STEPS // HOLD


@wp.kernel
def set_controls(points: wp.array3d(dtype=float), piece: int, ctrl: wp.array2d(dtype=float)):
    """The set points of this piece of the way."""
    arm, servo = wp.tid()
    ctrl[arm, servo] = points[arm, piece, servo]


@wp.kernel
def judge(
    site_xpos: wp.array2d(dtype=wp.vec3),
    site: int,
    qvel: wp.array2d(dtype=float),
    targets: wp.array(dtype=wp.vec3),
    losses: wp.array(dtype=float),
    loss: wp.array(dtype=float),
):
    """How far the gripper is from its target at the end, squared; and a little for moving still."""
    arm = wp.tid()
    miss = site_xpos[arm, site] - targets[arm]
    motion = float(0.0)
    for i in range(qvel.shape[1]):
        motion += qvel[arm, i] * qvel[arm, i]
    losses[arm] = wp.dot(miss, miss) + 1.0e-4 * motion
    wp.atomic_add(loss, 0, losses[arm])


class Arms:
    """A batch of arms, the set points of their servos and their targets."""

    def __init__(self, arms: int):
        mjm = load_arm()
        self.m = mjw.put_model(mjm)
        self.d = mjw.make_data(mjm, nworld=arms)
        self.site = mjm.site("gripperframe").id
        self.low, self.high = mjm.actuator_ctrlrange.T
        rng = np.random.default_rng(7)
        poses = rng.uniform(0.6 * self.low, 0.6 * self.high, (arms, mjm.nu))  # some pose reaches each target
        self.d.qpos.assign(poses)
        mjw.kinematics(self.m, self.d)
        self.targets = wp.array(self.d.site_xpos.numpy()[:, self.site].copy(), dtype=wp.vec3)
        self.points = wp.zeros((arms, PIECES, mjm.nu), dtype=float, requires_grad=True)
        self.losses = wp.zeros(arms, dtype=float, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)

    def simulate(self) -> None:
        """From the reference pose at rest, 200 steps under the set points; then the loss."""
        m, d = self.m, self.d
        mjw.reset_data(m, d)
        self.loss.zero_()
        for step in range(STEPS):
            if step % HOLD == 0:
                wp.launch(set_controls, dim=d.ctrl.shape, inputs=[self.points, step // HOLD, d.ctrl])
            mjw.step(m, d)
        mjw.kinematics(m, d)
        inputs = [d.site_xpos, self.site, d.qvel, self.targets, self.losses, self.loss]
        wp.launch(judge, dim=d.nworld, inputs=inputs)

    def slope(self) -> np.ndarray:
        """The loss by each set point, as an array (arm, piece, servo)."""
        with wp.Tape() as tape:
            self.simulate()
        tape.backward(self.loss)
        found = self.points.grad.numpy().copy()
        tape.zero()
        return found

    def misses(self) -> np.ndarray:
        """How far each gripper is from its target, m."""
        return np.linalg.norm(self.d.site_xpos.numpy()[:, self.site] - self.targets.numpy(), axis=1)


def descend(arms: Arms, rounds: int, rate: float = 0.15) -> list[float]:
    """Adam on the set points, kept in the servos' ranges. Gives the mean loss of each round.

    D. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization", 2015.
    """
    points = arms.points.numpy()  # the array's own memory
    first, second, losses = np.zeros_like(points), np.zeros_like(points), []
    for n in range(1, rounds + 1):
        slope = arms.slope()
        losses.append(float(arms.losses.numpy().mean()))
        first = 0.8 * first + 0.2 * slope
        second = 0.95 * second + 0.05 * slope**2
        pace = rate * 0.5 * (1.0 + np.cos(np.pi * n / rounds))
        step = pace * (first / (1 - 0.8**n)) / (np.sqrt(second / (1 - 0.95**n)) + 1e-8)
        arms.points.assign(np.clip(points - step, arms.low, arms.high))
    arms.simulate()
    losses.append(float(arms.losses.numpy().mean()))
    return losses


def draw(losses: list[float], before: np.ndarray, after: np.ndarray, path: Path) -> None:
    """Two panels: the loss over the rounds; how far each gripper is from its target, before and after."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.semilogy(losses, color="#c1272d", marker="o", markersize=3)
    left.set(xlabel="round", ylabel="mean loss, m²", title="Gradient descent through 200 steps")
    bins = np.linspace(0.0, 1000.0 * before.max(), 60)
    right.hist(1000.0 * before, bins, color="#b0b0b0", label="before")
    right.hist(1000.0 * after, bins, color="#c1272d", label="after")
    right.set(xlabel="from gripper to target, mm", ylabel="arms", title=f"{len(before)} arms")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def run(arms: int = 256, rounds: int = 40) -> dict:
    """Descend; gives what ``main`` prints and draws."""
    batch = Arms(arms)
    batch.slope()  # compiles, or loads from the cache
    before = batch.misses()
    start = time.perf_counter()
    losses = descend(batch, rounds)
    return {"losses": losses, "before": before, "after": batch.misses(), "seconds": time.perf_counter() - start}


def main(out: Path) -> dict:
    found = run()
    before, after, losses = found["before"], found["after"], found["losses"]
    print(f"reach: {len(before)} arms, controls that bring each gripper to a target of its own, {STEPS} steps")
    print(f"  mean loss {losses[0]:.4f} -> {losses[-1]:.6f} m² in {len(losses) - 1} rounds, {found['seconds']:.1f} s")
    print(f"  from gripper to target: median {1e3 * np.median(before):.0f} -> {1e3 * np.median(after):.1f} mm")
    try:
        draw(losses, before, after, out / "reach.png")
        print(f"  wrote {out / 'reach.png'}")
    except ImportError:
        print("  no picture: pip install 'treadle[plot]'")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("."), help="folder of the picture")
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    main(folder)
