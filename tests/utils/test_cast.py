"""Conversion of arrays: types, shapes, gaps, parts, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as wp
from treadle import utils


def test_types_and_shapes():
    numbers = wp.zeros((2, 2), dtype=float)
    utils.array_cast(wp.array([1, 2, 3, 4], dtype=int), numbers)
    assert numbers.list() == [1.0, 2.0, 3.0, 4.0]
    vectors, scalars = wp.array([[1.5, -2.5], [3.0, 4.0]], dtype=wp.vec2), wp.zeros(2, dtype=wp.int64)
    utils.array_cast(vectors, scalars, count=1)
    assert scalars.list() == [1, -2]
    h = np.arange(24.0).reshape(2, 3, 4)
    gaps = wp.zeros((2, 3, 8), dtype=wp.float64)
    utils.array_cast(wp.array(h, dtype=wp.float32), gaps[:, :, ::2])
    np.testing.assert_array_equal(gaps.numpy()[:, :, ::2], h)
    assert not gaps.numpy()[:, :, 1::2].any()
    same = wp.zeros(2, dtype=wp.vec2)
    utils.array_cast(vectors, same)
    np.testing.assert_array_equal(same.numpy(), vectors.numpy())


def test_tapes_see_casts():
    x, y = wp.array([1.0, 2.0], dtype=float, requires_grad=True), wp.zeros(2, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        utils.array_cast(x, y)
    y.grad.fill_(3.0)
    tape.backward()
    assert x.grad.list() == [3.0, 3.0]


def test_wrong_arguments_are_named():
    a = wp.zeros((2, 3), dtype=float)
    for args, words in (
        ((a, wp.zeros((3, 2), dtype=int)), "shapes do not match ((2, 3) vs (3, 2))"),
        ((a, wp.zeros((2, 3), dtype=int), 1), "count must be left out"),
        ((a.flatten(), wp.zeros(3, dtype=int), 5), "Cast count (5) exceeds the input size (6) or output size (3)"),
    ):
        with pytest.raises(RuntimeError) as caught:
            utils.array_cast(*args)
        assert words in str(caught.value)
