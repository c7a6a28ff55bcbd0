"""The kernel of all pairs without a formula: the kinds of a pair are the same in all worlds, so one serves them all."""

from __future__ import annotations

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import row, types
from treadle.mujoco.collision.contacts import listing
from treadle.mujoco.collision.convex import convex
from treadle.mujoco.collision.manifold import manifolds
from treadle.mujoco.collision.pairs import CAPSULE, ELLIPSOID, SPHERE
from treadle.mujoco.collision.polish import PLACES
from treadle.mujoco.collision.polytope import FACES, POINTS
from treadle.mujoco.collision.solids import solids

ints = wp.array(dtype=int)


@cache
def convex_kernel(real: Any, corners: int) -> wp.Kernel:
    """The kernel for one precision, with room for polygons of ``corners`` corners."""
    t, f, s = types(real), listing(real), solids(real)
    vec3, mat33 = t.vec3, t.mat33
    reals, vectors, points = wp.array2d(dtype=real), wp.array2d(dtype=vec3), wp.array(dtype=vec3)
    append, margin_of, gap_of, near = f.append, f.margin_of, f.gap_of, f.near
    Solid, radius, between, contacts = s.Solid, s.radius, convex(real).between, manifolds(real).contacts
    many = 2 * corners

    @wp.func
    def faced(kind: int):
        """Whether solids of a kind have faces or edges on which others can lie."""
        return kind != SPHERE and kind != ELLIPSOID

    @wp.kernel
    def collide(
        first: int, last: int, slot: int, pairs_of_method: ints, pairs_geom1: ints, pairs_geom2: ints,
        pairs_explicit: ints, overridden: int, multiple: int, turns: int, opt_ccd_tolerance: wp.array(dtype=real),
        opt_o_margin: wp.array(dtype=real), geom_type: ints,
        geom_size: vectors, geom_rbound: reals, geom_margin: reals, geom_gap: reals,
        pair_margin: reals, pair_gap: reals, geom_xpos: vectors, geom_xmat: wp.array2d(dtype=mat33),
        hull_first: ints, hull_count: ints, hull_cells: ints, hull_vert: points, hull_celladr: ints, hull_cell: ints,
        hull_mapadr: ints, hull_map: ints, hull_polynormal: points, hull_polyadr: ints, hull_polyvert: ints,
        found_count: ints, found_end: wp.array2d(dtype=int), found_pair: wp.array2d(dtype=int), found_dist: reals,
        found_pos: vectors, found_normal: vectors, found_tangent: vectors,
    ):  # fmt: skip
        w = wp.tid()
        x, xa = wp.zeros(shape=(POINTS,), dtype=vec3), wp.zeros(shape=(POINTS,), dtype=vec3)
        number_a, number_b = wp.zeros(shape=(POINTS,), dtype=int), wp.zeros(shape=(POINTS,), dtype=int)
        normals, dists = wp.zeros(shape=(FACES,), dtype=vec3), wp.zeros(shape=(FACES,), dtype=real)
        corner, seen = wp.zeros(shape=(FACES,), dtype=int), wp.zeros(shape=(FACES,), dtype=int)
        freed = wp.zeros(shape=(FACES,), dtype=int)
        into, out_of = wp.zeros(shape=(POINTS,), dtype=wp.uint64), wp.zeros(shape=(POINTS,), dtype=wp.uint64)
        faces_a, faces_b = wp.zeros(shape=(corners,), dtype=int), wp.zeros(shape=(corners,), dtype=int)
        side, subject = wp.zeros(shape=(corners,), dtype=vec3), wp.zeros(shape=(many,), dtype=vec3)
        spare = wp.zeros(shape=(many,), dtype=vec3)
        bent = wp.zeros(shape=(PLACES,), dtype=vec3)
        tolerance = opt_ccd_tolerance[row(w, opt_ccd_tolerance)]
        for i in range(first, last):
            p = pairs_of_method[i]
            g1, g2, explicit = pairs_geom1[p], pairs_geom2[p], pairs_explicit[p]
            reach = margin_of(w, g1, g2, explicit, overridden, opt_o_margin, geom_margin, pair_margin)
            reach += gap_of(w, g1, g2, explicit, geom_gap, pair_gap)
            bound1, bound2 = geom_rbound[row(w, geom_rbound), g1], geom_rbound[row(w, geom_rbound), g2]
            pos, mat = geom_xpos[w, g1], geom_xmat[w, g1]
            line = geom_xpos[w, g2] - pos
            if near(vec3(), mat, bound1, line, bound2, reach):
                size1, size2 = geom_size[row(w, geom_size), g1], geom_size[row(w, geom_size), g2]
                a = Solid(geom_type[g1], size1, vec3(), mat, hull_first[g1], hull_count[g1], hull_cells[g1])
                b = Solid(geom_type[g2], size2, line, geom_xmat[w, g2], hull_first[g2], hull_count[g2], hull_cells[g2])
                swell_a, swell_b = radius(a), radius(b)
                found, dist, normal, point, u, v, l = between(
                    a, b, bound1 + bound2, reach + swell_a + swell_b, tolerance, turns, hull_vert, hull_celladr,
                    hull_cell, hull_vert, x, xa, number_a, number_b, normals, dists, corner, into, out_of, seen, freed,
                    bent,
                )  # fmt: skip
                dist -= swell_a + swell_b
                if found and dist < reach:
                    point_a = point + normal * swell_a
                    count = int(0)
                    if multiple != 0 and faced(a.kind) and faced(b.kind):
                        if a.kind != CAPSULE or b.kind != CAPSULE:
                            swell = normal * (real(0.5) * reach)
                            count, depths, spots, common = contacts(
                                a, b, number_a[u], number_a[v], number_a[l], number_b[u], number_b[v], number_b[l],
                                normal, point_a + swell, point_a + normal * dist - swell, reach, hull_vert,
                                hull_mapadr, hull_map, hull_polynormal, hull_polyadr, hull_polyvert, faces_a, faces_b,
                                side, subject, spare,
                            )  # fmt: skip
                            for k in range(4):
                                if k < count and depths[k] < reach:
                                    append(
                                        w, p, depths[k], pos + spots[k], common, vec3(), found_count, found_pair,
                                        found_dist, found_pos, found_normal, found_tangent,
                                    )  # fmt: skip
                    if count == 0:
                        spot = pos + point_a + normal * (real(0.5) * dist)
                        append(
                            w, p, dist, spot, normal, vec3(), found_count, found_pair, found_dist, found_pos,
                            found_normal, found_tangent,
                        )  # fmt: skip
        found_end[w, slot] = found_count[w]

    return collide
