"""Stores that both arms end with."""

import numpy as np

from tests.codegen.harness import KernelBuilder, same_on_all_widths
from treadle.ir.verify import verify
from treadle.ir.walk import ops_of
from treadle.passes.sink import sink_stores
from treadle.types.core import f32, i32, view

N = 45


def kernel(other_index=False, more=False):
    k = KernelBuilder((view(f32, 1), view(f32, 1)))
    x, y = k.params
    i, one, zero = k.tid(), k.const(1, i32), k.const(0.0, f32)
    v, j = k.load(x, i), k.op("add", i, one) if other_index else i

    def small():
        if more:
            k.store(x, (i,), zero)
        k.store(y, (i,), k.op("neg", v))
        return []

    def rest():
        arms = [lambda value=value: [k.store(y, (j,), value)][:0] for value in (v, k.op("mul", v, v))]
        k.if_(k.op("gt", v, k.const(1.0, f32)), *arms)
        return []

    k.if_(k.op("lt", v, zero), small, rest)
    return k.func()


def stores(func):
    return [op for op in ops_of(func.body) if op.name == "store"]


def arrays():
    return np.random.default_rng(0).normal(size=N).astype(np.float32), np.zeros(N + 1, np.float32)


def test_a_chain_of_branches_writes_once():
    before, after = kernel(), sink_stores(kernel())
    verify(after, True)
    assert (len(stores(before)), len(stores(after))) == (3, 1) and stores(after)[0] is after.body.ops[-1]
    for a, b in zip(same_on_all_widths(before, N, arrays), same_on_all_widths(after, N, arrays), strict=True):
        assert a.tobytes() == b.tobytes()


def test_an_effect_that_comes_before_the_store_stays():
    after = sink_stores(kernel(more=True))
    assert len(stores(after)) == 2 and stores(after)[-1] is after.body.ops[-1]


def test_stores_to_different_elements_stay():
    func = kernel(other_index=True)
    after = sink_stores(func)
    assert len(stores(after)) == 2  # the inner two have one place, the outer two have not


def test_a_function_without_such_stores_is_given_back():
    k = KernelBuilder((view(f32, 1),))
    k.store(k.params[0], (k.tid(),), k.const(1.0, f32))
    func = k.func()
    assert sink_stores(func) is func


def test_stores_do_not_pass_what_works_on_the_tape():
    k = KernelBuilder((view(f32, 1),))
    (x,) = k.params
    i = k.tid()
    v = k.load(x, i)

    def arm(value, site):
        k.store(x, (i,), value)
        k.b.op("push", (value,), site=site)
        return []

    k.if_(k.op("gt", v, v), lambda: arm(v, 1), lambda: arm(k.op("neg", v), 2))
    func = k.func()
    assert sink_stores(func) is func
