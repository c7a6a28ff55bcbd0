"""A tour of the language: structs, functions that return several values, kernels made by a Python function, generic
functions and kernels, constants, values computed while compiling, local vectors and matrices, loops that stop early.
"""

from typing import Any

import numpy as np

import treadle as wp

GRAVITY = wp.constant(9.81)
WEIGHTS = (0.25, 0.5, 0.25)


@wp.struct
class Ball:
    position: wp.vec3
    velocity: wp.vec3
    radius: float
    bounces: int


@wp.func
def bounce(height: float, speed: float, radius: float):
    """Reflect at the ground: height, speed and whether it touched."""
    if height < radius:
        return 2.0 * radius - height, -0.8 * speed, True
    return height, speed, False


@wp.kernel
def drop(balls: wp.array(dtype=Ball), steps: int, dt: float):
    i = wp.tid()
    ball = balls[i]
    for _ in range(steps):
        if ball.bounces >= 3:  # three bounces are enough for anyone
            break
        ball.velocity[2] -= GRAVITY * dt
        ball.position += ball.velocity * dt
        height, speed, touched = bounce(ball.position[2], ball.velocity[2], ball.radius)
        ball.position[2] = height
        ball.velocity[2] = speed
        if touched:
            ball.bounces += 1
    balls[i] = ball


def filtered(function):
    """A kernel that applies ``function``, then smooths over three neighbours; the weights are compiled in."""

    @wp.kernel(module="unique")
    def kernel(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        total = float(0.0)
        for k in range(wp.static(len(WEIGHTS))):
            j = wp.clamp(i + k - 1, 0, x.shape[0] - 1)
            total += function(x[j]) * wp.static(WEIGHTS[k])
        y[i] = total

    return kernel


@wp.func
def square(x: float):
    return x * x


@wp.func
def halve(x: float):
    return 0.5 * x


@wp.func
def mix(a: Any, b: Any, t: Any):
    """Linear blend of two numbers or two vectors; compiled anew for each type."""
    return a * (type(t)(1.0) - t) + b * t


@wp.kernel
def blend(a: wp.array(dtype=Any), b: wp.array(dtype=Any), t: Any, out: wp.array(dtype=Any)):
    i = wp.tid()
    out[i] = mix(a[i], b[i], t)


@wp.kernel
def turn(points: wp.array2d(dtype=wp.vec3), angles: wp.array(dtype=float)):
    i, j = wp.tid()
    axis = wp.normalize(wp.vec3(1.0, 1.0, float(j)))
    rotation = wp.quat_from_axis_angle(axis, angles[i])
    scale = wp.mat33(2.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 4.0)
    points[i, j] = wp.quat_rotate(rotation, scale * points[i, j])


def run(n: int = 1001) -> dict[str, np.ndarray]:
    """Results of each part, by name."""
    rng = np.random.default_rng(3)
    x = rng.uniform(0.0, 4.0, n).astype(np.float32)

    start = np.zeros(n, dtype=Ball.numpy_dtype())
    start["position"][:, 2] = 1.0 + x
    start["radius"] = 0.1
    balls = wp.array(start, dtype=Ball)
    wp.launch(drop, dim=n, inputs=[balls, 3000, 0.001])
    ball = balls.numpy()

    source, squares, halves = wp.array(x), wp.zeros(n, dtype=float), wp.zeros(n, dtype=float)
    wp.launch(filtered(square), dim=n, inputs=[source], outputs=[squares])
    wp.launch(filtered(halve), dim=n, inputs=[source], outputs=[halves])

    doubles, numbers = wp.array(x.astype(np.float64)), wp.zeros(n, dtype=wp.float64)
    wp.launch(blend, dim=n, inputs=[doubles, wp.ones(n, dtype=wp.float64), wp.float64(0.25)], outputs=[numbers])
    pairs, vectors = wp.array(np.stack([x, -x], 1), dtype=wp.vec2), wp.zeros(n, dtype=wp.vec2)
    wp.launch(blend, dim=n, inputs=[pairs, wp.ones(n, dtype=wp.vec2), 0.75], outputs=[vectors])

    corners = np.stack([x, x + 1.0, x + 2.0, 1.0 - x], 1)[:, :, None] * np.array([1.0, 0.5, -1.0], np.float32)
    points = wp.array(corners, dtype=wp.vec3)
    wp.launch(turn, dim=points.shape, inputs=[points, source])
    return {
        "height": ball["position"][:, 2],
        "bounces": ball["bounces"],
        "squares": squares.numpy(),
        "halves": halves.numpy(),
        "numbers": numbers.numpy(),
        "vectors": vectors.numpy(),
        "points": points.numpy(),
    }


if __name__ == "__main__":
    for name, value in run().items():
        print(f"{name:8s} {str(value.shape):12s} first {value[0]}")
