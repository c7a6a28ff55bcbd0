"""What nobody needs goes."""

from dataclasses import replace

from tests.passes.text import body, of
from treadle.ir.read import read
from treadle.passes.dce import has_effect, remove_dead


def after(text: str, before: str = "") -> str:
    return body(remove_dead(of(text, before)))


def test_unread_ops_go_with_what_they_alone_read():
    assert after("%9: f32 = add %2, %3\n %10: f32 = mul %9, %9\n %11: f32 = load %0, %1") == "\n"


def test_effects_stay():
    for text in ("store %0, %1, %2", "%8: f32 = atomic %0, %1, %2 op='add'", "print %2 format='%f'",
                 "check %4 kind='assert' message='m'"):  # fmt: skip
        assert text in after(text)


def test_unread_results_of_branches_go():
    assert after("%9: f32, %10: f32 = if %4 {\n %11: f32 = add %2, %2\n %12: f32 = mul %2, %2\n yield %11, %12\n } {\n"
                 "yield %2, %3\n }\n store %0, %1, %10") == """
  %8: f32 = if %4 {
    %9: f32 = mul %2, %2
    yield %9
  } {
    yield %3
  }
  store %0, %1, %8
"""  # fmt: skip


def test_branches_without_effects_go():
    assert after("%9: f32 = if %4 {\n %11: f32 = add %2, %2\n yield %11\n } {\n yield %2\n }") == "\n"


def test_a_branch_stays_for_an_effect_deep_inside():
    text = "if %4 {\n if %4 {\n store %0, %1, %2\n yield\n } {\n yield\n }\n yield\n } {\n yield\n }"
    assert after(text).count("if %4") == 2


LOOP = "%9: i32 = const value=0\n %10: i32 = const value=1\n"


def test_carried_values_that_feed_only_themselves_go():
    text = (LOOP + "%11: f32, %12: f32 = for %9, %1, %10, %2, %3 {%13: i32, %14: f32, %15: f32\n"
            "%16: f32 = add %14, %14\n %17: f32 = mul %15, %15\n yield %16, %17\n }\n store %0, %1, %12")  # fmt: skip
    found = after(text)
    assert "%10: f32 = for" in found and "add" not in found and "mul" in found


def test_carried_values_that_others_need_stay():
    text = (LOOP + "%11: f32, %12: f32 = for %9, %1, %10, %2, %3 {%13: i32, %14: f32, %15: f32\n"
            "%17: f32 = mul %14, %15\n yield %17, %14\n }\n store %0, %1, %12")  # fmt: skip
    assert "%10: f32, %11: f32 = for" in after(text)


def test_what_ends_a_loop_is_needed():
    text = (LOOP + "%11: i32 = while %9 {%12: i32\n %13: i32 = add %12, %10\n %14: bool = lt %13, %1\n"
            "store %0, %10, %2\n yield %14, %13\n }")  # fmt: skip
    found = after(text)
    assert "while" in found and "add" in found and "lt" in found
    stays = LOOP + "for %9, %1, %10 stays=true {%12: i32\n %14: bool = lt %12, %1\n store %0, %12, %2\n yield %14\n }"
    assert "lt" in after(stays)


def test_loops_without_effects_go():
    assert after(LOOP + "%11: f32 = for %9, %1, %10, %2 {%12: i32, %13: f32\n yield %13\n }") == "\n"


LOCAL = "%9: local<f32,1,(4)> = local type=!fixed<f32,(4)>\n %10: i32 = const value=0\n"


def test_own_arrays_that_are_only_written_go():
    assert (
        after(LOCAL + "store %9, %10, %2\n %11: local<f32,1,(4)> = slice %9, %10, %10, %10 axis=0\n store %11, %10, %3")
        == "\n"
    )


def test_own_arrays_that_are_read_keep_their_writes():
    found = after(LOCAL + "store %9, %10, %2\n %12: f32 = load %9, %10\n store %0, %1, %12")
    assert found.count("store") == 2


def test_an_own_array_read_in_a_loop_keeps_writes_through_views():
    found = after(LOCAL + "%13: i32 = const value=1\n %14: local<f32,1,(4)> = slice %9, %10, %13, %13 axis=0\n"
                  "for %10, %1, %13 {%11: i32\n %12: f32 = load %9, %11\n store %0, %1, %12\n"
                  " store %14, %11, %12\n yield\n }")  # fmt: skip
    assert found.count("store") == 2


def replayed(text: str) -> str:
    """After the pass, of a program that writes to arrays only for itself."""
    func = of(text)
    return body(remove_dead(replace(func, facts={**func.facts, "replays": True})))


def test_what_a_replay_writes_and_does_not_read_goes():
    counted = "%9: i32 = load %7, %1\n %10: i32 = add %9, %1\n store %7, %1, %10\n"
    assert replayed(counted + "%11: i32 = atomic %7, %1, %1 op='add'\n store %0, %1, %2") == "\n"
    assert replayed(counted + "%12: view<f32,1,(4)> = grad %0\n store %12, %1, %2").count("store") == 1


def test_what_a_replay_reads_it_writes():
    into = "%12: view<f32,1,(4)> = grad %0\n %13: f32 = cast %11\n store %12, %1, %13\n"
    found = replayed("%9: i32 = load %7, %1\n store %7, %1, %9\n %11: i32 = load %7, %1\n store %0, %1, %2\n" + into)
    assert found.count("store %7") == 1 and found.count("load") == 2 and "store %0" not in found
    found = replayed("%9: i32 = atomic %7, %1, %1 op='add'\n store %0, %1, %2\n %11: i32 = add %9, %9\n" + into)
    assert "atomic" in found and "store %0" not in found
    somewhere = "%9: i32 = const value=0\n %10: u64 = address %7\n %11: view<i32,1,(4)> = view_at %10, %1\n"
    shown = somewhere + "store %7, %1, %1\n %14: i32 = load %11, %9\n" + into.replace("cast %11", "cast %14")
    assert replayed(shown).count("store %7") == 1


FUNCTIONS = """
function @0 "quiet" (%0: f32) {
 %1: f32 = add %0, %0
 yield %1
}
function @1 "loud" (%0: view<f32,1,(4)>, %1: i32, %2: f32) {
 store %0, %1, %2
 yield
}
"""


def test_calls_go_if_they_only_give_values():
    assert after("%9: f32 = call %2 func=@0", FUNCTIONS) == "\n"
    assert "call" in after("call %0, %1, %2 func=@1", FUNCTIONS)


def test_effects_are_seen_through_calls():
    text = FUNCTIONS + (
        'function @2 "outer" (%0: view<f32,1,(4)>, %1: i32, %2: f32) {\n call %0, %1, %2 func=@1\n yield\n}'
    )
    assert has_effect(read(text))
    assert not has_effect(read(FUNCTIONS[: FUNCTIONS.index("function @1")]))


def test_what_takes_back_what_nobody_put_there_never_runs():
    """The branch that pushed never ran, so it went; the one that pops then holds nothing either."""
    popping = "%9: f32, %10: f32 = pop site=3\n store %0, %1, %9\n yield"
    text = after(f"%8: bool = gt %2, %3\n if %8 {{\n {popping}\n}} {{\n yield\n}}")
    assert "pop" not in text and "%9: f32 = poison" in text and "%10: f32 = poison" not in text
