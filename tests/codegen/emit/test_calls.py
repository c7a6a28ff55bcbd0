"""Functions that stay functions: gang functions under the caller's mask."""

import numpy as np
import pytest

from tests.codegen.harness import WIDTHS, Entry, KernelBuilder, agrees_with_oracle, same_on_all_widths
from treadle.ir.builder import Builder
from treadle.ir.node import Func, Value
from treadle.types.core import STR, b1, f32, fixed, i32, view

N = 45


def function(name, types, write):
    """``write(b, *params)`` gives the results."""
    params, b = tuple(Value(t) for t in types), Builder()
    results = tuple(write(b, *params))
    return Func(
        name, "function", params, b.block((), results), tuple(types), tuple(f"a{i}" for i in range(len(params)))
    )


def call(k, func, *args):
    return k.b.op("call", args, tuple(y.type for y in func.body.yields), func=func)


def test_a_call_in_a_branch_touches_only_the_lanes_that_call():
    def poke(b, out, i, v):
        b.op("store", (out, i, b.one("mul", (v, v), f32)))
        return [b.one("add", (v, v), f32), b.one("neg", (v,), f32)]

    poke = function("poke", (view(f32, 1), i32, f32), poke)
    k = KernelBuilder((view(f32, 1), view(f32, 1), view(f32, 1)))
    x, y, z = k.params
    i = k.tid()
    v = k.load(x, i)
    a, b = k.if_(k.op("gt", v, k.const(0.0, f32)), lambda: list(call(k, poke, y, i, v)), lambda: [v, v])
    k.store(z, (i,), k.op("sub", a, b))
    make = lambda: (
        np.random.default_rng(0).normal(size=N).astype(np.float32),
        np.zeros(N, np.float32),
        np.zeros(N, np.float32),
    )
    out = same_on_all_widths(k.func(), N, make)
    agrees_with_oracle(k.func(), N, make, out[1], out[2])


def test_own_arrays_and_thread_indices_inside_functions():
    def fill(b, own, n):
        b.op("store", (own, n, b.one("cast", (b.one("tid", (), i32, axis=0),), f32)))
        return []

    fill = function("fill", (view(f32, 1, space="local"), i32), fill)
    k = KernelBuilder((view(i32, 1), view(f32, 1)))
    where, y = k.params
    i = k.tid()
    (own,) = k.b.op("local", (), (view(f32, 1, space="local"),), type=fixed(f32, (4,)))
    call(k, fill, own, k.load(where, i))
    call(k, fill, own, k.const(1, i32))
    k.store(
        y, (i,), k.op("add", k.op("mul", k.load(own, k.const(0, i32)), k.const(3.0, f32)), k.load(own, k.const(1, i32)))
    )
    make = lambda: (np.random.default_rng(1).integers(0, 4, N).astype(np.int32), np.zeros(N, np.float32))
    out = same_on_all_widths(k.func(), N, make)
    agrees_with_oracle(k.func(), N, make, out[1])


@pytest.mark.parametrize("width", WIDTHS)
def test_a_check_that_fails_in_a_function_stops_its_thread(width):
    def demand(b, v):
        b.op("check", (b.one("gt", (v, b.const(0.0, f32)), b1),), kind="assert",
             message="positive")  # fmt: skip
        return [b.one("sqrt", (v,), f32)]

    demand = function("demand", (f32,), demand)
    k = KernelBuilder((view(f32, 1), view(f32, 1)))
    x, y = k.params
    i = k.tid()
    (root,) = call(k, demand, k.load(x, i))
    k.store(y, (i,), root)
    x, y = np.ones(N, np.float32), np.zeros(N, np.float32)
    x[19] = -1.0
    entry = Entry(k.func(), width)
    assert entry(N, x, y) == 1
    assert entry.fault[1] == 19 and y[:19].all() and y[19] == 0


def test_a_function_that_prints_makes_its_kernel_run_in_thread_order():
    def say(b, i):
        b.op("print", (b.const("thread", STR), i), format="%s %d\n")
        return []

    say = function("say", (i32,), say)
    k = KernelBuilder((view(f32, 1),))
    call(k, say, k.tid())
    meta = Entry(k.func(), 8).binary.meta
    assert meta["width"] == 1 and meta["prints"] == [{"format": "%s %d\n", "values": [{"text": "thread"}, "i32"]}]
