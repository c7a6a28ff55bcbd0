"""Products with the mass matrix and the Jacobian of constraints, over the vectors of world ``w``."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import index

ints = wp.array(dtype=int)


@cache
def products(real: Any) -> SimpleNamespace:
    """The kernel functions ``mul_m``, ``mul_mass``, ``mul_j``, ``add_jt`` and ``dot`` for one precision.

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
    def mul_mass(w: int, mass: Any, x: matrix, out: matrix):
        """The same of ``mass``, three rows at once where these end a path (``Bonds.dof_three``)."""
        rownnz, rowadr, colind, M, three = mass
        n, i = rownnz.shape[0], int(0)
        while i < n:
            a, first = index(i), index(rowadr[i])
            above = index(rownnz[a] - 1)
            if i + 2 < n and three[index(wp.min(i + 2, n - 1))] != 0:
                b, c, second, third = index(i + 1), index(i + 2), index(rowadr[i + 1]), index(rowadr[i + 2])
                xa, xb, xc = x[w, a], x[w, b], x[w, c]
                ya = M[w, first + above] * xa + M[w, second + above] * xb + M[w, third + above] * xc
                yb = M[w, second + above] * xa + M[w, second + above + 1] * xb + M[w, third + above + 1] * xc
                yc = M[w, third + above] * xa + M[w, third + above + 1] * xb + M[w, third + above + 2] * xc
                for e in range(above):
                    k = index(colind[first + e])
                    ma, mb, mc, xk = M[w, first + e], M[w, second + e], M[w, third + e], x[w, k]
                    ya = ya + ma * xk
                    yb = yb + mb * xk
                    yc = yc + mc * xk
                    out[w, k] = out[w, k] + ma * xa + mb * xb + mc * xc
                out[w, a] = ya
                out[w, b] = yb
                out[w, c] = yc
                i = i + 3
            else:
                xa = x[w, a]
                ya = M[w, first + above] * xa
                for e in range(above):
                    k = index(colind[first + e])
                    ya = ya + M[w, first + e] * x[w, k]
                    out[w, k] = out[w, k] + M[w, first + e] * xa
                out[w, a] = ya
                i = i + 1

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

    return SimpleNamespace(mul_m=mul_m, mul_mass=mul_mass, mul_j=mul_j, add_jt=add_jt, dot=dot)
