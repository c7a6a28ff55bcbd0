"""Passive forces: springs and dampers of joints and tendons, compensation of gravity, the medium."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, index, row, types
from treadle.mujoco.constants import BALL, DAMPER, FREE, GRAVITY, SPRING
from treadle.mujoco.drivetrain import drivetrain

ints = wp.array(dtype=int)
pairs = wp.array2d(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_joints(real), **_tendons(real), **_gravity(real), **_total(real)}


def _joints(real: Any) -> dict[str, wp.Kernel]:
    t, a, train = types(real), algebra(real), drivetrain(real)
    vec2, vec3, quat, spatial = t.vec2, t.vec3, t.quat, t.spatial
    unit_quat, sub_quat = a.unit_quat, a.sub_quat
    added, added_poly, poly = train.added, train.added_poly, train.poly

    @wp.func
    def turned(w: int, q: int, qpos: wp.array2d(dtype=real), rest: wp.array2d(dtype=real)):
        """The rotation vector from the quaternion at ``q`` in ``rest`` to that in ``qpos``."""
        r = row(w, rest)
        now = unit_quat(quat(qpos[w, q], qpos[w, q + 1], qpos[w, q + 2], qpos[w, q + 3]))
        return sub_quat(now, quat(rest[r, q], rest[r, q + 1], rest[r, q + 2], rest[r, q + 3]))

    @wp.kernel(gang_vectors=2)
    def joint_springs(
        opt_disableflags: int, jnt_type: ints, jnt_qposadr: ints, jnt_dofadr: ints,
        jnt_stiffness: wp.array2d(dtype=real), jnt_stiffnesspoly: wp.array2d(dtype=vec2),
        qpos_spring: wp.array2d(dtype=real), qpos: wp.array2d(dtype=real), qfrc_spring: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Springs of joints. A ball's pulls along its rotation from rest, a free joint's along both displacements."""
        w = wp.tid()
        for i in range(qfrc_spring.shape[1]):
            qfrc_spring[w, i] = real(0.0)
        if (opt_disableflags & SPRING) == 0:
            for j in range(jnt_type.shape[0]):
                i = index(jnt_dofadr[j])
                q = index(jnt_qposadr[j])
                k = jnt_stiffness[row(w, jnt_stiffness), j]
                growth = jnt_stiffnesspoly[row(w, jnt_stiffnesspoly), j]
                r = row(w, qpos_spring)
                if jnt_type[j] == FREE:
                    away = vec3(
                        qpos[w, q] - qpos_spring[r, q],
                        qpos[w, q + 1] - qpos_spring[r, q + 1],
                        qpos[w, q + 2] - qpos_spring[r, q + 2],
                    )
                    pull = -poly(k, growth, wp.length(away)) * away
                    for c in range(3):
                        qfrc_spring[w, i + c] = pull[c]
                    i = i + 3
                    q = q + 3
                if jnt_type[j] == FREE or jnt_type[j] == BALL:
                    away = turned(w, q, qpos, qpos_spring)
                    pull = -poly(k, growth, wp.length(away)) * away
                    for c in range(3):
                        qfrc_spring[w, i + c] = pull[c]
                else:
                    x = qpos[w, q] - qpos_spring[r, q]
                    qfrc_spring[w, i] = -x * poly(k, growth, x)

    @wp.kernel(gang_vectors=2)
    def joint_dampers(
        opt_disableflags: int, dof_jntid: ints, jnt_actuatorid: ints,
        actuator_trntype: ints, actuator_trnid: pairs, actuator_outadr: ints, actuator_gear: wp.array2d(dtype=spatial),
        actuator_damping: wp.array2d(dtype=real), actuator_dampingpoly: wp.array2d(dtype=vec2),
        dof_damping: wp.array2d(dtype=real), dof_dampingpoly: wp.array2d(dtype=vec2),
        qvel: wp.array2d(dtype=real), qfrc_damper: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Dampers of joints, and those of actuators that drive them."""
        w = wp.tid()
        for i in range(dof_jntid.shape[0]):
            force = real(0.0)
            if (opt_disableflags & DAMPER) == 0:
                j = index(dof_jntid[i])
                k = dof_damping[row(w, dof_damping), i] + added(
                    w, j, jnt_actuatorid[j], False, actuator_trntype, actuator_trnid, actuator_outadr, actuator_damping,
                    actuator_gear,
                )  # fmt: skip
                growth = dof_dampingpoly[row(w, dof_dampingpoly), i] + added_poly(
                    w, j, jnt_actuatorid[j], False,
                    actuator_trntype, actuator_trnid, actuator_outadr, actuator_dampingpoly, actuator_gear,
                )  # fmt: skip
                v = qvel[w, i]
                force = -v * poly(k, growth, wp.abs(v))
            qfrc_damper[w, i] = force

    return dict(joint_springs=joint_springs, joint_dampers=joint_dampers)


def _tendons(real: Any) -> dict[str, wp.Kernel]:
    t, train = types(real), drivetrain(real)
    vec2, spatial = t.vec2, t.spatial
    added, added_poly, poly = train.added, train.added_poly, train.poly

    @wp.kernel
    def tendon_springs(
        opt_disableflags: int, tendon_actuatorid: ints,
        actuator_trntype: ints, actuator_trnid: pairs, actuator_outadr: ints, actuator_gear: wp.array2d(dtype=spatial),
        actuator_damping: wp.array2d(dtype=real), actuator_dampingpoly: wp.array2d(dtype=vec2),
        tendon_stiffness: wp.array2d(dtype=real), tendon_stiffnesspoly: wp.array2d(dtype=vec2),
        tendon_damping: wp.array2d(dtype=real), tendon_dampingpoly: wp.array2d(dtype=vec2),
        tendon_lengthspring: wp.array2d(dtype=vec2),
        ten_J_rownnz: ints, ten_J_rowadr: ints, ten_J_colind: ints, ten_J: wp.array2d(dtype=real),
        ten_length: wp.array2d(dtype=real), ten_velocity: wp.array2d(dtype=real),
        ten_passive: wp.array2d(dtype=real), qfrc_spring: wp.array2d(dtype=real), qfrc_damper: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Springs and dampers of tendons, added to those of joints. Between its two rest lengths a tendon is slack."""
        w = wp.tid()
        for k in range(tendon_actuatorid.shape[0]):
            rest = tendon_lengthspring[row(w, tendon_lengthspring), k]
            length = ten_length[w, k]
            x = wp.max(length - rest[1], real(0.0)) + wp.min(length - rest[0], real(0.0))
            stiffness = tendon_stiffness[row(w, tendon_stiffness), k]
            spring = -x * poly(stiffness, tendon_stiffnesspoly[row(w, tendon_stiffnesspoly), k], x)
            damping = tendon_damping[row(w, tendon_damping), k] + added(
                w, k, tendon_actuatorid[k], True, actuator_trntype, actuator_trnid, actuator_outadr, actuator_damping,
                actuator_gear,
            )  # fmt: skip
            growth = tendon_dampingpoly[row(w, tendon_dampingpoly), k] + added_poly(
                w, k, tendon_actuatorid[k], True, actuator_trntype, actuator_trnid, actuator_outadr,
                actuator_dampingpoly, actuator_gear,
            )  # fmt: skip
            v = ten_velocity[w, k]
            damper = -v * poly(damping, growth, wp.abs(v))
            if (opt_disableflags & SPRING) != 0:
                spring = real(0.0)
            if (opt_disableflags & DAMPER) != 0:
                damper = real(0.0)
            ten_passive[w, k] = spring + damper
            first = index(ten_J_rowadr[k])
            for e in range(first, first + ten_J_rownnz[k]):
                i = index(ten_J_colind[e])
                qfrc_spring[w, i] = qfrc_spring[w, i] + ten_J[w, e] * spring
                qfrc_damper[w, i] = qfrc_damper[w, i] + ten_J[w, e] * damper

    return dict(tendon_springs=tendon_springs)


def _gravity(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    vec3, spatial = t.vec3, t.spatial
    push_at = a.push_at

    @wp.kernel
    def gravity_compensation(
        opt_disableflags: int, opt_gravity: wp.array(dtype=vec3),
        body_parentid: ints, body_rootid: ints, body_dofadr: ints, body_dofnum: ints,
        body_mass: wp.array2d(dtype=real), body_gravcomp: wp.array2d(dtype=real),
        xipos: wp.array2d(dtype=vec3), subtree_com: wp.array2d(dtype=vec3), cdof: wp.array2d(dtype=spatial),
        qfrc_gravcomp: wp.array2d(dtype=real),
    ):  # fmt: skip
        """A force against gravity at the centre of mass of each body that asks for it."""
        w = wp.tid()
        for i in range(qfrc_gravcomp.shape[1]):
            qfrc_gravcomp[w, i] = real(0.0)
        if (opt_disableflags & GRAVITY) == 0:
            for b in range(1, body_parentid.shape[0]):
                share = body_gravcomp[row(w, body_gravcomp), b]
                if share != real(0.0):
                    force = opt_gravity[row(w, opt_gravity)] * (-share * body_mass[row(w, body_mass), b])
                    zero = real(0.0)
                    push = spatial(force[0], force[1], force[2], zero, zero, zero)
                    push = push_at(push, xipos[w, b] - subtree_com[w, index(body_rootid[b])])
                    above = b
                    while above > 0:
                        first = index(body_dofadr[above])
                        for i in range(first, first + body_dofnum[above]):
                            qfrc_gravcomp[w, i] = qfrc_gravcomp[w, i] + wp.dot(cdof[w, i], push)
                        above = body_parentid[above]

    return dict(gravity_compensation=gravity_compensation)


def _total(real: Any) -> dict[str, wp.Kernel]:
    @wp.kernel(gang_vectors=2)
    def passive(
        dof_jntid: ints, jnt_actgravcomp: ints,
        qfrc_spring: wp.array2d(dtype=real), qfrc_damper: wp.array2d(dtype=real),
        qfrc_gravcomp: wp.array2d(dtype=real), qfrc_fluid: wp.array2d(dtype=real),
        qfrc_passive: wp.array2d(dtype=real),
    ):  # fmt: skip
        """All passive forces. Where a joint asks for it, its compensation of gravity counts as an actuator's force."""
        w = wp.tid()
        for i in range(dof_jntid.shape[0]):
            force = qfrc_spring[w, i] + qfrc_damper[w, i] + qfrc_fluid[w, i]
            if jnt_actgravcomp[index(dof_jntid[i])] == 0:
                force = force + qfrc_gravcomp[w, i]
            qfrc_passive[w, i] = force

    return dict(passive=passive)
