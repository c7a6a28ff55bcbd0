"""The Hessian ``M + sum B'CB`` over live bonds, its factor, and solutions with it.

It is factored as ``L'DL`` from the last row up, as the mass matrix is (`factor`): rows of degrees of freedom on one
branch of a tree fill nothing in. A bond that joins branches does; its degrees of freedom are put on one path, so that
there is a tree again, the same for all lanes of a gang, in which row k has no elements but in columns of its ancestors
(`trees`). A row lies as its elements from the root down: the one in column c has the number ``deep[c]``, in whichever
row, and the row of an ancestor is as long as the beginning of a row. So one row is taken off another from place to
place.

Three degrees of freedom of which each is the only step to the next (``dof_three``, which the model alone decides) are
taken together: what they change is read and written once for all of them.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import index
from treadle.mujoco.constraint.live import entry
from treadle.mujoco.solver.trees import trees

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def columns(real: Any, dim: int) -> wp.Function:
    """The kernel function ``column`` for one precision and one number of basis rows, with a name for each place."""
    matrix, vector = wp.array2d(dtype=real), wp.types.vector(length=dim, dtype=real)

    @wp.func(inline=True)
    def column(w: int, j: int, c: int, num: int, m: int, J: matrix, C: matrix, Z: matrix):
        """What basis rows have in a column, and, in Z, what weights make of it."""
        b = vector()
        for s in range(dim):
            b[s] = J[w, j + s * num + m]
        for s in range(dim):
            z = real(0.0)
            for q in range(dim):
                big, small = wp.max(s, q), wp.min(s, q)
                z = z + C[w, c + big * (big + 1) // 2 + small] * b[q]
            Z[w, s * num + m] = z
        return b

    return column


@cache
def hessian(real: Any) -> SimpleNamespace:
    """The kernel functions ``arrange``, ``begin``, ``add_bonds``, ``factor``, ``solve`` and ``spread`` for one
    precision."""
    matrix, vec3 = wp.array2d(dtype=real), wp.types.vector(length=3, dtype=real)
    number, arrange = trees().number, trees().arrange
    column, column_of_six = (columns(real, dim) for dim in (3, 6))

    @wp.func(inline=True)
    def begin(w: int, fresh: bool, tree: Any, mass: Any, H: matrix):
        """H is M where it is to begin anew."""
        parent, three, up, deep, at = tree
        rownnz, rowadr, colind, M, blocks = mass
        all_of_them = not wp.any_lane(not fresh)
        for k in range(up.shape[1]):
            start, length, e = index(number(w, k, at)), index(number(w, k, deep) + 1), index(rowadr[k])
            if all_of_them and length == rownnz[k]:
                for c in range(length):
                    H[w, start + c] = M[w, e + c]
            else:
                for c in range(length):
                    H[w, start + c] = wp.where(fresh, real(0.0), H[w, start + c])
                for c in range(e, e + rownnz[k]):
                    place = start + index(number(w, colind[c], deep))
                    H[w, place] = wp.where(fresh, M[w, c], H[w, place])

    @wp.func(inline=True)
    def more(h: real, b: vec3, z0: real, z1: real, z2: real):
        return h + b[0] * z0 + b[1] * z1 + b[2] * z2

    @wp.func(inline=True)
    def add_three(
        w: int, j: int, c: int, num: int, adr: int, tree: Any, bond_dof: ints, J: matrix, C: matrix, Z: matrix,
        H: matrix,
    ):  # fmt: skip
        """What a bond of three basis rows adds of ``B'CB`` to H, two rows of H at a time."""
        parent, three, up, deep, at = tree
        d0, dn = index(number(w, bond_dof[adr], deep)), number(w, bond_dof[adr + num - 1], deep)
        along = dn - d0 == num - 1  # neighbours in each row
        m = int(0)
        for half in range(num // 2):
            m = 2 * half
            k0, k1 = bond_dof[adr + m], bond_dof[adr + m + 1]
            s0, s1, last = index(number(w, k0, at)), index(number(w, k1, at)), index(number(w, k1, deep))
            b0, b1 = column(w, j, c, num, m, J, C, Z), column(w, j, c, num, m + 1, J, C, Z)
            if along:
                for q in range(m + 1):
                    z0, z1, z2, e, f = Z[w, q], Z[w, num + q], Z[w, 2 * num + q], s0 + d0 + q, s1 + d0 + q
                    H[w, e] = more(H[w, e], b0, z0, z1, z2)
                    H[w, f] = more(H[w, f], b1, z0, z1, z2)
            else:
                for q in range(m + 1):
                    d = index(number(w, bond_dof[adr + q], deep))
                    z0, z1, z2 = Z[w, q], Z[w, num + q], Z[w, 2 * num + q]
                    H[w, s0 + d] = more(H[w, s0 + d], b0, z0, z1, z2)
                    H[w, s1 + d] = more(H[w, s1 + d], b1, z0, z1, z2)
            H[w, s1 + last] = more(H[w, s1 + last], b1, Z[w, m + 1], Z[w, num + m + 1], Z[w, 2 * num + m + 1])
        if num % 2 == 1:
            m = num - 1
            s0 = index(number(w, bond_dof[adr + m], at))
            b0 = column(w, j, c, num, m, J, C, Z)
            for q in range(num):
                place = s0 + index(number(w, bond_dof[adr + q], deep))
                H[w, place] = more(H[w, place], b0, Z[w, q], Z[w, num + q], Z[w, 2 * num + q])

    @wp.func(inline=True)
    def add_six(
        w: int, j: int, c: int, num: int, adr: int, tree: Any, bond_dof: ints, J: matrix, C: matrix, Z: matrix,
        H: matrix,
    ):  # fmt: skip
        """The same of six basis rows, one row of H at a time."""
        parent, three, up, deep, at = tree
        d0, dn = index(number(w, bond_dof[adr], deep)), number(w, bond_dof[adr + num - 1], deep)
        along = dn - d0 == num - 1
        for m in range(num):
            start = index(number(w, bond_dof[adr + m], at))
            b = column_of_six(w, j, c, num, m, J, C, Z)
            if along:
                for q in range(m + 1):
                    h = H[w, start + d0 + q]
                    for s in range(6):
                        h = h + b[s] * Z[w, s * num + q]
                    H[w, start + d0 + q] = h
            else:
                for q in range(m + 1):
                    e = start + index(number(w, bond_dof[adr + q], deep))
                    h = H[w, e]
                    for s in range(6):
                        h = h + b[s] * Z[w, s * num + q]
                    H[w, e] = h

    @wp.func(inline=True)
    def add_rows(
        w: int, j: int, c: int, dim: int, num: int, adr: int, tree: Any, bond_dof: ints, J: matrix, C: matrix,
        Z: matrix, H: matrix,
    ):  # fmt: skip
        """The same of any number of basis rows, row after row."""
        parent, three, up, deep, at = tree
        for s in range(dim):
            for m in range(num):
                z = real(0.0)
                for q in range(dim):
                    big, small = wp.max(s, q), wp.min(s, q)
                    z = z + C[w, c + big * (big + 1) // 2 + small] * J[w, j + q * num + m]
                Z[w, m] = z
                start = index(number(w, bond_dof[adr + m], at))
                b = J[w, j + s * num + m]
                for q in range(m + 1):
                    e = start + index(number(w, bond_dof[adr + q], deep))
                    H[w, e] = H[w, e] + b * Z[w, q]

    @wp.func(inline=True)
    def add_bonds(
        w: int, bonds: Any, jacobian: Any, columns: Any, tree: Any, bond_weights: ints, C: matrix, Z: matrix, H: matrix,
    ):  # fmt: skip
        """``H += B'CB`` of all bonds whose C, the weights or their changes, is not zero in some lane; gives 1 if there
        are any."""
        live, listed, bond_kind, bond_dim, parts = bonds
        bond, row, place, weight = listed
        bond_num, bond_run, bond_runs, run_from, run_to, run_shift, J = jacobian
        bond_adr, bond_dof = columns
        parent, three, up, deep, at = tree
        found = int(0)
        for i in range(live):
            t, j, c = entry(w, i, bond), entry(w, i, place), entry(w, i, weight)
            dim, num, adr = index(bond_dim[t]), index(bond_num[t]), index(bond_adr[t])
            if dim * num == 1:
                if wp.any_lane(C[w, c] != real(0.0)):
                    found = 1
                    k = index(bond_dof[adr])
                    e, b = index(number(w, k, at)) + index(number(w, k, deep)), J[w, j]
                    H[w, e] = H[w, e] + b * (C[w, c] * b)
            else:
                total = real(0.0)
                for e in range(c, c + bond_weights[t]):
                    total = total + wp.abs(C[w, e])
                if wp.any_lane(total != real(0.0)):
                    found = 1
                    if dim == 3:
                        add_three(w, j, c, num, adr, tree, bond_dof, J, C, Z, H)
                    elif dim == 6:
                        add_six(w, j, c, num, adr, tree, bond_dof, J, C, Z, H)
                    else:
                        add_rows(w, j, c, dim, num, adr, tree, bond_dof, J, C, Z, H)
        return found

    @wp.func(inline=True)
    def take_off(w: int, tree: Any, U: matrix, s: int, k: int, d: int, inverse: real):
        """Row k, of depth d, off the rows of its ancestors."""
        parent, three, up, deep, at = tree
        p = number(w, k, up)
        for n in range(d - 1, -1, -1):
            sp, f = index(number(w, p, at)), U[w, s + n] * inverse
            for q in range(n + 1):
                U[w, sp + q] = U[w, sp + q] - f * U[w, s + q]
            p = number(w, p, up)

    @wp.func(inline=True)
    def take_three_off(
        w: int, tree: Any, U: matrix, sa: int, sb: int, sc: int, k: int, d: int, ia: real, ib: real, ic: real
    ):
        """Rows that begin at sa, sb, sc off the rows of the ancestors of k, the first of them, two rows at a time."""
        parent, three, up, deep, at = tree
        p = number(w, k, up)
        for n in range(d - 2, -1, -2):
            o = number(w, p, up)
            sp, so = index(number(w, p, at)), index(number(w, o, at))
            fa, fb, fc = U[w, sa + n + 1] * ia, U[w, sb + n + 1] * ib, U[w, sc + n + 1] * ic
            ga, gb, gc = U[w, sa + n] * ia, U[w, sb + n] * ib, U[w, sc + n] * ic
            for q in range(n + 1):
                a, b, c = U[w, sa + q], U[w, sb + q], U[w, sc + q]
                U[w, sp + q] = U[w, sp + q] - fc * c - fb * b - fa * a
                U[w, so + q] = U[w, so + q] - gc * c - gb * b - ga * a
            e = n + 1
            U[w, sp + e] = U[w, sp + e] - fc * U[w, sc + e] - fb * U[w, sb + e] - fa * U[w, sa + e]
            p = number(w, o, up)
        if d % 2 == 1:
            sp = index(number(w, p, at))
            a, b, c = U[w, sa], U[w, sb], U[w, sc]
            U[w, sp] = U[w, sp] - (c * ic) * c - (b * ib) * b - (a * ia) * a

    @wp.func(inline=True)
    def factor(w: int, tree: Any, H: matrix, U: matrix, inverse: matrix):
        """``U = D L``, and the inverse of D: row k is taken off the rows of its ancestors, from the last row up."""
        parent, three, up, deep, at = tree
        nv = up.shape[1]
        for e in range(number(w, nv - 1, at) + number(w, nv - 1, deep) + 1):
            U[w, e] = H[w, e]
        k = nv - 1
        while k >= 0:
            s, d = index(number(w, k, at)), index(number(w, k, deep))
            one = real(1.0) / U[w, s + d]
            inverse[w, index(k)] = one
            if three[k] != 0:
                first, sa, sb, d = index(k - 2), index(s - 2 * d + 1), index(s - d), index(d - 2)
                tb, ta, x = U[w, s + d + 1] * one, U[w, s + d] * one, U[w, s + d]
                below = U[w, sb + d + 1] - tb * U[w, s + d + 1]
                y = U[w, sb + d] - tb * x
                two = real(1.0) / below
                t = y * two
                inverse[w, index(k - 1)] = two
                z = U[w, sa + d] - ta * x
                z = z - t * y
                top = real(1.0) / z
                inverse[w, first] = top
                U[w, sb + d + 1] = below
                U[w, sb + d] = y
                U[w, sa + d] = z
                for q in range(d):
                    x = U[w, s + q]
                    y = U[w, sb + q] - tb * x
                    z = U[w, sa + q] - ta * x
                    U[w, sb + q] = y
                    U[w, sa + q] = z - t * y
                take_three_off(w, tree, U, sa, sb, s, first, d, top, two, one)
                k = k - 3
            else:
                take_off(w, tree, U, s, k, d, one)
                k = k - 1

    @wp.func(inline=True)
    def solve(w: int, tree: Any, U: matrix, inverse: matrix, x: matrix):
        """Replace x by the solution of ``L'DL y = x``."""
        parent, three, up, deep, at = tree
        nv = up.shape[1]
        k = nv - 1
        while k >= 0:
            last = index(k)
            s, n = index(number(w, k, at)), index(number(w, k, deep))
            y = x[w, last] * inverse[w, last]
            x[w, last] = y
            if three[k] != 0:
                sa, sb, n = index(s - 2 * n + 1), index(s - n), index(n - 2)
                b, a = index(k - 1), index(k - 2)
                yb = (x[w, b] - U[w, s + n + 1] * y) * inverse[w, b]
                ya = x[w, a] - U[w, s + n] * y
                ya = (ya - U[w, sb + n] * yb) * inverse[w, a]
                x[w, b] = yb
                x[w, a] = ya
                p = number(w, a, up)
                for e in range(n - 1, -1, -1):
                    i = index(p)
                    x[w, i] = x[w, i] - U[w, s + e] * y - U[w, sb + e] * yb - U[w, sa + e] * ya
                    p = number(w, p, up)
                k = k - 3
            else:
                p = number(w, k, up)
                for e in range(n - 1, -1, -1):
                    x[w, index(p)] = x[w, index(p)] - U[w, s + e] * y
                    p = number(w, p, up)
                k = k - 1
        k = int(0)
        while k < nv:
            a = index(k)
            sa, d, p = index(number(w, k, at)), index(number(w, k, deep)), number(w, k, up)
            ya = real(0.0)
            if k + 2 < nv and three[index(wp.min(k + 2, nv - 1))] != 0:
                b, c, sb, sc = index(k + 1), index(k + 2), index(sa + d + 1), index(sa + 2 * d + 3)
                yb, yc = real(0.0), real(0.0)
                for n in range(d - 1, -1, -1):
                    xp = x[w, index(p)]
                    ya = ya + U[w, sa + n] * xp
                    yb = yb + U[w, sb + n] * xp
                    yc = yc + U[w, sc + n] * xp
                    p = number(w, p, up)
                xa = x[w, a] - inverse[w, a] * ya
                xb = x[w, b] - inverse[w, b] * (yb + U[w, sb + d] * xa)
                yc = yc + U[w, sc + d] * xa + U[w, sc + d + 1] * xb
                x[w, a] = xa
                x[w, b] = xb
                x[w, c] = x[w, c] - inverse[w, c] * yc
                k = k + 3
            else:
                for n in range(d - 1, -1, -1):
                    ya = ya + U[w, sa + n] * x[w, index(p)]
                    p = number(w, p, up)
                x[w, a] = x[w, a] - inverse[w, a] * ya
                k = k + 1

    @wp.func(inline=True)
    def spread(w: int, tree: Any, U: matrix, L: matrix):
        """The factor as rows up to the diagonal, for those who do not know the tree."""
        parent, three, up, deep, at = tree
        for e in range(L.shape[1]):
            L[w, e] = real(0.0)
        for k in range(up.shape[1]):
            start, p = index(number(w, k, at)), index(k)
            for n in range(number(w, k, deep), -1, -1):
                L[w, index(k * (k + 1) // 2) + p] = U[w, start + n]
                p = index(number(w, p, up))

    return SimpleNamespace(
        arrange=arrange, begin=begin, add_bonds=add_bonds, factor=factor, solve=solve, spread=spread
    )  # fmt: skip
