"""Stages that depend on velocities: com_vel, rne."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, index, row, types
from treadle.mujoco.composite import composite
from treadle.mujoco.constants import BALL, FREE, GRAVITY

ints = wp.array(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    t, a = types(real), algebra(real)
    vec3, mat33, spatial, turns = t.vec3, t.mat33, t.spatial, composite(real).turns
    pair, rotation, translation, cross_motion = a.pair, a.rotation, a.translation, a.cross_motion

    @wp.kernel(gang_vectors=2)
    def com_vel(
        body_parentid: ints, body_jntadr: ints, body_jntnum: ints, jnt_type: ints, jnt_dofadr: ints,
        qvel: wp.array2d(dtype=real),
        cdof: wp.array2d(dtype=spatial), cvel: wp.array2d(dtype=spatial), cdof_dot: wp.array2d(dtype=spatial),
    ):  # fmt: skip
        """Velocity of every body, and how fast each joint axis moves along with the body that carries it.

        The three axes of a ball are fixed to the body that turns: they move along before any of them has turned it.
        """
        w = wp.tid()
        zero = real(0.0)
        none = spatial(zero, zero, zero, zero, zero, zero)
        cvel[w, 0] = none
        for b in range(1, body_parentid.shape[0]):
            v = cvel[w, index(body_parentid[b])]
            first = index(body_jntadr[b])
            for j in range(first, first + body_jntnum[b]):
                i = index(jnt_dofadr[j])
                if jnt_type[j] == FREE:
                    for k in range(3):
                        cdof_dot[w, i + k] = none
                        v = v + cdof[w, i + k] * qvel[w, i + k]
                    i = i + 3
                if jnt_type[j] == FREE or jnt_type[j] == BALL:
                    before = v
                    for k in range(3):
                        cdof_dot[w, i + k] = cross_motion(before, cdof[w, i + k])
                        v = v + cdof[w, i + k] * qvel[w, i + k]
                else:
                    cdof_dot[w, i] = cross_motion(v, cdof[w, i])
                    v = v + cdof[w, i] * qvel[w, i]
            cvel[w, b] = v

    @wp.func
    def resist(principal: vec3, mat: mat33, offset: vec3, mass: real, vel: spatial, acc: spatial):
        """The force on a body that moves so, with its torque about the body's own centre of mass, at ``offset``.

        Newton and Euler in the frame of its principal axes.
        """
        w, alpha = rotation(vel), rotation(acc)
        drift = translation(vel) + wp.cross(w, offset)
        force = mass * (translation(acc) + wp.cross(alpha, offset) + wp.cross(w, drift))
        to_body = wp.transpose(mat)
        spin = to_body * w
        torque = wp.cw_mul(principal, to_body * alpha) + wp.cross(spin, wp.cw_mul(principal, spin))
        return pair(mat * torque, force)

    @wp.kernel(gang_vectors=2)
    def rne(
        opt_disableflags: int, opt_gravity: wp.array(dtype=vec3), body_parentid: ints, body_rootid: ints,
        body_dofadr: ints, body_dofnum: ints, dof_bodyid: ints, dof_jntid: ints, jnt_type: ints, jnt_dofadr: ints,
        body_mass: wp.array2d(dtype=real), body_inertia: wp.array2d(dtype=vec3), qvel: wp.array2d(dtype=real),
        xipos: wp.array2d(dtype=vec3), ximat: wp.array2d(dtype=mat33), xanchor: wp.array2d(dtype=vec3),
        subtree_com: wp.array2d(dtype=vec3), cdof: wp.array2d(dtype=spatial),
        cvel: wp.array2d(dtype=spatial), cdof_dot: wp.array2d(dtype=spatial),
        bias_acc: wp.array2d(dtype=spatial), bias_frc: wp.array2d(dtype=spatial), qfrc_bias: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Forces that keep ``qacc = 0``, by recursive Newton-Euler (Featherstone, table 5.1).

        Gravity enters as an acceleration of the world the other way. Motions are about the tree's centre of mass, but
        torques about each body's own: about a far point the weight of a body has a large one, which the joint that
        carries it takes away again, and digits with it.
        """
        w = wp.tid()
        zero = real(0.0)
        nbody = body_parentid.shape[0]
        up = vec3(zero, zero, zero)
        if (opt_disableflags & GRAVITY) == 0:
            up = -opt_gravity[row(w, opt_gravity)]
        bias_acc[w, 0] = pair(vec3(zero, zero, zero), up)
        bias_frc[w, 0] = spatial(zero, zero, zero, zero, zero, zero)
        for b in range(1, nbody):
            acc = bias_acc[w, index(body_parentid[b])]
            first = index(body_dofadr[b])
            for i in range(first, first + body_dofnum[b]):
                acc = acc + cdof_dot[w, i] * qvel[w, i]
            bias_acc[w, b] = acc
            offset = xipos[w, b] - subtree_com[w, index(body_rootid[b])]
            bias_frc[w, b] = resist(body_inertia[row(w, body_inertia), b], ximat[w, b], offset,
                                    body_mass[row(w, body_mass), b], cvel[w, b], acc)  # fmt: skip
        for i in range(nbody - 1):
            b = index(nbody - 1 - i)
            p = index(body_parentid[b])
            if p > 0:
                frc = bias_frc[w, b]
                turn = rotation(frc) + wp.cross(xipos[w, b] - xipos[w, p], translation(frc))
                bias_frc[w, p] = bias_frc[w, p] + pair(turn, translation(frc))
        for i in range(dof_bodyid.shape[0]):
            b, j = index(dof_bodyid[i]), index(dof_jntid[i])
            frc = bias_frc[w, b]
            if turns(i, jnt_type[j], jnt_dofadr[j]):
                torque = rotation(frc) + wp.cross(xipos[w, b] - xanchor[w, j], translation(frc))
                qfrc_bias[w, i] = wp.dot(rotation(cdof[w, i]), torque)
            else:
                qfrc_bias[w, i] = wp.dot(translation(cdof[w, i]), translation(frc))

    return dict(com_vel=com_vel, rne=rne)
