"""The Hessian ``M + sum B'CB`` over live bonds, its factor, and solutions with it.

It lies as its rows up to the diagonal, and is factored as ``L'DL`` from the last row up, as the mass matrix is
(`factor`): rows of degrees of freedom on one branch of a tree fill nothing in. A bond that joins branches does. Row k
then has elements in the columns of its ancestors before ``dof_low[k]`` and in all from there on; `pattern` finds the
largest ``dof_low`` for which nothing arises outside, for all lanes of a gang together, and the last row that has an
element in column k, ``dof_end[k]``. Without such bonds that is the last descendant of k.
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
    def pattern(w: int, bonds: Any, joins: Any, tree: Any, U: matrix):
        """Fill ``low`` and ``end``; where branches are joined, set to zero what no row has."""
        live, listed, bond_kind, bond_dim = bonds
        bond_couples, bond_num, bond_adr, bond_dof, bond_low, dof_apart, dof_last = joins
        dof_row, dof_run, dof_runs, kin_from, kin_to, low, end = tree
        nv = low.shape[1]
        for k in range(nv):
            low[w, k] = k
            end[w, k] = dof_last[k]
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
                    end[w, i] = wp.max(end[w, i], k)
            for e in range(U.shape[1]):
                U[w, e] = real(0.0)

    @wp.func(inline=True)
    def begin(w: int, fresh: bool, tree: Any, mass: Any, H: matrix):
        """H is M where it is to begin anew."""
        dof_row, dof_run, dof_runs, kin_from, kin_to, low, end = tree
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
    def factor(w: int, tree: Any, H: matrix, U: matrix, inverse: matrix):
        """``U = D L``, and the inverse of D: ``U_ic = H_ic - sum U_ki U_kc / D_k`` over rows k below row i.

        All rows that reach i have the columns of row i up to there, or zeros, so four can be taken off at once.
        """
        dof_row, dof_run, dof_runs, kin_from, kin_to, low, end = tree
        nv = low.shape[1]
        for back in range(nv):
            i = index(nv - 1 - back)
            start, run, runs = index(dof_row[i]), index(dof_run[i]), dof_runs[i]
            first, last = index(wp.max_lane(low[w, i])), wp.max_lane(end[w, i])
            for part in range(runs + 1):
                begin, stop = first, i + 1
                if part < runs:
                    begin, stop = index(kin_from[run + part]), wp.min(kin_to[run + part], first)
                for c in range(begin, stop):
                    U[w, start + c] = H[w, start + c]
            k = i + 1
            while k + 3 <= last:
                r0, r1, r2, r3 = index(dof_row[k]), index(dof_row[k + 1]), index(dof_row[k + 2]), index(dof_row[k + 3])
                s0, s1 = U[w, r0 + i] * inverse[w, k], U[w, r1 + i] * inverse[w, k + 1]
                s2, s3 = U[w, r2 + i] * inverse[w, k + 2], U[w, r3 + i] * inverse[w, k + 3]
                for part in range(runs + 1):
                    begin, stop = first, i + 1
                    if part < runs:
                        begin, stop = index(kin_from[run + part]), wp.min(kin_to[run + part], first)
                    for c in range(begin, stop):
                        u = U[w, start + c] - s0 * U[w, r0 + c]
                        u = u - s1 * U[w, r1 + c]
                        u = u - s2 * U[w, r2 + c]
                        U[w, start + c] = u - s3 * U[w, r3 + c]
                k = k + 4
            while k <= last:
                row = index(dof_row[k])
                share = U[w, row + i] * inverse[w, k]
                for part in range(runs + 1):
                    begin, stop = first, i + 1
                    if part < runs:
                        begin, stop = index(kin_from[run + part]), wp.min(kin_to[run + part], first)
                    for c in range(begin, stop):
                        U[w, start + c] = U[w, start + c] - share * U[w, row + c]
                k = k + 1
            inverse[w, i] = real(1.0) / U[w, start + i]

    @wp.func(inline=True)
    def solve(w: int, tree: Any, U: matrix, inverse: matrix, x: matrix):
        """Replace x by the solution of ``L'DL y = x``."""
        dof_row, dof_run, dof_runs, kin_from, kin_to, low, end = tree
        nv = low.shape[1]
        for back in range(nv):
            k = index(nv - 1 - back)
            start, run, first = index(dof_row[k]), index(dof_run[k]), index(wp.max_lane(low[w, k]))
            y = x[w, k] * inverse[w, k]
            for q in range(run, run + dof_runs[k]):
                for c in range(index(kin_from[q]), wp.min(kin_to[q], first)):
                    x[w, c] = x[w, c] - U[w, start + c] * y
            for c in range(first, k):
                x[w, c] = x[w, c] - U[w, start + c] * y
            x[w, k] = y
        for k in range(nv):
            start, run, first = index(dof_row[k]), index(dof_run[k]), index(wp.max_lane(low[w, k]))
            y = real(0.0)
            for q in range(run, run + dof_runs[k]):
                for c in range(index(kin_from[q]), wp.min(kin_to[q], first)):
                    y = y + U[w, start + c] * x[w, c]
            for c in range(first, k):
                y = y + U[w, start + c] * x[w, c]
            x[w, k] = x[w, k] - inverse[w, k] * y

    return SimpleNamespace(pattern=pattern, begin=begin, add_bonds=add_bonds, factor=factor, solve=solve)
