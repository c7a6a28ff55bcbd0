"""How many operations on floats a stage does in a world, and how many this machine does in a second at best."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

import treadle as wp
from treadle.lang.ahead import Deferred
from treadle.runtime.array import array

OPERATIONS = {"add": 1, "sub": 1, "mul": 1, "div": 1, "sqrt": 1, "min": 1, "max": 1, "fma": 2}  # by ops of the IR
ROUNDS, THREADS = 1 << 12, 1 << 10  # of the loop that `peak` times
REPEATS = 9


def operations(launches: Iterable[Deferred]) -> int:
    """The operations on floats that the first thread of ``launches`` does: counted by an interpreter, which takes about
    a microsecond for each op. Arrays hold afterwards what they held before."""
    held: list[tuple[np.ndarray, np.ndarray]] = []
    try:
        return sum([_counted(launch, held) for launch in launches])
    finally:
        for values, before in reversed(held):
            values[...] = before


def _counted(launch: Deferred, held: list[tuple[np.ndarray, np.ndarray]]) -> int:
    """The operations of one launch; arrays that it may change are added to ``held``, with what they hold now."""
    from treadle.codegen import oracle
    from treadle.lang.compile import translate
    from treadle.types.core import Scalar

    overload = launch.kernel.overload(launch.types, None)
    func = translate(launch.kernel, overload.types, overload.variant(launch.dims).options).func
    args = [a.numpy() if isinstance(a, array) else a for a in launch.args]
    changed = [values for values, (a, stored) in zip(args, launch.touched()) if stored and isinstance(a, array)]
    held += [(values, values.copy()) for values in changed]
    total = 0
    for op, count in oracle.run(func, args, counted=True).counts.items():
        t = op.results[0].type if op.results else None
        if isinstance(t, Scalar) and t.is_float:
            total += OPERATIONS.get(op.name, 0) * count
    return total


@cache
def chains(real: Any) -> wp.Kernel:
    """The kernel that `peak` times, for one precision: twelve sums of products that do not wait for each other."""
    twelve = wp.types.vector(length=12, dtype=real)

    @wp.kernel
    def run_chains(out: wp.array(dtype=real), factor: real, rounds: int):
        i = wp.tid()
        x = twelve(real(i))
        for _ in range(rounds):
            for k in range(12):
                x[k] = x[k] * factor + factor
        total = real(0.0)
        for k in range(12):
            total = total + x[k]
        out[i] = total

    return run_chains


def peak(real: Any) -> float:
    """Operations on floats a second that all workers do together: of multiplications with an addition, by measurement,
    the best of a few times."""
    kernel, out, best = chains(real), wp.zeros(THREADS, dtype=real), float("inf")
    for _ in range(REPEATS):
        begin = time.perf_counter()
        wp.launch(kernel, dim=THREADS, inputs=[out, real(0.5), ROUNDS])
        wp.synchronize()
        best = min(best, time.perf_counter() - begin)
    return 2 * 12 * ROUNDS * THREADS / best
