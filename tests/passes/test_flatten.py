"""Cheap branches become selects."""

from tests.passes.text import body, of
from treadle.passes.dce import remove_dead
from treadle.passes.flatten import flatten_cheap


def after(text: str) -> str:
    return body(remove_dead(flatten_cheap(of(text))))


def test_cheap_sides_run_both():
    assert after("%10: f32 = if %4 {\n %9: f32 = add %2, %3\n yield %9\n } {\n yield %2\n }\n store %0, %1, %10") == """
  %8: f32 = add %2, %3
  %9: f32 = select %4, %8, %2
  store %0, %1, %9
"""


def test_sides_with_much_to_do_or_with_effects_stay():
    assert "if" in after("if %4 {\n store %0, %1, %2\n yield\n } {\n yield\n }")
    for op in ("load %0, %1", "div %2, %3"):
        text = f"%9: f32 = if %4 {{\n %10: f32 = {op}\n yield %10\n }} {{\n yield %2\n }}\n store %0, %1, %9"
        assert "if" in after(text)
    many = "".join(f"%{20 + k}: f32 = add %{19 + k if k else 2}, %3\n" for k in range(4))
    assert "if" in after(f"%9: f32 = if %4 {{\n {many} yield %23\n }} {{\n yield %2\n }}\n store %0, %1, %9")


def test_what_nobody_may_look_at_gives_way():
    text = after("%9: f32 = if %4 {\n yield %2\n } {\n %10: f32 = poison\n yield %10\n }\n store %0, %1, %9")
    assert text == "\n  store %0, %1, %2\n"


def test_inner_branches_go_first():
    inner = "%10: f32 = if %4 {\n yield %2\n } {\n yield %3\n }"
    outer = f"%9: f32 = if %4 {{\n {inner}\n %11: f32 = add %10, %2\n yield %11\n }} {{\n yield %3\n }}"
    text = after(outer + "\n store %0, %1, %9")
    assert "if" not in text and text.count("select") == 2


def loop(condition: str, stay: str = "%13") -> str:
    return (
        "%8: i32 = const value=1\n %9: f32, %10: i32 = while %2, %1 {%11: f32, %12: i32\n %13: bool = lt %12, %1\n"
        f"%14: bool = gt %11, %3\n %15: bool = bitand %13, %14\n %20: f32, %16: i32 = if {condition} {{\n"
        "%17: f32 = mul %11, %11\n %18: i32 = add %12, %8\n yield %17, %18\n } {\n yield %11, %12\n }\n"
        f"yield {stay}, %20, %16\n }}\n store %0, %10, %9"
    )


def test_a_branch_by_which_threads_leave_a_loop_stays():
    assert "if" in after(loop("%15", "%15"))
    assert "if" in after(loop("%13", "%15"))  # one of several conditions
    assert "if" not in after(loop("%14"))  # another condition


def test_a_branch_that_makes_the_flag_stays():
    text = (
        "%8: i32 = const value=0\n %9: i32 = const value=1\n"
        "%10: f32 = for %8, %1, %9, %2 stays=true {%11: i32, %12: f32\n"
        "%13: bool, %14: f32 = if %4 {\n %15: bool = lt %12, %3\n yield %15, %12\n } {\n %16: f32 = mul %12, %3\n"
        "yield %4, %16\n }\n yield %13, %14\n }\n store %0, %1, %10"
    )
    assert "if" in after(text)


def test_branches_in_loops_within_are_judged_by_those_loops():
    inner = (
        "%30: f32 = for %40, %1, %8, %11 {%31: i32, %32: f32\n"
        "%33: f32 = if %13 {\n %34: f32 = add %32, %3\n yield %34\n } {\n yield %32\n }\n yield %33\n }"
    )
    text = loop("%15", "%15").replace("%20: f32, %16", f"%40: i32 = const value=0\n {inner}\n %20: f32, %16")
    found = after(text.replace("yield %17, %18", "yield %30, %18"))
    assert found.count("select") == 1 and found.count("= if") == 1


def test_sides_that_work_on_the_tape_stay():
    for op in ("pop site=1", "recall site=1"):
        text = f"push %2 site=1\n record %2 site=1\n %9: f32 = if %4 {{\n %10: f32 = {op}\n yield %10\n }}"
        assert "if" in after(text + " {\n yield %2\n }\n store %0, %1, %9")
    text = "if %4 {\n push %2 site=1\n yield\n } {\n yield\n }\n %9: f32 = if %4 {\n %10: f32 = pop site=1\n"
    assert after(text + "yield %10\n } {\n yield %2\n }\n store %0, %1, %9").count("if") == 2
