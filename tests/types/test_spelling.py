"""Types are shown as users write them."""

import pytest

from treadle.types import values
from treadle.types.core import Struct, array, bf16, f32, fixed, i32, indexed, matrix, quaternion, tuple_of, vector, view
from treadle.types.spelling import spell


@pytest.mark.parametrize("name", sorted(values.names()))
def test_the_name_of_a_type_leads_back_to_it(name):
    t = values.names()[name]
    assert values.names()[spell(t)] is t


def test_other_types_are_shown_by_their_maker():
    assert spell(vector(5, f32)) == "vector(length=5, dtype=float32)"
    assert spell(matrix(2, 3, f32)) == "matrix(shape=(2, 3), dtype=float32)"
    assert spell(quaternion(bf16)) == "quat(dtype=bfloat16)"
    assert spell(view(f32, 1)) == spell(array(f32, 1)) == "array(dtype=float32)"
    assert spell(array(None, 2)) == "array(dtype=Any, ndim=2)"
    for t in (indexed(view(f32, 1), (view(i32, 1),)), array(f32, 1, "indexedarray")):
        assert spell(t) == "indexedarray(dtype=float32)"
    assert spell(array(None, 2, "indexedarray")) == "indexedarray(dtype=Any, ndim=2)"
    assert spell(fixed(i32, (3,))) == "fixedarray(dtype=int32, shape=(3,))"
    assert spell(tuple_of(f32, i32)) == "tuple[float32, int32]"
    assert spell(Struct("scene.Ball", ())) == "Ball" and spell(None) == "None"
