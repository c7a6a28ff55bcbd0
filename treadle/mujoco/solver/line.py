"""The exact minimum of the cost along a line, over live bonds, and the way there."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import index
from treadle.mujoco.constraint.live import entry
from treadle.mujoco.solver.bond_products import bond_products
from treadle.mujoco.solver.cost import BOTTOM, MIDDLE, TOP, costs
from treadle.mujoco.solver.products import products


@cache
def lines(real: Any, by_newton: bool) -> SimpleNamespace:
    """The kernel function ``descend`` for one precision. ``by_newton``: whether along Newton's steps, which end at 1
    where no bond changes its piece."""
    matrix, vec5 = wp.array2d(dtype=real), wp.types.vector(length=5, dtype=real)
    fives = wp.array2d(dtype=vec5)
    cost, mul_b, mul = costs(real), bond_products(real).mul_b, products(real)
    zone, dry, pushing, noted, mul_mass, dot = cost.zone, cost.dry, cost.pushing, cost.noted, mul.mul_mass, mul.dot
    # Of the slope at the start. Directions of conjugate gradients rest on exact minima, and the last step of all ends
    # there: as flat as rounding lets it be. Otherwise Newton's next direction is another one anyway, and lanes wait for
    # those that go on.
    flattest = 1e-13 if real is wp.float64 else 1e-5
    nearly = 0.1 if by_newton else flattest

    @wp.func(inline=True)
    def pyramid(w: int, r: int, dim: int, a: real, D: matrix, mu: matrix, jar: matrix, jv: matrix):
        """Slope, curvature and piece of the edges of a pyramid."""
        zero = real(0.0)
        d, v0 = D[w, r], jv[w, r]
        x0 = jar[w, r] + a * v0
        slope, bend, piece = zero, zero, int(0)
        for s in range(1, 6):
            if s < dim:
                f = mu[w, r + s]
                vs = f * jv[w, r + s]
                xs = f * jar[w, r + s] + a * vs
                up, down = x0 + xs, x0 - xs
                v_up, v_down = wp.where(up < zero, v0 + vs, zero), wp.where(down < zero, v0 - vs, zero)
                slope = slope + (up * v_up + down * v_down)
                bend = bend + (v_up * v_up + v_down * v_down)
                piece = piece * 4 + wp.where(up < zero, 1, 0) + wp.where(down < zero, 2, 0)
        return d * slope, d * bend, piece

    @wp.func(inline=True)
    def cone(w: int, i: int, r: int, a: real, D: matrix, mu: matrix, jar: matrix, jv: matrix, shapes: fives):
        """Slope, curvature and zone of an elliptic cone (`prepare`)."""
        zero, f, d, v, shape = real(0.0), mu[w, r], D[w, r], jv[w, r], shapes[w, i]
        now, half, square = jar[w, r] + a * v, shape[1] + a * shape[2], shape[0] + a * shape[1]
        t = wp.sqrt(wp.max(square + a * half, zero))
        where = zone(f * now, t, f)
        if d == zero:
            where = TOP
        inverse = real(1.0) / t
        t1, gap = half * inverse, f * (now - t)
        gap1, gap2 = f * (v - t1), f * (t1 * t1 - shape[2]) * inverse
        middle, bottom = where == MIDDLE, where == BOTTOM
        slope = wp.where(bottom, d * now * v + shape[4] * half, zero)
        bend = wp.where(bottom, d * v * v + shape[4] * shape[2], zero)
        slope = wp.where(middle, shape[3] * gap * gap1, slope)
        bend = wp.where(middle, shape[3] * (gap1 * gap1 + gap * gap2), bend)
        return slope, bend, where

    @wp.func(inline=True)
    def prepare(w: int, bonds: Any, soft: Any, jar: matrix, jv: matrix, shapes: fives):
        """Of each elliptic contact the polynomial ``T^2 = uu + 2 uv a + vv a^2`` along the line, the stiffness of the
        cone's surface, and that of T."""
        live, listed, bond_kind, bond_dim, parts = bonds
        bond, row, number, weight = listed
        D, mu = soft
        for i in range(parts[2], live):
            r, dim = entry(w, i, row), index(bond_dim[entry(w, i, bond)])
            if dim > 1:
                uu, uv, vv = real(0.0), real(0.0), real(0.0)
                for s in range(1, 6):
                    if s < dim:
                        f = mu[w, r + s]
                        u, v = f * jar[w, r + s], f * jv[w, r + s]
                        uu, uv, vv = uu + u * u, uv + u * v, vv + v * v
                f0, f1 = mu[w, r], mu[w, r + 1]
                on = D[w, r] > real(0.0)
                shapes[w, i] = vec5(
                    uu, uv, vv, wp.where(on, D[w, r] / (f0 * f0 * (real(1.0) + f0 * f0)), real(0.0)),
                    wp.where(on, D[w, r + 1] / (f1 * f1), real(0.0)),
                )  # fmt: skip

    @wp.func(inline=True)
    def along(
        w: int, a: real, gauss: real, curve: real, elliptic: bool, bonds: Any, soft: Any, jar: matrix,
        jv: matrix, shapes: fives,
    ):  # fmt: skip
        """Slope and curvature of the cost at ``a``, a number that tells in which pieces the bonds are, and whether
        some piece is no parabola."""
        live, listed, bond_kind, bond_dim, parts = bonds
        equalities, sliding, limited = parts
        bond, row, number, weight = listed
        D, mu = soft
        zero = real(0.0)
        slope, bend, pieces, curved = gauss + a * curve, curve, int(0), False
        for i in range(equalities, sliding):
            r = entry(w, i, row)
            d, v, bound = D[w, r], jv[w, r], mu[w, r]
            f, piece = dry(d, jar[w, r] + a * v, bound)
            slope = slope - f * v
            bend = bend + wp.where(piece == 1, d * v * v, zero)
            pieces = noted(pieces, d, piece)
        for i in range(sliding, limited):
            r = entry(w, i, row)
            d, v = D[w, r], jv[w, r]
            f, piece = pushing(d, jar[w, r] + a * v)
            slope = slope - f * v
            bend = bend + wp.where(piece == 1, d * v * v, zero)
            pieces = noted(pieces, d, piece)
        for i in range(limited, live):
            r, dim = entry(w, i, row), index(bond_dim[entry(w, i, bond)])
            more, second, piece = zero, zero, int(0)
            if dim == 1:
                d, v = D[w, r], jv[w, r]
                f, piece = pushing(d, jar[w, r] + a * v)
                more, second = -f * v, wp.where(piece == 1, d * v * v, zero)
            elif elliptic:
                more, second, piece = cone(w, i, r, a, D, mu, jar, jv, shapes)
                curved = curved or piece == MIDDLE
            else:
                more, second, piece = pyramid(w, r, dim, a, D, mu, jar, jv)
            slope = slope + more
            bend = bend + second
            pieces = noted(pieces, D[w, r], piece)
        return slope, bend, pieces, curved

    @wp.func(inline=True)
    def search(
        w: int, running: bool, final: bool, iterations: int, flat: real, gauss: real, curve: real, start: real,
        pieces: int, elliptic: bool, bonds: Any, soft: Any, jar: matrix, jv: matrix, shapes: fives,
    ):  # fmt: skip
        """The step ``a`` at which the slope vanishes, and whether the step is exact.

        Newton's method between two ends that close in, on the slope, a growing function made of straight pieces where
        no contact is elliptic: once two points lie on one piece, the second is the minimum itself. ``start`` and
        ``pieces`` are known at 0.
        """
        if elliptic:
            prepare(w, bonds, soft, jar, jv, shapes)
        live, listed, bond_kind, bond_dim, parts = bonds
        D, mu = soft
        for i in range(parts[0]):  # equalities: parabolas all along
            first = entry(w, i, listed[1])
            for r in range(first, first + bond_dim[entry(w, i, listed[0])]):
                d, v = D[w, r], jv[w, r]
                gauss = gauss + d * jar[w, r] * v
                curve = curve + d * v * v
        a, low, high = real(0.0), real(0.0), real(-1.0)
        enough = wp.max(flat, wp.where(final, real(flattest), real(nearly)) * wp.abs(start))
        searching, exact, newton = running and start < real(0.0), False, False
        k = int(0)
        if by_newton:
            k = 1
            a = wp.where(searching, real(1.0), real(0.0))
            newton = True
        while k <= iterations and wp.any_lane(searching):
            slope, bend, there, curved = along(w, a, gauss, curve, elliptic, bonds, soft, jar, jv, shapes)
            if searching:
                if newton and there == pieces and not curved:
                    exact, searching = True, False
                elif wp.abs(slope) <= enough:
                    searching = False
                else:
                    pieces = there
                    if slope < real(0.0):
                        low = a
                    else:
                        high = a
                    step = a - slope / bend
                    newton = not (high > real(0.0) and (step <= low or step >= high))
                    if not newton:
                        step = real(0.5) * (low + high)
                    if step == a or not bend > real(0.0):
                        searching = False
                    else:
                        a = step
            k = k + 1
        return a, exact

    @wp.func(inline=True)
    def descend(
        w: int, running: bool, final: bool, rows: int, iterations: int, flat: real, pieces: int, elliptic: bool,
        bonds: Any, jacobian: Any, mass: Any, soft: Any, x: matrix, Mx: matrix, grad: matrix, jar: matrix, p: matrix,
        Mp: matrix, jv: matrix, shapes: fives,
    ):  # fmt: skip
        """Move ``x``, and the products with it, along the direction ``p``: as far as the cost falls, where running.

        ``final`` says that no other direction follows. ``flat`` is the slope that counts as none, by the length of p.
        Returns the step, the slope where it begins, and whether it is exact.
        """
        mul_mass(w, mass, p, Mp)
        mul_b(w, bonds, jacobian, p, jv)
        start = dot(w, p, grad)
        a, exact = search(
            w, running, final, iterations, flat * wp.sqrt(dot(w, p, p)), dot(w, p, Mx), dot(w, p, Mp), start, pieces,
            elliptic, bonds, soft, jar, jv, shapes,
        )  # fmt: skip
        a = wp.where(running, a, real(0.0))
        for c in range(x.shape[1]):
            x[w, c] = x[w, c] + a * p[w, c]
            Mx[w, c] = Mx[w, c] + a * Mp[w, c]
        for i in range(rows):
            jar[w, i] = jar[w, i] + a * jv[w, i]
        return a, start, exact

    return SimpleNamespace(descend=descend)
