"""Friction under a given normal force: a quadratic function over an ellipsoid."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.constants import MINVAL


@cache
def disc(real: Any) -> wp.Function:
    """The kernel function ``on_disc`` for one precision."""
    vec6, mat66 = wp.types.vector(length=6, dtype=real), wp.types.matrix(shape=(6, 6), dtype=real)

    @wp.func
    def factor(a: mat66, shift: real):
        """The factor L of rows 1 to 5 of ``a + shift``, and whether these are positive definite."""
        low = a
        good = bool(True)
        for j in range(1, 6):
            for k in range(1, 6):
                if k <= j:
                    y = a[j, k]
                    if k == j:
                        y = y + shift
                    for l in range(1, 6):
                        if l < k:
                            y = y - low[j, l] * low[k, l]
                    if k == j:
                        if y < real(MINVAL):
                            good = False
                            y = real(1.0)
                        low[j, j] = wp.sqrt(y)
                    else:
                        low[j, k] = y / low[k, k]
        return low, good

    @wp.func
    def solve(low: mat66, b: vec6):
        """The solution of ``L L' x = b`` over rows 1 to 5."""
        x = b
        for j in range(1, 6):
            y = x[j]
            for k in range(1, 6):
                if k < j:
                    y = y - low[j, k] * x[k]
            x[j] = y / low[j, j]
        for back in range(1, 6):
            j = 6 - back
            y = x[j]
            for k in range(1, 6):
                if k > j:
                    y = y - low[k, j] * x[k]
            x[j] = y / low[j, j]
        return x

    @wp.func
    def on_disc(a: mat66, force: vec6, residual: vec6, friction: vec6, dim: int):
        """The friction that costs least while the normal force ``force[0]`` stays.

        In coordinates ``u_j = f_j / friction_j`` the cost is ``u'Pu / 2 + u'q`` over the ball ``|u| <= force[0]``.
        Where the minimum lies outside, ``u = -(P + s)^-1 q`` on the boundary, and Newton's method finds s.
        """
        radius = force[0]
        moved = vec6()
        moved[0] = radius
        if radius >= real(MINVAL):
            p = mat66()
            q = vec6()
            for j in range(6):
                p[j, j] = real(1.0)
            for j in range(1, 6):
                if j < dim:
                    q[j] = residual[j]
                    for k in range(1, 6):
                        if k < dim:
                            p[j, k] = a[j, k] * friction[j] * friction[k]
                            q[j] = q[j] - a[j, k] * force[k]
                    q[j] = -q[j] * friction[j]
            shift = real(0.0)
            low, good = factor(p, shift)
            u = solve(low, q)
            searching = bool(True)
            count = int(0)
            while count < 20 and searching:
                excess = wp.dot(u, u) - radius * radius
                slope = real(-2.0) * wp.dot(u, solve(low, u))
                if not good or excess < real(1e-10) or slope == real(0.0):
                    searching = False
                else:
                    step = -excess / slope
                    if step < real(1e-10):
                        searching = False
                    else:
                        shift = shift + step
                        low, good = factor(p, shift)
                        u = solve(low, q)
                count = count + 1
            if not good:
                u = vec6()
            if shift > real(0.0):
                u = u * wp.sqrt(radius * radius / wp.max(wp.dot(u, u), real(MINVAL)))
            for j in range(1, 6):
                if j < dim:
                    moved[j] = u[j] * friction[j]
        return moved

    return on_disc
