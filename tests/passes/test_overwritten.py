"""Loads that are known and stores that are useless, where arrays of different parameters lie apart."""

from treadle.ir.read import read
from treadle.ir.show import show
from treadle.ir.verify import verify
from treadle.passes.dce import remove_dead
from treadle.passes.overwritten import drop_overwritten, drop_unread, forward_stored

HEAD = """kernel @0 "k" (%0: view<f32,1,(4)>, %1: view<f32,1,(4)>, %2: bool) ndim=1 {
  names ('x', 'y', 'b')
  %3: i32 = tid axis=0
  %4: i32 = const value=0
"""


def body(func):
    return [line.strip() for line in show(func).splitlines()[4:-2]]


def parsed(text):
    return read(HEAD + text + "  yield\n}\n")


def test_what_was_stored_is_known_until_it_changes():
    func = parsed("""  %5: f32 = load %0, %3
  store %1, %3, %5
  store %0, %3, %5
  %6: f32 = load %1, %3
  %7: f32 = add %6, %6
  store %1, %4, %7
  %8: f32 = load %1, %3
  store %0, %3, %8
  if %2 {
    store %0, %3, %7
    yield
  } {
    yield
  }
  %9: f32 = load %0, %3
  store %1, %3, %9
""")
    made = forward_stored(func)
    verify(made)
    text = "\n".join(body(made))
    assert text.count("load") == 3 and "add %5, %5" in text  # of x at the start, of y after y[0], of x after the branch


def test_stores_that_are_stored_over_go():
    func = parsed("""  %5: f32 = load %0, %3
  store %1, %3, %5
  store %0, %3, %5
  store %1, %4, %5
  store %1, %3, %5
  %6: f32 = load %0, %3
  store %0, %3, %6
  store %1, %4, %6
  if %2 {
    store %0, %3, %5
    yield
  } {
    yield
  }
  store %0, %3, %5
  store %1, %4, %5
""")
    made = drop_overwritten(func)
    verify(made)
    stores = [line for line in body(made) if line.startswith("store")]
    assert stores == [
        "store %0, %3, %5", "store %1, %3, %5", "store %0, %3, %6", "store %1, %4, %6", "store %0, %3, %5",
        "store %0, %3, %5", "store %1, %4, %5",
    ]  # fmt: skip


def test_arrays_that_nobody_reads_are_not_stored_to():
    func = parsed("""  %5: f32 = load %0, %3
  store %1, %3, %5
  if %2 {
    store %1, %4, %5
    store %0, %4, %5
    yield
  } {
    yield
  }
""")
    made = remove_dead(drop_unread(func, func.params[:2]))
    verify(made)
    assert [line for line in body(made) if line.startswith("store")] == ["store %0, %4, %5"]
    assert drop_unread(func, []) is func
