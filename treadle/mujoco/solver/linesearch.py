"""The exact minimum of the cost along a line, and the way there."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.constraint.kinds import ELLIPTIC
from treadle.mujoco.solver.cost import BOTTOM, MIDDLE, TOP, costs
from treadle.mujoco.solver.products import products

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def linesearch(real: Any) -> SimpleNamespace:
    """The kernel function ``descend`` for one precision."""
    matrix, vec3 = wp.array2d(dtype=real), wp.types.vector(length=3, dtype=real)
    bounds, zone, mul = costs(real).bounds, costs(real).zone, products(real)
    mul_m, mul_j, dot = mul.mul_m, mul.mul_j, mul.dot
    close = 1e-13 if real is wp.float64 else 1e-5  # of the slope at the start: as flat as rounding lets it be

    @wp.func
    def prepare(
        w: int, n: int, efc_type: ints2, efc_dim: ints2, efc_friction: matrix, jar: matrix, jv: matrix,
        cone_quad: wp.array2d(dtype=vec3),
    ):  # fmt: skip
        """Of each elliptic contact the polynomial ``T^2 = uu + 2 uv a + vv a^2`` along the line."""
        i = int(0)
        while wp.any_lane(i < n):
            begins = efc_type[w, i] == ELLIPTIC and efc_dim[w, i] > 0 and i < n
            if begins:
                quad = vec3(real(0.0), real(0.0), real(0.0))
                for j in range(1, 6):
                    if j < efc_dim[w, i]:
                        f = efc_friction[w, i + j]
                        u, v = f * jar[w, i + j], f * jv[w, i + j]
                        quad = quad + vec3(u * u, u * v, v * v)
                cone_quad[w, i] = quad
            i = i + 1

    @wp.func
    def along(
        w: int, n: int, a: real, gauss: real, curve: real, efc_type: ints2, efc_dim: ints2, efc_D: matrix,
        efc_frictionloss: matrix, efc_friction: matrix, jar: matrix, jv: matrix, cone_quad: wp.array2d(dtype=vec3),
    ):  # fmt: skip
        """Slope and curvature of the cost at ``a``, a number that tells in which pieces the rows are, and whether
        some piece is no parabola."""
        slope, bend, pieces, curved = gauss + a * curve, curve, int(0), False
        where = TOP
        i = int(0)
        while wp.any_lane(i < n):
            kind, x, v, d = efc_type[w, i], jar[w, i], jv[w, i], efc_D[w, i]
            low, high = bounds(kind, efc_frictionloss[w, i])
            now = x + a * v
            force = -d * now
            piece, second = int(1), d * v * v
            if force <= low:
                force, piece, second = low, int(2), real(0.0)
            elif force >= high:
                force, piece, second = high, int(3), real(0.0)
            first = -force * v
            elliptic = kind == ELLIPTIC and i < n
            if wp.any_lane(elliptic):
                if elliptic:
                    if efc_dim[w, i] > 0:
                        f, quad = efc_friction[w, i], cone_quad[w, i]
                        t = wp.sqrt(wp.max(quad[0] + a * (real(2.0) * quad[1] + a * quad[2]), real(0.0)))
                        where = zone(f * now, t, f)
                        if where == MIDDLE:
                            dm = d / (f * f * (real(1.0) + f * f))
                            gap, t1 = f * (now - t), (quad[1] + a * quad[2]) / t
                            gap1 = f * (v - t1)
                            gap2 = -f * (quad[2] - t1 * t1) / t
                            first = dm * gap * gap1
                            second = dm * (gap1 * gap1 + gap * gap2)
                    elif where == MIDDLE:
                        first, second = real(0.0), real(0.0)
                    if where == BOTTOM:
                        first, second = d * now * v, d * v * v
                    elif where == TOP:
                        first, second = real(0.0), real(0.0)
                    else:
                        curved = True
                    piece = 4 + where
            if i < n:
                slope = slope + first
                bend = bend + second
                pieces = pieces * 31 + piece
            i = i + 1
        return slope, bend, pieces, curved

    @wp.func
    def search(
        w: int, n: int, running: bool, iterations: int, flat: real, gauss: real, curve: real, efc_type: ints2,
        efc_dim: ints2, efc_D: matrix, efc_frictionloss: matrix, efc_friction: matrix, jar: matrix, jv: matrix,
        cone_quad: wp.array2d(dtype=vec3),
    ):  # fmt: skip
        """The step ``a`` at which the slope vanishes, the slope at 0, and whether the step is exact.

        Newton's method between two ends that close in, on the slope, a growing function made of straight pieces where
        no contact is elliptic: once two points lie on one piece, the second is the minimum itself.
        """
        prepare(w, n, efc_type, efc_dim, efc_friction, jar, jv, cone_quad)
        a, low, high, start, enough = real(0.0), real(0.0), real(-1.0), real(0.0), real(0.0)
        searching, exact, newton = running, False, False
        pieces, k = int(0), int(0)
        while k <= iterations and wp.any_lane(searching):
            slope, bend, there, curved = along(
                w, n, a, gauss, curve, efc_type, efc_dim, efc_D, efc_frictionloss, efc_friction, jar, jv, cone_quad,
            )  # fmt: skip
            if k == 0:
                start = slope
                enough = wp.max(flat, real(close) * wp.abs(start))
                searching = searching and start < real(0.0) and bend > real(0.0)
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
                    if step == a:
                        searching = False
                    a = step
            k = k + 1
        return a, start, exact

    @wp.func
    def descend(
        w: int, n: int, running: bool, iterations: int, flat: real, rownnz: ints, rowadr: ints, colind: ints,
        M: matrix, J: wp.array3d(dtype=real), efc_type: ints2, efc_dim: ints2, efc_D: matrix, efc_frictionloss: matrix,
        efc_friction: matrix, x: matrix, Mx: matrix, jar: matrix, p: matrix, Mp: matrix, jv: matrix,
        cone_quad: wp.array2d(dtype=vec3),
    ):  # fmt: skip
        """Move ``x``, and the products with it, along the direction ``p``: as far as the cost falls, where running.

        ``flat`` is the slope that counts as none, by the length of p. Returns what `search` returns.
        """
        mul_m(w, rownnz, rowadr, colind, M, p, Mp)
        mul_j(w, n, J, p, jv)
        a, slope, exact = search(
            w, n, running, iterations, flat * wp.sqrt(dot(w, p, p)), dot(w, p, Mx), dot(w, p, Mp),
            efc_type, efc_dim, efc_D, efc_frictionloss, efc_friction, jar, jv, cone_quad,
        )  # fmt: skip
        if running:
            for c in range(x.shape[1]):
                x[w, c] = x[w, c] + a * p[w, c]
                Mx[w, c] = Mx[w, c] + a * Mp[w, c]
            for i in range(n):
                jar[w, i] = jar[w, i] + a * jv[w, i]
        return a, slope, exact

    return SimpleNamespace(descend=descend)
