"""Own arrays with known indices become values."""

import numpy as np
import pytest

from tests.passes.text import body, of
from treadle.codegen import oracle
from treadle.ir import Func
from treadle.ir.read import read
from treadle.ir.verify import verify
from treadle.passes.promote import promote_arrays

LOCAL = "%9: local<f32,1,(4)> = local type=!fixed<f32,(3)>\n %10: i32 = const value=0\n %11: i32 = const value=1\n "


def after(text: str) -> str:
    return body(promote_arrays(of(LOCAL + text)))


def test_stores_and_loads_at_known_indices_go():
    assert after("store %9, %11, %2\n %12: f32 = load %9, %11\n store %0, %1, %12\n %13: f32 = load %9, %10\n"
                 "store %0, %1, %13") == """
  %8: f32 = const value=0x0.0p+0
  %9: i32 = const value=0
  %10: i32 = const value=1
  store %0, %1, %2
  store %0, %1, %8
"""  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "store %9, %1, %2",  # an index that is not known
        "%12: i32 = const value=3\n %13: f32 = load %9, %12",  # outside
        "%12: f32 = atomic %9, %10, %2 op='add'",
        "%12: local<f32,1,(4)> = slice %9, %10, %11, %11 axis=0",
        "%12: u64 = address %9",
        "%12: local<f32,1,(4)> = if %4 {\n yield %9\n } {\n yield %9\n }",
    ],
)
def test_arrays_that_are_used_otherwise_stay(text):
    assert "= local" in after("store %9, %10, %2\n " + text)


def both(text: str, *args) -> tuple[Func, list]:
    """The program without its arrays, and what it computes, which is what it computed with them."""
    func = verify(read(text), scalar=True)
    made = verify(promote_arrays(func), scalar=True)
    results = []
    for f in (func, made):
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        oracle.run(f, copies)
        results.append(copies)
    for a, b in zip(*results):
        assert np.array_equal(a, b)
    assert "local" not in body(made)
    return made, results[1]


HEAD = (
    'kernel @0 "k" (%0: view<f32,1,(4)>, %1: i32, %2: f32, %3: bool) {\n %4: i32 = const value=0\n'
    ' %5: i32 = const value=1\n'
    " %6: local<f32,1,(4)> = local type=!fixed<f32,(2)>\n store %6, %4, %2\n "
)
TAIL = " %90: f32 = load %6, %4\n %91: f32 = load %6, %5\n store %0, %4, %90\n store %0, %5, %91\n yield\n}"


@pytest.mark.parametrize("flag", [True, False])
def test_branches_yield_what_they_store(flag):
    text = HEAD + (
        "if %3 {\n %7: f32 = add %2, %2\n store %6, %5, %7\n yield\n } {\n store %6, %4, %2\n yield\n"
        " }\n"
    ) + TAIL
    made, (out, *_) = both(text, np.zeros(2, np.float32), 0, 3.0, flag)
    assert out.tolist() == [3, 6 if flag else 0]


@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_loops_carry_what_they_store(rounds):
    text = HEAD + (
        "for %4, %1, %5 {%10: i32\n %11: f32 = load %6, %4\n %12: f32 = load %6, %5\n %13: f32 = add %11, %12\n"
        "store %6, %4, %12\n store %6, %5, %13\n yield\n }\n"
    ) + TAIL
    _, (out, *_) = both(text, np.zeros(2, np.float32), rounds, 1.0, True)
    a, b = 1.0, 0.0
    for _ in range(rounds):
        a, b = b, a + b
    assert out.tolist() == [a, b]


def test_an_array_made_in_a_loop_starts_as_zeros_each_time():
    text = HEAD + (
        "for %4, %1, %5 {%10: i32\n %11: local<f32,1,(4)> = local type=!fixed<f32,(2)>\n %12: f32 = load %11, %4\n"
        "%13: f32 = load %6, %5\n %14: f32 = add %13, %12\n store %6, %5, %14\n %15: f32 = add %2, %2\n"
        " store %11, %4, %15\n"
        "yield\n }\n"
    ) + TAIL
    _, (out, *_) = both(text, np.zeros(2, np.float32), 4, 1.0, True)
    assert out.tolist() == [1, 0]


def test_elements_and_parts_of_elements():
    text = (
        'kernel @0 "k" (%0: view<f32,1,(4)>, %1: f32, %2: f32, %3: f32) {\n %4: i32 = const value=0\n'
        ' %5: i32 = const value=1\n'
        " %6: local<vec<3,f32>,2,(24,12)> = local type=!fixed<vec<3,f32>,(2,2)>\n store %6, %5, %4, %1, %2, %3\n"
        " %7: local<f32,2,(24,12)> = field %6 index=1\n store %7, %5, %4, %3\n"
        " %8: f32, %9: f32, %10: f32 = load %6, %5, %4\n %11: f32 = load %7, %4, %5\n"
        " store %0, %4, %9\n store %0, %5, %11\n yield\n}"
    )
    _, (out, *_) = both(text, np.zeros(2, np.float32), 1.0, 2.0, 3.0)
    assert out.tolist() == [3, 0]


def test_stores_under_a_flag_deep_in_a_loop():
    text = HEAD + (
        "%40: i32 = while %4 {%10: i32\n %11: i32 = add %10, %5\n %12: bool = lt %11, %1\n if %3 {\n"
        " %13: f32 = load %6, %5\n"
        "%14: f32 = add %13, %2\n if %12 {\n store %6, %5, %14\n yield\n } {\n yield\n }\n yield\n } {\n yield\n }\n"
        "yield %12, %11\n }\n"
    ) + TAIL
    _, (out, *_) = both(text, np.zeros(2, np.float32), 4, 2.0, True)
    assert out.tolist() == [2, 6]


def test_a_program_without_arrays_is_given_back():
    f = of("%9: f32 = add %2, %3\n store %0, %1, %9")
    assert promote_arrays(f) is f
