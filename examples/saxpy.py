"""y = a * x + y: one thread an element, the smallest program that moves memory."""

import numpy as np

import treadle as wp


@wp.kernel
def saxpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


def run(n: int = 100_003) -> dict[str, np.ndarray]:
    """Add 3 x to y for ``n`` elements; returns y."""
    x = wp.array(np.linspace(0.0, 1.0, n, dtype=np.float32))
    y = wp.full(n, 0.5, dtype=float)
    wp.launch(saxpy, dim=n, inputs=[3.0, x, y])
    return {"y": y.numpy()}


if __name__ == "__main__":
    y = run()["y"]
    print(f"{len(y)} elements, first {y[0]}, last {y[-1]}")
