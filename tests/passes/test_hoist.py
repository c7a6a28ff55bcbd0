"""What a loop does not change is computed before it."""

import numpy as np

from tests.passes.text import body, of
from treadle.codegen import oracle
from treadle.ir.verify import verify
from treadle.passes.hoist import hoist_unchanging

FOR = (
    "%9: i32 = const value=0\n %10: i32 = const value=1\n"
    " %11: f32 = for %9, %1, %10, %2 {{%12: i32, %13: f32\n {}\n yield %20\n }}"
)


def split(text: str) -> tuple[str, str]:
    """What stands before the (last) loop, and in it."""
    found = body(hoist_unchanging(of(text)))
    before, _, inside = found.rpartition("= for ")
    return before, inside


def test_pure_ops_move_with_what_reads_them():
    before, inside = split(FOR.format("%14: f32 = mul %2, %3\n %15: f32 = add %14, %3\n %20: f32 = add %13, %15"))
    assert "mul" in before and before.count("add") == 1 and inside.count("add") == 1


def test_what_depends_on_the_round_stays():
    text = FOR.format("%14: f32 = cast %12\n %15: f32 = mul %14, %3\n %20: f32 = add %13, %15")
    f = of(text)
    assert hoist_unchanging(f) is f


def test_what_is_in_a_branch_stays():
    before, inside = split(FOR.format("%20: f32 = if %4 {\n %15: f32 = div %2, %3\n yield %15\n } {\n yield %13\n }"))
    assert "div" in inside and "div" not in before


LOAD = "%14: f32 = load %0, %1\n %20: f32 = add %13, %14"


def test_loads_move_under_the_condition_that_the_loop_runs():
    before, inside = split(FOR.format(LOAD))
    assert "lt %8, %1" in before and "= if " in before and "load" in before and "poison" in before
    assert "load" not in inside


def test_no_condition_is_needed_where_the_loop_surely_runs():
    text = FOR.format(LOAD).replace("for %9, %1, %10", "for %9, %10, %10")
    before, inside = split(text)
    assert "load" in before and "if" not in before and "load" not in inside
    rounds = ("%9: f32 = while %2 {%10: f32\n %11: f32 = load %0, %1\n %12: f32 = add %10, %11\n"
              "%13: bool = lt %12, %3\n yield %13, %12\n }")  # fmt: skip
    found = body(hoist_unchanging(of(rounds)))
    assert found.index("load") < found.index("while") and "if" not in found


def test_loops_that_count_down_run_if_the_stop_is_smaller():
    text = FOR.format(LOAD).replace("%10: i32 = const value=1", "%10: i32 = const value=-1")
    assert "lt %1, %8" in split(text)[0]


def test_loads_stay_if_the_loop_writes_or_its_direction_is_unknown():
    assert "load" in split(FOR.format(LOAD + "\n store %0, %12, %20"))[1]
    assert "load" in split(FOR.format(LOAD).replace("for %9, %1, %10", "for %9, %10, %1"))[1]


def test_loads_do_not_pass_a_check():
    assert "load" in split(FOR.format("check %4 kind='assert' message=''\n " + LOAD))[1]
    assert "load" in split(FOR.format(LOAD + "\n check %4 kind='assert' message=''"))[0]


def test_ops_that_read_a_moved_load_follow_it():
    before, inside = split(FOR.format("%14: f32 = load %0, %1\n %15: f32 = mul %14, %3\n %16: f32 = load %0, %9\n"
                                      "%17: f32 = mul %16, %15\n %20: f32 = add %13, %17"))  # fmt: skip
    assert before.count("load") == 2 and before.count("mul") == 2 and inside.count("add") == 1


def test_loads_through_what_another_moved_load_found():
    func = hoist_unchanging(of(FOR.format("%14: i32 = load %7, %1\n %15: f32 = load %0, %14\n"
                                          "%20: f32 = add %13, %15") + "\n store %0, %9, %11"))  # fmt: skip
    text = body(verify(func))
    assert text.count("load") == 2 and text.rindex("load") < text.index("= for ")
    data = np.array([5.0, 3.0], np.float32)
    oracle.run(func, [data, 2, 5.0, 0.0, True, (0, 0, 0), np.zeros((1, 3), np.float32), np.array([9, 9, 1], np.int32)])
    assert data[0] == 11.0


def test_ops_leave_all_the_loops_that_do_not_change_them():
    inner = (
        "%20: f32 = for %9, %1, %10, %13 {%21: i32, %22: f32\n %23: f32 = mul %2, %3\n"
        " %24: f32 = add %22, %23\n yield %24\n }"
    )
    found = body(hoist_unchanging(of(FOR.format(inner))))
    assert found.index("mul") < found.index("for")


def test_a_loop_that_never_runs_reads_nothing():
    func = hoist_unchanging(of(FOR.format(LOAD) + "\n store %0, %9, %11"))
    data = np.ones(1, np.float32)
    args = [data, 0, 5.0, 0.0, True, (0, 0, 0), np.zeros((1, 3), np.float32), np.zeros(1, np.int32)]
    oracle.run(func, args)
    assert data[0] == 5.0
    data[:0] = 0
    empty = [np.zeros(0, np.float32), *args[1:]]
    assert oracle.run(hoist_unchanging(of(FOR.format(LOAD))), empty).values == [()]


def test_what_works_on_the_tape_stays():
    """Each round pushes, pops and marks by itself; the largest of the lanes is that of those that run the round."""
    rounds = (
        "%14: i64 = mark\n push %2 site=1\n record %3 site=2\n %15: i32 = lanes_max %1\n seek %14\n"
        " %16: f32 = recall site=2\n %17: f32 = pop site=1\n %18: f32 = add %16, %17\n %20: f32 = add %13, %18"
    )
    f = of(FOR.format(rounds))
    assert hoist_unchanging(f) is f
