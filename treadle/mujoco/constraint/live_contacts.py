"""Live bonds of contacts: their basis rows are the directions of the contact's frame."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, index, row, types
from treadle.mujoco.collision.contacts import listing
from treadle.mujoco.collision.gather import mixing
from treadle.mujoco.constraint.kinds import CONE_ELLIPTIC, NO_CONTACT
from treadle.mujoco.constraint.live import NUMBERS, ROWS, living, places
from treadle.mujoco.constraint.rows import writers

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def live_contacts(real: Any) -> SimpleNamespace:
    """The kernel function ``contacts`` for one precision."""
    t, a, spec = types(real), living(real), writers(real).spec
    rotation, translation = algebra(real).rotation, algebra(real).translation
    vec2, vec3, vec5, mat33, spatial = t.vec2, t.vec3, t.vec5, t.mat33, t.spatial
    matrix, pairs2, fives, vectors = (wp.array2d(dtype=kind) for kind in (real, vec2, vec5, vec3))
    put, soften = a.put, a.soften
    margin_of, frame_of, parameters = listing(real).margin_of, mixing(real).frame, mixing(real).parameters

    @wp.func(inline=True)
    def directions(
        w: int, place: int, dim: int, num: int, first: int, on: bool, frame: mat33, offset1: vec3, offset2: vec3,
        bond_dof: ints, bond_sign: ints, cdof: wp.array2d(dtype=spatial), J: matrix,
    ):  # fmt: skip
        """The relative motion of two bodies along the axes of the frame, and about them, per degree of freedom.

        Of a motion (r, t) the point at ``offset`` moves along an axis by ``axis . (t + r x offset)``, which is
        ``axis . t + (offset x axis) . r``.
        """
        for side in range(2):
            sign, offset = 1 - 2 * side, offset2
            if side > 0:
                offset = offset1
            factor = wp.where(on, real(sign), real(0.0))
            for s in range(3):  # what a lane that has no contact finds there need not be a number
                offset[s] = wp.where(on, offset[s], real(0.0))
            axis0, axis1, axis2 = vec3(), vec3(), vec3()
            for s in range(3):
                axis0[s] = wp.where(on, factor * frame[0, s], real(0.0))
                axis1[s] = wp.where(on, factor * frame[1, s], real(0.0))
                axis2[s] = wp.where(on, factor * frame[2, s], real(0.0))
            arm0, arm1, arm2 = wp.cross(offset, axis0), wp.cross(offset, axis1), wp.cross(offset, axis2)
            for m in range(num):
                if bond_sign[first + m] == sign:
                    motion = cdof[w, index(bond_dof[first + m])]
                    r, t, j = rotation(motion), translation(motion), place + m
                    J[w, j] = wp.dot(axis0, t) + wp.dot(arm0, r)
                    if dim > 1:
                        J[w, j + num] = wp.dot(axis1, t) + wp.dot(arm1, r)
                        J[w, j + 2 * num] = wp.dot(axis2, t) + wp.dot(arm2, r)
                        if dim > 3:
                            J[w, j + 3 * num] = wp.dot(axis0, r)
                            if dim > 4:
                                J[w, j + 4 * num] = wp.dot(axis1, r)
                                J[w, j + 5 * num] = wp.dot(axis2, r)

    @wp.func(inline=True)
    def softness_of(
        w: int, r: int, dim: int, on: bool, elliptic: bool, dist: real, margin: real, weight: real, friction: vec5,
        solref: vec2, sliding: vec2, solimp: vec5, timestep: real, impratio: real, flags: int, row_D: matrix,
        row_mu: matrix, row_damp: matrix, row_b: matrix,
    ):  # fmt: skip
        """Stiffness of the rows of a contact.

        Friction is softer than the normal by ``impratio``. All edges of a pyramid share one number (that of the first
        row); in an ellipse R times the square of the friction coefficient is the same in all directions of friction.
        """
        zero, one = real(0.0), real(1.0)
        mu = friction[0]
        known = spec(dist, dist, margin, weight, zero, zero, solref, solimp)
        if dim > 1 and not elliptic:
            known = spec(dist, dist, margin, weight + mu * mu * weight, zero, zero, solref, solimp)
        r0, damp, pull = soften(known, True, timestep, flags)
        shared, damp_sliding, lead = r0, damp, zero
        if dim > 1:
            if elliptic:
                shared = r0 / impratio * mu * mu
                lead = mu / wp.sqrt(impratio)
                if wp.any_lane(sliding[0] != zero or sliding[1] != zero):
                    known = spec(zero, dist - margin, zero, weight, zero, zero, sliding, solimp)
                    r_sliding, b_sliding, none = soften(known, False, timestep, flags)
                    if sliding[0] != zero or sliding[1] != zero:
                        damp_sliding = b_sliding
            else:
                r0 = real(2.0) * mu * mu / impratio * r0
        row_D[w, r] = wp.where(on, one / r0, zero)
        row_mu[w, r] = wp.where(on, lead, zero)
        row_damp[w, r] = wp.where(on, damp, zero)
        row_b[w, r] = wp.where(on, pull, zero)
        for s in range(1, 6):
            if s < dim:
                f = friction[s - 1]
                row_D[w, r + s] = wp.where(on, f * f / shared, zero)
                row_mu[w, r + s] = wp.where(on, f, zero)
                row_damp[w, r + s] = wp.where(on, damp_sliding, zero)
                row_b[w, r + s] = zero

    @wp.func(inline=True)
    def contacts(
        w: int, at: places, most: int, flags: int, cone: int, overridden: int, timestep: real, impratio: real,
        pairs_geom1: ints, pairs_geom2: ints, pairs_explicit: ints, pairs_slot: ints, pair_first: ints, pair_most: ints,
        bond_dim: ints,
        bond_num: ints, bond_adr: ints, bond_dof: ints, bond_sign: ints, geom_bodyid: ints, body_rootid: ints,
        body_invweight0: pairs2, opt_o_margin: wp.array(dtype=real), opt_o_solref: wp.array(dtype=vec2),
        opt_o_solimp: wp.array(dtype=vec5), opt_o_friction: wp.array(dtype=vec5), geom_condim: ints,
        geom_priority: ints, geom_solmix: matrix, geom_solref: pairs2, geom_solimp: fives, geom_friction: vectors,
        geom_margin: matrix, pair_dim: ints, pair_solref: pairs2, pair_solreffriction: pairs2, pair_solimp: fives,
        pair_margin: matrix, pair_friction: fives, slot_count: ints2, slot_dist: matrix, slot_pos: vectors,
        slot_normal: vectors, slot_tangent: vectors, subtree_com: vectors, cdof: wp.array2d(dtype=spatial),
        live: Any, state: ints2, J: matrix, C: matrix, row_D: matrix, row_mu: matrix, row_damp: matrix,
        row_b: matrix,
    ):  # fmt: skip
        """Bonds of the first ``most`` contacts of each world; gives the place behind them, and how many there were."""
        met = int(0)
        if (flags & NO_CONTACT) == 0:
            for p in range(pairs_geom1.shape[0]):
                count = slot_count[w, p]
                if wp.any_lane(count > 0):
                    g1, g2, number = pairs_geom1[p], pairs_geom2[p], pairs_explicit[p]
                    b1, b2 = geom_bodyid[g1], geom_bodyid[g2]
                    margin = margin_of(w, g1, g2, number, overridden, opt_o_margin, geom_margin, pair_margin)
                    for k in range(pair_most[p]):
                        slot, bond = pairs_slot[p] + k, pair_first[p] + k
                        dim, num = bond_dim[bond], bond_num[bond]
                        dist = slot_dist[w, slot]
                        on = k < wp.min(count, most - met) and dist < margin
                        if num > 0 and wp.any_lane(on):
                            ranks, friction, solref, sliding, solimp = parameters(
                                w, g1, g2, number, overridden, opt_o_solref, opt_o_solimp, opt_o_friction,
                                geom_condim, geom_priority, geom_solmix, geom_solref, geom_solimp, geom_friction,
                                pair_dim, pair_solref, pair_solreffriction, pair_solimp, pair_friction,
                            )  # fmt: skip
                            weights = row(w, body_invweight0)
                            weight = body_invweight0[weights, b1][0] + body_invweight0[weights, b2][0]
                            softness_of(
                                w, at[ROWS], dim, on, cone == CONE_ELLIPTIC, dist, margin, weight, friction, solref,
                                sliding, solimp, timestep, impratio, flags, row_D, row_mu, row_damp, row_b,
                            )  # fmt: skip
                            pos = slot_pos[w, slot]
                            directions(
                                w, at[NUMBERS], dim, num, bond_adr[bond], on,
                                frame_of(slot_normal[w, slot], slot_tangent[w, slot]),
                                pos - subtree_com[w, body_rootid[b1]], pos - subtree_com[w, body_rootid[b2]],
                                bond_dof, bond_sign, cdof, J,
                            )  # fmt: skip
                            at = put(w, bond, at, dim, num, live, state, C)
                    met = met + count
        return at, met

    return SimpleNamespace(contacts=contacts)
