"""Programs that are well formed, and all the ways not to be."""

import pytest

from tests.random_ir import program
from treadle.base.errors import InternalError
from treadle.builtins.registry import primitive
from treadle.ir import Block, Func, Op, Value
from treadle.ir.read import read
from treadle.ir.show import show
from treadle.ir.verify import verify
from treadle.passes.scalarize import scalarize
from treadle.types.core import b1, f32, i32

primitive("add")
HEAD = "%0: view<f32,1,(4)>, %1: i32, %2: f32, %3: bool, %4: vec<3,f32>, %5: view<vec<3,f32>,2,(?,12)>"


def of(body: str, kind: str = "kernel", tail: str = " yield\n") -> Func:
    return read(f'{kind} @0 "k" ({HEAD}) {{\n{body}\n{tail}}}')


@pytest.mark.parametrize("seed", range(10))
def test_random_programs_are_well_formed(seed):
    f = program(seed)
    assert verify(f) is f
    assert verify(scalarize(f), scalar=True).name == f.name


GOOD = """
 %10: f32 = load %0, %1
 store %0, %1, %10
 %11: f32 = atomic %0, %1, %2 op='add'
 %12: f32 = atomic %0, %1, %2, %10 op='cas'
 %13: view<vec<3,f32>,1,(12)> = subview %5, %1
 %14: view<f32,1,(12)> = field %13 index=2
 %15: view<f32,2,(12,4)> = parts %13
 %16: view<f32,1,(?)> = slice %0, %1, %1, %1 axis=0
 %17: u64 = address %16
 %18: view<f32,1,(4)> = view_at %17, %1
 %19: local<f32,2,(12,4)> = local type=!fixed<f32,(2,3)>
 %20: f32 = pick %4, %1
 %21: vec<3,f32> = put %4, %2, %1
 %22: f32 = if %3 {
  yield %20
 } {
  yield %2
 }
 %23: f32 = for %1, %1, %1, %2 stays=true {%30: i32, %31: f32
  yield %3, %31
 }
 %24: f32 = while %2 {%32: f32
  yield %3, %32
 }
 %25: i32 = bitcast %2
 %26: i32 = shape %0 axis=0
 %27: bool = lanes_any %3
 check %3, %1 kind='assert' message='no'
 print %1, %2 format='%d %f'
"""


def test_each_op_in_its_right_form_passes():
    verify(of(GOOD))


@pytest.mark.parametrize(
    "line",
    [
        "%9: i32 = const value=1.0", "%9: i32 = const value=true", "%9: u8 = const value=256",
        "%9: f32 = const value=1",
        "%9: i32 = load %0, %1", "%9: f32 = load %0, %2", "%9: f32 = load %0, %1, %1", "%9: f32 = load %1, %1",
        "store %0, %1, %1", "store %0, %1", "%9: f32 = atomic %0, %1, %2 op='mul'",
        "%9: f32 = atomic %0, %1, %2 op='cas'", "%9: f32 = extract %4 index=3", "%9: i32 = extract %4 index=0",
        "%9: vec<3,f32> = make %2, %2", "%9: vec<3,f32> = insert %4, %1 index=0", "%9: f32 = pick %4, %1, %1",
        "%9: f32 = pick %4, %2", "%9: vec<3,f32> = put %4, %1, %1", "%9: f32 = select %1, %2, %2",
        "%9: f32 = select %3, %2, %1", "%9: i32 = tid axis=4", "%9: f32 = tid axis=0",
        "%9: view<f32,1,(4)> = subview %0, %1", "%9: view<f32,1,(4)> = field %0 index=0",
        "%9: view<f32,2,(4,4)> = slice %0, %1, %1, %1 axis=0", "%9: i32 = shape %0 axis=1", "%9: f64 = bitcast %2",
        "%9: f32 = cast %4", "%9: local<f32,2,(4,4)> = local type=!fixed<f32,(3)>", "%9: f32 = nonsense %2",
        "check %1 kind='assert' message='x'", "print %1", "%9: f32 = if %1 {\n yield %2\n } {\n yield %2\n }",
        "%9: f32 = if %3 {\n yield %2\n } {\n yield %1\n }",
        "%9: f32 = for %1, %1, %1, %2 {%8: i32, %7: f32\n yield\n }",
        "%9: f32 = for %1, %1, %2, %2 {%8: i32, %7: f32\n yield %7\n }",
        "%9: f32 = for %1, %1, %1, %2 {%8: i32, %7: i32\n yield %2\n }", "%9: f32 = while %2 {%7: f32\n yield %7\n }",
    ],
)  # fmt: skip
def test_an_op_that_does_not_fit_its_specification_is_refused(line):
    with pytest.raises(InternalError, match="kernel k, op "):
        verify(of(line))


def test_a_value_of_an_arm_is_not_read_outside():
    inner = Value(i32)
    arm = Block((), (Op("const", (), (inner,), {"value": 1}),), ())
    c = Value(i32)
    ops = (Op("const", (), (c,), {"value": 2}),)
    flag = Value(f32)
    good = Func("k", "kernel", (flag,), Block((), ops))
    assert verify(good) is good
    test = Value(b1)
    bad = (Op("const", (), (test,), {"value": True}), Op("if", (test,), (), {}, (arm, Block())))
    user = Op("add", (inner, inner), (Value(i32),))
    with pytest.raises(InternalError, match="read where it is not defined"):
        verify(Func("k", "kernel", (), Block((), (*bad, user))))


def test_a_value_is_defined_once():
    v = Value(i32)
    op = Op("const", (), (v,), {"value": 1})
    again = Op("const", (), (v,), {"value": 1})
    with pytest.raises(InternalError, match="defined twice"):
        verify(Func("k", "kernel", (), Block((), (op, again))))


def test_after_scalarize_composites_are_refused():
    f = read('kernel @0 "k" (%0: f32) {\n %1: vec<2,f32> = make %0, %0\n yield\n}')
    verify(f)
    with pytest.raises(InternalError, match="composites"):
        verify(f, scalar=True)
    with pytest.raises(InternalError, match="neither a scalar nor a view"):
        verify(read('kernel @0 "k" (%0: vec<2,f32>) {\n yield\n}'), scalar=True)


def test_a_kernel_yields_nothing_and_is_not_called():
    with pytest.raises(InternalError, match="yields nothing"):
        verify(of("", tail=" yield %1\n"))
    with pytest.raises(InternalError, match="only functions are called"):
        verify(read('kernel @0 "a" () {\n yield\n}\nkernel @1 "b" () {\n call func=@0\n yield\n}'))


def test_calls_fit_their_callees():
    text = 'function @0 "f" (%0: f32) {{\n yield %0\n}}\nkernel @1 "k" (%0: f32, %1: i32) {{\n {}\n yield\n}}'
    verify(read(text.format("%2: f32 = call %0 func=@0")))
    for wrong in ("%2: f32 = call %1 func=@0", "%2: i32 = call %0 func=@0", "call %0 func=@0"):
        with pytest.raises(InternalError, match="op call"):
            verify(read(text.format(wrong)))


def test_rules_fit_their_calls():
    text = (
        'function @0 "f" (%0: vec<2,f32>, %1: i32) {{\n %2: f32 = extract %0 index=0\n yield %2, %1\n}}\n'
        'function @1 "r" ({}) {{\n yield %0\n}}\n'
        'kernel @2 "k" (%0: vec<2,f32>, %1: i32) {{\n %2: f32, %3: i32 = call %0, %1 func=@0 adjoint=@1\n yield\n}}'
    )
    given = "%0: vec<2,f32>, %1: i32, %2: f32, %3: i32"
    verify(read(text.format(f"{given}, %4: f32")))  # of what holds floats alone: one adjoint in, one out
    for wrong in (given, f"{given}, %4: f32, %5: i32", f"{given}, %4: f64"):
        with pytest.raises(InternalError, match="adjoint r is"):
            verify(read(text.format(wrong)))


TAPE = """
 %10: view<f32,1,(4)> = grad %0
 %11: bool = has_grad %0
 %12: i32 = lanes_max %1
 push %1, %2 site=1
 %13: i32, %14: f32 = pop site=1
 record %3 site=1
 %15: i64 = mark
 %16: i64 = mark read=true
 seek %15
 %17: bool = recall site=1
 %18: f32 = atomic %10, %1, %2 apart=true op='add'
"""


def test_ops_of_adjoint_programs():
    """Stack and log have sites of their own; text and program are one."""
    f = verify(of(TAPE))
    assert show(read(show(f))) == show(f) and "mark read=true" in show(f)


@pytest.mark.parametrize(
    "line",
    ["%9: view<f32,1,(?)> = grad %0",
     "%8: local<f32,1,(4)> = local type=!fixed<f32,(2)>\n %9: local<f32,1,(4)> = grad %8",
     "%9: i32 = has_grad %0", "%9: f32 = lanes_max %2", "push site=1", "push %1", "%9: i32 = pop", "pop site=1",
     "push %1 site=1\n %9: f32 = pop site=1", "push %1 site=1\n push %2 site=1",
     "record %1 site=1\n %9: f32 = recall site=1",
     "%9: i32 = mark", "seek %1", "%9: f32 = atomic %0, %1, %2 apart=true op='max'"],
)  # fmt: skip
def test_ops_of_adjoint_programs_that_do_not_fit_are_refused(line):
    with pytest.raises(InternalError, match="kernel k, op "):
        verify(of(line))
