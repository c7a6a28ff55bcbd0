"""Random programs of launches, copies, branches and loops: a graph leaves what the same calls leave when they run at
once, on four threads at a time, with chains and without."""

import random
import threading
from functools import partial

import numpy as np
import pytest

import treadle as wp
from treadle.runtime import chains

N = 3000


@wp.kernel
def scale(x: wp.array(dtype=float), y: wp.array(dtype=float), k: float):
    i = wp.tid()
    y[i] = k * x[i] + 0.25


@wp.kernel
def blend(x: wp.array(dtype=float), y: wp.array(dtype=float), k: float):
    i = wp.tid()
    if x[i] > k:
        y[i] = 0.5 * (x[i] + y[i])


@wp.kernel
def shift(x: wp.array(dtype=float), y: wp.array(dtype=float), k: float):
    i = wp.tid()
    y[i] = x[(i + 1) % x.shape[0]] - k


@wp.kernel
def gather(x: wp.array(dtype=float), y: wp.array(dtype=float), k: float):
    i = wp.tid()
    wp.atomic_add(y, i // 3, x[i] * 0.125)


@wp.kernel
def count(left: wp.array(dtype=int)):
    left[0] -= 1


KERNELS = (scale, scale, blend, blend, shift, gather)


class Program:
    """Random operations over a few arrays; ``run`` does them, in a capture or not."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        values = np.random.default_rng(seed)
        self.memory = [wp.array(values.random(2 * N), dtype=float) for _ in range(4)]
        self.flags = [wp.array([self.rng.randrange(3)], dtype=int) for _ in range(3)]
        self.left = wp.zeros(1, dtype=int)
        self.seed = self.rng.random()

    def run(self) -> None:
        self.rng.seed(self.seed)
        self.temporaries = [wp.empty(N, dtype=float), wp.full(N, 0.5)]
        wp.copy(self.temporaries[0], self.memory[0], count=N)
        self.body(14, 0)
        wp.copy(self.memory[1], self.temporaries[1], count=N)
        del self.temporaries

    def array(self) -> wp.array:
        a = self.rng.choice([*self.memory, *self.temporaries])
        if a.size == N:
            return a
        part = slice(0, N)
        return a[self.rng.choice([part, part, slice(N, 2 * N), slice(N // 2, N // 2 + N), slice(0, None, 2)])]

    def body(self, steps: int, depth: int) -> None:
        for _ in range(steps):
            what = self.rng.random()
            x, y = self.array(), self.array()
            if what < 0.7:
                kernel = self.rng.choice(KERNELS)
                if kernel in (shift, gather) and np.shares_memory(x._raw(), y._raw()):
                    kernel = scale  # the others read what a neighbour writes: a race
                same = x.strides == y.strides and x.ptr == y.ptr
                if same or not np.shares_memory(x._raw(), y._raw()):
                    wp.launch(kernel, dim=N, inputs=[x, y, round(self.rng.random(), 2)])
            elif what < 0.8:
                wp.copy(y, x)
            elif what < 0.85:
                y.fill_(round(self.rng.random(), 2))
            elif depth < 2 and what < 0.92:
                flag = self.rng.choice(self.flags)
                seed = self.rng.random()
                bodies = [partial(self.nested, seed + k, depth) for k in (0, 1)]
                wp.capture_if(flag, *bodies)
                self.rng.seed(seed)
            elif depth == 0:
                self.left.fill_(3)
                seed = self.rng.random()
                wp.capture_while(self.left, partial(self.nested, seed, depth, True))
                self.rng.seed(seed)

    def nested(self, seed: float, depth: int, counts: bool = False) -> None:
        self.rng.seed(seed)
        self.body(4, depth + 2 if counts else depth + 1)
        if counts:
            wp.launch(count, dim=1, inputs=[self.left])

    def contents(self) -> list[bytes]:
        return [a.numpy().tobytes() for a in self.memory]


@pytest.mark.host
@pytest.mark.parametrize("how", ["merged", "chunks", "apart"])
def test_graphs_do_what_the_calls_do(how, monkeypatch):
    monkeypatch.setattr(chains, "WORTH", 1 << 40 if how == "apart" else 1)
    monkeypatch.setattr(chains, "MERGED", 0 if how == "merged" else 1 << 40)
    most = 9 if how == "merged" else 25  # that many programs; merging compiles
    wrong, found = [], []

    def work(seeds):
        try:
            for seed in seeds:
                plain, captured = Program(seed), Program(seed)
                with wp.ScopedCapture() as capture:
                    captured.run()
                for flags in ((0, 1, 2), (1, 0, 0)):
                    for program in (plain, captured):
                        for flag, value in zip(program.flags, flags, strict=True):
                            flag.fill_(value)
                    plain.run()
                    wp.capture_launch(capture.graph)
                    if plain.contents() != captured.contents():
                        wrong.append(seed)
                table = capture.graph._table
                found.append(table.merged if how == "merged" else table.chains)
        except BaseException as error:
            wrong.append(error)

    work([0])  # compiles
    threads = [threading.Thread(target=work, args=([*range(1 + k, most, 4)],)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and (not any(found) if how == "apart" else sum(found) >= most)
