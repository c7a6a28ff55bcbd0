"""The product of tiles in the kernel language: blocks of the result are summed up in registers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from .language import matrix

BLOCK = 4, 2  # rows and columns: 8 sums, 2 elements of b and one of a stay within 16 registers of a gang
RECORDED = 4, 4  # in programs that are differentiated, which note each element read: fewer than above


@cache
def product_of(rows: int, columns: int, recorded: bool) -> Callable:
    """What adds the product of two tiles to a tile of rows × columns, which it gives back. Each element of that is
    summed up in the same order, whatever the blocks are."""
    most = RECORDED if recorded else BLOCK
    h, w = (next(n for n in range(m, 0, -1) if extent % n == 0) for m, extent in zip(most, (rows, columns)))

    across = columns // w

    def accumulate(a, b, out):
        depth = a.shape[1]
        for at in range(rows // h * across):  # one loop over all blocks, so that its body stands once in the program
            i = at // across * h
            j = at % across * w
            block = matrix(shape=(h, w), dtype=out.dtype)
            for r in range(h):
                for c in range(w):
                    block[r, c] = out[(i + r) * columns + j + c]
            for k in range(a.shape[1]):
                for r in range(h):
                    x = out.dtype(a[(i + r) * depth + k])
                    for c in range(w):
                        block[r, c] += x * out.dtype(b[k * columns + j + c])
            for r in range(h):
                for c in range(w):
                    out[(i + r) * columns + j + c] = block[r, c]
        return out

    return accumulate
