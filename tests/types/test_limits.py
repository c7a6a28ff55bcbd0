"""What open annotations ask for."""

from typing import Any, TypeVar

import pytest

import treadle as wp
from treadle.types.annotations import type_of
from treadle.types.core import b1, bf16, f32, f64, i8, i32, matrix, quaternion, tile, transformation, vector, view
from treadle.types.limits import limit_of

TAKES = [
    (wp.Int, [i32, i8], [f32, b1, vector(2, i32)]),
    (wp.Float, [f32, bf16], [i32, b1]),
    (wp.Scalar, [i32, f64], [b1, vector(2, f32)]),
    ("wp.Float", [f32], [i32]),
    (wp.types.vector(length=Any, dtype=float), [vector(2, f32), vector(5, f32)], [vector(2, f64), quaternion(f32)]),
    (wp.types.vector(length=3, dtype=wp.Float), [vector(3, f64)], [vector(3, i32), vector(2, f32)]),
    (wp.types.matrix(shape=(Any, 2), dtype=Any), [matrix(3, 2, i32)], [matrix(2, 3, i32), vector(2, f32)]),
    (wp.types.quaternion(), [quaternion(f64)], [vector(4, f64)]),
    (wp.types.transformation(dtype=wp.Float), [transformation(f32)], [vector(7, f32)]),
    (wp.array(dtype=wp.types.vector(length=Any, dtype=float)), [view(vector(2, f32), 1)], [view(f32, 1), f32]),
    (wp.array[float, Any], [view(f32, 1), view(f32, 3)], [view(f64, 1), f32]),
    (wp.tile[float], [tile(f32, (2,)), tile(f32, (2, 3))], [tile(f64, (2,)), vector(2, f32)]),
    (wp.tile[Any, 2], [tile(i32, (2,))], [tile(i32, (3,))]),
]  # fmt: skip


@pytest.mark.parametrize(("annotation", "fits", "others"), TAKES, ids=lambda x: str(x)[:50])
def test_limits(annotation, fits, others):
    limit = limit_of(annotation, {"wp": wp})
    assert all(map(limit, fits)) and not any(map(limit, others))


@pytest.mark.parametrize("annotation", [Any, TypeVar("T"), wp.array(dtype=Any), float, wp.vec3], ids=str)
def test_what_asks_for_nothing_more(annotation):
    assert limit_of(annotation) is None


def test_equal_annotations_make_equal_limits():
    make = wp.types.vector
    assert limit_of(make(length=Any, dtype=float)) == limit_of(make(length=Any, dtype=wp.float32))
    assert limit_of(make(length=Any, dtype=float)) != limit_of(make(length=Any, dtype=wp.Float)) != limit_of(wp.Float)
    assert repr(make(length=Any, dtype=wp.Float)) == "vector(length=Any, dtype=Float)"
    assert type_of(make(length=Any, dtype=wp.Float)) is None
