"""What is left of a kernel where only its counters matter."""

from tests.passes.text import body, of
from treadle.ir.node import Func
from treadle.ir.walk import ops_of
from treadle.passes.counting import counting_pass

DRAW = "%20: i32 = atomic %7, %1, %1 op='add'"


def passed(func: Func, counted: int = 0, known: tuple[int, ...] = ()) -> Func | None:
    """The pass that counts atomic op number ``counted``, with results of those ``known``."""
    sites = [op for op in ops_of(func.body) if op.name == "atomic"]
    return counting_pass(func, [sites[counted]], [sites[k] for k in known])


def after(text: str, counted: int | str = 0, known: tuple[int, ...] = ()) -> str:
    """The pass of a kernel, in which a function given instead of a number may be called."""
    before, counted = (counted, 0) if isinstance(counted, str) else ("", counted)
    made = passed(of(text, before), counted, known)
    return "None" if made is None else body(made)


LOADS = 'function @0 "f" (%0: view<i32,1,(4)>, %1: i32) {\n %2: i32 = load %0, %1\n yield %2\n}'


def test_stores_and_what_only_they_need_go():
    assert after(f"{DRAW}\n %21: f32 = load %0, %20\n %22: f32 = add %21, %2\n store %0, %1, %22") == """
  %8: i32 = atomic %7, %1, %1 op='add'
"""


def test_what_decides_on_the_amount_stays():
    text = (
        "%10: i32 = load %7, %1\n if %4 {\n %20: i32 = atomic %7, %1, %10 op='add'\n store %0, %20, %2\n yield\n } {\n"
        " store %0, %1, %3\n yield\n }"
    )
    assert after(text) == """
  %8: i32 = load %7, %1
  if %4 {
    %9: i32 = atomic %7, %1, %8 op='add'
    yield
  } {
    yield
  }
"""


def test_arrays_of_the_threads_own_are_kept_as_far_as_they_matter():
    text = (
        "%10: local<i32,1,(4)> = local type=!fixed<i32,(4)>\n %11: local<i32,1,(4)> = local type=!fixed<i32,(4)>\n"
        " store %10, %1, %1\n %12: i32 = load %10, %1\n %20: i32 = atomic %7, %1, %12 op='add'\n store {}, %1, %20"
    )
    left = after(text.format("%11"))
    assert left.count("= local") == 1 and left.count("store") == 1
    assert after(text.format("%10")) == "None"  # one array for both: what is in it is not told apart


def test_later_rounds_know_results_of_earlier_ones():
    text = f"{DRAW}\n %21: i32 = atomic %7, %1, %20 op='add'\n store %0, %21, %2"
    assert after(text, 0).count("atomic") == 1
    assert after(text, 1) == "None"  # its amount is not known
    assert after(text, 1, (0,)).count("atomic") == 2


def test_checks_stay_unless_they_look_at_what_is_not_known():
    check = "check {} kind='assert' message='m'"
    assert "check" in after(f"{check.format('%4')}\n {DRAW}")
    assert after(f"{DRAW}\n %21: bool = lt %20, %1\n {check.format('%21')}") == "None"


CALLED = "function @0 'f' (%0: view<f32,1,(4)>, %1: i32, %2: f32) {{\n {}\n {} yield %1\n}}".replace("'f'", '"f"')


def test_functions_that_write_are_left_out_as_a_whole():
    call = "%20: i32 = call %0, %1, %2 func=@0\n %21: i32 = atomic %7, %1, {} op='add'"
    store = "store %0, %1, %2"
    assert "call" not in body(passed(of(call.format("%1"), CALLED.format(store, ""))))
    assert passed(of(call.format("%20"), CALLED.format(store, ""))) is None
    assert "call" in body(passed(of(call.format("%20"), CALLED.format("", ""))))
    check = "%3: bool = const value=true\n check %3 kind='assert' message='m'\n"
    assert passed(of(call.format("%1"), CALLED.format(store, check))) is None


def test_memory_is_read_before_the_thread_writes_it_or_not_at_all():
    read = "%10: i32 = load %7, %1\n"
    write = "store %7, %1, %1\n"
    add = "%20: i32 = atomic %7, %1, %10 op='add'\n"
    assert after(read + write + add) == after(read + add) != "None"
    assert after(write + read + add) == "None"
    assert after("store %0, %1, %2\n" + read + add) != "None"  # another array
    assert after(f"if %4 {{\n {write} yield\n }} {{\n yield\n }}\n {read} {add}") == "None"
    assert after(f"for %1, %1, %1 {{%9: i32\n {read} {add} {write} yield\n }}") == "None"
    assert after(f"for %1, %1, %1 {{%9: i32\n {write} yield\n }}\n {read} {add}") == "None"
    row = "%8: view<i32,1,(4)> = slice %7, %1, %1, %1 axis=0\n store %8, %1, %1\n"
    assert after(read + row + add) != "None" and after(row + read + add) == "None"
    chosen = f"%8: view<i32,1,(4)> = if %4 {{\n yield %7\n }} {{\n yield %7\n }}\n {write.replace('%7', '%8')}"
    assert after(chosen + read + add) == "None" and after(read + chosen + add) != "None"
    assert after("%10: i32 = call %7, %1 func=@0\n" + write + add, LOADS) != "None"
    assert after(write + "%10: i32 = call %7, %1 func=@0\n" + add, LOADS) == "None"


def test_lanes_that_look_at_each_other_are_not_counted():
    assert after(f"%10: bool = lanes_any %4\n {DRAW}") == "None"
