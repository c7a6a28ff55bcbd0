"""Energy, and the momentum of subtrees."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, row, types
from treadle.mujoco.constants import BALL, FREE, GRAVITY, SPRING

ints = wp.array(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_energies(real), **_momenta(real)}


def _energies(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    vec2, vec3, quat = t.vec2, t.vec3, t.quat
    unit_quat, sub_quat = a.unit_quat, a.sub_quat

    @wp.func
    def stored(k: real, growth: vec2, x: real):
        """Energy of a spring: the integral of ``x (k + growth·(x, x²))``."""
        return x * x * (real(0.5) * k + x * (growth[0] / real(3.0) + x * growth[1] * real(0.25)))

    @wp.kernel
    def energy_pos(
        opt_disableflags: int, opt_gravity: wp.array(dtype=vec3), body_mass: wp.array2d(dtype=real),
        jnt_type: ints, jnt_qposadr: ints, jnt_stiffness: wp.array2d(dtype=real),
        jnt_stiffnesspoly: wp.array2d(dtype=vec2), qpos_spring: wp.array2d(dtype=real),
        tendon_stiffness: wp.array2d(dtype=real), tendon_stiffnesspoly: wp.array2d(dtype=vec2),
        tendon_lengthspring: wp.array2d(dtype=vec2), qpos: wp.array2d(dtype=real), xipos: wp.array2d(dtype=vec3),
        ten_length: wp.array2d(dtype=real), energy: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Potential energy of gravity and springs."""
        w = wp.tid()
        total = real(0.0)
        if (opt_disableflags & GRAVITY) == 0:
            for b in range(1, body_mass.shape[1]):
                weight = opt_gravity[row(w, opt_gravity)] * body_mass[row(w, body_mass), b]
                total = total - wp.dot(weight, xipos[w, b])
        if (opt_disableflags & SPRING) == 0:
            r = row(w, qpos_spring)
            for j in range(jnt_type.shape[0]):
                k = jnt_stiffness[row(w, jnt_stiffness), j]
                growth = jnt_stiffnesspoly[row(w, jnt_stiffnesspoly), j]
                q = jnt_qposadr[j]
                if jnt_type[j] == FREE:
                    away = vec3(
                        qpos[w, q] - qpos_spring[r, q],
                        qpos[w, q + 1] - qpos_spring[r, q + 1],
                        qpos[w, q + 2] - qpos_spring[r, q + 2],
                    )
                    total = total + stored(k, growth, wp.length(away))
                    q = q + 3
                if jnt_type[j] == FREE or jnt_type[j] == BALL:
                    now = unit_quat(quat(qpos[w, q], qpos[w, q + 1], qpos[w, q + 2], qpos[w, q + 3]))
                    rest = quat(qpos_spring[r, q], qpos_spring[r, q + 1], qpos_spring[r, q + 2], qpos_spring[r, q + 3])
                    total = total + stored(k, growth, wp.length(sub_quat(now, rest)))
                else:
                    total = total + stored(k, growth, qpos[w, q] - qpos_spring[r, q])
            for k in range(ten_length.shape[1]):
                rest = tendon_lengthspring[row(w, tendon_lengthspring), k]
                x = wp.max(ten_length[w, k] - rest[1], real(0.0)) + wp.min(ten_length[w, k] - rest[0], real(0.0))
                growth = tendon_stiffnesspoly[row(w, tendon_stiffnesspoly), k]
                total = total + stored(tendon_stiffness[row(w, tendon_stiffness), k], growth, x)
        energy[w, 0] = total

    @wp.kernel
    def energy_vel(
        M_rowadr: ints, M_rownnz: ints, M_colind: ints, M: wp.array2d(dtype=real), qvel: wp.array2d(dtype=real),
        energy: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Kinetic energy ``v' M v / 2``; below the diagonal M is not stored twice."""
        w = wp.tid()
        total = real(0.0)
        for i in range(M_rowadr.shape[0]):
            last = M_rowadr[i] + M_rownnz[i] - 1
            momentum = real(0.5) * M[w, last] * qvel[w, i]
            for e in range(M_rowadr[i], last):
                momentum = momentum + M[w, e] * qvel[w, M_colind[e]]
            total = total + momentum * qvel[w, i]
        energy[w, 1] = total

    return dict(energy_pos=energy_pos, energy_vel=energy_vel)


def _momenta(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    vec3, mat33, spatial = t.vec3, t.mat33, t.spatial
    rotation, translation = a.rotation, a.translation

    @wp.kernel
    def subtree_vel(
        body_parentid: ints, body_rootid: ints, body_mass: wp.array2d(dtype=real),
        body_subtreemass: wp.array2d(dtype=real), body_inertia: wp.array2d(dtype=vec3),
        xipos: wp.array2d(dtype=vec3), ximat: wp.array2d(dtype=mat33), subtree_com: wp.array2d(dtype=vec3),
        cvel: wp.array2d(dtype=spatial), body_linvel: wp.array2d(dtype=vec3),
        subtree_linvel: wp.array2d(dtype=vec3), subtree_angmom: wp.array2d(dtype=vec3),
    ):  # fmt: skip
        """Velocity of the centre of mass of each subtree, and its angular momentum about that point."""
        w = wp.tid()
        nbody = body_parentid.shape[0]
        for b in range(nbody):
            omega = rotation(cvel[w, b])
            velocity = translation(cvel[w, b]) + wp.cross(omega, xipos[w, b] - subtree_com[w, body_rootid[b]])
            body_linvel[w, b] = velocity
            subtree_linvel[w, b] = velocity * body_mass[row(w, body_mass), b]
            own = wp.transpose(ximat[w, b]) * omega
            subtree_angmom[w, b] = ximat[w, b] * wp.cw_mul(body_inertia[row(w, body_inertia), b], own)
        for i in range(nbody):
            b = nbody - 1 - i
            if b > 0:
                p = body_parentid[b]
                subtree_linvel[w, p] = subtree_linvel[w, p] + subtree_linvel[w, b]
            mass = wp.max(body_subtreemass[row(w, body_subtreemass), b], real(1e-15))
            subtree_linvel[w, b] = subtree_linvel[w, b] / mass
        for i in range(nbody):
            b = nbody - 1 - i
            mass = body_mass[row(w, body_mass), b]
            moved = xipos[w, b] - subtree_com[w, b]
            faster = (body_linvel[w, b] - subtree_linvel[w, b]) * mass
            subtree_angmom[w, b] = subtree_angmom[w, b] + wp.cross(moved, faster)
            if b > 0:
                p = body_parentid[b]
                moved = subtree_com[w, b] - subtree_com[w, p]
                faster = (subtree_linvel[w, b] - subtree_linvel[w, p]) * body_subtreemass[row(w, body_subtreemass), b]
                subtree_angmom[w, p] = subtree_angmom[w, p] + subtree_angmom[w, b] + wp.cross(moved, faster)

    return dict(subtree_vel=subtree_vel)
