"""Several contacts where two faces, or a face and an edge, lie on each other: one polygon clipped against the other.

What touched is known by the numbers of the support points. If a face of the one solid and a face of the other share it
and their planes differ by less than some degrees, the second's polygon is clipped against the sides of the first; else
an edge that lies along a face is. Which features are looked for in which order, and that at most four points of the
greatest area are kept, is as in MuJoCo; clipping is that of I. Sutherland and G. Hodgman (1974).
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import types
from treadle.mujoco.collision.features import ALONG, FLAT, features
from treadle.mujoco.collision.pairs import CAPSULE, CYLINDER
from treadle.mujoco.collision.shapes import NEVER, results, shapes
from treadle.mujoco.collision.solids import solids

ints = wp.array(dtype=int)


@cache
def manifolds(real: Any) -> SimpleNamespace:
    """The kernel function ``contacts`` for one precision."""
    t, four = types(real), results(real, 4)
    vec3 = t.vec3
    vectors = wp.array(dtype=vec3)
    Solid = solids(real).Solid
    f, c = features(real), _clipping(real)
    dimension, faces, face_normal, polygon, edges, edge = f.dimension, f.faces, f.normal, f.polygon, f.edges, f.edge
    clip, keep_near, spread = c.clip, c.keep_near, c.spread
    d4, r4, column = four.dists, four.rows, shapes(real).column
    upright = 1.0 - (1e-12 if real is wp.float64 else 1e-6)  # cosine

    @wp.func(inline=True)
    def opposite(
        a: Solid, b: Solid, na: int, nb: int, normal: vec3, hull_polynormal: vectors, fa: ints, fb: ints, spare: vectors
    ):  # fmt: skip
        """Of the faces in ``fa`` and ``fb`` the two that face each other best, if any do: ``(found, face, face)``."""
        best, i, j = real(-FLAT), int(-1), int(-1)
        for l in range(nb):
            spare[l] = face_normal(b, fb[l], hull_polynormal)
        for k in range(na):
            n = face_normal(a, fa[k], hull_polynormal)
            if wp.dot(n, normal) > real(ALONG):
                for l in range(nb):
                    m = spare[l]
                    if -wp.dot(m, normal) > real(ALONG) and wp.dot(n, m) < best:
                        best, i, j = wp.dot(n, m), fa[k], fb[l]
        return i >= 0, i, j

    @wp.func(inline=True)
    def lying(
        s: Solid, dim: int, u: int, v: int, point: vec3, other: Solid, count: int, toward: vec3, hull_vert: vectors,
        hull_mapadr: ints, hull_map: ints, hull_polynormal: vectors, hull_polyadr: ints, hull_polyvert: ints,
        found: ints,
    ):  # fmt: skip
        """The first face of ``other`` in ``found`` that an edge of ``s`` lies along: ``(found, face, start, end)``."""
        face, start, end = int(-1), vec3(), vec3()
        for k in range(count):
            n = face_normal(other, found[k], hull_polynormal)
            if face < 0 and wp.dot(n, toward) > real(0.0):
                for e in range(edges(s, dim, u, hull_mapadr)):
                    x, y = edge(s, dim, u, v, e, point, hull_vert, hull_mapadr, hull_map, hull_polyadr, hull_polyvert)
                    if face < 0 and wp.abs(wp.dot(wp.normalize(y - x), n)) < real(ALONG):
                        face, start, end = found[k], x, y
        return face >= 0, face, start, end

    @wp.func(inline=True)
    def ends(s: Solid, normal: vec3):
        """How many ends an edge of a solid has: none that are known if a disc of it touches, by any point of its rim.

        MuJoCo begins it at one that its polytope has, so that two contacts, far from what touches, come by chance.
        """
        disc = s.kind == CYLINDER and wp.abs(wp.dot(column(s.mat, 2), normal)) > real(upright)
        return wp.where(disc, 0, 2)

    @wp.func(inline=True)
    def contacts(
        a: Solid, b: Solid, ua: int, va: int, wa: int, ub: int, vb: int, wb: int, normal: vec3, point_a: vec3,
        point_b: vec3, reach: real, hull_vert: vectors, hull_mapadr: ints, hull_map: ints, hull_polynormal: vectors,
        hull_polyadr: ints, hull_polyvert: ints, fa: ints, fb: ints, fc: ints, side: vectors, subject: vectors,
        spare: vectors,
    ):  # fmt: skip
        """Contacts as ``(count, dists, points, normal)``; count 0: there are no faces or edges on each other.

        ``point_a`` and ``point_b`` are the points that touch, on capsules at radius plus half of ``reach``: solids are
        swollen by that, as contacts farther apart than it are none.
        """
        dim_a, dim_b = dimension(ua, va, wa), dimension(ub, vb, wb)
        if ua == va:
            va = wa
        if ub == vb:
            vb = wb
        na = faces(a, dim_a, ua, va, wa, normal, hull_mapadr, hull_map, fa, fc)
        nb = faces(b, dim_b, ub, vb, wb, -normal, hull_mapadr, hull_map, fb, fc)
        found, face_a, face_b = opposite(a, b, na, nb, normal, hull_polynormal, fa, fb, spare)
        first = normal
        with_edge, count, n, direction, sides = False, int(0), vec3(), vec3(), int(0)
        if found:
            n, direction = face_normal(a, face_a, hull_polynormal), face_normal(b, face_b, hull_polynormal)
            normal = -direction
            sides = polygon(a, face_a, hull_vert, hull_polyadr, hull_polyvert, side)
            count = polygon(b, face_b, hull_vert, hull_polyadr, hull_polyvert, subject)
        elif dim_a < 3 and nb > 0 and (dim_a <= dim_b or na == 0):
            with_edge, face_b, x, y = lying(
                a, dim_a, ua, va, point_a, b, nb, -normal, hull_vert, hull_mapadr, hull_map, hull_polynormal,
                hull_polyadr, hull_polyvert, fb,
            )  # fmt: skip
            if with_edge:
                n = face_normal(b, face_b, hull_polynormal)
                direction, normal = -n, -n
                sides = polygon(b, face_b, hull_vert, hull_polyadr, hull_polyvert, side)
                subject[0], subject[1], count = x, y, ends(a, first)
        if not found and not with_edge and dim_b < 3 and na > 0:
            with_edge, face_a, x, y = lying(
                b, dim_b, ub, vb, point_b, a, na, normal, hull_vert, hull_mapadr, hull_map, hull_polynormal,
                hull_polyadr, hull_polyvert, fa,
            )  # fmt: skip
            if with_edge:
                n = face_normal(a, face_a, hull_polynormal)
                direction, normal = -n, n
                sides = polygon(a, face_a, hull_vert, hull_polyadr, hull_polyvert, side)
                subject[0], subject[1], count = x, y, ends(b, first)
        # Half of the reach is in the edge of a capsule already.
        reach_a = wp.where(a.kind == CAPSULE, real(0.0), real(0.5) * reach)
        reach_b = wp.where(b.kind == CAPSULE, real(0.0), real(0.5) * reach)
        count = clip(n, sides, side, count, subject, spare)
        count = keep_near(n, side, reach_a + reach_b, count, subject)
        kept = spread(with_edge, count, subject)
        dists, points = d4(), r4()
        for k in range(4):
            dists[k] = real(NEVER)
        for k in range(wp.min(count, 4)):
            x = subject[kept[k]]
            above = wp.dot(x - side[0], n)
            dist = -above * wp.dot(n, direction)
            dists[k] = dist + reach - reach_a - reach_b
            points[k] = x - n * above - direction * (real(0.5) * dist) + normal * (real(0.5) * (reach_a - reach_b))
        if with_edge:
            count = wp.min(count, 2)
        return wp.min(count, 4), dists, points, normal

    return SimpleNamespace(contacts=contacts)


def _clipping(real: Any) -> SimpleNamespace:
    """``clip`` against the sides of a face, ``keep_near`` what is near it, ``spread``: which points to keep."""
    t = types(real)
    vec3 = t.vec3
    vectors = wp.array(dtype=vec3)
    within = 1e-10 if real is wp.float64 else 1e-7
    parallel = 3e-7

    @wp.func(inline=True)
    def clip(n: vec3, sides: int, side: vectors, count: int, subject: vectors, spare: vectors):
        """Cut ``subject`` to what lies inside the prism over a face; gives its number of corners.

        Each side makes the corners begin at the next one, also where it cuts nothing off, which is found out first.
        """
        for e in range(sides):
            start = side[e]
            inward = wp.cross(wp.where(e + 1 == sides, side[0], side[wp.min(e + 1, side.shape[0] - 1)]) - start, n)
            first, outside = subject[0], False
            for i in range(count):
                outside = outside or not wp.dot(subject[i] - start, inward) > real(-within)  # also what is no number
            if outside:
                kept, p, dp = int(0), first, wp.dot(first - start, inward)
                for i in range(count):
                    q = wp.where(i + 1 == count, first, subject[wp.min(i + 1, subject.shape[0] - 1)])
                    dq = wp.dot(q - start, inward)
                    inside_p, inside_q = dp > real(-within), dq > real(-within)
                    if inside_p != inside_q and kept < spare.shape[0]:
                        share = dp / (dp - dq)
                        if share > real(-parallel) and share < real(1.0 + parallel):
                            spare[kept] = p + (q - p) * wp.clamp(share, real(0.0), real(1.0))
                            kept += 1
                    if inside_q and kept < spare.shape[0]:
                        spare[kept] = q
                        kept += 1
                    p, dp = q, dq
                for i in range(kept):
                    subject[i] = spare[i]
                count = kept
            else:
                for i in range(count):
                    subject[i] = wp.where(i + 1 == count, first, subject[wp.min(i + 1, subject.shape[0] - 1)])
        return wp.where(sides < 3, 0, count)

    @wp.func(inline=True)
    def keep_near(n: vec3, side: vectors, most: real, count: int, subject: vectors):
        kept = int(0)
        for i in range(count):
            if wp.dot(subject[i] - side[0], n) <= most:
                subject[kept] = subject[i]
                kept += 1
        return kept

    @wp.func
    def area(a: vec3, b: vec3, c: vec3, d: vec3):
        """Twice the area of a quadrilateral: the cross product of its diagonals."""
        return wp.length(wp.cross(a - c, b - d))

    @wp.func(inline=True)
    def spread(with_edge: bool, count: int, x: vectors):
        """The numbers of the points to keep: both ends of an edge, or four of a polygon whose area is large.

        The four go around the polygon as long as the area grows, each pushed on by the one behind it.
        """
        kept = wp.vec4i(0, 1, 2, 3)
        if with_edge and count > 2:
            most = real(0.0)
            for i in range(count):
                for j in range(i + 1, count):
                    gap = wp.length_sq(x[j] - x[i])
                    if gap > most:
                        most = gap
                        kept = wp.vec4i(i, j, 0, 0)
        elif count > 4:
            b, c, d = int(1), int(2), int(3)
            most = area(x[0], x[b], x[c], x[d])
            for a in range(count):
                moved = True
                while moved:
                    moved = False
                    wider = area(x[a], x[b], x[c], x[(d + 1) % count])
                    if wider > most:
                        most, d, moved = wider, (d + 1) % count, True
                        kept = wp.vec4i(a, b, c, d)
                        pushed = True
                        while pushed:
                            wider = area(x[a], x[b], x[(c + 1) % count], x[d])
                            pushed = wider > most
                            if pushed:
                                most, c = wider, (c + 1) % count
                                kept = wp.vec4i(a, b, c, d)
                        pushed = True
                        while pushed:
                            wider = area(x[a], x[(b + 1) % count], x[c], x[d])
                            pushed = wider > most
                            if pushed:
                                most, b = wider, (b + 1) % count
                                kept = wp.vec4i(a, b, c, d)
                if b == a:
                    b = (b + 1) % count
                    if c == b:
                        c = (c + 1) % count
                        if d == c:
                            d = (d + 1) % count
        return kept

    return SimpleNamespace(clip=clip, keep_near=keep_near, spread=spread)
