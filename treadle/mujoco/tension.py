"""Forces with which tendons under tension pull on bodies, along their paths.

The tension is the force that a tendon exerts along its length, from springs, dampers, actuators and constraints. Where
the path bends at a point of a body, both neighbouring pieces pull on it.
"""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, row, types
from treadle.mujoco.constants import MINVAL, TENDON_FIXED, TRN_TENDON, WRAP_CYLINDER, WRAP_PULLEY, WRAP_SPHERE
from treadle.mujoco.constraint.equality import coupled
from treadle.mujoco.constraint.kinds import FRICTION_TENDON, LIMIT_TENDON, TENDON

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {"tendon_tensions": _tensions(real), "tendon_pulls": _pulls(real)}


def _tensions(real: Any) -> wp.Kernel:
    t, polynomial = types(real), coupled(real).polynomial
    vec2, spatial = t.vec2, t.spatial

    @wp.kernel
    def tendon_tensions(
        eq_type: ints, eq_obj1id: ints, eq_obj2id: ints, eq_data: wp.array3d(dtype=real),
        actuator_trntype: ints, actuator_trnid: ints2, actuator_outadr: ints, actuator_gear: wp.array2d(dtype=spatial),
        tendon_range: wp.array2d(dtype=vec2), tendon_length0: wp.array2d(dtype=real),
        ten_length: wp.array2d(dtype=real), ten_passive: wp.array2d(dtype=real),
        actuator_force: wp.array2d(dtype=real), nefc: ints, efc_type: ints2, efc_id: ints2,
        efc_pos: wp.array2d(dtype=real), efc_force: wp.array2d(dtype=real), eq_efc_address: ints2,
        ten_tension: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Passive forces, actuators and constraints together."""
        w = wp.tid()
        for k in range(ten_length.shape[1]):
            ten_tension[w, k] = ten_passive[w, k]
        for u in range(actuator_trntype.shape[0]):
            if actuator_trntype[u] == TRN_TENDON:
                k, out = actuator_trnid[u, 0], actuator_outadr[u]
                gear = actuator_gear[row(w, actuator_gear), out][0]
                ten_tension[w, k] = ten_tension[w, k] + gear * actuator_force[w, out]
        for e in range(eq_type.shape[0]):
            n = eq_efc_address[w, e]
            if eq_type[e] == TENDON and n >= 0 and n < nefc[w]:
                k, other = eq_obj1id[e], eq_obj2id[e]
                force = efc_force[w, n]
                ten_tension[w, k] = ten_tension[w, k] + force
                if other >= 0:
                    x = ten_length[w, other] - tendon_length0[row(w, tendon_length0), other]
                    value, slope = polynomial(row(w, eq_data), e, eq_data, x)
                    ten_tension[w, other] = ten_tension[w, other] - slope * force
        before = int(-1)  # the tendon of the limit in the row before
        for i in range(nefc[w]):
            kind, k, force = efc_type[w, i], efc_id[w, i], efc_force[w, i]
            if kind == FRICTION_TENDON:
                ten_tension[w, k] = ten_tension[w, k] + force
            elif kind == LIMIT_TENDON:
                low = ten_length[w, k] - tendon_range[row(w, tendon_range), k][0]
                if before == k or efc_pos[w, i] != low:  # the upper limit: it comes second
                    force = -force
                ten_tension[w, k] = ten_tension[w, k] + force
                before = k

    return tendon_tensions


def _pulls(real: Any) -> wp.Kernel:
    t, pair = types(real), algebra(real).pair
    vec3, spatial = t.vec3, t.spatial

    @wp.func
    def pull(
        w: int, force: real, b0: int, p0: vec3, b1: int, p1: vec3, rootid: ints, subtree_com: wp.array2d(dtype=vec3),
        cfrc_ext: wp.array2d(dtype=spatial),
    ):  # fmt: skip
        """Add the force along a straight piece between two points of two bodies; a positive one pushes them apart."""
        if b0 != b1:
            way = p1 - p0
            push = (force / wp.max(wp.length(way), real(MINVAL))) * way
            if b0 > 0:
                arm = p0 - subtree_com[w, rootid[b0]]
                cfrc_ext[w, b0] = cfrc_ext[w, b0] - pair(wp.cross(arm, push), push)
            if b1 > 0:
                arm = p1 - subtree_com[w, rootid[b1]]
                cfrc_ext[w, b1] = cfrc_ext[w, b1] + pair(wp.cross(arm, push), push)

    @wp.kernel
    def tendon_pulls(
        tendon_type: ints, tendon_adr: ints, tendon_num: ints, wrap_type: ints, wrap_objid: ints,
        wrap_prm: wp.array(dtype=real), site_bodyid: ints, geom_bodyid: ints, body_rootid: ints,
        site_xpos: wp.array2d(dtype=vec3), subtree_com: wp.array2d(dtype=vec3), ten_wrapadr: ints2,
        wrap_obj: ints2, wrap_xpos: wp.array2d(dtype=vec3), ten_tension: wp.array2d(dtype=real),
        cfrc_ext: wp.array2d(dtype=spatial),
    ):  # fmt: skip
        """Add to the forces on bodies those of spatial tendons, piece by piece of their paths."""
        w = wp.tid()
        for k in range(tendon_type.shape[0]):
            if tendon_type[k] != TENDON_FIXED:
                n = ten_wrapadr[w, k]  # the point of the path, while x is the object
                force = ten_tension[w, k]
                x, last = tendon_adr[k], tendon_adr[k] + tendon_num[k] - 1
                while x < last:
                    kind = wrap_type[x + 1]
                    if wrap_type[x] == WRAP_PULLEY:
                        force = ten_tension[w, k] / wrap_prm[x]
                        n = n + 1
                        x = x + 1
                    elif kind == WRAP_PULLEY:
                        n = n + 1
                        x = x + 1
                    else:
                        n = n + 1
                        s0, s1 = wrap_objid[x], wrap_objid[x + 1]
                        if kind == WRAP_SPHERE or kind == WRAP_CYLINDER:
                            s1 = wrap_objid[x + 2]
                        b0, p0, b1, p1 = site_bodyid[s0], site_xpos[w, s0], site_bodyid[s1], site_xpos[w, s1]
                        if kind == WRAP_SPHERE or kind == WRAP_CYLINDER:
                            g = wrap_objid[x + 1]
                            b = geom_bodyid[g]
                            if wrap_obj[w, n] == g:
                                pull(w, force, b0, p0, b, wrap_xpos[w, n], body_rootid, subtree_com, cfrc_ext)
                                pull(w, force, b, wrap_xpos[w, n + 1], b1, p1, body_rootid, subtree_com, cfrc_ext)
                                n = n + 2
                            else:
                                pull(w, force, b0, p0, b1, p1, body_rootid, subtree_com, cfrc_ext)
                            x = x + 2
                        else:
                            pull(w, force, b0, p0, b1, p1, body_rootid, subtree_com, cfrc_ext)
                            x = x + 1

    return tendon_pulls
