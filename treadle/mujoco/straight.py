"""The whole step as straight-line code, made for one kinematic structure.

A model's structure (who is whose parent, which joints, which actuators, which limits) becomes part of the code: loops
over bodies and joints are unrolled, every index is a number, and intermediate values stay in registers or in the
gang's scratch. Its numbers (masses, lengths, gains) are read from the model's arrays, so that changing them needs no
new code. The formulas are those of the stages in `position`, `velocity` and `acceleration`; one launch does them all,
for ``nstep`` steps, and touches memory only for the state. All joints are hinges and slides: joint, position and
degree of freedom have one index.
"""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, row, types
from treadle.mujoco.bounds import bounds
from treadle.mujoco.constants import (
    ACTUATION,
    AUTORESET,
    BADCTRL,
    BIAS_AFFINE,
    CLAMPCTRL,
    DAMPER,
    EULERDAMP,
    GAIN_AFFINE,
    GRAVITY,
    MINVAL,
    SLIDE,
    SPRING,
)
from treadle.mujoco.structure import Structure


def _spread(s: Structure, real: Any, pushed: bool) -> wp.Function:
    """From the roots outwards: place each body, and find the force it needs to move with ``qacc = 0`` against gravity.

    As `position.kinematics`, `velocity.com_vel` and `velocity.rne`, but spatial vectors are about the origin of the
    tree's first body: a point that is known at once, where the centre of mass is known only after all bodies are
    placed. Quaternions are not normalised: positions are angles and lengths, so nothing drifts.
    """
    t, a = types(real), algebra(real)
    vec3, quat, mat33, spatial, inertia = t.vec3, t.quat, t.mat33, t.spatial, t.inertia
    mul_quat, quat_to_mat, place_inertia, mul_inertia = a.mul_quat, a.quat_to_mat, a.place_inertia, a.mul_inertia
    pair, cross_motion, cross_force = a.pair, a.cross_motion, a.cross_force
    spin, along, push_at = a.spin, a.along, a.push_at
    nbody, moving = len(s.body_parentid), s.moving

    @wp.func
    def spread(
        w: int, up: vec3, body_pos: wp.array2d(dtype=vec3), body_quat: wp.array2d(dtype=quat),
        body_ipos: wp.array2d(dtype=vec3), body_iquat: wp.array2d(dtype=quat),
        body_mass: wp.array2d(dtype=real), body_inertia: wp.array2d(dtype=vec3),
        jnt_pos: wp.array2d(dtype=vec3), jnt_axis: wp.array2d(dtype=vec3), qpos0: wp.array2d(dtype=real),
        xfrc_applied: wp.array2d(dtype=spatial), q: wp.array(dtype=real), v: wp.array(dtype=real),
        xpos: wp.array(dtype=vec3), xquat: wp.array(dtype=quat), xmat: wp.array(dtype=mat33),
        anchor: wp.array(dtype=vec3), axis: wp.array(dtype=vec3), cdof: wp.array(dtype=spatial),
        cvel: wp.array(dtype=spatial), cacc: wp.array(dtype=spatial),
        crb: wp.array(dtype=inertia), cfrc: wp.array(dtype=spatial),
    ):  # fmt: skip
        none = vec3(real(0.0), real(0.0), real(0.0))
        for b in range(1, nbody):
            p = wp.static(s.body_parentid[b])
            pos = body_pos[row(w, body_pos), b]
            turn = body_quat[row(w, body_quat), b]
            if wp.static(s.body_parentid[b] > 0):
                pos = xpos[p] + xmat[p] * pos
                turn = mul_quat(xquat[p], turn)
            mat = quat_to_mat(turn)
            for j in range(wp.static(s.joints(b)[0]), wp.static(s.joints(b)[1])):
                anchor[j] = pos
                if wp.static(not s.jnt_centred[j]):
                    anchor[j] = pos + mat * jnt_pos[row(w, jnt_pos), j]
                if wp.static(s.jnt_type[j] == SLIDE):
                    axis[j] = wp.static(along[s.jnt_main[j]])(mat, jnt_axis[row(w, jnt_axis), j])
                    pos = pos + axis[j] * (q[j] - qpos0[row(w, qpos0), j])
                else:
                    angle = q[j] - qpos0[row(w, qpos0), j]
                    turn = wp.static(spin[s.jnt_main[j]])(turn, jnt_axis[row(w, jnt_axis), j], angle)
                    mat = quat_to_mat(turn)
                    axis[j] = wp.static(along[s.jnt_main[j]])(mat, jnt_axis[row(w, jnt_axis), j])
                    if wp.static(not s.jnt_centred[j]):
                        pos = anchor[j] - mat * jnt_pos[row(w, jnt_pos), j]
            xpos[b] = pos
            xquat[b] = turn
            xmat[b] = mat

            if wp.static(moving[b]):
                origin = xpos[wp.static(s.body_rootid[b])]
                vel = pair(none, none)
                acc = pair(none, up)
                if wp.static(moving[s.body_parentid[b]]):
                    vel = cvel[p]
                    acc = cacc[p]
                for j in range(wp.static(s.joints(b)[0]), wp.static(s.joints(b)[1])):
                    if wp.static(s.jnt_type[j] == SLIDE):
                        cdof[j] = pair(none, axis[j])
                    else:
                        cdof[j] = pair(axis[j], wp.cross(axis[j], origin - anchor[j]))
                    acc = acc + cross_motion(vel, cdof[j]) * v[j]
                    vel = vel + cdof[j] * v[j]
                cvel[b] = vel
                cacc[b] = acc
                principal = quat_to_mat(mul_quat(turn, body_iquat[row(w, body_iquat), b]))
                offset = pos - origin + mat * body_ipos[row(w, body_ipos), b]
                mass = body_mass[row(w, body_mass), b]
                crb[b] = place_inertia(body_inertia[row(w, body_inertia), b], principal, offset, mass)
                cfrc[b] = mul_inertia(crb[b], acc) + cross_force(vel, mul_inertia(crb[b], vel))
                if wp.static(pushed):
                    cfrc[b] = cfrc[b] - push_at(xfrc_applied[w, b], offset)

    return spread


def _gather(s: Structure, real: Any) -> wp.Function:
    """Inertias and forces run down to the root and make mass matrix and bias (`position.crb`, `velocity.rne`)."""
    t, a = types(real), algebra(real)
    spatial, inertia, mul_inertia = t.spatial, t.inertia, a.mul_inertia
    nbody, nv, moving = len(s.body_parentid), len(s.dof_bodyid), s.moving

    @wp.func
    def gather(
        w: int, dof_armature: wp.array2d(dtype=real), cdof: wp.array(dtype=spatial),
        crb: wp.array(dtype=inertia), cfrc: wp.array(dtype=spatial),
        M: wp.array(dtype=real), force: wp.array(dtype=real),
    ):  # fmt: skip
        for b in range(wp.static(nbody - 1), 0, -1):
            if wp.static(moving[s.body_parentid[b]]):
                p = wp.static(s.body_parentid[b])
                crb[p] = crb[p] + crb[b]
                cfrc[p] = cfrc[p] + cfrc[b]
        for i in range(nv):
            body = wp.static(s.dof_bodyid[i])
            last = wp.static(s.row(i)[1])
            momentum = mul_inertia(crb[body], cdof[i])
            for e in range(wp.static(s.row(i)[0]), wp.static(s.row(i)[1] + 1)):
                M[e] = wp.dot(cdof[wp.static(s.M_colind[e])], momentum)
            M[last] = M[last] + dof_armature[row(w, dof_armature), i]
            force[i] = force[i] - wp.dot(cdof[i], cfrc[body])

    return gather


def _drive(s: Structure, real: Any) -> wp.Function:
    """Forces of actuators (`actuation.fwd_actuation`)."""
    vec2, spatial = types(real).vec2, types(real).spatial
    nv = len(s.dof_bodyid)
    driven = 0 if s.disableflags & ACTUATION else len(s.actuator_trnid)

    @wp.func
    def drive(
        w: int, actuator_gear: wp.array2d(dtype=spatial), actuator_gainprm: wp.array3d(dtype=real),
        actuator_biasprm: wp.array3d(dtype=real), actuator_forcerange: wp.array2d(dtype=vec2),
        jnt_actfrcrange: wp.array2d(dtype=vec2), signals: wp.array(dtype=real), q: wp.array(dtype=real),
        v: wp.array(dtype=real), drives: wp.array(dtype=real), force: wp.array(dtype=real),
    ):  # fmt: skip
        for i in range(nv):
            drives[i] = real(0.0)
        for u in range(driven):
            j = wp.static(s.actuator_trnid[u])
            gear = actuator_gear[row(w, actuator_gear), u][0]
            length = gear * q[j]
            speed = gear * v[j]
            g = row(w, actuator_gainprm)
            gain = actuator_gainprm[g, u, 0]
            if wp.static(s.actuator_gaintype[u] == GAIN_AFFINE):
                gain = gain + actuator_gainprm[g, u, 1] * length + actuator_gainprm[g, u, 2] * speed
            push = gain * signals[u]
            if wp.static(s.actuator_biastype[u] == BIAS_AFFINE):
                g = row(w, actuator_biasprm)
                push = push + actuator_biasprm[g, u, 0]
                push = push + actuator_biasprm[g, u, 1] * length + actuator_biasprm[g, u, 2] * speed
            if wp.static(s.actuator_forcelimited[u] != 0):
                limit = actuator_forcerange[row(w, actuator_forcerange), u]
                push = wp.clamp(push, limit[0], limit[1])
            drives[j] = drives[j] + gear * push
        for i in range(nv):
            share = drives[i]
            if wp.static(s.jnt_actfrclimited[i] != 0):
                limit = jnt_actfrcrange[row(w, jnt_actfrcrange), i]
                share = wp.clamp(share, limit[0], limit[1])
            force[i] = force[i] + share

    return drive


def _take(s: Structure, real: Any) -> wp.Function:
    """Controls as actuators take them (`actuation.controls`), once for all steps; 1 if one is bad, else 0."""
    vec2, beyond = types(real).vec2, bounds(real).beyond
    driven = 0 if s.disableflags & ACTUATION else len(s.actuator_trnid)
    clamping = not s.disableflags & CLAMPCTRL

    @wp.func
    def take(w: int, actuator_ctrlrange: wp.array2d(dtype=vec2), ctrl: wp.array2d(dtype=real),
             signals: wp.array(dtype=real)):  # fmt: skip
        bad = int(0)
        for u in range(driven):
            signal = ctrl[w, u]
            if wp.static(clamping and s.actuator_ctrllimited[u] != 0):
                limit = actuator_ctrlrange[row(w, actuator_ctrlrange), u]
                signal = wp.clamp(signal, limit[0], limit[1])
            signals[u] = signal
            bad = wp.max(bad, wp.where(wp.isnan(ctrl[w, u]), 1, beyond(signal)))
        for u in range(driven):
            signals[u] = wp.where(bad > 0, real(0.0), signals[u])
        return bad

    return take


def _solve(s: Structure, real: Any) -> wp.Function:
    """Replace ``x`` by the solution of ``M y = x`` (`factor`); M becomes its factor, with 1 / D in place of D."""
    nv = len(s.dof_bodyid)

    @wp.func
    def solve(M: wp.array(dtype=real), x: wp.array(dtype=real)):
        for k in range(wp.static(nv - 1), -1, -1):
            first = wp.static(s.row(k)[0])
            last = wp.static(s.row(k)[1])
            if M[last] < real(MINVAL):
                M[last] = real(MINVAL)
            inverse = real(1.0) / M[last]
            M[last] = inverse
            for e in range(wp.static(s.row(k)[1] - 1), wp.static(s.row(k)[0] - 1), -1):
                i = wp.static(s.M_colind[e])
                start = wp.static(s.row(s.M_colind[e])[0])
                share = M[e] * inverse
                for f in range(wp.static(e - s.row(k)[0] + 1)):
                    M[start + f] = M[start + f] - share * M[first + f]
                M[e] = share
                x[i] = x[i] - share * x[k]
        for k in range(nv):
            y = x[k] * M[wp.static(s.row(k)[1])]
            for e in range(wp.static(s.row(k)[0]), wp.static(s.row(k)[1])):
                y = y - M[e] * x[wp.static(s.M_colind[e])]
            x[k] = y

    return solve


@cache
def step_kernel(s: Structure, real: Any, pushed: bool, single: bool = False) -> wp.Kernel:
    """The kernel that steps a world of structure ``s`` in precision ``real``; ``pushed``: with forces on bodies.

    ``single``: it steps once, whatever ``nstep``. Without a loop around it the adjoint of a step runs the step once.
    """
    t = types(real)
    vec2, vec3, quat, mat33, spatial, inertia = t.vec2, t.vec3, t.quat, t.mat33, t.spatial, t.inertia
    spread = _spread(s, real, pushed)
    gather, take, drive, solve = (part(s, real) for part in (_gather, _take, _drive, _solve))
    nbody, nv, nC, nu = len(s.body_parentid), len(s.dof_bodyid), len(s.M_colind), len(s.actuator_trnid)
    spring = not s.disableflags & SPRING
    damper = not s.disableflags & DAMPER
    implicit = damper and not s.disableflags & EULERDAMP
    gravity = not s.disableflags & GRAVITY
    resets, beyond = not s.disableflags & AUTORESET, bounds(real).beyond

    @wp.kernel
    def step(
        nstep: int, opt_timestep: wp.array(dtype=real), opt_gravity: wp.array(dtype=vec3),
        body_pos: wp.array2d(dtype=vec3), body_quat: wp.array2d(dtype=quat),
        body_ipos: wp.array2d(dtype=vec3), body_iquat: wp.array2d(dtype=quat),
        body_mass: wp.array2d(dtype=real), body_inertia: wp.array2d(dtype=vec3),
        jnt_pos: wp.array2d(dtype=vec3), jnt_axis: wp.array2d(dtype=vec3), jnt_stiffness: wp.array2d(dtype=real),
        jnt_actfrcrange: wp.array2d(dtype=vec2), qpos0: wp.array2d(dtype=real), qpos_spring: wp.array2d(dtype=real),
        dof_armature: wp.array2d(dtype=real), dof_damping: wp.array2d(dtype=real),
        actuator_gear: wp.array2d(dtype=spatial), actuator_gainprm: wp.array3d(dtype=real),
        actuator_biasprm: wp.array3d(dtype=real), actuator_ctrlrange: wp.array2d(dtype=vec2),
        actuator_forcerange: wp.array2d(dtype=vec2),
        ctrl: wp.array2d(dtype=real), qfrc_applied: wp.array2d(dtype=real), xfrc_applied: wp.array2d(dtype=spatial),
        qpos: wp.array2d(dtype=real), qvel: wp.array2d(dtype=real), time: wp.array(dtype=real),
        start_qpos: wp.array2d(dtype=real), start_qvel: wp.array2d(dtype=real),
        start_ctrl: wp.array2d(dtype=real), start_qfrc_applied: wp.array2d(dtype=real),
        start_xfrc_applied: wp.array2d(dtype=spatial), warned: wp.array2d(dtype=int),
    ):  # fmt: skip
        w = wp.tid()
        q = wp.zeros(shape=(nv,), dtype=real)
        v = wp.zeros(shape=(nv,), dtype=real)
        xpos = wp.zeros(shape=(nbody,), dtype=vec3)
        xquat = wp.zeros(shape=(nbody,), dtype=quat)
        xmat = wp.zeros(shape=(nbody,), dtype=mat33)
        anchor = wp.zeros(shape=(nv,), dtype=vec3)
        axis = wp.zeros(shape=(nv,), dtype=vec3)
        cdof = wp.zeros(shape=(nv,), dtype=spatial)
        cvel = wp.zeros(shape=(nbody,), dtype=spatial)
        cacc = wp.zeros(shape=(nbody,), dtype=spatial)
        crb = wp.zeros(shape=(nbody,), dtype=inertia)
        cfrc = wp.zeros(shape=(nbody,), dtype=spatial)
        M = wp.zeros(shape=(nC,), dtype=real)
        signals = wp.zeros(shape=(wp.static(max(nu, 1)),), dtype=real)
        drives = wp.zeros(shape=(nv,), dtype=real)
        force = wp.zeros(shape=(nv,), dtype=real)

        h = opt_timestep[row(w, opt_timestep)]
        up = vec3(real(0.0), real(0.0), real(0.0))
        if wp.static(gravity):
            up = -opt_gravity[row(w, opt_gravity)]
        for i in range(nv):
            q[i] = qpos[w, i]
            v[i] = qvel[w, i]
            start_qfrc_applied[w, i] = qfrc_applied[w, i]
        for u in range(nu):
            start_ctrl[w, u] = ctrl[w, u]
        for b in range(nbody):
            if wp.static(pushed):
                start_xfrc_applied[w, b] = xfrc_applied[w, b]

        rounds = nstep
        if wp.static(single):
            rounds = 1
        bad = take(w, actuator_ctrlrange, ctrl, signals)
        end = time[w]
        for _ in range(rounds):
            for i in range(nv):
                start_qpos[w, i] = q[i]
                start_qvel[w, i] = v[i]
                force[i] = qfrc_applied[w, i]
                if wp.static(spring):
                    rest = qpos_spring[row(w, qpos_spring), i]
                    force[i] = force[i] + jnt_stiffness[row(w, jnt_stiffness), i] * (rest - q[i])
                if wp.static(damper):
                    force[i] = force[i] - dof_damping[row(w, dof_damping), i] * v[i]
            spread(w, up, body_pos, body_quat, body_ipos, body_iquat, body_mass, body_inertia, jnt_pos, jnt_axis,
                   qpos0, xfrc_applied, q, v, xpos, xquat, xmat, anchor, axis, cdof, cvel, cacc, crb, cfrc)  # fmt: skip
            gather(w, dof_armature, cdof, crb, cfrc, M, force)
            drive(w, actuator_gear, actuator_gainprm, actuator_biasprm, actuator_forcerange, jnt_actfrcrange, signals,
                  q, v, drives, force)  # fmt: skip
            for i in range(nv):
                if wp.static(implicit):  # the damping that the end of the step will have (`acceleration.euler`)
                    last = wp.static(s.row(i)[1])
                    M[last] = M[last] + h * dof_damping[row(w, dof_damping), i]
            solve(M, force)
            for i in range(nv):
                v[i] = v[i] + h * force[i]
                q[i] = q[i] + h * v[i]
            end = end + h
            if wp.static(not single):
                lost = int(0)
                for i in range(nv):
                    lost = wp.max(lost, wp.max(2 * beyond(q[i]), beyond(v[i])))
                if lost > 0:
                    warned[w, lost - 1] = warned[w, lost - 1] + 1
                    if wp.static(resets):
                        end = real(0.0)
                        for i in range(nv):
                            q[i] = qpos0[row(w, qpos0), i]
                            v[i] = real(0.0)

        if bad > 0:
            warned[w, BADCTRL] = warned[w, BADCTRL] + rounds
        for i in range(nv):
            qpos[w, i] = q[i]
            qvel[w, i] = v[i]
        time[w] = end

    return step
