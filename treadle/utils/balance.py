"""Colours of a graph that are used equally often, and the nodes of each colour."""

from __future__ import annotations

from typing import Any

import numpy as np

import treadle as wp

from ..base.errors import ArrayError
from ..base.logs import log_warning
from .coloring import check_colors, check_graph, first_wrong, neighbours
from .sort import radix_sort_pairs

MOST = 2**31 - 1


@wp.func
def recolor(
    v: int, new: int, starts: wp.array(dtype=int), others: wp.array(dtype=int), colors: wp.array(dtype=int),
    near: wp.array2d(dtype=int), free: wp.array2d(dtype=int), sizes: wp.array(dtype=int),
):  # fmt: skip
    """Give ``v`` the colour ``new``, and keep ``near``, ``free`` and ``sizes`` as :func:`balance` says."""
    old, count = colors[v], sizes.shape[0]
    for c in range(count):
        if near[v, c] == 0:
            free[old, c] -= 1
            free[new, c] += 1
    colors[v] = new
    sizes[old] -= 1
    sizes[new] += 1
    for i in range(starts[v], starts[v + 1]):
        u = others[i]
        near[u, old] -= 1
        if near[u, old] == 0:
            free[colors[u], old] += 1
        if near[u, new] == 0:
            free[colors[u], new] -= 1
        near[u, new] += 1


@wp.func
def find_path(
    start: int, goal: int, free: wp.array2d(dtype=int), onward: wp.array(dtype=int), queue: wp.array(dtype=int)
):
    """Whether nodes can move up, colour by colour, from ``start`` to ``goal``: ``onward[c]`` is then where from c.

    A search in breadth from the goal, so that the path is short.
    """
    count = onward.shape[0]
    for c in range(count):
        onward[c] = -1
    queue[0] = goal
    head, tail = int(0), int(1)
    while head < tail and onward[start] < 0:
        to = queue[head]
        head += 1
        for c in range(count):
            if c != goal and onward[c] < 0 and free[c, to] > 0:
                onward[c] = to
                queue[tail] = c
                tail += 1
    return onward[start] >= 0


@wp.func
def rank_colors(sizes: wp.array(dtype=int), ranked: wp.array(dtype=int)):
    """Colours by size, the least used first; equal ones by number."""
    for k in range(sizes.shape[0]):
        j = k
        while j > 0 and sizes[ranked[j - 1]] > sizes[k]:
            ranked[j] = ranked[j - 1]
            j -= 1
        ranked[j] = k


@wp.kernel(gang_width=1)
def balance(
    starts: wp.array(dtype=int), others: wp.array(dtype=int), colors: wp.array(dtype=int), near: wp.array2d(dtype=int),
    free: wp.array2d(dtype=int), sizes: wp.array(dtype=int), cursor: wp.array2d(dtype=int), work: wp.array2d(dtype=int),
    target: float, limit: int, stopped: wp.array(dtype=int),
):  # fmt: skip
    """One thread: take a node of a large colour away and give one to a small colour, until no such step is left.

    A step goes along a path of colours, on which each gives a node to the next, beginning at the end (as in the proof
    of A. Hajnal and E. Szemerédi that equitable colourings exist). The difference of its ends is at least two, so the
    sum of the squares of the sizes falls with each step. ``near[v, c]`` counts the neighbours of v with colour c;
    ``free[a, b]`` the nodes of colour a that have no neighbour of colour b; ``cursor[a, b]`` is where the search for
    one goes on; ``stopped`` says that ``limit`` recolourings did not suffice.
    """
    n, count = colors.shape[0], sizes.shape[0]
    onward, queue, ranked = work[0], work[1], work[2]
    for v in range(n):
        sizes[colors[v]] += 1
        for i in range(starts[v], starts[v + 1]):
            near[v, colors[others[i]]] += 1
        for c in range(count):
            if near[v, c] == 0:
                free[colors[v], c] += 1
    changes, moving = int(0), True
    while moving:
        moving = False
        rank_colors(sizes, ranked)
        low, high = int(0), int(count - 1)
        if float(sizes[ranked[high]]) > target * float(sizes[ranked[low]]):
            # The largest and the smallest colour first, then pairs that differ less.
            span = count - 1
            while span > 0 and not moving:
                low = 0
                while low + span < count and not moving:
                    large, small = ranked[low + span], ranked[low]
                    if sizes[large] - sizes[small] >= 2:
                        moving = find_path(large, small, free, onward, queue)
                        if moving:
                            high = low + span
                    if not moving:
                        low += 1
                span -= 1
        if moving:
            # The colours of the path, in the queue; the last gives its node first.
            length, c = int(0), ranked[high]
            while c != ranked[low]:
                queue[length] = c
                length += 1
                c = onward[c]
            if changes + length > limit:
                stopped[0] = 1
                moving = False
            else:
                for k in range(length):
                    a = queue[length - 1 - k]
                    b = onward[a]
                    v = cursor[a, b]
                    while colors[v] != a or near[v, b] > 0:
                        v = (v + 1) % n
                    cursor[a, b] = v
                    recolor(v, b, starts, others, colors, near, free, sizes)
                changes += length


def graph_coloring_balance(
    edges: wp.array, node_colors: wp.array, color_count: int, target_max_min_ratio: float, *,
    max_iterations: int | None = None,
) -> float:  # fmt: skip
    """Change colours of nodes so that all are used about equally often, and no edge joins two nodes of one colour.

    Args:
        edges: pairs of nodes, int32, of shape (edges, 2).
        node_colors: int32, a valid colouring with numbers from 0; gets the new one.
        color_count: how many colours there are.
        target_max_min_ratio: stop where the most frequent colour has at most so many times the nodes of the rarest.
        max_iterations: how many nodes may be given another colour; default as many as there are nodes.

    Returns: the ratio reached, infinity where a colour is not used. It never is larger than before.

    Raises:
        ArrayError: arrays of other shapes or types, an edge whose ends are not two of the nodes, or a colour that is
            none of ``color_count``.
        TypeError, ValueError: ``max_iterations`` is not an int, is negative, or does not fit 32 bits.

    >>> import treadle as wp
    >>> edges, colors = wp.array([[0, 1]], dtype=int), wp.array([0, 1, 0, 0], dtype=int)
    >>> wp.utils.graph_coloring_balance(edges, colors, 2, 1.1)
    1.0
    >>> colors.list()
    [1, 0, 0, 1]
    """
    if max_iterations is not None and (isinstance(max_iterations, bool) or not hasattr(max_iterations, "__index__")):
        raise TypeError(f"max_iterations must be an integer or None, not {type(max_iterations).__name__}")
    limit = node_colors.size if max_iterations is None else max_iterations
    if not 0 <= limit <= MOST:
        raise ArrayError(f"max_iterations must be from 0 to {MOST}, not {limit}")
    failed = "Graph coloring balance failed: "
    n, device = check_graph(edges, node_colors, failed), node_colors.device
    at = first_wrong(check_colors, n, [node_colors, color_count])
    if at is not None:
        has = f"Node {at} has color {node_colors.numpy()[at]}"
        raise ArrayError(f"{failed}{has}, but valid colors are in the range [0, {color_count}).")
    starts, others, _ = neighbours(edges, n)

    def table(*shape: int) -> wp.array:
        return wp.zeros(shape, dtype=int, device=device)

    sizes, stopped = table(color_count), table(1)
    tables = [table(n, color_count), table(color_count, color_count), sizes, table(color_count, color_count)]
    inputs = [starts, others, node_colors, *tables, table(3, color_count), target_max_min_ratio, limit, stopped]
    wp.launch(balance, 1, inputs=inputs, device=device)
    counts = sizes.numpy()
    ratio = float(counts.max() / counts.min()) if counts.min() else float("inf")
    if stopped.numpy()[0]:
        log_warning(
            f"Graph coloring ended at its limit of {limit} iterations with a ratio of {ratio:g}; the target was "
            f"{target_max_min_ratio:g}.",
            stacklevel=2,
        )
    return ratio


def graph_coloring_get_groups(
    node_colors: wp.array, color_count: int, return_wp_array: bool = True, device: Any = "cpu"
) -> tuple[wp.array, ...] | tuple[np.ndarray, ...]:
    """The nodes of each colour, in order.

    Args:
        node_colors: int32, the colour of each node.
        color_count: how many colours there are.
        return_wp_array: whether to give arrays of ``device``; else NumPy arrays.
        device: where they shall lie.

    >>> import treadle as wp
    >>> groups = wp.utils.graph_coloring_get_groups(wp.array([0, 1, 0, 0], dtype=int), 2)
    >>> [g.list() for g in groups]
    [[0, 2, 3], [1]]
    """
    n = node_colors.size
    at = first_wrong(check_colors, n, [node_colors, color_count])
    if at is not None:
        raise ArrayError(f"node {at} has color {node_colors.numpy()[at]}, but there are {color_count}")
    keys, nodes = (wp.empty(2 * n, dtype=int, device=node_colors.device) for _ in range(2))
    wp.copy(keys, node_colors)
    wp.copy(nodes, wp.array(np.arange(n, dtype=np.int32), device=node_colors.device))
    radix_sort_pairs(keys, nodes, n, end_bit=max(color_count.bit_length(), 1))
    ends = np.cumsum(np.bincount(node_colors.numpy(), minlength=color_count))
    found = nodes.numpy()
    groups = [found[end - size : end].copy() for size, end in zip(np.diff(ends, prepend=0), ends, strict=True)]
    return tuple([wp.array(g, dtype=wp.int32, device=device) for g in groups] if return_wp_array else groups)
