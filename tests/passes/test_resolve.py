"""Programs for known tables: loops unrolled, branches decided, memory between parts gone, the rest as it was."""

import numpy as np
import pytest

from tests.passes.text import body, of
from treadle.passes.dce import remove_dead
from treadle.passes.resolve import Known, Unresolved, resolve


def resolved(text, table=None, **numbers):
    func = of(text)
    arrays = {func.params[7]: Known((2,), np.array(table))} if table else {}
    values = {func.params[int(name[1:])]: value for name, value in numbers.items()}
    return body(remove_dead(resolve(func, arrays, values)))


LOOP = """%8: i32 = shape %7 axis=0
 %9: i32 = const value=0
 %10: i32 = const value=1
 %11: f32 = for %9, %8, %10, %2 {%12: i32, %13: f32
   %14: i32 = load %7, %12
   %15: bool = lt %14, %10
   %16: f32 = if %15 {
     %17: f32 = load %0, %14
     %18: f32 = add %13, %17
     yield %18
   } {
     %19: f32 = mul %13, %13
     yield %19
   }
   yield %16
 }
 store %0, %10, %11"""


def test_loops_over_tables_are_unrolled_and_their_branches_decided():
    assert (
        resolved(LOOP, [0, 4])
        == """
  %8: i32 = const value=0
  %9: i32 = const value=1
  %10: f32 = load %0, %8
  %11: f32 = add %2, %10
  %12: f32 = mul %11, %11
  store %0, %9, %12
"""
    )
    assert "for" in resolved(LOOP) and "if" in resolved(LOOP)  # where nothing is known all is as it was


def test_what_a_thread_left_in_memory_is_known_until_something_may_change_it():
    text = """%8: i32 = tid axis=0
 %9: i32 = const value=1
 store %0, %8, %2
 %10: f32 = load %0, %8
 store %0, %9, %10
 %11: f32 = load %0, %8
 store %0, %1, %11
 %12: f32 = load %0, %9
 store %0, %8, %12"""
    made = resolved(text)
    assert made.count("load") == 2 and "store %0, %9, %2" in made  # after a store to a place that may be the same
    assert resolved(text, p1=1).count("load") == 1


def test_stores_in_branches_are_handed_on_where_memory_was_known():
    text = """%8: i32 = const value=0
 %9: f32 = load %0, %8
 if %4 {
   store %0, %8, %2
   yield
 } {
   yield
 }
 %10: f32 = load %0, %8
 store %0, %8, %10"""
    assert (
        resolved(text)
        == """
  %8: i32 = const value=0
  %9: f32 = load %0, %8
  %10: f32 = if %4 {
    yield %2
  } {
    yield %9
  }
  store %0, %8, %10
  store %0, %8, %10
"""
    )
    unknown = text.replace("%9: f32 = load %0, %8\n", "%9: f32 = add %2, %3\n")
    assert resolved(unknown).count("load") == 1  # the branch stays what it was


def test_loops_of_unknown_length_forget_what_they_store_to():
    made = resolved("""%8: i32 = const value=0
 %9: i32 = const value=1
 store %0, %8, %2
 for %8, %1, %9 {%10: i32
   %11: f32 = load %0, %8
   %12: f32 = add %11, %3
   store %0, %8, %12
   yield
 }
 %13: f32 = load %0, %8
 store %0, %9, %13""")
    assert made.count("load") == 2


def test_programs_that_do_more_than_load_and_store_are_refused():
    with pytest.raises(Unresolved):
        resolved("%8: i32 = const value=0\n %9: f32 = atomic %0, %8, %2 op='add'")


@pytest.mark.parametrize("load", ["%11: f32 = load %0, %1", "%11: f32 = load %0, %10"])
def test_stores_stay_in_branches_that_may_load_what_they_stored(load):
    made = resolved(f"""%8: i32 = const value=0
 %9: f32 = load %0, %8
 %10: i32 = tid axis=0
 if %4 {{
   store %0, %8, %2
   {load}
   store %0, %8, %11
   yield
 }} {{
   yield
 }}""")
    assert made.index("store %0") < made.index(load.split(" = ")[1].split(",")[0], made.index("if")) < made.index("}")


def test_places_are_the_same_by_number_whatever_the_type_of_indices():
    made = resolved("""%8: i32 = const value=0
 %9: i64 = const value=0
 %10: u32 = const value=0
 store %0, %8, %2
 store %0, %9, %3
 %11: f32 = load %0, %10
 %12: i32 = const value=1
 store %0, %12, %11""")
    assert "load" not in made and made.rstrip().endswith("%3")


def test_indices_out_of_range_are_no_numbers():
    made = resolved(
        """%8: i32 = const value=-1
 %9: i32 = const value=2
 %10: i32 = load %7, %8
 %11: i32 = load %7, %9
 %12: i32 = add %10, %11
 store %7, %8, %12""",
        [5, 6],
    )
    assert made.count("load") == 2


def test_what_leaves_open_which_element_is_meant_is_refused():
    with pytest.raises(Unresolved):
        resolved("%8: i32 = tid axis=1\n store %0, %8, %2")
    with pytest.raises(Unresolved):
        resolved("""%8: view<i32,1,(4)> = if %4 {
   yield %7
 } {
   yield %7
 }
 %9: i32 = load %8, %1
 store %7, %1, %9""")


def test_rounds_of_loops_are_counted(monkeypatch):
    monkeypatch.setattr("treadle.passes.resolve.LARGEST", 50)
    with pytest.raises(Unresolved):
        resolved("""%8: i32 = const value=0
 %9: i32 = const value=60
 %10: i32 = const value=1
 for %8, %9, %10 {%11: i32
   yield
 }""")
