"""How smooth forces change with velocities, and the systems of equations of the implicit integrators.

The pattern is the full one of kinematic trees (``D_…``): each degree of freedom with its ancestors and descendants.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.actuation import servo
from treadle.mujoco.algebra import algebra, row, types
from treadle.mujoco.constants import (
    BALL,
    BIAS_AFFINE,
    DAMPER,
    DYN_NONE,
    FREE,
    GAIN_AFFINE,
    GAIN_MUSCLE,
    TRN_JOINT,
    TRN_JOINTINPARENT,
    TRN_TENDON,
)
from treadle.mujoco.drivetrain import drivetrain
from treadle.mujoco.muscle import muscle

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_passive(real), **_actuators(real), **_bias(real)}


@cache
def pattern(real: Any) -> SimpleNamespace:
    """``add_outer``, a kernel function for one precision."""
    numbers = wp.array2d(dtype=real)

    @wp.func
    def add_outer(
        w: int, first: int, count: int, colind: ints, J: numbers, scale: real, D_rowadr: ints, D_rownnz: ints,
        D_colind: ints, D: numbers,
    ):  # fmt: skip
        """Add ``scale J' J`` for one row of a sparse Jacobian, as far as the pattern of ``D`` goes."""
        for x in range(first, first + count):
            i = colind[x]
            share = scale * J[w, x]
            y = first
            for e in range(D_rowadr[i], D_rowadr[i] + D_rownnz[i]):  # both rows are in ascending order
                while y < first + count - 1 and colind[y] < D_colind[e]:
                    y = y + 1
                if colind[y] == D_colind[e]:
                    D[w, e] = D[w, e] + share * J[w, y]

    return SimpleNamespace(add_outer=add_outer)


def _passive(real: Any) -> dict[str, wp.Kernel]:
    t, train, add_outer = types(real), drivetrain(real), pattern(real).add_outer
    vec2, spatial = t.vec2, t.spatial
    added, added_poly, poly_slope = train.added, train.added_poly, train.poly_slope

    @wp.kernel
    def deriv_passive(
        opt_disableflags: int, dof_jntid: ints, jnt_actuatorid: ints, tendon_actuatorid: ints,
        actuator_trntype: ints, actuator_trnid: ints2, actuator_outadr: ints, actuator_gear: wp.array2d(dtype=spatial),
        actuator_damping: wp.array2d(dtype=real), actuator_dampingpoly: wp.array2d(dtype=vec2),
        dof_damping: wp.array2d(dtype=real), dof_dampingpoly: wp.array2d(dtype=vec2),
        tendon_damping: wp.array2d(dtype=real), tendon_dampingpoly: wp.array2d(dtype=vec2),
        D_rowadr: ints, D_rownnz: ints, D_colind: ints, D_diag: ints, ten_J_rownnz: ints, ten_J_rowadr: ints,
        ten_J_colind: ints, ten_J: wp.array2d(dtype=real), ten_velocity: wp.array2d(dtype=real),
        qvel: wp.array2d(dtype=real), qDeriv: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Dampers of joints and tendons; the first to write qDeriv."""
        w = wp.tid()
        for e in range(D_colind.shape[0]):
            qDeriv[w, e] = real(0.0)
        if (opt_disableflags & DAMPER) == 0:
            for i in range(dof_jntid.shape[0]):
                j = dof_jntid[i]
                k = dof_damping[row(w, dof_damping), i] + added(
                    w, j, jnt_actuatorid[j], False, actuator_trntype, actuator_trnid, actuator_outadr, actuator_damping,
                    actuator_gear,
                )  # fmt: skip
                growth = dof_dampingpoly[row(w, dof_dampingpoly), i] + added_poly(
                    w, j, jnt_actuatorid[j], False,
                    actuator_trntype, actuator_trnid, actuator_outadr, actuator_dampingpoly, actuator_gear,
                )  # fmt: skip
                qDeriv[w, D_rowadr[i] + D_diag[i]] = -poly_slope(k, growth, wp.abs(qvel[w, i]))
            for n in range(tendon_actuatorid.shape[0]):
                k = tendon_damping[row(w, tendon_damping), n] + added(
                    w, n, tendon_actuatorid[n], True, actuator_trntype, actuator_trnid, actuator_outadr,
                    actuator_damping, actuator_gear,
                )  # fmt: skip
                growth = tendon_dampingpoly[row(w, tendon_dampingpoly), n] + added_poly(
                    w, n, tendon_actuatorid[n], True,
                    actuator_trntype, actuator_trnid, actuator_outadr, actuator_dampingpoly, actuator_gear,
                )  # fmt: skip
                slope = -poly_slope(k, growth, wp.abs(ten_velocity[w, n]))
                if slope != real(0.0):
                    add_outer(w, ten_J_rowadr[n], ten_J_rownnz[n], ten_J_colind, ten_J, slope,
                              D_rowadr, D_rownnz, D_colind, qDeriv)  # fmt: skip

    return dict(deriv_passive=deriv_passive)


def _actuators(real: Any) -> dict[str, wp.Kernel]:
    t, add_outer = types(real), pattern(real).add_outer
    vec2 = t.vec2
    laws, active_slope = servo(real), muscle(real).active_slope
    next_act, control, is_off = laws.next_act, laws.control, laws.is_off
    close = real(1e-5 if real is wp.float32 else 1e-12)

    @wp.func
    def outside(x: real, limit: vec2):
        return x <= limit[0] or x >= limit[1]

    @wp.kernel
    def deriv_actuators(
        opt_disableflags: int, opt_timestep: wp.array(dtype=real), actuator_trntype: ints, actuator_trnid: ints2,
        actuator_outadr: ints,
        actuator_dyntype: ints, actuator_gaintype: ints, actuator_biastype: ints, actuator_ctrladr: ints,
        actuator_group: ints,
        opt_disableactuator: int, actuator_actadr: ints, actuator_actlimited: ints, actuator_actearly: ints,
        actuator_forcelimited: ints, tendon_actfrclimited: ints, jnt_actfrclimited: ints, jnt_dofadr: ints,
        actuator_dynprm: wp.array3d(dtype=real), actuator_gainprm: wp.array3d(dtype=real),
        actuator_biasprm: wp.array3d(dtype=real), actuator_actrange: wp.array2d(dtype=vec2),
        actuator_forcerange: wp.array2d(dtype=vec2), tendon_actfrcrange: wp.array2d(dtype=vec2),
        jnt_actfrcrange: wp.array2d(dtype=vec2), actuator_lengthrange: wp.array2d(dtype=vec2),
        actuator_acc0: wp.array2d(dtype=real), moment_rowadr: ints, moment_rownnz: ints, moment_colind: ints,
        D_rowadr: ints, D_rownnz: ints, D_colind: ints,
        ctrl_taken: wp.array2d(dtype=real), act: wp.array2d(dtype=real), act_dot: wp.array2d(dtype=real),
        actuator_length: wp.array2d(dtype=real), actuator_velocity: wp.array2d(dtype=real),
        actuator_force: wp.array2d(dtype=real), motor_mech: wp.array2d(dtype=real),
        qfrc_actuator: wp.array2d(dtype=real), actuator_moment: wp.array2d(dtype=real), qDeriv: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Actuators: ``moment' (d force / d velocity) moment``, nothing where a force is at a limit or switched off."""
        w = wp.tid()
        for u in range(actuator_trntype.shape[0]):
            slope = real(0.0)
            out = actuator_outadr[u]
            g = row(w, actuator_gainprm)
            if actuator_gaintype[u] == GAIN_AFFINE:
                slope = actuator_gainprm[g, u, 2]
            if actuator_gaintype[u] == GAIN_MUSCLE:
                slope = active_slope(actuator_length[w, out], actuator_velocity[w, out],
                                     actuator_lengthrange[row(w, actuator_lengthrange), out],
                                     actuator_acc0[row(w, actuator_acc0), out], actuator_gainprm, g, u)  # fmt: skip
            signal = control(w, actuator_ctrladr[u], ctrl_taken)
            a = actuator_actadr[u]
            if actuator_dyntype[u] != DYN_NONE and a >= 0:
                signal = act[w, a]
                if actuator_actearly[u] != 0:
                    tau = actuator_dynprm[row(w, actuator_dynprm), u, 0]
                    signal = next_act(signal, act_dot[w, a], actuator_dyntype[u], tau, actuator_actlimited[u] != 0,
                                      actuator_actrange[row(w, actuator_actrange), u],
                                      opt_timestep[row(w, opt_timestep)])  # fmt: skip
            slope = slope * signal
            if actuator_biastype[u] == BIAS_AFFINE:
                slope = slope + actuator_biasprm[row(w, actuator_biasprm), u, 2]
            if actuator_forcelimited[u] != 0:
                if outside(actuator_force[w, out], actuator_forcerange[row(w, actuator_forcerange), u]):
                    slope = real(0.0)
            if is_off(actuator_group[u], opt_disableactuator):
                slope = real(0.0)
            target = actuator_trnid[u, 0]
            kind = actuator_trntype[u]
            if kind == TRN_JOINT or kind == TRN_JOINTINPARENT:
                if jnt_actfrclimited[target] != 0:
                    limit = jnt_actfrcrange[row(w, jnt_actfrcrange), target]
                    if outside(qfrc_actuator[w, jnt_dofadr[target]], limit):
                        slope = real(0.0)
            if kind == TRN_TENDON:
                if tendon_actfrclimited[target] != 0:
                    total = real(0.0)
                    for v in range(actuator_trntype.shape[0]):
                        if actuator_trntype[v] == TRN_TENDON and actuator_trnid[v, 0] == target:
                            total = total + actuator_force[w, actuator_outadr[v]] - motor_mech[w, actuator_outadr[v]]
                    limit = tendon_actfrcrange[row(w, tendon_actfrcrange), target]
                    # forces were scaled to reach the limit, which rounding may miss
                    inner = vec2(limit[0] + close * wp.abs(limit[0]), limit[1] - close * wp.abs(limit[1]))
                    if outside(total, inner):
                        slope = real(0.0)
            if slope != real(0.0):
                add_outer(w, moment_rowadr[out], moment_rownnz[out], moment_colind, actuator_moment, slope,
                          D_rowadr, D_rownnz, D_colind, qDeriv)  # fmt: skip

    return dict(deriv_actuators=deriv_actuators)


def _bias(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    spatial, inertia = t.spatial, t.inertia
    cross_motion, cross_force, mul_inertia = a.cross_motion, a.cross_force, a.mul_inertia

    @wp.kernel
    def deriv_bias(
        body_parentid: ints, body_jntadr: ints, body_jntnum: ints, body_isdofancestor: ints2, jnt_type: ints,
        jnt_dofadr: ints, dof_bodyid: ints, body_floats: ints,
        D_rowadr: ints, D_rownnz: ints, D_colind: ints, D_mirror: ints, qvel: wp.array2d(dtype=real),
        cinert: wp.array2d(dtype=inertia), cdof: wp.array2d(dtype=spatial),
        cdof_dot: wp.array2d(dtype=spatial), cvel: wp.array2d(dtype=spatial),
        deriv_vel: wp.array2d(dtype=spatial), deriv_acc: wp.array2d(dtype=spatial),
        deriv_frc: wp.array2d(dtype=spatial), qDeriv: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Coriolis and centrifugal forces: recursive Newton-Euler, differentiated by each velocity in turn.

        What a velocity changes is the motion of the bodies that it moves, and the forces on these and their ancestors.
        Bodies that float freely are left out: `implicit_steps` solves them by themselves.
        """
        w = wp.tid()
        nbody = body_parentid.shape[0]
        zero = real(0.0)
        none = spatial(zero, zero, zero, zero, zero, zero)
        for k in range(dof_bodyid.shape[0]):
            counted = body_floats[dof_bodyid[k]] == 0
            for b in range(nbody):
                deriv_vel[w, b] = none
                deriv_acc[w, b] = none
                deriv_frc[w, b] = none
            for b in range(dof_bodyid[k], nbody):
                if counted and body_isdofancestor[b, k] != 0:
                    p = body_parentid[b]
                    vel = deriv_vel[w, p]
                    acc = deriv_acc[w, p]
                    for j in range(body_jntadr[b], body_jntadr[b] + body_jntnum[b]):
                        i = jnt_dofadr[j]
                        count = int(1)
                        if jnt_type[j] == FREE:
                            if k >= i and k < i + 3:
                                vel = vel + cdof[w, k]
                            i = i + 3
                        if jnt_type[j] == FREE or jnt_type[j] == BALL:
                            count = 3
                        for x in range(i, i + count):
                            acc = acc + cross_motion(vel, cdof[w, x]) * qvel[w, x]
                        if k >= i and k < i + count:
                            acc = acc + cdof_dot[w, k]
                            vel = vel + cdof[w, k]
                    deriv_vel[w, b] = vel
                    deriv_acc[w, b] = acc
                    force = mul_inertia(cinert[w, b], acc) + cross_force(vel, mul_inertia(cinert[w, b], cvel[w, b]))
                    deriv_frc[w, b] = force + cross_force(cvel[w, b], mul_inertia(cinert[w, b], vel))
            for back in range(nbody - 1):
                b = nbody - 1 - back
                p = body_parentid[b]
                deriv_frc[w, p] = deriv_frc[w, p] + deriv_frc[w, b]
            for e in range(D_rowadr[k], D_rowadr[k] + D_rownnz[k]):
                i = D_colind[e]
                x = D_mirror[e]
                qDeriv[w, x] = qDeriv[w, x] - wp.dot(cdof[w, i], deriv_frc[w, dof_bodyid[i]])

    return dict(deriv_bias=deriv_bias)
