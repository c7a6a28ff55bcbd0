"""Bodies that attract each other, all pairs, stepped by the leapfrog rule (kick, drift, kick).

Gravity is softened: a body at distance r pulls with m r / (r² + e²)^(3/2), so close encounters stay finite.
The total energy is the check: leapfrog keeps it within a small band for ever (Hairer, Lubich, Wanner, "Geometric
Numerical Integration", chapter I).
"""

import numpy as np

import treadle as wp

SOFTENING = wp.constant(0.05)


@wp.func
def pull(p: wp.vec3, q: wp.vec3, m: float):
    """Acceleration of a body at p by a mass m at q."""
    d = q - p
    inv = 1.0 / wp.sqrt(wp.dot(d, d) + SOFTENING * SOFTENING)
    return d * (m * inv * inv * inv)


@wp.kernel
def accelerate(p: wp.array(dtype=wp.vec3), m: wp.array(dtype=float), a: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    acc = wp.vec3(0.0, 0.0, 0.0)
    for j in range(p.shape[0]):
        acc += pull(p[i], p[j], m[j])
    a[i] = acc


@wp.kernel
def kick(v: wp.array(dtype=wp.vec3), a: wp.array(dtype=wp.vec3), dt: float):
    i = wp.tid()
    v[i] += a[i] * dt


@wp.kernel
def drift(p: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3), dt: float):
    i = wp.tid()
    p[i] += v[i] * dt


def start(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A rotating ball of ``n`` bodies with total mass 1: positions, velocities, masses."""
    rng = np.random.default_rng(7)
    p = rng.normal(size=(n, 3)).astype(np.float32) * np.float32(0.5)
    v = np.cross([0.0, 0.0, 0.8], p).astype(np.float32)
    return p, v, np.full(n, 1.0 / n, np.float32)


def energy(p: np.ndarray, v: np.ndarray, m: np.ndarray) -> float:
    """Kinetic plus potential energy, in double precision."""
    p, v, m = (each.astype(np.float64) for each in (p, v, m))
    r = np.sqrt(((p[:, None] - p[None]) ** 2).sum(2) + 0.05**2)
    pairs = np.triu(np.outer(m, m) / r, 1)
    return float(0.5 * (m * (v**2).sum(1)).sum() - pairs.sum())


def run(n: int = 1000, steps: int = 20, dt: float = 0.01) -> dict[str, np.ndarray]:
    """Step ``n`` bodies ``steps`` times; returns positions and velocities, each (n, 3)."""
    positions, velocities, masses = start(n)
    p, v = wp.array(positions, dtype=wp.vec3), wp.array(velocities, dtype=wp.vec3)
    m, a = wp.array(masses), wp.zeros(n, dtype=wp.vec3)
    wp.launch(accelerate, dim=n, inputs=[p, m], outputs=[a])
    for _ in range(steps):
        wp.launch(kick, dim=n, inputs=[v, a, 0.5 * dt])
        wp.launch(drift, dim=n, inputs=[p, v, dt])
        wp.launch(accelerate, dim=n, inputs=[p, m], outputs=[a])
        wp.launch(kick, dim=n, inputs=[v, a, 0.5 * dt])
    return {"p": p.numpy(), "v": v.numpy()}


if __name__ == "__main__":
    out = run()
    before, after = energy(*start(1000)), energy(out["p"], out["v"], start(1000)[2])
    print(f"energy {before:.6f} before, {after:.6f} after 20 steps")
