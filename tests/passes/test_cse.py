"""Equal computations become one."""

from tests.passes.text import body, of
from treadle.passes.cse import share_common


def count(text: str, word: str) -> int:
    return body(share_common(of(text))).count(f"= {word} ")


def test_pure_ops_are_shared():
    assert count("%9: f32 = add %2, %3\n %10: f32 = add %2, %3\n store %0, %1, %9\n store %0, %1, %10", "add") == 1


def test_sharing_goes_on_through_what_was_shared():
    text = (
        "%9: f32 = add %2, %3\n %10: f32 = add %2, %3\n %11: f32 = mul %9, %2\n %12: f32 = mul %10, %2\n"
        " store %0, %1, %12"
    )
    assert count(text, "mul") == 1


def test_constants_that_differ_in_a_bit_are_kept_apart():
    text = (
        "%9: f32 = const value=0x0.0p+0\n %10: f32 = const value=-0x0.0p+0\n %11: i32 = const value=0\n"
        " %12: bool = const value=false\n %13: f32 = const value=nan\n %14: f32 = const value=nan"
    )
    assert count(text, "const") == 5


def test_other_attributes_and_types_are_kept_apart():
    text = "%9: f32 = extract %5 index=0\n %10: f32 = extract %5 index=1\n %11: f32 = cast %1\n %12: f64 = cast %1"
    assert count(text, "extract") == 2 and count(text, "cast") == 2


def test_inside_sees_outside_but_siblings_do_not_see_each_other():
    text = ("%9: f32 = add %2, %3\n %10: f32 = if %4 {\n %11: f32 = add %2, %3\n %12: f32 = mul %11, %3\n"
            " yield %12\n } {\n"
            "%13: f32 = mul %2, %3\n %14: f32 = mul %2, %3\n yield %14\n }\n %15: f32 = mul %2, %3\n"
            " store %0, %1, %15")  # fmt: skip
    assert count(text, "add") == 1
    assert count(text, "mul") == 3  # one an arm, one after


def test_loads_are_shared_until_something_is_written():
    load = "%{}: f32 = load %0, %1\n"
    assert count(load.format(9) + load.format(10), "load") == 1
    assert count(load.format(9) + "store %0, %1, %2\n" + load.format(10), "load") == 1  # the second is what was stored
    assert count(load.format(9) + "%11: i32 = const value=3\n store %0, %11, %2\n" + load.format(10), "load") == 2
    assert count(load.format(9) + "%11: i32 = const value=3\n %12: i32 = atomic %7, %1, %11 op='add'\n"
                 + load.format(10), "load") == 2  # fmt: skip


def test_a_stored_value_is_known_without_loading():
    text = body(share_common(of("store %0, %1, %2\n %9: f32 = load %0, %1\n store %0, %1, %9")))
    assert text == "\n  store %0, %1, %2\n  store %0, %1, %2\n"


def test_own_arrays_do_not_overlap_others():
    text = ("%9: local<f32,1,(4)> = local type=!fixed<f32,(4)>\n %10: f32 = load %0, %1\n store %9, %1, %2\n"
            "%11: f32 = load %0, %1\n store %9, %1, %11")  # fmt: skip
    assert count(text, "load") == 1
    assert count(text.replace("%11: f32 = load %0", "%11: f32 = load %9"), "load") == 1


def test_two_own_arrays_are_never_one():
    assert count("%9: local<f32,1,(4)> = local type=!fixed<f32,(4)>\n"
                 " %10: local<f32,1,(4)> = local type=!fixed<f32,(4)>", "local") == 2


def test_a_loop_that_writes_loads_again():
    loop = ("%9: f32 = load %0, %1\n %10: i32 = const value=0\n %11: i32 = const value=1\n"
            " for %10, %1, %11 {{%12: i32\n"
            "%13: f32 = load %0, %1\n {}\n yield\n }}\n %14: f32 = load %0, %1\n store %0, %1, %14")  # fmt: skip
    assert count(loop.format("store %0, %12, %13"), "load") == 3
    assert count(loop.format("%15: f32 = add %13, %13"), "load") == 1


def test_a_branch_that_writes_ends_sharing_after_it():
    text = ("%9: f32 = load %0, %1\n %10: i32 = const value=0\n if %4 {\n %11: f32 = load %0, %1\n"
            " store %0, %10, %11\n yield\n } {\n"
            "yield\n }\n %12: f32 = load %0, %1\n store %0, %1, %12")  # fmt: skip
    assert count(text, "load") == 2


def test_nothing_to_share_gives_the_same_program():
    f = of("%9: f32 = add %2, %3\n store %0, %1, %9")
    assert share_common(f) is f


TAPE = (
    "push %2 site=1\n %9: f32 = pop site=1\n push %2 site=1\n %10: f32 = pop site=1\n"
    " record %2 site=2\n record %2 site=2"
)
AGAIN = (
    "%11: i64 = mark\n %12: i64 = mark\n seek %11\n %13: f32 = recall site=2\n %14: f32 = recall site=2\n"
    " %15: i32 = lanes_max %1\n %16: i32 = lanes_max %1"
)


def test_nothing_of_the_tape_is_shared():
    """Equal ops move stack and log once each; what the lanes of a gang have in common depends on the place."""
    text = f"{TAPE}\n {AGAIN}\n store %0, %1, %14"
    assert body(share_common(of(text))) == body(of(text))


def test_branches_that_work_on_the_tape_are_not_shared():
    branch = "{0}: f32 = if %4 {{\n {1}: f32 = pop site=1\n yield {1}\n }} {{\n yield %2\n }}\n"
    text = "push %2 site=1\n push %2 site=1\n" + branch.format("%9", "%10") + branch.format("%11", "%12")
    assert body(share_common(of(text))) == body(of(text))


def test_gradients_are_views_as_others():
    assert count("%9: view<f32,1,(4)> = grad %0\n %10: view<f32,1,(4)> = grad %0\n store %9, %1, %2", "grad") == 1
