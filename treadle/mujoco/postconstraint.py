"""What constraints do to bodies: forces in contacts, and accelerations and forces of bodies under all forces.

MuJoCo computes them after the solver, where a sensor asks for them (mj_rnePostConstraint).
"""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, row, types
from treadle.mujoco.constants import GRAVITY
from treadle.mujoco.constraint.equality import frames_of, turning
from treadle.mujoco.constraint.kinds import CONNECT, PYRAMIDAL, WELD

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    made = (_contact_wrenches(real), _external(real), _rne(real))
    return dict(zip(("contact_wrenches", "external_forces", "rne_postconstraint"), made))


def _contact_wrenches(real: Any) -> wp.Kernel:
    t = types(real)
    vec5, spatial = t.vec5, t.spatial

    @wp.kernel
    def contact_wrenches(
        ncon: ints, contact_dim: ints2, contact_friction: wp.array2d(dtype=vec5), contact_efc_address: ints2,
        efc_type: ints2, efc_force: wp.array2d(dtype=real), contact_wrench: wp.array2d(dtype=spatial),
    ):  # fmt: skip
        """Force and torque of each contact, in its own frame.

        The forces along the edges of a pyramid add up to the normal force, and their differences, times the friction
        coefficients, to those in the other directions.
        """
        w = wp.tid()
        for c in range(ncon[w]):
            wrench = spatial()
            e, dim = contact_efc_address[w, c], contact_dim[w, c]
            if e >= 0:
                if efc_type[w, e] == PYRAMIDAL:
                    friction = contact_friction[w, c]
                    for j in range(5):
                        if j < dim - 1 and e + 2 * j + 1 < efc_force.shape[1]:
                            up, down = efc_force[w, e + 2 * j], efc_force[w, e + 2 * j + 1]
                            wrench[0] = wrench[0] + up + down
                            wrench[j + 1] = (up - down) * friction[j]
                else:
                    for j in range(6):
                        if j < dim and e + j < efc_force.shape[1]:
                            wrench[j] = efc_force[w, e + j]
            contact_wrench[w, c] = wrench

    return contact_wrenches


def _external(real: Any) -> wp.Kernel:
    t, a, frames, turned = types(real), algebra(real), frames_of(real), turning(real).turned
    vec3, quat, mat33, spatial = t.vec3, t.quat, t.mat33, t.spatial
    pair, push_at, rotation, translation = a.pair, a.push_at, a.rotation, a.translation

    @wp.func
    def about(force: vec3, torque: vec3, offset: vec3):
        """A force at ``offset`` with a torque, as a spatial force about the origin of the offset."""
        return pair(torque + wp.cross(offset, force), force)

    @wp.kernel
    def external_forces(
        pushed: bool, body_rootid: ints, geom_bodyid: ints, eq_type: ints, eq_obj1id: ints, eq_obj2id: ints,
        eq_objtype: ints, eq_data: wp.array3d(dtype=real), site_bodyid: ints, site_quat: wp.array2d(dtype=quat),
        xfrc_applied: wp.array2d(dtype=spatial), xpos: wp.array2d(dtype=vec3), xquat: wp.array2d(dtype=quat),
        xmat: wp.array2d(dtype=mat33), site_xpos: wp.array2d(dtype=vec3), xipos: wp.array2d(dtype=vec3),
        subtree_com: wp.array2d(dtype=vec3), ncon: ints, contact_pos: wp.array2d(dtype=vec3),
        contact_frame: wp.array2d(dtype=mat33), contact_geom1: ints2, contact_geom2: ints2,
        contact_wrench: wp.array2d(dtype=spatial), contact_efc_address: ints2, eq_efc_address: ints2,
        efc_force: wp.array2d(dtype=real), cfrc_ext: wp.array2d(dtype=spatial),
    ):  # fmt: skip
        """Forces on bodies from outside: applied ones, contacts, and constraints of two points or frames."""
        w = wp.tid()
        for b in range(body_rootid.shape[0]):
            force = spatial()
            if pushed and b > 0:
                force = push_at(xfrc_applied[w, b], xipos[w, b] - subtree_com[w, body_rootid[b]])
            cfrc_ext[w, b] = force
        for c in range(ncon[w]):
            if contact_efc_address[w, c] >= 0:
                to_world = wp.transpose(contact_frame[w, c])
                force, torque = to_world * rotation(contact_wrench[w, c]), to_world * translation(contact_wrench[w, c])
                b1, b2 = geom_bodyid[contact_geom1[w, c]], geom_bodyid[contact_geom2[w, c]]
                p = contact_pos[w, c]
                if b1 > 0:
                    cfrc_ext[w, b1] = cfrc_ext[w, b1] - about(force, torque, p - subtree_com[w, body_rootid[b1]])
                if b2 > 0:
                    cfrc_ext[w, b2] = cfrc_ext[w, b2] + about(force, torque, p - subtree_com[w, body_rootid[b2]])
        for e in range(eq_type.shape[0]):
            n = eq_efc_address[w, e]
            if n >= 0 and (eq_type[e] == CONNECT or eq_type[e] == WELD):
                weld = eq_type[e] == WELD
                b1, b2, p1, p2, quat1, quat2 = frames(
                    w, e, weld, eq_obj1id, eq_obj2id, eq_objtype, eq_data, site_bodyid, site_quat, xpos, xquat, xmat,
                    site_xpos,
                )  # fmt: skip
                force = vec3()
                along = vec3()
                for i in range(3):
                    if n + i < efc_force.shape[1]:
                        force[i] = efc_force[w, n + i]
                    if weld and n + 3 + i < efc_force.shape[1]:
                        along[i] = efc_force[w, n + 3 + i]
                torque = vec3()
                if weld:  # forces along the twist do work where the bodies turn
                    scale = eq_data[row(w, eq_data), e, 10]
                    for i in range(3):
                        axis = vec3()
                        axis[i] = scale
                        torque[i] = wp.dot(along, turned(quat1, quat2, axis))
                if b1 > 0:
                    cfrc_ext[w, b1] = cfrc_ext[w, b1] + about(force, torque, p1 - subtree_com[w, body_rootid[b1]])
                if b2 > 0:
                    cfrc_ext[w, b2] = cfrc_ext[w, b2] - about(force, torque, p2 - subtree_com[w, body_rootid[b2]])

    return external_forces


def _rne(real: Any) -> wp.Kernel:
    t, a = types(real), algebra(real)
    vec3, spatial, inertia = t.vec3, t.spatial, t.inertia
    pair, cross_force, mul_inertia = a.pair, a.cross_force, a.mul_inertia

    @wp.kernel
    def rne_postconstraint(
        opt_disableflags: int, opt_gravity: wp.array(dtype=vec3), body_parentid: ints, body_dofadr: ints,
        body_dofnum: ints, qvel: wp.array2d(dtype=real), qacc: wp.array2d(dtype=real),
        cinert: wp.array2d(dtype=inertia), cdof: wp.array2d(dtype=spatial), cvel: wp.array2d(dtype=spatial),
        cdof_dot: wp.array2d(dtype=spatial), cfrc_ext: wp.array2d(dtype=spatial), cacc: wp.array2d(dtype=spatial),
        cfrc_int: wp.array2d(dtype=spatial),
    ):  # fmt: skip
        """Recursive Newton-Euler with the accelerations found and the forces from outside (Featherstone, table 5.1)."""
        w = wp.tid()
        nbody = body_parentid.shape[0]
        up = vec3()
        if (opt_disableflags & GRAVITY) == 0:
            up = -opt_gravity[row(w, opt_gravity)]
        cacc[w, 0] = pair(vec3(), up)
        cfrc_int[w, 0] = spatial()
        for b in range(1, nbody):
            acc = cacc[w, body_parentid[b]]
            for i in range(body_dofadr[b], body_dofadr[b] + body_dofnum[b]):
                acc = acc + cdof_dot[w, i] * qvel[w, i] + cdof[w, i] * qacc[w, i]
            cacc[w, b] = acc
            carried = cross_force(cvel[w, b], mul_inertia(cinert[w, b], cvel[w, b]))
            cfrc_int[w, b] = mul_inertia(cinert[w, b], acc) + carried - cfrc_ext[w, b]
        for k in range(nbody - 1):
            b = nbody - 1 - k
            above = body_parentid[b]
            cfrc_int[w, above] = cfrc_int[w, above] + cfrc_int[w, b]

    return rne_postconstraint
