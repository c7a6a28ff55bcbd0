"""Kernels that arithmetic rules: all pairs of bodies, and a loop that threads leave at different times."""

import numpy as np
from common import case, load, main, median_time, report
from kernels import kernels

wp = load()
DEVICE = "cpu"
KERNELS = kernels(wp)


@case
def nbody(n: int = 4096) -> None:
    """All pairs of 4,096 bodies, counted as 20 operations a pair."""
    rng = np.random.default_rng(1)
    at, mass = rng.normal(size=(n, 3)).astype(np.float32), rng.uniform(0.5, 1.5, n).astype(np.float32)
    p, m = wp.array(at, dtype=wp.vec3, device=DEVICE), wp.array(mass, device=DEVICE)
    a = wp.zeros(n, dtype=wp.vec3, device=DEVICE)
    wp.launch(KERNELS.nbody, dim=n, inputs=[p, m, a, n], device=DEVICE)
    d = at.astype(np.float64) - at[0]
    want = (d * (mass / ((d * d).sum(1) + 1e-3) ** 1.5)[:, None]).sum(0)
    right = bool(np.allclose(a.numpy()[0], want, rtol=1e-3))
    seconds = median_time(lambda: wp.launch(KERNELS.nbody, dim=n, inputs=[p, m, a, n], device=DEVICE))
    report("n-body, 4096", seconds, "GFLOP/s", 20 * n * n / seconds / 1e9, right=right)


@case
def mandelbrot(size: int = 1024) -> None:
    """A million points, at most 256 steps each."""
    counts = wp.zeros((size, size), dtype=int, device=DEVICE)
    seconds = median_time(lambda: wp.launch(KERNELS.mandelbrot, dim=(size, size), inputs=[counts, size], device=DEVICE))
    steps = int(counts.numpy().sum(dtype=np.int64))
    right = abs(steps / 49.86e6 - 1.0) < 0.002  # rounding near the border moves single counts
    report("mandelbrot, 1024² x 256", seconds, "Mstep/s", steps / seconds / 1e6, right=right, steps=steps)


if __name__ == "__main__":
    main()
