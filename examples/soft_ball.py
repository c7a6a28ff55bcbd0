"""Finds the springs that make a soft ball bounce highest, by gradient descent through 500 steps. Writes soft_ball.png.

A thousand particles, some eight thousand springs and the ground. Positions, velocities and forces are stepped in place
in three buffers; the tape keeps what each step overwrites, so the gradient is that of the program that ran. All springs
share one stiffness. What is descended is the greatest height of the ball's middle, with a minus: too soft, and the ball
collapses on the ground; too stiff, and it keeps the energy of the bounce as a rattle.
"""

import argparse
import math
import time
from pathlib import Path

import numpy as np

import treadle as wp

STEPS, DT = 500, 1.5e-3  # of a simulation; seconds
SPACING = 0.05  # between particles, m
MASS = 0.01  # of a particle, kg
DAMPING = 0.3  # of a spring, N s/m
GROUND = 400.0  # stiffness of the ground, N/m
SPEED = 3.0  # with which the ball comes down, m/s
SHARPNESS = 40.0  # of the greatest height, 1/m: the larger, the less do lower heights count


@wp.kernel
def pull(
    positions: wp.array(dtype=wp.vec3),
    velocities: wp.array(dtype=wp.vec3),
    ends: wp.array(dtype=wp.vec2i),
    rest: wp.array(dtype=float),
    stiffness: wp.array(dtype=float),
    forces: wp.array(dtype=wp.vec3),
):
    """Each spring pulls at both its ends."""
    spring = wp.tid()
    a = ends[spring][0]
    b = ends[spring][1]
    way = positions[b] - positions[a]
    length = wp.length(way)
    along = way / length
    pace = wp.dot(velocities[b] - velocities[a], along)
    force = along * (stiffness[0] * (length - rest[spring]) + DAMPING * pace)
    wp.atomic_add(forces, a, force)
    wp.atomic_sub(forces, b, force)


@wp.kernel
def move(
    positions: wp.array(dtype=wp.vec3),
    velocities: wp.array(dtype=wp.vec3),
    forces: wp.array(dtype=wp.vec3),
    heights: wp.array(dtype=float),
    step: int,
):
    """Each particle moves on, and adds to the height of the ball's middle."""
    i = wp.tid()
    depth = wp.min(positions[i][1], 0.0)
    force = forces[i] - wp.vec3(0.0, GROUND * depth, 0.0)
    velocities[i] += (force / MASS + wp.vec3(0.0, -9.81, 0.0)) * DT
    positions[i] += velocities[i] * DT
    forces[i] = wp.vec3(0.0, 0.0, 0.0)
    wp.atomic_add(heights, step, positions[i][1] / float(positions.shape[0]))


@wp.kernel
def judge(heights: wp.array(dtype=float), loss: wp.array(dtype=float)):
    """Minus the greatest height: a mean of exponentials is ruled by its greatest term, and has a gradient."""
    total = float(0.0)
    for t in range(heights.shape[0]):
        total += wp.exp(SHARPNESS * (heights[t] - 0.5))
    loss[0] = -0.5 - wp.log(total / float(heights.shape[0])) / SHARPNESS


class Ball:
    """The ball: a lattice cut by a sphere, each particle tied to its neighbours."""

    def __init__(self, radius: float = 6.3):
        reach = math.ceil(radius)
        grid = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * 3, indexing="ij"), -1).reshape(-1, 3)
        cells = grid[(grid**2).sum(1) <= radius**2]
        number = {tuple(cell): k for k, cell in enumerate(cells)}
        ways = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, 1), (1, 0, 1), (1, -1, 0), (0, 1, -1), (1, 0, -1)]
        pairs = [(k, number.get(tuple(cells[k] + way))) for k in range(len(cells)) for way in ways]
        ends = np.array([pair for pair in pairs if pair[1] is not None], np.int32)
        self.start = cells * SPACING + [0.0, radius * SPACING + 0.02, 0.0]
        rest = np.linalg.norm(self.start[ends[:, 1]] - self.start[ends[:, 0]], axis=1)
        self.ends = wp.array(ends, dtype=wp.vec2i)
        self.rest = wp.array(rest, dtype=float)
        self.positions = wp.array(self.start, dtype=wp.vec3)
        self.velocities = wp.zeros_like(self.positions)
        self.forces = wp.zeros_like(self.positions)
        self.heights = wp.zeros(STEPS, dtype=float)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.stiffness = wp.zeros(1, dtype=float, requires_grad=True)

    def fall(self, stiffness: float) -> None:
        """Simulate a bounce; the loss is minus the greatest height."""
        self.stiffness.fill_(stiffness)
        self.positions.assign(self.start)
        self.velocities.fill_(wp.vec3(0.0, -SPEED, 0.0))
        self.forces.zero_()
        self.heights.zero_()
        for step in range(STEPS):
            springs = [self.positions, self.velocities, self.ends, self.rest, self.stiffness, self.forces]
            wp.launch(pull, dim=self.ends.size, inputs=springs)
            particles = [self.positions, self.velocities, self.forces, self.heights, step]
            wp.launch(move, dim=self.positions.size, inputs=particles)
        wp.launch(judge, dim=1, inputs=[self.heights, self.loss])

    def slope(self, stiffness: float) -> tuple[float, float]:
        """The loss and its derivative by the logarithm of the stiffness."""
        with wp.Tape() as tape:
            self.fall(stiffness)
        tape.backward(self.loss)
        found = self.loss.numpy()[0], self.stiffness.grad.numpy()[0] * stiffness
        tape.zero()
        return float(found[0]), float(found[1])


def descend(ball: Ball, stiffness: float, rounds: int, rate: float = 0.25) -> tuple[list, np.ndarray, np.ndarray]:
    """Follow the gradient. Gives (stiffness, loss) of each round, and the heights of the first and the last one."""
    way, first, momentum = [], None, 0.0
    for _ in range(rounds):
        loss, slope = ball.slope(stiffness)
        way.append((stiffness, loss))
        heights = ball.heights.numpy().copy()
        first = heights if first is None else first
        momentum = 0.7 * momentum - rate * slope / max(abs(slope), 1.0)
        stiffness *= math.exp(momentum)
    return way, first, heights


def draw(way: list, first: np.ndarray, last: np.ndarray, path: Path) -> None:
    """Two panels: heights over time, before and after; the loss over the rounds."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    seconds = np.arange(STEPS) * DT
    left.plot(seconds, first, color="#b0b0b0", label=f"before, {way[0][0]:.0f} N/m")
    left.plot(seconds, last, color="#c1272d", label=f"after, {way[-1][0]:.0f} N/m")
    left.set(xlabel="time, s", ylabel="height of the middle, m", title="A bounce")
    left.legend(frameon=False)
    right.plot([loss for _, loss in way], color="#c1272d", marker="o", markersize=3)
    right.set(xlabel="round", ylabel="loss: minus the greatest height, m", title="Gradient descent")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def run(rounds: int = 15, stiffness: float = 250.0) -> dict:
    """Descend; gives what ``main`` prints and draws."""
    ball = Ball()
    ball.slope(stiffness)  # compiles, or loads from the cache
    start = time.perf_counter()
    way, first, last = descend(ball, stiffness, rounds)
    seconds = time.perf_counter() - start
    return {"ball": ball, "way": way, "first": first, "last": last, "seconds": seconds}


def main(out: Path) -> dict:
    found = run()
    ball, way = found["ball"], found["way"]
    steps = len(way) * STEPS / found["seconds"]
    print(f"soft ball: {ball.positions.size} particles, {ball.ends.size} springs, {STEPS} steps, stepped in place")
    print(f"  loss {way[0][1]:.3f} -> {way[-1][1]:.3f} m at {way[0][0]:.0f} -> {way[-1][0]:.0f} N/m")
    print(f"  {len(way)} rounds, {found['seconds']:.1f} s for forward and backward: {steps:.0f} steps a second")
    try:
        draw(way, found["first"], found["last"], out / "soft_ball.png")
        print(f"  wrote {out / 'soft_ball.png'}")
    except ImportError:
        print("  no picture: pip install 'treadle[plot]'")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("."), help="folder of the picture")
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    main(folder)
