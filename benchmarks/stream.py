"""Kernels that memory rules: each element is read and written once."""

import numpy as np
from common import case, load, main, median_time, report

wp = load()
DEVICE = "cpu"


@wp.kernel
def saxpy_kernel(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.kernel
def integrate_kernel(x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3), g: wp.vec3, dt: float):
    i = wp.tid()
    v[i] = v[i] + g * dt
    x[i] = x[i] + v[i] * dt


@case
def saxpy(n: int = 10_000_000) -> None:
    """10 million floats: two read, one written, 12 bytes an element."""
    x = wp.array(np.full(n, 0.5, np.float32), device=DEVICE)
    y = wp.zeros(n, dtype=float, device=DEVICE)
    wp.launch(saxpy_kernel, dim=n, inputs=[2.0, x, y], device=DEVICE)
    right = bool((y.numpy() == 1.0).all())
    seconds = median_time(lambda: wp.launch(saxpy_kernel, dim=n, inputs=[1e-3, x, y], device=DEVICE))
    report("saxpy, 1e7 floats", seconds, "GB/s", 12 * n / seconds / 1e9, right=right)


@case
def integrate(n: int = 1_000_000) -> None:
    """A million vec3 positions and velocities, 48 bytes a body."""
    x, v = (wp.zeros(n, dtype=wp.vec3, device=DEVICE) for _ in range(2))
    inputs = [x, v, wp.vec3(0.0, -9.8, 0.0), 1e-3]
    wp.launch(integrate_kernel, dim=n, inputs=inputs, device=DEVICE)
    right = bool(np.allclose(x.numpy()[:, 1], -9.8e-6, rtol=1e-5))
    seconds = median_time(lambda: wp.launch(integrate_kernel, dim=n, inputs=inputs, device=DEVICE))
    report("integrate, 1e6 vec3", seconds, "GB/s", 48 * n / seconds / 1e9, right=right)


if __name__ == "__main__":
    main()
