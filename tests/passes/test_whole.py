"""Components that are loaded one by one."""

from tests.passes.text import of
from treadle.ir.show import show
from treadle.ir.verify import verify
from treadle.passes.dce import remove_dead
from treadle.passes.scalarize import scalarize
from treadle.passes.whole import load_whole

PARTS = "".join(f"%{9 + k}: view<f32,1,(12)> = field %6 index={k}\n " for k in range(3))


def after(text: str) -> str:
    return show(remove_dead(verify(load_whole(scalarize(of(PARTS + text))), scalar=True)))


def load(number: int, part: int, at: int = 1) -> str:
    return f"%{number}: f32 = load %{9 + part}, %{at}\n "


STORES = " store %0, %1, %20\n store %0, %1, %21\n store %0, %1, %22"


def test_all_components_of_an_element_are_one_load():
    found = after(load(22, 2) + load(20, 0) + load(21, 1) + STORES)
    assert found.count("= load") == 1 and "= field" not in found


def test_other_elements_and_some_components_are_not():
    assert after(load(20, 0) + load(21, 1) + " store %0, %1, %20\n store %0, %1, %21").count("= load") == 2
    other = "%30: i32 = add %1, %1\n " + load(20, 0) + load(21, 1, 30) + load(22, 2) + STORES
    assert after(other).count("= load") == 3


def test_a_write_in_between_keeps_them_apart():
    assert after(load(20, 0) + "store %0, %1, %2\n " + load(21, 1) + load(22, 2) + STORES).count("= load") == 3
    branch = "if %4 {\n store %0, %1, %2\n yield\n } {\n yield\n }\n "
    assert after(load(20, 0) + branch + load(21, 1) + load(22, 2) + STORES).count("= load") == 3


def test_branches_have_loads_of_their_own():
    arm = load(20, 0) + load(21, 1) + load(22, 2) + STORES + "\n yield\n"
    found = after(f"if %4 {{\n {arm} }} {{\n yield\n }}")
    assert found.count("= load") == 1 and found.index("if ") < found.index("= load")
