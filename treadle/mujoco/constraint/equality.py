"""Rows of equality constraints: connect, weld, joint, tendon (MuJoCo documentation, Computation, Equality)."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, row, types
from treadle.mujoco.constraint.jacobian import jacobians
from treadle.mujoco.constraint.kinds import CONNECT, EQUALITY, JOINT, SITE, WELD
from treadle.mujoco.constraint.rows import spec_type, writers

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def _frames(real: Any) -> SimpleNamespace:
    """What a weld needs of quaternions, for one precision: ``pure``, ``imaginary``, ``twist``, ``turned``, ``shift``."""
    t, a = types(real), algebra(real)
    vec3, quat, mul_quat = t.vec3, t.quat, a.mul_quat

    @wp.func
    def pure(v: vec3):
        return quat(real(0.0), v[0], v[1], v[2])

    @wp.func
    def imaginary(q: quat):
        return vec3(q[1], q[2], q[3])

    @wp.func
    def conjugate(q: quat):
        return quat(q[0], -q[1], -q[2], -q[3])

    @wp.func
    def twist(quat1: quat, quat2: quat):
        """How far frame 1 is turned from frame 2: the imaginary part of ``q2* q1``."""
        return imaginary(mul_quat(conjugate(quat2), quat1))

    @wp.func
    def turned(quat1: quat, quat2: quat, turn: vec3):
        """Rate of change of `twist` where frame 1 turns against frame 2 with the velocity ``turn``."""
        return real(0.5) * imaginary(mul_quat(mul_quat(conjugate(quat2), pure(turn)), quat1))

    @wp.func
    def shift(quat1: quat, quat2: quat, omega1: vec3, omega2: vec3, spin: vec3):
        """What changes `turned` besides accelerations: the frames' own velocities, and ``spin``, that of the axes."""
        half = real(0.5)
        turn = pure(omega1 - omega2)
        back, back_rate = conjugate(quat2), conjugate(half * mul_quat(pure(omega2), quat2))
        moved = mul_quat(mul_quat(back_rate, turn), quat1)
        carried = mul_quat(mul_quat(back, pure(spin)), quat1)
        moving = mul_quat(mul_quat(back, turn), half * mul_quat(pure(omega1), quat1))
        return half * imaginary(moved + carried + moving)

    return SimpleNamespace(twist=twist, turned=turned, shift=shift)


@cache
def _spatial(real: Any) -> wp.Function:
    """The kernel function that writes the rows of a connect or a weld and gives the new cursor."""
    t, a, jac, write, frames = types(real), algebra(real), jacobians(real), writers(real), _frames(real)
    vec2, vec3, vec5, quat, spatial, numbers = t.vec2, t.vec3, t.vec5, t.quat, t.spatial, spec_type(real)
    rotation, spec, put, twist, turned, shift = a.rotation, write.spec, write.put, frames.twist, frames.turned, frames.shift
    at_point, motion_rate, rate_at_point = jac.at_point, jac.motion_rate, jac.rate_at_point

    @wp.func
    def spatial_rows(
        w: int, n: int, e: int, b1: int, b2: int, p1: vec3, p2: vec3, weld: bool, torque: real, quat1: quat, quat2: quat,
        weight: vec2, solref: vec2, solimp: vec5, body_rootid: ints, body_isdofancestor: ints2,
        jnt_type: ints, jnt_dofadr: ints, dof_jntid: ints, dof_bodyid: ints, subtree_com: wp.array2d(dtype=vec3),
        cdof: wp.array2d(dtype=spatial), cdof_dot: wp.array2d(dtype=spatial), cvel: wp.array2d(dtype=spatial),
        qvel: wp.array2d(dtype=real),
        efc_type: ints2, efc_id: ints2, efc_dim: ints2, efc_spec: wp.array2d(dtype=numbers),
        efc_J: wp.array3d(dtype=real),
    ):  # fmt: skip
        zero = real(0.0)
        room = efc_J.shape[1]
        offset1, offset2 = p1 - subtree_com[w, body_rootid[b1]], p2 - subtree_com[w, body_rootid[b2]]
        v1, v2 = at_point(cvel[w, b1], offset1), at_point(cvel[w, b2], offset2)
        drift = vec3(zero, zero, zero)  # the Jacobian's rate of change, times qvel: of translation, of rotation
        spin = vec3(zero, zero, zero)
        size = zero
        for k in range(qvel.shape[1]):
            on1, on2 = body_isdofancestor[b1, k], body_isdofancestor[b2, k]
            jp = vec3(zero, zero, zero)
            jr = vec3(zero, zero, zero)
            if on1 + on2 != 0:
                motion, speed = cdof[w, k], qvel[w, k]
                rate = motion_rate(w, k, jnt_type, jnt_dofadr, dof_jntid, dof_bodyid, cdof, cdof_dot, cvel)
                if on1 != 0:
                    jp = at_point(motion, offset1)
                    jr = rotation(motion)
                    drift = drift + speed * rate_at_point(motion, rate, offset1, v1)
                    spin = spin + speed * rotation(rate)
                if on2 != 0:
                    jp = jp - at_point(motion, offset2)
                    jr = jr - rotation(motion)
                    drift = drift - speed * rate_at_point(motion, rate, offset2, v2)
                    spin = spin - speed * rotation(rate)
            size = size + wp.dot(jp, jp)
            for i in range(3):
                if n + i < room:
                    efc_J[w, n + i, k] = jp[i]
            if weld:
                jr = torque * turned(quat1, quat2, jr)
                size = size + wp.dot(jr, jr)
                for i in range(3):
                    if n + 3 + i < room:
                        efc_J[w, n + 3 + i, k] = jr[i]
        if size != zero:  # otherwise nothing can move
            gap = p1 - p2
            turn = vec3(zero, zero, zero)
            if weld:
                turn = torque * twist(quat1, quat2)
            norm = wp.sqrt(wp.dot(gap, gap) + wp.dot(turn, turn))
            for i in range(3):
                known = spec(gap[i], norm, zero, weight[0], zero, drift[i], zero, solref, solimp)
                put(w, n + i, EQUALITY, e, 1, known, efc_type, efc_id, efc_dim, efc_spec)
            n = n + 3
            if weld:
                drift = torque * shift(quat1, quat2, rotation(cvel[w, b1]), rotation(cvel[w, b2]), spin)
                for i in range(3):
                    known = spec(turn[i], norm, zero, weight[1], zero, drift[i], zero, solref, solimp)
                    put(w, n + i, EQUALITY, e, 1, known, efc_type, efc_id, efc_dim, efc_spec)
                n = n + 3
        return n

    return spatial_rows


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    t, a, write, spatial_rows = types(real), algebra(real), writers(real), _spatial(real)
    vec2, vec3, vec5, quat, mat33, spatial = t.vec2, t.vec3, t.vec5, t.quat, t.mat33, t.spatial
    numbers, mul_quat, spec, put = spec_type(real), a.mul_quat, write.spec, write.put

    @wp.func
    def joint_pair(w: int, r: int, e: int, eq_data: wp.array3d(dtype=real), x: real):
        """The polynomial that couples two joints or tendons, and its derivative, at ``x``."""
        a1, a2, a3, a4 = eq_data[r, e, 1], eq_data[r, e, 2], eq_data[r, e, 3], eq_data[r, e, 4]
        value = eq_data[r, e, 0] + x * (a1 + x * (a2 + x * (a3 + x * a4)))
        return value, a1 + x * (real(2.0) * a2 + x * (real(3.0) * a3 + x * (real(4.0) * a4)))

    @wp.kernel
    def equality(
        neq: int, eq_type: ints, eq_obj1id: ints, eq_obj2id: ints, eq_objtype: ints,
        eq_solref: wp.array2d(dtype=vec2), eq_solimp: wp.array2d(dtype=vec5), eq_data: wp.array3d(dtype=real),
        body_rootid: ints, body_invweight0: wp.array2d(dtype=vec2), body_isdofancestor: ints2,
        jnt_type: ints, jnt_dofadr: ints, jnt_qposadr: ints, dof_jntid: ints, dof_bodyid: ints,
        dof_invweight0: wp.array2d(dtype=real), site_bodyid: ints, site_quat: wp.array2d(dtype=quat),
        ten_J_rownnz: ints, ten_J_rowadr: ints, ten_J_colind: ints, tendon_length0: wp.array2d(dtype=real),
        tendon_invweight0: wp.array2d(dtype=real), qpos0: wp.array2d(dtype=real), qpos: wp.array2d(dtype=real),
        eq_active: ints2, xpos: wp.array2d(dtype=vec3), xquat: wp.array2d(dtype=quat), xmat: wp.array2d(dtype=mat33),
        site_xpos: wp.array2d(dtype=vec3), subtree_com: wp.array2d(dtype=vec3), cdof: wp.array2d(dtype=spatial),
        ten_length: wp.array2d(dtype=real), ten_J: wp.array2d(dtype=real),
        cdof_dot: wp.array2d(dtype=spatial), cvel: wp.array2d(dtype=spatial), qvel: wp.array2d(dtype=real),
        efc_type: ints2, efc_id: ints2, efc_dim: ints2, efc_spec: wp.array2d(dtype=numbers),
        efc_J: wp.array3d(dtype=real), nrow: wp.array(dtype=int),
    ):  # fmt: skip
        """Rows of all equality constraints that are active, in the order of the model."""
        w = wp.tid()
        zero, one = real(0.0), real(1.0)
        n = nrow[w]
        for e in range(neq):
            r = row(w, eq_data)
            o1, o2 = eq_obj1id[e], eq_obj2id[e]
            solref, solimp = eq_solref[row(w, eq_solref), e], eq_solimp[row(w, eq_solimp), e]
            if eq_type[e] == CONNECT or eq_type[e] == WELD:
                weld = eq_type[e] == WELD
                b1, b2 = o1, o2
                quat1 = quat(one, zero, zero, zero)
                quat2 = quat1
                p1 = vec3(eq_data[r, e, 0], eq_data[r, e, 1], eq_data[r, e, 2])
                p2 = vec3(eq_data[r, e, 3], eq_data[r, e, 4], eq_data[r, e, 5])
                if eq_objtype[e] == SITE:
                    b1, b2 = site_bodyid[o1], site_bodyid[o2]
                    p1, p2 = site_xpos[w, o1], site_xpos[w, o2]
                    quat1 = mul_quat(xquat[w, b1], site_quat[row(w, site_quat), o1])
                    quat2 = mul_quat(xquat[w, b2], site_quat[row(w, site_quat), o2])
                else:
                    if weld:
                        p1, p2 = p2, p1
                        relative = quat(eq_data[r, e, 6], eq_data[r, e, 7], eq_data[r, e, 8], eq_data[r, e, 9])
                        quat1 = mul_quat(xquat[w, b1], relative)
                        quat2 = xquat[w, b2]
                    p1 = xpos[w, b1] + xmat[w, b1] * p1
                    p2 = xpos[w, b2] + xmat[w, b2] * p2
                weight = body_invweight0[row(w, body_invweight0), b1] + body_invweight0[row(w, body_invweight0), b2]
                if eq_active[w, e] != 0:
                    n = spatial_rows(
                        w, n, e, b1, b2, p1, p2, weld, eq_data[r, e, 10], quat1, quat2, weight, solref, solimp,
                        body_rootid, body_isdofancestor, jnt_type, jnt_dofadr, dof_jntid, dof_bodyid,
                        subtree_com, cdof, cdof_dot, cvel, qvel, efc_type, efc_id, efc_dim, efc_spec, efc_J,
                    )  # fmt: skip
            elif eq_active[w, e] != 0:
                pos, weight, slope = zero, zero, zero
                if n < efc_J.shape[1]:
                    for k in range(qvel.shape[1]):
                        efc_J[w, n, k] = zero
                if eq_type[e] == JOINT:
                    i1 = jnt_dofadr[o1]
                    pos = qpos[w, jnt_qposadr[o1]] - qpos0[row(w, qpos0), jnt_qposadr[o1]]
                    weight = dof_invweight0[row(w, dof_invweight0), i1]
                    other = zero
                    if o2 >= 0:
                        other = qpos[w, jnt_qposadr[o2]] - qpos0[row(w, qpos0), jnt_qposadr[o2]]
                        weight = weight + dof_invweight0[row(w, dof_invweight0), jnt_dofadr[o2]]
                    value, slope = joint_pair(w, r, e, eq_data, other)
                    pos = pos - value
                    if n < efc_J.shape[1]:
                        efc_J[w, n, i1] = one
                        if o2 >= 0:
                            efc_J[w, n, jnt_dofadr[o2]] = -slope
                else:
                    pos = ten_length[w, o1] - tendon_length0[row(w, tendon_length0), o1]
                    weight = tendon_invweight0[row(w, tendon_invweight0), o1]
                    other = zero
                    if o2 >= 0:
                        other = ten_length[w, o2] - tendon_length0[row(w, tendon_length0), o2]
                        weight = weight + tendon_invweight0[row(w, tendon_invweight0), o2]
                    value, slope = joint_pair(w, r, e, eq_data, other)
                    pos = pos - value
                    if n < efc_J.shape[1]:
                        for s in range(ten_J_rowadr[o1], ten_J_rowadr[o1] + ten_J_rownnz[o1]):
                            efc_J[w, n, ten_J_colind[s]] = ten_J[w, s]
                        if o2 >= 0:
                            for s in range(ten_J_rowadr[o2], ten_J_rowadr[o2] + ten_J_rownnz[o2]):
                                k = ten_J_colind[s]
                                efc_J[w, n, k] = efc_J[w, n, k] - slope * ten_J[w, s]
                known = spec(pos, pos, zero, weight, zero, zero, zero, solref, solimp)
                put(w, n, EQUALITY, e, 1, known, efc_type, efc_id, efc_dim, efc_spec)
                n = n + 1
        nrow[w] = n

    return dict(equality=equality)
