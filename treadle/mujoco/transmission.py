"""How actuators act: their lengths, their moments, which are the lengths' derivatives, and their velocities."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, index, row, types
from treadle.mujoco.constants import (
    ACTUATION,
    BALL,
    FREE,
    TRN_BODY,
    TRN_JOINT,
    TRN_JOINTINPARENT,
    TRN_SITE,
    TRN_SLIDERCRANK,
    TRN_TENDON,
)

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_transmission(real), **_sites(real), **_adhesion(real), **_velocity(real)}


def _transmission(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    vec3, quat, spatial = t.vec3, t.quat, t.spatial
    unit_quat, quat_to_vel, quat_to_mat = a.unit_quat, a.quat_to_vel, a.quat_to_mat

    @wp.kernel(gang_vectors=2)
    def transmission(
        actuator_trntype: ints, actuator_trnid: ints2, actuator_outadr: ints, actuator_gear: wp.array2d(dtype=spatial),
        moment_rowadr: ints, moment_rownnz: ints, jnt_type: ints, jnt_qposadr: ints, ten_J_rowadr: ints,
        qpos: wp.array2d(dtype=real), ten_length: wp.array2d(dtype=real), ten_J: wp.array2d(dtype=real),
        actuator_length: wp.array2d(dtype=real), actuator_moment: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Lengths and moments of actuators on joints and tendons.

        A ball's length is its rotation along the gear; a free joint, and a body to which an actuator adheres, has none.
        """
        w = wp.tid()
        for u in range(actuator_trntype.shape[0]):
            kind, out = actuator_trntype[u], index(actuator_outadr[u])
            gear = actuator_gear[row(w, actuator_gear), out]
            e = index(moment_rowadr[out])
            if kind == TRN_JOINT or kind == TRN_JOINTINPARENT:
                j = index(actuator_trnid[u, 0])
                q = index(jnt_qposadr[j])
                length = real(0.0)
                if jnt_type[j] == FREE:
                    turning = vec3(gear[3], gear[4], gear[5])
                    if kind == TRN_JOINTINPARENT:
                        turn = unit_quat(quat(qpos[w, q + 3], qpos[w, q + 4], qpos[w, q + 5], qpos[w, q + 6]))
                        turning = wp.transpose(quat_to_mat(turn)) * turning
                    for k in range(3):
                        actuator_moment[w, e + k] = gear[k]
                        actuator_moment[w, e + 3 + k] = turning[k]
                elif jnt_type[j] == BALL:
                    turn = unit_quat(quat(qpos[w, q], qpos[w, q + 1], qpos[w, q + 2], qpos[w, q + 3]))
                    way = vec3(gear[0], gear[1], gear[2])
                    if kind == TRN_JOINTINPARENT:
                        way = wp.transpose(quat_to_mat(turn)) * way
                    length = wp.dot(way, quat_to_vel(turn))
                    for k in range(3):
                        actuator_moment[w, e + k] = way[k]
                else:
                    length = gear[0] * qpos[w, q]
                    actuator_moment[w, e] = gear[0]
                actuator_length[w, out] = length
            elif kind == TRN_TENDON:
                k = index(actuator_trnid[u, 0])
                actuator_length[w, out] = gear[0] * ten_length[w, k]
                first = index(ten_J_rowadr[k])
                for x in range(moment_rownnz[out]):
                    actuator_moment[w, e + x] = gear[0] * ten_J[w, first + x]
            elif kind == TRN_BODY:
                actuator_length[w, out] = real(0.0)
                for x in range(moment_rownnz[out]):
                    actuator_moment[w, e + x] = real(0.0)

    return dict(transmission=transmission)


def _sites(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    vec3, quat, mat33, spatial = t.vec3, t.quat, t.mat33, t.spatial
    rotation, translation, column = a.rotation, a.translation, a.column
    mul_quat, sub_quat = a.mul_quat, a.sub_quat

    @wp.kernel
    def site_transmission(
        actuator_trntype: ints, actuator_trnid: ints2, actuator_outadr: ints, actuator_gear: wp.array2d(dtype=spatial),
        actuator_cranklength: wp.array2d(dtype=real), moment_rowadr: ints, moment_rownnz: ints, moment_colind: ints,
        body_rootid: ints, body_isdofancestor: ints2, site_bodyid: ints, site_quat: wp.array2d(dtype=quat),
        xquat: wp.array2d(dtype=quat), site_xpos: wp.array2d(dtype=vec3), site_xmat: wp.array2d(dtype=mat33),
        subtree_com: wp.array2d(dtype=vec3), cdof: wp.array2d(dtype=spatial),
        actuator_length: wp.array2d(dtype=real), actuator_moment: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Lengths and moments of actuators on sites and of slider-cranks.

        A site without reference has no length; with one, the length is its position and rotation there along the gear.
        A slider-crank's is the place of the slider: ``a·v - sqrt((a·v)² + r² - v·v)`` with the slider's axis a, the rod
        of length r and the way v from slider to crank.
        """
        w = wp.tid()
        zero = real(0.0)
        for u in range(actuator_trntype.shape[0]):
            kind, out = actuator_trntype[u], actuator_outadr[u]
            if kind == TRN_SITE or kind == TRN_SLIDERCRANK:
                gear = actuator_gear[row(w, actuator_gear), out]
                s = actuator_trnid[u, 0]
                r = actuator_trnid[u, 1]
                b = site_bodyid[s]
                base = wp.where(r >= 0, site_bodyid[wp.max(r, 0)], 0)
                arm = site_xpos[w, s] - subtree_com[w, body_rootid[b]]
                base_arm = vec3(zero, zero, zero)
                force = site_xmat[w, s] * vec3(gear[0], gear[1], gear[2])
                torque = site_xmat[w, s] * vec3(gear[3], gear[4], gear[5])
                axis = vec3(zero, zero, zero)
                by_axis = vec3(zero, zero, zero)
                length = zero
                if r >= 0:
                    base_arm = site_xpos[w, r] - subtree_com[w, body_rootid[base]]
                    away = site_xpos[w, s] - site_xpos[w, r]
                    if kind == TRN_SITE:
                        force = site_xmat[w, r] * vec3(gear[0], gear[1], gear[2])
                        torque = site_xmat[w, r] * vec3(gear[3], gear[4], gear[5])
                        length = wp.dot(away, force)
                        if gear[3] != zero or gear[4] != zero or gear[5] != zero:
                            turn = mul_quat(xquat[w, b], site_quat[row(w, site_quat), s])
                            from_turn = mul_quat(xquat[w, base], site_quat[row(w, site_quat), r])
                            length = length + wp.dot(sub_quat(turn, from_turn), vec3(gear[3], gear[4], gear[5]))
                    else:
                        rod = actuator_cranklength[row(w, actuator_cranklength), u]
                        axis = column(site_xmat[w, r], 2)
                        along = wp.dot(away, axis)
                        square = along * along + rod * rod - wp.dot(away, away)
                        length = along * gear[0]
                        force = axis * gear[0]
                        by_axis = away * gear[0]
                        if square > zero:
                            root = wp.sqrt(square)
                            ratio = real(1.0) - along / root
                            length = (along - root) * gear[0]
                            force = (axis * ratio + away / root) * gear[0]
                            by_axis = away * (ratio * gear[0])
                        torque = vec3(zero, zero, zero)
                for e in range(moment_rowadr[out], moment_rowadr[out] + moment_rownnz[out]):
                    i = moment_colind[e]
                    turning = rotation(cdof[w, i])
                    going = translation(cdof[w, i])
                    on = real(body_isdofancestor[b, i])
                    under = zero
                    if r >= 0:
                        under = real(body_isdofancestor[base, i])
                    moment = on * wp.dot(going + wp.cross(turning, arm), force)
                    moment = moment - under * wp.dot(going + wp.cross(turning, base_arm), force)
                    moment = moment + (on - under) * wp.dot(turning, torque)
                    actuator_moment[w, e] = moment + under * wp.dot(wp.cross(turning, axis), by_axis)
                actuator_length[w, out] = length

    return dict(site_transmission=site_transmission)


def _adhesion(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    vec3, mat33, spatial = t.vec3, t.mat33, t.spatial
    rotation, translation = a.rotation, a.translation

    @wp.kernel
    def adhesion_moment(
        actuator_trntype: ints, actuator_trnid: ints2, actuator_outadr: ints, moment_rowadr: ints, moment_rownnz: ints,
        geom_bodyid: ints, body_rootid: ints, body_isdofancestor: ints2, ncon: ints,
        contact_geom1: ints2, contact_geom2: ints2, contact_pos: wp.array2d(dtype=vec3),
        contact_frame: wp.array2d(dtype=mat33), subtree_com: wp.array2d(dtype=vec3), cdof: wp.array2d(dtype=spatial),
        actuator_moment: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Moments of actuators by which a body adheres: the mean over its contacts of pulling along the normal."""
        w = wp.tid()
        for u in range(actuator_trntype.shape[0]):
            if actuator_trntype[u] == TRN_BODY:
                out = actuator_outadr[u]
                first, count = moment_rowadr[out], moment_rownnz[out]
                met = int(0)
                for c in range(ncon[w]):
                    b1 = geom_bodyid[contact_geom1[w, c]]
                    b2 = geom_bodyid[contact_geom2[w, c]]
                    if b1 == actuator_trnid[u, 0] or b2 == actuator_trnid[u, 0]:
                        met = met + 1
                        frame = contact_frame[w, c]
                        normal = vec3(frame[0, 0], frame[0, 1], frame[0, 2])
                        arm1 = contact_pos[w, c] - subtree_com[w, body_rootid[b1]]
                        arm2 = contact_pos[w, c] - subtree_com[w, body_rootid[b2]]
                        for i in range(count):
                            turning = rotation(cdof[w, i])
                            going = translation(cdof[w, i])
                            on2 = real(body_isdofancestor[b2, i]) * wp.dot(normal, going + wp.cross(turning, arm2))
                            on1 = real(body_isdofancestor[b1, i]) * wp.dot(normal, going + wp.cross(turning, arm1))
                            actuator_moment[w, first + i] = actuator_moment[w, first + i] + (on2 - on1)
                if met > 0:
                    for i in range(count):
                        actuator_moment[w, first + i] = actuator_moment[w, first + i] / real(-met)

    return dict(adhesion_moment=adhesion_moment)


def _velocity(real: Any) -> dict[str, wp.Kernel]:
    @wp.kernel(gang_vectors=2)
    def actuator_vel(
        opt_disableflags: int, moment_rowadr: ints, moment_rownnz: ints, moment_colind: ints,
        actuator_moment: wp.array2d(dtype=real), qvel: wp.array2d(dtype=real),
        actuator_velocity: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Velocity of each actuator: its moments times the velocities of joints; 0 if actuators are switched off."""
        w = wp.tid()
        for u in range(moment_rowadr.shape[0]):
            speed = real(0.0)
            first = index(moment_rowadr[u])
            for e in range(first, first + moment_rownnz[u]):
                speed = speed + actuator_moment[w, e] * qvel[w, index(moment_colind[e])]
            if (opt_disableflags & ACTUATION) != 0:
                speed = real(0.0)
            actuator_velocity[w, u] = speed

    return dict(actuator_vel=actuator_vel)
