"""Stages that depend on positions alone: kinematics, com_pos, crb, factor_m.

One thread is one world; the loops over bodies and joints run over the model's tables and are the same in every world. A
kernel's parameters are named after the fields of `Model` and `Data` that they are, which is how a launch finds them.
"""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, index, row, types
from treadle.mujoco.composite import composite
from treadle.mujoco.constants import BALL, FREE, MINVAL, SINGULAR, SLIDE
from treadle.mujoco.drivetrain import drivetrain
from treadle.mujoco.factor import factorisation

ints = wp.array(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_kinematics(real), **_inertia(real), **_mass(real)}


def _kinematics(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    vec3, quat, mat33 = t.vec3, t.quat, t.mat33
    mul_quat, turn_quat, unit_quat, quat_to_mat = a.mul_quat, a.turn_quat, a.unit_quat, a.quat_to_mat

    @wp.kernel(gang_vectors=2)
    def kinematics(
        body_parentid: ints, body_mocapid: ints, body_jntadr: ints, body_jntnum: ints,
        jnt_type: ints, jnt_qposadr: ints,
        body_pos: wp.array2d(dtype=vec3), body_quat: wp.array2d(dtype=quat),
        body_ipos: wp.array2d(dtype=vec3), body_iquat: wp.array2d(dtype=quat),
        jnt_pos: wp.array2d(dtype=vec3), jnt_axis: wp.array2d(dtype=vec3), qpos0: wp.array2d(dtype=real),
        qpos: wp.array2d(dtype=real), mocap_pos: wp.array2d(dtype=vec3), mocap_quat: wp.array2d(dtype=quat),
        xpos: wp.array2d(dtype=vec3), xquat: wp.array2d(dtype=quat), xmat: wp.array2d(dtype=mat33),
        xipos: wp.array2d(dtype=vec3), ximat: wp.array2d(dtype=mat33),
        xanchor: wp.array2d(dtype=vec3), xaxis: wp.array2d(dtype=vec3),
    ):  # fmt: skip
        """Place every body: from its parent's frame, through its joints."""
        w = wp.tid()
        zero, one = real(0.0), real(1.0)
        xpos[w, 0] = vec3(zero, zero, zero)
        xquat[w, 0] = quat(one, zero, zero, zero)
        xmat[w, 0] = mat33(one, zero, zero, zero, one, zero, zero, zero, one)
        xipos[w, 0] = vec3(zero, zero, zero)
        ximat[w, 0] = mat33(one, zero, zero, zero, one, zero, zero, zero, one)
        for b in range(1, body_parentid.shape[0]):
            p = index(body_parentid[b])
            pos = body_pos[row(w, body_pos), b]
            turn = body_quat[row(w, body_quat), b]
            if body_mocapid[b] >= 0:
                pos = mocap_pos[w, body_mocapid[b]]
                turn = unit_quat(mocap_quat[w, body_mocapid[b]])
            pos = xpos[w, p] + xmat[w, p] * pos
            turn = mul_quat(xquat[w, p], turn)
            arm = vec3(zero, zero, zero)
            anchor = pos  # of the last joint so far: it stays where it is while the body turns, pos = anchor - R arm
            first = index(body_jntadr[b])
            for j in range(first, first + body_jntnum[b]):
                q = index(jnt_qposadr[j])
                if jnt_type[j] == FREE:
                    pos = vec3(qpos[w, q], qpos[w, q + 1], qpos[w, q + 2])
                    turn = unit_quat(quat(qpos[w, q + 3], qpos[w, q + 4], qpos[w, q + 5], qpos[w, q + 6]))
                    xanchor[w, j] = pos
                    xaxis[w, j] = jnt_axis[row(w, jnt_axis), j]
                    arm = vec3(zero, zero, zero)
                    anchor = pos
                else:
                    mat = quat_to_mat(turn)
                    local = jnt_axis[row(w, jnt_axis), j]
                    axis = mat * local
                    anchor = anchor + mat * (jnt_pos[row(w, jnt_pos), j] - arm)
                    arm = jnt_pos[row(w, jnt_pos), j]
                    xanchor[w, j] = anchor
                    xaxis[w, j] = axis
                    if jnt_type[j] == SLIDE:
                        anchor = anchor + axis * (qpos[w, q] - qpos0[row(w, qpos0), q])
                    elif jnt_type[j] == BALL:
                        own = quat(qpos[w, q], qpos[w, q + 1], qpos[w, q + 2], qpos[w, q + 3])
                        turn = mul_quat(turn, unit_quat(own))
                    else:
                        turn = mul_quat(turn, turn_quat(local, qpos[w, q] - qpos0[row(w, qpos0), q]))
            turn = unit_quat(turn)
            mat = quat_to_mat(turn)
            pos = anchor - mat * arm
            xpos[w, b] = pos
            xquat[w, b] = turn
            xmat[w, b] = mat
            xipos[w, b] = pos + mat * body_ipos[row(w, body_ipos), b]
            ximat[w, b] = quat_to_mat(mul_quat(turn, body_iquat[row(w, body_iquat), b]))

    return dict(kinematics=kinematics)


def _inertia(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    vec3, mat33, spatial, inertia = t.vec3, t.mat33, t.spatial, t.inertia
    pair, column, place_inertia = a.pair, a.column, a.place_inertia

    @wp.kernel(gang_vectors=2)
    def com_pos(
        body_parentid: ints, body_rootid: ints, body_jntadr: ints, body_jntnum: ints, jnt_type: ints, jnt_dofadr: ints,
        body_mass: wp.array2d(dtype=real), body_subtreemass: wp.array2d(dtype=real),
        body_inertia: wp.array2d(dtype=vec3),
        xmat: wp.array2d(dtype=mat33), xipos: wp.array2d(dtype=vec3), ximat: wp.array2d(dtype=mat33),
        xanchor: wp.array2d(dtype=vec3), xaxis: wp.array2d(dtype=vec3),
        subtree_com: wp.array2d(dtype=vec3), cinert: wp.array2d(dtype=inertia), cdof: wp.array2d(dtype=spatial),
    ):  # fmt: skip
        """Centres of mass of subtrees; inertias and joint axes about the centre of mass of the whole tree."""
        w = wp.tid()
        zero, one = real(0.0), real(1.0)
        nbody = body_parentid.shape[0]
        for b in range(nbody):
            subtree_com[w, b] = xipos[w, b] * body_mass[row(w, body_mass), b]
        for i in range(nbody - 1):
            b = index(nbody - 1 - i)
            p = index(body_parentid[b])
            subtree_com[w, p] = subtree_com[w, p] + subtree_com[w, b]
        for b in range(nbody):
            mass = body_subtreemass[row(w, body_subtreemass), b]
            if mass < real(MINVAL):
                subtree_com[w, b] = xipos[w, b]
            else:
                subtree_com[w, b] = subtree_com[w, b] / mass
        cinert[w, 0] = inertia(zero, zero, zero, zero, zero, zero, zero, zero, zero, zero)
        for b in range(1, nbody):
            com = subtree_com[w, index(body_rootid[b])]
            moments = body_inertia[row(w, body_inertia), b]
            cinert[w, b] = place_inertia(moments, ximat[w, b], xipos[w, b] - com, body_mass[row(w, body_mass), b])
            first = index(body_jntadr[b])
            for j in range(first, first + body_jntnum[b]):
                i = index(jnt_dofadr[j])
                none = vec3(zero, zero, zero)
                arm = com - xanchor[w, j]
                if jnt_type[j] == FREE:
                    cdof[w, i] = pair(none, vec3(one, zero, zero))
                    cdof[w, i + 1] = pair(none, vec3(zero, one, zero))
                    cdof[w, i + 2] = pair(none, vec3(zero, zero, one))
                    i = i + 3
                if jnt_type[j] == FREE or jnt_type[j] == BALL:
                    for k in range(3):
                        axis = column(xmat[w, b], k)
                        cdof[w, i + k] = pair(axis, wp.cross(axis, arm))
                elif jnt_type[j] == SLIDE:
                    cdof[w, i] = pair(none, xaxis[w, j])
                else:
                    cdof[w, i] = pair(xaxis[w, j], wp.cross(xaxis[w, j], arm))

    return dict(com_pos=com_pos)


def _mass(real: Any) -> dict[str, wp.Kernel]:
    t, bodies = types(real), composite(real)
    vec3, mat33, spatial, inertia = t.vec3, t.mat33, t.spatial, t.inertia
    gather, fill = bodies.gather, bodies.fill
    factor = factorisation(real).factor
    added = drivetrain(real).added

    @wp.kernel(gang_vectors=2)
    def crb(
        body_parentid: ints, dof_bodyid: ints, dof_jntid: ints, jnt_type: ints, jnt_dofadr: ints,
        jnt_actuatorid: ints, actuator_trntype: ints, actuator_trnid: wp.array2d(dtype=int), actuator_outadr: ints,
        actuator_armature: wp.array2d(dtype=real), actuator_gear: wp.array2d(dtype=spatial),
        M_rowadr: ints, M_rownnz: ints, M_colind: ints, dof_armature: wp.array2d(dtype=real),
        body_mass: wp.array2d(dtype=real), body_inertia: wp.array2d(dtype=vec3),
        ximat: wp.array2d(dtype=mat33), xipos: wp.array2d(dtype=vec3), xanchor: wp.array2d(dtype=vec3),
        cinert: wp.array2d(dtype=inertia), cdof: wp.array2d(dtype=spatial), own_inertia: wp.array2d(dtype=inertia),
        crb: wp.array2d(dtype=inertia), M: wp.array2d(dtype=real),
    ):  # fmt: skip
        """The mass matrix by composite rigid bodies (Featherstone, table 6.2): of a row its ancestors' columns.

        ``crb`` is for those who ask: M comes from the same inertias about nearer points (`composite`).
        """
        w = wp.tid()
        nbody = body_parentid.shape[0]
        for b in range(nbody):
            crb[w, b] = cinert[w, b]
        for i in range(nbody - 1):
            b = index(nbody - 1 - i)
            p = index(body_parentid[b])
            if p > 0:
                crb[w, p] = crb[w, p] + crb[w, b]
        gather(w, body_parentid, body_mass, body_inertia, ximat, xipos, own_inertia)
        for i in range(dof_bodyid.shape[0]):
            body = index(dof_bodyid[i])
            start = index(M_rowadr[i])
            last = index(start + M_rownnz[i] - 1)
            fill(w, i, body, start, last, M_colind, dof_jntid, jnt_type, jnt_dofadr, own_inertia, xipos, xanchor, cdof,
                 M)  # fmt: skip
            j = index(dof_jntid[i])
            rotor = added(w, j, jnt_actuatorid[j], False, actuator_trntype, actuator_trnid, actuator_outadr,
                          actuator_armature, actuator_gear)  # fmt: skip
            M[w, last] = M[w, last] + (dof_armature[row(w, dof_armature), i] + rotor)

    @wp.kernel
    def tendon_armature(
        tendon_actuatorid: ints, actuator_trntype: ints, actuator_trnid: wp.array2d(dtype=int), actuator_outadr: ints,
        actuator_armature: wp.array2d(dtype=real), actuator_gear: wp.array2d(dtype=spatial),
        tendon_armature: wp.array2d(dtype=real), ten_J_rownnz: ints, ten_J_rowadr: ints, ten_J_colind: ints,
        M_rowadr: ints, M_rownnz: ints, M_colind: ints, ten_J: wp.array2d(dtype=real), M: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Inertia that goes with the velocities of tendons: ``M += J' armature J``."""
        w = wp.tid()
        for k in range(tendon_actuatorid.shape[0]):
            rotor = added(w, k, tendon_actuatorid[k], True, actuator_trntype, actuator_trnid, actuator_outadr,
                          actuator_armature, actuator_gear)  # fmt: skip
            rotor = rotor + tendon_armature[row(w, tendon_armature), k]
            first = ten_J_rowadr[k]
            if rotor != real(0.0):
                for x in range(first, first + ten_J_rownnz[k]):
                    i = ten_J_colind[x]
                    share = rotor * ten_J[w, x]
                    y = first
                    for e in range(M_rowadr[i], M_rowadr[i] + M_rownnz[i]):  # both rows are in ascending order
                        while y < x and ten_J_colind[y] < M_colind[e]:
                            y = y + 1
                        if ten_J_colind[y] == M_colind[e]:
                            M[w, e] = M[w, e] + share * ten_J[w, y]

    @wp.kernel(gang_vectors=2)
    def factor_m(
        M_rowadr: ints, M_rownnz: ints, M_colind: ints, M: wp.array2d(dtype=real),
        qLD: wp.array2d(dtype=real), qLDiagInv: wp.array2d(dtype=real), warned: wp.array2d(dtype=int),
    ):  # fmt: skip
        """``M = L' D L`` in place of a copy of M; a matrix that is all but singular counts."""
        w = wp.tid()
        for e in range(M_colind.shape[0]):
            qLD[w, e] = M[w, e]
        singular = factor(w, M_rowadr, M_rownnz, M_colind, qLD, qLDiagInv)
        if singular > 0:
            warned[w, SINGULAR] = warned[w, SINGULAR] + 1

    return dict(crb=crb, tendon_armature=tendon_armature, factor_m=factor_m)
