"""Live bonds: those that some world of a gang has, one after the other, with their rows and numbers beside them.

Every loop over them is the same for all lanes: bond, degrees of freedom and places in memory are plain numbers. A lane
without the bond has zeros there (`row_D`, Jacobian), which add nothing, so results do not depend on who shares a gang.

Lists say of each live bond its number in the table and where its rows, Jacobian and weights begin. While worlds of a
gang go on that others have finished, bonds of the latter alone are taken off the lists (`narrowing`).

Places are counted in a `places` vector: bonds that lie there, basis rows, numbers of Jacobians, weights. There is room
for what all lanes of a gang can have (`bonds.Room`).
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import index, types
from treadle.mujoco.constants import MINVAL
from treadle.mujoco.constraint.impedance import softness
from treadle.mujoco.constraint.kinds import NO_REFSAFE
from treadle.mujoco.constraint.rows import DIAG, FRICTION, MARGIN, POS

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)
places = wp.types.vector(length=4, dtype=int)
LIVE, ROWS, NUMBERS, WEIGHTS = (wp.constant(k) for k in range(4))


@wp.func(inline=True)
def entry(w: int, i: int, of: ints2):
    """What one of the gang's lists has in place i."""
    return index(wp.same_lane(of[w, i]))


@cache
def narrowing(real: Any) -> wp.Function:
    """The kernel function ``narrow`` for one precision."""
    matrix = wp.array2d(dtype=real)

    @wp.func(inline=True)
    def narrow(w: int, on: bool, bonds: Any, D: matrix):
        """Leave in the gang's lists only bonds that a lane has which is ``on``; gives how many, and the ends of parts.

        Rows, numbers and weights stay where they are.
        """
        live, listed, bond_kind, bond_dim, parts = bonds
        bond, row, number, weight = listed
        left, equal, sliding, limited = int(0), int(0), int(0), int(0)
        for i in range(live):
            r = entry(w, i, row)
            if wp.any_lane(on and D[w, r] > real(0.0)):
                t, j, c = entry(w, i, bond), entry(w, i, number), entry(w, i, weight)
                bond[w, left] = t
                row[w, left] = r
                number[w, left] = j
                weight[w, left] = c
                left = left + 1
                equal = equal + wp.where(i < parts[0], 1, 0)
                sliding = sliding + wp.where(i < parts[1], 1, 0)
                limited = limited + wp.where(i < parts[2], 1, 0)
        return left, equal, sliding, limited

    return narrow


@cache
def living(real: Any) -> SimpleNamespace:
    """Kernel functions for one precision: ``put``, ``soften``, ``finish``."""
    matrix, numbers = wp.array2d(dtype=real), types(real).spec
    impedance, stiffness = softness(real)

    @wp.func(inline=True)
    def put(w: int, t: int, at: places, dim: int, num: int, live: Any, state: ints2, C: matrix):
        """Note a bond at its place, without weights and state so far; gives the place behind it."""
        bond, row, number, weight = live
        bond[w, at[LIVE]] = t
        row[w, at[LIVE]] = at[ROWS]
        number[w, at[LIVE]] = at[NUMBERS]
        weight[w, at[LIVE]] = at[WEIGHTS]
        state[w, at[ROWS]] = -1
        for e in range(at[WEIGHTS], at[WEIGHTS] + dim * (dim + 1) // 2):
            C[w, e] = real(0.0)
        at[LIVE] = at[LIVE] + 1
        at[ROWS] = at[ROWS] + dim
        at[NUMBERS] = at[NUMBERS] + dim * num
        at[WEIGHTS] = at[WEIGHTS] + dim * (dim + 1) // 2
        return at

    @wp.func(inline=True)
    def soften(known: numbers, stiff: bool, timestep: real, flags: int):
        """Of a row: regularisation R, damping, and the force of its spring by unit mass."""
        imp, rest, slope = impedance(known)
        k, b = stiffness(known, timestep, (flags & NO_REFSAFE) == 0)
        pull = wp.where(stiff, k * imp * (known[POS] - known[MARGIN]), real(0.0))
        return wp.max(real(MINVAL), rest * known[DIAG] / imp), b, pull

    @wp.func(inline=True)
    def put_row(
        w: int, r: int, on: bool, known: numbers, stiff: bool, timestep: real, flags: int, row_D: matrix,
        row_mu: matrix, row_damp: matrix, row_b: matrix,
    ):  # fmt: skip
        """Write a row that stands alone; ``row_mu`` is the bound of dry friction, from the place of the coefficient."""
        r0, b, pull = soften(known, stiff, timestep, flags)
        row_D[w, r] = wp.where(on, real(1.0) / r0, real(0.0))
        row_mu[w, r] = wp.where(on, known[FRICTION], real(0.0))
        row_damp[w, r] = wp.where(on, b, real(0.0))
        row_b[w, r] = wp.where(on, pull, real(0.0))

    @wp.func(inline=True)
    def finish(
        w: int, live: int, bonds: Any, bond_dim: ints, bond_num: ints, bond_adr: ints, bond_dof: ints,
        J: matrix, qvel: matrix, qacc_smooth: matrix, row_D: matrix, row_damp: matrix, row_b: matrix,
    ):  # fmt: skip
        """``row_b = J qacc_smooth - aref``, from what pulls (already there) and the damping of each row."""
        r, j = int(0), int(0)
        for i in range(live):
            t = entry(w, i, bonds[0])
            dim, num, adr = index(bond_dim[t]), index(bond_num[t]), index(bond_adr[t])
            for s in range(dim):
                vel, acc = real(0.0), real(0.0)
                for m in range(num):
                    y, k = J[w, j + s * num + m], index(bond_dof[adr + m])
                    vel = vel + y * qvel[w, k]
                    acc = acc + y * qacc_smooth[w, k]
                b = row_b[w, r + s] + acc + row_damp[w, r + s] * vel
                row_b[w, r + s] = wp.where(row_D[w, r + s] > real(0.0), b, real(0.0))
            r = r + dim
            j = j + dim * num

    return SimpleNamespace(put=put, soften=soften, put_row=put_row, finish=finish)
