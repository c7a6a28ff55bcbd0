"""Forces of live bonds, where a method of the dual problem sets out, and as rows in MuJoCo's order in the end."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import index
from treadle.mujoco.constraint.kinds import CONE, FRICTIONLESS, LINEARNEG, LINEARPOS, QUADRATIC, SATISFIED
from treadle.mujoco.constraint.live import entry
from treadle.mujoco.solver.cost import costs

ints2 = wp.array2d(dtype=int)


@cache
def forces(real: Any) -> SimpleNamespace:
    """The kernel functions ``split``, ``join``, ``softness``, ``hand_out`` for one precision."""
    matrix, bounds = wp.array2d(dtype=real), costs(real).bounds

    @wp.func(inline=True)
    def split(w: int, bonds: Any, soft: Any, jar: matrix, up: matrix, down: matrix):
        """Forces on the edges of pyramids at ``jar``."""
        live, listed, bond_kind, bond_dim, parts = bonds
        D, mu = soft
        r = int(0)
        for i in range(live):
            t = entry(w, i, listed[0])
            dim = index(bond_dim[t])
            if bond_kind[t] == FRICTIONLESS:
                for s in range(1, dim):
                    y = mu[w, r + s] * jar[w, r + s]
                    up[w, r + s] = -D[w, r] * wp.min(jar[w, r] + y, real(0.0))
                    down[w, r + s] = -D[w, r] * wp.min(jar[w, r] - y, real(0.0))
            r = r + dim

    @wp.func(inline=True)
    def join(w: int, bonds: Any, mu: matrix, up: matrix, down: matrix, force: matrix):
        """What those forces are by basis rows."""
        live, listed, bond_kind, bond_dim, parts = bonds
        r = int(0)
        for i in range(live):
            t = entry(w, i, listed[0])
            dim = index(bond_dim[t])
            if bond_kind[t] == FRICTIONLESS and dim > 1:
                normal = real(0.0)
                for s in range(1, dim):
                    normal = normal + (up[w, r + s] + down[w, r + s])
                    force[w, r + s] = mu[w, r + s] * (up[w, r + s] - down[w, r + s])
                force[w, r] = normal
            r = r + dim

    @wp.func(inline=True)
    def softness(w: int, bonds: Any, elliptic: bool, D: matrix, up: matrix, down: matrix, force: matrix):
        """``f'Rf / 2``."""
        live, listed, bond_kind, bond_dim, parts = bonds
        r, cost = int(0), real(0.0)
        for i in range(live):
            t = entry(w, i, listed[0])
            dim = index(bond_dim[t])
            edges = bond_kind[t] == FRICTIONLESS and dim > 1 and not elliptic
            if D[w, r] > real(0.0):
                if edges:
                    for s in range(1, dim):
                        cost = cost + (up[w, r + s] * up[w, r + s] + down[w, r + s] * down[w, r + s]) / D[w, r]
                else:
                    for s in range(dim):
                        cost = cost + force[w, r + s] * force[w, r + s] / D[w, r + s]
            r = r + dim
        return real(0.5) * cost

    @wp.func(inline=True)
    def put(w: int, n: int, force: real, state: int, efc_force: matrix, efc_state: ints2):
        """Write a row where there is room."""
        if n < efc_force.shape[1]:
            efc_force[w, n] = force
            efc_state[w, n] = state

    @wp.func(inline=True)
    def state_of(force: real, low: real, high: real):
        """The state of a row with a force between two bounds."""
        state = QUADRATIC
        if force <= low:
            state = SATISFIED
            if low < real(0.0):
                state = LINEARPOS
        elif force >= high:
            state = LINEARNEG
        return state

    @wp.func(inline=True)
    def hand_out(
        w: int, bonds: Any, elliptic: bool, soft: Any, up: matrix, down: matrix, force: matrix, efc_force: matrix,
        efc_state: ints2,
    ):  # fmt: skip
        """Forces by rows of each world, and states as forces show them: at a bound or between; of elliptic contacts,
        on the cone's surface or inside."""
        live, listed, bond_kind, bond_dim, parts = bonds
        D, mu = soft
        r, n = int(0), int(0)
        for i in range(live):
            t = entry(w, i, listed[0])
            kind, dim = bond_kind[t], index(bond_dim[t])
            if D[w, r] > real(0.0):
                if kind != FRICTIONLESS or dim == 1:
                    low, high = bounds(kind, mu[w, r])
                    for s in range(dim):
                        put(w, n, force[w, r + s], state_of(force[w, r + s], low, high), efc_force, efc_state)
                        n = n + 1
                elif elliptic:
                    square, state = real(0.0), SATISFIED
                    for s in range(1, dim):
                        part = force[w, r + s] / mu[w, r + s]
                        square = square + part * part
                    if force[w, r] > real(0.0):
                        state = QUADRATIC
                        if square > real(1.0 - 1e-6) * force[w, r] * force[w, r]:
                            state = CONE
                    for s in range(dim):
                        put(w, n, force[w, r + s], state, efc_force, efc_state)
                        n = n + 1
                else:
                    low, high = bounds(kind, real(0.0))
                    for s in range(1, dim):
                        put(w, n, up[w, r + s], state_of(up[w, r + s], low, high), efc_force, efc_state)
                        put(w, n + 1, down[w, r + s], state_of(down[w, r + s], low, high), efc_force, efc_state)
                        n = n + 2
            r = r + dim

    return SimpleNamespace(split=split, join=join, softness=softness, hand_out=hand_out)
