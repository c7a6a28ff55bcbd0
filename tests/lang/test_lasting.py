"""Loops that may last run in blocks of rounds: they count as range does, over the ends of blocks."""

import numpy as np
import pytest

import treadle as wp
from treadle.codegen.emit.lasting import BLOCK


@wp.kernel
def rising(start: int, stop: int, out: wp.array(dtype=wp.int64), rounds: wp.array(dtype=int)):
    i = wp.tid()
    s, n = wp.int64(0), int(0)
    for a in range(start, stop):
        s += wp.int64(a ^ i)
        n += 1
    out[i], rounds[i] = s, n


@wp.kernel
def by_three(start: int, stop: int, out: wp.array(dtype=wp.int64), rounds: wp.array(dtype=int)):
    i = wp.tid()
    s, n = wp.int64(0), int(0)
    for a in range(start, stop, 3):
        s += wp.int64(a ^ i)
        n += 1
    out[i], rounds[i] = s, n


@wp.kernel
def falling(start: int, stop: int, out: wp.array(dtype=wp.int64), rounds: wp.array(dtype=int)):
    i = wp.tid()
    s, n = wp.int64(0), int(0)
    for a in range(start, stop, -7):
        s += wp.int64(a ^ i)
        n += 1
    out[i], rounds[i] = s, n


@wp.kernel
def varying(start: int, stop: int, out: wp.array(dtype=wp.int64), rounds: wp.array(dtype=int)):
    i = wp.tid()
    s, n = wp.int64(0), int(0)
    for a in range(start + i, stop - i):
        s += wp.int64(a ^ i)
        n += 1
    out[i], rounds[i] = s, n


@wp.kernel
def left(start: int, stop: int, out: wp.array(dtype=wp.int64), rounds: wp.array(dtype=int)):
    i = wp.tid()
    s, n = wp.int64(0), int(0)
    for a in range(start, stop):
        if a - start > (i + 1) * 99991:
            break
        s += wp.int64(a ^ i)
        n += 1
    out[i], rounds[i] = s, n


ranges = {
    rising: lambda a, b, i: range(a, b),
    by_three: lambda a, b, i: range(a, b, 3),
    falling: lambda a, b, i: range(a, b, -7),
    varying: lambda a, b, i: range(a + i, b - i),
    left: lambda a, b, i: range(a, min(b, a + (i + 1) * 99991 + 1)),
}
TOP, LOW = 2**31 - 1, -(2**31)


@pytest.mark.parametrize("kernel", ranges, ids=lambda k: k.key)
@pytest.mark.parametrize("count", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
def test_all_rounds_are_counted(kernel, count):
    reach = {by_three: 3, falling: 7}.get(kernel, 1) * count
    bounds = [(-5, -5 + reach), (TOP - reach, TOP)]
    if kernel is falling:
        bounds = [(5, 5 - reach), (LOW + reach, LOW)]
    if kernel is varying:
        bounds = [(100, 100 + reach)]
    for start, stop in bounds:
        threads = 19
        out = wp.zeros(threads, dtype=wp.int64, device="cpu")
        rounds = wp.zeros(threads, dtype=int, device="cpu")
        wp.launch(kernel, threads, [start, stop, out, rounds], device="cpu")
        for i in (0, 1, threads - 1):
            numbers = ranges[kernel](start, stop, i)
            ends = np.arange(numbers.start, numbers.stop, numbers.step, dtype=np.int64)
            assert rounds.numpy()[i] == len(numbers)
            assert out.numpy()[i] == (ends ^ i).sum()
