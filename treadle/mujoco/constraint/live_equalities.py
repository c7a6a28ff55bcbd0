"""Live bonds of equality constraints."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, row, types
from treadle.mujoco.constraint.equality import coupled, drift_of, frames_of, turning
from treadle.mujoco.constraint.jacobian import jacobians
from treadle.mujoco.constraint.kinds import CONNECT, JOINT, NO_EQUALITY, WELD
from treadle.mujoco.constraint.live import NUMBERS, ROWS, living, places
from treadle.mujoco.constraint.rows import writers

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def live_equalities(real: Any) -> SimpleNamespace:
    """The kernel functions ``equalities`` for one precision."""
    t, a, spec, welds = types(real), living(real), writers(real).spec, turning(real)
    vec2, vec3, vec5, quat, mat33, spatial = t.vec2, t.vec3, t.vec5, t.quat, t.mat33, t.spatial
    matrix, cube, vectors = wp.array2d(dtype=real), wp.array3d(dtype=real), wp.array2d(dtype=vec3)
    put, put_row, frames, drift_of_e = a.put, a.put_row, frames_of(real), drift_of(real)
    rotation, at_point, twist, turned = algebra(real).rotation, jacobians(real).at_point, welds.twist, welds.turned
    polynomial = coupled(real).polynomial

    @wp.func(inline=True)
    def motions(
        w: int, place: int, num: int, first: int, on: bool, b1: int, b2: int, offset1: vec3, offset2: vec3,
        weld: bool, torque: real, quat1: quat, quat2: quat, bond_dof: ints, body_isdofancestor: ints2,
        cdof: wp.array2d(dtype=spatial), J: matrix,
    ):  # fmt: skip
        """How the gap between two points, and the twist between two frames, change with each degree of freedom."""
        for m in range(num):
            i = bond_dof[first + m]
            motion = cdof[w, i]
            on1, on2 = real(body_isdofancestor[b1, i]), real(body_isdofancestor[b2, i])
            jp = on1 * at_point(motion, offset1) - on2 * at_point(motion, offset2)
            for s in range(3):
                J[w, place + s * num + m] = wp.where(on, jp[s], real(0.0))
            if weld:
                jr = torque * turned(quat1, quat2, (on1 - on2) * rotation(motion))
                for s in range(3):
                    J[w, place + (3 + s) * num + m] = wp.where(on, jr[s], real(0.0))

    @wp.func(inline=True)
    def coupling(
        w: int, t: int, place: int, num: int, first: int, on: bool, o1: int, o2: int, joints: bool, slope: real,
        bond_dof: ints, jnt_dofadr: ints, ten_J_rownnz: ints, ten_J_rowadr: ints, ten_J_colind: ints, ten_J: matrix,
        J: matrix,
    ):  # fmt: skip
        """The Jacobian of a joint or tendon, less ``slope`` times that of another; gives whether it is not zero."""
        moves = False
        for m in range(num):
            i = bond_dof[first + m]
            y = real(0.0)
            if joints:
                if jnt_dofadr[o1] == i:
                    y = real(1.0)
                if o2 >= 0 and jnt_dofadr[wp.max(o2, 0)] == i:
                    y = -slope
            else:
                for e in range(ten_J_rowadr[o1], ten_J_rowadr[o1] + ten_J_rownnz[o1]):
                    if ten_J_colind[e] == i:
                        y = y + ten_J[w, e]
                if o2 >= 0:
                    for e in range(ten_J_rowadr[o2], ten_J_rowadr[o2] + ten_J_rownnz[o2]):
                        if ten_J_colind[e] == i:
                            y = y - slope * ten_J[w, e]
            J[w, place + m] = wp.where(on, y, real(0.0))
            moves = moves or y != real(0.0)
        return moves

    @wp.func(inline=True)
    def equalities(
        w: int, at: places, flags: int, timestep: real, bond_first: ints, bond_id: ints, bond_dim: ints, bond_num: ints,
        bond_adr: ints, bond_dof: ints, eq_type: ints, eq_obj1id: ints, eq_obj2id: ints, eq_objtype: ints,
        eq_solref: wp.array2d(dtype=vec2), eq_solimp: wp.array2d(dtype=vec5), eq_data: cube, body_rootid: ints,
        body_invweight0: wp.array2d(dtype=vec2), body_isdofancestor: ints2, jnt_type: ints, jnt_dofadr: ints,
        jnt_qposadr: ints, dof_jntid: ints, dof_bodyid: ints, dof_invweight0: matrix, site_bodyid: ints,
        site_quat: wp.array2d(dtype=quat), ten_J_rownnz: ints, ten_J_rowadr: ints, ten_J_colind: ints,
        tendon_length0: matrix, tendon_invweight0: matrix, qpos0: matrix, qpos: matrix, qvel: matrix,
        eq_active: ints2, xpos: vectors, xquat: wp.array2d(dtype=quat), xmat: wp.array2d(dtype=mat33),
        site_xpos: vectors, subtree_com: vectors, cdof: wp.array2d(dtype=spatial),
        cdof_dot: wp.array2d(dtype=spatial), cvel: wp.array2d(dtype=spatial), ten_length: matrix, ten_J: matrix,
        live: Any, state: ints2, J: matrix, C: matrix, row_D: matrix, row_mu: matrix, row_damp: matrix,
        row_b: matrix,
    ):  # fmt: skip
        zero = real(0.0)
        if (flags & NO_EQUALITY) == 0:
            for t in range(bond_first[0], bond_first[1]):
                e, dim, num, first = bond_id[t], bond_dim[t], bond_num[t], bond_adr[t]
                on = eq_active[w, e] != 0
                if wp.any_lane(on):
                    r, o1, o2 = row(w, eq_data), eq_obj1id[e], eq_obj2id[e]
                    solref, solimp = eq_solref[row(w, eq_solref), e], eq_solimp[row(w, eq_solimp), e]
                    if eq_type[e] == CONNECT or eq_type[e] == WELD:
                        weld, torque = eq_type[e] == WELD, eq_data[r, e, 10]
                        b1, b2, p1, p2, quat1, quat2 = frames(
                            w, e, weld, eq_obj1id, eq_obj2id, eq_objtype, eq_data, site_bodyid, site_quat, xpos,
                            xquat, xmat, site_xpos,
                        )  # fmt: skip
                        offset1 = p1 - subtree_com[w, body_rootid[b1]]
                        offset2 = p2 - subtree_com[w, body_rootid[b2]]
                        motions(
                            w, at[NUMBERS], num, first, on, b1, b2, offset1, offset2, weld, torque, quat1, quat2,
                            bond_dof, body_isdofancestor, cdof, J,
                        )  # fmt: skip
                        drift, turn_drift = drift_of_e(
                            w, e, num, first, b1, b2, offset1, offset2, weld, torque, quat1, quat2, bond_dof,
                            body_isdofancestor, jnt_type, jnt_dofadr, dof_jntid, dof_bodyid, cdof, cdof_dot, cvel,
                            qvel,
                        )  # fmt: skip
                        weights = row(w, body_invweight0)
                        weight = body_invweight0[weights, b1] + body_invweight0[weights, b2]
                        gap, turn = p1 - p2, vec3(zero, zero, zero)
                        if weld:
                            turn = torque * twist(quat1, quat2)
                        norm = wp.sqrt(wp.dot(gap, gap) + wp.dot(turn, turn))
                        for s in range(6):
                            if s < dim:
                                pos, heavy, shift = gap[s % 3], weight[0], drift[s % 3]
                                if s > 2:
                                    pos, heavy, shift = turn[s % 3], weight[1], turn_drift[s % 3]
                                known = spec(pos, norm, zero, heavy, zero, zero, solref, solimp)
                                put_row(
                                    w, at[ROWS] + s, on, known, True, timestep, flags, row_D, row_mu, row_damp,
                                    row_b,
                                )  # fmt: skip
                                row_b[w, at[ROWS] + s] = row_b[w, at[ROWS] + s] + wp.where(on, shift, zero)
                    else:
                        other, pos, weight1 = zero, zero, zero
                        if eq_type[e] == JOINT:
                            pos = qpos[w, jnt_qposadr[o1]] - qpos0[row(w, qpos0), jnt_qposadr[o1]]
                            weight1 = dof_invweight0[row(w, dof_invweight0), jnt_dofadr[o1]]
                            if o2 >= 0:
                                other = qpos[w, jnt_qposadr[o2]] - qpos0[row(w, qpos0), jnt_qposadr[o2]]
                                weight1 = weight1 + dof_invweight0[row(w, dof_invweight0), jnt_dofadr[o2]]
                        else:
                            pos = ten_length[w, o1] - tendon_length0[row(w, tendon_length0), o1]
                            weight1 = tendon_invweight0[row(w, tendon_invweight0), o1]
                            if o2 >= 0:
                                other = ten_length[w, o2] - tendon_length0[row(w, tendon_length0), o2]
                                weight1 = weight1 + tendon_invweight0[row(w, tendon_invweight0), o2]
                        value, slope = polynomial(r, e, eq_data, other)
                        moves = coupling(
                            w, t, at[NUMBERS], num, first, on, o1, o2, eq_type[e] == JOINT, slope, bond_dof,
                            jnt_dofadr, ten_J_rownnz, ten_J_rowadr, ten_J_colind, ten_J, J,
                        )  # fmt: skip
                        known = spec(pos - value, pos - value, zero, weight1, zero, zero, solref, solimp)
                        put_row(
                            w, at[ROWS], on and moves, known, True, timestep, flags, row_D, row_mu, row_damp, row_b
                        )  # fmt: skip
                    at = put(w, t, at, dim, num, live, state, C)
        return at

    return SimpleNamespace(equalities=equalities)
