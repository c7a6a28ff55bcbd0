"""``wp.utils``: prefix sums, sorting, run lengths, reductions and conversions of whole arrays, and graph colouring.

Everything here is written as users write: kernels in the kernel language, launched from Python. So it runs in gangs on
all cores and on any other device, gives the same bits with any number of workers, and tapes and graphs see it.
"""

from typing import Any

from ..absent import absent
from .balance import graph_coloring_balance, graph_coloring_get_groups
from .cast import array_cast
from .coloring import GraphColoringAlgorithm, graph_coloring_assign
from .functions import create_warp_function
from .reduce import array_inner, array_sum
from .runs import runlength_encode
from .scan import array_scan
from .sort import radix_sort_pairs, segmented_sort_pairs

__all__ = [
    "GraphColoringAlgorithm",
    "array_cast",
    "array_inner",
    "array_scan",
    "array_sum",
    "create_warp_function",
    "graph_coloring_assign",
    "graph_coloring_balance",
    "graph_coloring_get_groups",
    "radix_sort_pairs",
    "runlength_encode",
    "segmented_sort_pairs",
]


def __getattr__(name: str) -> Any:
    raise absent(__name__, name)
