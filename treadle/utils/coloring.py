"""Graph colouring: colours for nodes so that no edge joins two of one colour."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import treadle as wp

from ..base.errors import ArrayError
from .scan import array_scan
from .sort import radix_sort_pairs


class GraphColoringAlgorithm(IntEnum):
    """In which order nodes get the first colour that none of their neighbours has."""

    MCS = 0  # next the node with most coloured neighbours (R. Tarjan, M. Yannakakis, 1984): best on triangulated graphs
    GREEDY = 1  # nodes of many neighbours first (D. Welsh, M. Powell, 1967)


@wp.kernel
def check_edges(edges: wp.array2d(dtype=int), nodes: int, wrong: wp.array(dtype=int)):
    """The first edge whose ends are not two of the nodes."""
    i = wp.tid()
    a, b = edges[i, 0], edges[i, 1]
    if a < 0 or b < 0 or a >= nodes or b >= nodes or a == b:
        wp.atomic_min(wrong, 0, i)


@wp.kernel
def check_colors(colors: wp.array(dtype=int), count: int, wrong: wp.array(dtype=int)):
    """The first node whose colour is none of ``count``."""
    i = wp.tid()
    if colors[i] < 0 or colors[i] >= count:
        wp.atomic_min(wrong, 0, i)


@wp.kernel
def list_ends(
    edges: wp.array2d(dtype=int), nodes: wp.array(dtype=int), others: wp.array(dtype=int), degrees: wp.array(dtype=int)
):
    """Each edge from both of its ends, and how many edges a node has."""
    i = wp.tid()
    for k in range(2):
        node = edges[i, k]
        nodes[2 * i + k] = node
        others[2 * i + k] = edges[i, 1 - k]
        wp.atomic_add(degrees, node, 1)


@wp.kernel
def number_nodes(degrees: wp.array(dtype=int), keys: wp.array(dtype=int), nodes: wp.array(dtype=int)):
    """Nodes with keys by which those of many edges come first."""
    i = wp.tid()
    keys[i] = -degrees[i]
    nodes[i] = i


@wp.kernel(gang_width=1)
def order_by_cardinality(
    starts: wp.array(dtype=int), others: wp.array(dtype=int), stack: wp.array2d(dtype=int), tops: wp.array(dtype=int),
    known: wp.array(dtype=int), order: wp.array(dtype=int),
):  # fmt: skip
    """Nodes in the order of a maximum cardinality search, by one thread.

    ``known[v]`` counts the neighbours that have had their turn; -1: v had its own. A stack for each count holds the
    nodes that have reached it, as lists through the entries ``(node, entry below)`` of ``stack``; ``tops`` are their
    ends. Entries of nodes that have moved on are dropped when they come up.
    """
    n, used, highest = order.shape[0], int(0), int(0)
    for k in range(n):
        tops[k] = -1
    for v in range(n - 1, -1, -1):  # so that node 0 is the first
        known[v] = 0
        stack[used, 0] = v
        stack[used, 1] = tops[0]
        tops[0] = used
        used += 1
    for turn in range(n):
        v = int(-1)
        while v < 0:
            top = tops[highest]
            if top < 0:
                highest -= 1
            else:
                tops[highest] = stack[top, 1]
                if known[stack[top, 0]] == highest:
                    v = stack[top, 0]
        order[turn] = v
        known[v] = -1
        for i in range(starts[v], starts[v + 1]):
            u = others[i]
            if known[u] >= 0:
                count = wp.min(known[u] + 1, n - 1)
                known[u] = count
                stack[used, 0] = u
                stack[used, 1] = tops[count]
                tops[count] = used
                used += 1
                highest = wp.max(highest, count)


@wp.kernel(gang_width=1)
def color_in_order(
    order: wp.array(dtype=int), starts: wp.array(dtype=int), others: wp.array(dtype=int), taken: wp.array(dtype=int),
    colors: wp.array(dtype=int), count: wp.array(dtype=int),
):  # fmt: skip
    """One node after the other takes the first colour that no neighbour has; ``taken[c]`` is who was last denied c."""
    for v in range(order.shape[0]):
        colors[v] = -1
        taken[v] = -1
    most = int(0)
    for turn in range(order.shape[0]):
        v = order[turn]
        for i in range(starts[v], starts[v + 1]):
            c = colors[others[i]]
            if c >= 0:
                taken[c] = v
        color = int(0)
        while taken[color] == v:
            color += 1
        colors[v] = color
        most = wp.max(most, color + 1)
    count[0] = most


def graph_coloring_assign(
    edges: wp.array, node_colors: wp.array, algorithm: GraphColoringAlgorithm = GraphColoringAlgorithm.MCS
) -> int:
    """Give each node a colour that none of its neighbours has: nodes of one colour can be worked on at the same time.

    Args:
        edges: pairs of nodes, int32, of shape (edges, 2).
        node_colors: int32, of as many elements as there are nodes; gets the colours, numbers from 0.
        algorithm: in which order nodes are coloured.

    Returns: how many colours there are: at most one more than a node has neighbours.

    Raises:
        ArrayError: no nodes, arrays of other shapes or types, or an edge whose ends are not two of the nodes.

    >>> import treadle as wp
    >>> square, colors = wp.array([[0, 1], [1, 2], [2, 3], [3, 0]], dtype=int), wp.zeros(4, dtype=int)
    >>> wp.utils.graph_coloring_assign(square, colors)
    2
    >>> colors.list()
    [0, 1, 0, 1]
    """
    algorithm = GraphColoringAlgorithm(algorithm)
    n, device = check_graph(edges, node_colors, "Graph coloring failed: "), node_colors.device
    if n == 0:
        raise ArrayError("a graph without nodes cannot be colored")
    starts, others, degrees = neighbours(edges, n)
    if algorithm is GraphColoringAlgorithm.MCS:
        order, known, tops = (wp.empty(n, dtype=int, device=device) for _ in range(3))
        stack = wp.empty((n + others.size, 2), dtype=int, device=device)
        wp.launch(order_by_cardinality, 1, inputs=[starts, others, stack, tops, known, order], device=device)
    else:
        keys, order = (wp.empty(2 * n, dtype=int, device=device) for _ in range(2))
        wp.launch(number_nodes, n, inputs=[degrees], outputs=[keys, order], device=device)
        radix_sort_pairs(keys, order, n)
        order = order[:n]
    taken, count = wp.empty(n, dtype=int, device=device), wp.zeros(1, dtype=int, device=device)
    inputs = [order, starts, others, taken, node_colors, count]
    wp.launch(color_in_order, 1, inputs=inputs, device=device)
    return int(count.numpy()[0])


def check_graph(edges: wp.array, node_colors: wp.array, failed: str) -> int:
    """The number of nodes, after all that can be wrong with a graph."""
    for name, a, ndim in (("edges", edges, 2), ("node_colors", node_colors, 1)):
        if a.ndim != ndim:
            raise ArrayError(f"{name} array must be {ndim}-dimensional, got {a.ndim} dimensions")
        if a.dtype is not wp.int32:
            raise ArrayError(f"{name} array must have dtype int32, got {a.dtype.__name__}")
    if edges.shape[1] != 2:
        raise ArrayError(f"edges array must have shape (edges, 2), got {edges.shape}")
    n = node_colors.size
    at = first_wrong(check_edges, edges.shape[0], [edges, n])
    if at is not None:
        ends = tuple([int(v) for v in edges.numpy()[at]])
        says = "connects a node with itself" if ends[0] == ends[1] else f"valid node indices are in the range [0, {n})"
        raise ArrayError(f"{failed}Graph edge {at} has endpoints {ends}, but {says}.")
    return n


def first_wrong(kernel: wp.Kernel, n: int, inputs: list[Any]) -> int | None:
    """The first of ``n`` items that ``kernel`` finds wrong."""
    device = inputs[0].device
    wrong = wp.full(1, n, dtype=int, device=device)
    wp.launch(kernel, n, inputs=[*inputs, wrong], device=device)
    found = int(wrong.numpy()[0])
    return found if found < n else None


def neighbours(edges: wp.array, n: int) -> tuple[wp.array, wp.array, wp.array]:
    """``(starts, others, degrees)``: the neighbours of v are ``others[starts[v] : starts[v + 1]]``."""
    m, device = edges.shape[0], edges.device
    degrees, starts = (wp.zeros(n + 1, dtype=int, device=device) for _ in range(2))
    nodes, others = (wp.empty(4 * m, dtype=int, device=device) for _ in range(2))  # half of it is for sorting
    wp.launch(list_ends, m, inputs=[edges], outputs=[nodes, others, degrees], device=device)
    array_scan(degrees, starts, inclusive=False)
    radix_sort_pairs(nodes, others, 2 * m, end_bit=n.bit_length())
    return starts, others[: 2 * m], degrees[:n]
