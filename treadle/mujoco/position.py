"""Stages that depend on positions alone: kinematics, com_pos, crb, factor_m, transmission.

One thread is one world; the loops over bodies and joints run over the model's tables and are the same in every world. A
kernel's parameters are named after the fields of `Model` and `Data` that they are, which is how a launch finds them.
"""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, types
from treadle.mujoco.constants import MINVAL, SLIDE
from treadle.mujoco.factor import factorisation

ints = wp.array(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_kinematics(real), **_inertia(real), **_transmission(real)}


def _kinematics(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    vec3, quat, mat33 = t.vec3, t.quat, t.mat33
    mul_quat, turn_quat, unit_quat, quat_to_mat = a.mul_quat, a.turn_quat, a.unit_quat, a.quat_to_mat

    @wp.kernel
    def kinematics(
        body_parentid: ints, body_jntadr: ints, body_jntnum: ints, jnt_type: ints, jnt_qposadr: ints,
        body_pos: wp.array2d(dtype=vec3), body_quat: wp.array2d(dtype=quat),
        body_ipos: wp.array2d(dtype=vec3), body_iquat: wp.array2d(dtype=quat),
        jnt_pos: wp.array2d(dtype=vec3), jnt_axis: wp.array2d(dtype=vec3), qpos0: wp.array2d(dtype=real),
        qpos: wp.array2d(dtype=real),
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
            p = body_parentid[b]
            pos = xpos[w, p] + xmat[w, p] * body_pos[0, b]
            turn = mul_quat(xquat[w, p], body_quat[0, b])
            for j in range(body_jntadr[b], body_jntadr[b] + body_jntnum[b]):
                before = quat_to_mat(turn)
                anchor = pos + before * jnt_pos[0, j]
                axis = before * jnt_axis[0, j]
                move = qpos[w, jnt_qposadr[j]] - qpos0[0, jnt_qposadr[j]]
                if jnt_type[j] == SLIDE:
                    pos = pos + axis * move
                else:
                    turn = mul_quat(turn, turn_quat(jnt_axis[0, j], move))
                    pos = anchor - quat_to_mat(turn) * jnt_pos[0, j]
                xanchor[w, j] = anchor
                xaxis[w, j] = axis
            turn = unit_quat(turn)
            mat = quat_to_mat(turn)
            xpos[w, b] = pos
            xquat[w, b] = turn
            xmat[w, b] = mat
            xipos[w, b] = pos + mat * body_ipos[0, b]
            ximat[w, b] = quat_to_mat(mul_quat(turn, body_iquat[0, b]))

    @wp.kernel
    def geom_frames(
        geom_bodyid: ints, geom_pos: wp.array2d(dtype=vec3), geom_quat: wp.array2d(dtype=quat),
        xpos: wp.array2d(dtype=vec3), xquat: wp.array2d(dtype=quat), xmat: wp.array2d(dtype=mat33),
        geom_xpos: wp.array2d(dtype=vec3), geom_xmat: wp.array2d(dtype=mat33),
    ):  # fmt: skip
        """Place every geom in the frame of its body."""
        w = wp.tid()
        for g in range(geom_bodyid.shape[0]):
            b = geom_bodyid[g]
            geom_xpos[w, g] = xpos[w, b] + xmat[w, b] * geom_pos[0, g]
            geom_xmat[w, g] = quat_to_mat(mul_quat(xquat[w, b], geom_quat[0, g]))

    @wp.kernel
    def site_frames(
        site_bodyid: ints, site_pos: wp.array2d(dtype=vec3), site_quat: wp.array2d(dtype=quat),
        xpos: wp.array2d(dtype=vec3), xquat: wp.array2d(dtype=quat), xmat: wp.array2d(dtype=mat33),
        site_xpos: wp.array2d(dtype=vec3), site_xmat: wp.array2d(dtype=mat33),
    ):  # fmt: skip
        """Place every site in the frame of its body."""
        w = wp.tid()
        for s in range(site_bodyid.shape[0]):
            b = site_bodyid[s]
            site_xpos[w, s] = xpos[w, b] + xmat[w, b] * site_pos[0, s]
            site_xmat[w, s] = quat_to_mat(mul_quat(xquat[w, b], site_quat[0, s]))

    return dict(kinematics=kinematics, geom_frames=geom_frames, site_frames=site_frames)


def _inertia(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    vec3, mat33, spatial, inertia = t.vec3, t.mat33, t.spatial, t.inertia
    pair, place_inertia, mul_inertia = a.pair, a.place_inertia, a.mul_inertia
    factor = factorisation(real).factor

    @wp.kernel
    def com_pos(
        body_parentid: ints, body_rootid: ints, body_jntadr: ints, body_jntnum: ints, jnt_type: ints, jnt_dofadr: ints,
        body_mass: wp.array2d(dtype=real), body_subtreemass: wp.array2d(dtype=real),
        body_inertia: wp.array2d(dtype=vec3),
        xipos: wp.array2d(dtype=vec3), ximat: wp.array2d(dtype=mat33),
        xanchor: wp.array2d(dtype=vec3), xaxis: wp.array2d(dtype=vec3),
        subtree_com: wp.array2d(dtype=vec3), cinert: wp.array2d(dtype=inertia), cdof: wp.array2d(dtype=spatial),
    ):  # fmt: skip
        """Centres of mass of subtrees; inertias and joint axes about the centre of mass of the whole tree."""
        w = wp.tid()
        zero = real(0.0)
        nbody = body_parentid.shape[0]
        for b in range(nbody):
            subtree_com[w, b] = xipos[w, b] * body_mass[0, b]
        for i in range(nbody - 1):
            b = nbody - 1 - i
            p = body_parentid[b]
            subtree_com[w, p] = subtree_com[w, p] + subtree_com[w, b]
        for b in range(nbody):
            if body_subtreemass[0, b] < real(MINVAL):
                subtree_com[w, b] = xipos[w, b]
            else:
                subtree_com[w, b] = subtree_com[w, b] / body_subtreemass[0, b]
        cinert[w, 0] = inertia(zero, zero, zero, zero, zero, zero, zero, zero, zero, zero)
        for b in range(1, nbody):
            com = subtree_com[w, body_rootid[b]]
            cinert[w, b] = place_inertia(body_inertia[0, b], ximat[w, b], xipos[w, b] - com, body_mass[0, b])
            for j in range(body_jntadr[b], body_jntadr[b] + body_jntnum[b]):
                axis = xaxis[w, j]
                if jnt_type[j] == SLIDE:
                    cdof[w, jnt_dofadr[j]] = pair(vec3(zero, zero, zero), axis)
                else:
                    cdof[w, jnt_dofadr[j]] = pair(axis, wp.cross(axis, com - xanchor[w, j]))

    @wp.kernel
    def crb(
        body_parentid: ints, dof_bodyid: ints, M_rowadr: ints, M_rownnz: ints, M_colind: ints,
        dof_armature: wp.array2d(dtype=real), cinert: wp.array2d(dtype=inertia), cdof: wp.array2d(dtype=spatial),
        crb: wp.array2d(dtype=inertia), M: wp.array2d(dtype=real),
    ):  # fmt: skip
        """The mass matrix by composite rigid bodies (Featherstone, table 6.2): of a row its ancestors' columns."""
        w = wp.tid()
        nbody = body_parentid.shape[0]
        for b in range(nbody):
            crb[w, b] = cinert[w, b]
        for i in range(nbody - 1):
            b = nbody - 1 - i
            p = body_parentid[b]
            if p > 0:
                crb[w, p] = crb[w, p] + crb[w, b]
        for i in range(dof_bodyid.shape[0]):
            momentum = mul_inertia(crb[w, dof_bodyid[i]], cdof[w, i])
            last = M_rowadr[i] + M_rownnz[i] - 1
            for e in range(M_rowadr[i], last + 1):
                M[w, e] = wp.dot(cdof[w, M_colind[e]], momentum)
            M[w, last] = M[w, last] + dof_armature[0, i]

    @wp.kernel
    def factor_m(
        M_rowadr: ints, M_rownnz: ints, M_colind: ints, M: wp.array2d(dtype=real),
        qLD: wp.array2d(dtype=real), qLDiagInv: wp.array2d(dtype=real),
    ):  # fmt: skip
        """``M = L' D L`` in place of a copy of M."""
        w = wp.tid()
        for e in range(M_colind.shape[0]):
            qLD[w, e] = M[w, e]
        factor(w, M_rowadr, M_rownnz, M_colind, qLD, qLDiagInv)

    return dict(com_pos=com_pos, crb=crb, factor_m=factor_m)


def _transmission(real: Any) -> dict[str, wp.Kernel]:
    @wp.kernel
    def transmission(
        actuator_trnid: ints, jnt_qposadr: ints, actuator_gear: wp.array2d(dtype=real), qpos: wp.array2d(dtype=real),
        actuator_length: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Length of each actuator: its joint's position times the gear."""
        w = wp.tid()
        for u in range(actuator_trnid.shape[0]):
            actuator_length[w, u] = actuator_gear[0, u] * qpos[w, jnt_qposadr[actuator_trnid[u]]]

    return dict(transmission=transmission)
