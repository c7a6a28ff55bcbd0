"""Threads that add to the same places: histograms, sums and counters, ten million elements each."""

import importlib
import time

import numpy as np
from common import arguments, case, load, main, median_time, report

wp = load()
DEVICE = "cpu"
N = 10_000_000


@wp.kernel
def count_kernel(index: wp.array(dtype=int), bins: wp.array(dtype=int)):
    i = wp.tid()
    wp.atomic_add(bins, index[i], 1)


@wp.kernel
def weigh_kernel(index: wp.array(dtype=int), weight: wp.array(dtype=float), bins: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(bins, index[i], weight[i])


@wp.kernel
def sum_kernel(x: wp.array(dtype=float), total: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(total, 0, x[i])


@wp.kernel
def compact_kernel(x: wp.array(dtype=float), limit: float, kept: wp.array(dtype=int), out: wp.array(dtype=float)):
    i = wp.tid()
    if x[i] > limit:
        j = wp.atomic_add(kept, 0, 1)
        out[j] = x[i]


@wp.kernel
def seat_kernel(cell: wp.array(dtype=int), counts: wp.array(dtype=int), seat: wp.array(dtype=int)):
    i = wp.tid()
    seat[i] = wp.atomic_add(counts, cell[i], 1)


def count(size: int, name: str) -> None:
    index = np.random.default_rng(2).integers(0, size, N).astype(np.int32)
    source, bins = wp.array(index, device=DEVICE), wp.zeros(size, dtype=int, device=DEVICE)
    wp.launch(count_kernel, dim=N, inputs=[source, bins], device=DEVICE)
    right = bool((bins.numpy() == np.bincount(index, minlength=size)).all())
    seconds = median_time(lambda: wp.launch(count_kernel, dim=N, inputs=[source, bins], device=DEVICE))
    report(name, seconds, "M/s", N / seconds / 1e6, right=right)


@case
def histogram_small() -> None:
    count(256, "histogram, 256 bins")


@case
def histogram_large() -> None:
    count(1_000_000, "histogram, 1e6 bins")


@case
def histogram_float(size: int = 1_000_000) -> None:
    """Float weights; ``repeats`` says whether a second run gave the same bits."""
    rng = np.random.default_rng(3)
    index = wp.array(rng.integers(0, size, N).astype(np.int32), device=DEVICE)
    weight = wp.array(rng.uniform(size=N).astype(np.float32), device=DEVICE)
    bins = wp.zeros(size, dtype=float, device=DEVICE)
    results = []
    for _ in range(2):
        bins.zero_()
        wp.launch(weigh_kernel, dim=N, inputs=[index, weight, bins], device=DEVICE)
        results.append(bins.numpy().copy())
    want = np.bincount(index.numpy(), weight.numpy().astype(np.float64), size)
    right = bool(np.allclose(results[0], want, rtol=1e-5))
    seconds = median_time(lambda: wp.launch(weigh_kernel, dim=N, inputs=[index, weight, bins], device=DEVICE))
    repeats = bool((results[0] == results[1]).all())
    report("float histogram, 1e6 bins", seconds, "M/s", N / seconds / 1e6, right=right, repeats=repeats)
    if hasattr(wp, "DeterministicMode"):
        any_order(lambda: wp.launch(weigh_kernel, dim=N, inputs=[index, weight, bins], device=DEVICE))


def any_order(call) -> None:
    """The same with additions in any order, the two in turns: how much longer the order of threads takes."""
    modes = wp.config.deterministic, wp.DeterministicMode.NOT_GUARANTEED
    least = [float("inf")] * 2
    for _ in range(5 if arguments().quick else 25):
        for k, wp.config.deterministic in enumerate(modes):
            call()  # compiled, or found again
            start = time.perf_counter()
            call()
            least[k] = min(least[k], time.perf_counter() - start)
    wp.config.deterministic = modes[0]
    report(
        "float histogram, 1e6 bins, any order", least[1], "M/s", N / least[1] / 1e6, ordered_takes=least[0] / least[1]
    )


def numbers() -> tuple[np.ndarray, float]:
    x = np.random.default_rng(4).uniform(size=N).astype(np.float32)
    return x, float(x.sum(dtype=np.float64))


@case
def sum_atomic() -> None:
    """All threads add to one float."""
    values, want = numbers()
    x, total = wp.array(values, device=DEVICE), wp.zeros(1, dtype=float, device=DEVICE)
    wp.launch(sum_kernel, dim=N, inputs=[x, total], device=DEVICE)
    error = abs(float(total.numpy()[0]) - want) / want
    seconds = median_time(lambda: wp.launch(sum_kernel, dim=N, inputs=[x, total], device=DEVICE))
    report("sum by atomic_add", seconds, "GB/s", 4 * N / seconds / 1e9, relative_error=error)


@case
def sum_utility() -> None:
    """The same by ``utils.array_sum``."""
    utils = importlib.import_module(f"{arguments().module}.utils")
    values, want = numbers()
    x, total = wp.array(values, device=DEVICE), wp.zeros(1, dtype=float, device=DEVICE)
    utils.array_sum(x, out=total)
    error = abs(float(total.numpy()[0]) - want) / want
    seconds = median_time(lambda: utils.array_sum(x, out=total))
    report("utils.array_sum", seconds, "GB/s", 4 * N / seconds / 1e9, relative_error=error)


@case
def compaction() -> None:
    """Half of the elements move up, their places drawn from a counter; ``ordered`` says whether they keep their order,
    which threads that run in any order would not."""
    values, _ = numbers()
    x, out = wp.array(values, device=DEVICE), wp.zeros(N, dtype=float, device=DEVICE)
    kept = wp.zeros(1, dtype=int, device=DEVICE)

    def run() -> None:
        kept.zero_()
        wp.launch(compact_kernel, dim=N, inputs=[x, 0.5, kept, out], device=DEVICE)

    run()
    want, found = values[values > 0.5], out.numpy()[: int(kept.numpy()[0])]
    right, ordered = len(found) == len(want) and bool(np.isclose(found.sum(), want.sum())), np.array_equal(found, want)
    seconds = median_time(run)
    report("compaction", seconds, "M/s", N / seconds / 1e6, right=right, ordered=bool(ordered))


@case
def seats(size: int = 10_000) -> None:
    """Each element draws its place within its cell, as in the first pass of a hash grid."""
    cells = np.random.default_rng(5).integers(0, size, N).astype(np.int32)
    cell, seat = wp.array(cells, device=DEVICE), wp.zeros(N, dtype=int, device=DEVICE)
    counts = wp.zeros(size, dtype=int, device=DEVICE)
    wp.launch(seat_kernel, dim=N, inputs=[cell, counts, seat], device=DEVICE)
    right = bool((counts.numpy() == np.bincount(cells, minlength=size)).all())
    seconds = median_time(lambda: wp.launch(seat_kernel, dim=N, inputs=[cell, counts, seat], device=DEVICE))
    report("seats in 1e4 cells", seconds, "M/s", N / seconds / 1e6, right=right)


if __name__ == "__main__":
    main()
