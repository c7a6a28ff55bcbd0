"""Compiled kernels under the launch driver: counters on many workers give what threads one after the other give."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as wp
from tests.codegen.harness import Entry
from tests.codegen.programs import Counters
from treadle.base.errors import IndexOutOfRange, KernelAssertionError
from treadle.codegen import cpu
from treadle.codegen.emit.unit import Options
from treadle.ir.effects import effects
from treadle.lang.natives import install
from treadle.runtime.device import get_device
from treadle.runtime.launch import Program

COUNTED = Options(order="counted")
SEEDS = [seed for seed in range(20) if effects(Counters(seed).func()).order == "counted"]
N = 20_011  # two chunks with counters of their own


@pytest.fixture(params=[1, 2, 3, 7])
def workers(request):
    before = wp.config.workers
    wp.config.workers = request.param
    yield request.param
    wp.config.workers = before


def values(seed: int) -> list:
    r = np.random.default_rng(seed)
    arrays = [r.integers(-50, 50, N).astype(np.int32), r.normal(size=N).astype(np.float32)]
    outs = [np.zeros(N, np.float32), np.zeros(N, np.int32)]
    counters = [r.integers(0, 9, 4).astype(np.int32), np.zeros(8, np.int32), np.zeros(4 * N, np.int32)]
    return [*arrays, r.normal(size=(N, 3)).astype(np.float32), *outs, 7, 1.5, *counters]


def on_device(x):
    if not isinstance(x, np.ndarray):
        return x
    return wp.array(x, dtype=wp.vec3) if x.ndim == 2 else wp.array(x)


def bits(x) -> bytes:
    """What is in an array, all NaNs being one."""
    return np.nan_to_num(np.array(x.numpy() if isinstance(x, wp.array) else x), nan=7.0).tobytes()


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs_count_as_threads_in_order_do(seed):
    func = Counters(seed).func()
    want = values(seed)
    assert Entry(func, 1, COUNTED)(N, *want) == 0
    binary = cpu.build(func, cpu.host_target(8), COUNTED)
    assert binary.meta["counting"]
    binary.meta.update(weight=1e5, counting_weight=0.0)  # two workers are enough
    install()
    program = Program(get_device("cpu").load(binary), func.signature, "kernel")
    before = wp.config.workers
    try:
        for wp.config.workers in (1, 2, 3):
            given = values(seed)
            args = [on_device(x) for x in given]
            program.run(args, (N,))
            assert [bits(a) for a in want] == [bits(a) for a in args]
    finally:
        wp.config.workers = before


@wp.kernel
def one_site(x: wp.array(dtype=int), y: wp.array(dtype=int), count: wp.array(dtype=int), out: wp.array(dtype=int)):
    i = wp.tid()
    y[i] = i % 7
    if x[i] > 3:
        out[i] = wp.atomic_add(count, 0, 1)


@wp.kernel
def two_sites(x: wp.array(dtype=int), y: wp.array(dtype=int), count: wp.array(dtype=int), out: wp.array(dtype=int)):
    i = wp.tid()
    y[i] = i % 7
    out[i] = wp.atomic_add(count, 0, 1)
    if x[i] > 3:
        wp.atomic_add(count, 0, 1)


@pytest.mark.parametrize("n", [20, N])
def test_what_decides_may_be_what_the_kernel_writes(workers, n):
    """``x`` and ``y`` are one array: a thread reads what it wrote, and a pass that writes nothing would not see it."""
    high = np.arange(n) % 7 > 3
    for kernel, amounts in ((one_site, high.astype(int)), (two_sites, 1 + high)):
        x, count, out = wp.zeros(n, dtype=int), wp.zeros(1, dtype=int), wp.zeros(n, dtype=int)
        wp.launch(kernel, dim=n, inputs=[x, x, count, out])
        want = amounts.cumsum() - amounts
        assert (out.numpy() == (want if kernel is two_sites else np.where(high, want, 0))).all()
        assert count.numpy()[0] == amounts.sum()


@wp.kernel
def looks_up(
    x: wp.array(dtype=int), table: wp.array(dtype=int), count: wp.array(dtype=int), out: wp.array(dtype=int)
):
    i = wp.tid()
    assert x[i] != 7
    first = wp.atomic_add(count, 0, 1)
    second = wp.atomic_add(count, 1, table[x[i]] + first % 2)
    out[second] = i
    wp.atomic_add(count, 1, 1)


@wp.kernel
def looks_back(
    x: wp.array(dtype=int), table: wp.array(dtype=int), count: wp.array(dtype=int), out: wp.array(dtype=int)
):
    i = wp.tid()
    assert wp.atomic_add(count, 0, 1) < 9000
    out[i] = x[i] + table[0]


@pytest.fixture
def checked():
    before, wp.config.mode = wp.config.mode, "debug"
    yield
    wp.config.mode = before


def faulty(kernel, x: dict[int, int], room: int = 2 * N) -> None:
    """Launch ``kernel`` with zeros but for ``x``."""
    values = np.zeros(N, np.int32)
    values[list(x)] = list(x.values())
    count, out = wp.zeros(2, dtype=int), wp.zeros(room, dtype=int)
    wp.launch(kernel, dim=N, inputs=[wp.array(values), wp.array([0, 1], dtype=int), count, out])


def test_faults_are_those_of_threads_in_order(workers, checked):
    faulty(looks_up, {5: 1})
    with pytest.raises(IndexOutOfRange, match=r"index 9 .*'table'.*thread 700\)"):
        faulty(looks_up, {700: 9, 5700: 8})
    with pytest.raises(IndexOutOfRange, match=r"index 9 .*'table'.*thread 14000\)"):
        faulty(looks_up, {14_000: 9, 19_000: 7})
    with pytest.raises(KernelAssertionError, match=r"x\[i\] != 7.*thread 14000\)"):
        faulty(looks_up, {14_000: 7, 14_001: 9})
    with pytest.raises(IndexOutOfRange, match=r"index 15000 .*'out'.*thread 10000\)"):  # not seen by a counting pass
        faulty(looks_up, {14_000: 9}, 15_000)
    with pytest.raises(KernelAssertionError, match=r"thread 9000\)"):  # looks at what counting finds out
        faulty(looks_back, {})
