"""Run-length encoding: where values change, which run an element is in therefore, then one thread a run."""

from __future__ import annotations

from typing import Any

import treadle as wp

from ..base.errors import ArrayError
from .scan import array_scan

INTS = (wp.int32, wp.uint32, wp.int64, wp.uint64)


@wp.kernel
def mark_changes(values: wp.array(dtype=Any), changes: wp.array(dtype=int)):
    """1 where a value differs from the one before it, so that a run other than the first begins there."""
    i = wp.tid()
    changes[i + 1] = wp.where(values[i + 1] != values[i], 1, 0)


@wp.kernel
def place_runs(
    values: wp.array(dtype=Any), runs: wp.array(dtype=int), run_values: wp.array(dtype=Any), starts: wp.array(dtype=int)
):
    """The value of each run and where it begins. ``runs[i]`` is the number of the run that element i is in."""
    i = wp.tid()
    run = runs[i + 1]
    if run != runs[i]:
        run_values[run] = values[i + 1]
        starts[run] = i + 1


@wp.kernel
def measure_runs(
    values: wp.array(dtype=Any), runs: wp.array(dtype=int), starts: wp.array(dtype=int),
    run_values: wp.array(dtype=Any), run_lengths: wp.array(dtype=int), run_count: wp.array(dtype=int),
):  # fmt: skip
    """A run ends where the next one begins, the last one with the values. Thread 0 adds what is known of the first run
    and of all."""
    i = wp.tid()
    last = runs[runs.shape[0] - 1]
    if i <= last:
        end = runs.shape[0]
        if i < last:
            end = starts[i + 1]
        run_lengths[i] = end - starts[i]
    if i == 0:
        run_values[0] = values[0]
        run_count[0] = last + 1


def runlength_encode(
    values: wp.array, run_values: wp.array, run_lengths: wp.array, run_count: wp.array | None = None,
    value_count: int | None = None,
) -> Any:  # fmt: skip
    """Write consecutive equal values as one value and a length: 1 1 1 2 2 3 becomes the values 1 2 3, lengths 3 2 1.

    Args:
        values: int32 (beyond Warp: also uint32, int64, uint64).
        run_values: what the runs consist of, of the dtype of ``values``, with room for ``value_count``.
        run_lengths: int32, with room for ``value_count``.
        run_count: int32, gets the number of runs; made if left out.
        value_count: how many values are looked at; default all.

    Returns: ``run_count``, or the number where that was left out.

    Raises:
        ArrayError: devices or dtypes that differ, other dtypes, too little room, or a negative count.

    >>> import treadle as wp
    >>> values = wp.array([7, 7, 7, 5, 5, 9], dtype=int)
    >>> runs, lengths = wp.zeros(6, dtype=int), wp.zeros(6, dtype=int)
    >>> wp.utils.runlength_encode(values, runs, lengths)
    3
    >>> runs.list()[:3], lengths.list()[:3]
    ([7, 5, 9], [3, 2, 1])
    """
    device, n = values.device, values.size if value_count is None else value_count
    _check(values, run_values, run_lengths, run_count, n)
    count = wp.zeros(1, dtype=int, device=device) if run_count is None else run_count
    if n == 0 and run_count is None:
        return 0
    if n == 0:
        count.zero_()
    else:
        values = values.flatten()[:n]
        runs, starts = (wp.zeros(n, dtype=int, device=device) for _ in range(2))
        wp.launch(mark_changes, n - 1, inputs=[values], outputs=[runs], device=device)
        array_scan(runs, runs)
        wp.launch(place_runs, n - 1, inputs=[values, runs], outputs=[run_values, starts], device=device)
        inputs, outputs = [values, runs, starts], [run_values, run_lengths, count]
        wp.launch(measure_runs, n, inputs=inputs, outputs=outputs, device=device)
    return int(count.numpy()[0]) if run_count is None else run_count


def _check(values: wp.array, run_values: wp.array, run_lengths: wp.array, run_count: wp.array | None, n: int) -> None:
    if values.device != run_values.device or values.device != run_lengths.device:
        raise ArrayError("values, run_values and run_lengths lie on different devices")
    if run_count is not None and run_count.device != values.device:
        raise ArrayError("run_count does not lie on the device of the other arrays")
    if n < 0:
        raise ArrayError(f"value_count must be non-negative, got {n}")
    if min(values.size, run_values.size, run_lengths.size) < n:
        raise ArrayError(f"every array must have room for value_count ({n}) elements")
    if values.dtype is not run_values.dtype:
        both = f"{values.dtype.__name__} vs {run_values.dtype.__name__}"
        raise ArrayError(f"the values and run_values data types do not match ({both})")
    for name, a in (("run_lengths", run_lengths), ("run_count", run_count)):
        if a is not None and a.dtype is not wp.int32:
            raise ArrayError(f"{name} array must be of type int32")
    if values.dtype not in INTS:
        raise ArrayError(f"Unsupported data type: {values.dtype.__name__}")
