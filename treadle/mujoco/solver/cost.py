"""What constraints give at a point, row by row: forces and states.

The solver minimises, over ``x = qacc - qacc_smooth``, the convex function ``x'Mx / 2 + s(Jx + b)``, where
``b = J qacc_smooth - aref`` and s sums up a cost of each constraint (E. Todorov, *Convex and analytically-invertible
dynamics with contacts and constraints*, ICRA 2014; MuJoCo documentation, Computation, Reduced primal problem). Its
negative gradient by ``jar = Jx + b`` are the forces of constraints.

Rows outside elliptic cones have a force ``-D jar`` between two bounds: none of an equality, dry friction's loss to
either side, zero and infinity of a limit, a frictionless contact or an edge of a pyramid.

An elliptic contact with friction coefficients f_j looks at ``N = mu jar_0`` and ``U_j = f_j jar_j``, ``T = |U|``.
Above the cone, ``N >= mu T``, there is no force; below its polar, ``mu N + T <= 0``, all its rows are like equalities;
between them the cost is ``Dm (N - mu T)^2 / 2``, where ``Dm = D_0 / (mu^2 (1 + mu^2))``.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.constraint.kinds import (
    CONE,
    ELLIPTIC,
    EQUALITY,
    FRICTION_DOF,
    FRICTION_TENDON,
    LINEARNEG,
    LINEARPOS,
    QUADRATIC,
    SATISFIED,
)

ints2 = wp.array2d(dtype=int)
INFINITE = wp.constant(1e30)  # a bound that no force reaches
TOP, MIDDLE, BOTTOM = wp.constant(0), wp.constant(1), wp.constant(2)
MIX = wp.constant(-1640531535)  # odd, and far greater than any piece's number, of which there are 1,024


@cache
def costs(real: Any) -> SimpleNamespace:
    """The kernel functions ``bounds``, ``zone``, ``dry``, ``pushing``, ``noted`` and ``evaluate`` for one precision."""
    matrix = wp.array2d(dtype=real)

    @wp.func
    def bounds(kind: int, loss: real):
        """Least and greatest force of a row outside elliptic cones."""
        low, high = real(0.0), real(INFINITE)
        if kind == EQUALITY:
            low = -high
        elif kind == FRICTION_DOF or kind == FRICTION_TENDON:
            low, high = -loss, loss
        return low, high

    @wp.func
    def zone(n: real, t: real, mu: real):
        """In which of its zones an elliptic contact is."""
        found = MIDDLE
        if n >= mu * t:
            found = TOP
        elif mu * n + t <= real(0.0):
            found = BOTTOM
        return found

    @wp.func(inline=True)
    def dry(d: real, x: real, bound: real):
        """Dry friction: force and piece of the cost, 1 where it sticks, 2 and 3 where it slides."""
        f = -d * x
        beyond = wp.abs(f) >= bound and d > real(0.0)
        piece = wp.where(beyond, wp.where(f > real(0.0), 3, 2), 1)
        return wp.where(beyond, wp.where(f > real(0.0), bound, -bound), f), piece

    @wp.func(inline=True)
    def pushing(d: real, x: real):
        """A limit, or a contact without friction: force and piece, 2 where there is none."""
        off = x >= real(0.0)
        return wp.where(off, real(0.0), -d * x), wp.where(off, 2, 1)

    @wp.func(inline=True)
    def noted(pieces: int, d: real, piece: int):
        """The number that tells in which pieces bonds are, after one more, unless a lane does not have it (d = 0)."""
        return wp.where(d > real(0.0), pieces * MIX + piece, pieces)

    @wp.func
    def evaluate(
        w: int, n: int, efc_type: ints2, efc_dim: ints2, efc_D: matrix, efc_frictionloss: matrix, efc_friction: matrix,
        jar: matrix, efc_force: matrix, efc_state: ints2,
    ):  # fmt: skip
        """Forces and states of rows at ``jar``; the cost."""
        cost = real(0.0)
        where, pull = TOP, real(0.0)  # of the elliptic contact that the row belongs to
        i = int(0)
        while wp.any_lane(i < n):
            kind, dim, x, d = efc_type[w, i], efc_dim[w, i], jar[w, i], efc_D[w, i]
            low, high = bounds(kind, efc_frictionloss[w, i])
            force = -d * x
            state = QUADRATIC
            value = real(0.5) * d * x * x
            if force <= low:
                force, state = low, SATISFIED
                value = real(0.0)
                if low < real(0.0):
                    state = LINEARPOS
                    value = -low * (x + real(0.5) * low / d)
            elif force >= high:
                force, state = high, LINEARNEG
                value = -high * (x + real(0.5) * high / d)
            elliptic = kind == ELLIPTIC and i < n
            if wp.any_lane(elliptic):
                if elliptic:
                    f = efc_friction[w, i]
                    if dim > 0:
                        square = real(0.0)
                        for j in range(1, 6):
                            if j < dim:
                                u = efc_friction[w, i + j] * jar[w, i + j]
                                square = square + u * u
                        t = wp.sqrt(square)
                        normal = f * x
                        where = zone(normal, t, f)
                        if where == MIDDLE:
                            dm = d / (f * f * (real(1.0) + f * f))
                            gap = normal - f * t
                            value = real(0.5) * dm * gap * gap
                            force = -dm * gap * f
                            pull = force / t
                    elif where == MIDDLE:
                        u = f * x
                        value = real(0.0)
                        force = -pull * u * f
                    if where == TOP:
                        force, value, state = real(0.0), real(0.0), SATISFIED
                    elif where == MIDDLE:
                        state = CONE
                    else:
                        force, state, value = -d * x, QUADRATIC, real(0.5) * d * x * x
            if i < n:
                cost = cost + value
                efc_force[w, i] = force
                efc_state[w, i] = state
            i = i + 1
        return cost

    return SimpleNamespace(bounds=bounds, zone=zone, dry=dry, pushing=pushing, noted=noted, evaluate=evaluate)
