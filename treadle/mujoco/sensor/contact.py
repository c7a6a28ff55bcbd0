"""The sensor of contacts: which contacts match it, which of them it reports, and what."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, row, types
from treadle.mujoco.constants import MINVAL
from treadle.mujoco.sensor.kinds import BODY, GEOM, KIND, SITE, UNKNOWN, XBODY
from treadle.mujoco.sensor.objects import objects, outputs
from treadle.mujoco.sensor.shapes import shapes

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)

CONTACT = KIND.CONTACT

# bits of what is reported, in the order in which it lies in a slot (mjtConDataField)
FOUND, FORCE, TORQUE, DIST, POS, NORMAL, TANGENT, LINVEL, ANGVEL = (wp.constant(1 << k) for k in range(9))
NEAREST, STRONGEST, NET = wp.constant(1), wp.constant(2), wp.constant(3)  # how contacts are chosen


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {"sensor_match": _match(real), "sensor_contact": _report(real), "sensor_net": _net(real)}


def _match(real: Any) -> wp.Kernel:
    t, inside = types(real), shapes(real).inside
    vec3, mat33 = t.vec3, t.mat33

    @wp.func
    def matches(kind: int, id: int, body: int, geom: int, body_parentid: ints):
        """Whether one side of a contact is the object of a sensor; for a body with all below it, belongs to it."""
        found = kind == UNKNOWN or kind == SITE or (kind == GEOM and id == geom) or (kind == BODY and id == body)
        if kind == XBODY:
            b = body
            while b > id:
                b = body_parentid[b]
            found = b == id
        return found

    @wp.func
    def direction(kind1: int, kind2: int, m11: bool, m12: bool, m21: bool, m22: bool):
        """1 if a contact matches as it is, -1 if with its sides exchanged, 0 if not. ``m12``: object 1, second side."""
        found = 1
        if not (m11 or m12) or not (m21 or m22):
            found = 0
        elif kind1 != UNKNOWN and kind2 != UNKNOWN:
            if not (m11 and m22):
                found = 0
                if m12 and m21:
                    found = -1
        elif (kind1 != UNKNOWN and not m11) or (kind2 != UNKNOWN and not m22):
            found = -1
        return found

    @wp.kernel
    def sensor_match(
        sensor_type: ints, sensor_objtype: ints, sensor_objid: ints, sensor_reftype: ints, sensor_refid: ints,
        body_parentid: ints, geom_bodyid: ints, site_type: ints, site_size: wp.array2d(dtype=vec3),
        site_xpos: wp.array2d(dtype=vec3), site_xmat: wp.array2d(dtype=mat33), ncon: ints,
        contact_pos: wp.array2d(dtype=vec3), contact_geom1: ints2, contact_geom2: ints2,
        sensor_side: wp.array3d(dtype=int), sensor_found: ints2,
    ):  # fmt: skip
        """Of each sensor of contacts and each contact: whether and in which direction it matches, and how many do."""
        w = wp.tid()
        for s in range(sensor_type.shape[0]):
            if sensor_type[s] == CONTACT:
                kind1, id1, kind2, id2 = sensor_objtype[s], sensor_objid[s], sensor_reftype[s], sensor_refid[s]
                count = int(0)
                for c in range(ncon[w]):
                    g1, g2 = contact_geom1[w, c], contact_geom2[w, c]
                    b1, b2 = geom_bodyid[g1], geom_bodyid[g2]
                    side = direction(
                        kind1, kind2,
                        matches(kind1, id1, b1, g1, body_parentid), matches(kind1, id1, b2, g2, body_parentid),
                        matches(kind2, id2, b1, g1, body_parentid), matches(kind2, id2, b2, g2, body_parentid),
                    )  # fmt: skip
                    if kind1 == SITE:
                        local = wp.transpose(site_xmat[w, id1]) * (contact_pos[w, c] - site_xpos[w, id1])
                        if not inside(site_type[id1], site_size[row(w, site_size), id1], local):
                            side = 0
                    sensor_side[w, s, c] = side
                    if side != 0:
                        count = count + 1
                sensor_found[w, s] = count

    return sensor_match


def _report(real: Any) -> wp.Kernel:
    t, a, put3, moving = types(real), algebra(real), outputs(real).put3, objects(real).moving
    vec3, mat33, spatial, rotation, translation = t.vec3, t.mat33, t.spatial, a.rotation, a.translation

    @wp.func
    def seen_from(v: vec3, side: int):
        """A vector in a contact's frame as seen in the frame of the contact with sides exchanged: two axes turn."""
        return vec3(v[0], v[1], real(side) * v[2])

    @wp.func
    def row_of(m: mat33, i: int):
        return vec3(m[i, 0], m[i, 1], m[i, 2])

    @wp.kernel
    def sensor_contact(
        sensor_type: ints, sensor_intprm: ints2, sensor_adr: ints, sensor_dim: ints, body_rootid: ints,
        geom_bodyid: ints, subtree_com: wp.array2d(dtype=vec3), cvel: wp.array2d(dtype=spatial), ncon: ints,
        contact_dist: wp.array2d(dtype=real), contact_pos: wp.array2d(dtype=vec3),
        contact_frame: wp.array2d(dtype=mat33), contact_geom1: ints2, contact_geom2: ints2,
        contact_wrench: wp.array2d(dtype=spatial), sensor_found: ints2, sensor_side: wp.array3d(dtype=int),
        sensordata: wp.array2d(dtype=real),
    ):  # fmt: skip
        """One contact a slot: the first ones, the nearest or the strongest; slots without a contact are zero."""
        w = wp.tid()
        for s in range(sensor_type.shape[0]):
            if sensor_type[s] == CONTACT and sensor_intprm[s, 1] != NET:
                what, choice = sensor_intprm[s, 0], sensor_intprm[s, 1]
                at, end = sensor_adr[s], sensor_adr[s] + sensor_dim[s]
                for k in range(at, end):
                    sensordata[w, k] = real(0.0)
                while at < end:
                    best = int(-1)
                    least = real(0.0)
                    for c in range(ncon[w]):
                        if sensor_side[w, s, c] != 0:
                            key = real(0.0)
                            if choice == NEAREST:
                                key = contact_dist[w, c]
                            elif choice == STRONGEST:
                                force = rotation(contact_wrench[w, c])
                                key = -wp.dot(force, force)
                            if best < 0 or key < least:
                                best, least = c, key
                    side = int(1)
                    c = wp.max(best, 0)
                    if best >= 0:
                        side = sensor_side[w, s, c]
                        sensor_side[w, s, c] = 0  # taken
                    sign, live = real(side), best >= 0
                    frame, wrench, p = contact_frame[w, c], contact_wrench[w, c], contact_pos[w, c]
                    if (what & FOUND) != 0:
                        if live:
                            sensordata[w, at] = real(sensor_found[w, s])
                        at = at + 1
                    if (what & FORCE) != 0:
                        if live:
                            put3(w, at, seen_from(rotation(wrench), side), sensordata)
                        at = at + 3
                    if (what & TORQUE) != 0:
                        if live:
                            put3(w, at, seen_from(translation(wrench), side), sensordata)
                        at = at + 3
                    if (what & DIST) != 0:
                        if live:
                            sensordata[w, at] = contact_dist[w, c]
                        at = at + 1
                    if (what & POS) != 0:
                        if live:
                            put3(w, at, p, sensordata)
                        at = at + 3
                    if (what & NORMAL) != 0:
                        if live:
                            put3(w, at, sign * row_of(frame, 0), sensordata)
                        at = at + 3
                    if (what & TANGENT) != 0:
                        if live:
                            put3(w, at, sign * row_of(frame, 1), sensordata)
                        at = at + 3
                    if (what & (LINVEL | ANGVEL)) != 0:
                        b1, b2 = geom_bodyid[contact_geom1[w, c]], geom_bodyid[contact_geom2[w, c]]
                        v = moving(cvel[w, b2], p - subtree_com[w, body_rootid[b2]])
                        v = v - moving(cvel[w, b1], p - subtree_com[w, body_rootid[b1]])
                        if (what & LINVEL) != 0:
                            if live:
                                put3(w, at, seen_from(frame * translation(v), side), sensordata)
                            at = at + 3
                        if (what & ANGVEL) != 0:
                            if live:
                                put3(w, at, seen_from(frame * rotation(v), side), sensordata)
                            at = at + 3

    return sensor_contact


def _net(real: Any) -> wp.Kernel:
    t, a, put3 = types(real), algebra(real), outputs(real).put3
    vec3, mat33, spatial, rotation, translation = t.vec3, t.mat33, t.spatial, a.rotation, a.translation

    @wp.kernel
    def sensor_net(
        sensor_type: ints, sensor_intprm: ints2, sensor_adr: ints, sensor_dim: ints, ncon: ints,
        contact_pos: wp.array2d(dtype=vec3), contact_frame: wp.array2d(dtype=mat33),
        contact_wrench: wp.array2d(dtype=spatial), sensor_found: ints2, sensor_side: wp.array3d(dtype=int),
        sensordata: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Force and torque of all contacts together, in the world's frame, about the centre of their forces."""
        w = wp.tid()
        zero, one = real(0.0), real(1.0)
        for s in range(sensor_type.shape[0]):
            if sensor_type[s] == CONTACT and sensor_intprm[s, 1] == NET:
                what, at = sensor_intprm[s, 0], sensor_adr[s]
                for k in range(at, at + sensor_dim[s]):
                    sensordata[w, k] = zero
                if sensor_found[w, s] > 0:
                    force = vec3()
                    torque = vec3()
                    centre = vec3()
                    total = zero
                    for c in range(ncon[w]):
                        side = sensor_side[w, s, c]
                        if side != 0:
                            size = wp.length(rotation(contact_wrench[w, c]))
                            back = real(side) * wp.transpose(contact_frame[w, c])
                            push = back * rotation(contact_wrench[w, c])
                            force = force + push
                            torque = torque + back * translation(contact_wrench[w, c])
                            torque = torque + wp.cross(contact_pos[w, c], push)
                            centre = centre + size * contact_pos[w, c]
                            total = total + size
                    centre = centre / wp.max(total, real(MINVAL))
                    torque = torque - wp.cross(centre, force)
                    if (what & FOUND) != 0:
                        sensordata[w, at] = real(sensor_found[w, s])
                        at = at + 1
                    if (what & FORCE) != 0:
                        put3(w, at, force, sensordata)
                        at = at + 3
                    if (what & TORQUE) != 0:
                        put3(w, at, torque, sensordata)
                        at = at + 3
                    if (what & DIST) != 0:
                        at = at + 1
                    if (what & POS) != 0:
                        put3(w, at, centre, sensordata)
                        at = at + 3
                    if (what & NORMAL) != 0:
                        put3(w, at, vec3(one, zero, zero), sensordata)
                        at = at + 3
                    if (what & TANGENT) != 0:
                        put3(w, at, vec3(zero, one, zero), sensordata)

    return sensor_net
