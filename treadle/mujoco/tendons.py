"""Tendons: their lengths, how these change with each degree of freedom, and the points of their paths."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, row, types
from treadle.mujoco.constants import MINVAL, TENDON_FIXED, WRAP_CYLINDER, WRAP_PULLEY, WRAP_SPHERE
from treadle.mujoco.drivetrain import drivetrain
from treadle.mujoco.wrapping import wrapping

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_tendon(real), **_velocity(real), **_bias(real)}


def _tendon(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    vec3, mat33, spatial = t.vec3, t.mat33, t.spatial
    rotation, translation, wrap = a.rotation, a.translation, wrapping(real).wrap

    @wp.func
    def pull(
        w: int, first: int, count: int, scale: real, b0: int, p0: vec3, b1: int, p1: vec3,
        colind: ints, ancestor: ints2, rootid: ints, subtree_com: wp.array2d(dtype=vec3),
        cdof: wp.array2d(dtype=spatial), J: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Add to a row of the Jacobian how the distance of two points on two bodies changes, and return it."""
        way = p1 - p0
        length = wp.length(way)
        if length < real(MINVAL):
            way = vec3(real(1.0), real(0.0), real(0.0))
        else:
            way = way / length
        if b0 != b1:
            arm0 = p0 - subtree_com[w, rootid[b0]]
            arm1 = p1 - subtree_com[w, rootid[b1]]
            for e in range(first, first + count):
                i = colind[e]
                if ancestor[b0, i] != ancestor[b1, i]:  # what moves both does not change their distance
                    motion = cdof[w, i]
                    rate = real(ancestor[b1, i]) * wp.dot(way, translation(motion) + wp.cross(rotation(motion), arm1))
                    back = real(ancestor[b0, i]) * wp.dot(way, translation(motion) + wp.cross(rotation(motion), arm0))
                    J[w, e] = J[w, e] + scale * (rate - back)
        return length * scale

    @wp.kernel
    def tendon(
        tendon_type: ints, tendon_adr: ints, tendon_num: ints, wrap_type: ints, wrap_objid: ints,
        wrap_prm: wp.array(dtype=real), ten_J_rownnz: ints, ten_J_rowadr: ints, ten_J_colind: ints,
        jnt_qposadr: ints, jnt_dofadr: ints, site_bodyid: ints, geom_bodyid: ints, body_rootid: ints,
        body_isdofancestor: ints2, geom_size: wp.array2d(dtype=vec3), qpos: wp.array2d(dtype=real),
        site_xpos: wp.array2d(dtype=vec3), geom_xpos: wp.array2d(dtype=vec3), geom_xmat: wp.array2d(dtype=mat33),
        subtree_com: wp.array2d(dtype=vec3), cdof: wp.array2d(dtype=spatial),
        ten_length: wp.array2d(dtype=real), ten_J: wp.array2d(dtype=real),
        ten_wrapadr: ints2, ten_wrapnum: ints2, wrap_obj: ints2, wrap_xpos: wp.array2d(dtype=vec3),
    ):  # fmt: skip
        """A fixed tendon is a weighted sum of joint positions, a spatial one a path through sites and around geoms.

        After a pulley all lengths count divided by its divisor.
        """
        w = wp.tid()
        for e in range(ten_J_colind.shape[0]):
            ten_J[w, e] = real(0.0)
        n = int(0)  # points so far
        for k in range(tendon_type.shape[0]):
            first, count = ten_J_rowadr[k], ten_J_rownnz[k]
            start, stop = tendon_adr[k], tendon_adr[k] + tendon_num[k]
            length = real(0.0)
            ten_wrapadr[w, k] = n
            if tendon_type[k] == TENDON_FIXED:
                for x in range(start, stop):
                    j = wrap_objid[x]
                    length = length + wrap_prm[x] * qpos[w, jnt_qposadr[j]]
                    for e in range(first, first + count):
                        if ten_J_colind[e] == jnt_dofadr[j]:
                            ten_J[w, e] = wrap_prm[x]
            else:
                scale = real(1.0)
                x = start
                while x < stop - 1:
                    kind = wrap_type[x + 1]
                    if wrap_type[x] == WRAP_PULLEY:
                        scale = real(1.0) / wrap_prm[x]
                        wrap_obj[w, n] = -2
                        wrap_xpos[w, n] = vec3(real(0.0), real(0.0), real(0.0))
                        n = n + 1
                        x = x + 1
                    elif kind == WRAP_PULLEY:
                        x = x + 1
                    else:
                        last = wrap_objid[x + 1]
                        p0 = site_xpos[w, wrap_objid[x]]
                        b0 = site_bodyid[wrap_objid[x]]
                        wrap_obj[w, n] = -1
                        wrap_xpos[w, n] = p0
                        n = n + 1
                        if kind == WRAP_SPHERE or kind == WRAP_CYLINDER:
                            g = last
                            last = wrap_objid[x + 2]
                            p1 = site_xpos[w, last]
                            s = int(wp.round(wrap_prm[x + 1]))
                            arc, q0, q1 = wrap(p0, p1, geom_xpos[w, g], geom_xmat[w, g],
                                               geom_size[row(w, geom_size), g][0], kind == WRAP_CYLINDER, s >= 0,
                                               site_xpos[w, wp.max(s, 0)])  # fmt: skip
                            if arc >= real(0.0):
                                b = geom_bodyid[g]
                                length = length + scale * arc
                                length = length + pull(w, first, count, scale, b0, p0, b, q0, ten_J_colind,
                                                       body_isdofancestor, body_rootid, subtree_com, cdof,
                                                       ten_J)  # fmt: skip
                                length = length + pull(w, first, count, scale, b, q1, site_bodyid[last], p1,
                                                       ten_J_colind, body_isdofancestor, body_rootid, subtree_com,
                                                       cdof, ten_J)  # fmt: skip
                                wrap_obj[w, n] = g
                                wrap_xpos[w, n] = q0
                                wrap_obj[w, n + 1] = g
                                wrap_xpos[w, n + 1] = q1
                                n = n + 2
                            else:
                                length = length + pull(w, first, count, scale, b0, p0, site_bodyid[last], p1,
                                                       ten_J_colind, body_isdofancestor, body_rootid, subtree_com,
                                                       cdof, ten_J)  # fmt: skip
                            x = x + 2
                        else:
                            length = length + pull(w, first, count, scale, b0, p0, site_bodyid[last],
                                                   site_xpos[w, last], ten_J_colind, body_isdofancestor, body_rootid,
                                                   subtree_com, cdof, ten_J)  # fmt: skip
                            x = x + 1
                        end = x == stop - 1
                        if not end:
                            end = wrap_type[x + 1] == WRAP_PULLEY
                        if end:
                            wrap_obj[w, n] = -1
                            wrap_xpos[w, n] = site_xpos[w, last]
                            n = n + 1
            ten_length[w, k] = length
            ten_wrapnum[w, k] = n - ten_wrapadr[w, k]

    return dict(tendon=tendon)


def _velocity(real: Any) -> dict[str, wp.Kernel]:
    @wp.kernel
    def tendon_vel(
        ten_J_rowadr: ints, ten_J_rownnz: ints, ten_J_colind: ints, ten_J: wp.array2d(dtype=real),
        qvel: wp.array2d(dtype=real), ten_velocity: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Velocity of each tendon: its row of the Jacobian times the velocities of joints."""
        w = wp.tid()
        for k in range(ten_J_rowadr.shape[0]):
            speed = real(0.0)
            for e in range(ten_J_rowadr[k], ten_J_rowadr[k] + ten_J_rownnz[k]):
                speed = speed + ten_J[w, e] * qvel[w, ten_J_colind[e]]
            ten_velocity[w, k] = speed

    return dict(tendon_vel=tendon_vel)


def _bias(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    vec3, spatial = t.vec3, t.spatial
    rotation, translation, added = a.rotation, a.translation, drivetrain(real).added

    @wp.func
    def at(motion: spatial, arm: vec3):
        """The velocity, or acceleration, of the point at ``arm`` that moves along."""
        return translation(motion) + wp.cross(rotation(motion), arm)

    @wp.kernel
    def tendon_bias(
        tendon_actuatorid: ints, actuator_trntype: ints, actuator_trnid: ints2, actuator_outadr: ints,
        actuator_armature: wp.array2d(dtype=real), actuator_gear: wp.array2d(dtype=spatial),
        tendon_armature: wp.array2d(dtype=real), tendon_type: ints, tendon_adr: ints, tendon_num: ints,
        wrap_type: ints, wrap_objid: ints, wrap_prm: wp.array(dtype=real),
        ten_J_rownnz: ints, ten_J_rowadr: ints, ten_J_colind: ints, site_bodyid: ints, body_rootid: ints,
        site_xpos: wp.array2d(dtype=vec3), subtree_com: wp.array2d(dtype=vec3), cvel: wp.array2d(dtype=spatial),
        bias_acc: wp.array2d(dtype=spatial), ten_J: wp.array2d(dtype=real), qfrc_bias: wp.array2d(dtype=real),
    ):  # fmt: skip
        """What the rotors of tendons add to qfrc_bias: ``J' armature a``, a being its acceleration at ``qacc = 0``.

        A segment of length L along n, whose ends differ in velocity by v and in acceleration by c, has
        ``a = n·c + (v·v - (n·v)²) / L``. MuJoCo's compiler allows rotors on tendons that go straight between sites.
        """
        w = wp.tid()
        for k in range(tendon_type.shape[0]):
            rotor = tendon_armature[row(w, tendon_armature), k]
            rotor = rotor + added(w, k, tendon_actuatorid[k], True, actuator_trntype, actuator_trnid, actuator_outadr,
                                  actuator_armature, actuator_gear)  # fmt: skip
            if tendon_type[k] != TENDON_FIXED and rotor != real(0.0):
                scale = real(1.0)
                total = real(0.0)
                for x in range(tendon_adr[k], tendon_adr[k] + tendon_num[k] - 1):
                    if wrap_type[x] == WRAP_PULLEY:
                        scale = real(1.0) / wrap_prm[x]
                    elif wrap_type[x + 1] != WRAP_PULLEY:
                        s0, s1 = wrap_objid[x], wrap_objid[x + 1]
                        b0, b1 = site_bodyid[s0], site_bodyid[s1]
                        arm0 = site_xpos[w, s0] - subtree_com[w, body_rootid[b0]]
                        arm1 = site_xpos[w, s1] - subtree_com[w, body_rootid[b1]]
                        v0, v1 = at(cvel[w, b0], arm0), at(cvel[w, b1], arm1)
                        c0 = at(bias_acc[w, b0], arm0) + wp.cross(rotation(cvel[w, b0]), v0)
                        c1 = at(bias_acc[w, b1], arm1) + wp.cross(rotation(cvel[w, b1]), v1)
                        way = site_xpos[w, s1] - site_xpos[w, s0]
                        length = wp.length(way)
                        if b0 != b1 and length > real(MINVAL):
                            n = way / length
                            v = v1 - v0
                            along = wp.dot(n, v)
                            total = total + scale * (wp.dot(n, c1 - c0) + (wp.dot(v, v) - along * along) / length)
                for e in range(ten_J_rowadr[k], ten_J_rowadr[k] + ten_J_rownnz[k]):
                    i = ten_J_colind[e]
                    qfrc_bias[w, i] = qfrc_bias[w, i] + ten_J[w, e] * rotor * total

    return dict(tendon_bias=tendon_bias)
