"""A height field and a convex geom: each prism under a triangle of the field, which the geom can reach, is a solid.

As in MuJoCo each prism makes one contact, and contacts of neighbouring prisms are not thinned out.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import row, types
from treadle.mujoco.collision.contacts import listing
from treadle.mujoco.collision.convex import convex
from treadle.mujoco.collision.pairs import HFIELD
from treadle.mujoco.collision.polish import PLACES
from treadle.mujoco.collision.polytope import FACES, POINTS
from treadle.mujoco.collision.solids import solids

ints, ints2 = wp.array(dtype=int), wp.array2d(dtype=int)

MOST_OF_PAIR = 50  # mjMAXCONPAIR


@cache
def heights_kernel(real: Any, bends: bool) -> wp.Kernel:
    """The kernel that finds the contacts of all height fields, with curved surfaces or not."""
    t, f, s = types(real), listing(real), solids(real)
    vec3, vec4, mat33 = t.vec3, t.vec4, t.mat33
    reals, vectors = wp.array2d(dtype=real), wp.array2d(dtype=vec3)
    pair_at, put, reach_of = f.pair_at, f.put, f.reach_of
    Solid, support, radius, between = s.Solid, s.support, s.radius, convex(real, bends).between

    @wp.kernel
    def collide(
        first: int, last: int, pairs_of_method: ints, pairs_geom1: ints, pairs_geom2: ints, pairs_explicit: ints,
        pairs_slot: ints, overridden: int, turns: int, opt_ccd_tolerance: wp.array(dtype=real),
        opt_o_margin: wp.array(dtype=real), geom_type: ints, geom_dataid: ints,
        geom_size: vectors, geom_rbound: reals, geom_margin: reals, geom_gap: reals,
        pair_margin: reals, pair_gap: reals, geom_xpos: vectors, geom_xmat: wp.array2d(dtype=mat33),
        hull_first: ints, hull_count: ints, hull_cells: ints, hull_celladr: ints,
        hull_far: wp.array(dtype=vec4),
        hfield_size: wp.array(dtype=vec4), hfield_nrow: ints, hfield_ncol: ints, hfield_adr: ints,
        hfield_data: wp.array(dtype=real),
        slot_count: ints2, slot_dist: reals, slot_pos: vectors, slot_normal: vectors, slot_tangent: vectors,
    ):  # fmt: skip
        w = wp.tid()
        x, xa = wp.empty(shape=(POINTS,), dtype=vec3), wp.empty(shape=(POINTS,), dtype=vec3)
        number_a, number_b = wp.empty(shape=(POINTS,), dtype=int), wp.empty(shape=(POINTS,), dtype=int)
        normals, dists = wp.empty(shape=(FACES,), dtype=vec3), wp.empty(shape=(FACES,), dtype=real)
        corner, seen = wp.empty(shape=(FACES,), dtype=int), wp.empty(shape=(FACES,), dtype=int)
        freed, border = wp.empty(shape=(FACES,), dtype=int), wp.empty(shape=(FACES + 3,), dtype=int)
        prism = wp.empty(shape=(6,), dtype=vec3)
        low, high = wp.empty(shape=(3,), dtype=real), wp.empty(shape=(3,), dtype=real)
        bent = wp.empty(shape=(PLACES,), dtype=vec3)
        tolerance = opt_ccd_tolerance[row(w, opt_ccd_tolerance)]
        for i in range(first, last):
            p, g1, g2 = pair_at(i, pairs_of_method, pairs_geom1, pairs_geom2)
            found_here = int(0)
            reach = reach_of(
                w, g1, g2, pairs_explicit[p], overridden, opt_o_margin, geom_margin, pair_margin, geom_gap, pair_gap
            )  # fmt: skip
            field = geom_dataid[g1]
            size, rows, columns = hfield_size[field], hfield_nrow[field], hfield_ncol[field]
            origin, frame = geom_xpos[w, g1], geom_xmat[w, g1]
            pos, mat = (geom_xpos[w, g2] - origin) * frame, wp.transpose(frame) * geom_xmat[w, g2]
            bound = geom_rbound[row(w, geom_rbound), g2] + reach
            inside = wp.abs(pos[0]) <= size[0] + bound and wp.abs(pos[1]) <= size[1] + bound
            if inside and pos[2] <= size[2] + bound and pos[2] >= -size[3] - bound:
                b = Solid(
                    geom_type[g2], geom_size[row(w, geom_size), g2], pos, mat, hull_first[g2], hull_count[g2],
                    hull_cells[g2],
                )  # fmt: skip
                swell = radius(b)
                for side in range(6):
                    k = side // 2
                    d = vec3()
                    d[k] = wp.where(side % 2 == 0, real(-1.0), real(1.0))
                    far, number = support(b, d, hull_celladr, hull_far, prism)
                    if side % 2 == 0:
                        low[k] = far[k] - swell - reach
                    else:
                        high[k] = far[k] + swell + reach
                dx, dy = real(2.0) * size[0] / real(columns - 1), real(2.0) * size[1] / real(rows - 1)
                c0 = wp.max(0, int(wp.floor((low[0] + size[0]) / dx)))
                c1 = wp.min(columns - 1, int(wp.ceil((high[0] + size[0]) / dx)))
                r0 = wp.max(0, int(wp.floor((low[1] + size[1]) / dy)))
                r1 = wp.min(rows - 1, int(wp.ceil((high[1] + size[1]) / dy)))
                wide = 2 * wp.max(c1 - c0, 0)
                if low[2] > size[2] or high[2] < -size[3]:
                    wide = 0
                for part in range(wide * wp.max(r1 - r0, 0)):
                    r, half = r0 + part // wide, part % wide
                    reaches = False
                    for k in range(3):  # corners in a zigzag between two rows of the grid
                        at = half + k
                        c, s_ = c0 + at // 2, r + 1 - at % 2
                        top = hfield_data[hfield_adr[field] + s_ * columns + c] * size[2]
                        prism[k] = vec3(dx * real(c) - size[0], dy * real(s_) - size[1], -size[3])
                        prism[k + 3] = vec3(dx * real(c) - size[0], dy * real(s_) - size[1], top)
                        reaches = reaches or top >= low[2]
                    if reaches and found_here < MOST_OF_PAIR:
                        middle = (prism[0] + prism[1] + prism[2] + prism[3] + prism[4] + prism[5]) * real(1.0 / 6.0)
                        for k in range(6):
                            prism[k] = prism[k] - middle
                        one, zero = real(1.0), real(0.0)
                        a = Solid(
                            HFIELD, vec3(), vec3(), mat33(one, zero, zero, zero, one, zero, zero, zero, one), 0, 6, 0
                        )  # fmt: skip
                        b.pos = pos - middle
                        touches, dist, normal, point = between(
                            a, b, bound + dx + dy, reach + swell, tolerance, turns, hull_celladr,
                            hull_far, prism, x, xa, number_a, number_b, normals, dists, corner, border, seen,
                            freed, bent,
                        )  # fmt: skip
                        dist -= swell
                        if touches and dist < reach:
                            spot = middle + point + normal * (real(0.5) * dist)
                            put(
                                w, pairs_slot[p] + found_here, dist, origin + frame * spot, frame * normal, vec3(),
                                slot_dist, slot_pos, slot_normal, slot_tangent,
                            )  # fmt: skip
                            found_here += 1
            slot_count[w, p] = found_here

    return collide
