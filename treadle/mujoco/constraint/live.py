"""Live bonds: those that some world of a gang has, one after the other, with their rows and numbers beside them.

Every loop over them is the same for all lanes: bond, degrees of freedom and places in memory are plain numbers. A lane
without the bond has zeros there (`row_D`, Jacobian), which add nothing, so results do not depend on who shares a gang.

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


@cache
def living(real: Any) -> SimpleNamespace:
    """Kernel functions for one precision: ``put``, ``soften``, ``finish``."""
    matrix, numbers = wp.array2d(dtype=real), types(real).spec
    impedance, stiffness = softness(real)

    @wp.func(inline=True)
    def put(w: int, t: int, at: places, dim: int, num: int, live: ints2, state: ints2, C: matrix):
        """Note a bond at its place, without weights and state so far; gives the place behind it."""
        live[w, at[LIVE]] = t
        state[w, at[LIVE]] = -1
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
        w: int, live: int, bonds: ints2, bond_dim: ints, bond_num: ints, bond_adr: ints, bond_dof: ints,
        J: matrix, qvel: matrix, qacc_smooth: matrix, row_D: matrix, row_damp: matrix, row_b: matrix,
    ):  # fmt: skip
        """``row_b = J qacc_smooth - aref``, from what pulls (already there) and the damping of each row."""
        r, j = int(0), int(0)
        for i in range(live):
            t = index(wp.same_lane(bonds[w, i]))
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
