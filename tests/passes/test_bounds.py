"""Loops that are sure to end are marked."""

from tests.passes.text import body, of
from treadle.passes.bounds import mark_bounded

LOOP = (
    "%9: i32 = const value=0\n %10: i32 = const value=1\n"
    "%11: i32 = while %9 {{%12: i32\n %13: i32 = {}\n %14: bool = lt {}\n yield %14, %13\n }}"
)


def marked(step: str, test: str) -> bool:
    return "bounded=true" in body(mark_bounded(of(LOOP.format(step, test))))


def test_counting_up_to_a_limit_is_bounded():
    assert marked("add %12, %10", "%13, %1")
    assert marked("add %12, %10", "%12, %1")


def test_other_loops_are_not():
    assert not marked("add %12, %1", "%13, %1")  # the step may be 0
    assert not marked("add %12, %9", "%13, %1")  # the step is 0
    assert not marked("sub %12, %10", "%13, %1")
    assert not marked("add %12, %10", "%1, %13")  # stays while above


def test_the_counter_may_rise_in_the_arm_that_goes_on():
    text = (
        "%9: i32 = const value=0\n %10: i32 = const value=1\n %11: i32 = while %9 {{%12: i32\n %13: bool = lt %12, %1\n"
        "%14: bool = bitand %13, %4\n %15: i32 = if {} {{\n %16: i32 = add %12, %10\n yield %16\n }} {{\n"
        " yield %12\n }}\n"
        "yield %14, %15\n }}"
    )
    assert "bounded" in body(mark_bounded(of(text.format("%14"))))
    assert "bounded" in body(mark_bounded(of(text.format("%13"))))
    other = text.format("%17").replace("%15: i32 = if", "%17: bool = lt %1, %12\n %15: i32 = if")
    assert "bounded" not in body(mark_bounded(of(other)))


def test_marking_twice_changes_nothing():
    once = mark_bounded(of(LOOP.format("add %12, %10", "%13, %1")))
    assert mark_bounded(once) is once
