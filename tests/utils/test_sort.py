"""Sorting pairs: against NumPy's stable sort, for all types of keys, ranges of bits and segments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as wp
from treadle import utils
from treadle.base.errors import ArrayError
from treadle.utils import sort


def doubled(h: np.ndarray, dtype: type) -> wp.array:
    """``h`` with as much scratch behind it."""
    return wp.array(np.concatenate([h, h]), dtype=dtype)


@pytest.mark.parametrize("dtype", sort.KEYS)
def test_keys_of_all_types_sort_as_numpy_sorts_them(dtype):
    rng = np.random.default_rng(1)
    bits = np.iinfo if not wp.types.type_is_float(dtype) else None
    plain = wp.dtype_to_numpy(dtype)
    for n in (0, 1, 7, 10_001):
        h = rng.normal(0, 1e6, n).astype(plain) if bits is None else rng.integers(
            bits(plain).min, bits(plain).max, n, plain, endpoint=True)  # fmt: skip
        h[::5] = h[:1]  # equal keys
        keys, values = doubled(h, dtype), doubled(np.arange(n), wp.int32)
        utils.radix_sort_pairs(keys, values, n)
        order = np.argsort(h, kind="stable")
        np.testing.assert_array_equal(keys.numpy()[:n], h[order])
        np.testing.assert_array_equal(values.numpy()[:n], order)


def test_special_floats():
    h = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1e-40, 1e-40], dtype=np.float32)
    keys, values = doubled(h, wp.float32), doubled(np.arange(7), wp.int32)
    utils.radix_sort_pairs(keys, values, 7)
    assert values.list()[:7] == [3, 5, 1, 0, 6, 2, 4]


def test_a_range_of_bits_and_wide_values():
    h = np.random.default_rng(2).integers(0, 1 << 30, 5000)
    for low, high in ((0, 3), (5, 17), (0, 32), (31, 31)):
        keys, values = doubled(h, wp.uint32), doubled(h * 0.5, wp.float64)
        utils.radix_sort_pairs(keys, values, 5000, begin_bit=low, end_bit=high)
        order = np.argsort((h >> low) & ((1 << (high - low)) - 1), kind="stable")
        np.testing.assert_array_equal(keys.numpy()[:5000], h[order])
        np.testing.assert_array_equal(values.numpy()[:5000], h[order] * 0.5)


def test_gradients_go_where_values_came_from():
    keys, values = wp.array([3, 1, 2, 0, 0, 0], dtype=int), wp.array(np.arange(6.0), dtype=float, requires_grad=True)
    picked = wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        utils.radix_sort_pairs(keys, values, 3)
        wp.copy(picked, values[:3])
    picked.grad.assign([1.0, 10.0, 100.0])
    tape.backward()
    assert values.grad.list()[:3] == [100.0, 1.0, 10.0]


@pytest.mark.parametrize("dtype", [wp.int32, wp.float32])
def test_segments_are_sorted_each_for_itself(dtype):
    """Short ones, long ones, one of few different keys, empty ones, and pairs between them that stay."""
    h = np.random.default_rng(3).integers(-(10**6), 10**6, 3000).astype(wp.dtype_to_numpy(dtype))
    h[1000:1500] %= 4
    starts, ends = [0, 20, 20, 100, 1000, 2000], [20, 20, 60, 900, 1500, 3000]
    keys, values = doubled(h, dtype), doubled(np.arange(3000), wp.int32)
    utils.segmented_sort_pairs(keys, values, 3000, wp.array(starts, dtype=int), wp.array(ends, dtype=int))
    order = np.arange(3000)
    for s, e in zip(starts, ends, strict=True):
        order[s:e] = s + np.argsort(h[s:e], kind="stable")
    np.testing.assert_array_equal(keys.numpy()[:3000], h[order])
    np.testing.assert_array_equal(values.numpy()[:3000], order)


def test_wrong_segments_leave_everything_as_it_was():
    keys, values = wp.array([2, 1, 4, 3, 0, 0, 0, 0], dtype=int), wp.array(np.arange(8), dtype=int)
    for offsets in ([0, 2, 5], [0, 2, 1]):
        with pytest.raises(ValueError, match="Invalid segment range at index 1"):
            utils.segmented_sort_pairs(keys, values, 4, wp.array(offsets, dtype=int))
    assert keys.list() == [2, 1, 4, 3, 0, 0, 0, 0]
    with pytest.raises(TypeError, match="count must be an integer"):
        utils.segmented_sort_pairs(keys, values, 1.5, wp.array([0], dtype=int))
    with pytest.raises(RuntimeError, match="must be one-dimensional"):
        utils.segmented_sort_pairs(keys, values, 4, wp.zeros((2, 2), dtype=int))


def test_wrong_pairs_are_named():
    a = wp.zeros(6, dtype=int)
    for keys, values, count, words in (
        (a, a, 4, "room for 2 * count = 8 elements"),
        (a, wp.zeros(6, dtype=wp.float16), 3, "int32, float16"),
        (a[::2], a, 1, "contiguous keys array"),
    ):
        with pytest.raises(RuntimeError) as caught:
            utils.radix_sort_pairs(keys, values, count)
        assert words in str(caught.value)
    with pytest.raises(RuntimeError, match=r"\[4, 2\) for 32-bit keys"):
        utils.radix_sort_pairs(a, a, 3, begin_bit=4, end_bit=2)


@wp.kernel
def weigh(v: wp.array(dtype=Any), weights: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, float(v[i]) * weights[i])


def by_radix(keys, values, n):
    utils.radix_sort_pairs(keys, values, n)


def in_segments(keys, values, n):
    utils.segmented_sort_pairs(keys, values, n, wp.array([0, n // 2, n], dtype=int))


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize(
    ("sort", "what"),
    [(by_radix, "keys"), (by_radix, "values"), (by_radix, "wide keys"), (by_radix, "wide values"),
     (in_segments, "keys"), (in_segments, "wide keys")],
)  # fmt: skip
def test_gradients_go_through_what_a_sort_moves(sort, what, graded):
    n = 60
    dtype = wp.float64 if "wide" in what else wp.float32
    h = np.random.default_rng(3).permutation(n).astype(float)
    x = wp.array(h, dtype=dtype, requires_grad=True)
    moved, other = wp.zeros(2 * n, dtype=dtype, requires_grad=graded), doubled(h, wp.int32)
    weights, loss = wp.array(np.arange(1.0, n + 1), dtype=float), wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(moved, x, count=n)
        sort(*((moved, other) if "keys" in what else (other, moved)), n)
        wp.launch(weigh, dim=n, inputs=[moved, weights, loss])
    tape.backward(loss)
    halves = [h] if sort is by_radix else [h[: n // 2], h[n // 2 :]]
    order = np.concatenate([np.argsort(half) + k * (n // 2) for k, half in enumerate(halves)])
    np.testing.assert_array_equal(moved.numpy()[:n], h[order])
    np.testing.assert_array_equal(other.numpy()[:n], h[order])
    expected = np.zeros(n)
    expected[order] = weights.numpy()
    np.testing.assert_array_equal(x.grad.numpy(), expected)


@wp.kernel
def weigh_cubes(v: wp.array(dtype=float), weights: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, v[i] * v[i] * v[i] * weights[i])


def test_tangents_go_through_a_sort():
    weights = wp.array([1.0, 10.0, 100.0], dtype=float)

    def cubes(x):
        keys, values, total = wp.zeros(6, dtype=float), wp.zeros(6, dtype=int), wp.zeros(1, dtype=float)
        wp.copy(keys, x, count=3)
        utils.radix_sort_pairs(keys, values, 3)
        wp.launch(weigh_cubes, dim=3, inputs=[keys, weights, total])
        return total

    (product,) = wp.hvp(cubes, [wp.array([3.0, 1.0, 2.0], dtype=float)], [[1.0, 1.0, 2.0]])
    assert product.list() == [6 * 3.0 * 100, 6 * 1.0, 6 * 2.0 * 10 * 2]


def test_a_sort_captured_under_a_tape_is_followed():
    x = wp.array([10.0, 30.0, 20.0], dtype=float, requires_grad=True)
    keys, values = wp.array([2, 0, 1, 0, 0, 0], dtype=int), wp.zeros(6, dtype=float)
    out = wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        with wp.ScopedCapture() as capture:
            wp.copy(values, x, count=3)
            utils.radix_sort_pairs(keys, values, 3)
            wp.copy(out, values, count=3)
        wp.capture_launch(capture.graph)
    assert out.list() == [30.0, 20.0, 10.0]
    tape.backward(grads={out: wp.array([1.0, 2.0, 3.0], dtype=float)})
    assert x.grad.list() == [3.0, 1.0, 2.0]


def test_what_cannot_be_sorted_is_named():
    short, starts = wp.zeros(8, dtype=wp.int16), wp.array([0, 4], dtype=int)
    with pytest.raises(ArrayError, match="with values of int32 .*, not int16; .* data type: int32$"):
        utils.segmented_sort_pairs(wp.zeros(8, dtype=int), short, 4, starts)
    with pytest.raises(ArrayError, match="int16, of the keys, which are one of int32"):
        utils.segmented_sort_pairs(short, wp.zeros(8, dtype=int), 4, starts)
