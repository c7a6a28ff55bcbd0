"""Passes keep what programs mean: random programs, compared by the oracle after each pass, bit for bit."""

import time

import numpy as np
import pytest

from tests.random_ir import arguments, program
from treadle.codegen import oracle
from treadle.ir import Block, Func, Op, Value
from treadle.ir.builder import Builder
from treadle.ir.show import show
from treadle.ir.verify import verify
from treadle.ir.walk import ops_of
from treadle.passes.fma import form_fma
from treadle.passes.pipeline import LOWER, NORMALIZE, run
from treadle.passes.scalarize import scalarize
from treadle.types.core import b1, i32, view


def bits(func: Func, seed: int) -> list[np.ndarray]:
    """What the program writes, as integers; all NaNs are one."""
    args = arguments(seed)
    oracle.run(func, args, 4)
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    return [np.where(np.isnan(a), np.nan, a).astype(np.float32).view(np.int32) if a.dtype.kind == "f" else a
            for a in arrays]  # fmt: skip


@pytest.mark.parametrize("seed", range(16))
def test_every_pass_keeps_every_bit(seed):
    func = verify(program(seed))
    wanted, scalar = bits(func, seed), False
    for p in (*NORMALIZE, *[p for p in LOWER if p is not form_fma]):
        func = p(func)
        scalar = scalar or p is scalarize
        verify(func, scalar)
        for a, b in zip(wanted, bits(func, seed)):
            assert np.array_equal(a, b), p.__name__


def test_the_whole_pipeline_leaves_a_scalar_program():
    for seed in range(5):
        func = run(LOWER, run(NORMALIZE, program(seed), verify=True), verify=True)
        verify(func, scalar=True)


def test_passes_are_deterministic():
    texts = {show(run(LOWER, run(NORMALIZE, program(7)))) for _ in range(3)}
    assert len(texts) == 1


def test_a_program_with_nothing_to_do_is_given_back_as_it_is():
    func = program(3)
    for _ in range(4):
        func = run(NORMALIZE, func)
    settled = func
    for p in NORMALIZE:
        assert p(settled) is settled, p.__name__


def test_passes_are_quick():
    func = program(1, 300)
    count, best = sum(1 for _ in ops_of(func.body)), 1.0
    for _ in range(5):
        start = time.process_time()
        run(LOWER, run(NORMALIZE, func))
        best = min(best, time.process_time() - start)
    assert best / count < 60e-6  # about 5 µs for eleven passes on a quiet machine


def test_deep_nesting_costs_no_more_than_its_size():
    """Forty guards in a loop, each around all that follows, as ``continue`` makes them."""
    depth = 40
    inner = Block((), (), ())
    test = Value(b1)
    for _ in range(depth):
        inner = Block((), (Op("if", (test,), (), {}, (inner, Block())), *_store().ops), ())
    bounds = Builder()
    args = (bounds.i32(0), bounds.i32(9), bounds.i32(1))
    loop = Op("for", args, (), {}, (Block((Value(i32),), inner.ops, ()),))
    array, index = _ARRAY
    func = Func("k", "kernel", (array, index, test), Block((), (*bounds.ops, loop), ()))
    start = time.process_time()
    run(LOWER, run(NORMALIZE, func))
    assert time.process_time() - start < 2.0


_ARRAY = (Value(view(i32, 1)), Value(i32))


def _store() -> Block:
    array, index = _ARRAY
    return Block((), (Op("store", (array, index, index)),), ())
