"""Text back into programs."""

import pytest

from tests.ir.test_show import sample
from tests.random_ir import program
from treadle.base.errors import InternalError
from treadle.ir.read import read, read_type
from treadle.ir.show import show
from treadle.ir.verify import verify
from treadle.types.core import (
    Struct,
    array,
    bucket,
    bucketed,
    f32,
    fixed,
    i32,
    indexed,
    matrix,
    quaternion,
    transformation,
    tuple_of,
    vector,
    view,
)


def test_reading_undoes_showing():
    text = show(sample())
    assert show(verify(read(text))) == text


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_survive(seed):
    text = show(program(seed))
    assert show(verify(read(text))) == text


@pytest.mark.parametrize(
    "t",
    [f32, vector(3, f32), matrix(2, 3, i32), quaternion(f32), transformation(f32), fixed(vector(3, f32), (2, 4)),
     view(f32, 1), view(vector(3, f32), 3, (None, -12, 12)), view(f32, 2, planar=True), view(f32, 1, space="local"),
     tuple_of(f32, vector(2, f32)), tuple_of(), array(f32, 2), array(None, 1), array(f32, 2, "indexedarray"),
     bucketed(f32), bucketed(vector(3, f32), 2, True), bucket(f32, True), array(None, 1, "indexedfabricarray"),
     indexed(view(vector(3, f32), 2, (None, -12)), (None, view(i32, 1, (None,))))],
    ids=repr,
)  # fmt: skip
def test_types_are_read_as_themselves(t):
    assert read_type(t.name) is t


def test_structs_are_taken_from_the_caller_or_made():
    s = Struct("f.<locals>.P", (("x", f32),))
    assert read_type("struct<f.<locals>.P>", {s.key: s}) is s
    made = read("struct 'P' (x: f32, v: vec<3,f32>)\nkernel @0 \"k\" (%0: struct<P>) {\n yield\n}").params[0].type
    assert made.fields == (("x", f32), ("v", vector(3, f32)))


@pytest.mark.parametrize(
    "text, complaint",
    [
        ('kernel @0 "k" () {\n %0: i32 = add %7, %7\n yield\n}', "line 2.*%7 is not defined"),
        ('kernel @0 "k" () {\n %0: q7 = const value=1\n yield\n}', "line 2"),
        ('kernel @0 "k" () {\n yield', "ends inside"),
        ('kernel @0 "k" (%0: f32 {\n yield\n}', "line 1"),
        ("", "no function"),
    ],
)
def test_what_is_no_program_is_refused_with_its_line(text, complaint):
    with pytest.raises(InternalError, match=complaint):
        read(text)
