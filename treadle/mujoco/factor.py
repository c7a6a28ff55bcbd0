"""The factor ``M = L' D L`` of a mass matrix and its use, without fill-in (Featherstone, section 6.5).

Row i keeps the columns of i's ancestors, the diagonal last (MuJoCo's compressed rows). Going from the last row up, no
element arises outside that pattern: the row of an ancestor is the beginning of its descendant's row.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import index
from treadle.mujoco.constants import MINVAL

ints = wp.array(dtype=int)


@cache
def factorisation(real: Any) -> SimpleNamespace:
    """Kernel functions ``factor`` and ``solve`` for one precision, over the rows of world ``w``."""
    matrix = wp.array2d(dtype=real)

    @wp.func
    def factor(w: int, rowadr: ints, rownnz: ints, colind: ints, ld: matrix, diaginv: matrix):
        """Turn the matrix in ``ld`` into L (below the diagonal) and D (on it); ``diaginv`` becomes 1 / D.

        As in MuJoCo, what has no mass is given the least that there is; gives 1 if there was such, else 0.
        """
        nv = rowadr.shape[0]
        singular = int(0)
        for back in range(nv):
            k = index(nv - 1 - back)
            start = index(rowadr[k])
            last = index(start + rownnz[k] - 1)
            if ld[w, last] < real(MINVAL):
                ld[w, last] = real(MINVAL)
                singular = int(1)
            inverse = real(1.0) / ld[w, last]
            diaginv[w, k] = inverse
            count = last - start
            for half in range(count // 2):  # the rows of two ancestors at once, whose loop is short
                e = index(last - 1 - 2 * half)
                g = index(e - 1)
                row, above = index(rowadr[index(colind[e])]), index(rowadr[index(colind[g])])
                share, other = ld[w, e] * inverse, ld[w, g] * inverse
                for f in range(g - start + 1):
                    x = ld[w, start + f]
                    ld[w, row + f] = ld[w, row + f] - share * x
                    ld[w, above + f] = ld[w, above + f] - other * x
                ld[w, row + (e - start)] = ld[w, row + (e - start)] - share * ld[w, e]
                ld[w, e] = share
                ld[w, g] = other
            if count % 2 == 1:  # the first ancestor, which has no other
                row = index(rowadr[index(colind[start])])
                share = ld[w, start] * inverse
                ld[w, row] = ld[w, row] - share * ld[w, start]
                ld[w, start] = share
        return singular

    @wp.func
    def solve(w: int, rowadr: ints, rownnz: ints, colind: ints, ld: matrix, diaginv: matrix, x: matrix):
        """Replace ``x`` by the solution of ``L' D L y = x``."""
        nv = rowadr.shape[0]
        for back in range(nv):
            k = index(nv - 1 - back)
            start = index(rowadr[k])
            y = x[w, k]
            for e in range(start, start + rownnz[k] - 1):
                i = index(colind[e])
                x[w, i] = x[w, i] - ld[w, e] * y
        for k in range(nv):
            start = index(rowadr[k])
            y = x[w, k] * diaginv[w, k]
            for e in range(start, start + rownnz[k] - 1):
                y = y - ld[w, e] * x[w, index(colind[e])]
            x[w, k] = y

    return SimpleNamespace(factor=factor, solve=solve)
