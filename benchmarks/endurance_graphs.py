"""Graphs for a long time: threads that launch at once, beside JAX and PyTorch, in forked processes, while arrays come
and go around them.

    python benchmarks/endurance_graphs.py [--threads 4] [--replays 10000] [--forks 5]

Each thread replays a graph again and again, with input that is new each time, and compares every element of what comes
out. Between replays it frees arrays and makes others, whose content must stay what it was; now and then it captures
the graph anew, calls a gradient by JAX and one by PyTorch, and launches by hand. Meanwhile, and once more when all is
quiet, the process forks, and the child does some of the same. The exit status is 1 if a number is wrong.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import threading
import time
import traceback
import warnings
from pathlib import Path

import jax
import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import treadle as wp

SIZE = 3000  # elements that graphs work on: more than one chunk of work


@wp.kernel
def grow(x: wp.array(dtype=int), by: wp.array(dtype=int), y: wp.array(dtype=int)):
    i = wp.tid()
    y[i] = 3 * x[i] + by[0]


@wp.kernel
def count(x: wp.array(dtype=int), bins: wp.array(dtype=int)):
    wp.atomic_add(bins, x[wp.tid()] & 63, 1)


@wp.kernel
def bend(x: wp.array(dtype=float), s: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = s * x[i] * x[i]


def bent_twice(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    between = wp.empty_like(x)
    wp.launch(bend, dim=len(x), inputs=[x, 2.0], outputs=[between])
    wp.launch(bend, dim=len(x), inputs=[between, 1.0], outputs=[y])


in_jax, in_torch = wp.jax_callable(bent_twice), wp.torch_function(bend)
slope_by_jax = jax.jit(jax.grad(lambda x: in_jax(x)[0].sum()))  # of 4 x**4
POINTS = np.float32([0.0, 0.25, 0.5, 1.0, 2.0] * 200)  # powers of two and their products: no number is rounded


class Work:
    """Arrays, and a graph over them: y = 3 (3 x + by) + by by way of memory that is the graph's own, sums, counts."""

    def __init__(self, rng: np.random.Generator):
        self.rng = rng
        self.x, self.by = wp.zeros(SIZE, dtype=int), wp.zeros(1, dtype=int)
        self.y, self.sums, self.bins = (wp.zeros(n, dtype=int) for n in (SIZE, SIZE, 64))
        with wp.ScopedCapture() as capture:
            between = wp.empty(SIZE, dtype=int)
            wp.launch(grow, dim=SIZE, inputs=[self.x, self.by, between])
            wp.launch(grow, dim=SIZE, inputs=[between, self.by, self.y])
            self.bins.zero_()
            wp.launch(count, dim=SIZE, inputs=[self.y, self.bins])
            wp.utils.array_scan(self.y, self.sums)
        self.graph = capture.graph

    def replay(self) -> None:
        """One run on new numbers, every result compared."""
        x, by = self.rng.integers(0, 1000, SIZE, dtype=np.int32), int(self.rng.integers(100))
        self.x.assign(x)
        self.by.fill_(by)
        wp.capture_launch(self.graph)
        y = 9 * x + 4 * by
        self.compare("y", self.y, y)
        self.compare("sums", self.sums, np.cumsum(y, dtype=np.int32))
        self.compare("counts", self.bins, np.bincount(y & 63, minlength=64))

    def compare(self, what: str, found: wp.array, wanted: np.ndarray) -> None:
        wrong = np.flatnonzero(found.numpy() != wanted)
        if len(wrong):
            k = wrong[0]
            raise AssertionError(f"{what}[{k}] is {found.numpy()[k]}, not {wanted[k]}; {len(wrong)} are wrong")


class Crowd:
    """Arrays that come and go: each holds one number throughout, which nobody else may change."""

    def __init__(self, rng: np.random.Generator):
        self.rng, self.arrays = rng, []

    def change(self) -> None:
        """Let some go, and make others of any size."""
        while self.arrays and self.rng.random() < 0.5:
            a, number = self.arrays.pop(self.rng.integers(len(self.arrays)))
            assert (a.numpy() == number).all(), f"an array of {number} holds {np.unique(a.numpy())[:5]}"
        while len(self.arrays) < 12:
            number = int(self.rng.integers(1 << 30))
            self.arrays.append((wp.full(int(self.rng.integers(1, 40_000)), number, dtype=int), number))


def by_hand() -> None:
    """A launch and the gradients of both frameworks; what they compute is exact in floats."""
    x, y = wp.array(POINTS, dtype=float), wp.zeros(len(POINTS), dtype=float)
    wp.launch(bend, dim=len(POINTS), inputs=[x, 4.0], outputs=[y])
    assert np.array_equal(y.numpy(), 4.0 * POINTS**2), "a launch by hand"
    assert np.array_equal(slope_by_jax(POINTS), 16.0 * POINTS**3), "the gradient by JAX"
    t = torch.tensor(POINTS, requires_grad=True)
    in_torch(t, 4.0).sum().backward()
    assert np.array_equal(t.grad.numpy(), 8.0 * POINTS), "the gradient by PyTorch"


def endure(number: int, replays: int, failed: list[str]) -> None:
    """What one thread does; what went wrong is put into ``failed``."""
    try:
        rng = np.random.default_rng(number)
        work, crowd = Work(rng), Crowd(rng)
        for k in range(replays):
            if failed:
                return
            work.replay()
            crowd.change()
            if k % 100 == 99:
                by_hand()
            if k % 250 == 249:
                work = Work(rng)
                gc.collect()
    except BaseException:
        failed.append(f"thread {number}: {traceback.format_exc()}")


def fork(replays: int) -> int:
    """The exit status of a child that launches and replays; JAX's own threads are not there, so it leaves JAX alone."""
    if not hasattr(os, "fork"):
        return 0
    with warnings.catch_warnings():  # that there are threads, which is what is looked at here
        warnings.simplefilter("ignore")
        child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        rng = np.random.default_rng(0)
        work, crowd = Work(rng), Crowd(rng)
        for _ in range(replays):
            work.replay()
            crowd.change()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def run(threads: int, replays: int, forks: int) -> list[str]:
    """All of it; what went wrong, in words."""
    by_hand()
    Work(np.random.default_rng(0)).replay()  # compiled once, before many want it
    failed: list[str] = []
    crew = [threading.Thread(target=endure, args=(k, replays, failed)) for k in range(threads)]
    for each in crew:
        each.start()
    for k in range(forks):
        time.sleep(0.2)
        if status := fork(20):
            failed.append(f"child {k}, forked beside {threads} threads, ended with {status}")
    for each in crew:
        each.join()
    if status := fork(100):
        failed.append(f"a child forked at the end ended with {status}")
    by_hand()
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--replays", type=int, default=10_000, help="of each thread")
    parser.add_argument("--forks", type=int, default=5, help="while the threads work")
    given = parser.parse_args()
    wp.config.quiet = True
    start = time.perf_counter()
    failed = run(given.threads, given.replays, given.forks)
    for text in failed:
        print(text, file=sys.stderr)
    print(json.dumps({**vars(given), "seconds": round(time.perf_counter() - start, 1), "failed": len(failed)}))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
