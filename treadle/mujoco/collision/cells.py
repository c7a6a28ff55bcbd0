"""Which vertices of a hull can be farthest in a direction: lists for the cells of a cube around it.

A direction's cell is where it leaves the cube, whose sides are divided into ``CELLS`` by ``CELLS``. In a cell's list
are all vertices that are farthest in one of the directions through it, and few others, so what is farthest is found by
a look at one short list. Directions through a cell are sums, with positive weights, of those to its four corners: a
vertex that is behind another at all four is never farthest.
"""

from __future__ import annotations

import numpy as np

LEVELS = 5
CELLS = 2 ** (LEVELS - 1)  # along each edge of the cube
Lists = tuple[np.ndarray, np.ndarray]  # of each entry the cell, and the vertex


def candidates(points: np.ndarray, starts: np.ndarray, neighbours: np.ndarray) -> tuple[np.ndarray, ...]:
    """The lists of a hull: of each entry the cell, in ascending order, and the vertex; and of each cell how far the
    hull reaches along the directions to its four corners, (cells, 4).

    The neighbours of vertex i are ``neighbours[starts[i] : starts[i + 1]]``. Lists are made for the sides of the cube
    first, then for the quarters of each cell, as what is never farthest in a cell is not so in its parts.
    """
    count = len(points)
    cell, vertex = np.repeat(np.arange(6), count), np.tile(np.arange(count), 6)
    for level in range(LEVELS):
        if level:
            cell, vertex = _quartered(cell, vertex, 2 ** (level - 1))
        heights = _heights(points, cell, vertex, 2**level)
        kept = _ahead(heights, cell)
        cell, vertex = cell[kept], vertex[kept]
    heights = heights[:, kept]
    kept = _beside(heights, points, starts, neighbours, cell, vertex)
    cell, vertex, heights = cell[kept], vertex[kept], heights[:, kept]
    tops = np.maximum.reduceat(heights, np.flatnonzero(np.diff(cell, prepend=-1)), axis=1)
    return cell, vertex, tops.T


def _heights(points: np.ndarray, cell: np.ndarray, vertex: np.ndarray, cells: int) -> np.ndarray:
    """How far vertices are along the directions to the four corners of cells: (4, entries)."""
    axis, side, u, v = np.unravel_index(np.arange(6 * cells * cells), (3, 2, cells, cells))
    along = [points.reshape(-1)[3 * vertex + ((axis + k) % 3)[cell]] for k in range(3)]
    along[0] *= (2.0 * side - 1.0)[cell]
    across = [along[0] + along[1] * ((u + d) * 2.0 / cells - 1.0)[cell] for d in (0, 1)]
    up = [along[2] * ((v + d) * 2.0 / cells - 1.0)[cell] for d in (0, 1)]
    return np.stack([across[k // 2] + up[k % 2] for k in range(4)])


def _quartered(cell: np.ndarray, vertex: np.ndarray, cells: int) -> Lists:
    side, u, v = np.unravel_index(cell, (6, cells, cells))
    quarter = (np.arange(4) // 2)[:, None], (np.arange(4) % 2)[:, None]
    made = ((side * 2 * cells + 2 * u + quarter[0]) * 2 * cells + 2 * v + quarter[1]).reshape(-1)
    order = np.argsort(made, kind="stable")
    return made[order], np.tile(vertex, 4)[order]


def _ahead(heights: np.ndarray, cell: np.ndarray) -> np.ndarray:
    """Which entries are not behind one of those that are farthest at the corners or in the middle of their cell."""
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    length = np.diff(np.append(first, len(cell)))
    kept, leads = np.ones(len(cell), bool), np.zeros(len(cell), bool)
    for scores in (*heights, heights.sum(axis=0)):
        top = np.flatnonzero(scores == np.repeat(np.maximum.reduceat(scores, first), length))
        leader = top[np.searchsorted(top, first)]  # the first of a cell that is farthest there
        leads[leader] = True
        behind = np.ones(len(cell), bool)
        for corner in heights:
            behind &= corner <= np.repeat(corner[leader], length)
        kept &= ~behind
    return np.flatnonzero(kept | leads)


def _beside(
    heights: np.ndarray, points: np.ndarray, starts: np.ndarray, neighbours: np.ndarray, cell: np.ndarray,
    vertex: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Which entries are not behind one of their neighbours."""
    length = np.diff(starts)[vertex]
    entry = np.repeat(np.arange(len(vertex)), length)
    at = np.arange(len(entry)) + np.repeat(starts[vertex] - (np.cumsum(length) - length), length)
    own, others = heights[:, entry], _heights(points, cell[entry], neighbours[at], CELLS)
    behind = own.sum(axis=0) < others.sum(axis=0)
    for corner, other in zip(own, others, strict=True):
        behind &= corner <= other
    kept = np.ones(len(vertex), bool)
    kept[entry[behind]] = False
    return np.flatnonzero(kept)
