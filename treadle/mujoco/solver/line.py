"""The exact minimum of the cost along a line, over live bonds, and the way there."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import index
from treadle.mujoco.constraint.kinds import EQUALITY, FRICTION_DOF, FRICTION_TENDON, FRICTIONLESS
from treadle.mujoco.solver.bond_products import bond_products
from treadle.mujoco.solver.cost import BOTTOM, MIDDLE, TOP, costs
from treadle.mujoco.solver.products import products


@cache
def lines(real: Any, by_newton: bool) -> SimpleNamespace:
    """The kernel function ``descend`` for one precision. ``by_newton``: whether along Newton's steps, which end at 1
    where no bond changes its piece."""
    matrix, vec3 = wp.array2d(dtype=real), wp.types.vector(length=3, dtype=real)
    zone, mul_b, mul = costs(real).zone, bond_products(real).mul_b, products(real)
    mul_mass, dot = mul.mul_mass, mul.dot
    close = 1e-13 if real is wp.float64 else 1e-5  # of the slope at the start: as flat as rounding lets it be
    nearly = 1e-2  # of it, where the next direction is another one in any case

    @wp.func(inline=True)
    def lone(w: int, r: int, dim: int, kind: int, a: real, D: matrix, mu: matrix, jar: matrix, jv: matrix):
        """Slope, curvature and piece of rows that stand alone."""
        slope, bend, piece = real(0.0), real(0.0), int(0)
        for s in range(dim):
            d, v = D[w, r + s], jv[w, r + s]
            now = jar[w, r + s] + a * v
            f, second, code = -d * now, d * v * v, int(1)
            if kind == FRICTION_DOF or kind == FRICTION_TENDON:
                bound = mu[w, r + s]
                if wp.abs(f) >= bound:
                    code = wp.where(f > real(0.0), 3, 2)
                    f, second = wp.where(f > real(0.0), bound, -bound), real(0.0)
            elif kind != EQUALITY:
                if now >= real(0.0):
                    f, second, code = real(0.0), real(0.0), int(2)
            slope = slope - f * v
            bend = bend + second
            piece = piece * 4 + code
        return slope, bend, piece

    @wp.func(inline=True)
    def pyramid(w: int, r: int, dim: int, a: real, D: matrix, mu: matrix, jar: matrix, jv: matrix):
        """Slope, curvature and piece of the edges of a pyramid."""
        zero = real(0.0)
        d, v0 = D[w, r], jv[w, r]
        x0 = jar[w, r] + a * v0
        slope, bend, piece = zero, zero, int(0)
        for s in range(1, dim):
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
    def cone(
        w: int, i: int, r: int, dim: int, a: real, D: matrix, mu: matrix, jar: matrix, jv: matrix,
        quads: wp.array2d(dtype=vec3),
    ):  # fmt: skip
        """Slope, curvature and zone of an elliptic cone, whose friction is a polynomial along the line (`prepare`)."""
        slope, bend = real(0.0), real(0.0)
        f, d, quad, v = mu[w, r], D[w, r], quads[w, i], jv[w, r]
        now = jar[w, r] + a * v
        t = wp.sqrt(wp.max(quad[0] + a * (real(2.0) * quad[1] + a * quad[2]), real(0.0)))
        where = zone(f * now, t, f)
        if d == real(0.0):
            where = TOP
        if where == MIDDLE:
            dm = d / (f * f * (real(1.0) + f * f))
            gap, t1 = f * (now - t), (quad[1] + a * quad[2]) / t
            gap1 = f * (v - t1)
            gap2 = -f * (quad[2] - t1 * t1) / t
            slope = dm * gap * gap1
            bend = dm * (gap1 * gap1 + gap * gap2)
        elif where == BOTTOM:
            for s in range(dim):
                d, v = D[w, r + s], jv[w, r + s]
                slope = slope + d * (jar[w, r + s] + a * v) * v
                bend = bend + d * v * v
        return slope, bend, where

    @wp.func(inline=True)
    def prepare(w: int, bonds: Any, mu: matrix, jar: matrix, jv: matrix, quads: wp.array2d(dtype=vec3)):
        """Of each elliptic contact the polynomial ``T^2 = uu + 2 uv a + vv a^2`` along the line."""
        live, listed, bond_kind, bond_dim = bonds
        r = int(0)
        for i in range(live):
            t = index(wp.same_lane(listed[w, i]))
            dim = index(bond_dim[t])
            if bond_kind[t] == FRICTIONLESS and dim > 1:
                quad = vec3()
                for s in range(1, dim):
                    f = mu[w, r + s]
                    u, v = f * jar[w, r + s], f * jv[w, r + s]
                    quad = quad + vec3(u * u, u * v, v * v)
                quads[w, i] = quad
            r = r + dim

    @wp.func(inline=True)
    def along(
        w: int, a: real, gauss: real, curve: real, elliptic: bool, bonds: Any, soft: Any, jar: matrix, jv: matrix,
        quads: wp.array2d(dtype=vec3),
    ):  # fmt: skip
        """Slope and curvature of the cost at ``a``, a number that tells in which pieces the bonds are, and whether
        some piece is no parabola."""
        live, listed, bond_kind, bond_dim = bonds
        D, mu = soft
        slope, bend, pieces, curved = gauss + a * curve, curve, int(0), False
        r = int(0)
        for i in range(live):
            t = index(wp.same_lane(listed[w, i]))
            kind, dim = bond_kind[t], index(bond_dim[t])
            first, second, piece = real(0.0), real(0.0), int(0)
            if kind != FRICTIONLESS or dim == 1:
                first, second, piece = lone(w, r, dim, kind, a, D, mu, jar, jv)
            elif elliptic:
                first, second, piece = cone(w, i, r, dim, a, D, mu, jar, jv, quads)
                if piece == MIDDLE:
                    curved = True
            else:
                first, second, piece = pyramid(w, r, dim, a, D, mu, jar, jv)
            slope = slope + first
            bend = bend + second
            if D[w, r] > real(0.0):
                pieces = pieces * 31 + piece
            r = r + dim
        return slope, bend, pieces, curved

    @wp.func(inline=True)
    def search(
        w: int, running: bool, iterations: int, flat: real, gauss: real, curve: real, start: real, pieces: int,
        elliptic: bool, bonds: Any, soft: Any, jar: matrix, jv: matrix, quads: wp.array2d(dtype=vec3),
    ):  # fmt: skip
        """The step ``a`` at which the slope vanishes, and whether the step is exact.

        Newton's method between two ends that close in, on the slope, a growing function made of straight pieces where
        no contact is elliptic: once two points lie on one piece, the second is the minimum itself. ``start`` and
        ``pieces`` are known at 0.
        """
        if elliptic:
            prepare(w, bonds, soft[1], jar, jv, quads)
        a, low, high, enough = real(0.0), real(0.0), real(-1.0), wp.max(flat, real(close) * wp.abs(start))
        searching, exact, newton = running and start < real(0.0), False, False
        k = int(0)
        if by_newton:
            k = 1
            a = wp.where(searching, real(1.0), real(0.0))
            newton = True
        while k <= iterations and wp.any_lane(searching):
            slope, bend, there, curved = along(w, a, gauss, curve, elliptic, bonds, soft, jar, jv, quads)
            if searching:
                if newton and there == pieces and not curved:
                    exact, searching = True, False
                elif wp.abs(slope) <= wp.where(curved, wp.max(enough, real(nearly) * wp.abs(start)), enough):
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
        w: int, running: bool, rows: int, iterations: int, flat: real, pieces: int, elliptic: bool, bonds: Any,
        jacobian: Any, mass: Any, soft: Any, x: matrix, Mx: matrix, grad: matrix, jar: matrix, p: matrix, Mp: matrix,
        jv: matrix, quads: wp.array2d(dtype=vec3),
    ):  # fmt: skip
        """Move ``x``, and the products with it, along the direction ``p``: as far as the cost falls, where running.

        ``flat`` is the slope that counts as none, by the length of p. Returns the step, the slope where it begins, and
        whether it is exact.
        """
        mul_mass(w, mass, p, Mp)
        mul_b(w, bonds, jacobian, p, jv)
        start = dot(w, p, grad)
        a, exact = search(
            w, running, iterations, flat * wp.sqrt(dot(w, p, p)), dot(w, p, Mx), dot(w, p, Mp), start, pieces, elliptic,
            bonds, soft, jar, jv, quads,
        )  # fmt: skip
        a = wp.where(running, a, real(0.0))
        for c in range(x.shape[1]):
            x[w, c] = x[w, c] + a * p[w, c]
            Mx[w, c] = Mx[w, c] + a * Mp[w, c]
        for i in range(rows):
            jar[w, i] = jar[w, i] + a * jv[w, i]
        return a, start, exact

    return SimpleNamespace(descend=descend)
