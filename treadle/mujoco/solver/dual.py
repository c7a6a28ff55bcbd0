"""The dual problem on live bonds: forces one after the other (PGS), and friction without slip afterwards.

Both minimise ``f'(A + R)f / 2 + f'b`` over admissible forces, where ``A = J M^-1 J'``, by rows or by contacts in turn
(MuJoCo documentation, Computation, Algorithms: PGS, noslip). With ``M = L'DL`` and ``G = D^-1/2 L^-T J'`` it is
``A = G'G``. It is never made: ``y = G f`` is kept up to date, and ``G_i' y`` is what A f has in row i. A column of G
has numbers only for the degrees of freedom that its bond reaches: those that it meets, and their ancestors.

Rows are basis rows. Edges of a pyramid are sums of two of them, and so are the columns and residuals of edges; the
force on each edge is kept in ``row_up`` and ``row_down``, from the second row of a contact on.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import index
from treadle.mujoco.constants import MINVAL
from treadle.mujoco.constraint.kinds import FRICTION_DOF, FRICTION_TENDON, FRICTIONLESS
from treadle.mujoco.constraint.live import entry
from treadle.mujoco.solver.cost import costs
from treadle.mujoco.solver.disc import disc

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@wp.func(inline=True)
def place(s: int, q: int):
    """Where a symmetric matrix that lies as rows up to the diagonal has an element."""
    big, small = wp.max(s, q), wp.min(s, q)
    return big * (big + 1) // 2 + small


@wp.func(inline=True)
def rubs(kind: int):
    """Whether a bond is dry friction."""
    return kind == FRICTION_DOF or kind == FRICTION_TENDON


@cache
def spaces(real: Any) -> SimpleNamespace:
    """Kernel functions for one precision between joints and the space of G: ``roots``, ``inward``, ``outward``,
    ``columns``. ``inertia`` is ``(M_rowadr, M_rownnz, M_colind, qLD, root)``."""
    matrix = wp.array2d(dtype=real)

    @wp.func(inline=True)
    def roots(w: int, diaginv: matrix, root: matrix):
        """``D^-1/2``."""
        for k in range(root.shape[1]):
            root[w, k] = wp.sqrt(diaginv[w, k])

    @wp.func(inline=True)
    def inward(w: int, inertia: Any, x: matrix):
        """``x = D^-1/2 L^-T x``."""
        rowadr, rownnz, colind, ld, root = inertia
        nv = x.shape[1]
        for back in range(nv):
            k = index(nv - 1 - back)
            y = x[w, k]
            for e in range(index(rowadr[k]), rowadr[k] + rownnz[k] - 1):
                i = index(colind[e])
                x[w, i] = x[w, i] - ld[w, e] * y
            x[w, k] = y * root[w, k]

    @wp.func(inline=True)
    def outward(w: int, inertia: Any, x: matrix):
        """``x = L^-1 D^-1/2 x``."""
        rowadr, rownnz, colind, ld, root = inertia
        for k in range(x.shape[1]):
            y = x[w, k] * root[w, k]
            for e in range(index(rowadr[k]), rowadr[k] + rownnz[k] - 1):
                y = y - ld[w, e] * x[w, index(colind[e])]
            x[w, k] = y

    @wp.func(inline=True)
    def column(
        w: int, j: int, num: int, adr: int, g: int, reach: int, first: int, bond_dof: ints, reach_dof: ints,
        inertia: Any, J: matrix, x: matrix, G: matrix,
    ):  # fmt: skip
        """The column of one basis row."""
        rowadr, rownnz, colind, ld, root = inertia
        for m in range(reach):
            x[w, index(reach_dof[first + m])] = real(0.0)
        for m in range(num):
            x[w, index(bond_dof[adr + m])] = J[w, j + m]
        for back in range(reach):
            m = reach - 1 - back
            k = index(reach_dof[first + m])
            y = x[w, k]
            G[w, g + m] = y * root[w, k]
            for e in range(index(rowadr[k]), rowadr[k] + rownnz[k] - 1):
                i = index(colind[e])
                x[w, i] = x[w, i] - ld[w, e] * y

    @wp.func(inline=True)
    def columns(
        w: int, all: bool, listed: Any, meets: Any, reaches: Any, inertia: Any, J: matrix, force: matrix, x: matrix,
        G: matrix, A: matrix,
    ):  # fmt: skip
        """G, and of each bond the part of A between its own rows; unless ``all``, only for friction that can act."""
        live, bonds, bond_kind, bond_dim, parts = listed
        bond_num, bond_adr, bond_dof = meets
        bond_reach, bond_reached, reach_dof = reaches
        r, j, g, c = int(0), int(0), int(0), int(0)
        for i in range(live):
            t = entry(w, i, bonds[0])
            kind, dim, num, reach = bond_kind[t], index(bond_dim[t]), index(bond_num[t]), index(bond_reach[t])
            contact = kind == FRICTIONLESS
            begin = int(0)
            if contact and not all:
                begin = 1  # the normal force stays as it is
            if all or rubs(kind) or contact and dim > 1 and wp.any_lane(force[w, r] > real(0.0)):
                for s in range(begin, dim):
                    column(
                        w, j + s * num, num, bond_adr[t], g + s * reach, reach, bond_reached[t], bond_dof, reach_dof,
                        inertia, J, x, G,
                    )  # fmt: skip
                    for q in range(begin, s + 1):
                        a = real(0.0)
                        for m in range(reach):
                            a = a + G[w, g + s * reach + m] * G[w, g + q * reach + m]
                        A[w, c + place(s, q)] = a
            r = r + dim
            j = j + dim * num
            g = g + dim * reach
            c = c + dim * (dim + 1) // 2

    return SimpleNamespace(roots=roots, inward=inward, outward=outward, columns=columns)


@cache
def _rows(real: Any) -> SimpleNamespace:
    """Kernel functions: ``along`` is what A f has in a row, ``push`` lets its force grow; ``block``, ``rows``."""
    matrix = wp.array2d(dtype=real)
    vec6, mat66 = wp.types.vector(length=6, dtype=real), wp.types.matrix(shape=(6, 6), dtype=real)

    @wp.func(inline=True)
    def along(w: int, g: int, reach: int, first: int, dofs: ints, G: matrix, y: matrix):
        z = real(0.0)
        for m in range(reach):
            z = z + G[w, g + m] * y[w, index(dofs[first + m])]
        return z

    @wp.func(inline=True)
    def push(w: int, g: int, reach: int, first: int, dofs: ints, delta: real, G: matrix, y: matrix):
        for m in range(reach):
            k = index(dofs[first + m])
            y[w, k] = y[w, k] + delta * G[w, g + m]

    @wp.func(inline=True)
    def block(w: int, c: int, begin: int, dim: int, A: matrix):
        """A of the rows of a contact from ``begin`` on."""
        a = mat66()
        for s in range(begin, dim):
            for q in range(begin, s + 1):
                y = A[w, c + place(s, q)]
                a[s, q] = y
                a[q, s] = y
        return a

    @wp.func(inline=True)
    def rows(w: int, r: int, dim: int, values: matrix):
        """The values of a contact's rows; zero beyond."""
        v = vec6()
        for s in range(dim):
            v[s] = values[w, r + s]
        return v

    return SimpleNamespace(along=along, push=push, block=block, rows=rows, vec6=vec6, mat66=mat66)


@cache
def slipping(real: Any) -> wp.Function:
    """The kernel function ``noslip`` for one precision."""
    a, on_disc = _rows(real), disc(real)
    along, push, block, rows, vec6 = a.along, a.push, a.block, a.rows, a.vec6
    matrix = wp.array2d(dtype=real)

    @wp.func(inline=True)
    def rub(
        w: int, running: bool, r: int, g: int, c: int, reach: int, first: int, dofs: ints, b: matrix, mu: matrix,
        force: matrix, G: matrix, A: matrix, y: matrix,
    ):  # fmt: skip
        """Improve dry friction; gives by how much the cost falls."""
        old, bend, loss = force[w, r], A[w, c], mu[w, r]
        residual = b[w, r] + along(w, g, reach, first, dofs, G, y)
        delta = wp.clamp(old - residual / wp.max(bend, real(MINVAL)), -loss, loss) - old
        delta = wp.where(running, delta, real(0.0))
        force[w, r] = old + delta
        push(w, g, reach, first, dofs, delta, G, y)
        return -delta * (residual + real(0.5) * bend * delta)

    @wp.func(inline=True)
    def edges(
        w: int, running: bool, r: int, g: int, c: int, reach: int, first: int, dofs: ints, b: matrix, mu: matrix,
        up: matrix, down: matrix, G: matrix, A: matrix, y: matrix,
    ):  # fmt: skip
        """Move force between two opposite edges of a pyramid, along one row; gives by how much the cost falls."""
        twice = real(2.0) * mu[w, r]
        bend = twice * twice * A[w, c]
        residual = twice * (b[w, r] + along(w, g, reach, first, dofs, G, y))
        mid, old, shift = real(0.5) * (up[w, r] + down[w, r]), real(0.5) * (up[w, r] - down[w, r]), real(0.0)
        if bend >= real(MINVAL):
            shift = wp.clamp(old - residual / bend, -mid, mid)
        up[w, r] = wp.where(running, mid + shift, up[w, r])
        down[w, r] = wp.where(running, mid - shift, down[w, r])
        delta = wp.where(running, shift - old, real(0.0))
        push(w, g, reach, first, dofs, twice * delta, G, y)
        return -delta * (residual + real(0.5) * bend * delta)

    @wp.func(inline=True)
    def cone(
        w: int, running: bool, r: int, g: int, c: int, dim: int, reach: int, first: int, dofs: ints, b: matrix,
        mu: matrix, force: matrix, G: matrix, A: matrix, y: matrix,
    ):  # fmt: skip
        """Improve the friction of an elliptic contact under its normal force; gives by how much the cost falls."""
        a, old, residual = block(w, c, 1, dim, A), rows(w, r, dim, force), rows(w, r, dim, b)
        for s in range(1, dim):
            residual[s] = residual[s] + along(w, g + s * reach, reach, first, dofs, G, y)
        new = on_disc(a, old, residual, rows(w, r, dim, mu), dim)
        delta, gain = vec6(), real(0.0)
        for s in range(1, dim):
            delta[s] = wp.where(running, new[s] - old[s], real(0.0))
        for s in range(1, dim):
            bent = real(0.0)
            for q in range(1, dim):
                bent = bent + a[s, q] * delta[q]
            gain = gain - delta[s] * (residual[s] + real(0.5) * bent)
            force[w, r + s] = old[s] + delta[s]
            push(w, g + s * reach, reach, first, dofs, delta[s], G, y)
        return gain

    @wp.func(inline=True)
    def noslip(
        w: int, running: bool, iterations: int, tolerance: real, gain: real, elliptic: bool, listed: Any, reaches: Any,
        b: matrix, mu: matrix, force: matrix, up: matrix, down: matrix, G: matrix, A: matrix, y: matrix,
    ):  # fmt: skip
        """Sweeps over dry friction and the friction of contacts as if they were hard: without R.

        ``gain`` is what R contributes to the cost. Gives how many sweeps there were.
        """
        live, bonds, bond_kind, bond_dim, parts = listed
        bond_reach, bond_reached, dofs = reaches
        count, k = int(0), int(0)
        while k < iterations and wp.any_lane(running):
            r, g, c = int(0), int(0), int(0)
            for i in range(live):
                t = entry(w, i, bonds[0])
                kind, dim = bond_kind[t], index(bond_dim[t])
                reach, first = index(bond_reach[t]), bond_reached[t]
                if rubs(kind):
                    gain = gain + rub(w, running, r, g, c, reach, first, dofs, b, mu, force, G, A, y)
                elif kind == FRICTIONLESS and dim > 1 and wp.any_lane(force[w, r] > real(0.0)):
                    if elliptic:
                        gain = gain + cone(w, running, r, g, c, dim, reach, first, dofs, b, mu, force, G, A, y)
                    else:
                        for s in range(1, dim):
                            gain = gain + edges(
                                w, running, r + s, g + s * reach, c + place(s, s), reach, first, dofs, b, mu, up,
                                down, G, A, y,
                            )  # fmt: skip
                r = r + dim
                g = g + dim * reach
                c = c + dim * (dim + 1) // 2
            if running:
                count = count + 1
            running = running and gain >= tolerance
            gain = real(0.0)
            k = k + 1
        return count

    return noslip


@cache
def projecting(real: Any) -> wp.Function:
    """The kernel function ``pgs`` for one precision."""
    a, bounds, on_disc = _rows(real), costs(real).bounds, disc(real)
    along, push, block, rows, vec6 = a.along, a.push, a.block, a.rows, a.vec6
    matrix = wp.array2d(dtype=real)

    @wp.func(inline=True)
    def lone(
        w: int, running: bool, kind: int, r: int, g: int, c: int, reach: int, first: int, dofs: ints, D: matrix,
        b: matrix, mu: matrix, force: matrix, G: matrix, A: matrix, y: matrix,
    ):  # fmt: skip
        """Improve the force of a row that stands alone; gives by how much the cost falls."""
        d, old = D[w, r], force[w, r]
        on = running and d > real(0.0)
        soft = real(1.0) / wp.where(on, d, real(1.0))
        low, high = bounds(kind, mu[w, r])
        bend = A[w, c] + soft
        residual = b[w, r] + along(w, g, reach, first, dofs, G, y) + soft * old
        delta = wp.where(on, wp.clamp(old - residual / bend, low, high) - old, real(0.0))
        force[w, r] = old + delta
        push(w, g, reach, first, dofs, delta, G, y)
        return -delta * (residual + real(0.5) * bend * delta)

    @wp.func(inline=True)
    def pyramid(
        w: int, running: bool, r: int, g: int, c: int, dim: int, reach: int, first: int, dofs: ints, D: matrix,
        b: matrix, mu: matrix, up: matrix, down: matrix, G: matrix, A: matrix, y: matrix,
    ):  # fmt: skip
        """Improve the forces of the edges of a pyramid, one after the other; gives by how much the cost falls."""
        on = running and D[w, r] > real(0.0)
        soft = real(1.0) / wp.where(on, D[w, r], real(1.0))
        residual, moved, gain = vec6(), vec6(), real(0.0)
        for s in range(dim):
            residual[s] = b[w, r + s] + along(w, g + s * reach, reach, first, dofs, G, y)
        for s in range(1, dim):
            for side in range(2):
                f = mu[w, r + s]
                old = up[w, r + s]
                if side > 0:
                    f, old = -f, down[w, r + s]
                across = A[w, c + place(s, 0)]
                bend = A[w, c] + f * (real(2.0) * across + f * A[w, c + place(s, s)]) + soft
                slope = residual[0] + f * residual[s] + soft * old
                delta = wp.where(on, wp.max(old - slope / bend, real(0.0)) - old, real(0.0))
                if side > 0:
                    down[w, r + s] = old + delta
                else:
                    up[w, r + s] = old + delta
                gain = gain - delta * (slope + real(0.5) * bend * delta)
                for q in range(dim):
                    residual[q] = residual[q] + (A[w, c + place(q, 0)] + f * A[w, c + place(q, s)]) * delta
                moved[0] = moved[0] + delta
                moved[s] = moved[s] + f * delta
        for s in range(dim):
            push(w, g + s * reach, reach, first, dofs, moved[s], G, y)
        return gain

    @wp.func(inline=True)
    def along_ray(a: a.mat66, force: vec6, residual: vec6, dim: int):
        """Let the force of a contact grow or shrink, but not turn; without a normal force, the normal alone moves."""
        moved = vec6()
        moved[0] = wp.max(force[0] - residual[0] / a[0, 0], real(0.0))
        if force[0] >= real(MINVAL):
            bend, slope = real(0.0), real(0.0)
            for s in range(dim):
                slope = slope + force[s] * residual[s]
                for q in range(dim):
                    bend = bend + force[s] * a[s, q] * force[q]
            factor = real(1.0)
            if bend >= real(MINVAL):
                factor = wp.max(real(1.0) - slope / bend, real(0.0))
            for s in range(dim):
                moved[s] = factor * force[s]
        return moved

    @wp.func(inline=True)
    def cone(
        w: int, running: bool, r: int, g: int, c: int, dim: int, reach: int, first: int, dofs: ints, D: matrix,
        b: matrix, mu: matrix, force: matrix, G: matrix, A: matrix, y: matrix,
    ):  # fmt: skip
        """Improve the force of an elliptic contact; gives by how much the cost falls."""
        on = running and D[w, r] > real(0.0)
        a, old, residual, turned = block(w, c, 0, dim, A), rows(w, r, dim, force), vec6(), vec6()
        for s in range(dim):
            soft = real(1.0) / wp.where(on, D[w, r + s], real(1.0))
            a[s, s] = a[s, s] + soft
            residual[s] = b[w, r + s] + along(w, g + s * reach, reach, first, dofs, G, y) + soft * old[s]
        new = along_ray(a, old, residual, dim)
        for s in range(dim):
            turned[s] = residual[s]
            for q in range(dim):
                turned[s] = turned[s] + a[s, q] * (new[q] - old[q])
        new = on_disc(a, new, turned, rows(w, r, dim, mu), dim)
        gain = real(0.0)
        for s in range(dim):
            bent = residual[s]
            for q in range(dim):
                bent = bent + real(0.5) * a[s, q] * (new[q] - old[q])
            gain = gain - (new[s] - old[s]) * bent
        better = on and gain > real(0.0)
        for s in range(dim):
            delta = wp.where(better, new[s] - old[s], real(0.0))
            force[w, r + s] = old[s] + delta
            push(w, g + s * reach, reach, first, dofs, delta, G, y)
        return wp.where(better, gain, real(0.0))

    @wp.func(inline=True)
    def pgs(
        w: int, running: bool, iterations: int, tolerance: real, elliptic: bool, listed: Any, reaches: Any, D: matrix,
        b: matrix, mu: matrix, force: matrix, up: matrix, down: matrix, G: matrix, A: matrix, y: matrix,
    ):  # fmt: skip
        """Projected Gauss-Seidel: sweeps over all rows and contacts until they gain too little. Gives their number."""
        live, bonds, bond_kind, bond_dim, parts = listed
        bond_reach, bond_reached, dofs = reaches
        count, k = int(0), int(0)
        while k < iterations and wp.any_lane(running):
            gain = real(0.0)
            r, g, c = int(0), int(0), int(0)
            for i in range(live):
                t = entry(w, i, bonds[0])
                kind, dim = bond_kind[t], index(bond_dim[t])
                reach, first = index(bond_reach[t]), bond_reached[t]
                if kind != FRICTIONLESS or dim == 1:
                    for s in range(dim):
                        gain = gain + lone(
                            w, running, kind, r + s, g + s * reach, c + place(s, s), reach, first, dofs, D, b, mu,
                            force, G, A, y,
                        )  # fmt: skip
                elif elliptic:
                    gain = gain + cone(w, running, r, g, c, dim, reach, first, dofs, D, b, mu, force, G, A, y)
                else:
                    gain = gain + pyramid(w, running, r, g, c, dim, reach, first, dofs, D, b, mu, up, down, G, A, y)
                r = r + dim
                g = g + dim * reach
                c = c + dim * (dim + 1) // 2
            if running:
                count = count + 1
            running = running and gain >= tolerance
            k = k + 1
        return count

    return pgs
