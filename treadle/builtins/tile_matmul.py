"""The product of tiles in the kernel language: blocks of the result are summed up in registers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from .language import matrix

ROWS, COLUMNS = 4, 2  # of a block: 8 sums, 2 elements of b and one of a stay within 16 registers of a gang


@cache
def product_of(rows: int, columns: int) -> Callable:
    """What adds the product of two tiles to a tile of rows × columns, which it gives back."""
    h = next(n for n in range(ROWS, 0, -1) if rows % n == 0)
    w = next(n for n in range(COLUMNS, 0, -1) if columns % n == 0)

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
