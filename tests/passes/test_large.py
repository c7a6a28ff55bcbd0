"""Large vectors and matrices live in own arrays."""

import numpy as np
import pytest

from tests.passes.test_pipeline import bits
from tests.random_ir import program
from treadle.codegen import oracle
from treadle.ir import Func
from treadle.ir.read import read
from treadle.ir.verify import verify
from treadle.ir.walk import ops_of
from treadle.passes import large
from treadle.passes.dce import remove_dead
from treadle.passes.large import place_large
from treadle.passes.pipeline import LOWER, NORMALIZE, run


@pytest.mark.parametrize("seed", range(20, 30))
def test_random_programs_mean_the_same_where_everything_counts_as_large(seed, monkeypatch):
    monkeypatch.setattr(large, "LARGEST", 4)
    func = run(NORMALIZE, program(seed))
    wanted = bits(func, seed)
    placed = verify(place_large(func))
    for a, b in zip(wanted, bits(placed, seed)):
        assert np.array_equal(a, b)


def of(t: str, size: int, body: str) -> Func:
    head = f"%0: view<{t},1,({size})>, %1: view<{t},1,({size})>, %2: i32"
    consts = "%3: i32 = const value=0\n %4: i32 = const value=1"
    return verify(read(f'kernel @0 "k" ({head}) {{\n {consts}\n {body}\n yield\n}}'))


def names(func: Func) -> list[str]:
    return [op.name for op in ops_of(func.body)]


MATRIX = ("mat<8,8,f32>", 256)


def test_small_programs_are_left_alone():
    func = program(1)
    assert place_large(func) is func


def test_the_code_does_not_grow_with_the_matrix():
    body = ("%5: mat<{n},{n},f32> = load %0, %3\n %6: mat<{n},{n},f32> = load %1, %3\n"
            "%7: mat<{n},{n},f32> = add %5, %6\n store %0, %3, %7")  # fmt: skip
    sizes = [len(names(place_large(of(f"mat<{n},{n},f32>", 4 * n * n, body.format(n=n))))) for n in (7, 20)]
    assert sizes[0] == sizes[1] < 60


def test_arithmetic_on_matrices():
    body = ("%5: mat<8,8,f32> = load %0, %3\n %6: mat<8,8,f32> = load %0, %4\n %7: mat<8,8,f32> = add %5, %6\n"
            "%8: f32 = extract %7 index=9\n %9: mat<8,8,f32> = mul %7, %8\n store %1, %3, %9\n"
            "%10: vec<8,f32> = pick %9, %2\n %11: mat<8,8,f32> = put %5, %10, %4\n store %1, %4, %11\n"
            "%12: bool = eq %5, %6\n %13: bool = ne %5, %6\n check %13 kind='assert' message=''\n"
            "if %12 {\n store %1, %4, %5\n yield\n } {\n yield\n }")  # fmt: skip
    func = run(LOWER, of(*MATRIX, body), verify=True)
    a = np.arange(128, dtype=np.float32).reshape(2, 8, 8)
    out = np.zeros_like(a)
    oracle.run(func, [a, out, 3])
    total = a[0] + a[1]
    assert np.array_equal(out[0], total * total[1, 1])
    wanted = a[0].copy()
    wanted[1] = out[0][3]
    assert np.array_equal(out[1], wanted)


FILL = (
    "%5: mat<8,8,f32> = load %0, %3\n %6: i32 = const value=8\n"
    "%7: mat<8,8,f32> = for %3, %6, %4, %5 {%8: i32, %9: mat<8,8,f32>\n %10: f32 = cast %8\n"
    "%11: mat<8,8,f32> = put %9, %10, %8, %8\n yield %11\n }\n store %1, %3, %7"
)


def test_a_component_is_changed_in_place_where_nobody_reads_the_old_value():
    func = of(*MATRIX, FILL)
    a, out = np.ones((1, 8, 8), np.float32), np.zeros((1, 8, 8), np.float32)
    placed = place_large(func)
    oracle.run(placed, [a, out, 0])
    wanted = a[0].copy()
    np.fill_diagonal(wanted, np.arange(8))
    assert np.array_equal(out[0], wanted)
    loops = [op for op in ops_of(placed.body) if op.name == "for"]
    (loop,) = [op for op in loops if any(inner.name == "cast" for inner in op.regions[0].ops)]
    assert not any(op.name in ("for", "load") for op in ops_of(loop.regions[0]))


def test_the_old_value_is_kept_where_somebody_reads_it():
    body = FILL.replace("yield %11", "store %1, %4, %9\n yield %11")
    a, out = np.ones((2, 8, 8), np.float32), np.zeros((2, 8, 8), np.float32)
    oracle.run(place_large(of(*MATRIX, body)), [a, out, 0])
    assert out[0][7, 7] == 7 and out[1][7, 7] == 1 and out[1][6, 6] == 6


def test_values_that_change_places_in_a_loop():
    body = ("%5: mat<8,8,f32> = load %0, %3\n %6: mat<8,8,f32> = load %0, %4\n"
            "%7: mat<8,8,f32>, %8: mat<8,8,f32> = for %3, %2, %4, %5, %6 "
            "{%9: i32, %10: mat<8,8,f32>, %11: mat<8,8,f32>\n"
            "yield %11, %10\n }\n store %1, %3, %7\n store %1, %4, %8")  # fmt: skip
    a = np.arange(128, dtype=np.float32).reshape(2, 8, 8)
    for rounds in (0, 1, 2, 3):
        out = np.zeros_like(a)
        oracle.run(place_large(of(*MATRIX, body)), [a, out, rounds])
        assert np.array_equal(out, a[::-1] if rounds % 2 else a)


def test_branches_choose_among_large_values():
    body = ("%5: mat<8,8,f32> = load %0, %3\n %6: mat<8,8,f32> = load %0, %4\n %7: bool = eq %2, %3\n"
            "%8: mat<8,8,f32>, %9: i32 = if %7 {\n yield %5, %2\n } {\n yield %6, %4\n }\n"
            "%10: mat<8,8,f32> = select %7, %6, %5\n store %1, %3, %8\n store %1, %4, %10")  # fmt: skip
    a = np.arange(128, dtype=np.float32).reshape(2, 8, 8)
    for flag in (0, 1):
        out = np.zeros_like(a)
        oracle.run(run(LOWER, of(*MATRIX, body)), [a, out, flag])
        assert np.array_equal(out, a[::-1] if flag else a)


def test_elements_may_lie_in_planes():
    text = ('kernel @0 "k" (%0: view<vec<40,f32>,1,(4),planar>) {\n %1: i32 = tid axis=0\n'
            " %2: vec<40,f32> = load %0, %1\n %3: vec<40,f32> = add %2, %2\n store %0, %1, %3\n yield\n}")  # fmt: skip
    a = np.asfortranarray(np.arange(80, dtype=np.float32).reshape(2, 40))
    wanted = a + a
    oracle.run(remove_dead(place_large(verify(read(text)))), [a], 2)
    assert np.array_equal(a, wanted)


def test_functions_are_given_and_give_components():
    text = ('function @0 "f" (%0: vec<40,f32>) {\n %1: vec<40,f32> = add %0, %0\n yield %1\n}\n'
            'kernel @1 "k" (%0: view<vec<40,f32>,1,(160)>) {\n %1: i32 = tid axis=0\n %2: vec<40,f32> = load %0, %1\n'
            " %3: vec<40,f32> = call %2 func=@0\n store %0, %1, %3\n yield\n}")  # fmt: skip
    a = np.arange(40, dtype=np.float32).reshape(1, 40)
    wanted = a + a
    oracle.run(run(LOWER, verify(read(text)), verify=True), [a])
    assert np.array_equal(a, wanted)
