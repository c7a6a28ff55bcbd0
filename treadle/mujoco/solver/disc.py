"""Friction under a given normal force: a quadratic function over an ellipsoid."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.constants import MINVAL


@cache
def disc(real: Any) -> wp.Function:
    """The kernel function ``on_disc`` for one precision."""
    vec6, mat66 = wp.types.vector(length=6, dtype=real), wp.types.matrix(shape=(6, 6), dtype=real)

    @wp.func(inline=True)
    def factor(a: mat66, shift: real, dim: int):
        """The factor L of rows 1 to ``dim - 1`` of ``a + shift``, and whether these are positive definite."""
        low = mat66()
        good = bool(True)
        for j in range(1, dim):
            for k in range(1, j + 1):
                y = a[j, k]
                if k == j:
                    y = y + shift
                for l in range(1, k):
                    y = y - low[j, l] * low[k, l]
                if k == j:
                    if y < real(MINVAL):
                        good = False
                        y = real(1.0)
                    low[j, j] = wp.sqrt(y)
                else:
                    low[j, k] = y / low[k, k]
        return low, good

    @wp.func(inline=True)
    def solve(low: mat66, b: vec6, dim: int):
        """The solution of ``L L' x = b`` over these rows."""
        x = vec6()
        for j in range(1, dim):
            y = b[j]
            for k in range(1, j):
                y = y - low[j, k] * x[k]
            x[j] = y / low[j, j]
        for back in range(1, dim):
            j = dim - back
            y = x[j]
            for k in range(j + 1, dim):
                y = y - low[k, j] * x[k]
            x[j] = y / low[j, j]
        return x

    @wp.func(inline=True)
    def product(a: vec6, b: vec6, dim: int):
        y = real(0.0)
        for j in range(1, dim):
            y = y + a[j] * b[j]
        return y

    @wp.func(inline=True)
    def on_disc(a: mat66, force: vec6, residual: vec6, friction: vec6, dim: int):
        """The friction that costs least while the normal force ``force[0]`` stays.

        In coordinates ``u_j = f_j / friction_j`` the cost is ``u'Pu / 2 + u'q`` over the ball ``|u| <= force[0]``.
        Where the minimum lies outside, ``u = -(P + s)^-1 q`` on the boundary, and Newton's method finds s.
        """
        radius = force[0]
        touches = radius >= real(MINVAL)
        p, q, moved = mat66(), vec6(), vec6()
        for j in range(1, dim):
            y = residual[j]
            for k in range(1, dim):
                p[j, k] = a[j, k] * friction[j] * friction[k]
                y = y - a[j, k] * force[k]
            q[j] = -y * friction[j]
        shift, step, searching, count = real(0.0), real(0.0), touches, int(0)
        low, u, good = mat66(), vec6(), bool(True)
        while count <= 20 and wp.any_lane(searching):
            if searching:
                shift = shift + step
            low, good = factor(p, shift, dim)  # of others the same again
            u = solve(low, q, dim)
            excess = product(u, u, dim) - radius * radius
            slope = real(-2.0) * product(u, solve(low, u, dim), dim)
            step = -excess / wp.where(slope == real(0.0), real(1.0), slope)  # unused there, but it has a derivative
            searching = searching and good and excess >= real(1e-10) and slope != real(0.0) and step >= real(1e-10)
            count = count + 1
        moved[0] = radius
        share = real(1.0)
        if shift > real(0.0):
            share = wp.sqrt(radius * radius / wp.max(product(u, u, dim), real(MINVAL)))
        for j in range(1, dim):
            moved[j] = wp.where(touches and good, share * u[j] * friction[j], real(0.0))
        return moved

    return on_disc
