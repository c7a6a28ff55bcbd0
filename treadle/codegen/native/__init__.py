"""Native helpers written as LLVM text: the worker pool, the launch driver, the launchers, and how they become Binaries.

These functions are what the runtime asks for (``runtime.native.Room``). Nothing is written or compiled before it is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache

from ...base.binary import Binary
from ...base.digest import digest
from ...types.core import Scalar


@cache
def revision() -> str:
    """Stands for all the text that this room writes, in cache keys: the digest of the sources that write it."""
    here = os.path.dirname(__file__)
    files = sorted(os.path.join(here, name) for name in os.listdir(here) if name.endswith(".py"))
    files.append(os.path.join(here, "..", "..", "types", "records.py"))
    return digest(*map(_content, files))


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def driver_binary() -> Binary:
    """The worker pool and the launch driver."""
    from .build import driver_binary

    return driver_binary()


def merge_binary(op: str, t: Scalar) -> Binary:
    """The function that merges private values of ``op`` over ``t``."""
    from .build import merge_binary

    return merge_binary(op, t)


def fold_binary(t: Scalar) -> Binary:
    """The function that adds up the slots of ``t``."""
    from .build import fold_binary

    return fold_binary(t)


def pieces_binary() -> Binary:
    """The functions that put pieces of memory aside and exchange them."""
    from .build import pieces_binary

    return pieces_binary()


def graph_binary() -> Binary:
    """The function that replays graphs, and what their entries call."""
    from .build import graph_binary

    return graph_binary()


def ffi_binary(layout: Mapping[str, int]) -> Binary:
    """A handler of XLA's foreign function interface."""
    from .build import ffi_binary

    return ffi_binary(layout)


def ffi_gpu_binary(layout: Mapping[str, int]) -> Binary:
    """A handler that XLA calls to give work to a GPU."""
    from .build import ffi_gpu_binary

    return ffi_gpu_binary(layout)


def launcher_binary() -> Binary:
    """The native launcher."""
    from .build import launcher_binary

    return launcher_binary()


def issue_binary() -> Binary:
    """What gives a kernel to a stream of a GPU."""
    from .build import issue_binary

    return issue_binary()


def transfers_binary() -> Binary:
    """What a GPU does with bytes besides plain copies."""
    from .build import transfers_binary

    return transfers_binary()


def condition_binary() -> Binary:
    """What sets a condition of a graph on a GPU."""
    from .build import condition_binary

    return condition_binary()
