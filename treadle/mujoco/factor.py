"""The factor ``M = L' D L`` of a mass matrix and its use, without fill-in (Featherstone, section 6.5).

Row i keeps the columns of i's ancestors, the diagonal last (MuJoCo's compressed rows). Going from the last row up, no
element arises outside that pattern: the row of an ancestor is the beginning of its descendant's row.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.constants import MINVAL

ints = wp.array(dtype=int)


@cache
def factorisation(real: Any) -> SimpleNamespace:
    """Kernel functions ``factor`` and ``solve`` for one precision, over the rows of world ``w``."""
    matrix = wp.array2d(dtype=real)

    @wp.func
    def factor(w: int, rowadr: ints, rownnz: ints, colind: ints, ld: matrix, diaginv: matrix):
        """Turn the matrix in ``ld`` into L (below the diagonal) and D (on it); ``diaginv`` becomes 1 / D.

        As in MuJoCo, what has no mass is given the least that there is.
        """
        nv = rowadr.shape[0]
        for back in range(nv):
            k = nv - 1 - back
            start = rowadr[k]
            last = start + rownnz[k] - 1
            if ld[w, last] < real(MINVAL):
                ld[w, last] = real(MINVAL)
            inverse = real(1.0) / ld[w, last]
            diaginv[w, k] = inverse
            for up in range(last - start):
                e = last - 1 - up
                row = rowadr[colind[e]]
                share = ld[w, e] * inverse
                for f in range(e - start + 1):
                    ld[w, row + f] = ld[w, row + f] - share * ld[w, start + f]
                ld[w, e] = share

    @wp.func
    def solve(w: int, rowadr: ints, rownnz: ints, colind: ints, ld: matrix, diaginv: matrix, x: matrix):
        """Replace ``x`` by the solution of ``L' D L y = x``."""
        nv = rowadr.shape[0]
        for back in range(nv):
            k = nv - 1 - back
            for e in range(rowadr[k], rowadr[k] + rownnz[k] - 1):
                x[w, colind[e]] = x[w, colind[e]] - ld[w, e] * x[w, k]
        for k in range(nv):
            y = x[w, k] * diaginv[w, k]
            for e in range(rowadr[k], rowadr[k] + rownnz[k] - 1):
                y = y - ld[w, e] * x[w, colind[e]]
            x[w, k] = y

    return SimpleNamespace(factor=factor, solve=solve)
