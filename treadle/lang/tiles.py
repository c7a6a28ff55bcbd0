"""``wp.launch_tiled`` and ``wp.tile``: kernels whose blocks of threads work on tiles together."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ..base.errors import KernelError, LaunchError
from ..types.tile_annotations import StackAnnotation, TileAnnotation, tile_spelt
from .blocks import effective, lone
from .host import Builtin
from .kernel import Kernel
from .launch import launch


def launch_tiled(kernel: Any, dim: int | Sequence[int], inputs: Sequence[Any] = (), *args: Any, **kwargs: Any) -> Any:
    """Run ``kernel`` with a block of threads for each point of a grid; see :func:`launch` for the other arguments.

    Args:
        kernel: what ``@wp.kernel`` made; ``wp.tid()`` gives the point, and after it the thread's number in its block.
        dim: extent of the grid of blocks: an int or up to three.
        inputs, outputs: the arguments.
        block_dim: threads in a block. On a CPU a block is one thread, whatever is asked for, so that a kernel must not
            rely on more; blocks run side by side in SIMD lanes. See ``wp.config.enable_cpu_blocks``.

    Raises:
        LaunchError: no ``block_dim``, or a grid of more than three dimensions.

    >>> import treadle as wp
    >>> @wp.kernel
    ... def total(a: wp.array2d(dtype=float), sums: wp.array(dtype=float)):
    ...     i = wp.tid()
    ...     row = wp.tile_load(a, shape=(1, 4), offset=(i, 0))
    ...     wp.tile_store(sums, wp.tile_sum(row), offset=i)
    >>> sums = wp.zeros(2, dtype=float)
    >>> wp.launch_tiled(total, dim=2, inputs=[wp.ones((2, 4), dtype=float), sums], block_dim=32)
    >>> sums.list()
    [4.0, 4.0]
    """
    if kwargs.get("block_dim") is None:
        raise LaunchError("wp.launch_tiled needs block_dim", hint="how many threads a block has, as in block_dim=64")
    grid = tuple(dim) if isinstance(dim, Sequence) else (dim,)
    if len(grid) > 3:
        raise LaunchError(f"wp.launch_tiled takes a grid of at most 3 dimensions, here are {len(grid)}")
    threads = effective(kwargs["block_dim"])
    asked = indices(kernel) if threads == 1 and isinstance(kernel, Kernel) else None
    lanes = () if asked is not None and asked <= len(grid) else (threads,)  # in a block of one nobody needs its number
    if threads == 1 and isinstance(kernel, Kernel):
        kernel = lone(kernel, kwargs.get("device"), kwargs["block_dim"])
        kwargs = {**kwargs, "block_dim": None}
    try:
        return launch(kernel, (*grid, *lanes), inputs, *args, **kwargs)
    except KernelError:
        del kernel  # see `alone`
        raise


_asked: WeakKeyDictionary[Kernel, int | None] = WeakKeyDictionary()


def indices(kernel: Kernel) -> int | None:
    """How many indices ``kernel`` takes from ``wp.tid()``, as the syntax tells; None if it does not."""
    if kernel not in _asked:
        found = set()
        for s in ast.walk(kernel.source.tree):
            if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call) and _name(s.value.func) == "tid":
                target = s.targets[0]
                found.add(len(target.elts) if isinstance(target, ast.Tuple | ast.List) else 1)
        _asked[kernel] = found.pop() if len(found) == 1 else None
    return _asked[kernel]


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


class _TileName(Builtin):
    """``wp.tile``: the builtin that makes a tile of a value, and the annotation of parameters that are tiles."""

    __slots__ = ()

    def __getitem__(self, item: Any) -> TileAnnotation:
        return tile_spelt(item)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs.keys() == {"dtype", "shape"} and not args:
            return TileAnnotation(**kwargs)
        return super().__call__(*args, **kwargs)


class _StackName(Builtin):
    """``wp.tile_stack``: the builtin that makes a stack, and the annotation of parameters that are stacks."""

    __slots__ = ()

    def __call__(self, capacity: int, dtype: Any) -> StackAnnotation:
        return StackAnnotation(capacity, dtype)


tile, tile_stack = _TileName("tile"), _StackName("tile_stack")
