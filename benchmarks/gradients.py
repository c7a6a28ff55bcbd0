"""Gradients: a soft ball through 500 steps, all pairs of bodies; and what a tape keeps of long simulations.

The last cases use what only treadle has: stepping in place, schedules of checkpoints. A peer leaves them out.
"""

import time

import numpy as np
from common import arguments, case, load, main, report

wp = load()
DEVICE = "cpu"
STEPS, DT = 500, 1.0e-3
MASS, DAMPING, GROUND = 0.01, 0.05, 2.0e4
TARGET = (1.0, 0.5, 0.0)


@wp.kernel
def pull(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    first: wp.array(dtype=int),
    second: wp.array(dtype=int),
    rest: wp.array(dtype=float),
    stiffness: wp.array(dtype=float),
    f: wp.array(dtype=wp.vec3),
):
    s = wp.tid()
    i = first[s]
    j = second[s]
    way = x[j] - x[i]
    length = wp.length(way)
    along = way / length
    force = along * (stiffness[s] * (length - rest[s]) + DAMPING * wp.dot(v[j] - v[i], along))
    wp.atomic_add(f, i, force)
    wp.atomic_sub(f, j, force)


@wp.kernel
def move(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    f: wp.array(dtype=wp.vec3),
    x_next: wp.array(dtype=wp.vec3),
    v_next: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    depth = wp.min(x[i][1], 0.0)
    a = f[i] / MASS + wp.vec3(0.0, -9.8 - depth * GROUND, 0.0)
    v_new = v[i] + a * DT
    v_next[i] = v_new
    x_next[i] = x[i] + v_new * DT


@wp.kernel
def judge(x: wp.array(dtype=wp.vec3), target: wp.vec3, weight: float, loss: wp.array(dtype=float)):
    d = x[wp.tid()] - target
    wp.atomic_add(loss, 0, wp.dot(d, d) * weight)


@wp.kernel
def attract(p: wp.array(dtype=wp.vec3), a: wp.array(dtype=wp.vec3), n: int):
    i = wp.tid()
    here = p[i]
    total = wp.vec3(0.0, 0.0, 0.0)
    for j in range(n):
        d = p[j] - here
        inv = 1.0 / wp.sqrt(wp.dot(d, d) + 1.0e-2)
        total += d * (inv * inv * inv)
    a[i] = total


@wp.kernel
def follow(path: wp.array2d(dtype=float), t: int):
    i = wp.tid()
    path[t + 1, i] = path[t, i] + 0.001 * wp.sin(path[t, i])


class Ball:
    """1,021 particles of a lattice in a sphere and 5,244 springs, each with its own stiffness. ``states``: how many
    buffers of the state there are; 1 is stepping in place."""

    def __init__(self, states: int):
        h, radius, grid = 0.05, 6.3, np.arange(-7, 8)
        cells = [(i, j, k) for i in grid for j in grid for k in grid if i * i + j * j + k * k <= radius * radius]
        number = {cell: n for n, cell in enumerate(cells)}
        ways = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, 1), (1, 0, 1)]
        pairs = [
            (n, number[q])
            for p, n in number.items()
            for w in ways
            if (q := (p[0] + w[0], p[1] + w[1], p[2] + w[2])) in number
        ]
        self.ends = np.array(pairs, np.int32)
        self.x0 = np.array(cells) * h + [0.0, radius * h + 0.02, 0.0]
        self.v0 = np.tile([0.5, -2.0, 0.0], (len(cells), 1))
        self.rest = np.linalg.norm(self.x0[self.ends[:, 1]] - self.x0[self.ends[:, 0]], axis=1)
        self.k0 = 200.0 * np.random.default_rng(0).uniform(0.8, 1.2, len(pairs))
        n = len(cells)
        self.first, self.second = (wp.array(e.copy(), dtype=int, device=DEVICE) for e in self.ends.T)
        self.rest_array = wp.array(self.rest.astype(np.float32), dtype=float, device=DEVICE)
        self.k = wp.array(self.k0.astype(np.float32), dtype=float, device=DEVICE, requires_grad=True)
        self.x = [self.zeros(n) for _ in range(states)]
        self.v = [self.zeros(n) for _ in range(states)]
        self.f = [self.zeros(n) for _ in range(max(1, states - 1))]
        self.loss = wp.zeros(1, dtype=float, device=DEVICE, requires_grad=True)

    def zeros(self, n: int) -> object:
        return wp.zeros(n, dtype=wp.vec3, device=DEVICE, requires_grad=True)

    def run(self, steps: int = STEPS, tape: object = None) -> None:
        self.x[0].assign(self.x0.astype(np.float32))
        self.v[0].assign(self.v0.astype(np.float32))
        self.loss.zero_()
        for s in range(steps):
            x, v, f = self.x[s % len(self.x)], self.v[s % len(self.x)], self.f[s % len(self.f)]
            x_next, v_next = self.x[(s + 1) % len(self.x)], self.v[(s + 1) % len(self.x)]
            f.zero_()
            inputs = [x, v, self.first, self.second, self.rest_array, self.k, f]
            wp.launch(pull, dim=len(self.ends), inputs=inputs, device=DEVICE)
            wp.launch(move, dim=len(self.x0), inputs=[x, v, f, x_next, v_next], device=DEVICE)
            if tape is not None:
                tape.step()
        last = self.x[steps % len(self.x)]
        wp.launch(
            judge, dim=len(self.x0), inputs=[last, wp.vec3(*TARGET), 1.0 / len(self.x0), self.loss], device=DEVICE
        )

    def in_double(self, k: np.ndarray) -> float:
        """The loss by NumPy."""
        x, v, n = self.x0.copy(), self.v0.copy(), len(self.x0)
        i, j = self.ends.T
        for _ in range(STEPS):
            d = x[j] - x[i]
            length = np.sqrt((d * d).sum(1))
            along = d / length[:, None]
            s = k * (length - self.rest) + DAMPING * ((v[j] - v[i]) * along).sum(1)
            force = along * s[:, None]
            f = np.stack([np.bincount(i, c, n) - np.bincount(j, c, n) for c in force.T], 1)
            a = f / MASS + [0.0, -9.8, 0.0]
            a[:, 1] -= np.minimum(x[:, 1], 0.0) * GROUND
            v = v + a * DT
            x = x + v * DT
        return float(((x - TARGET) ** 2).sum() / n)

    def error(self, gradient: np.ndarray) -> float:
        """Of the derivative along one direction, relative to differences of NumPy's runs."""
        way = np.random.default_rng(1).normal(size=len(self.k0))
        h = 1e-6 * 200.0 / np.abs(way).max()
        want = (self.in_double(self.k0 + h * way) - self.in_double(self.k0 - h * way)) / (2 * h)
        return float(abs(gradient.astype(np.float64) @ way - want) / abs(want))


def timed(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def gradient(ball: Ball, **schedule) -> tuple[np.ndarray, float, float, int]:
    """The gradient by stiffness, seconds of the recorded run and of the backward pass, and bytes that the tape kept."""
    tape = wp.Tape(**schedule)
    with tape:
        forward = timed(lambda: ball.run(tape=tape if schedule else None))
    backward = timed(lambda: tape.backward(ball.loss))
    found = ball.k.grad.numpy().copy()
    tape.zero()
    return found, forward, backward, getattr(tape, "saved_bytes", 0)


@case
def soft_ball() -> None:
    """Forward without a tape, with one, and backward, in turns; a buffer of the state for each step."""
    ball = Ball(STEPS + 1)
    ball.run()
    gradient(ball)
    rounds = [(timed(ball.run), *gradient(ball)) for _ in range(3 if arguments().quick else 9)]
    forward, taped, backward = (float(np.median([r[n] for r in rounds])) for n in (0, 2, 3))
    error = ball.error(rounds[0][1])
    report("soft ball, forward", forward, "ms", forward * 1e3)
    report("soft ball, forward on a tape", taped, "ms", taped * 1e3)
    report("soft ball, backward", backward, "ms", backward * 1e3, right=error < 1e-2, error=error)
    same = len({r[1].tobytes() for r in rounds}) == 1
    report("soft ball, backward : forward", backward / forward, "", backward / forward, same_bits=same)


@case
def soft_ball_graph() -> None:
    """Forward and backward as one graph."""
    ball = Ball(STEPS + 1)
    right, *_ = gradient(ball)
    with wp.ScopedCapture(device=DEVICE) as capture:
        tape = wp.Tape()
        with tape:
            ball.run()
        tape.backward(ball.loss)
    wp.capture_launch(capture.graph)
    same = bool(np.array_equal(ball.k.grad.numpy(), right))
    rounds = []
    for _ in range(3 if arguments().quick else 15):
        tape.zero()
        rounds.append(timed(lambda: wp.capture_launch(capture.graph)))
    report("soft ball, forward and backward, a graph", float(np.median(rounds)), "ms", float(np.median(rounds)) * 1e3,
           least_ms=min(rounds) * 1e3, same_bits=same)  # fmt: skip


@case
def all_pairs(n: int = 2048) -> None:
    """The gradient of a loss of the forces between 2,048 bodies."""
    at = np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32)
    p = wp.array(at, dtype=wp.vec3, device=DEVICE, requires_grad=True)
    a = wp.zeros(n, dtype=wp.vec3, device=DEVICE, requires_grad=True)
    loss = wp.zeros(1, dtype=float, device=DEVICE, requires_grad=True)
    times = []
    for _ in range(7):
        tape = wp.Tape()
        with tape:
            wp.launch(attract, dim=n, inputs=[p, a, n], device=DEVICE)
            wp.launch(judge, dim=n, inputs=[a, wp.vec3(0.0, 0.0, 0.0), 1.0, loss], device=DEVICE)
        times.append(timed(lambda tape=tape: tape.backward(loss)))
        total = float(np.abs(p.grad.numpy()).sum())
        tape.zero()
    seconds = float(np.median(times[1:]))
    report("n-body, 2048, backward", seconds, "ms", seconds * 1e3, total=total)


@case
def in_place() -> None:
    """The ball over one buffer: the same gradient, to the last bit."""
    if arguments().module != "treadle":
        return
    many, one = gradient(Ball(STEPS + 1)), gradient(Ball(1))
    report("soft ball in place, backward", one[2], "ms", one[2] * 1e3, right=many[0].tobytes() == one[0].tobytes())


@case
def schedule(steps: int = 5000) -> None:
    """``checkpoint="sqrt"`` against "all" on 5,000 steps: bytes kept and time taken."""
    if arguments().module != "treadle":
        return
    n = 20_000
    rng = np.random.default_rng(0)
    x0 = rng.uniform(0.5, 1.5, n).astype(np.float32)
    x = wp.array(x0, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)

    def run(kind: str) -> tuple[float, int, bytes]:
        x.assign(x0)
        loss.zero_()
        start = time.perf_counter()
        with wp.Tape(checkpoint=kind) as tape:
            for _ in range(steps):
                wp.launch(wander, dim=n, inputs=[x])
            wp.launch(total, dim=n, inputs=[x, loss])
        tape.backward(loss)
        seconds = time.perf_counter() - start
        found = x.grad.numpy().tobytes()
        kept = tape.saved_bytes
        tape.zero()
        tape.reset()
        return seconds, kept, found

    run("all"), run("sqrt")
    rounds = [(run("all"), run("sqrt")) for _ in range(3)]
    ratio = float(np.median([few[0] / every[0] for every, few in rounds]))
    (_, kept, want), (seconds, little, got) = rounds[-1]
    report("5,000 steps, sqrt : all, time", ratio, "", ratio, right=want == got and little <= 0.05 * kept,
           saved_bytes=little, of=kept, share=little / kept)  # fmt: skip


@wp.kernel
def wander(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 0.001 * wp.sin(x[i]) * x[i]


@wp.kernel
def total(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, x[wp.tid()])


@case
def trajectory(steps: int = 2000, n: int = 1000) -> None:
    """``path[t + 1] = f(path[t])`` in one array: what the tape keeps, in sizes of the array."""
    if arguments().module != "treadle":
        return
    path = wp.zeros((steps + 1, n), dtype=float, requires_grad=True)
    path.numpy()[0] = np.linspace(0.1, 1.0, n)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for t in range(steps):
            wp.launch(follow, dim=n, inputs=[path, t])
        wp.launch(total, dim=n, inputs=[path[steps], loss])
    seconds = timed(lambda: tape.backward(loss))
    kept = tape.saved_bytes / (4 * path.size)
    report("trajectory of 2,000 launches, kept : array", seconds, "", kept, right=kept <= 2.0)


if __name__ == "__main__":
    main()
