"""Run-length encoding against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as wp
from treadle import utils


@pytest.mark.parametrize("n", [0, 1, 100, 20_000])
def test_runs_of_sorted_values(n):
    h = np.sort(np.random.default_rng(n).integers(0, n // 4 + 1, n))
    values, runs, lengths = wp.array(h, dtype=int), wp.zeros(n, dtype=int), wp.zeros(n, dtype=int)
    count = utils.runlength_encode(values, runs, lengths)
    expected = np.unique(h, return_counts=True)
    assert count == len(expected[0])
    np.testing.assert_array_equal(runs.numpy()[:count], expected[0])
    np.testing.assert_array_equal(lengths.numpy()[:count], expected[1])


def test_a_part_of_the_values_and_a_count_in_an_array():
    values, runs, lengths = wp.array([1, 1, 2, 1, 1, 1], dtype=int), wp.zeros(6, dtype=int), wp.zeros(6, dtype=int)
    count = wp.zeros(1, dtype=int)
    assert utils.runlength_encode(values, runs, lengths, count, value_count=5) is count
    assert (count.list(), runs.list()[:3], lengths.list()[:3]) == ([3], [1, 2, 1], [2, 1, 2])
    utils.runlength_encode(values, runs, lengths, count, value_count=0)
    assert count.list() == [0]


def test_wrong_arguments_are_named():
    a, short, other = wp.zeros(4, dtype=int), wp.zeros(1, dtype=int), wp.zeros(4, dtype=float)
    for args, words in (
        ((a, short, a), "room for value_count (4)"),
        ((a, other, a), "data types do not match (int32 vs float32)"),
        ((a, a, other), "run_lengths array must be of type int32"),
        ((a, a, a, other[:1]), "run_count array must be of type int32"),
        ((other, other, a), "Unsupported data type: float32"),
        ((a, a, a, None, -1), "value_count must be non-negative, got -1"),
    ):
        with pytest.raises(RuntimeError) as caught:
            utils.runlength_encode(*args)
        assert words in str(caught.value)
