"""Reductions over arrays: values, accuracy, axes, wrong arguments."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as wp
from treadle import utils


def test_sum_is_accurate_to_a_millionth_and_the_same_every_time():
    h = np.random.default_rng(4).uniform(size=1_000_003).astype(np.float32)
    x, out = wp.array(h), wp.zeros(1, dtype=wp.float32)
    exact = h.astype(np.float64).sum()
    first = utils.array_sum(x)
    assert abs(first / exact - 1.0) < 1e-6
    assert utils.array_sum(x, out=out) is out
    assert out.numpy()[0] == np.float32(first)
    utils.array_sum(x, out=out)  # starts from zero again
    assert out.numpy()[0] == np.float32(first)


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64, wp.int32, wp.uint64, wp.int16])
def test_sum_of_scalars(dtype):
    h = np.arange(100)
    assert utils.array_sum(wp.array(h, dtype=dtype)) == 4950
    assert utils.array_sum(wp.array(h, dtype=dtype), value_count=10) == 45


def test_sum_of_vectors_and_along_axes():
    h = np.random.default_rng(1).normal(size=(5, 7, 3)).astype(np.float32)
    v = wp.array(h, dtype=wp.vec3)
    np.testing.assert_allclose(np.array(utils.array_sum(v)), h.sum((0, 1)), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(utils.array_sum(v, axis=0).numpy(), h.sum(0, keepdims=True), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(utils.array_sum(v, axis=-1).numpy(), h.sum(1, keepdims=True), rtol=1e-5, atol=1e-5)


def test_inner_product():
    h = np.random.default_rng(2).normal(size=(2, 50, 3))
    a, b = (wp.array(x, dtype=wp.vec3d) for x in h)
    assert utils.array_inner(a, b) == pytest.approx((h[0] * h[1]).sum(), rel=1e-14)
    assert utils.array_inner(wp.array(h[0, :, 0]), wp.array(h[1, :, 0])) == pytest.approx(
        h[0, :, 0] @ h[1, :, 0], rel=1e-13
    )


def test_of_nothing():
    assert utils.array_sum(wp.zeros(0, dtype=float)) == 0.0


def test_along_an_axis_many_lines_are_summed_as_few_are():
    h = np.random.default_rng(3).normal(size=(9, 11, 130)).astype(np.float32)
    a = wp.array(h)
    for axis in range(3):
        np.testing.assert_allclose(utils.array_sum(a, axis=axis).numpy(), h.sum(axis, keepdims=True), 1e-4, 1e-5)
        inner = utils.array_inner(a, a, axis=axis).numpy()
        np.testing.assert_allclose(inner, (h * h).sum(axis, keepdims=True), 1e-5)
    np.testing.assert_allclose(
        utils.array_sum(a[:, ::2], axis=1, value_count=4).numpy()[:, 0], h[:, :8:2].sum(1), 1e-5, 1e-5
    )


def test_wrong_arguments_are_named():
    a = wp.zeros((2, 3), dtype=float)
    with pytest.raises(IndexError, match="axis 2 is out of bounds"):
        utils.array_sum(a, axis=2)
    with pytest.raises(ValueError, match=r"out array should have shape \(1, 3\)"):
        utils.array_sum(a, axis=0, out=wp.zeros(2, dtype=float))
    with pytest.raises(RuntimeError, match="out array should have type float32"):
        utils.array_sum(a, out=wp.zeros(1, dtype=int))
    with pytest.raises(ValueError, match=r"must have the same shape, got \(2, 3\) and \(3, 2\)"):
        utils.array_inner(a, wp.zeros((3, 2), dtype=float))
    with pytest.raises(RuntimeError, match=r"data types do not match \(float32 vs int32\)"):
        utils.array_inner(a, wp.zeros((2, 3), dtype=int))
    with pytest.raises(ValueError, match="not negative, not -1"):
        utils.array_sum(a, value_count=-1)
