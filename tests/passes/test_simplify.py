"""Structure that is settled goes."""

from tests.passes.text import body, of
from treadle.passes.dce import remove_dead
from treadle.passes.simplify import simplify


def after(text: str) -> str:
    return body(remove_dead(simplify(of(text))))


def test_a_part_is_read_from_where_it_was_put():
    assert after("%9: vec<3,f32> = make %2, %2, %3\n %10: f32 = extract %9 index=2\n store %0, %1, %10") == """
  store %0, %1, %3
"""
    assert after("%9: vec<3,f32> = insert %5, %2 index=1\n %10: f32 = extract %9 index=1\n"
                 " %11: f32 = extract %9 index=0\n"
                 "store %0, %1, %10\n store %0, %1, %11") == """
  %8: f32 = extract %5 index=0
  store %0, %1, %2
  store %0, %1, %8
"""  # fmt: skip


def test_parts_put_together_again_are_the_whole():
    assert after("%9: f32 = extract %5 index=0\n %10: f32 = extract %5 index=1\n %11: f32 = extract %5 index=2\n"
                 "%12: vec<3,f32> = make %9, %10, %11\n store %6, %1, %12") == """
  store %6, %1, %5
"""  # fmt: skip
    kept = after("%9: f32 = extract %5 index=0\n %10: f32 = extract %5 index=2\n %11: f32 = extract %5 index=1\n"
                 "%12: vec<3,f32> = make %9, %10, %11\n store %6, %1, %12")  # fmt: skip
    assert "make" in kept


def test_a_known_index_picks_a_part():
    assert after("%9: i32 = const value=1\n %10: vec<3,f32> = put %5, %2, %9\n %11: f32 = pick %10, %9\n"
                 "store %0, %1, %11") == """
  store %0, %1, %2
"""  # fmt: skip
    assert "pick" in after("%9: i32 = const value=3\n %11: f32 = pick %5, %9\n store %0, %1, %11")  # outside


def test_a_known_condition_chooses():
    text = (
        "%9: bool = const value={}\n %10: f32 = if %9 {{\n yield %2\n }} {{\n store %0, %1, %2\n yield %3\n"
        " }}\n store %0, %1, %10"
    )
    assert after(text.format("true")) == "\n  store %0, %1, %2\n"
    assert after(text.format("false")) == "\n  store %0, %1, %2\n  store %0, %1, %3\n"


def test_truth_values_choose_themselves():
    text = (
        "%9: bool = if %4 {{\n %10: bool = const value={}\n yield %10\n }} {{\n %11: bool = const value={}\n"
        " yield %11\n }}\n check %9 kind='a' message=''"
    )
    assert after(text.format("true", "false")) == "\n  check %4 kind='a' message=''\n"
    assert "logical_not %4" in after(text.format("false", "true"))


def test_what_both_arms_yield_needs_no_branch():
    found = after("%9: f32 = if %4 {\n store %0, %1, %2\n yield %3\n } {\n yield %3\n }\n store %0, %1, %9")
    assert "= if" not in found and found.endswith("store %0, %1, %3\n")


def test_what_nobody_may_look_at_gives_way():
    assert after("%9: f32 = poison\n %10: f32 = select %4, %2, %9\n store %0, %1, %10") == "\n  store %0, %1, %2\n"


LOOP = (
    "%9: i32 = const value={}\n %10: i32 = const value={}\n %11: i32 = const value={}\n"
    " %12: f32 = for %9, %10, %11, %2 "
)


def test_loops_that_never_run_give_their_initial_values():
    assert after(LOOP.format(3, 3, 1) + "{%13: i32, %14: f32\n store %0, %13, %14\n yield %3\n }\n"
                                        " store %0, %1, %12") == """
  store %0, %1, %2
"""
    assert "for" not in after(LOOP.format(3, 5, -1) + "{%13: i32, %14: f32\n yield %3\n }\n store %0, %1, %12")


def test_a_loop_that_runs_once_is_its_body():
    assert after(LOOP.format(3, 4, 1) + "{%13: i32, %14: f32\n %15: f32 = add %14, %3\n store %0, %13, %15\n"
                                        " yield %15\n }\n"
                 "store %0, %1, %12") == """
  %8: i32 = const value=3
  %9: f32 = add %2, %3
  store %0, %8, %9
  store %0, %1, %9
"""  # fmt: skip


def test_parts_are_seen_through_a_loop_that_runs_once():
    text = ("%9: i32 = const value=0\n %10: i32 = const value=1\n"
            " %12: vec<3,f32> = for %9, %10, %10, %5 {%13: i32, %14: vec<3,f32>\n"
            "%15: f32 = extract %14 index=0\n %16: vec<3,f32> = make %15, %2, %3\n yield %16\n }\n"
            "%17: f32 = extract %12 index=0\n store %0, %1, %17")  # fmt: skip
    assert after(text) == "\n  %8: f32 = extract %5 index=0\n  store %0, %1, %8\n"


def test_a_while_that_does_not_stay_runs_once():
    assert after("%9: f32 = while %2 {%10: f32\n %11: bool = const value=false\n %12: f32 = add %10, %3\n"
                 " yield %11, %12\n }\n"
                 "store %0, %1, %9") == """
  %8: f32 = add %2, %3
  store %0, %1, %8
"""  # fmt: skip


def test_carried_values_that_never_change_are_not_carried():
    found = after("%9: i32 = const value=0\n %10: i32 = const value=1\n"
                  "%11: f32, %12: f32 = for %9, %1, %10, %2, %3 {%13: i32, %14: f32, %15: f32\n"
                  "%16: f32 = add %14, %15\n yield %16, %15\n }\n store %0, %1, %11\n store %0, %1, %12")  # fmt: skip
    assert "%10: f32 = for %8, %1, %9, %2 {%11: i32, %12: f32" in found
    assert found.endswith("store %0, %1, %3\n")


def test_a_check_that_surely_holds_goes():
    assert after("%9: bool = const value=true\n check %9 kind='assert' message=''") == "\n"
    assert "check" in after("%9: bool = const value=false\n check %9 kind='assert' message=''")
    assert "check" in after("check %4 kind='assert' message=''")


BRANCH = (
    "{}\n if %9 {{\n check %10 kind='assert' message='then'\n yield\n }} {{\n"
    " check %10 kind='assert' message='else'\n yield\n }}"
)


def checked(head: str) -> set[str]:
    """In which arms the check of %10 stays, where %9 decides on the arm."""
    text = after(BRANCH.format(head))
    return {arm for arm in ("then", "else") if arm in text}


def test_inside_a_branch_its_condition_is_known():
    other = "%8: bool = lt %2, %3\n "
    assert checked(other + "%9: bool = logical_not %4\n %10: bool = logical_not %9") == {"then"}
    assert checked(other + "%9: bool = bitand %4, %8\n %10: bool = bitand %4, %4") == {"then", "else"}
    assert checked("%10: bool = lt %2, %3\n %9: bool = bitand %4, %10") == {"else"}
    assert checked("%10: bool = lt %2, %3\n %9: bool = bitor %4, %10") == {"then", "else"}
    assert checked("%11: bool = lt %2, %3\n %10: bool = logical_not %11\n %9: bool = bitor %4, %11") == {"then"}


def test_a_branch_on_a_known_condition_is_its_arm():
    text = after("if %4 {\n if %4 {\n store %0, %1, %2\n yield\n } {\n store %0, %1, %3\n yield\n }\n yield\n } {\n"
                 "%9: f32 = select %4, %2, %3\n store %0, %1, %9\n yield\n }\n if %4 {\n yield\n } {\n"
                 "store %0, %1, %2\n yield\n }")  # fmt: skip
    assert text.count("if %4") == 2 and text.count("store %0, %1, %2") == 2 and text.count("store %0, %1, %3") == 1


def test_known_branches_keep_what_works_on_the_tape_in_its_order():
    text = (
        "%9: bool = const value=true\n if %9 {\n push %2 site=1\n push %3 site=2\n yield\n"
        " } {\n push %3 site=3\n yield\n }\n"
        " %10: f32 = pop site=2\n %11: f32 = pop site=1\n store %0, %1, %10\n store %0, %1, %11"
    )
    assert after(text) == """
  push %2 site=1
  push %3 site=2
  %8: f32 = pop site=2
  %9: f32 = pop site=1
  store %0, %1, %8
  store %0, %1, %9
"""
