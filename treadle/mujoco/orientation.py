"""Servos of orientations: one actuator with three outputs that turns a ball, or one site against another.

The force is ``kp log(q* target) - kv w`` in the frame that turns, with the relative orientation q and its velocity w:
the rotation vector to the target, whose length is the angle of the shortest way (MuJoCo documentation, XML reference,
actuator/orientation). The target is a rotation vector or a quaternion.
"""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.actuation import servo
from treadle.mujoco.algebra import algebra, row, types
from treadle.mujoco.constants import ACTUATION, CHART_QUAT, DYN_INTEGRATOR, MINVAL, TRN_SO3
from treadle.mujoco.derivative import pattern

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_transmission(real), **_force(real), **_advance(real), **_derivative(real)}


def _transmission(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    quat, mat33, spatial = t.quat, t.mat33, t.spatial
    unit_quat, mul_quat, conj_quat, quat_to_vel, rotation = (
        a.unit_quat, a.mul_quat, a.conj_quat, a.quat_to_vel, a.rotation,
    )  # fmt: skip

    @wp.kernel
    def orientation(
        actuator_trntype: ints, actuator_trnid: ints2, actuator_outadr: ints, moment_rowadr: ints,
        moment_rownnz: ints, moment_colind: ints, jnt_qposadr: ints, body_isdofancestor: ints2, site_bodyid: ints,
        site_quat: wp.array2d(dtype=quat), xquat: wp.array2d(dtype=quat), site_xmat: wp.array2d(dtype=mat33),
        cdof: wp.array2d(dtype=spatial), qpos: wp.array2d(dtype=real), so3_quat: wp.array2d(dtype=quat),
        actuator_length: wp.array2d(dtype=real), actuator_moment: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Relative orientations, their rotation vectors, and how these change with each degree of freedom."""
        w = wp.tid()
        for u in range(actuator_trntype.shape[0]):
            if actuator_trntype[u] == TRN_SO3:
                out, s, r = actuator_outadr[u], actuator_trnid[u, 0], actuator_trnid[u, 1]
                q = quat()
                if r < 0:
                    k = jnt_qposadr[s]
                    q = unit_quat(quat(qpos[w, k], qpos[w, k + 1], qpos[w, k + 2], qpos[w, k + 3]))
                    for c in range(3):
                        actuator_moment[w, moment_rowadr[out + c]] = real(1.0)
                else:
                    b, base = site_bodyid[s], site_bodyid[r]
                    turn = mul_quat(xquat[w, b], site_quat[row(w, site_quat), s])
                    q = mul_quat(conj_quat(mul_quat(xquat[w, base], site_quat[row(w, site_quat), r])), turn)
                    for x in range(moment_rownnz[out]):
                        i = moment_colind[moment_rowadr[out] + x]
                        moves = real(body_isdofancestor[b, i] - body_isdofancestor[base, i])
                        turning = wp.transpose(site_xmat[w, s]) * rotation(cdof[w, i])
                        for c in range(3):
                            actuator_moment[w, moment_rowadr[out + c] + x] = moves * turning[c]
                so3_quat[w, u] = q
                length = quat_to_vel(q)
                for c in range(3):
                    actuator_length[w, out + c] = length[c]

    return dict(orientation=orientation)


def _force(real: Any) -> dict[str, wp.Kernel]:
    t, a, f = types(real), algebra(real), servo(real)
    vec2, vec3, quat = t.vec2, t.vec3, t.quat
    unit_quat, turn_quat, sub_quat, control, is_off = a.unit_quat, a.turn_quat, a.sub_quat, f.control, f.is_off

    @wp.func
    def turn_by(v: vec3):
        """The rotation of a rotation vector."""
        angle = wp.length(v)
        axis = vec3(real(1.0), real(0.0), real(0.0))
        if angle > real(MINVAL):
            axis = v / angle
        return turn_quat(axis, angle)

    @wp.kernel
    def orientation_force(
        opt_disableflags: int, opt_disableactuator: int, opt_timestep: wp.array(dtype=real), actuator_group: ints,
        actuator_trntype: ints, actuator_dyntype: ints, actuator_outadr: ints, actuator_ctrladr: ints,
        actuator_ctrlspec: ints, actuator_actadr: ints, actuator_actearly: ints, actuator_actlimited: ints,
        actuator_actrange: wp.array2d(dtype=vec2), actuator_forcelimited: ints,
        actuator_forcerange: wp.array2d(dtype=vec2), actuator_gainprm: wp.array3d(dtype=real),
        actuator_biasprm: wp.array3d(dtype=real), ctrl_taken: wp.array2d(dtype=real), act: wp.array2d(dtype=real),
        act_dot: wp.array2d(dtype=real), so3_quat: wp.array2d(dtype=quat), actuator_velocity: wp.array2d(dtype=real),
        actuator_force: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Rates of set points, and torques towards them, whose length is clamped."""
        w = wp.tid()
        h = opt_timestep[row(w, opt_timestep)]
        for u in range(actuator_trntype.shape[0]):
            if actuator_trntype[u] == TRN_SO3:
                out, c, n = actuator_outadr[u], actuator_ctrladr[u], actuator_actadr[u]
                off = (opt_disableflags & ACTUATION) != 0
                given = vec3()
                for k in range(3):
                    given[k] = control(w, c + k, ctrl_taken)
                target = turn_by(given)
                if actuator_ctrlspec[u] == CHART_QUAT:
                    last = control(w, c + 3, ctrl_taken)
                    target = quat(real(1.0), real(0.0), real(0.0), real(0.0))
                    if wp.dot(given, given) + last * last > real(MINVAL * MINVAL):
                        target = unit_quat(quat(given[0], given[1], given[2], last))
                if n >= 0:
                    point, limit = vec3(), actuator_actrange[row(w, actuator_actrange), u]
                    for k in range(3):
                        rate = wp.where(off or actuator_dyntype[u] != DYN_INTEGRATOR, real(0.0), given[k])
                        act_dot[w, n + k] = rate
                        point[k] = act[w, n + k]
                        if actuator_actearly[u] != 0:
                            point[k] = point[k] + h * rate
                            if actuator_actlimited[u] != 0:
                                point[k] = wp.clamp(point[k], limit[0], limit[1])
                    target = turn_by(point)
                speed = vec3(actuator_velocity[w, out], actuator_velocity[w, out + 1], actuator_velocity[w, out + 2])
                kp = actuator_gainprm[row(w, actuator_gainprm), u, 0]
                force = sub_quat(target, so3_quat[w, u]) * kp + speed * actuator_biasprm[row(w, actuator_biasprm), u, 2]
                if actuator_forcelimited[u] != 0:
                    most, size = actuator_forcerange[row(w, actuator_forcerange), u][1], wp.length(force)
                    if size > most:
                        force = force * (most / size)
                if is_off(actuator_group[u], opt_disableactuator) or off:
                    force = vec3()
                for k in range(3):
                    actuator_force[w, out + k] = force[k]

    return dict(orientation_force=orientation_force)


def _advance(real: Any) -> dict[str, wp.Kernel]:
    vec2, is_off = types(real).vec2, servo(real).is_off

    @wp.kernel
    def advance_orientation(
        opt_disableactuator: int, opt_timestep: wp.array(dtype=real), actuator_group: ints, actuator_trntype: ints,
        actuator_actadr: ints, actuator_actlimited: ints, actuator_actrange: wp.array2d(dtype=vec2),
        act_dot: wp.array2d(dtype=real), act: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Set points after the step."""
        w = wp.tid()
        h = opt_timestep[row(w, opt_timestep)]
        for u in range(actuator_trntype.shape[0]):
            n = actuator_actadr[u]
            if actuator_trntype[u] == TRN_SO3 and n >= 0 and not is_off(actuator_group[u], opt_disableactuator):
                limit = actuator_actrange[row(w, actuator_actrange), u]
                for a in range(n, n + 3):
                    act[w, a] = act[w, a] + h * act_dot[w, a]
                    if actuator_actlimited[u] != 0:
                        act[w, a] = wp.clamp(act[w, a], limit[0], limit[1])

    return dict(advance_orientation=advance_orientation)


def _derivative(real: Any) -> dict[str, wp.Kernel]:
    vec2, add_outer = types(real).vec2, pattern(real).add_outer
    almost = real(1.0 - 1e-12 if real is wp.float64 else 1.0 - 1e-5)  # scaled forces reach the limit but for rounding

    @wp.kernel
    def deriv_orientation(
        actuator_trntype: ints, actuator_outadr: ints, actuator_forcelimited: ints,
        actuator_forcerange: wp.array2d(dtype=vec2), actuator_biasprm: wp.array3d(dtype=real), moment_rowadr: ints,
        moment_rownnz: ints, moment_colind: ints, actuator_moment: wp.array2d(dtype=real),
        actuator_force: wp.array2d(dtype=real), D_rowadr: ints, D_rownnz: ints, D_colind: ints,
        qDeriv: wp.array2d(dtype=real),
    ):  # fmt: skip
        """The damping of servos of orientations whose torque is below its limit."""
        w = wp.tid()
        for u in range(actuator_trntype.shape[0]):
            if actuator_trntype[u] == TRN_SO3:
                out, slope, square = actuator_outadr[u], actuator_biasprm[row(w, actuator_biasprm), u, 2], real(0.0)
                for k in range(3):
                    square = square + actuator_force[w, out + k] * actuator_force[w, out + k]
                if actuator_forcelimited[u] != 0:
                    most = actuator_forcerange[row(w, actuator_forcerange), u][1]
                    if wp.sqrt(square) >= most * almost:
                        slope = real(0.0)
                if slope != real(0.0):
                    for k in range(3):
                        add_outer(w, moment_rowadr[out + k], moment_rownnz[out + k], moment_colind, actuator_moment,
                                  slope, D_rowadr, D_rownnz, D_colind, qDeriv)  # fmt: skip

    return dict(deriv_orientation=deriv_orientation)
