"""The Mandelbrot set: how many steps of z = z² + c stay within the circle of radius 2. Writes mandelbrot.png.

Threads of one gang leave the loop at different times; those that are done wait under a mask.
"""

import numpy as np
from png import write_png

import treadle as wp

LIMIT = wp.constant(256)


@wp.kernel
def mandelbrot(counts: wp.array2d(dtype=int), centre: wp.vec2, scale: float):
    row, column = wp.tid()
    cx = centre[0] + scale * (float(column) / float(counts.shape[1]) - 0.5)
    cy = centre[1] + scale * (float(row) / float(counts.shape[0]) - 0.5)
    x = float(0.0)
    y = float(0.0)
    k = int(0)
    while k < LIMIT and x * x + y * y < 4.0:
        t = x * x - y * y + cx
        y = 2.0 * x * y + cy
        x = t
        k += 1
    counts[row, column] = k


def run(size: int = 512) -> dict[str, np.ndarray]:
    """Step counts of ``size`` by ``size`` points, 256 where the point never left."""
    counts = wp.zeros((size, size), dtype=int)
    wp.launch(mandelbrot, dim=(size, size), inputs=[counts, wp.vec2(-0.75, 0.0), 2.6])
    return {"counts": counts.numpy()}


if __name__ == "__main__":
    counts = run()["counts"]
    shade = np.where(counts == 256, 0, 255.0 * np.sqrt(counts / 256.0)).astype(np.uint8)
    print(f"{counts.sum()} steps, picture in {write_png('mandelbrot.png', shade)}")
