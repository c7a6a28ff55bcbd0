"""A square cloth of masses and springs, hung by two corners.

One thread a spring adds its force to both ends (two threads may add to one mass, hence ``atomic_add``), one thread a
mass then steps velocity and position (semi-implicit Euler).
"""

import numpy as np

import treadle as wp


@wp.kernel
def add_spring_forces(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    ends: wp.array(dtype=wp.vec2i),
    rest: wp.array(dtype=float),
    stiffness: float,
    damping: float,
    force: wp.array(dtype=wp.vec3),
):
    s = wp.tid()
    a = ends[s][0]
    b = ends[s][1]
    d = x[b] - x[a]
    length = wp.length(d)
    along = d / length
    speed = wp.dot(v[b] - v[a], along)
    f = along * (stiffness * (length - rest[s]) + damping * speed)
    wp.atomic_add(force, a, f)
    wp.atomic_sub(force, b, f)


@wp.kernel
def step(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    force: wp.array(dtype=wp.vec3),
    inv_mass: wp.array(dtype=float),
    dt: float,
):
    i = wp.tid()
    if inv_mass[i] > 0.0:
        v[i] += (force[i] * inv_mass[i] + wp.vec3(0.0, 0.0, -9.81)) * dt
        x[i] += v[i] * dt
    force[i] = wp.vec3(0.0, 0.0, 0.0)


def cloth(side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions (side², 3), spring ends (n, 2) and inverse masses (side²,) of a cloth one metre wide."""
    row, column = np.divmod(np.arange(side * side, dtype=np.int32), side)
    x = np.stack([column, row, np.zeros_like(row)], 1).astype(np.float32) / np.float32(side - 1)
    index = np.arange(side * side, dtype=np.int32).reshape(side, side)
    pairs = [(index[:, :-1], index[:, 1:]), (index[:-1], index[1:]), (index[:-1, :-1], index[1:, 1:])]
    ends = np.concatenate([np.stack([a.ravel(), b.ravel()], 1) for a, b in pairs])
    inv_mass = np.full(side * side, 100.0, np.float32)
    inv_mass[[index[-1, 0], index[-1, -1]]] = 0.0  # the two corners it hangs by
    return x, ends, inv_mass


def run(side: int = 24, steps: int = 50, dt: float = 1.0e-3) -> dict[str, np.ndarray]:
    """Positions and velocities, each (side², 3), after ``steps`` steps."""
    start, pairs, inverse = cloth(side)
    lengths = np.linalg.norm(start[pairs[:, 1]] - start[pairs[:, 0]], axis=1).astype(np.float32)
    x, ends = wp.array(start, dtype=wp.vec3), wp.array(pairs, dtype=wp.vec2i)
    rest, inv_mass = wp.array(lengths), wp.array(inverse)
    v, force = wp.zeros_like(x), wp.zeros_like(x)
    for _ in range(steps):
        wp.launch(add_spring_forces, dim=len(pairs), inputs=[x, v, ends, rest, 500.0, 0.1], outputs=[force])
        wp.launch(step, dim=len(start), inputs=[x, v, force, inv_mass, dt])
    return {"x": x.numpy(), "v": v.numpy()}


if __name__ == "__main__":
    x = run()["x"]
    print(f"lowest point {x[:, 2].min():.4f} m after 0.05 s")
