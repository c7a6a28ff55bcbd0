"""The contacts of a world, in the order of the list of pairs, with their parameters and frames.

Each pair has left its contacts in its slots. How parameters of two geoms are mixed is in MuJoCo's documentation
("Computation", Contact parameters).
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import row, types
from treadle.mujoco.collision.contacts import listing
from treadle.mujoco.collision.shapes import TINY

ints, ints2 = wp.array(dtype=int), wp.array2d(dtype=int)

LEAST_FRICTION = 1e-5  # mjMINMU


@cache
def gather_kernel(real: Any) -> wp.Kernel:
    """The kernel that fills ``ncon`` and the fields ``contact_…`` from what lies in the slots."""
    t, f, mix = types(real), listing(real), mixing(real)
    vec2, vec3, vec5, mat33 = t.vec2, t.vec3, t.vec5, t.mat33
    reals, vectors = wp.array2d(dtype=real), wp.array2d(dtype=vec3)
    pairs2, fives = wp.array2d(dtype=vec2), wp.array2d(dtype=vec5)
    margin_of, frame, parameters = f.margin_of, mix.frame, mix.parameters

    @wp.kernel
    def gather(
        overridden: int, pairs_geom1: ints, pairs_geom2: ints, pairs_explicit: ints, pairs_slot: ints,
        opt_o_margin: wp.array(dtype=real), opt_o_solref: wp.array(dtype=vec2), opt_o_solimp: wp.array(dtype=vec5),
        opt_o_friction: wp.array(dtype=vec5), geom_condim: ints, geom_priority: ints,
        geom_solmix: reals, geom_solref: pairs2, geom_solimp: fives, geom_friction: vectors, geom_margin: reals,
        pair_dim: ints, pair_solref: pairs2, pair_solreffriction: pairs2, pair_solimp: fives, pair_margin: reals,
        pair_friction: fives, slot_count: ints2, slot_dist: reals, slot_pos: vectors, slot_normal: vectors,
        slot_tangent: vectors, contact_slot: ints2, found_count: ints,
        ncon: ints, contact_dist: reals, contact_pos: vectors, contact_frame: wp.array2d(dtype=mat33),
        contact_includemargin: reals, contact_friction: fives, contact_solref: pairs2,
        contact_solreffriction: pairs2, contact_solimp: fives, contact_dim: ints2, contact_geom1: ints2,
        contact_geom2: ints2, contact_pair: ints2,
    ):  # fmt: skip
        w = wp.tid()
        room = contact_dist.shape[1]
        count = int(0)
        for p in range(slot_count.shape[1]):
            if wp.any_lane(slot_count[w, p] > 0):
                for k in range(slot_count[w, p]):
                    if count < room:
                        contact_pair[w, count] = p
                        contact_slot[w, count] = pairs_slot[p] + k
                    count += 1
        found_count[w] = count
        ncon[w] = wp.min(count, room)
        for c in range(wp.min(count, room)):
            p, slot = contact_pair[w, c], contact_slot[w, c]
            g1, g2, number = pairs_geom1[p], pairs_geom2[p], pairs_explicit[p]
            dim, friction, solref, solreffriction, solimp = parameters(
                w, g1, g2, number, overridden, opt_o_solref, opt_o_solimp, opt_o_friction, geom_condim, geom_priority,
                geom_solmix, geom_solref, geom_solimp, geom_friction, pair_dim, pair_solref, pair_solreffriction,
                pair_solimp, pair_friction,
            )  # fmt: skip
            contact_dist[w, c] = slot_dist[w, slot]
            contact_pos[w, c] = slot_pos[w, slot]
            contact_frame[w, c] = frame(slot_normal[w, slot], slot_tangent[w, slot])
            contact_includemargin[w, c] = margin_of(
                w, g1, g2, number, overridden, opt_o_margin, geom_margin, pair_margin
            )  # fmt: skip
            contact_friction[w, c] = friction
            contact_solref[w, c] = solref
            contact_solreffriction[w, c] = solreffriction
            contact_solimp[w, c] = solimp
            contact_dim[w, c] = dim
            contact_geom1[w, c] = g1
            contact_geom2[w, c] = g2

    return gather


@cache
def mixing(real: Any) -> SimpleNamespace:
    """The kernel functions ``frame`` and ``parameters`` for one precision."""
    t = types(real)
    vec2, vec3, vec5, mat33 = t.vec2, t.vec3, t.vec5, t.mat33
    reals, vectors = wp.array2d(dtype=real), wp.array2d(dtype=vec3)
    pairs2, fives = wp.array2d(dtype=vec2), wp.array2d(dtype=vec5)
    least = real(LEAST_FRICTION)

    aligned = TINY * TINY if real is wp.float64 else 1e-12  # square of a tangent that is along the normal

    @wp.func
    def frame(normal: vec3, tangent: vec3):
        """Rows: the normal; the tangent made square to it (by default the y axis, or z if y is near); their product."""
        b = tangent
        if wp.length_sq(b) < real(0.25):
            near = wp.abs(normal[1]) < real(0.5)
            b = vec3(real(0.0), wp.where(near, real(1.0), real(0.0)), wp.where(near, real(0.0), real(1.0)))
        b = b - normal * wp.dot(normal, b)
        if wp.length_sq(b) < real(aligned):  # of a capsule upright on a plane: MuJoCo takes the x axis
            across = wp.abs(normal[0]) < real(0.9)
            b = vec3(wp.where(across, real(1.0), real(0.0)), wp.where(across, real(0.0), real(1.0)), real(0.0))
            b = b - normal * wp.dot(normal, b)
        b = b / wp.max(wp.length(b), real(TINY))
        c = wp.cross(normal, b)
        return mat33(normal[0], normal[1], normal[2], b[0], b[1], b[2], c[0], c[1], c[2])

    @wp.func
    def share(priority1: int, priority2: int, mix1: real, mix2: real):
        """The first geom's part in what is mixed: all or nothing by priority, else by weights."""
        part = mix1 / wp.max(mix1 + mix2, real(TINY))
        if mix1 < real(TINY) and mix2 < real(TINY):
            part = real(0.5)
        elif mix1 < real(TINY):
            part = real(0.0)
        elif mix2 < real(TINY):
            part = real(1.0)
        if priority1 != priority2:
            part = wp.where(priority1 > priority2, real(1.0), real(0.0))
        return part

    @wp.func
    def blend(part: real, a: vec2, b: vec2):
        """A reference: times and damping ratios are mixed; of stiffnesses (negative numbers) the greater counts."""
        if a[0] > real(0.0) and b[0] > real(0.0):
            return a * part + b * (real(1.0) - part)
        return vec2(wp.min(a[0], b[0]), wp.min(a[1], b[1]))

    @wp.func
    def larger(priority1: int, priority2: int, a: vec3, b: vec3):
        """Friction: that of the geom with priority, else the larger one."""
        if priority1 > priority2:
            return a
        if priority2 > priority1:
            return b
        return vec3(wp.max(a[0], b[0]), wp.max(a[1], b[1]), wp.max(a[2], b[2]))

    @wp.func
    def parameters(
        w: int, g1: int, g2: int, number: int, overridden: int, opt_o_solref: wp.array(dtype=vec2),
        opt_o_solimp: wp.array(dtype=vec5), opt_o_friction: wp.array(dtype=vec5), geom_condim: ints,
        geom_priority: ints, geom_solmix: reals, geom_solref: pairs2, geom_solimp: fives, geom_friction: vectors,
        pair_dim: ints, pair_solref: pairs2, pair_solreffriction: pairs2, pair_solimp: fives, pair_friction: fives,
    ):  # fmt: skip
        """Of the contacts of two geoms: dimension, friction, references of the normal and of friction, impedance."""
        dim, friction, solref, solreffriction, solimp = int(0), vec5(), vec2(), vec2(), vec5()
        if number >= 0:
            dim, friction = pair_dim[number], pair_friction[row(w, pair_friction), number]
            solref = pair_solref[row(w, pair_solref), number]
            solreffriction = pair_solreffriction[row(w, pair_solreffriction), number]
            solimp = pair_solimp[row(w, pair_solimp), number]
        else:
            priority1, priority2 = geom_priority[g1], geom_priority[g2]
            weight = share(
                priority1, priority2, geom_solmix[row(w, geom_solmix), g1], geom_solmix[row(w, geom_solmix), g2]
            )
            r, i = row(w, geom_solref), row(w, geom_solimp)
            solref = blend(weight, geom_solref[r, g1], geom_solref[r, g2])
            solimp = geom_solimp[i, g1] * weight + geom_solimp[i, g2] * (real(1.0) - weight)
            q = row(w, geom_friction)
            rub = larger(priority1, priority2, geom_friction[q, g1], geom_friction[q, g2])
            friction = vec5(rub[0], rub[0], rub[1], rub[2], rub[2])
            dim = wp.max(geom_condim[g1], geom_condim[g2])
            if priority1 > priority2:
                dim, solref = geom_condim[g1], geom_solref[r, g1]
            elif priority1 < priority2:
                dim, solref = geom_condim[g2], geom_solref[r, g2]
        if overridden != 0:
            solref, solimp = opt_o_solref[row(w, opt_o_solref)], opt_o_solimp[row(w, opt_o_solimp)]
            solreffriction = solref
            friction = opt_o_friction[row(w, opt_o_friction)]
        for e in range(5):
            friction[e] = wp.max(friction[e], least)
        return dim, friction, solref, solreffriction, solimp

    return SimpleNamespace(frame=frame, parameters=parameters)
