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

APPROACH, FILL, EXPAND, NEAR, DEEP, POLISH, RESUME, APART, DONE = (wp.constant(k) for k in range(9))


@cache
def convex(real: Any, bends: bool) -> SimpleNamespace:
    """The kernel function ``between`` for one precision, and for curved surfaces only if something ``bends``."""
    t, s, p, q = types(real), solids(real), polytopes(real), polish(real)
    vec3 = t.vec3
    Solid, support = s.Solid, s.support
    reals, vectors, vec4s = wp.array(dtype=real), wp.array(dtype=vec3), wp.array(dtype=t.vec4)
    step, look = _approach(real), _fill(real)
    begin, expand, nearest, weights = p.begin, p.expand, p.nearest, p.weights
    refine, settle = q.start, q.round
    double = real is wp.float64
    digits = 1e-12 if double else 1e-6  # of a length, what the polytope leaves to rounding
    coarse = 1e-7 if double else 1e-5  # of a length, how near to a curved surface the polytope is when polishing begins

    @wp.struct
    class Walk:
        scale: real  # about the size of both solids
        cutoff: real  # a distance beyond which they do not meet
        tolerance: real
        slack: real
        fine: real
        enough: real
        curved: bool
        stage: int
        turn: int
        n: int  # points that there are
        faces: int
        face: int
        corner: int
        tries: int
        depth: real
        low: real
        high: real
        v: vec3
        d: vec3  # where the next support point is asked for
        i: int
        j: int
        k: int
        dist: real
        normal: vec3
        point: vec3
        candidate: int
        asked: int
        rounds: int

    @wp.func(inline=True)
    def start(a: Solid, b: Solid, scale: real, cutoff: real, tolerance: real):
        """The beginning of a walk; ``scale`` is about the size of both solids, ``cutoff`` a distance beyond which they
        do not meet."""
        s = Walk()
        s.scale, s.cutoff, s.tolerance = scale, cutoff, tolerance
        s.slack = real(digits) * scale
        s.fine = wp.max(tolerance, s.slack + s.slack)
        s.enough = s.fine
        s.curved = False
        if bends:
            s.curved = a.kind == ELLIPSOID or a.kind == CYLINDER or b.kind == ELLIPSOID or b.kind == CYLINDER
        if s.curved:
            s.enough = wp.max(s.fine, real(coarse) * scale)
        s.stage, s.face = int(APPROACH), int(-1)
        s.low, s.high = real(-NEVER), real(NEVER)
        s.v, s.point, s.dist = a.pos - b.pos, a.pos, real(NEVER)
        s.candidate, s.asked = int(END), int(TRY)
        s.d = vec3(real(1.0), real(0.0), real(0.0))
        if wp.length_sq(s.v) > s.slack * s.slack:
            s.d = -s.v
        return s

    @wp.func(inline=True)
    def advance(
        s: Walk, a: Solid, b: Solid, turns: int,
        hull_celladr: ints, hull_far: vec4s, prism: vectors, x: vectors, xa: vectors,
        number_a: ints, number_b: ints, normals: vectors, dists: reals, corners: ints, border: ints,
        seen: ints, freed: ints, bent: vectors,
    ):  # fmt: skip
        """One turn of a walk whose stage is below `APART`."""
        s.turn += wp.where(s.stage == POLISH, 0, 1)
        ya, ka = support(a, s.d, hull_celladr, hull_far, prism)
        yb, kb = support(b, -s.d, hull_celladr, hull_far, prism)
        y = ya - yb
        fresh = False
        if bends and s.stage == POLISH:
            s.candidate, s.asked, s.rounds, s.d = settle(s.candidate, s.asked, s.rounds, y, ya, s.scale, bent)
            if s.candidate == END:
                s.stage = DONE
                least, most = bent[FOUND][0], s.slack + s.enough - s.dist
                final = s.faces == 0 or s.enough <= s.fine or s.n == POINTS or s.turn >= turns
                if s.faces > 0 and final:
                    most = wp.max(most, s.high)
                answer = bent[FOUND][1] > real(0.0)
                # Of solids that are apart no least h but one is negative.
                if s.faces == 0 and answer and least < real(0.0):
                    most = least
                if least <= most and (final or answer):
                    exact, line = bent[POINT], bent[LINE]
                    if bent[FOUND][2] == real(0.0):
                        s.point = exact
                    elif wp.length_sq(line) > real(0.0):  # what was found before lies within the line that touches
                        s.point = exact + line * wp.dot(line, s.point - exact)
                    s.normal, s.dist = bent[NORMAL], -least
                elif not final:
                    s.stage, s.d, s.enough = RESUME, s.normal, s.fine
        if s.stage == EXPAND:
            s.low, s.high = s.depth - s.slack, wp.min(s.high, wp.dot(s.d, y))
            if s.high - s.depth <= s.enough or s.n == POINTS or s.turn >= turns:
                s.stage = DEEP
        if s.stage < NEAR and s.n < POINTS:
            x[s.n], xa[s.n], number_a[s.n], number_b[s.n] = y, ya, ka, kb
        if s.stage == APPROACH:
            s.stage, s.n, s.v, s.point = step(
                s.n, s.v, s.point, y, s.cutoff, s.slack, s.tolerance, x, xa, number_a, number_b
            )  # fmt: skip
            s.d = -s.v
            fresh = s.stage == EXPAND
            if s.stage == APPROACH and s.turn >= turns:
                s.stage = NEAR
        elif s.stage == FILL:
            s.n, s.tries, s.stage = look.take(s.n, s.tries, s.slack, x)
            fresh = s.stage == EXPAND
        if fresh:
            s.faces = begin(x, normals, dists, corners)
        if s.stage == EXPAND:
            if not fresh or s.n == 4:
                last = wp.where(fresh, 3, s.n)
                s.faces = expand(
                    last, s.face, s.faces, s.low, s.high + s.slack, s.slack, x, normals, dists, corners, border,
                    seen, freed,
                )  # fmt: skip
                s.n = last + 1
            s.face = nearest(s.faces, dists, corners)
            if s.face >= 0:
                s.d, s.depth, s.corner = normals[s.face], dists[s.face], corners[s.face]
            else:
                s.stage = DEEP
        if s.stage == FILL:
            s.d = look.ahead(s.n, s.tries, x)
        if s.stage == DEEP:
            s.i, s.j, s.k = s.corner & 63, (s.corner >> 6) & 63, (s.corner >> 12) & 63
            s.normal, s.dist = s.d, -s.depth
            part = weights(s.d * s.depth, x[s.i], x[s.j], x[s.k])
            s.point = xa[s.i] * part[0] + xa[s.j] * part[1] + xa[s.k] * part[2]
        if s.stage == NEAR:
            s.j, s.k = wp.where(s.n > 1, 1, 0), wp.where(s.n > 2, 2, 0)
            s.dist = wp.length(s.v)
            s.normal = -s.v / wp.max(s.dist, real(TINY))
        if s.stage == NEAR or s.stage == DEEP:
            s.stage = DONE
            if bends and s.curved:
                s.candidate, s.d = refine(a, b, x, xa, s.i, s.j, s.k, s.normal, bent)
                s.stage, s.asked, s.rounds = POLISH, int(TRY), int(0)
        if s.stage == RESUME:
            s.stage = EXPAND
        return s

    @wp.func(inline=True)
    def between(
        a: Solid, b: Solid, scale: real, cutoff: real, tolerance: real, turns: int,
        hull_celladr: ints, hull_far: vec4s, prism: vectors, x: vectors, xa: vectors,
        number_a: ints, number_b: ints, normals: vectors, dists: reals, corners: ints, border: ints,
        seen: ints, freed: ints, bent: vectors,
    ):  # fmt: skip
        """A whole walk: whether the solids are nearer than ``cutoff``; distance, normal, point."""
        s = start(a, b, scale, cutoff, tolerance)
        while s.stage < APART:
            s = advance(
                s, a, b, turns, hull_celladr, hull_far, prism, x, xa, number_a, number_b, normals, dists,
                corners, border, seen, freed, bent,
            )  # fmt: skip
        return s.stage == DONE, s.dist, s.normal, s.point

    return SimpleNamespace(Walk=Walk, start=start, advance=advance, between=between)


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
            nearest, at = vec3(), vec3()
            for k in range(4):
                if k <= n and weights[k] > real(0.0):
                    nearest += x[k] * weights[k]
                    at += xa[k] * weights[k]
            # What counts moves to the front, place by place for all lanes at once.
            m = n + 1
            for back in range(4):
                k = 3 - back
                if k <= n and not weights[k] > real(0.0):
                    for i in range(k, 3):
                        x[i], xa[i], number_a[i], number_b[i] = x[i + 1], xa[i + 1], number_a[i + 1], number_b[i + 1]
                    m -= 1
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
