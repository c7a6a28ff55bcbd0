"""The whole step as straight-line code, made for one kinematic structure.

A model's structure (who is whose parent, which joints, which actuators, which limits) becomes part of the code: loops over
bodies and joints are unrolled, and every intermediate value stays in registers or in the gang's scratch. Its numbers (masses,
lengths, gains) are read from the model's arrays, so that changing them needs no new code. The formulas are those of the
stages in `position`, `velocity` and `acceleration`; one launch does them all, for ``nstep`` steps, and touches memory only for
the state.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, types
from treadle.mujoco.constants import ACTUATION, BIAS_AFFINE, CLAMPCTRL, DAMPER, EULERDAMP, GAIN_AFFINE, GRAVITY, SLIDE
from treadle.mujoco.constants import SPRING

Ints = tuple[int, ...]


@dataclass(frozen=True)
class Structure:
    """What the code of a step depends on: the integer tables of a model, by MuJoCo's names."""

    body_parentid: Ints
    body_rootid: Ints
    body_jntadr: Ints
    body_jntnum: Ints
    body_dofadr: Ints
    body_dofnum: Ints
    jnt_type: Ints
    jnt_actfrclimited: Ints
    dof_bodyid: Ints
    M_rowadr: Ints
    M_rownnz: Ints
    M_colind: Ints
    actuator_trnid: Ints
    actuator_ctrllimited: Ints
    actuator_forcelimited: Ints
    actuator_gaintype: Ints
    actuator_biastype: Ints
    disableflags: int

    def moves(self) -> tuple[bool, ...]:
        """For each body, whether a joint lies between it and the world."""
        moving = [False]
        for b in range(1, len(self.body_parentid)):
            moving.append(self.body_dofnum[b] > 0 or moving[self.body_parentid[b]])
        return tuple(moving)


@cache
def step_kernel(s: Structure, real: Any) -> wp.Kernel:
    """The kernel that steps one world of structure ``s``; one joint is one degree of freedom, so both have one index."""
    t, a = types(real), algebra(real)
    vec2, vec3, quat, mat33, spatial, inertia = t.vec2, t.vec3, t.quat, t.mat33, t.spatial, t.inertia
    mul_quat, turn_quat, unit_quat, quat_to_mat = a.mul_quat, a.turn_quat, a.unit_quat, a.quat_to_mat
    pair, cross_motion, cross_force = a.pair, a.cross_motion, a.cross_force
    mul_inertia, place_inertia = a.mul_inertia, a.place_inertia

    nbody, nv, nC, nu = len(s.body_parentid), len(s.dof_bodyid), len(s.M_colind), len(s.actuator_trnid)
    moving = s.moves()
    spring = not s.disableflags & SPRING
    damper = not s.disableflags & DAMPER
    implicit = damper and not s.disableflags & EULERDAMP
    gravity = not s.disableflags & GRAVITY
    driven = nu if not s.disableflags & ACTUATION else 0
    clamped = tuple(bool(x) and not s.disableflags & CLAMPCTRL for x in s.actuator_ctrllimited)

    @wp.kernel
    def step(
        nstep: int, opt_timestep: wp.array(dtype=real), opt_gravity: wp.array(dtype=vec3),
        body_pos: wp.array2d(dtype=vec3), body_quat: wp.array2d(dtype=quat),
        body_ipos: wp.array2d(dtype=vec3), body_iquat: wp.array2d(dtype=quat),
        body_mass: wp.array2d(dtype=real), body_subtreemass: wp.array2d(dtype=real), body_inertia: wp.array2d(dtype=vec3),
        jnt_pos: wp.array2d(dtype=vec3), jnt_axis: wp.array2d(dtype=vec3), jnt_stiffness: wp.array2d(dtype=real),
        jnt_actfrcrange: wp.array2d(dtype=vec2), qpos0: wp.array2d(dtype=real), qpos_spring: wp.array2d(dtype=real),
        dof_armature: wp.array2d(dtype=real), dof_damping: wp.array2d(dtype=real),
        actuator_gear: wp.array2d(dtype=real), actuator_gainprm: wp.array3d(dtype=real),
        actuator_biasprm: wp.array3d(dtype=real), actuator_ctrlrange: wp.array2d(dtype=vec2),
        actuator_forcerange: wp.array2d(dtype=vec2),
        ctrl: wp.array2d(dtype=real), qfrc_applied: wp.array2d(dtype=real),
        qpos: wp.array2d(dtype=real), qvel: wp.array2d(dtype=real), time: wp.array(dtype=real),
        start_qpos: wp.array2d(dtype=real), start_qvel: wp.array2d(dtype=real),
        start_ctrl: wp.array2d(dtype=real), start_qfrc_applied: wp.array2d(dtype=real),
    ):  # fmt: skip
        w = wp.tid()
        h = opt_timestep[0]
        zero = real(0.0)
        none = vec3(zero, zero, zero)
        rest = pair(none, none)
        up = none
        if wp.static(gravity):
            up = -opt_gravity[0]

        q = wp.zeros(shape=(nv,), dtype=real)
        v = wp.zeros(shape=(nv,), dtype=real)
        xpos = wp.zeros(shape=(nbody,), dtype=vec3)
        xquat = wp.zeros(shape=(nbody,), dtype=quat)
        xmat = wp.zeros(shape=(nbody,), dtype=mat33)
        xipos = wp.zeros(shape=(nbody,), dtype=vec3)
        com = wp.zeros(shape=(nbody,), dtype=vec3)
        anchor = wp.zeros(shape=(nv,), dtype=vec3)
        axis = wp.zeros(shape=(nv,), dtype=vec3)
        cdof = wp.zeros(shape=(nv,), dtype=spatial)
        crb = wp.zeros(shape=(nbody,), dtype=inertia)
        cvel = wp.zeros(shape=(nbody,), dtype=spatial)
        cacc = wp.zeros(shape=(nbody,), dtype=spatial)
        cfrc = wp.zeros(shape=(nbody,), dtype=spatial)
        M = wp.zeros(shape=(nC,), dtype=real)
        force = wp.zeros(shape=(nv,), dtype=real)

        for i in range(nv):
            q[i] = qpos[w, i]
            v[i] = qvel[w, i]
            start_qfrc_applied[w, i] = qfrc_applied[w, i]
        for u in range(nu):
            start_ctrl[w, u] = ctrl[w, u]

        for _ in range(nstep):
            for i in range(nv):
                start_qpos[w, i] = q[i]
                start_qvel[w, i] = v[i]

            # kinematics, and the centre of mass of each tree
            for b in range(nbody):
                com[b] = none
            for b in range(1, nbody):
                pos = body_pos[0, b]
                turn = body_quat[0, b]
                if wp.static(s.body_parentid[b] > 0):
                    pos = xpos[wp.static(s.body_parentid[b])] + xmat[wp.static(s.body_parentid[b])] * pos
                    turn = mul_quat(xquat[wp.static(s.body_parentid[b])], turn)
                for j in range(wp.static(s.body_jntadr[b]), wp.static(s.body_jntadr[b] + s.body_jntnum[b])):
                    before = quat_to_mat(turn)
                    anchor[j] = pos + before * jnt_pos[0, j]
                    axis[j] = before * jnt_axis[0, j]
                    move = q[j] - qpos0[0, j]
                    if wp.static(s.jnt_type[j] == SLIDE):
                        pos = pos + axis[j] * move
                    else:
                        turn = mul_quat(turn, turn_quat(jnt_axis[0, j], move))
                        pos = anchor[j] - quat_to_mat(turn) * jnt_pos[0, j]
                turn = unit_quat(turn)
                xpos[b] = pos
                xquat[b] = turn
                xmat[b] = quat_to_mat(turn)
                xipos[b] = pos + xmat[b] * body_ipos[0, b]
                com[wp.static(s.body_rootid[b])] = (
                    com[wp.static(s.body_rootid[b])] + xipos[b] * body_mass[0, b]
                )
            for b in range(1, nbody):
                if wp.static(s.body_rootid[b] == b and any(m for m, r in zip(moving, s.body_rootid) if r == b)):
                    com[b] = com[b] / body_subtreemass[0, b]

            # velocities, and the force each body needs to move with qacc = 0 against gravity
            for b in range(1, nbody):
                if wp.static(moving[b]):
                    centre = com[wp.static(s.body_rootid[b])]
                    mat = quat_to_mat(mul_quat(xquat[b], body_iquat[0, b]))
                    crb[b] = place_inertia(body_inertia[0, b], mat, xipos[b] - centre, body_mass[0, b])
                    vel = rest
                    acc = pair(none, up)
                    if wp.static(moving[s.body_parentid[b]]):
                        vel = cvel[wp.static(s.body_parentid[b])]
                        acc = cacc[wp.static(s.body_parentid[b])]
                    for j in range(wp.static(s.body_jntadr[b]), wp.static(s.body_jntadr[b] + s.body_jntnum[b])):
                        if wp.static(s.jnt_type[j] == SLIDE):
                            cdof[j] = pair(none, axis[j])
                        else:
                            cdof[j] = pair(axis[j], wp.cross(axis[j], centre - anchor[j]))
                        acc = acc + cross_motion(vel, cdof[j]) * v[j]
                        vel = vel + cdof[j] * v[j]
                    cvel[b] = vel
                    cacc[b] = acc
                    cfrc[b] = mul_inertia(crb[b], acc) + cross_force(vel, mul_inertia(crb[b], vel))

            # composite bodies: inertias and forces run down to the root
            for b in range(wp.static(nbody - 1), 0, -1):
                if wp.static(moving[s.body_parentid[b]]):
                    crb[wp.static(s.body_parentid[b])] = crb[wp.static(s.body_parentid[b])] + crb[b]
                    cfrc[wp.static(s.body_parentid[b])] = cfrc[wp.static(s.body_parentid[b])] + cfrc[b]

            # mass matrix, with the damping that the end of the step will have; bias, springs and dampers
            for i in range(nv):
                momentum = mul_inertia(crb[wp.static(s.dof_bodyid[i])], cdof[i])
                for e in range(wp.static(s.M_rowadr[i]), wp.static(s.M_rowadr[i] + s.M_rownnz[i])):
                    M[e] = wp.dot(cdof[wp.static(s.M_colind[e])], momentum)
                own = dof_armature[0, i]
                if wp.static(implicit):
                    own = own + h * dof_damping[0, i]
                M[wp.static(s.M_rowadr[i] + s.M_rownnz[i] - 1)] = M[wp.static(s.M_rowadr[i] + s.M_rownnz[i] - 1)] + own
                force[i] = qfrc_applied[w, i] - wp.dot(cdof[i], cfrc[wp.static(s.dof_bodyid[i])])

            # actuators
            actuator = wp.zeros(shape=(nv,), dtype=real)
            for u in range(driven):
                length = actuator_gear[0, u] * q[wp.static(s.actuator_trnid[u])]
                speed = actuator_gear[0, u] * v[wp.static(s.actuator_trnid[u])]
                signal = ctrl[w, u]
                if wp.static(clamped[u]):
                    signal = wp.clamp(signal, actuator_ctrlrange[0, u][0], actuator_ctrlrange[0, u][1])
                gain = actuator_gainprm[0, u, 0]
                if wp.static(s.actuator_gaintype[u] == GAIN_AFFINE):
                    gain = gain + actuator_gainprm[0, u, 1] * length + actuator_gainprm[0, u, 2] * speed
                push = gain * signal
                if wp.static(s.actuator_biastype[u] == BIAS_AFFINE):
                    push = push + actuator_biasprm[0, u, 0]
                    push = push + actuator_biasprm[0, u, 1] * length + actuator_biasprm[0, u, 2] * speed
                if wp.static(bool(s.actuator_forcelimited[u])):
                    push = wp.clamp(push, actuator_forcerange[0, u][0], actuator_forcerange[0, u][1])
                actuator[wp.static(s.actuator_trnid[u])] = (
                    actuator[wp.static(s.actuator_trnid[u])] + actuator_gear[0, u] * push
                )
            for i in range(nv):
                pushed = actuator[i]
                if wp.static(bool(s.jnt_actfrclimited[i])):
                    pushed = wp.clamp(pushed, jnt_actfrcrange[0, i][0], jnt_actfrcrange[0, i][1])
                force[i] = force[i] + pushed
                if wp.static(spring):
                    force[i] = force[i] + jnt_stiffness[0, i] * (qpos_spring[0, i] - q[i])
                if wp.static(damper):
                    force[i] = force[i] - dof_damping[0, i] * v[i]

            # L' D L factor (see `factor`), with 1 / D in place of D, and the first half of the solution
            for k in range(wp.static(nv - 1), -1, -1):
                inverse = real(1.0) / M[wp.static(s.M_rowadr[k] + s.M_rownnz[k] - 1)]
                M[wp.static(s.M_rowadr[k] + s.M_rownnz[k] - 1)] = inverse
                for e in range(wp.static(s.M_rowadr[k] + s.M_rownnz[k] - 2), wp.static(s.M_rowadr[k] - 1), -1):
                    share = M[e] * inverse
                    for f in range(wp.static(e - s.M_rowadr[k] + 1)):
                        M[wp.static(s.M_rowadr[s.M_colind[e]] + f)] = (
                            M[wp.static(s.M_rowadr[s.M_colind[e]] + f)] - share * M[wp.static(s.M_rowadr[k] + f)]
                        )
                    M[e] = share
                    force[wp.static(s.M_colind[e])] = force[wp.static(s.M_colind[e])] - share * force[k]

            # the second half gives the accelerations; velocities first, then positions with the new velocities
            for k in range(nv):
                acceleration = force[k] * M[wp.static(s.M_rowadr[k] + s.M_rownnz[k] - 1)]
                for e in range(wp.static(s.M_rowadr[k]), wp.static(s.M_rowadr[k] + s.M_rownnz[k] - 1)):
                    acceleration = acceleration - M[e] * force[wp.static(s.M_colind[e])]
                force[k] = acceleration
                v[k] = v[k] + h * acceleration
                q[k] = q[k] + h * v[k]

        for i in range(nv):
            qpos[w, i] = q[i]
            qvel[w, i] = v[i]
        time[w] = time[w] + h * real(nstep)

    return step
