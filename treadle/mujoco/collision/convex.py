"""Distance and depth of two convex solids: GJK, and the expanding polytope where they overlap.

E. Gilbert, D. Johnson, S. Keerthi (1988) for the distance; `polytope` for the depth. All lanes of a gang walk through
one loop in which each turn asks both solids for one support point. What a lane does with it is its own affair: bring
the simplex nearer to the origin, fill it up to a triangle, expand the polytope, or turn the normal of curved surfaces.
So lanes that are at different stages share the work of the support functions, which for meshes is the most of it.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import types
from treadle.mujoco.collision.pairs import CYLINDER, ELLIPSOID
from treadle.mujoco.collision.polish import END, FOUND, LINE, NORMAL, POINT, TRY, polish
from treadle.mujoco.collision.polytope import POINTS, polytopes
from treadle.mujoco.collision.shapes import NEVER, TINY
from treadle.mujoco.collision.simplex import simplices
from treadle.mujoco.collision.solids import solids

ints = wp.array(dtype=int)
words = wp.array(dtype=wp.uint64)

APPROACH, FILL, EXPAND, NEAR, DEEP, POLISH, RESUME, APART, DONE = (wp.constant(k) for k in range(9))


@cache
def convex(real: Any, bends: bool) -> SimpleNamespace:
    """The kernel function ``between`` for one precision, and for curved surfaces only if something ``bends``."""
    t, s, p, q = types(real), solids(real), polytopes(real), polish(real)
    vec3 = t.vec3
    Solid, support = s.Solid, s.support
    reals, vectors = wp.array(dtype=real), wp.array(dtype=vec3)
    step, look = _approach(real), _fill(real)
    begin, expand, nearest, weights = p.begin, p.expand, p.nearest, p.weights
    refine, settle = q.start, q.round
    double = real is wp.float64
    digits = 1e-12 if double else 1e-6  # of a length, what the polytope leaves to rounding
    coarse = 1e-7 if double else 1e-5  # of a length, how near to a curved surface the polytope is when polishing begins

    @wp.func(inline=True)
    def between(
        a: Solid, b: Solid, scale: real, cutoff: real, tolerance: real, turns: int,
        hull_vert: vectors, hull_celladr: ints, hull_cell: ints, prism: vectors, x: vectors, xa: vectors,
        number_a: ints, number_b: ints, normals: vectors, dists: reals, corners: ints, into: words, out_of: words,
        seen: ints, freed: ints, bent: vectors,
    ):  # fmt: skip
        """How two solids without their radii lie to each other, ``scale`` being about their size.

        Gives ``(found, dist, normal, point, i, j, k)``: whether they are nearer than ``cutoff``; the distance, negative
        for a depth; the normal from a to b; the point of a; and the numbers in ``number_a`` and ``number_b`` of the
        support points that span the face, edge or vertex where they meet. The arrays after the hull's are scratch.
        """
        slack = real(digits) * scale
        fine = wp.max(tolerance, slack + slack)
        enough = fine
        curved = False
        if bends:
            curved = a.kind == ELLIPSOID or a.kind == CYLINDER or b.kind == ELLIPSOID or b.kind == CYLINDER
        if curved:
            enough = wp.max(fine, real(coarse) * scale)
        stage, n, faces, face, corner, tries, turn = int(APPROACH), int(0), int(0), int(-1), int(0), int(0), int(0)
        depth = real(0.0)
        i, j, k = int(0), int(0), int(0)
        low, high = real(-NEVER), real(NEVER)
        v, point, dist, normal = a.pos - b.pos, a.pos, real(NEVER), vec3()
        candidate, asked, rounds = int(END), int(TRY), int(0)
        d = vec3(real(1.0), real(0.0), real(0.0))
        if wp.length_sq(v) > slack * slack:
            d = -v
        while stage < APART:
            turn += wp.where(stage == POLISH, 0, 1)
            ya, ka = support(a, d, hull_vert, hull_celladr, hull_cell, prism)
            yb, kb = support(b, -d, hull_vert, hull_celladr, hull_cell, prism)
            y = ya - yb
            fresh = False
            if bends and stage == POLISH:
                candidate, asked, rounds, d = settle(candidate, asked, rounds, y, ya, scale, bent)
                if candidate == END:
                    stage = DONE
                    least, most = bent[FOUND][0], slack + enough - dist
                    final = faces == 0 or enough <= fine or n == POINTS or turn >= turns
                    if faces > 0 and final:
                        most = wp.max(most, high)
                    answer = bent[FOUND][1] > real(0.0)
                    # Of solids that are apart no least h but one is negative.
                    if faces == 0 and answer and least < real(0.0):
                        most = least
                    if least <= most and (final or answer):
                        exact, line = bent[POINT], bent[LINE]
                        if bent[FOUND][2] == real(0.0):
                            point = exact
                        elif wp.length_sq(line) > real(0.0):  # what was found before lies within the line that touches
                            point = exact + line * wp.dot(line, point - exact)
                        normal, dist = bent[NORMAL], -least
                    elif not final:
                        stage, d, enough = RESUME, normal, fine
            if stage == EXPAND:
                low, high = depth - slack, wp.min(high, wp.dot(d, y))
                if high - depth <= enough or n == POINTS or turn >= turns:
                    stage = DEEP
            if stage < NEAR and n < POINTS:
                x[n], xa[n], number_a[n], number_b[n] = y, ya, ka, kb
            if stage == APPROACH:
                stage, n, v, point = step(n, v, point, y, cutoff, slack, tolerance, x, xa, number_a, number_b)
                d = -v
                fresh = stage == EXPAND
                if stage == APPROACH and turn >= turns:
                    stage = NEAR
            elif stage == FILL:
                n, tries, stage = look.take(n, tries, slack, x)
                fresh = stage == EXPAND
            if fresh:
                faces = begin(x, normals, dists, corners)
            if stage == EXPAND:
                if not fresh or n == 4:
                    last = wp.where(fresh, 3, n)
                    faces = expand(
                        last, face, faces, low, high + slack, slack, x, normals, dists, corners, into, out_of, seen,
                        freed,
                    )  # fmt: skip
                    n = last + 1
                face = nearest(faces, dists, corners)
                if face >= 0:
                    d, depth, corner = normals[face], dists[face], corners[face]
                else:
                    stage = DEEP
            if stage == FILL:
                d = look.ahead(n, tries, x)
            if stage == DEEP:
                i, j, k = corner & 63, (corner >> 6) & 63, (corner >> 12) & 63
                normal, dist = d, -depth
                part = weights(d * depth, x[i], x[j], x[k])
                point = xa[i] * part[0] + xa[j] * part[1] + xa[k] * part[2]
            if stage == NEAR:
                j, k = wp.where(n > 1, 1, 0), wp.where(n > 2, 2, 0)
                dist = wp.length(v)
                normal = -v / wp.max(dist, real(TINY))
            if stage == NEAR or stage == DEEP:
                stage = DONE
                if bends and curved:
                    candidate, d = refine(a, b, x, xa, i, j, k, normal, bent)
                    stage, asked, rounds = POLISH, int(TRY), int(0)
            if stage == RESUME:
                stage = EXPAND
        return stage == DONE, dist, normal, point, i, j, k

    return SimpleNamespace(between=between)


def _approach(real: Any) -> wp.Function:
    """One step of GJK: point ``n`` is new; gives ``(stage, n, v, point)``, the simplex cut down to what spans ``v``.

    ``point`` is the point of the first solid that belongs to ``v``.

    It ends when the new point is no nearer along ``v`` than to a relative rounding or, as in MuJoCo, the square of the
    tolerance; or when a plane square to ``v`` keeps the solids farther apart than ``cutoff``.
    """
    t, s = types(real), simplices(real)
    vec3 = t.vec3
    vectors = wp.array(dtype=vec3)
    normal_of, in_simplex = s.normal_of, s.in_simplex
    double = real is wp.float64
    digits = 1e-14 if double else 1e-6

    @wp.func(inline=True)
    def step(
        n: int, v: vec3, point: vec3, y: vec3, cutoff: real, slack: real, tolerance: real, x: vectors, xa: vectors,
        number_a: ints, number_b: ints,
    ):  # fmt: skip
        square, along = wp.length_sq(v), wp.dot(v, y)
        stage = int(APPROACH)
        if along > real(0.0) and along * along >= cutoff * cutoff * square:
            stage = APART
        elif n > 0 and square - along <= wp.max(real(digits) * square, real(0.5) * tolerance * tolerance):
            stage = NEAR
        else:
            weights = in_simplex(n + 1, x)
            inside = n == 3
            m = int(0)
            nearest, at = vec3(), vec3()
            for k in range(4):
                if k <= n and weights[k] > real(0.0):
                    nearest += x[k] * weights[k]
                    at += xa[k] * weights[k]
                    x[m], xa[m], number_a[m], number_b[m] = x[k], xa[k], number_a[k], number_b[k]
                    m += 1
            if m == 3:  # of a face, along its normal: a sum of corners loses the digits that say where it points
                normal = normal_of(x[0], x[1], x[2])
                size = wp.length_sq(normal)
                if size > real(0.0):
                    nearest = normal * (wp.dot(normal, x[0]) / size)
            if inside and m == 4:
                stage = EXPAND
            else:
                closer = wp.length_sq(nearest)
                if closer <= slack * slack:
                    stage = wp.where(m < 3, FILL, EXPAND)
                elif n > 0 and closer >= square:
                    stage = NEAR
                if stage != NEAR:
                    v, point = nearest, at
            n = m
        return stage, n, v, point

    return step


def _fill(real: Any) -> SimpleNamespace:
    """Where the origin lies on a vertex or an edge: points that make a triangle of it; ``ahead`` and ``take``."""
    vec3 = types(real).vec3
    vectors = wp.array(dtype=vec3)

    @wp.func(inline=True)
    def ahead(n: int, tries: int, x: vectors):
        """The direction to try next: along the axes, or square to the edge, and back."""
        k = (tries // 2) % 3
        d = vec3()
        d[k] = wp.where(tries % 2 == 0, real(1.0), real(-1.0))
        if n == 2:
            d = wp.cross(x[1] - x[0], d)
            if wp.length_sq(d) < real(TINY):
                d[(k + 1) % 3] = real(1.0)
        return d

    @wp.func(inline=True)
    def take(n: int, tries: int, slack: real, x: vectors):
        """Keep point ``n`` if it is not on the vertex or line of those before it: ``(n, tries, stage)``."""
        off = wp.length_sq(x[n] - x[0])
        if n == 2:
            line = x[1] - x[0]
            off = wp.length_sq(wp.cross(line, x[n] - x[0])) / wp.length_sq(line)
        stage = int(FILL)
        if off > slack * slack:
            n += 1
            tries = 0
            stage = wp.where(n == 3, EXPAND, FILL)
        else:
            tries += 1
            stage = wp.where(tries < 6, FILL, APART)
        return n, tries, stage

    return SimpleNamespace(ahead=ahead, take=take)
