"""Products with the mass matrix and the Jacobian of constraints, over the vectors of world ``w``."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import index

ints = wp.array(dtype=int)


@cache
def products(real: Any) -> SimpleNamespace:
    """The kernel functions ``mul_m``, ``mul_j``, ``add_jt`` and ``dot`` for one precision.

    Loops over rows run as long as any world of the gang has some: what they compute for the others is not used, and
    the loop needs no masks.
    """
    matrix, cube = wp.array2d(dtype=real), wp.array3d(dtype=real)

    @wp.func(inline=True)
    def mul_m(w: int, rownnz: ints, rowadr: ints, colind: ints, M: matrix, x: matrix, out: matrix):
        """``out = M x``, from the rows of M up to the diagonal."""
        for i in range(rownnz.shape[0]):
            begin = index(rowadr[i])
            last = index(begin + rownnz[i] - 1)
            y = M[w, last] * x[w, i]
            for e in range(begin, last):
                k = index(colind[e])
                y = y + M[w, e] * x[w, k]
                out[w, k] = out[w, k] + M[w, e] * x[w, i]
            out[w, i] = y

    @wp.func(inline=True)
    def mul_j(w: int, n: int, J: cube, x: matrix, out: matrix):
        """``out = J x``, of n rows."""
        i = int(0)
        while wp.any_lane(i < n):
            y = real(0.0)
            for k in range(J.shape[2]):
                y = y + J[w, i, k] * x[w, k]
            out[w, i] = y
            i = i + 1

    @wp.func(inline=True)
    def add_jt(w: int, n: int, J: cube, force: matrix, sign: real, out: matrix):
        """``out += sign J' force``, of n rows."""
        i = int(0)
        while wp.any_lane(i < n):
            f = real(0.0)
            if i < n:
                f = sign * force[w, i]
            acts = f != real(0.0)
            if wp.any_lane(acts):
                for k in range(J.shape[2]):
                    out[w, k] = out[w, k] + wp.where(acts, J[w, i, k] * f, real(0.0))
            i = i + 1

    @wp.func(inline=True)
    def dot(w: int, a: matrix, b: matrix):
        """The inner product of two vectors."""
        y = real(0.0)
        for k in range(a.shape[1]):
            y = y + a[w, k] * b[w, k]
        return y

    return SimpleNamespace(mul_m=mul_m, mul_j=mul_j, add_jt=add_jt, dot=dot)
