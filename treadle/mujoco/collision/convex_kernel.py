"""The kernel of all pairs without a formula: GJK and the polytope on what bounding spheres and boxes leave.

What is left differs from world to world, so each lane has a list of its own, and all lanes of a gang walk at the same
time through whatever pair is next on theirs: a walk that ends makes room for the next one in its lane at once. A second
list has the pairs that touch, for which several contacts are sought at the end. Both lists are linked in
``slot_count``, where a negative number ``-1 - next`` stands until the contacts of a pair are counted.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import index, row, types
from treadle.mujoco.collision.broad import ROOM, broad
from treadle.mujoco.collision.contacts import listing
from treadle.mujoco.collision.convex import APART, DONE, convex
from treadle.mujoco.collision.manifold import manifolds
from treadle.mujoco.collision.pairs import CAPSULE, ELLIPSOID, SPHERE
from treadle.mujoco.collision.polish import PLACES
from treadle.mujoco.collision.polytope import FACES, POINTS
from treadle.mujoco.collision.shapes import NEVER, results
from treadle.mujoco.collision.solids import solids

ints, ints2 = wp.array(dtype=int), wp.array2d(dtype=int)

MOST = 4  # contacts of a pair


@cache
def convex_kernel(real: Any, corners: int, bends: bool) -> wp.Kernel:
    """The kernel for one precision, with room for polygons of ``corners`` corners, and for curved surfaces or not."""
    t, f, s, b, four = types(real), listing(real), solids(real), broad(real), results(real, MOST)
    vec3, mat33 = t.vec3, t.mat33
    reals, vectors, points = wp.array2d(dtype=real), wp.array2d(dtype=vec3), wp.array(dtype=vec3)
    pair_at, put, reach_of, d4, r4 = f.pair_at, f.put, f.reach_of, four.dists, four.rows
    spheres, boxes, half_of, walks = b.spheres, b.boxes, b.half_of, convex(real, bends)
    vec4s = wp.array(dtype=t.vec4)
    Solid, radius, height, contacts = s.Solid, s.radius, s.height, manifolds(real).contacts
    Walk, start, advance = walks.Walk, walks.start, walks.advance
    many = 2 * corners

    @wp.func
    def faced(kind: int):
        """Whether solids of a kind have faces or edges on which others can lie."""
        return kind != SPHERE and kind != ELLIPSOID

    @wp.func(inline=True)
    def solid(
        w: int, g: int, pos: vec3, geom_type: ints, geom_size: vectors, geom_xmat: wp.array2d(dtype=mat33),
        hull_first: ints, hull_count: ints, hull_cells: ints,
    ):  # fmt: skip
        """The geom g at ``pos``."""
        return Solid(
            geom_type[g], geom_size[row(w, geom_size), g], pos, geom_xmat[w, g], hull_first[g], hull_count[g],
            hull_cells[g],
        )  # fmt: skip

    @wp.kernel
    def collide(
        first: int, last: int, pairs_of_method: ints, pairs_geom1: ints, pairs_geom2: ints, pairs_explicit: ints,
        pairs_slot: ints, overridden: int, multiple: int, turns: int, opt_ccd_tolerance: wp.array(dtype=real),
        opt_o_margin: wp.array(dtype=real), geom_type: ints,
        geom_size: vectors, geom_rbound: reals, geom_margin: reals, geom_gap: reals,
        pair_margin: reals, pair_gap: reals, geom_xpos: vectors, geom_xmat: wp.array2d(dtype=mat33),
        hull_first: ints, hull_count: ints, hull_cells: ints, hull_middle: points, hull_half: points,
        hull_vert: points, hull_celladr: ints, hull_far: vec4s, hull_tops: vec4s,
        hull_mapadr: ints, hull_map: ints, hull_polynormal: points, hull_polyadr: ints, hull_polyvert: ints,
        slot_count: ints2, slot_turns: ints, slot_dist: reals, slot_pos: vectors, slot_normal: vectors,
        slot_tangent: vectors,
    ):  # fmt: skip
        w = wp.tid()
        x, xa = wp.empty(shape=(POINTS,), dtype=vec3), wp.empty(shape=(POINTS,), dtype=vec3)
        number_a, number_b = wp.empty(shape=(POINTS,), dtype=int), wp.empty(shape=(POINTS,), dtype=int)
        normals, dists = wp.empty(shape=(FACES,), dtype=vec3), wp.empty(shape=(FACES,), dtype=real)
        corner, seen = wp.empty(shape=(FACES,), dtype=int), wp.empty(shape=(FACES,), dtype=int)
        freed, border = wp.empty(shape=(FACES,), dtype=int), wp.empty(shape=(FACES + 3,), dtype=int)
        faces_a, faces_b = wp.empty(shape=(corners,), dtype=int), wp.empty(shape=(corners,), dtype=int)
        faces_c = wp.empty(shape=(corners,), dtype=int)
        side, subject = wp.empty(shape=(corners,), dtype=vec3), wp.empty(shape=(many,), dtype=vec3)
        spare = wp.empty(shape=(many,), dtype=vec3)
        bent = wp.empty(shape=(PLACES,), dtype=vec3)
        tolerance = opt_ccd_tolerance[row(w, opt_ccd_tolerance)]
        left = int(-1)
        for i in range(first, last):
            p, g1, g2 = pair_at(i, pairs_of_method, pairs_geom1, pairs_geom2)
            reach = reach_of(
                w, g1, g2, pairs_explicit[p], overridden, opt_o_margin, geom_margin, pair_margin, geom_gap, pair_gap
            )  # fmt: skip
            bounds = geom_rbound[row(w, geom_rbound), g1] + geom_rbound[row(w, geom_rbound), g2]
            line = geom_xpos[w, g2] - geom_xpos[w, g1]
            near = spheres(line, bounds + reach)
            if wp.any_lane(near):
                mat1, mat2 = geom_xmat[w, g1], geom_xmat[w, g2]
                half1 = half_of(geom_type[g1], geom_size[row(w, geom_size), g1], hull_half[g1])
                half2 = half_of(geom_type[g2], geom_size[row(w, geom_size), g2], hull_half[g2])
                middles = line + mat2 * hull_middle[g2] - mat1 * hull_middle[g1]
                near = near and boxes(middles, mat1, half1, mat2, half2, reach)
                if wp.any_lane(near):
                    high = height(
                        geom_type[g1], geom_size[row(w, geom_size), g1], hull_cells[g1], line * mat1, hull_tops
                    )
                    high += height(
                        geom_type[g2], geom_size[row(w, geom_size), g2], hull_cells[g2], -line * mat2, hull_tops
                    )  # fmt: skip
                    most = reach + real(ROOM) * bounds
                    near = near and wp.length_sq(line) - high <= most * wp.length(line)
            slot_count[w, p] = wp.where(near, -1 - left, 0)
            left = wp.where(near, p, left)

        touching, p, taken = int(-1), int(-1), int(0)
        a, b, s, reach, swell = Solid(), Solid(), Walk(), real(0.0), real(0.0)
        s.stage = APART
        while left >= 0 or s.stage < APART:
            taken += 1
            if s.stage >= APART:
                p = index(left)
                left = -1 - slot_count[w, p]
                slot_count[w, p] = 0
                g1, g2 = index(pairs_geom1[p]), index(pairs_geom2[p])
                reach = reach_of(
                    w, g1, g2, pairs_explicit[p], overridden, opt_o_margin, geom_margin, pair_margin, geom_gap,
                    pair_gap,
                )  # fmt: skip
                line = geom_xpos[w, g2] - geom_xpos[w, g1]
                a = solid(w, g1, vec3(), geom_type, geom_size, geom_xmat, hull_first, hull_count, hull_cells)
                b = solid(w, g2, line, geom_type, geom_size, geom_xmat, hull_first, hull_count, hull_cells)
                swell = radius(a) + radius(b)
                bounds = geom_rbound[row(w, geom_rbound), g1] + geom_rbound[row(w, geom_rbound), g2]
                s = start(a, b, bounds, reach + swell, tolerance)
            s = advance(
                s, a, b, turns, hull_celladr, hull_far, hull_vert, x, xa, number_a, number_b, normals,
                dists, corner, border, seen, freed, bent,
            )  # fmt: skip
            if s.stage == DONE and s.dist - swell < reach:
                slot_count[w, p] = -1 - touching
                touching = p
                slot, u, v, l = index(pairs_slot[p]), s.i, s.j, s.k
                slot_dist[w, slot] = s.dist - swell
                slot_pos[w, slot], slot_normal[w, slot] = s.point, s.normal
                slot_tangent[w, slot] = vec3(real(number_a[u]), real(number_a[v]), real(number_a[l]))
                slot_tangent[w, slot + 1] = vec3(real(number_b[u]), real(number_b[v]), real(number_b[l]))

        slot_turns[w] = taken
        while touching >= 0:
            p = index(touching)
            touching = -1 - slot_count[w, p]
            g1, g2, slot = index(pairs_geom1[p]), index(pairs_geom2[p]), index(pairs_slot[p])
            pos = geom_xpos[w, g1]
            a = solid(w, g1, vec3(), geom_type, geom_size, geom_xmat, hull_first, hull_count, hull_cells)
            b = solid(
                w, g2, geom_xpos[w, g2] - pos, geom_type, geom_size, geom_xmat, hull_first, hull_count, hull_cells
            )  # fmt: skip
            reach = reach_of(
                w, g1, g2, pairs_explicit[p], overridden, opt_o_margin, geom_margin, pair_margin, geom_gap, pair_gap
            )  # fmt: skip
            dist, normal = slot_dist[w, slot], slot_normal[w, slot]
            u, v = slot_tangent[w, slot], slot_tangent[w, slot + 1]
            point_a = slot_pos[w, slot] + normal * radius(a)
            depths, spots, way, several = d4(), r4(), normal, int(0)
            for k in range(MOST):
                depths[k] = real(NEVER)
            if multiple != 0 and faced(a.kind) and faced(b.kind):
                if a.kind != CAPSULE or b.kind != CAPSULE:
                    swelling = normal * (real(0.5) * reach)
                    several, depths, spots, common = contacts(
                        a, b, int(u[0]), int(u[1]), int(u[2]), int(v[0]), int(v[1]), int(v[2]), normal,
                        point_a + swelling, point_a + normal * dist - swelling, reach, hull_vert, hull_mapadr,
                        hull_map, hull_polynormal, hull_polyadr, hull_polyvert, faces_a, faces_b, faces_c, side,
                        subject, spare,
                    )  # fmt: skip
                    for k in range(MOST):
                        depths[k] = wp.where(k < several, depths[k], real(NEVER))
                    way = common
            if several == 0:
                depths[0], spots[0], way = dist, point_a + normal * (real(0.5) * dist), normal
            count = int(0)
            for k in range(MOST):
                if depths[k] < reach:
                    put(
                        w, slot + count, depths[k], pos + spots[k], way, vec3(), slot_dist, slot_pos, slot_normal,
                        slot_tangent,
                    )  # fmt: skip
                    count += 1
            slot_count[w, p] = count

    return collide
