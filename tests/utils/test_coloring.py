"""Graph colouring: valid colours, few of them, used equally often; groups; wrong graphs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import treadle as wp
from treadle import utils

MCS, GREEDY = utils.GraphColoringAlgorithm


def graph(n: int, m: int, seed: int) -> np.ndarray:
    """``m`` random edges between ``n`` nodes; some more than once."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, n, m)
    return np.stack([a, (a + rng.integers(1, n, m)) % n], 1).astype(np.int32)


@pytest.mark.parametrize("algorithm", [MCS, GREEDY])
def test_neighbours_differ(algorithm):
    for n, m in ((1, 0), (2, 1), (50, 30), (300, 2000)):
        edges, colors = graph(n, m, n), wp.zeros(n, dtype=int)
        count = utils.graph_coloring_assign(wp.array(edges, dtype=int), colors, algorithm)
        c = colors.numpy()
        assert not (c[edges[:, 0]] == c[edges[:, 1]]).any()
        assert sorted(set(c)) == list(range(count))


def test_maximum_cardinality_search_is_best_on_triangulated_graphs():
    """A strip of triangles, its nodes numbered at random."""
    names = np.random.default_rng(1).permutation(200)
    edges = np.array([(i, i + k) for i in range(198) for k in (1, 2)], dtype=np.int32)
    assert utils.graph_coloring_assign(wp.array(names[edges], dtype=int), wp.zeros(200, dtype=int), MCS) == 3


def test_balancing_keeps_colours_valid_and_never_makes_them_less_equal():
    for seed in range(6):
        n = 40 + 60 * seed
        edges, colors = graph(n, 3 * n, seed), wp.zeros(n, dtype=int)
        e = wp.array(edges, dtype=int)
        count = utils.graph_coloring_assign(e, colors, GREEDY)
        before = np.bincount(colors.numpy())
        ratio = utils.graph_coloring_balance(e, colors, count, 1.1)
        c = colors.numpy()
        after = np.bincount(c, minlength=count)
        assert not (c[edges[:, 0]] == c[edges[:, 1]]).any()
        assert ratio == after.max() / after.min() <= before.max() / before.min()
        assert ratio < 1.3


def test_a_colour_passes_nodes_on():
    """Colour 1 cannot give a node to colour 0, as all its nodes touch node 0; colour 2 gives one and gets one."""
    edges = wp.array([(0, 1), (0, 2), (0, 3), (0, 4), (0, 6), (1, 6), (2, 5), (4, 6)], dtype=int)
    colors = wp.array([0, 1, 1, 1, 1, 2, 2], dtype=int)
    assert utils.graph_coloring_balance(edges, colors, 3, 1.1, max_iterations=2) == 1.5
    assert colors.list() == [0, 1, 2, 1, 1, 0, 2]


def test_a_limit_is_told():
    edges, colors = wp.zeros((0, 2), dtype=int), wp.array([0, 0, 0, 0, 0, 1], dtype=int)
    with pytest.warns(UserWarning, match=r"limit of 1 iterations with a ratio of 2; the target was 1\.1"):
        assert utils.graph_coloring_balance(edges, colors, 2, 1.1, max_iterations=1) == 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert utils.graph_coloring_balance(edges, colors, 2, 1.1, max_iterations=1) == 1.0


def test_groups():
    colors = wp.array([2, 0, 2, 2, 0], dtype=int)
    assert [g.list() for g in utils.graph_coloring_get_groups(colors, 4)] == [[1, 4], [], [0, 2, 3], []]
    groups = utils.graph_coloring_get_groups(colors, 3, return_wp_array=False)
    assert [g.tolist() for g in groups] == [[1, 4], [], [0, 2, 3]]


def test_wrong_graphs_are_named():
    colors = wp.array([0, 1], dtype=int)
    for edge in ((-1, 0), (0, 2), (1, 1)):
        with pytest.raises(RuntimeError, match="Graph edge 0 has endpoints"):
            utils.graph_coloring_assign(wp.array([edge], dtype=int), colors)
    with pytest.raises(RuntimeError, match="Node 1 has color 1"):
        utils.graph_coloring_balance(wp.array([(0, 1)], dtype=int), colors, 1, 1.1)
    with pytest.raises(RuntimeError, match="2-dimensional"):
        utils.graph_coloring_assign(wp.zeros(3, dtype=int), colors)
    for limit, error in ((True, TypeError), (1.5, TypeError), (-1, ValueError), (2**31, ValueError)):
        with pytest.raises(error):
            utils.graph_coloring_balance(wp.array([(0, 1)], dtype=int), colors, 2, 1.1, max_iterations=limit)
