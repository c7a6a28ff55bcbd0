"""Programs as text."""

import re
import time

from tests.random_ir import program
from treadle.base.span import Span
from treadle.builtins.registry import primitive
from treadle.ir import Block, Func, Op, Value
from treadle.ir.builder import Builder
from treadle.ir.show import show
from treadle.ir.walk import ops_of
from treadle.passes.inline import copied
from treadle.types.core import STR, Struct, b1, f32, f64, fixed, i32, matrix, tuple_of, vector, view

primitive("add")


def kernel(make) -> Func:
    b = Builder()
    make(b)
    return Func("k", "kernel", (), b.block())


def sample() -> Func:
    inner = Struct("m.Inner", (("x", f32),))
    outer = Struct("m.Outer", (("inner", inner), ("a", view(matrix(2, 2, f64), 2, planar=True))))
    h = Value(i32)
    helper = Func("helper", "function", (h,), Block((), (), (h,)), names=("h",))
    p, q, b = Value(outer, "p"), Value(tuple_of(f32, vector(3, f32))), Builder()
    low, text = b.const(float("-inf"), f32), b.const("it's \"so\"\n", STR)
    b.op("local", (), (view(f32, 1, space="local"),), type=fixed(f32, (4,)))
    b.op("call", (b.i32(-3),), (i32,), func=helper)
    arm = Block((), (), (low,))
    (w,) = b.op("if", (b.const(True, b1),), (f32,), (arm, arm))
    counter, carried, inside = Value(i32), Value(f32), Builder()
    total = inside.one("add", (carried, carried), f32)
    bounds = tuple(b.i32(n) for n in (0, 3, 1))
    b.op("for", (*bounds, w), (f32,), (inside.block((counter, carried), (inside.true(), total)),), stays=True)
    b.op("print", (text, w), format="%s %f\n")
    facts = {"ndim": 2, "extra": {"b": (1, 2.5, None), "a": False}}
    return Func("k", "kernel", (p, q), b.block(), names=("p", "q"), facts=facts)


def test_every_part_of_a_program_has_its_line(golden):
    golden("sample.txt", show(sample()))


def test_names_of_values_and_places_are_left_out():
    def plain(b):
        b.one("add", (b.i32(1), b.i32(2)), i32)

    def dressed(b):
        with b.at(Span("file.py", 7)):
            one, two = b.i32(1), b.i32(2)
            b.ops.append(Op("add", (one, two), (Value(i32, "sum"),)))

    assert show(kernel(plain)) == show(kernel(dressed))


def test_a_copy_has_the_same_text():
    for seed in range(5):
        f = program(seed)
        env = {p: p for p in f.params}
        assert show(Func(f.name, f.kind, f.params, copied(f.body, env), f.signature, f.names, f.facts)) == show(f)


def test_constants_that_differ_in_a_bit_or_a_type_differ_in_text():
    tiny = 2.0**-1074
    values = [(1, i32), (1.0, f32), (True, b1), (1.0, f64), (0.0, f64), (-0.0, f64), (1.0 + 2**-52, f64), (tiny, f64),
              (float("nan"), f64), (float("inf"), f64), (float("-inf"), f64)]  # fmt: skip
    texts = {show(kernel(lambda b, v=v, t=t: b.const(v, t))) for v, t in values}
    assert len(texts) == len(values)


def test_the_order_of_attributes_does_not_matter():
    first = kernel(lambda b: b.op("print", (), format="x", line=1))
    second = kernel(lambda b: b.op("print", (), line=1, format="x"))
    assert show(first) == show(second)


def test_two_structs_of_one_shape_are_two_programs():
    def of(key):
        return Func("k", "kernel", (Value(Struct(key, (("x", f32),))),), Block())

    assert show(of("m.A")) != show(of("m.B"))


def test_a_value_that_nobody_defined_shows_as_a_question_mark():
    assert "%?" in show(Func("k", "kernel", (), Block((), (Op("add", (Value(i32), Value(i32)), (Value(i32),)),))))


def test_printing_is_quick():
    f = program(1, 400)
    count, best = sum(1 for _ in ops_of(f.body)), 1.0
    for _ in range(10):
        start = time.process_time()
        text = show(f)
        best = min(best, time.process_time() - start)
    assert len(re.findall("\n", text)) > count
    assert best / count < 10e-6  # about 0.6 µs on a quiet machine
