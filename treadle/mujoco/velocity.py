"""Stages that depend on velocities: com_vel, passive, rne, actuator velocities."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, types
from treadle.mujoco.constants import DAMPER, GRAVITY, SPRING

ints = wp.array(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_motion(real), **_passive(real)}


def _motion(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    vec3, spatial, inertia = t.vec3, t.spatial, t.inertia
    pair, cross_motion, cross_force, mul_inertia = a.pair, a.cross_motion, a.cross_force, a.mul_inertia

    @wp.kernel
    def com_vel(
        body_parentid: ints, body_dofadr: ints, body_dofnum: ints, qvel: wp.array2d(dtype=real),
        cdof: wp.array2d(dtype=spatial), cvel: wp.array2d(dtype=spatial), cdof_dot: wp.array2d(dtype=spatial),
    ):  # fmt: skip
        """Velocity of every body, and how fast each joint axis moves along with the body that carries it."""
        w = wp.tid()
        zero = real(0.0)
        cvel[w, 0] = spatial(zero, zero, zero, zero, zero, zero)
        for b in range(1, body_parentid.shape[0]):
            v = cvel[w, body_parentid[b]]
            for i in range(body_dofadr[b], body_dofadr[b] + body_dofnum[b]):
                cdof_dot[w, i] = cross_motion(v, cdof[w, i])
                v = v + cdof[w, i] * qvel[w, i]
            cvel[w, b] = v

    @wp.kernel
    def rne(
        opt_disableflags: int, opt_gravity: wp.array(dtype=vec3),
        body_parentid: ints, body_dofadr: ints, body_dofnum: ints, dof_bodyid: ints, qvel: wp.array2d(dtype=real),
        cinert: wp.array2d(dtype=inertia), cdof: wp.array2d(dtype=spatial),
        cvel: wp.array2d(dtype=spatial), cdof_dot: wp.array2d(dtype=spatial),
        cacc: wp.array2d(dtype=spatial), cfrc_int: wp.array2d(dtype=spatial), qfrc_bias: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Forces that keep ``qacc = 0``, by recursive Newton-Euler (Featherstone, table 5.1).

        Gravity enters as an acceleration of the world the other way.
        """
        w = wp.tid()
        zero = real(0.0)
        nbody = body_parentid.shape[0]
        up = vec3(zero, zero, zero)
        if (opt_disableflags & GRAVITY) == 0:
            up = -opt_gravity[0]
        cacc[w, 0] = pair(vec3(zero, zero, zero), up)
        cfrc_int[w, 0] = spatial(zero, zero, zero, zero, zero, zero)
        for b in range(1, nbody):
            acc = cacc[w, body_parentid[b]]
            for i in range(body_dofadr[b], body_dofadr[b] + body_dofnum[b]):
                acc = acc + cdof_dot[w, i] * qvel[w, i]
            cacc[w, b] = acc
            momentum = mul_inertia(cinert[w, b], cvel[w, b])
            cfrc_int[w, b] = mul_inertia(cinert[w, b], acc) + cross_force(cvel[w, b], momentum)
        for i in range(nbody - 1):
            b = nbody - 1 - i
            p = body_parentid[b]
            cfrc_int[w, p] = cfrc_int[w, p] + cfrc_int[w, b]
        for i in range(dof_bodyid.shape[0]):
            qfrc_bias[w, i] = wp.dot(cdof[w, i], cfrc_int[w, dof_bodyid[i]])

    return dict(com_vel=com_vel, rne=rne)


def _passive(real: Any) -> dict[str, wp.Kernel]:
    @wp.kernel
    def passive(
        opt_disableflags: int, jnt_qposadr: ints, jnt_dofadr: ints, jnt_stiffness: wp.array2d(dtype=real),
        qpos_spring: wp.array2d(dtype=real), dof_damping: wp.array2d(dtype=real),
        qpos: wp.array2d(dtype=real), qvel: wp.array2d(dtype=real),
        qfrc_spring: wp.array2d(dtype=real), qfrc_damper: wp.array2d(dtype=real), qfrc_passive: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Springs and dampers of joints."""
        w = wp.tid()
        for j in range(jnt_qposadr.shape[0]):
            i = jnt_dofadr[j]
            q = jnt_qposadr[j]
            spring = real(0.0)
            damper = real(0.0)
            if (opt_disableflags & SPRING) == 0:
                spring = jnt_stiffness[0, j] * (qpos_spring[0, q] - qpos[w, q])
            if (opt_disableflags & DAMPER) == 0:
                damper = -dof_damping[0, i] * qvel[w, i]
            qfrc_spring[w, i] = spring
            qfrc_damper[w, i] = damper
            qfrc_passive[w, i] = spring + damper

    @wp.kernel
    def actuator_vel(
        actuator_trnid: ints, jnt_dofadr: ints, actuator_gear: wp.array2d(dtype=real), qvel: wp.array2d(dtype=real),
        actuator_velocity: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Velocity of each actuator: its joint's velocity times the gear."""
        w = wp.tid()
        for u in range(actuator_trnid.shape[0]):
            actuator_velocity[w, u] = actuator_gear[0, u] * qvel[w, jnt_dofadr[actuator_trnid[u]]]

    return dict(passive=passive, actuator_vel=actuator_vel)
