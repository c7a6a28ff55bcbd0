"""Copies to and from the elements that lists of indices select, as launches: for graphs, which look at the lists when
they run. Outside of captures NumPy does these copies (``runtime/indexed.py``)."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..runtime.indexed import indexedarray
from ..types.annotations import ArrayAnnotation
from .host import Builtin
from .kernel import Kernel
from .launch import launch
from .mapping import written
from .module import Module

_AXES = "ijkl"


def move(dest: Any, src: Any, ordered: bool) -> None:
    """Copy all elements of ``src`` to ``dest``, of the same dtype and shape, which do not lie over each other.
    ``ordered``: one after the other, so that of equal indices the last one remains.

    Raises:
        IndexOutOfRange: an index outside of the array that it selects from.
    """
    kernel = _mover(dest.dtype, len(dest.shape), isinstance(dest, indexedarray), isinstance(src, indexedarray), ordered)
    launch(kernel, 1 if ordered else dest.shape, [src], [dest], device=dest.device, checked=True)


@cache
def _mover(dtype: Any, rank: int, to_indexed: bool, from_indexed: bool, ordered: bool) -> Kernel:
    axes = ", ".join(_AXES[:rank])
    if ordered:
        loops = "".join([f"{' ' * 4 * (k + 1)}for {_AXES[k]} in range(dest.shape[{k}]):\n" for k in range(rank)])
        body = f"{loops}{' ' * 4 * (rank + 1)}dest[{axes}] = src[{axes}]\n"
    else:
        body = f"    {axes} = tid()\n    dest[{axes}] = src[{axes}]\n"
    fn = written("move_indexed", ["src", "dest"], body, {"tid": Builtin("tid")})
    families = [("src", from_indexed), ("dest", to_indexed)]
    fn.__annotations__ = {
        name: ArrayAnnotation(dtype, rank, "indexedarray" if indexed else "array") for name, indexed in families
    }
    return Kernel(fn, "move_indexed", Module("move_indexed"))
