"""Rows of dry friction and of limits, of joints and tendons (MuJoCo documentation, Computation, Friction, Limit)."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import row, types
from treadle.mujoco.constants import BALL, FREE
from treadle.mujoco.constraint.kinds import (
    FRICTION_DOF,
    FRICTION_TENDON,
    LIMIT_JOINT,
    LIMIT_TENDON,
    NO_FRICTIONLOSS,
    NO_LIMIT,
)
from treadle.mujoco.constraint.rows import writers

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_friction(real), **_limits(real)}


@cache
def _jacobian(real: Any) -> tuple[wp.Function, wp.Function]:
    """Kernel functions that write the Jacobian of one degree of freedom, and of a tendon, times a sign."""

    @wp.func
    def of_dof(w: int, n: int, i: int, sign: real, efc_J: wp.array3d(dtype=real)):
        if n < efc_J.shape[1]:
            for k in range(efc_J.shape[2]):
                efc_J[w, n, k] = real(0.0)
            efc_J[w, n, i] = sign

    @wp.func
    def of_tendon(
        w: int, n: int, j: int, sign: real, rownnz: ints, rowadr: ints, colind: ints, ten_J: wp.array2d(dtype=real),
        efc_J: wp.array3d(dtype=real),
    ):  # fmt: skip
        """Gives whether anything can change the tendon's length."""
        moves = False
        for e in range(rowadr[j], rowadr[j] + rownnz[j]):
            moves = moves or ten_J[w, e] != real(0.0)
        if moves and n < efc_J.shape[1]:
            for k in range(efc_J.shape[2]):
                efc_J[w, n, k] = real(0.0)
            for e in range(rowadr[j], rowadr[j] + rownnz[j]):
                efc_J[w, n, colind[e]] = sign * ten_J[w, e]
        return moves

    return of_dof, of_tendon


def _friction(real: Any) -> dict[str, wp.Kernel]:
    t, write = types(real), writers(real)
    vec2, vec5, numbers, spec, put = t.vec2, t.vec5, t.spec, write.spec, write.put
    of_dof, of_tendon = _jacobian(real)

    @wp.kernel
    def friction(
        opt_disableflags: int, dof_frictionloss: wp.array2d(dtype=real), dof_invweight0: wp.array2d(dtype=real),
        dof_solref: wp.array2d(dtype=vec2), dof_solimp: wp.array2d(dtype=vec5),
        tendon_frictionloss: wp.array2d(dtype=real), tendon_invweight0: wp.array2d(dtype=real),
        tendon_solref_fri: wp.array2d(dtype=vec2), tendon_solimp_fri: wp.array2d(dtype=vec5),
        ten_J_rownnz: ints, ten_J_rowadr: ints, ten_J_colind: ints, ten_J: wp.array2d(dtype=real),
        efc_type: ints2, efc_id: ints2, efc_dim: ints2, efc_spec: wp.array2d(dtype=numbers),
        efc_J: wp.array3d(dtype=real), nrow: wp.array(dtype=int),
    ):  # fmt: skip
        """Dry friction: forces that oppose motion, up to a bound."""
        w = wp.tid()
        zero = real(0.0)
        n = nrow[w]
        if (opt_disableflags & NO_FRICTIONLOSS) == 0:
            for i in range(dof_frictionloss.shape[1]):
                loss = dof_frictionloss[row(w, dof_frictionloss), i]
                if loss > zero:
                    of_dof(w, n, i, real(1.0), efc_J)
                    solref, solimp = dof_solref[row(w, dof_solref), i], dof_solimp[row(w, dof_solimp), i]
                    weight = dof_invweight0[row(w, dof_invweight0), i]
                    known = spec(zero, zero, zero, weight, loss, zero, solref, solimp)
                    put(w, n, FRICTION_DOF, i, 1, known, efc_type, efc_id, efc_dim, efc_spec)
                    n = n + 1
            for j in range(tendon_frictionloss.shape[1]):
                loss = tendon_frictionloss[row(w, tendon_frictionloss), j]
                if loss > zero:
                    solref = tendon_solref_fri[row(w, tendon_solref_fri), j]
                    solimp = tendon_solimp_fri[row(w, tendon_solimp_fri), j]
                    weight = tendon_invweight0[row(w, tendon_invweight0), j]
                    if of_tendon(w, n, j, real(1.0), ten_J_rownnz, ten_J_rowadr, ten_J_colind, ten_J, efc_J):
                        known = spec(zero, zero, zero, weight, loss, zero, solref, solimp)
                        put(w, n, FRICTION_TENDON, j, 1, known, efc_type, efc_id, efc_dim, efc_spec)
                        n = n + 1
        nrow[w] = n

    return dict(friction=friction)


@cache
def ball_turn(real: Any) -> wp.Function:
    """The kernel function ``turn_of`` for one precision."""
    vec3 = types(real).vec3

    @wp.func
    def turn_of(w: int, q: int, qpos: wp.array2d(dtype=real)):
        """Axis and angle, at most pi, of the rotation of a ball joint."""
        v = vec3(qpos[w, q + 1], qpos[w, q + 2], qpos[w, q + 3])
        sine = wp.length(v)
        axis = vec3(real(1.0), real(0.0), real(0.0))
        if sine > real(0.0):
            axis = v / sine
        angle = real(2.0) * wp.atan2(sine, qpos[w, q])
        if angle > real(wp.pi):
            angle = real(2.0 * wp.pi) - angle
            axis = -axis
        return axis, angle

    return turn_of


def _limits(real: Any) -> dict[str, wp.Kernel]:
    t, write = types(real), writers(real)
    vec2, vec5, numbers, spec, put = t.vec2, t.vec5, t.spec, write.spec, write.put
    of_dof, of_tendon = _jacobian(real)
    turn_of = ball_turn(real)

    @wp.kernel
    def limits(
        opt_disableflags: int, jnt_type: ints, jnt_limited: ints, jnt_qposadr: ints, jnt_dofadr: ints,
        jnt_range: wp.array2d(dtype=vec2), jnt_margin: wp.array2d(dtype=real),
        jnt_solref: wp.array2d(dtype=vec2), jnt_solimp: wp.array2d(dtype=vec5), dof_invweight0: wp.array2d(dtype=real),
        tendon_limited: ints, tendon_range: wp.array2d(dtype=vec2), tendon_margin: wp.array2d(dtype=real),
        tendon_solref_lim: wp.array2d(dtype=vec2), tendon_solimp_lim: wp.array2d(dtype=vec5),
        tendon_invweight0: wp.array2d(dtype=real), ten_J_rownnz: ints, ten_J_rowadr: ints, ten_J_colind: ints,
        ten_length: wp.array2d(dtype=real), ten_J: wp.array2d(dtype=real), qpos: wp.array2d(dtype=real),
        efc_type: ints2, efc_id: ints2, efc_dim: ints2, efc_spec: wp.array2d(dtype=numbers),
        efc_J: wp.array3d(dtype=real), nrow: wp.array(dtype=int),
    ):  # fmt: skip
        """Limits that are closer than their margin: of slides and hinges the lower, then the upper one."""
        w = wp.tid()
        zero = real(0.0)
        n = nrow[w]
        if (opt_disableflags & NO_LIMIT) == 0:
            for j in range(jnt_limited.shape[0]):
                if jnt_limited[j] != 0 and jnt_type[j] != FREE:
                    i = jnt_dofadr[j]
                    bounds, margin = jnt_range[row(w, jnt_range), j], jnt_margin[row(w, jnt_margin), j]
                    solref, solimp = jnt_solref[row(w, jnt_solref), j], jnt_solimp[row(w, jnt_solimp), j]
                    weight = dof_invweight0[row(w, dof_invweight0), i]
                    if jnt_type[j] == BALL:
                        axis, angle = turn_of(w, jnt_qposadr[j], qpos)
                        dist = wp.max(bounds[0], bounds[1]) - angle
                        if dist < margin:
                            of_dof(w, n, i, -axis[0], efc_J)
                            if n < efc_J.shape[1]:
                                efc_J[w, n, i + 1] = -axis[1]
                                efc_J[w, n, i + 2] = -axis[2]
                            known = spec(dist, dist, margin, weight, zero, zero, solref, solimp)
                            put(w, n, LIMIT_JOINT, j, 1, known, efc_type, efc_id, efc_dim, efc_spec)
                            n = n + 1
                    else:
                        for side in range(2):
                            sign = real(1 - 2 * side)
                            dist = sign * (qpos[w, jnt_qposadr[j]] - bounds[side])
                            if dist < margin:
                                of_dof(w, n, i, sign, efc_J)
                                known = spec(dist, dist, margin, weight, zero, zero, solref, solimp)
                                put(w, n, LIMIT_JOINT, j, 1, known, efc_type, efc_id, efc_dim, efc_spec)
                                n = n + 1
            for j in range(tendon_limited.shape[0]):
                if tendon_limited[j] != 0:
                    bounds, margin = tendon_range[row(w, tendon_range), j], tendon_margin[row(w, tendon_margin), j]
                    solref = tendon_solref_lim[row(w, tendon_solref_lim), j]
                    solimp = tendon_solimp_lim[row(w, tendon_solimp_lim), j]
                    weight = tendon_invweight0[row(w, tendon_invweight0), j]
                    for side in range(2):
                        sign = real(1 - 2 * side)
                        dist = sign * (ten_length[w, j] - bounds[side])
                        if dist < margin:
                            if of_tendon(w, n, j, sign, ten_J_rownnz, ten_J_rowadr, ten_J_colind, ten_J, efc_J):
                                known = spec(dist, dist, margin, weight, zero, zero, solref, solimp)
                                put(w, n, LIMIT_TENDON, j, 1, known, efc_type, efc_id, efc_dim, efc_spec)
                                n = n + 1
        nrow[w] = n

    return dict(limits=limits)
