"""The kernel of all pairs without a formula: the kinds of a pair are the same in all worlds, so one serves them all."""

from __future__ import annotations

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import row, types
from treadle.mujoco.collision.broad import broad
from treadle.mujoco.collision.contacts import listing, ordered
from treadle.mujoco.collision.convex import convex
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
    pair_at, put, reach_of, to_the_front = f.pair_at, f.put, f.reach_of, ordered(real, MOST)
    spheres, boxes, half_of, d4, r4 = b.spheres, b.boxes, b.half_of, four.dists, four.rows
    Solid, radius, between, contacts = s.Solid, s.radius, convex(real, bends).between, manifolds(real).contacts
    many = 2 * corners

    @wp.func
    def faced(kind: int):
        """Whether solids of a kind have faces or edges on which others can lie."""
        return kind != SPHERE and kind != ELLIPSOID

    @wp.kernel
    def collide(
        first: int, last: int, pairs_of_method: ints, pairs_geom1: ints, pairs_geom2: ints, pairs_explicit: ints,
        pairs_slot: ints, overridden: int, multiple: int, turns: int, opt_ccd_tolerance: wp.array(dtype=real),
        opt_o_margin: wp.array(dtype=real), geom_type: ints,
        geom_size: vectors, geom_rbound: reals, geom_margin: reals, geom_gap: reals,
        pair_margin: reals, pair_gap: reals, geom_xpos: vectors, geom_xmat: wp.array2d(dtype=mat33),
        hull_first: ints, hull_count: ints, hull_cells: ints, hull_middle: points, hull_half: points,
        hull_vert: points, hull_celladr: ints, hull_cell: ints,
        hull_mapadr: ints, hull_map: ints, hull_polynormal: points, hull_polyadr: ints, hull_polyvert: ints,
        slot_count: ints2, slot_dist: reals, slot_pos: vectors, slot_normal: vectors, slot_tangent: vectors,
    ):  # fmt: skip
        w = wp.tid()
        x, xa = wp.empty(shape=(POINTS,), dtype=vec3), wp.empty(shape=(POINTS,), dtype=vec3)
        number_a, number_b = wp.empty(shape=(POINTS,), dtype=int), wp.empty(shape=(POINTS,), dtype=int)
        normals, dists = wp.empty(shape=(FACES,), dtype=vec3), wp.empty(shape=(FACES,), dtype=real)
        corner, seen = wp.empty(shape=(FACES,), dtype=int), wp.empty(shape=(FACES,), dtype=int)
        freed = wp.empty(shape=(FACES,), dtype=int)
        into, out_of = wp.empty(shape=(POINTS,), dtype=wp.uint64), wp.empty(shape=(POINTS,), dtype=wp.uint64)
        faces_a, faces_b = wp.empty(shape=(corners,), dtype=int), wp.empty(shape=(corners,), dtype=int)
        side, subject = wp.empty(shape=(corners,), dtype=vec3), wp.empty(shape=(many,), dtype=vec3)
        spare = wp.empty(shape=(many,), dtype=vec3)
        bent = wp.empty(shape=(PLACES,), dtype=vec3)
        tolerance = opt_ccd_tolerance[row(w, opt_ccd_tolerance)]
        for i in range(first, last):
            p, g1, g2 = pair_at(i, pairs_of_method, pairs_geom1, pairs_geom2)
            reach = reach_of(
                w, g1, g2, pairs_explicit[p], overridden, opt_o_margin, geom_margin, pair_margin, geom_gap, pair_gap
            )  # fmt: skip
            bounds = geom_rbound[row(w, geom_rbound), g1] + geom_rbound[row(w, geom_rbound), g2]
            pos = geom_xpos[w, g1]
            line = geom_xpos[w, g2] - pos
            near, count = spheres(line, bounds + reach), int(0)
            if wp.any_lane(near):
                size1, size2 = geom_size[row(w, geom_size), g1], geom_size[row(w, geom_size), g2]
                a = Solid(
                    geom_type[g1], size1, vec3(), geom_xmat[w, g1], hull_first[g1], hull_count[g1], hull_cells[g1]
                )
                b = Solid(geom_type[g2], size2, line, geom_xmat[w, g2], hull_first[g2], hull_count[g2], hull_cells[g2])
                half1, half2 = half_of(a.kind, size1, hull_half[g1]), half_of(b.kind, size2, hull_half[g2])
                middles = line + b.mat * hull_middle[g2] - a.mat * hull_middle[g1]
                near = near and boxes(middles, a.mat, half1, b.mat, half2, reach)
                depths, spots, way = d4(), r4(), r4()
                for k in range(MOST):
                    depths[k] = real(NEVER)
                if near:
                    swell_a, swell_b = radius(a), radius(b)
                    found, dist, normal, point, u, v, l = between(
                        a, b, bounds, reach + swell_a + swell_b, tolerance, turns, hull_vert, hull_celladr, hull_cell,
                        hull_vert, x, xa, number_a, number_b, normals, dists, corner, into, out_of, seen, freed, bent,
                    )  # fmt: skip
                    dist -= swell_a + swell_b
                    if found and dist < reach:
                        point_a = point + normal * swell_a
                        several = int(0)
                        if multiple != 0 and faced(a.kind) and faced(b.kind):
                            if a.kind != CAPSULE or b.kind != CAPSULE:
                                swell = normal * (real(0.5) * reach)
                                several, depths, spots, common = contacts(
                                    a, b, number_a[u], number_a[v], number_a[l], number_b[u], number_b[v], number_b[l],
                                    normal, point_a + swell, point_a + normal * dist - swell, reach, hull_vert,
                                    hull_mapadr, hull_map, hull_polynormal, hull_polyadr, hull_polyvert, faces_a,
                                    faces_b, side, subject, spare,
                                )  # fmt: skip
                                for k in range(MOST):
                                    depths[k], way[k] = wp.where(k < several, depths[k], real(NEVER)), common
                        if several == 0:
                            depths[0], spots[0], way[0] = dist, point_a + normal * (real(0.5) * dist), normal
                if wp.any_lane(depths[0] < reach or depths[1] < reach or depths[2] < reach or depths[3] < reach):
                    depths, spots, way = to_the_front(depths, spots, way, reach)
                    for k in range(MOST):
                        if depths[k] < reach:
                            count += 1
                    for k in range(MOST):
                        if wp.any_lane(k < count):
                            put(
                                w, pairs_slot[p] + k, depths[k], pos + spots[k], way[k], vec3(), slot_dist, slot_pos,
                                slot_normal, slot_tangent,
                            )  # fmt: skip
            slot_count[w, p] = count

    return collide
