"""Native helpers written as LLVM text: the worker pool, the launch driver, the launchers, and how they become Binaries.

These functions are what the runtime asks for (``runtime.native.Room``). Nothing is written or compiled before it is.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ...base.binary import Binary
from ...base.digest import digest
from ...types.core import Scalar


@cache
def revision() -> str:
    """Stands for all the text that this room writes, in cache keys: the digest of the sources that write it."""
    here = Path(__file__).parent
    files = [*sorted(here.glob("*.py")), here.parents[1] / "types" / "records.py"]
    return digest(*(path.read_bytes() for path in files))


def driver_binary() -> Binary:
    """The worker pool and the launch driver."""
    from .build import driver_binary

    return driver_binary()


def merge_binary(op: str, t: Scalar) -> Binary:
    """The function that merges private values of ``op`` over ``t``."""
    from .build import merge_binary

    return merge_binary(op, t)


def launcher_binary() -> Binary:
    """The native launcher."""
    from .build import launcher_binary

    return launcher_binary()
