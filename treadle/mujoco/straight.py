"""The whole step as straight-line code, made for one kinematic structure.

A model's structure (who is whose parent, which joints, which actuators, which limits) becomes part of the code: loops
over bodies and joints are unrolled, every index is a number, and intermediate values stay in registers or in the
gang's scratch. Its numbers (masses, lengths, gains) are read from the model's arrays, so that changing them needs no
new code. The formulas are those of the stages in `position`, `velocity` and `acceleration`; one launch does them all,
for ``nstep`` steps, and touches memory only for the state.
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
    BALL,
    BIAS_AFFINE,
    CLAMPCTRL,
    DAMPER,
    EULERDAMP,
    FREE,
    GAIN_AFFINE,
    GRAVITY,
    MINVAL,
    SINGULAR,
    SLIDE,
    SPRING,
)
from treadle.mujoco.structure import Structure


def _spread(s: Structure, real: Any, pushed: bool) -> wp.Function:
    """From the roots outwards: place each body, and find the force it needs to move with ``qacc = 0`` against gravity.

    As `position.kinematics`, `velocity.com_vel` and `velocity.rne`, but spatial vectors are about the origin of the
    tree's first body: a point that is known at once, where the centre of mass is known only after all bodies are
    placed. Only the quaternions of positions are normalised: products of a tree's depth do not drift.
    """
    t, a = types(real), algebra(real)
    vec3, quat, mat33, spatial, inertia = t.vec3, t.quat, t.mat33, t.spatial, t.inertia
    mul_quat, quat_to_mat, place_inertia, mul_inertia = a.mul_quat, a.quat_to_mat, a.place_inertia, a.mul_inertia
    pair, cross_motion, cross_force = a.pair, a.cross_motion, a.cross_force
    spin, along, push_at, column, unit_quat = a.spin, a.along, a.push_at, a.column, a.unit_quat
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
                n = wp.static(s.jnt_qposadr[j])
                if wp.static(s.jnt_type[j] == FREE):
                    pos = vec3(q[n], q[n + 1], q[n + 2])
                    turn = unit_quat(quat(q[n + 3], q[n + 4], q[n + 5], q[n + 6]))
                    mat = quat_to_mat(turn)
                else:
                    anchor[j] = pos
                    if wp.static(not s.jnt_centred[j]):
                        anchor[j] = pos + mat * jnt_pos[row(w, jnt_pos), j]
                    if wp.static(s.jnt_type[j] == SLIDE):
                        axis[j] = wp.static(along[s.jnt_main[j]])(mat, jnt_axis[row(w, jnt_axis), j])
                        pos = pos + axis[j] * (q[n] - qpos0[row(w, qpos0), n])
                    else:
                        if wp.static(s.jnt_type[j] == BALL):
                            turn = mul_quat(turn, unit_quat(quat(q[n], q[n + 1], q[n + 2], q[n + 3])))
                            mat = quat_to_mat(turn)
                        else:
                            angle = q[n] - qpos0[row(w, qpos0), n]
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
                    i = wp.static(s.jnt_dofadr[j])
                    if wp.static(s.jnt_type[j] == FREE):  # its body is the first of a tree, and turns about the origin
                        cdof[i] = pair(none, vec3(real(1.0), real(0.0), real(0.0)))
                        cdof[i + 1] = pair(none, vec3(real(0.0), real(1.0), real(0.0)))
                        cdof[i + 2] = pair(none, vec3(real(0.0), real(0.0), real(1.0)))
                        for k in range(3):
                            cdof[i + 3 + k] = pair(column(mat, k), none)
                        drift = vec3(v[i], v[i + 1], v[i + 2])
                        omega = mat * vec3(v[i + 3], v[i + 4], v[i + 5])
                        acc = pair(none, up + wp.cross(drift, omega))
                        vel = pair(omega, drift)
                    elif wp.static(s.jnt_type[j] == BALL):  # its axes move along as they were before any of them turned
                        before = vel
                        for k in range(3):
                            cdof[i + k] = pair(column(mat, k), wp.cross(column(mat, k), origin - anchor[j]))
                            acc = acc + cross_motion(before, cdof[i + k]) * v[i + k]
                            vel = vel + cdof[i + k] * v[i + k]
                    else:
                        if wp.static(s.jnt_type[j] == SLIDE):
                            cdof[i] = pair(none, axis[j])
                        else:
                            cdof[i] = pair(axis[j], wp.cross(axis[j], origin - anchor[j]))
                        acc = acc + cross_motion(vel, cdof[i]) * v[i]
                        vel = vel + cdof[i] * v[i]
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


def _push(real: Any) -> tuple[wp.Function, ...]:
    """What a force does along a motion, by the kind of motion (`Structure.motion`)."""
    spatial = types(real).spatial

    def along(k: int) -> wp.Function:
        @wp.func(inline=True)
        def push(motion: spatial, force: spatial):
            return force[3 + k]

        return push

    @wp.func(inline=True)
    def turning(motion: spatial, force: spatial):
        return motion[0] * force[0] + motion[1] * force[1] + motion[2] * force[2]

    @wp.func(inline=True)
    def sliding(motion: spatial, force: spatial):
        return motion[3] * force[3] + motion[4] * force[4] + motion[5] * force[5]

    @wp.func(inline=True)
    def moving(motion: spatial, force: spatial):
        return wp.dot(motion, force)

    return along(0), along(1), along(2), turning, sliding, moving


def _gather(s: Structure, real: Any) -> wp.Function:
    """Inertias and forces run down to the root and make mass matrix and bias (`position.crb`, `velocity.rne`)."""
    t, a = types(real), algebra(real)
    spatial, inertia, mul_inertia, push = t.spatial, t.inertia, a.mul_inertia, _push(real)
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
                M[e] = wp.static(push[s.motion(s.M_colind[e])])(cdof[wp.static(s.M_colind[e])], momentum)
            M[last] = M[last] + dof_armature[row(w, dof_armature), i]
            force[i] = force[i] - wp.static(push[s.motion(i)])(cdof[i], cfrc[body])

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
            j = wp.static(s.jnt_dofadr[s.actuator_trnid[u]])
            gear = actuator_gear[row(w, actuator_gear), u][0]
            length = gear * q[wp.static(s.jnt_qposadr[s.actuator_trnid[u]])]
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
            if wp.static(s.jnt_actfrclimited[s.dof_jntid[i]] != 0):
                limit = jnt_actfrcrange[row(w, jnt_actfrcrange), wp.static(s.dof_jntid[i])]
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
        singular = int(0)
        for k in range(wp.static(nv - 1), -1, -1):
            last = wp.static(s.row(k)[1])
            if M[last] < real(MINVAL):
                M[last] = real(MINVAL)
                singular = int(1)
            inverse = real(1.0) / M[last]
            M[last] = inverse
            for e in range(wp.static(s.row(k)[1] - 1), wp.static(s.row(k)[0] - 1), -1):
                i = wp.static(s.M_colind[e])
                share = M[e] * inverse
                for f in range(wp.static(e - s.row(k)[0] + 1)):
                    to = wp.static(s.row(s.M_colind[e])[0] + f)
                    M[to] = M[to] - share * M[wp.static(s.row(k)[0] + f)]
                M[e] = share
                x[i] = x[i] - share * x[k]
        for k in range(nv):
            y = x[k] * M[wp.static(s.row(k)[1])]
            for e in range(wp.static(s.row(k)[0]), wp.static(s.row(k)[1])):
                y = y - M[e] * x[wp.static(s.M_colind[e])]
            x[k] = y
        return singular

    return solve


def _pull(s: Structure, real: Any) -> wp.Function:
    """Add the forces of springs and dampers (`passive_forces`)."""
    t, a = types(real), algebra(real)
    quat, unit_quat, sub_quat = t.quat, a.unit_quat, a.sub_quat
    nv, joints = len(s.dof_bodyid), len(s.jnt_type)
    spring, damper = not s.disableflags & SPRING, not s.disableflags & DAMPER

    @wp.func
    def pull(
        w: int, jnt_stiffness: wp.array2d(dtype=real), qpos_spring: wp.array2d(dtype=real),
        dof_damping: wp.array2d(dtype=real), q: wp.array(dtype=real), v: wp.array(dtype=real),
        force: wp.array(dtype=real),
    ):  # fmt: skip
        for j in range(wp.static(joints if spring else 0)):
            n, i, r = wp.static(s.jnt_qposadr[j]), wp.static(s.jnt_dofadr[j]), row(w, qpos_spring)
            stiffness = jnt_stiffness[row(w, jnt_stiffness), j]
            if wp.static(s.jnt_type[j] != FREE and s.jnt_type[j] != BALL):
                force[i] = force[i] + stiffness * (qpos_spring[r, n] - q[n])
            elif stiffness != real(0.0):
                if wp.static(s.jnt_type[j] == FREE):
                    for k in range(3):
                        force[i + k] = force[i + k] + stiffness * (qpos_spring[r, n + k] - q[n + k])
                m, o = wp.static(s.quaternion(j)[0]), wp.static(s.quaternion(j)[1])
                rest = quat(qpos_spring[r, m], qpos_spring[r, m + 1], qpos_spring[r, m + 2], qpos_spring[r, m + 3])
                away = sub_quat(unit_quat(quat(q[m], q[m + 1], q[m + 2], q[m + 3])), rest)
                for k in range(3):
                    force[o + k] = force[o + k] - stiffness * away[k]
        for i in range(wp.static(nv if damper else 0)):
            force[i] = force[i] - dof_damping[row(w, dof_damping), i] * v[i]

    return pull


def _move(s: Structure, real: Any) -> wp.Function:
    """Positions after ``h`` (`integrators.moving`)."""
    t, integrate_quat = types(real), algebra(real).integrate_quat
    vec3, quat, joints = t.vec3, t.quat, len(s.jnt_type)

    @wp.func
    def move(h: real, v: wp.array(dtype=real), q: wp.array(dtype=real)):
        for j in range(joints):
            n, i = wp.static(s.jnt_qposadr[j]), wp.static(s.jnt_dofadr[j])
            if wp.static(s.jnt_type[j] == FREE):
                for k in range(3):
                    q[n + k] = q[n + k] + h * v[i + k]
            if wp.static(s.jnt_type[j] == FREE or s.jnt_type[j] == BALL):
                m, o = wp.static(s.quaternion(j)[0]), wp.static(s.quaternion(j)[1])
                before = quat(q[m], q[m + 1], q[m + 2], q[m + 3])
                after = integrate_quat(before, vec3(v[o], v[o + 1], v[o + 2]), h)
                for k in range(4):
                    q[m + k] = after[k]
            else:
                q[n] = q[n] + h * v[i]

    return move


@cache
def step_kernel(s: Structure, real: Any, pushed: bool, single: bool = False) -> wp.Kernel:
    """The kernel that steps a world of structure ``s`` in precision ``real``; ``pushed``: with forces on bodies.

    ``single``: it steps once, whatever ``nstep``. Without a loop around it the adjoint of a step runs the step once.
    """
    t = types(real)
    vec2, vec3, quat, mat33, spatial, inertia = t.vec2, t.vec3, t.quat, t.mat33, t.spatial, t.inertia
    spread = _spread(s, real, pushed)
    gather, take, drive, pull, solve, move = (part(s, real) for part in (_gather, _take, _drive, _pull, _solve, _move))
    nbody, nv, nC, nu = len(s.body_parentid), len(s.dof_bodyid), len(s.M_colind), len(s.actuator_trnid)
    nq, joints = s.nq, len(s.jnt_type)
    implicit = not s.disableflags & (DAMPER | EULERDAMP)
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
        q = wp.zeros(shape=(nq,), dtype=real)
        v = wp.zeros(shape=(nv,), dtype=real)
        xpos = wp.zeros(shape=(nbody,), dtype=vec3)
        xquat = wp.zeros(shape=(nbody,), dtype=quat)
        xmat = wp.zeros(shape=(nbody,), dtype=mat33)
        anchor = wp.zeros(shape=(joints,), dtype=vec3)
        axis = wp.zeros(shape=(joints,), dtype=vec3)
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
        for i in range(nq):
            q[i] = qpos[w, i]
        for i in range(nv):
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
            for i in range(nq):
                start_qpos[w, i] = q[i]
            for i in range(nv):
                start_qvel[w, i] = v[i]
                force[i] = qfrc_applied[w, i]
            pull(w, jnt_stiffness, qpos_spring, dof_damping, q, v, force)
            spread(w, up, body_pos, body_quat, body_ipos, body_iquat, body_mass, body_inertia, jnt_pos, jnt_axis,
                   qpos0, xfrc_applied, q, v, xpos, xquat, xmat, anchor, axis, cdof, cvel, cacc, crb, cfrc)  # fmt: skip
            gather(w, dof_armature, cdof, crb, cfrc, M, force)
            drive(w, actuator_gear, actuator_gainprm, actuator_biasprm, actuator_forcerange, jnt_actfrcrange, signals,
                  q, v, drives, force)  # fmt: skip
            for i in range(nv):
                if wp.static(implicit):  # the damping that the end of the step will have (`acceleration.euler`)
                    last = wp.static(s.row(i)[1])
                    M[last] = M[last] + h * dof_damping[row(w, dof_damping), i]
            singular = solve(M, force)
            if singular > 0:
                warned[w, SINGULAR] = warned[w, SINGULAR] + 1
            for i in range(nv):
                v[i] = v[i] + h * force[i]
            move(h, v, q)
            end = end + h
            if wp.static(not single):
                lost = int(0)
                for i in range(nv):
                    lost = wp.max(lost, beyond(v[i]))
                for i in range(nq):
                    lost = wp.max(lost, 2 * beyond(q[i]))
                if lost > 0:
                    warned[w, lost - 1] = warned[w, lost - 1] + 1
                    if wp.static(resets):
                        end = real(0.0)
                        for i in range(nq):
                            q[i] = qpos0[row(w, qpos0), i]
                        for i in range(nv):
                            v[i] = real(0.0)

        if bad > 0:
            warned[w, BADCTRL] = warned[w, BADCTRL] + rounds
        for i in range(nq):
            qpos[w, i] = q[i]
        for i in range(nv):
            qvel[w, i] = v[i]
        time[w] = end

    return step
