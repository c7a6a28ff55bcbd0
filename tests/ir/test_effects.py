"""What kernels touch, and the order that follows."""

import pytest

from treadle.builtins.registry import primitive
from treadle.ir.effects import UNKNOWN, bounded, effects, leaf_paths, order
from treadle.ir.read import read
from treadle.ir.verify import verify

for _name in "add mul lt eq bitand".split():
    primitive(_name)

HEAD = (
    "%0: view<f32,1,(4)>, %1: view<i32,1,(4)>, %2: view<f32,1,(4)>, %3: view<i32,1,(4)>, %4: view<f32,2,(?,4)>, "
    "%5: view<view<f32,1,(4)>,1,(40)>, %6: i32, %7: f32"
)
START = """
 %10: i32 = tid axis=0
 %11: i32 = const value=0
 %12: i32 = const value=1
 %13: bool = lt %10, %6
"""


def of(body: str, rank: int = 1):
    names = "('a', 'c', 'b', 'd', 'm', 'v', 'n', 'x')"
    text = f'kernel @0 "k" ({HEAD}) ndim={rank} {{\n names {names}\n{START}\n{body}\n yield\n}}'
    return verify(read(text), scalar=True)


OWN = "%20: f32 = load %0, %10\n %21: f32 = add %20, %7\n store %0, %10, %21"
ADD = "%22: f32 = atomic %2, %11, %7 op='add'"
COUNT = "%23: i32 = atomic %1, %11, %12 op='add'\n store %2, %23, %7"


@pytest.mark.parametrize(
    "expected, body",
    [
        ("free", ""),
        ("free", OWN),
        ("free", ADD),
        ("free", OWN + "\n" + ADD),
        ("free", "%20: f32 = atomic %0, %10, %7 op='add'\n store %2, %10, %20"),  # own index: a plain update
        ("free", "%20: f32 = atomic %0, %10, %7 op='exch'"),
        ("free", "%20: f32 = atomic %2, %11, %7 op='add'\n %21: f32 = atomic %2, %11, %7 op='sub'"),
        ("free", "%20: local<f32,1,(4)> = local type=!fixed<f32,(4)>\n %21: f32 = atomic %20, %11, %7 op='exch'\n"
                 "store %0, %10, %21"),
        ("ordered", "%20: f32 = atomic %2, %11, %7 op='add'\n %21: f32 = atomic %2, %11, %7 op='max'"),
        ("ordered", ADD + "\n %30: f32 = load %2, %10"),  # updated and read
        ("ordered", ADD + "\n store %2, %11, %7"),  # updated and stored to
        ("ordered", ADD + "\n %30: view<f32,1,(4)> = load %5, %10\n store %30, %10, %7"),  # … by way of an unknown view
        ("ordered", ADD + "\n store %0, %10, %22"),  # a used float update
        ("ordered", "%20: i32 = atomic %1, %11, %12 op='exch'"),
        ("ordered", "%20: i32 = atomic %1, %11, %11, %12 op='cas'"),
        ("ordered", "print %7 format='%f'"),
        ("ordered", "%20: str = const value='a'\n %21: str = select %13, %20, %20\n print %21 format='%s'"),
        ("counted", COUNT),
        ("counted", f"if %13 {{\n {COUNT}\n yield\n }} {{\n yield\n }}"),
        # the amount is read from memory that nobody writes
        ("counted", "%20: i32 = load %3, %10\n %23: i32 = atomic %1, %11, %20 op='add'\n store %2, %23, %7"),
        # … that the thread itself wrote before
        ("counted", "store %3, %10, %6\n %20: i32 = load %3, %10\n %23: i32 = atomic %1, %11, %20 op='add'\n"
                    "store %2, %23, %7"),
        # … that another thread may have written
        ("ordered", "store %3, %11, %6\n %20: i32 = load %3, %10\n %23: i32 = atomic %1, %11, %20 op='add'\n"
                    "store %2, %23, %7"),
        # a second array whose amounts come from the first
        ("counted", "%20: i32 = atomic %1, %11, %12 op='add'\n %21: i32 = atomic %3, %11, %20 op='add'\n"
                    "store %2, %21, %7"),
        # two sites of one array, the second amount taken from the first result
        ("ordered", "%20: i32 = atomic %1, %11, %12 op='add'\n %21: i32 = atomic %1, %11, %20 op='add'\n"
                    "store %2, %21, %7"),
        # a loop that goes on as its own count says
        ("ordered", "%20: i32 = while %12 {%21: i32\n %22: i32 = atomic %1, %11, %12 op='add'\n"
                    " %23: bool = lt %22, %6\n yield %23, %22\n }"),
        # a loop that waits for another thread
        ("ordered", "%20: i32 = while %11 {%21: i32\n %22: i32 = load %1, %11\n %23: bool = eq %22, %11\n"
                    " yield %23, %22\n }\n store %1, %12, %12"),
        # a loop over memory of its own
        ("free", "%20: f32 = while %7 {%21: f32\n %22: f32 = load %0, %10\n %23: f32 = mul %22, %22\n"
                 " store %0, %10, %23\n %24: bool = lt %23, %7\n yield %24, %23\n }"),
        # a view that may be anything is read while another array is updated
        ("ordered", "%20: view<f32,1,(4)> = load %5, %11\n %21: f32 = load %20, %11\n" + ADD + "\nstore %0, %10, %21"),
        ("free", "%20: view<f32,1,(4)> = load %5, %11\n %21: f32 = load %20, %11\n store %0, %10, %21"),
    ],
)  # fmt: skip
def test_the_order_follows_from_what_is_touched(expected, body):
    assert order(of(body)) == expected


def test_own_index_needs_every_axis_on_one_dimension():
    second = "%30: i32 = tid axis=1\n"
    assert effects(of(second + "store %4, %10, %30, %7", 2)).roots["m"].own
    assert effects(of("store %4, %10, %6, %7")).roots["m"].own  # the other dimension is free
    assert not effects(of(second + "store %4, %10, %10, %7", 2)).roots["m"].own
    assert not effects(of("store %4, %10, %6, %7\n store %4, %6, %10, %7")).roots["m"].own  # two placements
    assert not effects(of("%30: i32 = add %10, %12\n store %0, %30, %7")).roots["a"].own
    row = "%30: view<f32,1,(4)> = subview %4, %10\n store %30, %6, %7"
    assert effects(of(row)).roots["m"].own
    cut = "%30: view<f32,1,(4)> = slice %0, %12, %12, %6 axis=0\n store %30, %10, %7"
    assert not effects(of(cut)).roots["a"].own


def test_a_choice_among_views_may_be_anything():
    body = "%20: view<f32,1,(4)> = if %13 {\n yield %0\n } {\n yield %2\n }\n store %20, %10, %7"
    assert set(effects(of(body)).roots) == {UNKNOWN}
    body = "%20: view<f32,1,(4)> = if %13 {\n yield %0\n } {\n yield %0\n }\n store %20, %10, %7"
    found = effects(of(body)).roots
    assert UNKNOWN in found or found["a"].written


def test_the_checks_of_a_launch_are_those_that_every_thread_makes():
    body = OWN + "\n store %1, %12, %6\n if %13 {\n store %2, %10, %7\n yield\n } {\n yield\n }\n store %2, %6, %7"
    assert set(effects(of(body)).unconditional) == {("a", 0, "tid", 0), ("c", 0, "const", 1)}


def test_updates_say_whether_their_address_is_one_for_all():
    body = (
        "\n %30: f32 = atomic %0, %6, %7 op='add'\n %31: i32 = load %3, %11\n"
        " %32: f32 = atomic %0, %31, %7 op='add'\n %33: f32 = atomic %0, %10, %7 op='add'"
    )
    sites = effects(of(ADD + body)).sites
    assert [s.uniform for s in sites] == [True, True, False, False]
    assert [s.root for s in sites] == ["b", "a", "a", "a"]
    assert not any(s.used or s.loop for s in sites)


def test_an_address_that_a_loop_changes_is_not_one_for_all():
    body = "for %11, %6, %12 {%40: i32\n %41: f32 = atomic %0, %40, %7 op='add'\n yield\n }"
    (site,) = effects(of(body)).sites
    assert not site.uniform and site.loop


def test_counted_sites_come_in_rounds():
    found = effects(of("%20: i32 = atomic %1, %11, %12 op='add'\n %21: i32 = atomic %3, %11, %20 op='add'\n"
                       " store %2, %21, %7"))  # fmt: skip
    assert found.rounds == ((0,), (1,)) and found.single
    twice = effects(of(COUNT + "\n %30: i32 = atomic %1, %11, %6 op='sub'"))
    assert twice.order == "counted" and twice.rounds == ((0, 1),) and not twice.single
    looped = effects(of(f"for %11, %6, %12 {{%40: i32\n {COUNT}\n yield\n }}"))
    assert looped.order == "counted" and not looped.single


def test_cells_at_constant_places_are_counters_of_their_own():
    two = "%20: i32 = atomic %1, %11, %12 op='add'\n %21: i32 = atomic %1, %12, %20 op='add'\n store %2, %21, %7"
    found = effects(of(two))
    assert found.rounds == ((0,), (1,)) and found.single
    assert [found.counter(s) for s in found.sites] == [("c", (0, 0)), ("c", (0, 1))]
    # a third place that is found at run time may be any of them
    assert order(of(two + "\n %30: i32 = load %3, %10\n %31: i32 = atomic %1, %30, %12 op='add'")) == "ordered"
    both = "%20: i32 = atomic %1, %11, %12 op='add'\n %21: i32 = atomic %1, %6, %12 op='add'\n store %2, %20, %7"
    found = effects(of(both))
    assert found.order == "counted" and not found.single and found.counter(found.sites[0]) == ("c", None)


def test_components_are_cells_however_they_are_reached():
    text = (
        'kernel @0 "k" (%0: view<vec<3,i32>,1,(12)>, %1: view<i32,1,(4)>) ndim=1 {{\n names (\'a\', \'b\')\n'
        " %2: i32 = tid axis=0\n %3: i32 = const value=0\n %4: i32 = const value=1\n"
        " %5: view<i32,1,(12)> = field %0 index=1\n %6: view<i32,2,(12,4)> = parts %0\n"
        " %7: i32 = atomic %5, %3, %2 op='add'\n %8: i32 = atomic {} op='add'\n store %1, %2, %7\n yield\n}}"
    )
    apart = effects(verify(read(text.format("%5, %4, %2"))))
    assert apart.single and len({apart.counter(s) for s in apart.sites}) == 2
    mixed = effects(verify(read(text.format("%6, %4, %3, %2"))))
    assert not mixed.single and len({mixed.counter(s) for s in mixed.sites}) == 1


def test_arrays_that_are_updated_are_named():
    assert effects(of(f"{OWN}\n{ADD}\n {COUNT}")).updated == ("c", "b")


def test_effects_are_seen_through_calls():
    text = (
        'function @0 "f" (%0: view<i32,1,(4)>, %1: i32, %2: i32) {\n'
        " %3: i32 = atomic %0, %1, %2 op='add'\n yield %3\n}\n"
        'kernel @1 "k" (%0: view<i32,1,(4)>, %1: view<i32,1,(4)>) ndim=1 {\n'
        " names ('a', 'b')\n %2: i32 = tid axis=0\n"
        ' %3: i32 = call %0, %2, %2 func=@0\n %4: i32 = const value=0\n %5: i32 = call %1, %4, %2 func=@0\n yield\n}'
    )
    found = effects(verify(read(text)))
    assert found.roots["a"].own and not found.roots["b"].own
    assert [s.uniform for s in found.sites] == [False, True]


def test_while_loops_that_count_up_to_a_limit_are_bounded():
    def loop(stay, step="%12"):
        return of(
            f"%20: i32 = while %11 {{%21: i32\n %22: i32 = add %21, {step}\n %23: bool = lt %22, %6\n"
            f" %24: bool = eq %22, %12\n %25: bool = bitand %23, %24\n yield {stay}, %22\n }}"
        )

    assert bounded(loop("%23"))
    assert bounded(loop("%25"))
    assert not bounded(loop("%24"))
    assert not bounded(loop("%23", "%6"))  # a step that is not known to be positive
    assert bounded(of("for %11, %6, %12 {%40: i32\n yield\n }"))


def test_paths_name_fields_and_components():
    text = (
        "struct 's.P' (x: view<f32,1,(4)>, v: vec<2,f32>)\n"
        'kernel @0 "k" (%0: view<f32,1,(4)>, %1: f32, %2: f32, %3: f32) {\n'
        " signature (struct<s.P>, f32)\n names ('p', 'q')\n yield\n}"
    )
    assert leaf_paths(read(text)) == ("p.x", "p.v.0", "p.v.1", "q")


# ---- gradients

GRADS = "%40: view<f32,1,(4)> = grad %0\n %41: view<f32,1,(4)> = grad %2\n"
TAKE = "%42: f32 = load %41, %10\n store %41, %10, %7\n"
PLUS = "%43: f32 = load %40, %10\n %44: f32 = add %43, %42\n store %40, %10, %44"
FAR = "%45: i32 = load %1, %10\n %46: f32 = atomic %40, %45, %42 apart=true op='add'"


def test_the_gradient_of_an_array_is_memory_of_its_own():
    found = effects(of(GRADS + TAKE + PLUS))
    assert found.roots.keys() == {"grad a", "grad b"} and found.order == "free"
    assert found.roots["grad a"].own and found.roots["grad b"].own
    assert found.updated == ("grad a", "grad b") and found.beside == ()
    assert {(root, kind) for root, _, kind, _ in found.unconditional} == {("a", "tid"), ("b", "tid")}  # of one shape


def test_gradients_lie_beside_the_data_that_is_read():
    found = effects(of(f"%30: f32 = load %0, %10\n {GRADS}{TAKE}{FAR}"))
    assert found.updated == ("grad a", "grad b") and found.beside == ("a", "c")
    assert effects(of(OWN)).beside == ()


def test_the_gradient_of_a_part_is_that_of_its_array():
    row = "%40: view<f32,2,(?,4)> = grad %4\n %41: view<f32,1,(4)> = subview %40, %10\n store %41, %11, %7"
    assert effects(of(row)).roots.keys() == {"grad m"}


def test_gradients_of_arrays_that_memory_gave_may_lie_anywhere():
    found = effects(of("%39: view<f32,1,(4)> = load %5, %10\n %40: view<f32,1,(4)> = grad %39\n store %40, %10, %7"))
    assert found.roots.keys() == {"v", UNKNOWN} and found.updated == ()


@pytest.mark.parametrize(
    "expected, body",
    [("free", TAKE + FAR),
     ("free", TAKE + PLUS + "\n " + FAR),  # apart: the thread's own plain sum meets no update of another
     ("ordered", TAKE + PLUS + "\n " + FAR.replace("apart=true ", "")),
     ("ordered", TAKE + FAR + "\n %47: f32 = atomic %40, %45, %42 op='max'"),
     ("ordered", "%42: f32 = atomic %41, %6, %7 op='exch'\n " + PLUS)],
)  # fmt: skip
def test_updates_that_are_apart_leave_the_order_free(expected, body):
    assert order(of(GRADS + body)) == expected
