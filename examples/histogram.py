"""Histograms: threads count into bins that other threads count into too. Weights are floats, and still every run,
on any number of cores, gives the same bits."""

import numpy as np

import treadle as wp


@wp.kernel
def count(values: wp.array(dtype=float), bins: wp.array(dtype=int)):
    i = wp.tid()
    n = bins.shape[0]
    b = wp.clamp(int(values[i] * float(n)), 0, n - 1)
    wp.atomic_add(bins, b, 1)


@wp.kernel
def weigh(values: wp.array(dtype=float), weights: wp.array(dtype=float), bins: wp.array(dtype=float)):
    i = wp.tid()
    n = bins.shape[0]
    b = wp.clamp(int(values[i] * float(n)), 0, n - 1)
    wp.atomic_add(bins, b, weights[i])


def data(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Values in [0, 1) and weights."""
    rng = np.random.default_rng(11)
    return rng.beta(2.0, 5.0, n).astype(np.float32), rng.uniform(0.5, 1.5, n).astype(np.float32)


def run(n: int = 200_000, bins: int = 64) -> dict[str, np.ndarray]:
    """Counts (int32) and summed weights (float32) of each bin."""
    values, weights = (wp.array(each) for each in data(n))
    counts, sums = wp.zeros(bins, dtype=int), wp.zeros(bins, dtype=float)
    wp.launch(count, dim=n, inputs=[values], outputs=[counts])
    wp.launch(weigh, dim=n, inputs=[values, weights], outputs=[sums])
    return {"counts": counts.numpy(), "sums": sums.numpy()}


if __name__ == "__main__":
    for row in run(bins=16)["counts"]:
        print(f"{row:7d} {'#' * (row // 600)}")
