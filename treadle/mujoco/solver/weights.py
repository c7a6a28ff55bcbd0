"""What live bonds give at a point: forces, states, and the weights with which their basis rows enter the Hessian.

The cost is that of `solver.cost`, bond by bond. With the weights C of a bond, a small symmetric matrix, its share of
the Hessian is ``B'CB``, where B are its basis rows. For edges ``J_0 +- f_s J_s`` of a pyramid that act, C is the sum of
the products of ``(1, +-f_s)``; within an elliptic cone it is, with ``g = mu (1, -t_s f_s)`` and ``v = (0, t_s f_s)``,
``Dm g g' + Dm mu (mu T - N) / T (diag f^2 - v v')``.
"""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import index
from treadle.mujoco.constraint.live import entry
from treadle.mujoco.solver.cost import BOTTOM, MIDDLE, TOP, costs

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def weighing(real: Any) -> wp.Function:
    """The kernel function ``evaluate`` for one precision."""
    matrix, vec6 = wp.array2d(dtype=real), wp.types.vector(length=6, dtype=real)
    zone, dry, pushing, noted = costs(real).zone, costs(real).dry, costs(real).pushing, costs(real).noted

    @wp.func(inline=True)
    def renew(w: int, e: int, value: real, C: matrix, dC: matrix):
        """Set a weight, and note by how much it has changed."""
        dC[w, e] = value - C[w, e]
        C[w, e] = value

    @wp.func(inline=True)
    def moved(w: int, r: int, piece: int, state: ints2):
        """Note in which piece a bond is: 1 if it was in another one."""
        new = wp.where(state[w, r] != piece, 1, 0)
        state[w, r] = piece
        return new

    @wp.func(inline=True)
    def pyramid(
        w: int, r: int, c: int, dim: int, D: matrix, mu: matrix, jar: matrix, force: matrix, C: matrix, dC: matrix,
    ):  # fmt: skip
        """The edges of a pyramid. Gives cost and state."""
        zero = real(0.0)
        d, x0, cost, code = D[w, r], jar[w, r], zero, int(0)
        normal, total = zero, zero
        for s in range(1, 6):
            if s < dim:
                f = mu[w, r + s]
                y = f * jar[w, r + s]
                up, down = wp.min(x0 + y, zero), wp.min(x0 - y, zero)
                on_up, on_down = x0 + y < zero, x0 - y < zero
                d_up, d_down = wp.where(on_up, d, zero), wp.where(on_down, d, zero)
                normal = normal - d * (up + down)
                force[w, r + s] = -d * f * (up - down)
                cost = cost + real(0.5) * d * (up * up + down * down)
                total = total + (d_up + d_down)
                row = c + s * (s + 1) // 2
                renew(w, row, f * (d_up - d_down), C, dC)
                renew(w, row + s, f * f * (d_up + d_down), C, dC)
                code = code * 4 + wp.where(on_up, 1, 0) + wp.where(on_down, 2, 0)
        force[w, r] = normal
        renew(w, c, total, C, dC)
        return cost, code

    @wp.func(inline=True)
    def cone(
        w: int, r: int, c: int, dim: int, D: matrix, mu: matrix, jar: matrix, force: matrix, C: matrix, dC: matrix,
    ):  # fmt: skip
        """An elliptic cone. Gives cost and state."""
        zero = real(0.0)
        f0, d0, square = mu[w, r], D[w, r], zero
        for s in range(1, dim):
            u = mu[w, r + s] * jar[w, r + s]
            square = square + u * u
        t, normal = wp.sqrt(square), f0 * jar[w, r]
        where = zone(normal, t, f0)
        if d0 == zero:
            where = TOP
        cost, side, pull, dm = zero, zero, zero, zero
        if where == MIDDLE:
            dm = d0 / (f0 * f0 * (real(1.0) + f0 * f0))
            gap = normal - f0 * t
            cost = real(0.5) * dm * gap * gap
            pull, side = -dm * gap * f0 / t, real(1.0) / t
        lean = vec6()  # t_s f_s
        for s in range(6):
            if s < dim:
                x, d, f = jar[w, r + s], D[w, r + s], mu[w, r + s]
                push, weight = zero, zero
                if where == BOTTOM:
                    push, weight = -d * x, d
                    cost = cost + real(0.5) * d * x * x
                elif where == MIDDLE:
                    if s == 0:
                        push = pull * t
                        weight = dm * f * f
                    else:
                        push = -pull * f * f * x
                        lean[s] = f * f * x * side
                        weight = pull * f * f + (dm * f0 * f0 - pull) * lean[s] * lean[s]
                force[w, r + s] = push
                row = c + s * (s + 1) // 2
                renew(w, row + s, weight, C, dC)
                if s > 0:
                    renew(w, row, wp.where(where == MIDDLE, -dm * f0 * f0 * lean[s], zero), C, dC)
                    for q in range(1, 5):
                        if q < s:
                            renew(w, row + q, (dm * f0 * f0 - pull) * lean[s] * lean[q], C, dC)
        return cost, where

    @wp.func(inline=True)
    def evaluate(w: int, bonds: Any, elliptic: bool, soft: Any, weights: Any, state: ints2, jar: matrix, force: matrix):
        """Forces, weights and their changes at ``jar``; the cost, how many states of bonds have changed, a number that
        tells in which pieces all bonds are, and whether some piece is no parabola (as `line` has them)."""
        live, listed, bond_kind, bond_dim, parts = bonds
        equalities, sliding, limited = parts
        bond, row, number, weight = listed
        (D, mu), (_, C, dC) = soft, weights
        cost, changed, pieces, curved = real(0.0), int(0), int(0), False
        for i in range(equalities):
            r, c, dim = entry(w, i, row), entry(w, i, weight), index(bond_dim[entry(w, i, bond)])
            for s in range(dim):
                d, x = D[w, r + s], jar[w, r + s]
                force[w, r + s] = -d * x
                cost = cost + real(0.5) * d * x * x
                renew(w, c + s * (s + 3) // 2, d, C, dC)
            changed = changed + moved(w, r, 1, state)
        for i in range(equalities, sliding):
            r, c = entry(w, i, row), entry(w, i, weight)
            d, x, bound = D[w, r], jar[w, r], mu[w, r]
            f, piece = dry(d, x, bound)
            sticks = piece == 1
            beyond = wp.abs(x) - real(0.5) * bound / wp.where(sticks, real(1.0), d)
            cost = cost + wp.where(sticks, real(0.5) * d * x * x, bound * beyond)
            force[w, r] = f
            renew(w, c, wp.where(sticks, d, real(0.0)), C, dC)
            changed = changed + moved(w, r, piece, state)
            pieces = noted(pieces, d, piece)
        for i in range(sliding, limited):
            r, c = entry(w, i, row), entry(w, i, weight)
            d, x = D[w, r], jar[w, r]
            f, piece = pushing(d, x)
            cost = cost - real(0.5) * f * x
            force[w, r] = f
            renew(w, c, wp.where(piece == 1, d, real(0.0)), C, dC)
            changed = changed + moved(w, r, piece, state)
            pieces = noted(pieces, d, piece)
        for i in range(limited, live):
            r, c, dim = entry(w, i, row), entry(w, i, weight), index(bond_dim[entry(w, i, bond)])
            value, code = real(0.0), int(0)
            if dim == 1:
                d, x = D[w, r], jar[w, r]
                f, code = pushing(d, x)
                value = real(-0.5) * f * x
                force[w, r] = f
                renew(w, c, wp.where(code == 1, d, real(0.0)), C, dC)
            elif elliptic:
                value, code = cone(w, r, c, dim, D, mu, jar, force, C, dC)
                curved = curved or code == MIDDLE
            else:
                value, code = pyramid(w, r, c, dim, D, mu, jar, force, C, dC)
            cost = cost + value
            changed = changed + moved(w, r, code, state)
            pieces = noted(pieces, D[w, r], code)
        return cost, changed, pieces, curved

    return evaluate
