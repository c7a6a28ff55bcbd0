"""Live bonds of dry friction and of limits."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import row, types
from treadle.mujoco.constants import BALL
from treadle.mujoco.constraint.bounds import ball_turn
from treadle.mujoco.constraint.kinds import FRICTION_DOF, LIMIT_JOINT, NO_FRICTIONLOSS, NO_LIMIT
from treadle.mujoco.constraint.live import NUMBERS, ROWS, living, places
from treadle.mujoco.constraint.rows import writers

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def live_bounds(real: Any, tendons: bool) -> SimpleNamespace:
    """The kernel functions ``frictions`` and ``limits`` for one precision; ``tendons``: whether there are any."""
    t, a, spec, turn_of = types(real), living(real), writers(real).spec, ball_turn(real)
    vec2, vec3, vec5, matrix = t.vec2, t.vec3, t.vec5, wp.array2d(dtype=real)
    put, put_row = a.put, a.put_row

    @wp.func(inline=True)
    def of_tendon(
        w: int, j: int, place: int, factor: real, rownnz: ints, rowadr: ints, ten_J: matrix, J: matrix,
    ):  # fmt: skip
        """Write the Jacobian of a tendon, whose columns are the bond's degrees of freedom, times a factor."""
        for e in range(rownnz[j]):
            J[w, place + e] = factor * ten_J[w, rowadr[j] + e]

    @wp.func(inline=True)
    def moves(w: int, j: int, rownnz: ints, rowadr: ints, ten_J: matrix):
        """Whether anything can change a tendon's length."""
        found = False
        for e in range(rowadr[j], rowadr[j] + rownnz[j]):
            found = found or ten_J[w, e] != real(0.0)
        return found

    @wp.func(inline=True)
    def frictions(
        w: int, at: places, flags: int, timestep: real, bond_first: ints, bond_kind: ints, bond_id: ints,
        bond_num: ints, dof_frictionloss: matrix, dof_invweight0: matrix, dof_solref: wp.array2d(dtype=vec2),
        dof_solimp: wp.array2d(dtype=vec5), tendon_frictionloss: matrix, tendon_invweight0: matrix,
        tendon_solref_fri: wp.array2d(dtype=vec2), tendon_solimp_fri: wp.array2d(dtype=vec5), ten_J_rownnz: ints,
        ten_J_rowadr: ints, ten_J: matrix, live: Any, state: ints2, J: matrix, C: matrix, row_D: matrix,
        row_mu: matrix, row_damp: matrix, row_b: matrix,
    ):  # fmt: skip
        zero = real(0.0)
        if (flags & NO_FRICTIONLOSS) == 0:
            for t in range(bond_first[1], bond_first[2]):
                i, num, of_dof = bond_id[t], bond_num[t], not tendons or bond_kind[t] == FRICTION_DOF
                loss = zero
                if of_dof:
                    loss = dof_frictionloss[row(w, dof_frictionloss), i]
                else:
                    loss = tendon_frictionloss[row(w, tendon_frictionloss), i]
                    if loss > zero and not moves(w, i, ten_J_rownnz, ten_J_rowadr, ten_J):
                        loss = zero
                on = loss > zero
                if wp.any_lane(on):
                    known = spec(zero, zero, zero, zero, loss, loss, vec2(), vec5())
                    if of_dof:
                        J[w, at[NUMBERS]] = wp.where(on, real(1.0), zero)
                        solref, solimp = dof_solref[row(w, dof_solref), i], dof_solimp[row(w, dof_solimp), i]
                        weight = dof_invweight0[row(w, dof_invweight0), i]
                        known = spec(zero, zero, zero, weight, loss, loss, solref, solimp)
                    else:
                        factor = wp.where(on, real(1.0), zero)
                        of_tendon(w, i, at[NUMBERS], factor, ten_J_rownnz, ten_J_rowadr, ten_J, J)
                        solref = tendon_solref_fri[row(w, tendon_solref_fri), i]
                        solimp = tendon_solimp_fri[row(w, tendon_solimp_fri), i]
                        weight = tendon_invweight0[row(w, tendon_invweight0), i]
                        known = spec(zero, zero, zero, weight, loss, loss, solref, solimp)
                    put_row(
                        w, at[ROWS], on, known, False, timestep, flags, row_D, row_mu, row_damp, row_b
                    )  # fmt: skip
                    at = put(w, t, at, 1, num, live, state, C)
        return at

    @wp.func(inline=True)
    def limits(
        w: int, at: places, flags: int, timestep: real, bond_first: ints, bond_kind: ints, bond_id: ints,
        bond_part: ints, bond_num: ints, jnt_type: ints, jnt_qposadr: ints, jnt_dofadr: ints,
        jnt_range: wp.array2d(dtype=vec2), jnt_margin: matrix, jnt_solref: wp.array2d(dtype=vec2),
        jnt_solimp: wp.array2d(dtype=vec5), dof_invweight0: matrix, tendon_range: wp.array2d(dtype=vec2),
        tendon_margin: matrix, tendon_solref_lim: wp.array2d(dtype=vec2), tendon_solimp_lim: wp.array2d(dtype=vec5),
        tendon_invweight0: matrix, ten_J_rownnz: ints, ten_J_rowadr: ints, ten_J: matrix, ten_length: matrix,
        qpos: matrix, live: Any, state: ints2, J: matrix, C: matrix, row_D: matrix, row_mu: matrix,
        row_damp: matrix, row_b: matrix,
    ):  # fmt: skip
        zero = real(0.0)
        if (flags & NO_LIMIT) == 0:
            for t in range(bond_first[2], bond_first[3]):
                i, num, side, of_joint = (
                    bond_id[t],
                    bond_num[t],
                    bond_part[t],
                    not tendons or bond_kind[t] == LIMIT_JOINT,
                )
                sign = real(1 - 2 * side)
                dist, margin = zero, zero
                axis = vec3()
                ball = False
                if of_joint:
                    bounds, margin = jnt_range[row(w, jnt_range), i], jnt_margin[row(w, jnt_margin), i]
                    ball = jnt_type[i] == BALL
                    if ball:
                        axis, angle = turn_of(w, jnt_qposadr[i], qpos)
                        dist = wp.max(bounds[0], bounds[1]) - angle
                    else:
                        dist = sign * (qpos[w, jnt_qposadr[i]] - bounds[side])
                else:
                    bounds, margin = tendon_range[row(w, tendon_range), i], tendon_margin[row(w, tendon_margin), i]
                    dist = sign * (ten_length[w, i] - bounds[side])
                    if not moves(w, i, ten_J_rownnz, ten_J_rowadr, ten_J):
                        dist = margin
                on = dist < margin
                if wp.any_lane(on):
                    known = spec(dist, dist, margin, zero, zero, zero, vec2(), vec5())
                    factor = wp.where(on, sign, zero)
                    if of_joint:
                        solref, solimp = jnt_solref[row(w, jnt_solref), i], jnt_solimp[row(w, jnt_solimp), i]
                        weight = dof_invweight0[row(w, dof_invweight0), jnt_dofadr[i]]
                        known = spec(dist, dist, margin, weight, zero, zero, solref, solimp)
                        if ball:
                            for k in range(3):
                                J[w, at[NUMBERS] + k] = wp.where(on, -axis[k], zero)
                        else:
                            J[w, at[NUMBERS]] = factor
                    else:
                        solref = tendon_solref_lim[row(w, tendon_solref_lim), i]
                        solimp = tendon_solimp_lim[row(w, tendon_solimp_lim), i]
                        weight = tendon_invweight0[row(w, tendon_invweight0), i]
                        known = spec(dist, dist, margin, weight, zero, zero, solref, solimp)
                        of_tendon(w, i, at[NUMBERS], factor, ten_J_rownnz, ten_J_rowadr, ten_J, J)
                    put_row(
                        w, at[ROWS], on, known, True, timestep, flags, row_D, row_mu, row_damp, row_b
                    )  # fmt: skip
                    at = put(w, t, at, 1, num, live, state, C)
        return at

    return SimpleNamespace(frictions=frictions, limits=limits)
