"""Curved surfaces: the normal that GJK or the polytope found, made exact.

A polytope in a curved surface finds the depth to its tolerance but the normal only to the root of it. With h(n) the
support function of the difference of the two solids and y(n) its point, the depth is the least h over unit vectors near
by. Where both solids are smooth, y is along n there, and Newton's method finds it: the derivative of y comes from two
more support points, and that less h is the second derivative of h. But h has a kink at normals square to an edge of
one of the solids; there y jumps along the edge, and the least h may be on the kink itself: on a face, whose normal is
known; where two edges cross, whose product it is; or somewhere along one edge, where Newton's method goes along the
kink. Kinks near the normal are candidates, in that order; the first from which h falls on neither side is the answer.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import types
from treadle.mujoco.collision.pairs import BOX, CAPSULE, CYLINDER, HFIELD, MESH
from treadle.mujoco.collision.shapes import NEVER, TINY, shapes
from treadle.mujoco.collision.solids import solids

ROUNDS = 12
STRIDE = 0.1  # rad: the most that one round turns the normal

# Candidates in their order: the face of each solid, an edge of the one across an edge of the other, an edge, no kink.
FACE, CROSSING, EDGE, SMOOTH, END = (wp.constant(k) for k in (0, 2, 6, 10, 11))

# Which support point comes next: at a trial, beside it in two directions, and on the other side of kinks.
TRY, AHEAD, BESIDE, OVER, ACROSS = (wp.constant(k) for k in range(5))

# Places in the scratch: two edges of each solid, then their faces' normals; the normal at the start; of the candidate
# at work the trial, two directions across it, and support points; of the best trial its normal, point and (h, part of
# y across); and the same of the best candidate, with 1 for an answer; and the line in which more than a point touches.
EDGES, FACES, START, TRIAL, FIRST, SECOND, Y, Y1, BEST, SPOT, VALUE, NORMAL, POINT, FOUND, LINE = (
    wp.constant(k) for k in (0, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18)
)  # fmt: skip
PLACES = 19


@cache
def polish(real: Any) -> SimpleNamespace:
    """Kernel functions ``start round`` for one precision; ``round`` takes one support point a call."""
    vec3 = types(real).vec3
    vectors = wp.array(dtype=vec3)
    Solid = solids(real).Solid
    kinks, prepare, newton = _kinks(real), _prepare(real), _newton(real)
    point_of, flat = _point(real), _flat(real)
    double = real is wp.float64
    step = 1e-5 if double else 3e-3  # rad, of differences
    aside = 1e-10 if double else 1e-4  # rad, to see on which side of a kink h falls
    fine = 1e-13 if double else 1e-6  # of the size: the part of y across that is rounding,
    good = 1e-10 if double else 1e-4  # that solves the equation,
    even = 1e-9 if double else 1e-3  # and by which h may fall beside a kink

    @wp.func(inline=True)
    def start(a: Solid, b: Solid, x: vectors, xa: vectors, i: int, j: int, k: int, n: vec3, p: vectors):
        """Note the kinks near the normal ``n`` of points i, j, k; gives the first candidate and where to ask."""
        u, v = xa[j] - xa[i], xa[k] - xa[i]
        kinks(a, u, v, n, 0, p)
        kinks(b, u - (x[j] - x[i]), v - (x[k] - x[i]), n, 1, p)
        p[START] = n
        p[FOUND] = vec3(real(NEVER), real(0.0), real(0.0))
        c = prepare(0, p)
        return c, p[TRIAL]

    @wp.func(inline=True)
    def round(c: int, part: int, rounds: int, y: vec3, ya: vec3, scale: real, p: vectors):
        """Take the support point ``y`` (and that of the first solid) for the direction last asked for.

        Gives ``(c, part, rounds, d)``: the candidate, `END` if all is done; which support point comes next; how many
        trials there were; and the next direction. The result lies in ``p``: `NORMAL`, `POINT` and `FOUND`.
        """
        n, first, second = p[TRIAL], p[FIRST], p[SECOND]
        done, answer = False, False
        if part == TRY:
            height, off = wp.dot(n, y), real(0.0)
            if c >= EDGE:
                off = wp.abs(wp.dot(first, y))
                if c == SMOOTH:
                    off = wp.sqrt(off * off + wp.dot(second, y) * wp.dot(second, y))
            best, rest = p[VALUE][0], p[VALUE][1]
            rounds += 1
            if height < best - real(fine) * scale or (off < real(0.5) * rest and height <= best + real(fine) * scale):
                p[BEST], p[Y] = n, y
                p[SPOT] = point_of(c, n, y, ya, p)
                p[VALUE] = vec3(height, off, real(0.0))
                part = wp.where(off <= real(fine) * scale or rounds >= ROUNDS, ACROSS, AHEAD)
            else:
                part = wp.where(rest <= real(good) * scale or rounds >= ROUNDS, ACROSS, TRY)
                n = wp.normalize(n + p[BEST])
                if c == SMOOTH:
                    second = wp.normalize(wp.cross(n, first))
                p[TRIAL], p[FIRST], p[SECOND] = n, wp.cross(second, n), second
            if c < EDGE:
                part = OVER
                if wp.length_sq(first) == real(0.0):  # a disc: any two directions do
                    first = y - n * height
                    first = first / wp.max(wp.length(first), real(TINY))
                    p[FIRST], p[SECOND] = first, wp.cross(n, first)
        elif part == AHEAD and c == SMOOTH:
            p[Y1] = y
            part = BESIDE
        elif part == AHEAD or part == BESIDE:
            newton(c, y, real(step), p)
            n = p[TRIAL]
            part = TRY
        else:
            side = wp.where(part == OVER, first, second)
            falls = wp.dot(side, y) * wp.where(wp.dot(side, p[Y]) < real(0.0), real(-1.0), real(1.0))
            if c < CROSSING and wp.length_sq(p[EDGES + 2 * c]) == real(0.0):
                # A disc, radius r: beside n, y is t - r w for steps -w; h falls somewhere if t is longer than r.
                last = p[Y1]
                r = wp.abs(wp.dot(second, last - y))
                t, u = wp.dot(first, last) + r, wp.dot(second, last)
                falls = wp.where(part == OVER, real(0.0), wp.sqrt(t * t + u * u) - r)
                p[Y1] = y
            done = falls > real(even) * scale or part == ACROSS
            answer = done and falls <= real(even) * scale
            part = ACROSS
        if part == ACROSS and not done and c >= EDGE:
            answer = p[VALUE][1] <= real(good) * scale
            done = not answer or c == SMOOTH
        d = n
        if part == AHEAD:
            d = n + p[FIRST] * real(step)
        elif part == BESIDE:
            d = n + p[SECOND] * real(step)
        elif part != TRY:
            side = p[wp.where(part == OVER, FIRST, SECOND)]
            d = p[BEST] - side * wp.where(wp.dot(side, p[Y]) < real(0.0), real(-aside), real(aside))
        if done:
            height, least = p[VALUE][0], p[FOUND][0]
            slack = wp.where(answer, real(fine), real(-fine)) * scale
            if height <= least + slack:
                p[NORMAL], p[POINT] = p[BEST], p[SPOT]
                p[FOUND] = vec3(height, wp.where(answer, real(1.0), real(0.0)), flat(c, p[BEST], p))
            c = wp.where(answer and height <= least + slack, END, prepare(c + 1, p))
            part, rounds, d = int(TRY), int(0), p[TRIAL]
        return c, part, rounds, d

    return SimpleNamespace(start=start, round=round)


def _kinks(real: Any) -> wp.Function:
    """Where a solid has an edge or a face whose normals are near one that was found."""
    vec3 = types(real).vec3
    vectors = wp.array(dtype=vec3)
    Solid, column = solids(real).Solid, shapes(real).column
    near = 1e-2 if real is wp.float64 else 3e-2  # rad

    @wp.func
    def square(line: vec3, n: vec3):
        """The unit vector along a line if it is almost square to ``n``, else 0."""
        size = wp.length(line)
        along = line / wp.max(size, real(TINY))
        return wp.where(size > real(TINY) and wp.abs(wp.dot(along, n)) < real(near), along, vec3())

    @wp.func
    def kinks(s: Solid, u: vec3, v: vec3, n: vec3, side: int, p: vectors):
        """Put the edges of solid number ``side``, and its face, where they belong, 0 if there are none.

        ``u`` and ``v`` are the lines between the points that touch: of meshes nothing else is known.
        """
        first, second, face = vec3(), vec3(), vec3()
        if s.kind == CAPSULE or s.kind == CYLINDER:
            axis = column(s.mat, 2)
            first = square(axis, n)
            if s.kind == CYLINDER and wp.length(wp.cross(axis, n)) < real(near):
                face = axis
        else:
            if s.kind == BOX:
                for k in range(3):
                    along = square(column(s.mat, k), n)
                    if wp.length_sq(along) > real(0.0):
                        second = first
                        first = along
            elif s.kind == MESH or s.kind == HFIELD:
                first, second = square(u, n), square(v, n)
                if wp.length_sq(first) == real(0.0):
                    first, second = second, first
            face = wp.cross(first, second)
            size = wp.length(face)
            if size > real(1e-3):
                face = face / size
            else:
                second, face = vec3(), vec3()
        p[EDGES + 2 * side], p[EDGES + 2 * side + 1] = first, second
        p[FACES + side] = wp.where(wp.dot(face, n) < real(0.0), -face, face)

    return kinks


def _prepare(real: Any) -> wp.Function:
    """The first candidate that there is, from a number on; its trial and the two directions across it."""
    vec3 = types(real).vec3
    vectors = wp.array(dtype=vec3)

    @wp.func
    def prepare(c: int, p: vectors):
        n = p[START]
        trial, first, second = vec3(), vec3(), vec3()
        while c < END and wp.length_sq(trial) == real(0.0):
            if c < CROSSING:
                trial = p[FACES + c]
                first, second = wp.cross(p[EDGES + 2 * c + 1], trial), wp.cross(p[EDGES + 2 * c], trial)
            elif c < EDGE:
                u, v = p[EDGES + (c - CROSSING) // 2], p[EDGES + 2 + (c - CROSSING) % 2]
                trial = wp.cross(u, v)
                size = wp.length(trial)
                trial = wp.where(size < real(1e-6), vec3(), trial / wp.max(size, real(TINY)))
                trial = wp.where(wp.dot(trial, n) < real(0.0), -trial, trial)
                first, second = wp.cross(v, trial), wp.cross(u, trial)
            elif c < SMOOTH:
                second = p[EDGES + c - EDGE]
                if wp.length_sq(second) > real(0.0):
                    trial = wp.normalize(n - second * wp.dot(second, n))
                    first = wp.cross(second, trial)
            else:
                trial = n
                second = wp.where(
                    wp.abs(n[0]) < real(0.6),
                    vec3(real(1.0), real(0.0), real(0.0)),
                    vec3(real(0.0), real(1.0), real(0.0)),
                )
                second = wp.normalize(wp.cross(n, second))
                first = wp.cross(second, n)
            c += wp.where(wp.length_sq(trial) == real(0.0), 1, 0)
        p[TRIAL], p[FIRST], p[SECOND] = trial, first, second
        p[VALUE] = vec3(real(NEVER), real(NEVER), real(0.0))
        return c

    return prepare


def _newton(real: Any) -> wp.Function:
    """The next trial of a smooth piece of h, downhill also where h is not convex."""
    vec3 = types(real).vec3
    vectors = wp.array(dtype=vec3)

    @wp.func
    def newton(c: int, last: vec3, step: real, p: vectors):
        """From the point at the trial, and those beside it, ``last`` being the newest."""
        n, first, second, y = p[TRIAL], p[FIRST], p[SECOND], p[Y]
        y1 = wp.where(c == SMOOTH, p[Y1], last)
        h = wp.dot(n, y)
        f, a = wp.dot(first, y), wp.dot(first, y1 - y) / step - h
        move = first * (-f / wp.max(wp.abs(a), real(TINY)))
        if c == SMOOTH:
            g, d = wp.dot(second, y), wp.dot(second, last - y) / step - h
            b = real(0.5) * (wp.dot(second, y1 - y) + wp.dot(first, last - y)) / step
            det = a * d - b * b
            if a > real(0.0) and det > real(0.0):
                move = (first * (b * g - d * f) + second * (b * f - a * g)) / det
            else:
                move = (first * f + second * g) / -wp.max(wp.abs(a) + wp.abs(b) + wp.abs(d), real(TINY))
        size = wp.length(move)
        if size > real(STRIDE):
            move = move * (real(STRIDE) / size)
        n = wp.normalize(n + move)
        if c == SMOOTH:
            second = wp.normalize(wp.cross(n, first))
        p[TRIAL], p[FIRST], p[SECOND] = n, wp.cross(second, n), second

    return newton


def _point(real: Any) -> wp.Function:
    """The point of the first solid where it touches: its edges and face are moved along to where ``y`` is along n."""
    vec3 = types(real).vec3
    vectors = wp.array(dtype=vec3)

    @wp.func
    def point_of(c: int, n: vec3, y: vec3, ya: vec3, p: vectors):
        off = y - n * wp.dot(n, y)
        move = vec3()
        if c == 0:
            move = off
        elif c >= CROSSING and c < EDGE:
            u, first = p[EDGES + (c - CROSSING) // 2], p[FIRST]
            move = u * (wp.dot(off, first) / wp.dot(u, first))
        elif c == EDGE or c == EDGE + 1:
            move = p[EDGES + c - EDGE] * wp.dot(off, p[EDGES + c - EDGE])
        return ya - move

    return point_of


def _flat(real: Any) -> wp.Function:
    """1 where more than a point touches: an edge or a face of one solid lies on a face or an edge of the other.

    Where it is an edge, its direction is put in `LINE`, else 0.
    """
    vec3 = types(real).vec3
    vectors = wp.array(dtype=vec3)
    exact = 1e-9 if real is wp.float64 else 1e-5  # rad

    @wp.func
    def flat(c: int, n: vec3, p: vectors):
        found, line = False, vec3()
        if c < CROSSING:
            other = 1 - c
            edge, face = p[EDGES + 2 * other], p[FACES + other]
            found = wp.length_sq(edge) > real(0.0) and wp.abs(wp.dot(edge, n)) < real(exact)
            faced = wp.length_sq(face) > real(0.0) and wp.length(wp.cross(face, n)) < real(exact)
            line = wp.where(found and not faced, edge, vec3())
            found = found or faced
        elif c >= EDGE and c < SMOOTH:
            edge = p[EDGES + c - EDGE]
            for k in range(2):
                along = p[EDGES + wp.where(c < EDGE + 2, 2, 0) + k]
                found = found or (wp.length_sq(along) > real(0.0) and wp.length(wp.cross(along, edge)) < real(exact))
            line = edge
        p[LINE] = line
        return wp.where(found, real(1.0), real(0.0))

    return flat
