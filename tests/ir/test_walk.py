"""Walking and rebuilding."""

import gc
import weakref

from tests.random_ir import program
from treadle.ir import Block, Op, Value
from treadle.ir.read import read
from treadle.ir.walk import (
    callees,
    captured,
    functions_of,
    names_of,
    once,
    ops_of,
    with_args,
    with_functions,
    with_ops,
    with_regions,
)
from treadle.types.core import b1, i32


def test_ops_come_outer_before_inner_in_order():
    text = (
        'kernel @0 "k" (%0: bool) {\n if %0 {\n %1: i32 = const value=1\n if %0 {\n %2: i32 = const value=2\n'
        " yield\n } {\n"
        " %3: i32 = const value=3\n yield\n }\n %4: i32 = const value=4\n yield\n } {\n"
        " %5: i32 = const value=5\n yield\n }\n"
        " %6: i32 = const value=6\n yield\n}"
    )
    order = [op.attrs.get("value", op.name) for op in ops_of(read(text).body)]
    assert order == ["if", 1, "if", 2, 3, 4, 5, 6]


def test_the_walk_is_that_of_the_definition():
    def plain(block):
        for op in block.ops:
            yield op
            for region in op.regions:
                yield from plain(region)

    for seed in range(5):
        body = program(seed).body
        assert list(ops_of(body)) == list(plain(body))


def test_deep_programs_are_walked():
    block, c = Block(), Value(b1)
    for _ in range(5000):
        block = Block((), (Op("if", (c,), (), {}, (block, Block())),))
    assert sum(1 for _ in ops_of(block)) == 5000


def test_rebuilding_without_a_change_gives_the_same_object():
    a, b, r = Value(i32), Value(i32), Value(i32)
    op = Op("add", (a, b), (r,))
    assert with_args(op, (a, b)) is op and with_args(op, (b, a)).results is op.results
    region = Block((), (op,), (r,))
    branch = Op("if", (a,), (), {}, (region, Block()))
    assert with_regions(branch, branch.regions) is branch
    assert with_ops(region, (op,)) is region and with_ops(region, (), (a,)).yields == (a,)


def test_callees_come_after_those_they_call():
    text = (
        'function @0 "a" () {\n yield\n}\nfunction @1 "b" () {\n call func=@0\n yield\n}\n'
        'kernel @2 "k" () {\n call func=@1\n call func=@0\n call func=@1\n yield\n}'
    )
    assert [f.name for f in callees(read(text))] == ["a", "b"]


def test_the_rules_of_a_call_are_functions_that_it_brings_along():
    text = (
        'function @0 "a" () {\n yield\n}\nfunction @1 "b" () {\n call func=@0\n yield\n}\n'
        'function @2 "c" () {\n yield\n}\nkernel @3 "k" () {\n call func=@2 adjoint=@1\n yield\n}'
    )
    func = read(text)
    assert [f.name for f in callees(func)] == ["c", "a", "b"]
    (op,) = func.body.ops
    assert [f.name for f in functions_of(op)] == ["c", "b"]
    assert with_functions(op, lambda f: f) is op
    changed = with_functions(op, lambda f: func if f.name == "b" else f)
    assert changed.attrs == {"func": op.attrs["func"], "adjoint": func}


def test_captured_values_come_from_outside():
    outside, inside, param = Value(i32), Value(i32), Value(i32)
    body = Block((param,), (Op("add", (outside, param), (inside,)),), (inside,))
    assert captured(Op("while", (outside,), (), {}, (body,))) == {outside}


class Answer:
    """Something that goes away."""


def test_what_is_found_of_a_function_is_found_once_and_goes_with_it():
    asked = []

    @once
    def about(func, number=0):
        asked.append(number)
        return Answer()

    func = program(0)
    first = about(func)
    assert about(func) is first and about(func, 1) is about(func, 1) and asked == [0, 1]
    left = weakref.ref(first)
    gc.disable()
    try:
        del func, first
        assert left() is None
    finally:
        gc.enable()


def test_a_function_that_is_its_own_answer_does_not_keep_itself():
    @once
    def same(func):
        return func

    func = program(0)
    assert same(func) is func and same(func) is func
    assert func not in func.known.values()


def test_names_of_a_function_are_those_of_all_its_ops():
    func = program(1)
    assert names_of(func) == {op.name for op in ops_of(func.body)}
