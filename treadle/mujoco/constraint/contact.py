"""Rows of contacts: frictionless, pyramidal, elliptic (MuJoCo documentation, Computation, Contact)."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, row, types
from treadle.mujoco.constraint.jacobian import jacobians
from treadle.mujoco.constraint.kinds import CONE_ELLIPTIC, ELLIPTIC, FRICTIONLESS, NO_CONTACT, PYRAMIDAL
from treadle.mujoco.constraint.rows import writers

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    t, a, write = types(real), algebra(real), writers(real)
    vec2, vec3, vec5, mat33, spatial, numbers = t.vec2, t.vec3, t.vec5, t.mat33, t.spatial, t.spec
    rotation, at_point, spec, put = a.rotation, jacobians(real).at_point, write.spec, write.put

    @wp.func
    def move(jp: vec3, jr: vec3, frame: mat33, axis: int):
        """Of a contact's relative motion the part ``axis``: 0 normal, 1 and 2 slide, 3 spin, 4 and 5 roll."""
        moving = jp
        if axis > 2:
            moving = jr
            axis = axis - 3
        return frame[axis, 0] * moving[0] + frame[axis, 1] * moving[1] + frame[axis, 2] * moving[2]

    @wp.kernel
    def contacts(
        opt_disableflags: int, opt_cone: int, geom_bodyid: ints, body_rootid: ints, body_isdofancestor: ints2,
        body_invweight0: wp.array2d(dtype=vec2),
        ncon: ints, contact_dist: wp.array2d(dtype=real), contact_pos: wp.array2d(dtype=vec3),
        contact_frame: wp.array2d(dtype=mat33), contact_includemargin: wp.array2d(dtype=real),
        contact_friction: wp.array2d(dtype=vec5), contact_solref: wp.array2d(dtype=vec2),
        contact_solreffriction: wp.array2d(dtype=vec2), contact_solimp: wp.array2d(dtype=vec5),
        contact_dim: ints2, contact_geom1: ints2, contact_geom2: ints2,
        subtree_com: wp.array2d(dtype=vec3), cdof: wp.array2d(dtype=spatial),
        contact_efc_address: ints2,
        efc_type: ints2, efc_id: ints2, efc_dim: ints2, efc_spec: wp.array2d(dtype=numbers),
        efc_J: wp.array3d(dtype=real), nrow: wp.array(dtype=int),
    ):  # fmt: skip
        """Rows of the contacts of a world that are within their margin.

        A pyramid's rows are its edges, normal plus or minus friction times a direction of sliding; those of an
        elliptic cone are the normal and the directions themselves.
        """
        w = wp.tid()
        zero = real(0.0)
        room = efc_J.shape[1]
        n = nrow[w]
        for c in range(ncon[w]):
            contact_efc_address[w, c] = -1
            dist, margin = contact_dist[w, c], contact_includemargin[w, c]
            if dist < margin and (opt_disableflags & NO_CONTACT) == 0:
                dim = contact_dim[w, c]
                frame, friction = contact_frame[w, c], contact_friction[w, c]
                b1, b2 = geom_bodyid[contact_geom1[w, c]], geom_bodyid[contact_geom2[w, c]]
                offset1 = contact_pos[w, c] - subtree_com[w, body_rootid[b1]]
                offset2 = contact_pos[w, c] - subtree_com[w, body_rootid[b2]]
                elliptic = opt_cone == CONE_ELLIPTIC
                moved = int(0)
                for k in range(efc_J.shape[2]):
                    motion = cdof[w, k]
                    on1, on2 = real(body_isdofancestor[b1, k]), real(body_isdofancestor[b2, k])
                    jp = on2 * at_point(motion, offset2) - on1 * at_point(motion, offset1)
                    jr = (on2 - on1) * rotation(motion)
                    normal = move(jp, jr, frame, 0)
                    moved = moved + body_isdofancestor[b1, k] + body_isdofancestor[b2, k]
                    if dim == 1 or elliptic:
                        if n < room:
                            efc_J[w, n, k] = normal
                    for s in range(1, 6):
                        if s < dim:
                            slide = move(jp, jr, frame, s)
                            if elliptic:
                                if n + s < room:
                                    efc_J[w, n + s, k] = slide
                            else:
                                first = n + 2 * (s - 1)
                                if first < room:
                                    efc_J[w, first, k] = normal + friction[s - 1] * slide
                                if first + 1 < room:
                                    efc_J[w, first + 1, k] = normal - friction[s - 1] * slide
                if moved > 0:  # otherwise neither body can move
                    solref, solimp = contact_solref[w, c], contact_solimp[w, c]
                    weights = row(w, body_invweight0)
                    weight = body_invweight0[weights, b1][0] + body_invweight0[weights, b2][0]
                    if n < room:
                        contact_efc_address[w, c] = n
                    if dim == 1:
                        known = spec(dist, dist, margin, weight, zero, zero, solref, solimp)
                        put(w, n, FRICTIONLESS, c, 1, known, efc_type, efc_id, efc_dim, efc_spec)
                        n = n + 1
                    elif elliptic:
                        known = spec(dist, dist, margin, weight, zero, friction[0], solref, solimp)
                        put(w, n, ELLIPTIC, c, dim, known, efc_type, efc_id, efc_dim, efc_spec)
                        sliding = contact_solreffriction[w, c]
                        if sliding[0] == zero and sliding[1] == zero:
                            sliding = solref
                        for s in range(1, 6):
                            if s < dim:
                                known = spec(zero, dist - margin, zero, weight, zero, friction[s - 1], sliding, solimp)
                                put(w, n + s, ELLIPTIC, c, 0, known, efc_type, efc_id, efc_dim, efc_spec)
                        n = n + dim
                    else:
                        weight = weight + friction[0] * friction[0] * weight
                        known = spec(dist, dist, margin, weight, zero, friction[0], solref, solimp)
                        for s in range(10):
                            if s < 2 * (dim - 1):
                                first = 0
                                if s == 0:
                                    first = 2 * (dim - 1)
                                put(w, n + s, PYRAMIDAL, c, first, known, efc_type, efc_id, efc_dim, efc_spec)
                        n = n + 2 * (dim - 1)
        nrow[w] = n

    return dict(contacts=contacts)
