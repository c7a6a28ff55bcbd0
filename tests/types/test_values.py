"""Every named class: one a type, equal by value, open shapes, pickling."""

import copy
import pickle

import numpy as np
import pytest

from treadle.types import values
from treadle.types.core import f32, vector
from treadle.types.values import class_of, matrix_class, vector_class


def test_a_type_has_one_class_and_the_class_names_its_type():
    assert values.vec3 is values.vec3f is vector_class(3, f32) is class_of(vector(3, f32))
    assert values.vec3.__treadle_type__ is vector(3, f32)
    assert values.vec3.__name__ == "vec3f" and values.vec3.dtype is values.float32
    assert values.matrix(shape=(2, 3), dtype=float) is matrix_class(2, 3, f32)


@pytest.mark.parametrize("name", sorted(values.names()))
def test_every_named_class_starts_at_zero_and_survives_pickling(name):
    cls = getattr(values, name)
    value = cls()
    again = pickle.loads(pickle.dumps(value))
    assert type(again) is cls and again == value
    assert copy.deepcopy(value) == value
    if "transform" in name:
        assert list(value) == [0, 0, 0, 0, 0, 0, 1]
    elif hasattr(value, "value"):
        assert value.value == 0
    else:
        assert not np.asarray(value).any()


def test_values_compare_and_hash_by_value():
    assert values.vec2(1, 2) == values.vec2(1, 2) != values.vec2(1, 3)
    assert len({values.vec2(1, 2), values.vec2d(1, 2), (1, 2)}) == 1 and values.vec2(1, 2) != values.quat(1, 2, 3, 4)
    m = values.mat22(1, 2, 3, 4)
    assert len({m, values.mat22d(m), ((1, 2), (3, 4))}) == 1 and m != (1, 2, 3, 4) and m != values.vec4(1, 2, 3, 4)
    assert values.int32(3) == 3 and values.float32(0.5) < 1 and hash(values.int32(3)) == hash(3)


def test_open_shapes_stand_for_any_value():
    from typing import Any

    from treadle.types.annotations import type_of

    assert type_of(values.vector(length=Any, dtype=float)) is None
    assert type_of(values.matrix(shape=(3, Any), dtype=float)) is None
    assert len(values.vector(length=0, dtype=float)()) == 0
    with pytest.raises(TypeError):
        values.vector(length=-1, dtype=float)
