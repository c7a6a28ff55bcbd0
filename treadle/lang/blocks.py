"""Blocks of threads on a CPU. A block is one thread, whatever a launch asks for, as in Warp; with
``wp.config.enable_cpu_blocks`` it has the threads asked for: ``wp.block_dim()`` tells them, ``wp.launch_tiled`` starts
them, and gangs run them side by side. Tiles need blocks of one thread."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..base.config import config
from ..base.errors import GridError
from ..runtime.device import get_device

if TYPE_CHECKING:
    from .kernel import Kernel

MOST = 1024  # threads, as on GPUs


def effective(block_dim: int | None) -> int:
    """The threads that blocks have in a launch that asks for ``block_dim`` of them.

    Raises:
        GridError: that is more than a block can have, or fewer than none.
    """
    asked = 1 if block_dim is None else operator.index(block_dim)
    if asked > MOST:
        raise GridError(f"a block of threads has at most {MOST} on CPU, not {asked}")
    if asked < 0:
        raise GridError(f"block_dim must not be negative, but is {asked}")
    return asked if asked > 1 and config.enable_cpu_blocks else 1


def loaded(kernel: Kernel) -> list[Kernel]:
    """``kernel`` for each size of blocks that code is loaded for."""
    return [one for one in kernel.sizes() if any(o.variants for o in one.overloads.values())]


def for_blocks(kernels: Iterable[Kernel], block_dim: int | None) -> list[Kernel]:
    """The kernels that are to be loaded for blocks of ``block_dim`` threads; None asks for no other sizes than those
    that are loaded already, if there are any."""
    if block_dim is None:
        return [one for kernel in kernels for one in loaded(kernel) or [kernel]]
    return [in_blocks(kernel, block_dim) for kernel in kernels]


def lone(kernel: Kernel, device: Any, block_dim: int) -> Kernel:
    """``kernel`` for a launch on ``device`` in which each thread stands for a block. A negative size says so, and how
    many hardware threads of a GPU may share its work."""
    return kernel.in_blocks(-max(block_dim, 1)) if get_device(device).key else kernel


def effective_on(device: Any, block_dim: int | None) -> int:
    """:func:`effective` for tiles in a launch on ``device``: one thread works on a tile, everywhere. Who asks for fewer
    than none gets one, as Warp answers; a launch refuses it."""
    return effective(None if block_dim is None else max(block_dim, 0))


def in_blocks(kernel: Kernel, block_dim: int | None, device: Any = None) -> Kernel:
    """``kernel``, compiled for the blocks of a launch that asks for ``block_dim`` threads in each."""
    least = effective(block_dim)
    return kernel.in_blocks(max(block_dim or 1, 1) if get_device(device).key else least)
