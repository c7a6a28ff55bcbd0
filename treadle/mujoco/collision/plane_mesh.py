"""A plane and a mesh: the deepest vertex, and up to three more of the face that lies flattest on the plane.

Of a polygon with more than four corners those are kept that make a large quadrilateral with the deepest, as in MuJoCo.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import row, types
from treadle.mujoco.collision.broad import ROOM, broad
from treadle.mujoco.collision.contacts import listing, ordered
from treadle.mujoco.collision.shapes import NEVER, results, shapes
from treadle.mujoco.collision.solids import solids

ints, ints2 = wp.array(dtype=int), wp.array2d(dtype=int)

MOST = 4  # contacts of a pair


@cache
def plane_mesh_kernel(real: Any) -> wp.Kernel:
    """The kernel that finds the contacts of all planes with meshes."""
    t, f, s, four = types(real), listing(real), solids(real), results(real, MOST)
    vec3, mat33 = t.vec3, t.mat33
    reals, vectors, points = wp.array2d(dtype=real), wp.array2d(dtype=vec3), wp.array(dtype=vec3)
    pair_at, put, reach_of, to_the_front = f.pair_at, f.put, f.reach_of, ordered(real, MOST)
    column, over_plane, d4, r4 = shapes(real).column, broad(real).over_plane, four.dists, four.rows
    Solid, support, height, vec4s = s.Solid, s.support, s.height, wp.array(dtype=t.vec4)

    @wp.func
    def corner(polygon: int, k: int, first: int, hull_vert: points, hull_polyadr: ints, hull_polyvert: ints):
        """Corner k of a polygon, counted around it."""
        start = hull_polyadr[polygon]
        return hull_vert[first + hull_polyvert[start + k % (hull_polyadr[polygon + 1] - start)]]

    @wp.func
    def area(a: vec3, b: vec3, c: vec3, d: vec3):
        return wp.length(wp.cross(a - c, b - d))

    @wp.func(inline=True)
    def quadrilateral(
        polygon: int, a: int, count: int, first: int, hull_vert: points, hull_polyadr: ints, hull_polyvert: ints
    ):
        """Three more corners of a polygon (numbers from ``a`` on): each is pushed on while the area grows."""
        b, c, d = a + 1, a + 2, a + 3
        p = corner(polygon, a, first, hull_vert, hull_polyadr, hull_polyvert)
        moved = count > 4
        x = corner(polygon, b, first, hull_vert, hull_polyadr, hull_polyvert)
        y = corner(polygon, c, first, hull_vert, hull_polyadr, hull_polyvert)
        z = corner(polygon, d, first, hull_vert, hull_polyadr, hull_polyvert)
        most = area(p, x, y, z)
        while moved:
            z = corner(polygon, d + 1, first, hull_vert, hull_polyadr, hull_polyvert)
            wider = area(p, x, y, z)
            moved = wider > most
            pushed = moved
            if moved:
                most = wider
                d += 1
            while pushed:
                v = corner(polygon, c + 1, first, hull_vert, hull_polyadr, hull_polyvert)
                wider = area(p, x, v, z)
                pushed = wider > most
                if pushed:
                    most, y = wider, v
                    c += 1
            pushed = moved
            while pushed:
                v = corner(polygon, b + 1, first, hull_vert, hull_polyadr, hull_polyvert)
                wider = area(p, v, y, z)
                pushed = wider > most
                if pushed:
                    most, x = wider, v
                    b += 1
        return b, c, d

    @wp.kernel
    def collide(
        first: int, last: int, pairs_of_method: ints, pairs_geom1: ints, pairs_geom2: ints, pairs_explicit: ints,
        pairs_slot: ints, overridden: int, opt_o_margin: wp.array(dtype=real), geom_type: ints,
        geom_size: vectors, geom_rbound: reals, geom_margin: reals, geom_gap: reals,
        pair_margin: reals, pair_gap: reals, geom_xpos: vectors, geom_xmat: wp.array2d(dtype=mat33),
        hull_first: ints, hull_count: ints, hull_cells: ints, hull_vert: points, hull_celladr: ints,
        hull_far: vec4s, hull_tops: vec4s,
        hull_mapadr: ints, hull_map: ints, hull_polynormal: points, hull_polyadr: ints, hull_polyvert: ints,
        slot_count: ints2, slot_dist: reals, slot_pos: vectors, slot_normal: vectors, slot_tangent: vectors,
    ):  # fmt: skip
        w = wp.tid()
        for i in range(first, last):
            p, g1, g2 = pair_at(i, pairs_of_method, pairs_geom1, pairs_geom2)
            reach = reach_of(
                w, g1, g2, pairs_explicit[p], overridden, opt_o_margin, geom_margin, pair_margin, geom_gap, pair_gap
            )  # fmt: skip
            origin, pos = geom_xpos[w, g1], geom_xpos[w, g2]
            mat, count = geom_xmat[w, g1], int(0)
            bound, n = geom_rbound[row(w, geom_rbound), g2], column(mat, 2)
            near = over_plane(pos - origin, mat, bound + reach)
            if wp.any_lane(near):
                turn = geom_xmat[w, g2]
                low = height(geom_type[g2], vec3(), hull_cells[g2], -n * turn, hull_tops)
                near = near and wp.dot(pos - origin, n) - low <= reach + real(ROOM) * bound
            if wp.any_lane(near):
                turn = geom_xmat[w, g2]
                mesh = Solid(
                    geom_type[g2], geom_size[row(w, geom_size), g2], pos, turn, hull_first[g2], hull_count[g2],
                    hull_cells[g2],
                )  # fmt: skip
                depths, spots, way = d4(), r4(), r4()
                for k in range(MOST):
                    depths[k] = real(NEVER)
                    way[k] = n
                x, vertex = support(mesh, -n, hull_celladr, hull_far, hull_vert)
                dist = wp.dot(n, x - origin)
                if near and dist <= reach:
                    depths[0], spots[0] = dist, x - n * (real(0.5) * dist)
                    local, flattest, face = n * turn, real(1.0), int(-1)
                    base = hull_first[g2]
                    for k in range(hull_mapadr[base + vertex], hull_mapadr[base + vertex + 1]):
                        lean = wp.dot(hull_polynormal[hull_map[k]], local)
                        if lean < flattest:
                            flattest, face = lean, hull_map[k]
                    if face >= 0:
                        corners = hull_polyadr[face]
                        sides = hull_polyadr[face + 1] - corners
                        at = int(0)
                        for k in range(sides):
                            if hull_polyvert[corners + k] == vertex:
                                at = k
                        b, c, d = quadrilateral(face, at, sides, base, hull_vert, hull_polyadr, hull_polyvert)
                        for k in range(3):
                            number = wp.where(k == 0, b, wp.where(k == 1, c, d))
                            x = pos + turn * corner(face, number, base, hull_vert, hull_polyadr, hull_polyvert)
                            dist = wp.dot(n, x - origin)
                            if k + 1 < sides and dist <= reach and wp.dot(n, x - pos) <= real(0.0):
                                depths[k + 1], spots[k + 1] = dist, x - n * (real(0.5) * dist)
                if wp.any_lane(depths[0] <= reach):
                    depths, spots, way = to_the_front(depths, spots, way, reach)
                    for k in range(MOST):
                        if depths[k] <= reach:
                            count += 1
                    for k in range(MOST):
                        if wp.any_lane(k < count):
                            put(
                                w, pairs_slot[p] + k, depths[k], spots[k], way[k], vec3(), slot_dist, slot_pos,
                                slot_normal, slot_tangent,
                            )  # fmt: skip
            slot_count[w, p] = count

    return collide
