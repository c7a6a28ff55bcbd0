"""Random programs: machine code in several gang widths against the oracle, bit for bit."""

import numpy as np
import pytest

from tests.codegen.harness import Entry
from tests.random_ir import GRID, SIZE, arguments, program
from treadle.codegen import oracle
from treadle.codegen.emit.unit import Options
from treadle.ir import Func
from treadle.ir.walk import ops_of
from treadle.passes import inline
from treadle.passes.pipeline import LOWER, NORMALIZE, run

THREADS = 37  # gangs of 8 and 16, and a rest


def bits(args: list) -> list[np.ndarray]:
    """The arrays as integers; all NaNs are one."""
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    return [np.where(np.isnan(a), np.float32(np.nan), a).view(np.int32) if a.dtype.kind == "f" else a for a in arrays]


@pytest.mark.parametrize("seed", range(12))
def test_every_width_gives_what_the_oracle_gives(seed):
    assert THREADS <= SIZE
    compare(run(LOWER, run(NORMALIZE, program(seed, 40))), seed)


def test_functions_that_stay_calls_give_it_too(monkeypatch):
    monkeypatch.setattr(inline, "SMALL", 0)
    calls = 0
    for seed in range(20, 28):
        func = run(LOWER, run(NORMALIZE, program(seed, 60)))
        calls += sum(op.name == "call" for op in ops_of(func.body))
        compare(func, seed)
    assert calls > 5


@pytest.mark.parametrize("rows", [False, True])
def test_grids_of_two_dimensions_give_it_too(rows):
    for seed in range(40, 44):
        compare(run(LOWER, run(NORMALIZE, program(seed, 40, rank=2))), seed, GRID, rows)


def compare(func: Func, seed: int, dims: int | tuple[int, ...] = THREADS, rows: bool = False) -> None:
    """Run ``func`` in several widths and by the oracle."""
    wanted = arguments(seed)
    oracle.run(func, wanted, dims)
    for width in (1, 8, 16) if not rows else (1, 4, 8):  # gangs lie in a row that is at least as long
        args = arguments(seed)
        assert Entry(func, width, Options(rows=rows))(dims, *args) == 0
        for a, b in zip(bits(wanted), bits(args)):
            assert np.array_equal(a, b), f"width {width}"
