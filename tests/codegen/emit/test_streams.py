"""Short kernels that wait for memory take their threads from several places in turn; nobody else sees it."""

import numpy as np
import pytest

from tests.codegen.emit.test_atomics import atomic
from tests.codegen.emit.test_memory import rand, text_of
from tests.codegen.harness import KernelBuilder, agrees_with_oracle, same_on_all_widths
from treadle.codegen.emit.streams import LEAST, RUN
from treadle.types.core import f32, i32, view

ARRAY = view(f32, 1)
SIZES = [LEAST - 1, LEAST, 4 * LEAST + 3 * RUN + 17]


def total():
    k = KernelBuilder((ARRAY, ARRAY))
    x, out = k.params
    atomic(k, "add", out, k.const(0, i32), k.load(x, k.tid()))
    return k.func()


def step(foreign=False, arrays=2):
    k = KernelBuilder((ARRAY,) * arrays)
    i = k.tid()
    values = [k.load(p, i) for p in k.params]
    found = values[0]
    for v in values[1:]:
        found = k.op("add", k.op("mul", found, found), v)
    k.store(k.params[0], (k.op("sub", k.const(SIZES[-1] - 1, i32), i) if foreign else i,), found)
    return k.func()


def in_streams(func) -> bool:
    return "runs" in {line.split(":")[0].rstrip("0123456789.") for line in text_of(func).splitlines() if ":" in line}


def test_which_kernels_do():
    assert in_streams(total()) and in_streams(step()) and in_streams(step(arrays=1))
    assert not in_streams(step(foreign=True))  # threads meet there
    assert not in_streams(step(arrays=3))  # three arrays are streams enough


@pytest.mark.parametrize("n", SIZES)
def test_every_thread_runs_once(n):
    make = lambda: (rand(n, seed=1), rand(n, seed=2))
    agrees_with_oracle(step(), n, make, *same_on_all_widths(step(), n, make))


@pytest.mark.parametrize("n", SIZES)
def test_sums_have_the_same_bits_for_all_widths(n):
    make = lambda: (rand(n, seed=3), np.zeros(1, np.float32))
    (x, out) = same_on_all_widths(total(), n, make)
    assert abs(out[0] - x.astype(np.float64).sum()) < 1e-3


def test_a_part_of_a_launch_begins_anywhere():
    n, begin = 5 * LEAST, 3 * RUN
    make = lambda: (rand(n, seed=4), rand(n, seed=5))
    whole = same_on_all_widths(step(), n, make)
    part = same_on_all_widths(step(), n, make, begin=begin, end=n - 1)
    before = make()
    assert np.array_equal(part[0][begin:-1], whole[0][begin:-1]) and part[0][-1] == before[0][-1]
    assert np.array_equal(part[0][:begin], before[0][:begin])
