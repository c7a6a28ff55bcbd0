"""Sum, smallest, largest and number of elements, each by one atomic to one address."""

import numpy as np

import treadle as wp


@wp.kernel
def reduce(
    x: wp.array(dtype=float),
    total: wp.array(dtype=float),
    smallest: wp.array(dtype=float),
    largest: wp.array(dtype=float),
    positive: wp.array(dtype=int),
):
    i = wp.tid()
    wp.atomic_add(total, 0, x[i])
    wp.atomic_min(smallest, 0, x[i])
    wp.atomic_max(largest, 0, x[i])
    if x[i] > 0.0:
        wp.atomic_add(positive, 0, 1)


def data(n: int) -> np.ndarray:
    return np.random.default_rng(5).normal(0.25, 1.0, n).astype(np.float32)


def run(n: int = 300_007) -> dict[str, np.ndarray]:
    """Reductions of ``n`` normal variates, each an array of one element."""
    out = {
        "total": wp.zeros(1, dtype=float),
        "smallest": wp.full(1, 1.0e30, dtype=float),
        "largest": wp.full(1, -1.0e30, dtype=float),
        "positive": wp.zeros(1, dtype=int),
    }
    wp.launch(reduce, dim=n, inputs=[wp.array(data(n))], outputs=list(out.values()))
    return {name: each.numpy() for name, each in out.items()}


if __name__ == "__main__":
    for name, value in run().items():
        print(f"{name:9s} {value[0]}")
