"""The Hessian ``M + sum B'CB`` over live bonds, its factor, and solutions with it.

It lies as its rows up to the diagonal, and is factored as ``L'DL`` from the last row up, as the mass matrix is
(`factor`): rows of degrees of freedom on one branch of a tree fill nothing in. A bond that joins branches does. Row k
then has elements in the columns of its ancestors before ``dof_low[k]`` and in all from there on; `pattern` finds the
largest ``dof_low`` for which nothing arises outside, for all lanes of a gang together.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import index

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def hessian(real: Any) -> SimpleNamespace:
    """The kernel functions ``pattern``, ``begin``, ``add_bonds``, ``factor`` and ``solve`` for one precision."""
    matrix = wp.array2d(dtype=real)

    @wp.func(inline=True)
    def pattern(w: int, bonds: Any, joins: Any, tree: Any):
        """Fill ``low``."""
        live, listed, bond_kind, bond_dim = bonds
        bond_couples, bond_num, bond_adr, bond_dof, bond_low, dof_apart = joins
        dof_row, dof_run, dof_runs, kin_from, kin_to, low = tree
        nv = low.shape[1]
        for k in range(nv):
            low[w, k] = k
        coupled = False
        for i in range(live):
            t = index(wp.max_lane(listed[w, i]))
            if bond_couples[t] != 0:
                coupled = True
                for m in range(index(bond_adr[t]), bond_adr[t] + bond_num[t]):
                    k = index(bond_dof[m])
                    low[w, k] = wp.min(low[w, k], bond_low[m])
        if coupled:
            for back in range(nv):
                k = index(nv - 1 - back)
                first = wp.max_lane(low[w, k])
                for i in range(index(first), k):
                    least = wp.min(low[w, i], first)
                    if dof_apart[k, i] < first:
                        least = wp.min(least, dof_apart[k, i])
                    low[w, i] = least

    @wp.func(inline=True)
    def begin(w: int, fresh: bool, tree: Any, mass: Any, H: matrix):
        """H is M where it is to begin anew."""
        dof_row, dof_run, dof_runs, kin_from, kin_to, low = tree
        rownnz, rowadr, colind, M = mass
        for k in range(low.shape[1]):
            start, run = index(dof_row[k]), index(dof_run[k])
            for q in range(run, run + dof_runs[k]):
                for c in range(index(kin_from[q]), kin_to[q]):
                    H[w, start + c] = wp.where(fresh, real(0.0), H[w, start + c])
            for c in range(index(wp.max_lane(low[w, k])), k):
                H[w, start + c] = wp.where(fresh, real(0.0), H[w, start + c])
            for e in range(index(rowadr[k]), rowadr[k] + rownnz[k]):
                place = start + index(colind[e])
                H[w, place] = wp.where(fresh, M[w, e], H[w, place])

    @wp.func(inline=True)
    def add_three(
        w: int, j: int, c: int, num: int, adr: int, first: int, runs: int, dof_row: ints, run_from: ints, run_to: ints,
        run_shift: ints, bond_dof: ints, J: matrix, C: matrix, Z: matrix, H: matrix,
    ):  # fmt: skip
        """``H += B'CB`` of a bond with three basis rows."""
        c00, c10, c11 = C[w, c], C[w, c + 1], C[w, c + 2]
        c20, c21, c22 = C[w, c + 3], C[w, c + 4], C[w, c + 5]
        for m in range(num):
            b0, b1, b2 = J[w, j + m], J[w, j + num + m], J[w, j + 2 * num + m]
            Z[w, m] = c00 * b0 + c10 * b1 + c20 * b2
            Z[w, num + m] = c10 * b0 + c11 * b1 + c21 * b2
            Z[w, 2 * num + m] = c20 * b0 + c21 * b1 + c22 * b2
            k = index(bond_dof[adr + m])
            start = index(dof_row[k])
            for q in range(first, first + runs):
                place = start + index(run_shift[q])
                for o in range(index(run_from[q]), wp.min(run_to[q], m + 1)):
                    h = H[w, place + o] + b0 * Z[w, o] + b1 * Z[w, num + o]
                    H[w, place + o] = h + b2 * Z[w, 2 * num + o]

    @wp.func(inline=True)
    def add_rows(
        w: int, j: int, c: int, dim: int, num: int, adr: int, dof_row: ints, bond_dof: ints, J: matrix, C: matrix,
        Z: matrix,
        H: matrix,
    ):  # fmt: skip
        """``H += B'CB`` of any bond, row by row."""
        for s in range(dim):
            for m in range(num):
                z = real(0.0)
                for q in range(dim):
                    big, small = wp.max(s, q), wp.min(s, q)
                    z = z + C[w, c + big * (big + 1) // 2 + small] * J[w, j + q * num + m]
                Z[w, m] = z
                k = index(bond_dof[adr + m])
                start = index(dof_row[k])
                b = J[w, j + s * num + m]
                for q in range(m + 1):
                    e = start + index(bond_dof[adr + q])
                    H[w, e] = H[w, e] + b * Z[w, q]

    @wp.func(inline=True)
    def add_bonds(w: int, bonds: Any, jacobian: Any, columns: Any, bond_weights: ints, C: matrix, Z: matrix, H: matrix):
        """``H += B'CB`` of all bonds whose C, the weights or their changes, is not zero in some lane."""
        live, listed, bond_kind, bond_dim = bonds
        bond_num, bond_size, bond_run, bond_runs, run_from, run_to, run_shift, J = jacobian
        dof_row, bond_adr, bond_dof = columns
        j, c = int(0), int(0)
        for i in range(live):
            t = index(wp.max_lane(listed[w, i]))
            dim, num, adr = index(bond_dim[t]), index(bond_num[t]), index(bond_adr[t])
            acts = False
            for e in range(c, c + bond_weights[t]):
                acts = acts or C[w, e] != real(0.0)
            if wp.any_lane(acts):
                if dim == 3:
                    add_three(
                        w, j, c, num, adr, index(bond_run[t]), bond_runs[t], dof_row, run_from, run_to, run_shift,
                        bond_dof, J,
                        C, Z, H,
                    )  # fmt: skip
                else:
                    add_rows(w, j, c, dim, num, adr, dof_row, bond_dof, J, C, Z, H)
            j = j + index(bond_size[t])
            c = c + index(bond_weights[t])

    @wp.func(inline=True)
    def factor(w: int, tree: Any, H: matrix, L: matrix, inverse: matrix):
        """L of H below the diagonal, and the inverse of D."""
        dof_row, dof_run, dof_runs, kin_from, kin_to, low = tree
        nv = low.shape[1]
        for k in range(nv):
            start, run = index(dof_row[k]), index(dof_run[k])
            for q in range(run, run + dof_runs[k]):
                for c in range(index(kin_from[q]), kin_to[q]):
                    L[w, start + c] = H[w, start + c]
            for c in range(index(wp.max_lane(low[w, k])), k + 1):
                L[w, start + c] = H[w, start + c]
        for back in range(nv):
            k = index(nv - 1 - back)
            start, run, runs, first = index(dof_row[k]), index(dof_run[k]), dof_runs[k], wp.max_lane(low[w, k])
            y = real(1.0) / L[w, start + k]
            inverse[w, k] = y
            for up in range(k - first):
                i = index(k - 1 - up)
                share = L[w, start + i] * y
                row = index(dof_row[i])
                for q in range(run, run + runs):
                    for c in range(index(kin_from[q]), wp.min(kin_to[q], first)):
                        L[w, row + c] = L[w, row + c] - share * L[w, start + c]
                for c in range(index(first), i + 1):
                    L[w, row + c] = L[w, row + c] - share * L[w, start + c]
                L[w, start + i] = share
            for back_run in range(runs):
                last = run + runs - 1 - back_run
                begin, end = index(kin_from[last]), wp.min(kin_to[last], first)
                for up in range(end - begin):
                    i = index(end - 1 - up)
                    share = L[w, start + i] * y
                    row = index(dof_row[i])
                    for q in range(run, last):
                        for c in range(index(kin_from[q]), kin_to[q]):
                            L[w, row + c] = L[w, row + c] - share * L[w, start + c]
                    for c in range(begin, i + 1):
                        L[w, row + c] = L[w, row + c] - share * L[w, start + c]
                    L[w, start + i] = share

    @wp.func(inline=True)
    def solve(w: int, tree: Any, L: matrix, inverse: matrix, x: matrix):
        """Replace x by the solution of ``L'DL y = x``."""
        dof_row, dof_run, dof_runs, kin_from, kin_to, low = tree
        nv = low.shape[1]
        for back in range(nv):
            k = index(nv - 1 - back)
            start, run, first, y = index(dof_row[k]), index(dof_run[k]), wp.max_lane(low[w, k]), x[w, k]
            for q in range(run, run + dof_runs[k]):
                for c in range(index(kin_from[q]), wp.min(kin_to[q], first)):
                    x[w, c] = x[w, c] - L[w, start + c] * y
            for c in range(index(first), k):
                x[w, c] = x[w, c] - L[w, start + c] * y
        for k in range(nv):
            start, run, first, y = index(dof_row[k]), index(dof_run[k]), wp.max_lane(low[w, k]), x[w, k] * inverse[w, k]
            for q in range(run, run + dof_runs[k]):
                for c in range(index(kin_from[q]), wp.min(kin_to[q], first)):
                    y = y - L[w, start + c] * x[w, c]
            for c in range(index(first), k):
                y = y - L[w, start + c] * x[w, c]
            x[w, k] = y

    return SimpleNamespace(pattern=pattern, begin=begin, add_bonds=add_bonds, factor=factor, solve=solve)
