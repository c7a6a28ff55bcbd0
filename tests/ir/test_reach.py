"""Which boxes of its arrays a kernel touches."""

import pytest

from treadle.builtins.registry import primitive
from treadle.ir.reach import facts_of, reach
from treadle.ir.read import read
from treadle.ir.verify import verify

for _name in "add sub mul lt mod bitand invert".split():
    primitive(_name)

HEAD = "%0: view<f32,1,(4)>, %1: view<f32,2,(?,4)>, %2: view<view<f32,1,(4)>,1,(40)>, %3: i32, %4: f32"
START = """
 %10: i32 = tid axis=0
 %11: i32 = const value=2
 %12: i32 = const value=1
 %13: bool = lt %10, %3
"""


def of(body: str):
    text = f'kernel @0 "k" ({HEAD}) ndim=1 {{\n names (\'a\', \'m\', \'v\', \'n\', \'x\')\n{START}\n{body}\n yield\n}}'
    return verify(read(text), scalar=True)


def shown(box) -> str:
    """A box as text: ``n+1..n+1, 0..dim0-1``; a star where anything goes."""

    def total(s) -> str:
        terms = [f"{'' if f == 1 else f}{'dim' if kind == 'dim' else 'p'}{k}" for (kind, k), f in s.terms]
        text = "+".join([*terms, *([str(s.constant)] if s.constant or not terms else [])])
        return text.replace("+-", "-")

    ends = ["*" if b is None else f"{total(b.low)}..{total(b.high)}{' counted' * b.counted}" for b in box]
    return ", ".join(ends)


@pytest.mark.parametrize(
    "expected, body",
    [
        ("0..dim0-1", "store %0, %10, %4"),
        ("0..dim0-1", "%20: f32 = atomic %0, %10, %4 op='add'"),
        ("p3..p3", "store %0, %3, %4"),
        ("p3+1..p3+dim0", "%20: i32 = add %10, %3\n %21: i32 = add %20, %12\n store %0, %21, %4"),
        ("-1dim0+3..2", "%20: i32 = sub %11, %10\n store %0, %20, %4"),
        ("1..2dim0-1", "%20: i32 = mul %10, %11\n %21: i32 = add %20, %12\n store %0, %21, %4"),
        ("*", "%20: i32 = mod %10, %11\n store %0, %20, %4"),
        ("*", "%20: i32 = mul %10, %3\n store %0, %20, %4"),
        ("*", "%20: view<f32,1,(4)> = slice %0, %11, %12, %3 axis=0\n store %20, %10, %4"),
        ("2..p3-1", "for %11, %3, %12 {%30: i32\n store %0, %30, %4\n yield\n }"),
    ],
)
def test_where_a_store_may_go(expected, body):
    (box,) = reach(of(body))["a"].writes
    assert shown(box) == expected


def test_rows_by_an_argument():
    body = "%20: i32 = add %3, %12\n %21: f32 = load %1, %3, %10\n store %1, %20, %10, %21"
    found = reach(of(body))["m"]
    assert [shown(b) for b in found.reads] == ["p3..p3, 0..dim0-1"]
    assert [shown(b) for b in found.writes] == ["p3+1..p3+1, 0..dim0-1"]
    assert found.sure and found.covers is None


def test_what_surely_happens():
    assert reach(of("store %0, %10, %4"))["a"].covers == (0,)
    guarded = reach(of("if %13 {\n store %0, %10, %4\n yield\n } {\n yield\n }"))["a"]
    assert not guarded.sure and guarded.covers is None


def test_memory_that_no_parameter_leads_to():
    body = "%20: view<f32,1,(4)> = load %2, %10\n store %20, %10, %4"
    found = reach(of(body))
    assert found["?"].stores and found["v"].loads and not found["v"].stores
    assert facts_of(of(body))["unknown"] == "written"
    body = "%20: view<f32,1,(4)> = load %2, %10\n %21: f32 = load %20, %10\n store %0, %10, %21"
    assert facts_of(of(body))["unknown"] == "read"


def test_facts_are_plain_and_name_places():
    facts = facts_of(of("%21: f32 = load %1, %3, %10\n store %0, %10, %21"))
    assert facts == {
        "arrays": [
            {"path": [0], "name": "a", "loads": False, "stores": True, "added": [], "sure": True, "covers": [0],
             "reads": [], "writes": [[[[0, []], [-1, [["dim", 0, 1]]]]]]},
            {"path": [1], "name": "m", "loads": True, "stores": False, "added": [], "sure": True, "covers": None,
             "reads": [[[[0, [["arg", [3], 1]]], [0, [["arg", [3], 1]]]], [[0, []], [-1, [["dim", 0, 1]]]]]],
             "writes": []},
        ],
        "unknown": "", "mixed": [], "held": [],
    }  # fmt: skip


def test_a_used_result_of_an_update_is_a_read():
    used = "%30: i32 = const value=0\n%31: f32 = atomic %0, %30, %4 op='add'\nstore %0, %10, %31"
    unused = "%30: i32 = const value=0\n%31: f32 = atomic %0, %30, %4 op='add'"
    assert reach(of(used))["a"].loads and [shown(b) for b in reach(of(used))["a"].reads] == ["0..0"]
    assert not reach(of(unused))["a"].loads


COUNTED = """
 %20: i32 = shape {of} axis={axis}
 %21: i32 = add %3, %20
 %22: i32 = invert %21
 %23: i32 = bitand %3, %22
 %24: i32 = const value=0
 %25: bool = lt %23, %24
 %26: i32 = select %25, %21, %3
 store %1, %26, %10, %4
"""


@pytest.mark.parametrize("of_, axis, expected", [("%1", 0, "p3..p3 counted"), ("%1", 1, "*"), ("%0", 0, "*")])
def test_an_index_counts_from_the_end_of_its_own_dimension(of_, axis, expected):
    found = reach(of(COUNTED.format(of=of_, axis=axis)))["m"]
    assert shown(found.writes[0]) == f"{expected}, 0..dim0-1" and found.sure == (expected != "*")


def test_what_unknown_memory_may_be():
    """Arrays that share a name, or are asked for their address, and arrays in elements."""
    both = "%20: view<f32,1,(4)> = if %13 {\n yield %0\n } {\n yield %0\n }\n store %20, %10, %4"
    assert facts_of(of(both))["mixed"] == [[0]] and facts_of(of(both))["held"] is None
    address = "%20: u64 = address %0\n%21: i32 = const value=4\n"
    address += "%22: view<f32,1,(4)> = view_at %20, %21\nstore %22, %10, %4"
    assert facts_of(of(address))["mixed"] == [[0]]
    element = "%20: view<f32,1,(4)> = load %2, %10\n store %20, %10, %4"
    assert facts_of(of(element))["mixed"] == [] and facts_of(of(element))["held"] == [[[2], []]]
