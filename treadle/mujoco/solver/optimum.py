"""The optimum as a function of what the solver was given: how tapes differentiate it, whatever way led there.

Where the cost is least its gradient ``g(x, theta) = M x - B'f(b + B x)`` vanishes, so that by the implicit function
theorem ``dx = -H^-1 dg``, where dg is taken at constant x, and H, the Hessian, is ``M + sum B'CB``. That is the
derivative of one step of Newton's method ``x - H^-1 g(x, theta)`` at constant x and H. A tape records this step in the
place of all steps of the solver; x itself stays as it was found (`standing`).
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import index
from treadle.mujoco.constraint.kinds import EQUALITY, FRICTION_DOF, FRICTION_TENDON, FRICTIONLESS
from treadle.mujoco.constraint.live import entry
from treadle.mujoco.solver.bond_products import bond_products
from treadle.mujoco.solver.cost import BOTTOM, MIDDLE, TOP, costs
from treadle.mujoco.solver.hessian import hessian
from treadle.mujoco.solver.products import products
from treadle.mujoco.solver.weights import weighing

ints2 = wp.array2d(dtype=int)


@cache
def standing(real: Any) -> wp.Function:
    """The kernel function ``stand``: a number with the derivative of another one."""

    @wp.func
    def stand(value: real, change: real):
        """``value``, which changes as ``change`` does."""
        return value

    @wp.func_grad(stand)
    def adj_stand(value: real, change: real, adj_ret: real):
        wp.adjoint[change] += adj_ret

    return stand


@cache
def responses(real: Any) -> wp.Function:
    """The kernel function ``respond`` for one precision."""
    matrix, zone, dry, pushing = wp.array2d(dtype=real), costs(real).zone, costs(real).dry, costs(real).pushing

    @wp.func(inline=True)
    def lone(w: int, r: int, dim: int, kind: int, D: matrix, mu: matrix, jar: matrix, force: matrix):
        """Rows that stand alone, with a force between two bounds."""
        for s in range(dim):
            d, x = D[w, r + s], jar[w, r + s]
            f, piece = -d * x, int(1)
            if kind == FRICTION_DOF or kind == FRICTION_TENDON:
                f, piece = dry(d, x, mu[w, r + s])
            elif kind != EQUALITY:
                f, piece = pushing(d, x)
            force[w, r + s] = f

    @wp.func(inline=True)
    def pyramid(w: int, r: int, dim: int, D: matrix, mu: matrix, jar: matrix, force: matrix):
        """The edges of a pyramid."""
        d, x0, zero = D[w, r], jar[w, r], real(0.0)
        normal = zero
        for s in range(1, dim):
            f = mu[w, r + s]
            y = f * jar[w, r + s]
            up, down = wp.min(x0 + y, zero), wp.min(x0 - y, zero)
            normal = normal - d * (up + down)
            force[w, r + s] = -d * f * (up - down)
        force[w, r] = normal

    @wp.func(inline=True)
    def cone(w: int, r: int, dim: int, D: matrix, mu: matrix, jar: matrix, force: matrix):
        """An elliptic cone."""
        f0, d0, square = mu[w, r], D[w, r], real(0.0)
        for s in range(1, dim):
            u = mu[w, r + s] * jar[w, r + s]
            square = square + u * u
        t, normal = wp.sqrt(square), f0 * jar[w, r]
        where = zone(normal, t, f0)
        if d0 == real(0.0):
            where = TOP
        push, pull = real(0.0), real(0.0)
        if where == MIDDLE:
            push = -d0 / (f0 * (real(1.0) + f0 * f0)) * (normal - f0 * t)
            pull = push / t
        for s in range(dim):
            x, f = jar[w, r + s], real(0.0)
            if where == BOTTOM:
                f = -D[w, r + s] * x
            elif where == MIDDLE:
                f = push
                if s > 0:
                    f = -pull * mu[w, r + s] * mu[w, r + s] * x
            force[w, r + s] = f

    @wp.func(inline=True)
    def respond(w: int, bonds: Any, elliptic: bool, soft: Any, jar: matrix, force: matrix):
        """Forces at ``jar``: those of `solver.weights`, without the weights."""
        live, listed, bond_kind, bond_dim, parts = bonds
        D, mu = soft
        r = int(0)
        for i in range(live):
            t = entry(w, i, listed[0])
            kind, dim = bond_kind[t], index(bond_dim[t])
            if kind != FRICTIONLESS or dim == 1:
                lone(w, r, dim, kind, D, mu, jar, force)
            elif elliptic:
                cone(w, r, dim, D, mu, jar, force)
            else:
                pyramid(w, r, dim, D, mu, jar, force)
            r = r + dim

    return respond


@cache
def optimum(real: Any) -> SimpleNamespace:
    """The kernel functions ``curve`` and ``follow`` for one precision."""
    matrix = wp.array2d(dtype=real)
    h, mul_m, evaluate = hessian(real), products(real).mul_m, weighing(real)
    arrange, begin, add_bonds, factor, spread = h.arrange, h.begin, h.add_bonds, h.factor, h.spread
    mul_b, add_bt = bond_products(real).mul_b, bond_products(real).add_bt
    respond, stand = responses(real), standing(real)

    @wp.func(inline=True)
    def curve(
        w: int, rows: int, elliptic: bool, bonds: Any, jacobian: Any, columns: Any, joins: Any, tree: Any, mass: Any,
        soft: Any, weights: Any, state: ints2, x: matrix, b: matrix, jar: matrix, jv: matrix, force: matrix, Z: matrix,
        H: matrix, L: matrix, diag: matrix,
    ):  # fmt: skip
        """Factor the Hessian at x. The factor is zero where its pattern, which depends on the gang, has nothing."""
        bond_weights, C, dC = weights
        mul_b(w, bonds, jacobian, x, jv)
        for i in range(rows):
            jar[w, i] = b[w, i] + jv[w, i]
        evaluate(w, bonds, elliptic, soft, weights, state, jar, force)
        arrange(w, bonds, joins, tree)
        begin(w, True, tree, mass, H)
        add_bonds(w, bonds, jacobian, columns, tree, bond_weights, C, Z, H)
        factor(w, tree, H, H, diag)
        spread(w, tree, H, L)

    @wp.func(inline=True)
    def solve(w: int, L: matrix, diag: matrix, x: matrix):
        """Replace x by the solution with the factor, in whichever pattern it has numbers."""
        nv = x.shape[1]
        for back in range(nv):
            k = index(nv - 1 - back)
            start, y = index(k * (k + 1) // 2), x[w, k] * diag[w, k]
            for c in range(k):
                x[w, c] = x[w, c] - L[w, start + c] * y
            x[w, k] = y
        for k in range(nv):
            start, y = index(k * (k + 1) // 2), real(0.0)
            for c in range(k):
                y = y + L[w, start + c] * x[w, c]
            x[w, k] = x[w, k] - diag[w, k] * y

    @wp.func(inline=True)
    def follow(
        w: int, rows: int, elliptic: bool, bonds: Any, jacobian: Any, mass: Any, soft: Any, L: matrix, diag: matrix,
        x: matrix, b: matrix, jar: matrix, jv: matrix, force: matrix, grad: matrix, moved: matrix, pushed: matrix,
        qacc_smooth: matrix, qacc: matrix, qfrc_constraint: matrix,
    ):  # fmt: skip
        """The acceleration and the forces on joints, as they are, with the derivatives of the optimum.

        There the forces on joints are M x.
        """
        rownnz, rowadr, colind, M, three = mass
        mul_b(w, bonds, jacobian, x, jv)
        for i in range(rows):
            jar[w, i] = b[w, i] + jv[w, i]
        respond(w, bonds, elliptic, soft, jar, force)
        mul_m(w, rownnz, rowadr, colind, M, x, grad)
        add_bt(w, real(-1.0), bonds, jacobian, force, grad)
        solve(w, L, diag, grad)
        for c in range(x.shape[1]):
            moved[w, c] = stand(x[w, c], -grad[w, c])
        mul_m(w, rownnz, rowadr, colind, M, moved, pushed)
        for c in range(x.shape[1]):
            qacc[w, c] = qacc_smooth[w, c] + moved[w, c]
            qfrc_constraint[w, c] = stand(qfrc_constraint[w, c], pushed[w, c])

    return SimpleNamespace(curve=curve, follow=follow)
