"""Rows of equality constraints: connect, weld, joint, tendon (MuJoCo documentation, Computation, Equality)."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, row, types
from treadle.mujoco.constraint.jacobian import jacobians
from treadle.mujoco.constraint.kinds import CONNECT, EQUALITY, JOINT, SITE, WELD
from treadle.mujoco.constraint.rows import writers

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {"equality": _equality(real), "equality_drift": _drift(real)}


@cache
def turning(real: Any) -> SimpleNamespace:
    """What a weld needs of quaternions, for one precision: ``twist``, ``turned``, ``shift``."""
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
def frames_of(real: Any) -> wp.Function:
    """The kernel function ``frames``, for one precision."""
    t, mul_quat = types(real), algebra(real).mul_quat
    vec3, quat, mat33 = t.vec3, t.quat, t.mat33

    @wp.func
    def frames(
        w: int, e: int, weld: bool, eq_obj1id: ints, eq_obj2id: ints, eq_objtype: ints, eq_data: wp.array3d(dtype=real),
        site_bodyid: ints, site_quat: wp.array2d(dtype=quat), xpos: wp.array2d(dtype=vec3),
        xquat: wp.array2d(dtype=quat), xmat: wp.array2d(dtype=mat33), site_xpos: wp.array2d(dtype=vec3),
    ):  # fmt: skip
        """The two bodies of a connect or a weld, the points that are to coincide, and the frames."""
        r = row(w, eq_data)
        b1, b2 = eq_obj1id[e], eq_obj2id[e]
        quat1 = quat(real(1.0), real(0.0), real(0.0), real(0.0))
        quat2 = quat1
        p1 = vec3(eq_data[r, e, 0], eq_data[r, e, 1], eq_data[r, e, 2])
        p2 = vec3(eq_data[r, e, 3], eq_data[r, e, 4], eq_data[r, e, 5])
        if eq_objtype[e] == SITE:
            s1, s2 = b1, b2
            b1, b2 = site_bodyid[s1], site_bodyid[s2]
            p1, p2 = site_xpos[w, s1], site_xpos[w, s2]
            quat1 = mul_quat(xquat[w, b1], site_quat[row(w, site_quat), s1])
            quat2 = mul_quat(xquat[w, b2], site_quat[row(w, site_quat), s2])
        else:
            if weld:  # its data begin with the point of the second body
                p1, p2 = p2, p1
                relative = quat(eq_data[r, e, 6], eq_data[r, e, 7], eq_data[r, e, 8], eq_data[r, e, 9])
                quat1 = mul_quat(xquat[w, b1], relative)
                quat2 = xquat[w, b2]
            p1 = xpos[w, b1] + xmat[w, b1] * p1
            p2 = xpos[w, b2] + xmat[w, b2] * p2
        return b1, b2, p1, p2, quat1, quat2

    return frames


@cache
def _spatial(real: Any) -> wp.Function:
    """The kernel function that writes the rows of a connect or a weld and gives the new cursor."""
    t, write, welds = types(real), writers(real), turning(real)
    vec2, vec3, vec5, quat, spatial, numbers = t.vec2, t.vec3, t.vec5, t.quat, t.spatial, t.spec
    rotation, at_point = algebra(real).rotation, jacobians(real).at_point
    spec, put, twist, turned = write.spec, write.put, welds.twist, welds.turned

    @wp.func
    def spatial_rows(
        w: int, n: int, e: int, b1: int, b2: int, p1: vec3, p2: vec3, weld: bool, torque: real, quat1: quat,
        quat2: quat, weight: vec2, solref: vec2, solimp: vec5, body_rootid: ints, body_isdofancestor: ints2,
        subtree_com: wp.array2d(dtype=vec3), cdof: wp.array2d(dtype=spatial), efc_type: ints2, efc_id: ints2,
        efc_dim: ints2, efc_spec: wp.array2d(dtype=numbers), efc_J: wp.array3d(dtype=real),
    ):  # fmt: skip
        zero = real(0.0)
        room = efc_J.shape[1]
        offset1, offset2 = p1 - subtree_com[w, body_rootid[b1]], p2 - subtree_com[w, body_rootid[b2]]
        moved = int(0)
        for k in range(efc_J.shape[2]):
            jp = vec3(zero, zero, zero)
            jr = vec3(zero, zero, zero)
            motion = cdof[w, k]
            if body_isdofancestor[b1, k] != 0:
                jp = at_point(motion, offset1)
                jr = rotation(motion)
            if body_isdofancestor[b2, k] != 0:
                jp = jp - at_point(motion, offset2)
                jr = jr - rotation(motion)
            moved = moved + body_isdofancestor[b1, k] + body_isdofancestor[b2, k]
            for i in range(3):
                if n + i < room:
                    efc_J[w, n + i, k] = jp[i]
            if weld:
                jr = torque * turned(quat1, quat2, jr)
                for i in range(3):
                    if n + 3 + i < room:
                        efc_J[w, n + 3 + i, k] = jr[i]
        if moved > 0:  # otherwise neither body can move
            gap = p1 - p2
            turn = vec3(zero, zero, zero)
            if weld:
                turn = torque * twist(quat1, quat2)
            norm = wp.sqrt(wp.dot(gap, gap) + wp.dot(turn, turn))
            for i in range(3):
                known = spec(gap[i], norm, zero, weight[0], zero, zero, solref, solimp)
                put(w, n + i, EQUALITY, e, 1, known, efc_type, efc_id, efc_dim, efc_spec)
            n = n + 3
            if weld:
                for i in range(3):
                    known = spec(turn[i], norm, zero, weight[1], zero, zero, solref, solimp)
                    put(w, n + i, EQUALITY, e, 1, known, efc_type, efc_id, efc_dim, efc_spec)
                n = n + 3
        return n

    return spatial_rows


@cache
def coupled(real: Any) -> SimpleNamespace:
    """The kernel functions ``polynomial`` and ``tendon_pair`` of coupled joints and tendons, for one precision."""

    @wp.func
    def polynomial(r: int, e: int, eq_data: wp.array3d(dtype=real), x: real):
        """The polynomial that couples two joints or tendons, and its derivative, at ``x``."""
        a1, a2, a3, a4 = eq_data[r, e, 1], eq_data[r, e, 2], eq_data[r, e, 3], eq_data[r, e, 4]
        value = eq_data[r, e, 0] + x * (a1 + x * (a2 + x * (a3 + x * a4)))
        return value, a1 + x * (real(2.0) * a2 + x * (real(3.0) * a3 + x * (real(4.0) * a4)))

    @wp.func
    def tendon_pair(
        w: int, n: int, first: int, second: int, slope: real, rownnz: ints, rowadr: ints, colind: ints,
        ten_J: wp.array2d(dtype=real), efc_J: wp.array3d(dtype=real),
    ):  # fmt: skip
        """Write the Jacobian of one tendon, less ``slope`` times that of another, where there is room for it.

        Gives whether anything moves them.
        """
        moves = True
        if n < efc_J.shape[1]:
            for s in range(rowadr[first], rowadr[first] + rownnz[first]):
                efc_J[w, n, colind[s]] = ten_J[w, s]
            if second >= 0:
                for s in range(rowadr[second], rowadr[second] + rownnz[second]):
                    k = colind[s]
                    efc_J[w, n, k] = efc_J[w, n, k] - slope * ten_J[w, s]
            moves = False
            for k in range(efc_J.shape[2]):
                moves = moves or efc_J[w, n, k] != real(0.0)
        return moves

    return SimpleNamespace(polynomial=polynomial, tendon_pair=tendon_pair)


def _equality(real: Any) -> wp.Kernel:
    t, write, pairs = types(real), writers(real), coupled(real)
    spatial_rows, frames = _spatial(real), frames_of(real)
    vec2, vec3, vec5, quat, mat33, spatial = t.vec2, t.vec3, t.vec5, t.quat, t.mat33, t.spatial
    numbers, spec, put, polynomial, tendon_pair = (
        t.spec, write.spec, write.put, pairs.polynomial, pairs.tendon_pair,
    )  # fmt: skip

    @wp.kernel
    def equality(
        eq_type: ints, eq_obj1id: ints, eq_obj2id: ints, eq_objtype: ints, eq_solref: wp.array2d(dtype=vec2),
        eq_solimp: wp.array2d(dtype=vec5), eq_data: wp.array3d(dtype=real), body_rootid: ints,
        body_invweight0: wp.array2d(dtype=vec2), body_isdofancestor: ints2, jnt_dofadr: ints, jnt_qposadr: ints,
        dof_invweight0: wp.array2d(dtype=real), site_bodyid: ints, site_quat: wp.array2d(dtype=quat),
        ten_J_rownnz: ints, ten_J_rowadr: ints, ten_J_colind: ints, tendon_length0: wp.array2d(dtype=real),
        tendon_invweight0: wp.array2d(dtype=real), qpos0: wp.array2d(dtype=real), qpos: wp.array2d(dtype=real),
        eq_active: ints2, xpos: wp.array2d(dtype=vec3), xquat: wp.array2d(dtype=quat), xmat: wp.array2d(dtype=mat33),
        site_xpos: wp.array2d(dtype=vec3), subtree_com: wp.array2d(dtype=vec3), cdof: wp.array2d(dtype=spatial),
        ten_length: wp.array2d(dtype=real), ten_J: wp.array2d(dtype=real), eq_efc_address: ints2,
        efc_type: ints2, efc_id: ints2, efc_dim: ints2, efc_spec: wp.array2d(dtype=numbers),
        efc_J: wp.array3d(dtype=real), nrow: ints,
    ):  # fmt: skip
        """Rows of all equality constraints that are active, in the order of the model."""
        w = wp.tid()
        zero = real(0.0)
        n = nrow[w]
        for e in range(eq_type.shape[0]):
            r, o1, o2 = row(w, eq_data), eq_obj1id[e], eq_obj2id[e]
            solref, solimp = eq_solref[row(w, eq_solref), e], eq_solimp[row(w, eq_solimp), e]
            before = n
            if eq_active[w, e] != 0:
                if eq_type[e] == CONNECT or eq_type[e] == WELD:
                    weld = eq_type[e] == WELD
                    b1, b2, p1, p2, quat1, quat2 = frames(
                        w, e, weld, eq_obj1id, eq_obj2id, eq_objtype, eq_data, site_bodyid, site_quat, xpos, xquat,
                        xmat, site_xpos,
                    )  # fmt: skip
                    weights = row(w, body_invweight0)
                    weight = body_invweight0[weights, b1] + body_invweight0[weights, b2]
                    n = spatial_rows(
                        w, n, e, b1, b2, p1, p2, weld, eq_data[r, e, 10], quat1, quat2, weight, solref, solimp,
                        body_rootid, body_isdofancestor, subtree_com, cdof, efc_type, efc_id, efc_dim, efc_spec, efc_J,
                    )  # fmt: skip
                else:
                    if n < efc_J.shape[1]:
                        for k in range(efc_J.shape[2]):
                            efc_J[w, n, k] = zero
                    other = zero
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
                    pos = pos - value
                    moves = True
                    if eq_type[e] != JOINT:
                        moves = tendon_pair(
                            w, n, o1, o2, slope, ten_J_rownnz, ten_J_rowadr, ten_J_colind, ten_J, efc_J
                        )  # fmt: skip
                    elif n < efc_J.shape[1]:
                        efc_J[w, n, jnt_dofadr[o1]] = real(1.0)
                        if o2 >= 0:
                            efc_J[w, n, jnt_dofadr[o2]] = -slope
                    if moves:
                        known = spec(pos, pos, zero, weight1, zero, zero, solref, solimp)
                        put(w, n, EQUALITY, e, 1, known, efc_type, efc_id, efc_dim, efc_spec)
                        n = n + 1
            eq_efc_address[w, e] = wp.where(n > before, before, -1)
        nrow[w] = n

    return equality


@cache
def drift_of(real: Any) -> wp.Function:
    """The kernel function ``drift``, for one precision."""
    t, jac = types(real), jacobians(real)
    vec3, quat, spatial, rotation = t.vec3, t.quat, t.spatial, algebra(real).rotation
    at_point, motion_rate, rate_at_point = jac.at_point, jac.motion_rate, jac.rate_at_point
    shift = turning(real).shift

    @wp.func
    def drift(
        w: int, e: int, num: int, first: int, b1: int, b2: int, offset1: vec3, offset2: vec3, weld: bool, torque: real,
        quat1: quat, quat2: quat, dofs: ints, body_isdofancestor: ints2, jnt_type: ints, jnt_dofadr: ints,
        dof_jntid: ints, dof_bodyid: ints, cdof: wp.array2d(dtype=spatial), cdof_dot: wp.array2d(dtype=spatial),
        cvel: wp.array2d(dtype=spatial), qvel: wp.array2d(dtype=real),
    ):  # fmt: skip
        """What velocities alone do: the rate of change of the Jacobian times qvel, of the gap and of the twist.

        The degrees of freedom are ``num`` of the list ``dofs`` from ``first`` on.
        """
        v1, v2 = at_point(cvel[w, b1], offset1), at_point(cvel[w, b2], offset2)
        gone, spin, turn = vec3(), vec3(), vec3()
        for m in range(num):
            k = dofs[first + m]
            motion, speed = cdof[w, k], qvel[w, k]
            rate = motion_rate(w, k, jnt_type, jnt_dofadr, dof_jntid, dof_bodyid, cdof, cdof_dot, cvel)
            if body_isdofancestor[b1, k] != 0:
                gone = gone + speed * rate_at_point(motion, rate, offset1, v1)
                spin = spin + speed * rotation(rate)
            if body_isdofancestor[b2, k] != 0:
                gone = gone - speed * rate_at_point(motion, rate, offset2, v2)
                spin = spin - speed * rotation(rate)
        if weld:
            turn = torque * shift(quat1, quat2, rotation(cvel[w, b1]), rotation(cvel[w, b2]), spin)
        return gone, turn

    return drift


def _drift(real: Any) -> wp.Kernel:
    t, jac, frames = types(real), jacobians(real), frames_of(real)
    vec3, quat, mat33, spatial, rotation = t.vec3, t.quat, t.mat33, t.spatial, algebra(real).rotation
    at_point, motion_rate, rate_at_point = jac.at_point, jac.motion_rate, jac.rate_at_point
    shift = turning(real).shift

    @wp.kernel
    def equality_drift(
        eq_type: ints, eq_obj1id: ints, eq_obj2id: ints, eq_objtype: ints, eq_data: wp.array3d(dtype=real),
        body_rootid: ints, body_isdofancestor: ints2, jnt_type: ints, jnt_dofadr: ints, dof_jntid: ints,
        dof_bodyid: ints, site_bodyid: ints, site_quat: wp.array2d(dtype=quat), xpos: wp.array2d(dtype=vec3),
        xquat: wp.array2d(dtype=quat), xmat: wp.array2d(dtype=mat33), site_xpos: wp.array2d(dtype=vec3),
        subtree_com: wp.array2d(dtype=vec3), cdof: wp.array2d(dtype=spatial), cdof_dot: wp.array2d(dtype=spatial),
        cvel: wp.array2d(dtype=spatial), qvel: wp.array2d(dtype=real), eq_efc_address: ints2,
        efc_aref: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Take off the reference what velocities alone do: the rate of change of the Jacobian times qvel."""
        w = wp.tid()
        zero = real(0.0)
        for e in range(eq_type.shape[0]):
            n = eq_efc_address[w, e]
            if n >= 0 and (eq_type[e] == CONNECT or eq_type[e] == WELD):
                weld = eq_type[e] == WELD
                b1, b2, p1, p2, quat1, quat2 = frames(
                    w, e, weld, eq_obj1id, eq_obj2id, eq_objtype, eq_data, site_bodyid, site_quat, xpos, xquat, xmat,
                    site_xpos,
                )  # fmt: skip
                offset1, offset2 = p1 - subtree_com[w, body_rootid[b1]], p2 - subtree_com[w, body_rootid[b2]]
                v1, v2 = at_point(cvel[w, b1], offset1), at_point(cvel[w, b2], offset2)
                drift = vec3(zero, zero, zero)
                spin = vec3(zero, zero, zero)
                for k in range(qvel.shape[1]):
                    on1, on2 = body_isdofancestor[b1, k] != 0, body_isdofancestor[b2, k] != 0
                    if on1 or on2:
                        motion, speed = cdof[w, k], qvel[w, k]
                        rate = motion_rate(w, k, jnt_type, jnt_dofadr, dof_jntid, dof_bodyid, cdof, cdof_dot, cvel)
                        if on1:
                            drift = drift + speed * rate_at_point(motion, rate, offset1, v1)
                            spin = spin + speed * rotation(rate)
                        if on2:
                            drift = drift - speed * rate_at_point(motion, rate, offset2, v2)
                            spin = spin - speed * rotation(rate)
                for i in range(3):
                    if n + i < efc_aref.shape[1]:
                        efc_aref[w, n + i] = efc_aref[w, n + i] - drift[i]
                if weld:
                    turn = shift(quat1, quat2, rotation(cvel[w, b1]), rotation(cvel[w, b2]), spin)
                    turn = eq_data[row(w, eq_data), e, 10] * turn
                    for i in range(3):
                        if n + 3 + i < efc_aref.shape[1]:
                            efc_aref[w, n + 3 + i] = efc_aref[w, n + 3 + i] - turn[i]

    return equality_drift
